"""Turns at the ends of edges, and how searches keep to those that are allowed.

What may follow depends on the edges driven before. A node that bans are about gets copies, one for each class of
arriving drivers with the same ways to go on; from each copy lead only the edges allowed. Of a ban on a way of three
edges or more, drivers carry a memory: the longest beginning of a banned way that they have just driven, as in the
search of Aho and Corasick (1975) for many words at once. Who has driven a whole banned way but its last edge finds
himself at a copy from which that edge does not lead.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Bools, Ints, Ints32

if TYPE_CHECKING:
    from routesim.roads.network import RoadNetwork

Way: TypeAlias = tuple[int, ...]


class Split(NamedTuple):
    """The arcs between nodes and copies, and what they stand for; see `Graph`."""

    tails: Ints32
    heads: Ints32
    no_through: Bools
    roads: Ints32
    copy_of: Ints32
    after: Ints32


def allowed_turns(network: "RoadNetwork") -> tuple[Ints, Ints]:
    """Return every pair of an edge and one onto which one may turn at its end, in order of the first."""
    order = np.argsort(network.tails, kind="stable")
    indptr = np.concatenate(([0], np.cumsum(np.bincount(network.tails, minlength=network.n_nodes))))
    start, onto = _rows_of(indptr, order, network.heads)
    banned = network.banned_turns.astype(np.int64) @ np.array([network.n_edges, 1])
    allowed = ~np.isin(start * network.n_edges + onto, banned)
    return start[allowed], onto[allowed]


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
) -> Split:
    """Give the nodes that bans are about their copies.

    A node without copies is its own place for those who pass through. Arcs come in this order: each edge from node to
    node, each edge out of a node onto a copy, and the edges out of each copy, first to nodes and then to copies.
    """
    n_nodes, n_edges = len(no_through), len(tails)
    # Where nobody passes through, no turn needs a ban.
    ways = [tuple(way) for way in banned if not no_through[heads[list(way[:-1])]].any()]
    exceptions = _exceptions(ways)
    copies: dict[tuple[int, tuple[tuple[int, Way], ...]], int] = {}  # (node, what is not as usual there) -> place
    place: dict[Way, int] = {}
    is_split = np.zeros(n_nodes, dtype=np.bool_)
    for memory, unusual in exceptions.items():
        node = int(heads[memory[-1]])
        is_split[node] = True
        place[memory] = copies.setdefault((node, tuple(sorted(unusual.items()))), n_nodes + len(copies))
    arrivals = np.flatnonzero(is_split[heads])
    after = heads.copy()
    for edge in arrivals.tolist():
        known = place.get((edge,))
        after[edge] = copies.setdefault((int(heads[edge]), ()), n_nodes + len(copies)) if known is None else known
    copy_of = np.array([node for node, _ in copies], dtype=np.int32)
    # The edges out of every copy, and where they lead.
    start, out = _rows_of(indptr, out_edges, copy_of)
    target = after[out].astype(np.int64)
    row = {pair: number for number, pair in enumerate(zip(start.tolist(), out.tolist(), strict=True))} if ways else {}
    for copy, (_, deviations) in enumerate(copies):
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
