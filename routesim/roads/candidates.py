"""Sets of simple paths between two nodes: the k shortest, k that differ, or all of them.

A simple path visits no node twice, but where turns are banned it may drive round the block: then it uses no edge twice,
and no loop can be left out of it without a banned turn.

A set takes many searches towards one destination. So each first finds the cost to go from every node to that
destination; these costs then steer the searches, and rule out whatever cannot matter.
"""

from heapq import heappop, heappush
from itertools import count

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats, Ints32
from routesim.errors import InputError
from routesim.kernels import kernel
from routesim.roads.drivable import has_needless_loop
from routesim.roads.graph import Graph
from routesim.roads.shortest import (
    NOWHERE,
    ROUNDING,
    Workspace,
    checked,
    find,
    find_arcs,
    no_path,
    road_of,
    shortest_path,
    shortest_tree,
    tree,
)
from routesim.roads.straight import straighten

__all__ = ["Graph", "Workspace", "all_paths", "k_shortest", "penalty_paths", "shortest_path", "shortest_tree"]

# Penalty paths
STRETCH = 0.05  # parts of a path up to this share of the shortest cost are shortest paths themselves
ATTEMPTS = 8  # searches for each path asked for
MAX_FACTOR = 1e6  # the most that penalties make of a cost: more, and the other costs would vanish beside it


def k_shortest(graph: Graph, costs: ArrayLike, origin: int, destination: int, k: int) -> list[Ints32]:
    """Find the k cheapest simple paths, cheapest first; fewer where fewer exist."""
    usable = checked(graph, costs, origin, destination)
    return _ranked(graph, usable, origin, destination, _positive("k", k), np.inf)


def all_paths(graph: Graph, origin: int, destination: int, limit: int = 10_000) -> list[Ints32]:
    """Find every simple path, those of fewest edges first; more than `limit` of them are an InputError.

    The refusal is quick, since it takes only the proof that there are more, and no dead end is ever explored.
    """
    ones = checked(graph, np.ones(graph.n_edges), origin, destination)
    return _ranked(graph, ones, origin, destination, _positive("limit", limit) + 1, limit)


def penalty_paths(
    graph: Graph,
    costs: ArrayLike,
    origin: int,
    destination: int,
    k: int,
    *,
    penalty: float = 1.15,
    max_overlap: float = 0.75,
    max_detour: float = 0.5,
) -> list[Ints32]:
    """Find up to k simple paths that really differ, the shortest first: search, penalise the path, repeat.

    Each search multiplies the costs of the edges it found by `penalty`, for the searches after it. A path is
    kept when its true cost is at most 1 + max_detour times the shortest, and its overlap with every path kept
    before is at most max_overlap. The overlap of two paths is the cost of the edges they share, as a fraction
    of the cost of the cheaper one.

    Penalties alone make paths leave a road for one block and come back. So a path is straightened before it
    is judged: any part of it that costs up to STRETCH times the shortest is a shortest path between its ends.

    At most ATTEMPTS times k searches are made; when these find no more, there are fewer than k paths.
    """
    true_costs = checked(graph, costs, origin, destination)
    wanted = _positive("k", k)
    if not 1 < penalty < np.inf:
        raise InputError(f"penalty must be a finite factor above 1, got {penalty}")
    if not 0 <= max_overlap <= 1:
        raise InputError(f"max_overlap must be a fraction between 0 and 1, got {max_overlap}")
    if not 0 <= max_detour < np.inf:
        raise InputError(f"max_detour must be a finite fraction of at least 0, got {max_detour}")
    work = Workspace.build(graph)
    to_go, _ = tree(graph.reverse(), true_costs, destination, work.no_potential, np.inf, work)
    quickest = find(graph, true_costs, origin, destination, to_go, NOWHERE, work)
    if not quickest.size:
        raise no_path(origin, destination)
    shortest = float(to_go[origin]) if graph.memory == 1 else _cost(true_costs, quickest)
    longest = float(np.nextafter((1 + max_detour) * shortest * (1 + ROUNDING), np.inf))
    from_origin, _ = tree(graph, true_costs, origin, to_go, longest, work)
    to_go[from_origin == np.inf] = np.inf  # these nodes are on no path within the limit
    penalised, ceiling = true_costs.copy(), true_costs * MAX_FACTOR
    paths = [] if graph.memory == 1 else [quickest]  # else the first search may find one over an edge twice
    for _ in range(ATTEMPTS * (wanted - len(paths))):
        arcs = find_arcs(graph, penalised, origin, destination, to_go, NOWHERE, work)
        found = _edges(graph, arcs)
        penalised[found] = np.minimum(penalised[found] * min(penalty, MAX_FACTOR), ceiling[found])
        path = _edges(graph, straighten(graph, true_costs, arcs, STRETCH * shortest, to_go, work))
        near = _cost(true_costs, path) < longest and _is_simple(graph, path)
        if near and all(_differ(true_costs, path, kept, max_overlap) for kept in paths):
            paths.append(path)
            if len(paths) == wanted:
                break
    return sorted(paths, key=lambda path: _cost(true_costs, path))


def _ranked(graph: Graph, costs: Floats, origin: int, destination: int, k: int, limit: float) -> list[Ints32]:
    """Yen's algorithm on disjoint sets of paths, each searched only when its bound is the least of all.

    A set holds the simple paths that start with given edges. Once its cheapest path is known, the rest of it
    falls apart into one set for each edge by which a path can leave the cheapest. `_branches` leaves out
    empty sets, so every entry of the queue stands for at least one path of its own: these `limit` counts.
    """
    work, reverse, serial = Workspace.build(graph), graph.reverse(), count()
    to_go, _ = tree(reverse, costs, destination, work.no_potential, np.inf, work)
    best = find_arcs(graph, costs, origin, destination, to_go, NOWHERE, work)
    if not best.size:
        raise no_path(origin, destination)
    queue = [(_cost(costs, _edges(graph, best)), next(serial), best, 0, -1)]
    found: list[tuple[float, Ints32]] = []
    while queue and len(found) < k:
        cost, _, path, fixed, arc = heappop(queue)
        if arc >= 0:  # not searched yet: the paths that follow `path` for `fixed` arcs, then take `arc`
            start = np.append(path[:fixed], np.int32(arc))
            if not _is_simple(graph, _edges(graph, start), so_far=True):
                continue
            rest = find_arcs(graph, costs, int(graph.heads[arc]), destination, to_go, graph.tails[start], work)
            path = np.concatenate((start, rest))
            heappush(queue, (_cost(costs, _edges(graph, path)), next(serial), path, fixed + 1, -1))
            continue
        edges = _edges(graph, path)
        if _is_simple(graph, edges):
            found.append((cost, edges))
        if len(found) < k:
            bounds, places, arcs = _branches(graph, reverse, costs, to_go, path, fixed, work)
            for bound, place, branch in zip(bounds.tolist(), places.tolist(), arcs.tolist(), strict=True):
                heappush(queue, (bound, next(serial), path, place, branch))
        if len(found) + (0 if len(graph.roads) else len(queue)) > limit:
            raise InputError(
                f"listing every path needs at most {limit} of them, but more lead from node {origin} to node "
                f"{destination}; raise the limit, or ask for the k shortest"
            )
    if not found:
        raise no_path(origin, destination)
    return [path for _, path in sorted(found, key=lambda entry: entry[0])]


def _edges(graph: Graph, arcs: Ints32) -> Ints32:
    return graph.roads[arcs] if len(graph.roads) else arcs


def _is_simple(graph: Graph, path: Ints32, *, so_far: bool = False) -> bool:
    """Tell whether a path without bans on it, or the beginning of one, is simple; see above."""
    if not len(graph.roads):
        return True  # the searches visit no place twice
    return len(np.unique(path)) == len(path) and not has_needless_loop(graph, path, so_far=so_far)


def _differ(costs: Floats, one: Ints32, other: Ints32, max_overlap: float) -> bool:
    shared = np.intersect1d(one, other, assume_unique=True)
    cheaper = min(_cost(costs, one), _cost(costs, other))
    return _cost(costs, shared) <= max_overlap * cheaper and not np.array_equal(one, other)


def _cost(costs: Floats, path: Ints32) -> float:
    return float(costs[path].sum())


def _positive(name: str, value: int) -> int:
    if not value >= 1 or int(value) != value:
        raise InputError(f"{name} must be a whole number of at least 1, got {value!r}")
    return int(value)


@kernel
def _branches(
    graph: Graph, reverse: Graph, costs: Floats, to_go: Floats, path: Ints32, fixed: int, work: Workspace
) -> tuple[Floats, Ints32, Ints32]:
    """Every way to leave `path` after its first `fixed` edges from which a simple path reaches the end.

    Returns a bound on the cost of such a path, the place on `path` and the arc taken there. Whether an arc
    leads on is known from a flood backwards from the end. Leaving later forbids more nodes, so the places are
    taken from last to first, and one flood, let into one more node of the path each time, serves them all.
    """
    flooded = work.generation[0] + 2
    forbidden = flooded + 1
    work.generation[0] = flooded
    room, spent = 0, np.zeros(len(path) + 1)
    for place, arc in enumerate(path):
        node = graph.tails[arc]
        work.stamp[node] = forbidden  # so far
        spent[place + 1] = spent[place] + costs[road_of(graph, arc)]
        room += graph.indptr[node + 1] - graph.indptr[node]
    bounds, places, arcs = np.empty(room), np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
    found, reached = 0, graph.heads[path[-1]]
    for place in range(len(path) - 1, fixed - 1, -1):
        work.stamp[reached], work.nodes[0], size = flooded, reached, 1
        while size > 0:
            size -= 1
            node = work.nodes[size]
            for arc in reverse.out_edges[reverse.indptr[node] : reverse.indptr[node + 1]]:
                tail, cost = graph.tails[arc], costs[road_of(graph, arc)]
                if work.stamp[tail] < flooded and not graph.no_through[tail] and cost < np.inf:
                    work.stamp[tail], work.nodes[size] = flooded, tail
                    size += 1
        reached = graph.tails[path[place]]
        for arc in graph.out_edges[graph.indptr[reached] : graph.indptr[reached + 1]]:
            head, cost = graph.heads[arc], costs[road_of(graph, arc)]
            if work.stamp[head] == flooded and arc != path[place] and cost < np.inf:
                bounds[found] = spent[place] + cost + to_go[head]
                places[found], arcs[found] = place, arc
                found += 1
    return bounds[:found], places[:found], arcs[:found]
