"""The one search for shortest paths: one heap, Dijkstra and A*, trees, their repair, and reading off a path.

A path is an int32 array of edge indices. Parallel edges are distinct, self-loops are on no simple path, and
an edge of infinite cost is closed. Nodes are indices here; whoever knows their labels re-raises with them.
Nodes at the same cost leave the heap in the order of their indices, and of two ways to a node at the same cost
the one found first stays. So of equally cheap paths every search finds the same.

What an edge costs is asked of `cost_of(costs, edge)`, which the compiler resolves by the type of `costs`: an array
has a cost for each edge, and a NamedTuple of another module, registered with `priced_by`, works it out when the
search comes to the edge, as the simulator does from its present counts.

Where turns are banned, searches run on places and arcs (`routesim.roads.graph` says what these are): distances and
parents are those of places, parents are arcs, and blocked nodes and potentials are of places too. Costs are asked of
the edge that an arc stands for, and the paths that come out are edges. Without bans all this is one and the same.

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
from routesim.roads.graph import Graph, sort_by
from routesim.roads.heap import pop, push

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
        n, room = graph.n_places, graph.n_places + 2 * len(graph.tails)
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
    """Find the cost from `origin` to every node, and the last arc on the way to every place, for `trace`.

    The cost is inf and the arc -1 where no path leads; at the origin they are 0 and -1.
    """
    usable, work = checked(graph, costs, origin), _fitting(workspace, graph)
    distances, parents = tree(graph, usable, origin, work.no_potential, np.inf, work)
    return distances[: graph.n_nodes], parents


def checked(graph: Graph, costs: ArrayLike, *ends: int) -> Floats:
    """Return the costs as kernels want them, once they and the end nodes keep the rules."""
    usable = np.require(costs, np.float64, ("C", "W"))
    if usable.shape != (graph.n_edges,):
        raise InputError(f"costs must have one entry an edge ({graph.n_edges}), got shape {usable.shape}")
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
    if len(workspace.stamp) != graph.n_places:
        made_for = len(workspace.stamp)
        raise InputError(f"workspace must be for this graph of {graph.n_places} nodes, got one for {made_for}")
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
def road_of(graph: Graph, arc: int) -> int:
    """Return the edge that an arc stands for."""
    return int(graph.roads[arc]) if graph.roads.shape[0] > 0 else arc


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
    size = push(keys, nodes, 0, 0.0, origin)
    while size > 0:
        node = nodes[0]
        if node == goal:
            return True
        size = pop(keys, nodes, size)
        if stamp[node] == settled:  # it was there twice, first at a higher cost
            continue
        stamp[node] = settled
        if graph.no_through[node] and node != origin:
            continue
        here = distance[node]
        for slot in range(graph.indptr[node], graph.indptr[node + 1]):
            arc = graph.out_edges[slot]
            head = graph.heads[arc]
            if stamp[head] == settled or (steered and potential[head] == np.inf):
                continue
            there = here + cost_of(costs, road_of(graph, arc))
            if stamp[head] == seen and there >= distance[head]:
                continue
            key = there + max(0.0, scale * potential[head] - beyond) if steered else there
            if key >= limit:
                continue
            stamp[head], distance[head], parent[head] = seen, there, arc
            size = push(keys, nodes, size, key, head)
    return False


@lean_part
def _relax(graph: Graph, costs: Any, node: int, parents: Ints32, work: Workspace, size: int) -> int:
    """Shorten the distances of the nodes that an edge out of `node` makes nearer; return the size of the heap."""
    distance, here = work.distance, work.distance[node]
    for slot in range(graph.indptr[node], graph.indptr[node + 1]):
        arc = graph.out_edges[slot]
        head, there = graph.heads[arc], here + cost_of(costs, road_of(graph, arc))
        if there < distance[head]:
            distance[head], parents[head] = there, arc
            size = push(work.keys, work.nodes, size, there, head)
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
            reached = reached + cost_of(costs, road_of(graph, parents[at]))
            distance[at] = reached
    size = 0
    for node in range(len(parents)):
        if distance[node] < np.inf and (node == origin or not graph.no_through[node]):
            size = _relax(graph, costs, node, parents, work, size)
    while size > 0:
        key, node = keys[0], nodes[0]
        size = pop(keys, nodes, size)
        if key == distance[node] and (node == origin or not graph.no_through[node]):
            size = _relax(graph, costs, node, parents, work, size)


@lean_part
def write_path(graph: Graph, parents: Ints32, goal: int, out: Ints32) -> int:
    """Write the edges of the path to `goal` to the start of `out`; return how many they are."""
    length = _write_arcs(graph, parents, goal, out)
    for place in range(length):
        out[place] = road_of(graph, out[place])
    return length


@lean_part
def _write_arcs(graph: Graph, parents: Ints32, goal: int, out: Ints32) -> int:
    length, arc = 0, parents[goal]
    while arc >= 0:
        length, arc = length + 1, parents[graph.tails[arc]]
    place, arc = length, parents[goal]
    while arc >= 0:
        place -= 1
        out[place], arc = arc, parents[graph.tails[arc]]
    return length


@kernel
def trace(graph: Graph, parents: Ints32, goal: int) -> Ints32:
    """Read the edges of the path to `goal` off the parents of a search or a tree."""
    arcs = trace_arcs(graph, parents, goal)
    for place in range(len(arcs)):
        arcs[place] = road_of(graph, arcs[place])
    return arcs


@kernel
def trace_arcs(graph: Graph, parents: Ints32, goal: int) -> Ints32:
    """Read the arcs of the path to `goal` off the parents of a search or a tree."""
    length, arc = 0, parents[goal]
    while arc >= 0:
        length, arc = length + 1, parents[graph.tails[arc]]
    path = np.empty(length, dtype=np.int32)
    _write_arcs(graph, parents, goal, path)
    return path


@kernel
def find_arcs(
    graph: Graph, costs: Floats, origin: int, goal: int, potential: Floats, blocked: Ints32, work: Workspace
) -> Ints32:
    """Find the arcs of the cheapest path, or none where no path leads to `goal`."""
    if not search(graph, costs, origin, goal, potential, 1.0, blocked, np.inf, work):
        return np.empty(0, dtype=np.int32)
    return trace_arcs(graph, work.parent, goal)


@kernel
def find(
    graph: Graph, costs: Floats, origin: int, goal: int, potential: Floats, blocked: Ints32, work: Workspace
) -> Ints32:
    """Find the cheapest path that uses no edge twice, or one of no edges where none leads to `goal`.

    Only where a way of three or more edges is banned can it pay to drive round a block onto the same edge again.
    """
    arcs = find_arcs(graph, costs, origin, goal, potential, blocked, work)
    if graph.memory > 1 and repeat_on(graph, arcs)[1] > 0:
        arcs = _without_repeats(graph, costs, origin, goal, potential, blocked, work)
    path = np.empty(len(arcs), dtype=np.int32)
    for place, arc in enumerate(arcs):
        path[place] = road_of(graph, arc)
    return path


@kernel
def repeat_on(graph: Graph, arcs: Ints32) -> tuple[int, int]:
    """Return two places on a path at which it uses the same edge; (0, 0) where there are none."""
    for last in range(1, len(arcs)):
        for first in range(last):
            if road_of(graph, arcs[first]) == road_of(graph, arcs[last]):
                return first, last
    return 0, 0


@kernel
def _without_repeats(
    graph: Graph, costs: Floats, origin: int, goal: int, potential: Floats, blocked: Ints32, work: Workspace
) -> Ints32:
    """Find the arcs of the cheapest path that uses no edge twice.

    Where the cheapest path comes to an edge by two arcs, the one sought does without the one or without the other.
    """
    present = np.zeros(len(graph.tails), dtype=np.bool_)
    present[graph.out_edges] = True
    best, least, open_sets = np.empty(0, dtype=np.int32), np.inf, [present]
    while len(open_sets) > 0:
        present = open_sets.pop()
        indptr, out_edges = sort_by(graph.tails, present, len(graph.indptr) - 1)
        part = Graph(
            indptr,
            out_edges,
            graph.tails,
            graph.heads,
            graph.no_through,
            graph.roads,
            graph.copy_of,
            graph.after,
            graph.memory,
        )
        if not search(part, costs, origin, goal, potential, 1.0, blocked, least, work):
            continue
        arcs = trace_arcs(part, work.parent, goal)
        first, last = repeat_on(part, arcs)
        if last == 0:
            best, least = arcs, work.distance[goal]
            continue
        for without in (arcs[first], arcs[last]):
            fewer = present.copy()
            fewer[without] = False
            open_sets.append(fewer)
    return best


@kernel
def tree(
    graph: Graph, costs: Floats, origin: int, potential: Floats, limit: float, work: Workspace
) -> tuple[Floats, Ints32]:
    """Find distance and parent arc of every place where distance plus potential is below `limit`."""
    search(graph, costs, origin, -1, potential, 1.0, work.nodes[:0], limit, work)
    distances, parents = np.full(graph.indptr.size - 1, np.inf), np.full(graph.indptr.size - 1, np.int32(-1))
    for node in range(len(distances)):
        if work.stamp[node] >= work.generation[0]:
            distances[node], parents[node] = work.distance[node], work.parent[node]
    return distances, parents
