"""Paths made straight: their parts are shortest paths themselves."""

import numpy as np

from routesim.arrays import Floats, Ints32
from routesim.kernels import kernel
from routesim.roads.graph import Graph
from routesim.roads.shortest import ROUNDING, Workspace, road_of, search, trace_arcs


@kernel
def straighten(graph: Graph, costs: Floats, path: Ints32, stretch: float, to_go: Floats, work: Workspace) -> Ints32:
    """Replace parts of a path of arcs by shortest paths until every part that costs at most `stretch` is one.

    A part that small lies inside one of the windows searched: each costs up to twice as much, and begins
    within `stretch` of the one before. Every replacement makes the path cheaper, so this ends.
    """
    changed = True
    while changed:
        changed, first = False, 0
        while first < len(path):
            cost, last, following = 0.0, first, first + 1
            while last < len(path) and cost + costs[road_of(graph, path[last])] <= 2 * stretch:
                cost += costs[road_of(graph, path[last])]
                last += 1
                if cost <= stretch:
                    following = last
            start, end = int(graph.tails[path[first]]), int(graph.heads[path[max(first, last - 1)]])
            if search(graph, costs, start, end, to_go, 1.0, path[:0], cost * (1 - ROUNDING), work):
                whole = np.concatenate((path[:first], trace_arcs(graph, work.parent, end), path[last:]))
                path = without_loops(graph, whole, work)
                changed = True
            else:
                first = following
    return path


@kernel
def without_loops(graph: Graph, walk: Ints32, work: Workspace) -> Ints32:
    """Cut out of a walk of arcs whatever lies between two visits to a place."""
    generation = work.generation[0] + 2
    work.generation[0] = generation
    path, length = np.empty(len(walk), dtype=np.int32), 0
    work.stamp[graph.tails[walk[0]]], work.place[graph.tails[walk[0]]] = generation, 0
    for arc in walk:
        head = graph.heads[arc]
        path[length] = arc
        length += 1
        if work.stamp[head] == generation:
            for cut in path[work.place[head] : length - 1]:
                work.stamp[graph.heads[cut]] = 0
            length = work.place[head]
        work.stamp[head], work.place[head] = generation, length
    return path[:length].copy()
