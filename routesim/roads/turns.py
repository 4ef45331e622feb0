"""Turns at the ends of edges, and how searches keep to those that are allowed.

What may follow depends on the edges driven before. A node that bans are about gets copies, one for each class of
arriving drivers with the same ways to go on; from each copy lead only the edges allowed. Of a ban on a way of three
edges or more, drivers carry a memory: the longest beginning of a banned way that they have just driven, as in the
search of Aho and Corasick (1975) for many words at once. Who has driven a whole banned way but its last edge finds
himself at a copy from which that edge does not lead.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Bools, Floats, Ints, Ints32
from routesim.checks import seconds

if TYPE_CHECKING:
    from routesim.roads.network import RoadNetwork

Way: TypeAlias = tuple[int, ...]

STRAIGHT_ON = np.pi / 4  # the largest angle of a turn that goes straight on


class Split(NamedTuple):
    """The arcs between nodes and copies, and what they stand for; see `Graph`."""

    tails: Ints32
    heads: Ints32
    no_through: Bools
    roads: Ints32
    copy_of: Ints32
    after: Ints32
    came_by: Ints32  # for each copy an edge by which one gets there, the only one where each has copies of its own


def allowed_turns(network: "RoadNetwork") -> tuple[Ints, Ints]:
    """Return every pair of an edge and one onto which one may turn at its end, in order of the first."""
    order = np.argsort(network.tails, kind="stable")
    indptr = np.concatenate(([0], np.cumsum(np.bincount(network.tails, minlength=network.n_nodes))))
    start, onto = _rows_of(indptr, order, network.heads)
    banned = network.banned_turns.astype(np.int64) @ np.array([network.n_edges, 1])
    allowed = ~np.isin(start * network.n_edges + onto, banned)
    return start[allowed], onto[allowed]


def directions(network: "RoadNetwork") -> tuple[Floats, Floats]:
    """Return the directions in which roads leave and arrive, in radians against the clock from the east; 0 unknown."""
    start, end = network.shape_offsets[:-1], network.shape_offsets[1:]
    drawn = end > start

    def heading(first: Ints, second: Ints, from_node: Ints32, to_node: Ints32) -> Floats:
        x, y = network.x, network.y
        dx, dy = x[to_node] - x[from_node], y[to_node] - y[from_node]
        if drawn.any():
            line = network.shape_xy
            dx[drawn] = line[second[drawn], 0] - line[first[drawn], 0]
            dy[drawn] = line[second[drawn], 1] - line[first[drawn], 1]
        if network.is_geographic:
            dx = dx * np.cos(np.radians(y[from_node]))
        return np.nan_to_num(np.arctan2(dy, dx))

    leaves = heading(start, start + 1, network.tails, network.heads)
    arrives = heading(end - 2, end - 1, network.tails, network.heads)
    return leaves, arrives


def angles(leaves: Floats, arrives: Floats, edge: Ints, onto: Ints) -> Floats:
    """Return the angles of turns from edges onto others, in radians, to the left above 0 and to the right below."""
    return np.asarray((leaves[onto] - arrives[edge] + np.pi) % (2 * np.pi) - np.pi, dtype=np.float64)


@dataclass(frozen=True)
class TurnPenalties:
    """Seconds that searches add for turns: to the left, to the right, straight on, and back to where one came from.

    A turn of up to 45 degrees is straight on, and so is one between roads whose places are not known.
    """

    left_s: float = 0.0
    right_s: float = 0.0
    straight_s: float = 0.0
    back_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("left_s", "right_s", "straight_s", "back_s"):
            object.__setattr__(self, name, seconds(name, getattr(self, name), least=0.0))

    def on(self, network: "RoadNetwork") -> Callable[[Ints, Ints], Floats]:
        """Return what turns from some edges onto others of a network cost."""
        leaves, arrives = directions(network)

        def turn_s(edge: Ints, onto: Ints) -> Floats:
            angle = angles(leaves, arrives, edge, onto)
            back = (network.heads[onto] == network.tails[edge]) & (network.tails[edge] != network.heads[edge])
            turns = [back, angle > STRAIGHT_ON, angle < -STRAIGHT_ON]
            return np.asarray(np.select(turns, [self.back_s, self.left_s, self.right_s], self.straight_s))

        return turn_s


def _rows_of(indptr: Ints, values: NDArray[Any], rows: NDArray[Any]) -> tuple[Ints, Ints]:
    """Return the values in some rows, one row after the other, and before them the position of each one's row."""
    size = indptr[rows + 1] - indptr[rows]
    position = np.repeat(np.arange(len(rows)), size)
    place = np.arange(len(position)) + np.repeat(indptr[rows] - np.cumsum(size) + size, size)
    return position, values[place].astype(np.int64)


def split_nodes(
    indptr: Ints,
    out_edges: Ints32,
    tails: Ints32,
    heads: Ints32,
    no_through: Bools,
    banned: Iterable[Sequence[int]],
    *,
    each_edge: bool = False,
) -> Split:
    """Give the nodes that bans are about their copies; with `each_edge` every node one for each edge that arrives.

    A node without copies is its own place for those who pass through. Arcs come in this order: each edge from node to
    node, each edge out of a node onto a copy, and the edges out of each copy, first to nodes and then to copies.
    """
    n_nodes, n_edges = len(no_through), len(tails)
    # Where nobody passes through, no turn needs a ban.
    ways = [tuple(way) for way in banned if not no_through[heads[list(way[:-1])]].any()]
    exceptions = _exceptions(ways)
    # (node, what is not as usual there, edge that arrives if it matters which) -> place
    copies: dict[tuple[int, tuple[tuple[int, Way], ...], int], int] = {}
    came_by: list[int] = []

    def copy_at(edge: int, deviations: dict[int, Way]) -> int:
        key = int(heads[edge]), tuple(sorted(deviations.items())), edge if each_edge else -1
        if key not in copies:
            copies[key] = n_nodes + len(copies)
            came_by.append(edge)
        return copies[key]

    place: dict[Way, int] = {}
    is_split = np.zeros(n_nodes, dtype=np.bool_)
    if each_edge:
        is_split[heads] = ~no_through[heads]
    for memory, unusual in exceptions.items():
        is_split[heads[memory[-1]]] = True
        place[memory] = copy_at(memory[-1], unusual)
    arrivals = np.flatnonzero(is_split[heads])
    after = heads.copy()
    for edge in arrivals.tolist():
        known = place.get((edge,))
        after[edge] = copy_at(edge, {}) if known is None else known
    copy_of = np.array([node for node, _, _ in copies], dtype=np.int32)
    # The edges out of every copy, and where they lead.
    start, out = _rows_of(indptr, out_edges, copy_of)
    target = after[out].astype(np.int64)
    row = {pair: number for number, pair in enumerate(zip(start.tolist(), out.tolist(), strict=True))} if ways else {}
    for copy, (_, deviations, _) in enumerate(copies):
        for onto, memory in deviations:
            target[row[copy, onto]] = place[memory] if memory else -1
    allowed = target >= 0
    start, out, target = start[allowed] + n_nodes, out[allowed], target[allowed]
    on = target >= n_nodes
    every = np.arange(n_edges)
    return Split(
        np.concatenate((tails, tails[arrivals], start, start[on])).astype(np.int32),
        np.concatenate((heads, after[arrivals], heads[out], target[on])).astype(np.int32),
        np.concatenate((no_through | is_split, np.zeros(len(copy_of), dtype=np.bool_))),
        np.concatenate((every, arrivals, out, out[on])).astype(np.int32),
        copy_of,
        after,
        np.array(came_by, dtype=np.int32),
    )


def _exceptions(ways: Iterable[Way]) -> dict[Way, dict[int, Way]]:
    """Return, for each memory, the edges that do not lead on as usual: to another memory, or () where they are banned.

    A memory is the beginning of a banned way. Usually one who drives an edge remembers that edge at the most.
    """
    onto: dict[Way, dict[int, bool]] = {}  # beginning -> next edge -> whether that completes a banned way
    for way in ways:
        for length in range(1, len(way)):
            following = onto.setdefault(way[:length], {})
            following[way[length]] = following.get(way[length], False) or length + 1 == len(way)
    found: dict[Way, dict[int, Way]] = {}
    for memory in sorted(onto, key=len):
        # The longest end of this memory that is a beginning itself says what holds besides.
        shorter = next((memory[cut:] for cut in range(1, len(memory)) if memory[cut:] in onto), ())
        unusual = dict(found[shorter]) if shorter else {}
        for edge, is_last in onto[memory].items():
            if is_last:
                unusual[edge] = ()
            elif unusual.get(edge) != ():
                unusual[edge] = (*memory, edge)
        found[memory] = unusual
    return found
