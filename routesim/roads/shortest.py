"""Shortest paths on arrays of edges: the graph, the work arrays and the one compiled search.

A path is an int32 array of edge indices. Parallel edges are distinct, self-loops are on no simple path, and
an edge of infinite cost is closed. Nodes are indices here; whoever knows their labels re-raises with them.

Compiled code that calls the search is in this file too: what is kept on disk is compiled anew when its own
file changes, not when a file it calls does.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from routesim.errors import InputError, NoPathError
from routesim.kernels import kernel

Edges = NDArray[np.int32]
Floats = NDArray[np.float64]

DONE = -1  # position of a node that has left the heap, or must never enter it
ROUNDING = 1e-9  # relative difference of costs that is put down to rounding
NOWHERE = np.empty(0, dtype=np.int32)


class Graph(NamedTuple):
    """A directed multigraph: edge e leads from tails[e] to heads[e].

    The edges out of node v are out_edges[indptr[v] : indptr[v + 1]], in ascending order. A path may start or
    end at a no_through node, as at the zones of a TNTP network, but not pass through it.
    """

    indptr: NDArray[np.int64]
    out_edges: Edges
    tails: Edges
    heads: Edges
    no_through: NDArray[np.bool_]

    @classmethod
    def build(cls, tails: ArrayLike, heads: ArrayLike, n_nodes: int, *, no_through: ArrayLike | None = None) -> "Graph":
        """Index the edges tails[e] -> heads[e] between the nodes 0 … n_nodes - 1."""
        from_nodes, to_nodes = _end_nodes("tails", tails, n_nodes), _end_nodes("heads", heads, n_nodes)
        if from_nodes.size != to_nodes.size:
            raise InputError(f"tails and heads must be equally long, got {from_nodes.size} and {to_nodes.size}")
        barred = np.array(np.zeros(n_nodes) if no_through is None else no_through, dtype=np.bool_)
        if barred.shape != (n_nodes,):
            raise InputError(f"no_through must have one entry a node ({n_nodes}), got shape {barred.shape}")
        indptr, out_edges = sort_by(from_nodes, n_nodes)
        return cls(indptr, out_edges, from_nodes, to_nodes, barred)

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.indptr) - 1

    def reverse(self) -> "Graph":
        """Turn every edge round; it keeps its index."""
        indptr, in_edges = sort_by(self.heads, self.n_nodes)
        return Graph(indptr, in_edges, self.heads, self.tails, self.no_through)


class Workspace(NamedTuple):
    """Arrays that a search writes to. Make one for a graph and pass it to any number of searches, in turn.

    Nothing is cleared between two searches: an entry counts only where `stamp` is the current generation.
    """

    generation: NDArray[np.int64]
    stamp: NDArray[np.int64]
    distance: Floats
    key: Floats
    parent: Edges
    position: Edges
    heap: Edges
    no_potential: Floats

    @classmethod
    def build(cls, graph: Graph) -> "Workspace":
        """Allocate what searches on `graph` need."""
        n = graph.n_nodes
        generation, stamp = np.zeros(1, dtype=np.int64), np.zeros(n, dtype=np.int64)
        parent, position, heap = (np.empty(n, dtype=np.int32) for _ in range(3))
        return cls(generation, stamp, np.empty(n), np.empty(n), parent, position, heap, np.zeros(n))


def shortest_path(
    graph: Graph, costs: ArrayLike, origin: int, destination: int, *, workspace: Workspace | None = None
) -> Edges:
    """Find the cheapest path; of equally cheap ones always the same."""
    usable = checked(graph, costs, origin, destination)
    work = _fitting(workspace, graph)
    path = find(graph, usable, origin, destination, work.no_potential, NOWHERE, work)
    if not path.size:
        raise no_path(origin, destination)
    return path


def shortest_tree(
    graph: Graph, costs: ArrayLike, origin: int, *, workspace: Workspace | None = None
) -> tuple[Floats, Edges]:
    """Find the cost from `origin` to every node, and the last edge on the way there.

    The cost is inf and the edge -1 where no path leads; at the origin they are 0 and -1.
    """
    usable, work = checked(graph, costs, origin), _fitting(workspace, graph)
    return tree(graph, usable, origin, work.no_potential, np.inf, work)


def checked(graph: Graph, costs: ArrayLike, *ends: int) -> Floats:
    """Return the costs as kernels want them, once they and the end nodes keep the rules."""
    usable = np.require(costs, np.float64, ("C", "W"))
    if usable.shape != graph.tails.shape:
        raise InputError(f"costs must have one entry an edge ({len(graph.tails)}), got shape {usable.shape}")
    if usable.size and not usable.min() >= 0:
        edge = int(np.flatnonzero(~(usable >= 0))[0])
        raise InputError(f"costs must be at least 0, or inf if closed, got {usable[edge]} at edge {edge}")
    for name, node in zip(("origin", "destination"), ends, strict=False):
        if not 0 <= node < graph.n_nodes or int(node) != node:
            raise InputError(f"{name} must be a node index in 0 … {graph.n_nodes - 1}, got {node!r}")
    if len(ends) == 2 and ends[0] == ends[1]:
        raise InputError(f"origin and destination must differ, got node {ends[0]} twice")
    return usable


def no_path(origin: int, destination: int) -> NoPathError:
    """Make the error that says so."""
    return NoPathError(f"no path leads from node {origin} to node {destination}")


def _fitting(workspace: Workspace | None, graph: Graph) -> Workspace:
    if workspace is None:
        return Workspace.build(graph)
    if len(workspace.stamp) != graph.n_nodes:
        made_for = len(workspace.stamp)
        raise InputError(f"workspace must be for this graph of {graph.n_nodes} nodes, got one for {made_for}")
    return workspace


def _end_nodes(name: str, given: ArrayLike, n_nodes: int) -> Edges:
    nodes = np.asarray(given)
    if nodes.ndim != 1 or (nodes.size and nodes.dtype.kind not in "iu"):
        raise InputError(f"{name} must be a list of node indices, got shape {nodes.shape} of {nodes.dtype}")
    outside = np.flatnonzero((nodes < 0) | (nodes >= n_nodes))
    if outside.size:
        edge = int(outside[0])
        raise InputError(f"{name} must be in 0 … {n_nodes - 1}, got {nodes[edge]} at edge {edge}")
    return np.require(nodes, np.int32, ("C", "W"))


@kernel
def sort_by(ends: Edges, n_nodes: int) -> tuple[NDArray[np.int64], Edges]:
    """Sort the edges by one of their ends: where each node's edges begin, and the edges."""
    indptr = np.zeros(n_nodes + 1, dtype=np.int64)
    for node in ends:
        indptr[node + 1] += 1
    for node in range(n_nodes):
        indptr[node + 1] += indptr[node]
    free, order = indptr[:-1].copy(), np.empty(len(ends), dtype=np.int32)
    for edge, node in enumerate(ends):
        order[free[node]] = edge
        free[node] += 1
    return indptr, order


@kernel
def _sift_up(work: Workspace, slot: int) -> None:
    """Move the node at `slot` of the heap up to its place; equal keys are ordered by node."""
    heap, key, position = work.heap, work.key, work.position
    node = heap[slot]
    while slot > 0:
        above = heap[(slot - 1) // 2]
        if key[above] < key[node] or (key[above] == key[node] and above < node):
            break
        heap[slot], position[above] = above, slot
        slot = (slot - 1) // 2
    heap[slot], position[node] = node, slot


@kernel
def _sift_down(work: Workspace, size: int) -> None:
    """Move the node on top of the heap down to its place."""
    heap, key, position = work.heap, work.key, work.position
    node, slot = heap[0], 0
    while 2 * slot + 1 < size:
        child = 2 * slot + 1
        below = heap[child]
        if child + 1 < size:
            right = heap[child + 1]
            if key[right] < key[below] or (key[right] == key[below] and right < below):
                child, below = child + 1, right
        if key[node] < key[below] or (key[node] == key[below] and node < below):
            break
        heap[slot], position[below] = below, slot
        slot = child
    heap[slot], position[node] = node, slot


@kernel
def search(
    graph: Graph,
    costs: Floats,
    origin: int,
    goal: int,
    potential: Floats,
    blocked: Edges,
    limit: float,
    work: Workspace,
) -> bool:
    """Say whether a path that avoids the `blocked` nodes reaches `goal` for less than `limit`, by A*.

    Leaves distances and parent edges in `work`; a goal of -1 stands for all nodes. `potential` is the cost to
    go from each node, to the goal or to a node beyond it, at costs no higher than these. Zeros make the
    search Dijkstra's; an infinite potential bars a node.
    """
    generation = work.generation[0] + 1
    work.generation[0] = generation
    for node in blocked:
        work.stamp[node], work.position[node] = generation, DONE
    beyond = potential[goal] if goal >= 0 else 0.0
    work.stamp[origin], work.distance[origin], work.parent[origin] = generation, 0.0, -1
    work.heap[0], work.position[origin], size = origin, 0, 1
    while size > 0:
        node = work.heap[0]
        if node == goal:
            return True
        work.position[node] = DONE
        size -= 1
        if size > 0:
            work.heap[0] = work.heap[size]
            _sift_down(work, size)
        if graph.no_through[node] and node != origin:
            continue
        for edge in graph.out_edges[graph.indptr[node] : graph.indptr[node + 1]]:
            head = graph.heads[edge]
            seen = work.stamp[head] == generation
            distance = work.distance[node] + costs[edge]
            if seen and (work.position[head] == DONE or distance >= work.distance[head]):
                continue
            key = distance + max(0.0, potential[head] - beyond)
            if key >= limit:
                continue
            if not seen:
                work.stamp[head], work.position[head], work.heap[size] = generation, size, head
                size += 1
            work.distance[head], work.key[head], work.parent[head] = distance, key, edge
            _sift_up(work, work.position[head])
    return False


@kernel
def trace(graph: Graph, goal: int, work: Workspace) -> Edges:
    """Read the path to `goal` off the last search."""
    length, edge = 0, work.parent[goal]
    while edge >= 0:
        length, edge = length + 1, work.parent[graph.tails[edge]]
    path, edge = np.empty(length, dtype=np.int32), work.parent[goal]
    while edge >= 0:
        length -= 1
        path[length], edge = edge, work.parent[graph.tails[edge]]
    return path


@kernel
def find(
    graph: Graph, costs: Floats, origin: int, goal: int, potential: Floats, blocked: Edges, work: Workspace
) -> Edges:
    """Find the cheapest path, or one of no edges where none leads to `goal`."""
    if not search(graph, costs, origin, goal, potential, blocked, np.inf, work):
        return np.empty(0, dtype=np.int32)
    return trace(graph, goal, work)


@kernel
def tree(
    graph: Graph, costs: Floats, origin: int, potential: Floats, limit: float, work: Workspace
) -> tuple[Floats, Edges]:
    """Find distance and parent edge of every node where distance plus potential is below `limit`."""
    search(graph, costs, origin, -1, potential, work.heap[:0], limit, work)
    distances, parents = np.full(graph.indptr.size - 1, np.inf), np.full(graph.indptr.size - 1, np.int32(-1))
    for node in range(len(distances)):
        if work.stamp[node] == work.generation[0]:
            distances[node], parents[node] = work.distance[node], work.parent[node]
    return distances, parents


@kernel
def straighten(graph: Graph, costs: Floats, path: Edges, stretch: float, to_go: Floats, work: Workspace) -> Edges:
    """Replace parts of `path` by shortest paths until every part that costs at most `stretch` is one.

    A part that small lies inside one of the windows searched: each costs up to twice as much, and begins
    within `stretch` of the one before. Every replacement makes the path cheaper, so this ends.
    """
    changed = True
    while changed:
        changed, first = False, 0
        while first < len(path):
            cost, last, following = 0.0, first, first + 1
            while last < len(path) and cost + costs[path[last]] <= 2 * stretch:
                cost += costs[path[last]]
                last += 1
                if cost <= stretch:
                    following = last
            start, end = int(graph.tails[path[first]]), int(graph.heads[path[max(first, last - 1)]])
            if search(graph, costs, start, end, to_go, path[:0], cost * (1 - ROUNDING), work):
                whole = np.concatenate((path[:first], trace(graph, end, work), path[last:]))
                path = without_loops(graph, whole, work)
                changed = True
            else:
                first = following
    return path


@kernel
def without_loops(graph: Graph, walk: Edges, work: Workspace) -> Edges:
    """Cut out of a walk whatever lies between two visits to a node."""
    generation = work.generation[0] + 1
    work.generation[0] = generation
    path, length = np.empty(len(walk), dtype=np.int32), 0
    work.stamp[graph.tails[walk[0]]], work.position[graph.tails[walk[0]]] = generation, 0
    for edge in walk:
        head = graph.heads[edge]
        path[length] = edge
        length += 1
        if work.stamp[head] == generation:
            for cut in path[work.position[head] : length - 1]:
                work.stamp[graph.heads[cut]] = 0
            length = work.position[head]
        work.stamp[head], work.position[head] = generation, length
    return path[:length].copy()
