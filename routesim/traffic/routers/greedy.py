"""GreedyRouter: the path that is quickest at the counts of the moment of departure."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats
from routesim.assignment.assignment import assign
from routesim.learners.greedy_congestion import GreedyCongestion
from routesim.traffic.protocol import GREEDY, Departures, Routes, TrafficTask
from routesim.traffic.routers.base import Unteachable
from routesim.traffic.routers.od_pairs import part_of


@dataclass
class GreedyRouter(Unteachable):
    """The path that is quickest at the counts of the moment of departure; it knows how roads congest.

    `tolls`, in seconds per edge, are added to the times, such as the marginal costs of a planned optimum.
    """

    tolls: ArrayLike | None = None
    informed: ClassVar[bool] = True
    stands_for: ClassVar[type | None] = GreedyCongestion

    def flows_among(self, task: TrafficTask, share: float, others: Floats) -> Floats:
        """Return the flows to be expected of a share of the vehicles: their equilibrium, given those of the others."""
        if share == 0:
            return np.zeros(task.network.n_edges)
        found = assign(task.static_roads(), part_of(task, share), "user", 1e-3, background=others)
        return np.maximum(0.0, found.flows - others)  # a difference of rounding may be below 0

    def route(self, departures: Departures) -> Routes:
        """Leave the search to the moment of departure."""
        tolls = None if self.tolls is None else np.asarray(self.tolls, dtype=np.float64)
        return Routes(
            np.zeros(1, dtype=np.int64),
            np.empty(0, dtype=np.int32),
            np.full(len(departures.vehicles), GREEDY, dtype=np.int64),
            tolls,
        )
