"""The one search for shortest paths: one heap, Dijkstra and A*, trees, their repair, and reading off a path.

A path is an int32 array of edge indices. Parallel edges are distinct, self-loops are on no simple path, and
an edge of infinite cost is closed. Nodes are indices here; whoever knows their labels re-raises with them.
Nodes at the same cost leave the heap in the order of their indices, and of two ways to a node at the same cost
the one found first stays. So of equally cheap paths every search finds the same.

What an edge costs is asked of `cost_of(costs, edge)`, which the compiler resolves by the type of `costs`: an array
has a cost for each edge, and a NamedTuple of another module, registered with `priced_by`, works it out when the
search comes to the edge, as the simulator does from its present counts.

Banned turns will need nothing else here. Where a network has some, the graph to search has a node for each edge and
an edge for each turn allowed; a type of costs prices a turn as the edge that it leads onto.

The parts that other kernels are made of, `search` and `repair` among them, are compiled into these and not kept on
disk by themselves. After a change here, delete what is on disk of those kernels (CONTRIBUTING says how).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import ArrayLike, NDArray

from routesim.arrays import Floats, Ints32
from routesim.errors import InputError, NoPathError
from routesim.kernels import kernel, lean_part
from routesim.roads.graph import Graph

# Instead of the place of a node in the heap: it is not there yet, or must not come there any more.
ABSENT, DONE = -1, -2
ROUNDING = 1e-9  # relative difference of costs that is put down to rounding
NOWHERE = np.empty(0, dtype=np.int32)


class Workspace(NamedTuple):
    """Arrays that a search writes to. Make one for a graph and pass it to any number of searches, in turn.

    Nothing is cleared between two searches: an entry counts only where `stamp` is the current generation.
    """

    generation: NDArray[np.int64]
    stamp: NDArray[np.int64]
    distance: Floats
    key: Floats
    parent: Ints32
    position: Ints32
    heap: Ints32
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
) -> Ints32:
    """Find the cheapest path; of equally cheap ones always the same."""
    usable = checked(graph, costs, origin, destination)
    work = _fitting(workspace, graph)
    path = find(graph, usable, origin, destination, work.no_potential, NOWHERE, work)
    if not path.size:
        raise no_path(origin, destination)
    return path


def shortest_tree(
    graph: Graph, costs: ArrayLike, origin: int, *, workspace: Workspace | None = None
) -> tuple[Floats, Ints32]:
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


def cost_of(costs: Any, edge: int) -> float:
    """Return the cost of an edge; in compiled code whatever `priced_by` says of this type of costs."""
    return float(costs[edge])


def _specialise(belongs: Callable[[Any], bool], price: Callable[[Any, Any], Any]) -> None:
    """Compile `cost_of` as the compiled `price` wherever the type of the costs belongs to it."""

    def compiled(costs: Any, edge: Any) -> Any:
        return price(costs, edge)

    def chosen(costs: Any, edge: Any) -> Any:  # noqa: ARG001 - numba asks with types and takes the function for values
        return compiled if belongs(costs) else None

    overload(cost_of, inline="always")(chosen)


def priced_by(kind: type, price: Callable[[Any, int], float]) -> None:
    """Let compiled searches ask the compiled `price(costs, edge)` where the costs are a NamedTuple of this kind."""
    _specialise(lambda costs: isinstance(costs, types.NamedTuple) and costs.instance_class is kind, price)


@lean_part
def _entry(costs: Floats, edge: int) -> float:
    return costs[edge]  # type: ignore[no-any-return]  # numba knows better


_specialise(lambda costs: isinstance(costs, types.Array), _entry)


@lean_part
def _push(key: Floats, position: Ints32, heap: Ints32, node: int, size: int) -> int:
    """Put a node into a heap of `size` nodes, or move it up after its key fell; return the size.

    Equal keys are ordered by node.
    """
    slot = position[node]
    if slot < 0:
        slot = size
        size += 1
    mine = key[node]
    while slot > 0:
        above = heap[(slot - 1) // 2]
        if key[above] < mine or (key[above] == mine and above < node):
            break
        heap[slot], position[above] = above, slot
        slot = (slot - 1) // 2
    heap[slot], position[node] = node, slot
    return size


@lean_part
def _pop(key: Floats, position: Ints32, heap: Ints32, size: int) -> int:
    """Take the node of the least key off a heap of `size` nodes and mark it done."""
    least = heap[0]
    position[least] = DONE
    size -= 1
    if size > 0:
        node, slot = heap[size], 0
        mine = key[node]
        while 2 * slot + 1 < size:
            child = 2 * slot + 1
            below = heap[child]
            if child + 1 < size:
                right = heap[child + 1]
                if key[right] < key[below] or (key[right] == key[below] and right < below):
                    child, below = child + 1, right
            if mine < key[below] or (mine == key[below] and node < below):
                break
            heap[slot], position[below] = below, slot
            slot = child
        heap[slot], position[node] = node, slot
    return int(least)


@lean_part
def search(
    graph: Graph,
    costs: Any,
    origin: int,
    goal: int,
    potential: Floats,
    scale: float,
    blocked: Ints32,
    limit: float,
    work: Workspace,
) -> bool:
    """Say whether a path that avoids the `blocked` nodes reaches `goal` for less than `limit`, by A*.

    Leaves distances and parent edges in `work`; a goal of -1 stands for all nodes. `scale` times `potential` is
    the cost to go from each node, to the goal or to a node beyond it, at costs no higher than these. Zeros make
    the search Dijkstra's; an infinite potential bars a node.
    """
    generation = work.generation[0] + 1
    work.generation[0] = generation
    stamp, distance, key, parent, position = work.stamp, work.distance, work.key, work.parent, work.position
    for node in blocked:
        stamp[node], position[node] = generation, DONE
    beyond = scale * potential[goal] if goal >= 0 else 0.0
    stamp[origin], distance[origin], parent[origin], position[origin] = generation, 0.0, -1, ABSENT
    size = _push(key, position, work.heap, origin, 0)
    while size > 0:
        if work.heap[0] == goal:
            return True
        node = _pop(key, position, work.heap, size)
        size -= 1
        if graph.no_through[node] and node != origin:
            continue
        here = distance[node]
        for slot in range(graph.indptr[node], graph.indptr[node + 1]):
            edge = graph.out_edges[slot]
            head = graph.heads[edge]
            seen = stamp[head] == generation
            if (seen and position[head] == DONE) or potential[head] == np.inf:
                continue
            there = here + cost_of(costs, edge)
            if seen and there >= distance[head]:
                continue
            bound = there + max(0.0, scale * potential[head] - beyond)
            if bound >= limit:
                continue
            if not seen:
                stamp[head], position[head] = generation, ABSENT
            distance[head], key[head], parent[head] = there, bound, edge
            size = _push(key, position, work.heap, head, size)
    return False


@lean_part
def _relax(graph: Graph, costs: Any, node: int, parents: Ints32, work: Workspace, size: int) -> int:
    """Shorten the distances of the nodes that an edge out of `node` makes nearer; return the size of the heap."""
    distance, here = work.distance, work.distance[node]
    for slot in range(graph.indptr[node], graph.indptr[node + 1]):
        edge = graph.out_edges[slot]
        head, there = graph.heads[edge], here + cost_of(costs, edge)
        if there < distance[head]:
            distance[head], parents[head] = there, edge
            size = _push(distance, work.position, work.heap, head, size)
    return size


@lean_part
def repair(graph: Graph, costs: Any, origin: int, parents: Ints32, work: Workspace) -> None:
    """Make `parents`, a tree at other costs or all -1, the tree of shortest paths from `origin` at these.

    Leaves the distance of every node in `work`. First come the distances along the old tree: from each node climb
    to one whose distance is known, marking the way in the heap. They can only be too long; the nodes that an edge
    makes nearer then start a Dijkstra search.
    """
    distance, position, stack = work.distance, work.position, work.heap
    for node in range(len(parents)):
        distance[node], position[node] = -1.0, ABSENT
    distance[origin] = 0.0
    for node in range(len(parents)):
        depth, at = 0, node
        while distance[at] < 0.0 and parents[at] >= 0:
            stack[depth] = at
            depth += 1
            at = graph.tails[parents[at]]
        if distance[at] < 0.0:
            distance[at] = np.inf
        reached = distance[at]
        while depth > 0:
            depth -= 1
            at = stack[depth]
            reached = reached + cost_of(costs, parents[at])
            distance[at] = reached
    size = 0
    for node in range(len(parents)):
        if distance[node] < np.inf and (node == origin or not graph.no_through[node]):
            size = _relax(graph, costs, node, parents, work, size)
    while size > 0:
        node = _pop(distance, position, work.heap, size)
        size -= 1
        if node == origin or not graph.no_through[node]:
            size = _relax(graph, costs, node, parents, work, size)


@lean_part
def write_path(graph: Graph, parents: Ints32, goal: int, out: Ints32) -> int:
    """Write the path to `goal` to the start of `out`; return its length."""
    length, edge = 0, parents[goal]
    while edge >= 0:
        length, edge = length + 1, parents[graph.tails[edge]]
    place, edge = length, parents[goal]
    while edge >= 0:
        place -= 1
        out[place], edge = edge, parents[graph.tails[edge]]
    return length


@kernel
def trace(graph: Graph, parents: Ints32, goal: int) -> Ints32:
    """Read the path to `goal` off the parent edges of a search or a tree."""
    length, edge = 0, parents[goal]
    while edge >= 0:
        length, edge = length + 1, parents[graph.tails[edge]]
    path = np.empty(length, dtype=np.int32)
    write_path(graph, parents, goal, path)
    return path


@kernel
def find(
    graph: Graph, costs: Floats, origin: int, goal: int, potential: Floats, blocked: Ints32, work: Workspace
) -> Ints32:
    """Find the cheapest path, or one of no edges where none leads to `goal`."""
    if not search(graph, costs, origin, goal, potential, 1.0, blocked, np.inf, work):
        return np.empty(0, dtype=np.int32)
    return trace(graph, work.parent, goal)


@kernel
def tree(
    graph: Graph, costs: Floats, origin: int, potential: Floats, limit: float, work: Workspace
) -> tuple[Floats, Ints32]:
    """Find distance and parent edge of every node where distance plus potential is below `limit`."""
    search(graph, costs, origin, -1, potential, 1.0, work.heap[:0], limit, work)
    distances, parents = np.full(graph.indptr.size - 1, np.inf), np.full(graph.indptr.size - 1, np.int32(-1))
    for node in range(len(distances)):
        if work.stamp[node] == work.generation[0]:
            distances[node], parents[node] = work.distance[node], work.parent[node]
    return distances, parents


@kernel
def straighten(graph: Graph, costs: Floats, path: Ints32, stretch: float, to_go: Floats, work: Workspace) -> Ints32:
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
            if search(graph, costs, start, end, to_go, 1.0, path[:0], cost * (1 - ROUNDING), work):
                whole = np.concatenate((path[:first], trace(graph, work.parent, end), path[last:]))
                path = without_loops(graph, whole, work)
                changed = True
            else:
                first = following
    return path


@kernel
def without_loops(graph: Graph, walk: Ints32, work: Workspace) -> Ints32:
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
