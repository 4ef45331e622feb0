"""How unequal a run of traffic was: the paths that vehicles took beside the quickest ones of the same pairs."""

import math
from typing import TYPE_CHECKING

import numpy as np

from routesim.arrays import Bools, Floats
from routesim.assignment.inequality import Inequality, inequality
from routesim.roads.shortest import Workspace, shortest_tree

if TYPE_CHECKING:
    from routesim.traffic.result import Traffic


def mean_edge_times(traffic: "Traffic") -> Floats:
    """Return the mean time on each edge over all who entered it, and the free-flow time where nobody did."""
    n_edges = traffic.network.n_edges
    seconds = np.bincount(traffic.loads[:, 1], traffic.load_seconds, n_edges)
    entries = np.bincount(traffic.loads[:, 1], traffic.loads[:, 2], n_edges)
    free_flow = traffic.network.free_flow_s
    return np.maximum(np.divide(seconds, entries, out=free_flow.copy(), where=entries > 0), 0.0)


def inequality_of_traffic(traffic: "Traffic", chosen: Bools) -> Inequality:
    """Compare the paths of the vehicles chosen, at the mean times of the run, with the quickest at these times."""
    vehicles = np.flatnonzero(chosen & traffic.arrived & (traffic.path_lengths > 0))
    if not len(vehicles):
        return Inequality(*[math.nan] * 5)
    times, network = mean_edge_times(traffic), traffic.network
    before = np.concatenate(([0.0], np.cumsum(times[traffic.path_edges])))
    start = traffic.path_starts[vehicles]
    taken = before[start + traffic.path_lengths[vehicles]] - before[start]
    nodes = np.array([network.node_index(place) for place in traffic.places], dtype=np.int64)
    origins, goals = nodes[traffic.origins[vehicles]], nodes[traffic.destinations[vehicles]]
    best, work = np.empty(len(vehicles)), Workspace.build(network.graph)
    for origin in np.unique(origins).tolist():
        mine = origins == origin
        best[mine] = shortest_tree(network.graph, times, origin, workspace=work)[0][goals[mine]]
    excess = np.divide(taken, best, out=np.ones(len(best)), where=best > 0) - 1.0
    # The difference of two long sums is known to their rounding only.
    excess[excess < 1e-6] = 0.0
    return inequality(excess, np.ones(len(excess)))
