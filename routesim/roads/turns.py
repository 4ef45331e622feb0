"""Turns at the ends of edges, and how searches keep to those that are allowed.

What may follow depends on the edges driven before. A node that bans are about gets copies, one for each class of
arriving drivers with the same ways to go on; from each copy lead only the edges allowed. Of a ban on a way of three
edges or more, drivers carry a memory: the longest beginning of a banned way that they have just driven, as in the
search of Aho and Corasick (1975) for many words at once. Who has driven a whole banned way but its last edge finds
himself at a copy from which that edge does not lead.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from routesim.arrays import Bools, Ints, Ints32

Way: TypeAlias = tuple[int, ...]


class Split(NamedTuple):
    """The arcs between nodes and copies, and what they stand for; see `Graph`."""

    tails: Ints32
    heads: Ints32
    no_through: Bools
    roads: Ints32
    copy_of: Ints32
    after: Ints32


def turns_at(indptr: Ints, out_edges: Ints32, heads: Ints32) -> tuple[Ints, Ints]:
    """Return every pair of an edge and one that starts where it ends, in order of the first."""
    out = indptr[heads + 1] - indptr[heads]
    edge = np.repeat(np.arange(len(heads)), out)
    first = np.repeat(indptr[heads], out)
    onto = out_edges[first + np.arange(len(edge)) - np.repeat(np.cumsum(out) - out, out)]
    return edge, onto.astype(np.int64)


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
    out = indptr[copy_of + 1] - indptr[copy_of]
    start = np.repeat(np.arange(len(copy_of)), out)
    edge = out_edges[np.repeat(indptr[copy_of], out) + np.arange(len(start)) - np.repeat(np.cumsum(out) - out, out)]
    target = after[edge].astype(np.int64)
    row = {pair: number for number, pair in enumerate(zip(start.tolist(), edge.tolist(), strict=True))} if ways else {}
    for copy, (_, unusual) in enumerate(copies):
        for onto, memory in unusual:
            target[row[copy, onto]] = place[memory] if memory else -1
    allowed = target >= 0
    start, edge, target = start[allowed] + n_nodes, edge[allowed], target[allowed]
    on = target >= n_nodes
    every = np.arange(n_edges)
    return Split(
        np.concatenate((tails, tails[arrivals], start, start[on])).astype(np.int32),
        np.concatenate((heads, after[arrivals], heads[edge], target[on])).astype(np.int32),
        np.concatenate((no_through | is_split, np.zeros(len(copy_of), dtype=np.bool_))),
        np.concatenate((every, arrivals, edge, edge[on])).astype(np.int32),
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
