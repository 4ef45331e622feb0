"""FreeFlowRouter: the path that is quickest on empty roads."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats
from routesim.assignment.assignment import load_cheapest
from routesim.learners.shortest_path import ShortestPath
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import Workspace, shortest_tree, trace
from routesim.rounds.paths import edge_costs
from routesim.traffic.protocol import Departures, Routes, TrafficTask
from routesim.traffic.routers.base import Unteachable
from routesim.traffic.routers.od_pairs import pair_numbers


@dataclass
class FreeFlowRouter(Unteachable):
    """The path that is quickest on empty roads, whatever the traffic.

    `edge_cost_s`, in seconds per edge, is added to the times: tolls, distance, fixed costs.
    """

    edge_cost_s: ArrayLike | None = None
    takes_shortest_path: ClassVar[bool] = True
    stands_for: ClassVar[type | None] = ShortestPath

    def flows_among(self, task: TrafficTask, share: float, others: Floats) -> Floats:  # noqa: ARG002 - whatever the traffic
        """Return the flows of a share of the vehicles."""
        network = replace(task.network, free_flow_s=self._costs_s(task.network))
        return load_cheapest(network, task.demand.per_hour()) * share

    def _costs_s(self, network: RoadNetwork) -> Floats:
        return network.free_flow_s + edge_costs(network.n_edges, self.edge_cost_s)

    def route(self, departures: Departures) -> Routes:
        """Return the paths of these vehicles."""
        network, closed = self._task.network, self._task.closed()
        costs_s = self._costs_s(network)
        times = np.where(closed, np.inf, costs_s) if closed.any() else costs_s
        graph, work = network.graph, Workspace.build(network.graph)
        pairs, which = np.unique(pair_numbers(departures, network.n_nodes), return_inverse=True)
        paths: list[list[int]] = []
        origin, parents = -1, np.empty(0, dtype=np.int32)
        for start, goal in zip((pairs // network.n_nodes).tolist(), (pairs % network.n_nodes).tolist(), strict=True):
            if start != origin:
                origin, (_, parents) = start, shortest_tree(graph, times, start, workspace=work)
            if parents[goal] < 0:  # closed roads are in the way: up to them, as if they were open
                _, free = shortest_tree(graph, costs_s, start, workspace=work)
                paths.append(trace(graph, free, goal).tolist())
                continue
            paths.append(trace(graph, parents, goal).tolist())
        return Routes.of(paths, which)
