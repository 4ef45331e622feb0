"""All demand down the cheapest paths: trees that are repaired when prices change, and the paths found so far.

The cheapest paths of an origin change little when prices do, so a tree is repaired, not searched anew. Trees and
paths run over links sorted by tail, so that those leaving a node lie side by side in memory. A link is one edge or
several, see `contraction`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routesim.kernels import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class Roads(NamedTuple):
    """A graph of links sorted by tail: those out of node i are indptr[i] … indptr[i + 1] - 1."""

    indptr: Longs
    tails: Ints
    heads: Ints
    no_through: NDArray[np.bool_]


class Pairs(NamedTuple):
    """Demand by origin: pair k of origin i, for k in first[i] … first[i + 1] - 1, leads to goals[k]."""

    origins: Ints
    first: Longs
    goals: Ints
    demand: Floats


class Paths(NamedTuple):
    """The paths found so far, a list for each pair: `newest[pair]`, then `older[path]` until -1.

    Path p is links[start[p] : start[p] + length[p]], from the goal back to the origin. `used` holds the number
    of paths and of links in use. `shares` has a row for the flow and one for each of the last two directions.
    """

    newest: Ints
    older: Ints
    key: NDArray[np.uint64]
    start: Longs
    length: Ints
    links: Ints
    shares: Floats
    cheapest: Ints
    used: Longs

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


class Heap(NamedTuple):
    """Work arrays of the repair of a tree."""

    distance: Floats
    position: Ints
    nodes: Ints

    @classmethod
    def build(cls, n_nodes: int) -> "Heap":
        """Allocate them."""
        return cls(np.empty(n_nodes), np.full(n_nodes, -1, dtype=np.int32), np.empty(n_nodes, dtype=np.int32))


@kernel
def _lift(heap: Heap, node: int, size: int) -> int:
    """Move a node up to its place in the heap, adding it where it is not there yet; return the heap's size."""
    distance, position, nodes = heap.distance, heap.position, heap.nodes
    link = position[node]
    if link < 0:
        link = size
        size += 1
    key = distance[node]
    while link > 0:
        above = nodes[(link - 1) // 2]
        if distance[above] <= key:
            break
        nodes[link] = above
        position[above] = link
        link = (link - 1) // 2
    nodes[link] = node
    position[node] = link
    return size


@kernel
def _take(heap: Heap, size: int) -> int:
    """Take the nearest node off a heap of `size` nodes."""
    distance, position, nodes = heap.distance, heap.position, heap.nodes
    nearest = nodes[0]
    position[nearest] = -1
    size -= 1
    if size > 0:
        node = nodes[size]
        key, link = distance[node], 0
        while True:
            below = 2 * link + 1
            if below >= size:
                break
            if below + 1 < size and distance[nodes[below + 1]] < distance[nodes[below]]:
                below += 1
            if distance[nodes[below]] >= key:
                break
            nodes[link] = nodes[below]
            position[nodes[link]] = link
            link = below
        nodes[link] = node
        position[node] = link
    return int(nearest)


@kernel
def _repair(roads: Roads, prices: Floats, origin: int, parents: Ints, heap: Heap) -> None:
    """Make `parents`, a tree at other prices or all -1, the tree of cheapest paths from `origin` at these.

    First the distances along the old tree: from each node climb to one whose distance is known, marking the way
    in `nodes`. They can only be too long; the nodes that an edge makes nearer then start a Dijkstra search.
    """
    distance, position, stack = heap.distance, heap.position, heap.nodes
    for node in range(len(parents)):
        distance[node] = -1.0
    distance[origin] = 0.0
    for node in range(len(parents)):
        depth, at = 0, node
        while distance[at] < 0.0 and parents[at] >= 0:
            stack[depth] = at
            depth += 1
            at = roads.tails[parents[at]]
        if distance[at] < 0.0:
            distance[at] = np.inf
        reached = distance[at]
        while depth > 0:
            depth -= 1
            at = stack[depth]
            reached = reached + prices[parents[at]]
            distance[at] = reached
    size = 0
    for node in range(len(parents)):
        here = distance[node]
        if here == np.inf or (roads.no_through[node] and node != origin):
            continue
        for link in range(roads.indptr[node], roads.indptr[node + 1]):
            head = roads.heads[link]
            there = here + prices[link]
            if there < distance[head]:
                distance[head] = there
                parents[head] = link
                size = _lift(heap, head, size)
    while size > 0:
        node = _take(heap, size)
        size -= 1
        if roads.no_through[node] and node != origin:
            continue
        here = distance[node]
        for link in range(roads.indptr[node], roads.indptr[node + 1]):
            head = roads.heads[link]
            there = here + prices[link]
            if there < distance[head]:
                distance[head] = there
                parents[head] = link
                size = _lift(heap, head, size)
    for node in range(len(position)):
        position[node] = -1


@kernel
def _longer(values: Ints, room: int) -> Ints:
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
    roads: Roads, pairs: Pairs, prices: Floats, trees: Ints, heap: Heap, paths: Paths, flows: Floats
) -> tuple[float, int, Paths]:
    """Send all demand down the cheapest paths: fill `flows`, and add the paths that are new.

    Returns the price paid in all, a pair that no path joins or -1, and the paths.
    """
    flows[:] = 0.0
    paid = 0.0
    for i in range(len(pairs.origins)):
        origin, parents = pairs.origins[i], trees[i]
        _repair(roads, prices, origin, parents, heap)
        for pair in range(pairs.first[i], pairs.first[i + 1]):
            goal = pairs.goals[pair]
            if heap.distance[goal] == np.inf:
                return np.inf, pair, paths
            paid += pairs.demand[pair] * heap.distance[goal]
            key, length, node = np.uint64(14695981039346656037), 0, goal
            while node != origin:
                link = parents[node]
                flows[link] += pairs.demand[pair]
                key = (key ^ np.uint64(link)) * np.uint64(1099511628211)
                length += 1
                node = roads.tails[link]
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
                    node = roads.tails[parents[node]]
                    at += 1
                paths.used[0], paths.used[1] = path + 1, at
            paths.cheapest[pair] = path
    return paid, -1, paths


@kernel
def owners(paths: Paths) -> Ints:
    """Return the pair of every path."""
    owner = np.empty(paths.used[0], dtype=np.int32)
    for pair in range(len(paths.newest)):
        path = paths.newest[pair]
        while path >= 0:
            owner[path] = pair
            path = paths.older[path]
    return owner
