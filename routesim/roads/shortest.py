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
from numpy.typing import ArrayLike

from routesim.arrays import Floats, Ints, Ints32
from routesim.errors import InputError, NoPathError
from routesim.kernels import kernel, lean_part
from routesim.roads.graph import Graph

ROUNDING = 1e-9  # relative difference of costs that is put down to rounding
NOWHERE = np.empty(0, dtype=np.int32)


class Workspace(NamedTuple):
    """Arrays that a search writes to. Make one for a graph and pass it to any number of searches, in turn.

    Nothing is cleared between two searches: an entry counts only where `stamp` is the current generation, or one
    more, which marks a node that the search is done with. `keys` and `nodes` are the heap. A node whose cost falls
    enters it once more, so there is room for every edge twice: a repair looks at all of them before it searches.
    """

    generation: Ints
    stamp: Ints
    distance: Floats
    parent: Ints32
    place: Ints32
    keys: Floats
    nodes: Ints32
    no_potential: Floats

    @classmethod
    def build(cls, graph: Graph) -> "Workspace":
        """Allocate what searches on `graph` need."""
        n, room = graph.n_nodes, graph.n_nodes + 2 * graph.n_edges
        generation, stamp = np.zeros(1, dtype=np.int64), np.zeros(n, dtype=np.int64)
        parent, place, nodes = (np.empty(size, dtype=np.int32) for size in (n, n, room))
        return cls(generation, stamp, np.empty(n), parent, place, np.empty(room), nodes, np.empty(0))


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
def _push(keys: Floats, nodes: Ints32, size: int, key: float, node: int) -> int:
    """Put a node into a heap of `size` entries; return the new size. Equal keys are ordered by node."""
    slot = size
    while slot > 0:
        above = (slot - 1) >> 1
        if keys[above] < key or (keys[above] == key and nodes[above] <= node):
            break
        keys[slot], nodes[slot] = keys[above], nodes[above]
        slot = above
    keys[slot], nodes[slot] = key, node
    return size + 1


@lean_part
def _pop(keys: Floats, nodes: Ints32, size: int) -> int:
    """Take the first entry off a heap of `size` entries; return the new size."""
    size -= 1
    key, node, slot = keys[size], nodes[size], 0
    while 2 * slot + 1 < size:
        child = 2 * slot + 1
        right = child + 1
        if right < size and (keys[right] < keys[child] or (keys[right] == keys[child] and nodes[right] < nodes[child])):
            child = right
        if key < keys[child] or (key == keys[child] and node <= nodes[child]):
            break
        keys[slot], nodes[slot] = keys[child], nodes[child]
        slot = child
    keys[slot], nodes[slot] = key, node
    return size


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
    the cost to go from each node, to the goal or to a node beyond it, at costs no higher than these; an infinite
    potential bars a node. Without potentials (an empty array) the search is Dijkstra's.
    """
    seen = work.generation[0] + 2
    settled = seen + 1
    work.generation[0] = seen
    stamp, distance, parent, keys, nodes = work.stamp, work.distance, work.parent, work.keys, work.nodes
    for node in blocked:
        stamp[node] = settled
    steered = len(potential) > 0
    beyond = scale * potential[goal] if steered and goal >= 0 else 0.0
    stamp[origin], distance[origin], parent[origin] = seen, 0.0, -1
    size = _push(keys, nodes, 0, 0.0, origin)
    while size > 0:
        node = nodes[0]
        if node == goal:
            return True
        size = _pop(keys, nodes, size)
        if stamp[node] == settled:  # it was there twice, first at a higher cost
            continue
        stamp[node] = settled
        if graph.no_through[node] and node != origin:
            continue
        here = distance[node]
        for slot in range(graph.indptr[node], graph.indptr[node + 1]):
            edge = graph.out_edges[slot]
            head = graph.heads[edge]
            if stamp[head] == settled or (steered and potential[head] == np.inf):
                continue
            there = here + cost_of(costs, edge)
            if stamp[head] == seen and there >= distance[head]:
                continue
            key = there + max(0.0, scale * potential[head] - beyond) if steered else there
            if key >= limit:
                continue
            stamp[head], distance[head], parent[head] = seen, there, edge
            size = _push(keys, nodes, size, key, head)
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
            size = _push(work.keys, work.nodes, size, there, head)
    return size


@lean_part
def repair(graph: Graph, costs: Any, origin: int, parents: Ints32, work: Workspace) -> None:
    """Make `parents`, a tree at other costs or all -1, the tree of shortest paths from `origin` at these.

    Leaves the distance of every node in `work`. First come the distances along the old tree: from each node climb
    to one whose distance is known, marking the way in `nodes`. They can only be too long; the nodes that an edge
    makes nearer then start a Dijkstra search.
    """
    distance, keys, nodes = work.distance, work.keys, work.nodes
    for node in range(len(parents)):
        distance[node] = -1.0
    distance[origin] = 0.0
    for node in range(len(parents)):
        depth, at = 0, node
        while distance[at] < 0.0 and parents[at] >= 0:
            nodes[depth] = at
            depth += 1
            at = graph.tails[parents[at]]
        if distance[at] < 0.0:
            distance[at] = np.inf
        reached = distance[at]
        while depth > 0:
            depth -= 1
            at = nodes[depth]
            reached = reached + cost_of(costs, parents[at])
            distance[at] = reached
    size = 0
    for node in range(len(parents)):
        if distance[node] < np.inf and (node == origin or not graph.no_through[node]):
            size = _relax(graph, costs, node, parents, work, size)
    while size > 0:
        key, node = keys[0], nodes[0]
        size = _pop(keys, nodes, size)
        if key == distance[node] and (node == origin or not graph.no_through[node]):
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
    search(graph, costs, origin, -1, potential, 1.0, work.nodes[:0], limit, work)
    distances, parents = np.full(graph.indptr.size - 1, np.inf), np.full(graph.indptr.size - 1, np.int32(-1))
    for node in range(len(distances)):
        if work.stamp[node] >= work.generation[0]:
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
    generation = work.generation[0] + 2
    work.generation[0] = generation
    path, length = np.empty(len(walk), dtype=np.int32), 0
    work.stamp[graph.tails[walk[0]]], work.place[graph.tails[walk[0]]] = generation, 0
    for edge in walk:
        head = graph.heads[edge]
        path[length] = edge
        length += 1
        if work.stamp[head] == generation:
            for cut in path[work.place[head] : length - 1]:
                work.stamp[graph.heads[cut]] = 0
            length = work.place[head]
        work.stamp[head], work.place[head] = generation, length
    return path[:length].copy()
