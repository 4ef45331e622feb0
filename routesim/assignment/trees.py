"""All demand down the cheapest paths: trees that are repaired when prices change, and the paths found so far.

The cheapest paths of an origin change little when prices do, so a tree is repaired, not searched anew. Trees and
paths run over a graph of links, each of one edge or several; see `contraction`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints, Ints32
from routesim.kernels import kernel
from routesim.roads.graph import Graph
from routesim.roads.shortest import Workspace, repair


class Pairs(NamedTuple):
    """Demand by origin: pair k of origin i, for k in first[i] … first[i + 1] - 1, leads to goals[k]."""

    origins: Ints32
    first: Ints
    goals: Ints32
    demand: Floats


class Paths(NamedTuple):
    """The paths found so far, a list for each pair: `newest[pair]`, then `older[path]` until -1.

    Path p is links[start[p] : start[p] + length[p]], from the goal back to the origin. `used` holds the number
    of paths and of links in use. `shares` has a row for the flow and one for each of the last two directions.
    """

    newest: Ints32
    older: Ints32
    key: NDArray[np.uint64]
    start: Ints
    length: Ints32
    links: Ints32
    shares: Floats
    cheapest: Ints32
    used: Ints

    @classmethod
    def none_yet(cls, n_pairs: int) -> "Paths":
        """Return room for a few paths of each pair; there is more when it is needed."""
        room = 2 * n_pairs + 16
        return cls(
            np.full(n_pairs, -1, dtype=np.int32),
            np.empty(room, dtype=np.int32),
            np.empty(room, dtype=np.uint64),
            np.empty(room, dtype=np.int64),
            np.empty(room, dtype=np.int32),
            np.empty(8 * room, dtype=np.int32),
            np.zeros((3, room)),
            np.full(n_pairs, -1, dtype=np.int32),
            np.zeros(2, dtype=np.int64),
        )


@kernel
def _longer(values: Ints32, room: int) -> Ints32:
    more = np.empty(room, dtype=values.dtype)
    more[: len(values)] = values
    return more


@kernel
def _with_room(paths: Paths, links_needed: int) -> Paths:
    """Return the paths with room for one more of this length."""
    used, used_links = paths.used[0], paths.used[1]
    older, key, start, length, links, shares = (
        paths.older,
        paths.key,
        paths.start,
        paths.length,
        paths.links,
        paths.shares,
    )
    if used == len(older):
        room = 2 * used
        older, length = _longer(older, room), _longer(length, room)
        more_keys, more_starts = np.empty(room, dtype=np.uint64), np.empty(room, dtype=np.int64)
        more_keys[:used], more_starts[:used] = key, start
        key, start = more_keys, more_starts
        more_shares = np.zeros((3, room))
        more_shares[:, :used] = shares
        shares = more_shares
    if used_links + links_needed > len(links):
        links = _longer(links, 2 * (used_links + links_needed))
    return Paths(paths.newest, older, key, start, length, links, shares, paths.cheapest, paths.used)


@kernel
def load_all(
    graph: Graph, pairs: Pairs, prices: Floats, trees: Ints32, work: Workspace, paths: Paths, flows: Floats
) -> tuple[float, int, Paths]:
    """Send all demand down the cheapest paths: fill `flows`, and add the paths that are new.

    Returns the price paid in all, a pair that no path joins or -1, and the paths.
    """
    flows[:] = 0.0
    paid = 0.0
    for i in range(len(pairs.origins)):
        origin, parents = pairs.origins[i], trees[i]
        repair(graph, prices, origin, parents, work)
        for pair in range(pairs.first[i], pairs.first[i + 1]):
            goal = pairs.goals[pair]
            if work.distance[goal] == np.inf:
                return np.inf, pair, paths
            paid += pairs.demand[pair] * work.distance[goal]
            key, length, node = np.uint64(14695981039346656037), 0, goal
            while node != origin:
                link = parents[node]
                flows[link] += pairs.demand[pair]
                key = (key ^ np.uint64(link)) * np.uint64(1099511628211)
                length += 1
                node = graph.tails[link]
            path = paths.newest[pair]
            while path >= 0 and not (paths.key[path] == key and paths.length[path] == length):
                path = paths.older[path]
            if path < 0:
                paths = _with_room(paths, length)
                path, at = paths.used[0], paths.used[1]
                paths.older[path], paths.newest[pair] = paths.newest[pair], path
                paths.key[path], paths.start[path], paths.length[path] = key, at, length
                node = goal
                while node != origin:
                    paths.links[at] = parents[node]
                    node = graph.tails[parents[node]]
                    at += 1
                paths.used[0], paths.used[1] = path + 1, at
            paths.cheapest[pair] = path
    return paid, -1, paths


@kernel
def owners(paths: Paths) -> Ints32:
    """Return the pair of every path."""
    owner = np.empty(paths.used[0], dtype=np.int32)
    for pair in range(len(paths.newest)):
        path = paths.newest[pair]
        while path >= 0:
            owner[path] = pair
            path = paths.older[path]
    return owner
