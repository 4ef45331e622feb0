"""LogitRouter: a path by chance, the more likely the quicker."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from routesim.checks import number, seconds, whole
from routesim.rounds.actions import ActionSet
from routesim.traffic.protocol import Departures, Routes, TrafficTask
from routesim.traffic.routers.base import Unteachable
from routesim.traffic.routers.od_pairs import candidates, pair_numbers


@dataclass
class LogitRouter(Unteachable):
    """A path by chance: out of up to `k` that differ, in proportion to exp(-time / scale_s).

    The times are those at the counts of the start of each interval of `interval_s` seconds.
    """

    scale_s: float = 60.0
    k: int = 5
    interval_s: float | None = 60.0
    max_overlap: float = 0.75
    informed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        seconds("scale_s", self.scale_s)
        if self.interval_s is not None:
            seconds("interval_s", self.interval_s)
        whole("k", self.k, 1)
        number("max_overlap", self.max_overlap, 0.0, 1.0)

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:
        """Begin a run."""
        super().start(task, rng)
        self._choices: dict[int, ActionSet] = {}

    def route(self, departures: Departures) -> Routes:
        """Draw the paths of these vehicles."""
        network = self._task.network
        times = self._task.time_at(self._task.counts())
        pairs, position = np.unique(pair_numbers(departures, network.n_nodes), return_inverse=True)
        paths: list[tuple[int, ...]] = []
        which = np.empty(len(departures.vehicles), dtype=np.int64)
        for place, pair in enumerate(pairs.tolist()):
            if pair not in self._choices:
                self._choices[pair] = candidates(self._task, pair, self.k, self.max_overlap)
            actions = self._choices[pair]
            cost = np.add.reduceat(times[actions.edges][actions.indices], actions.indptr[:-1])
            weights = np.exp((cost.min() - cost) / self.scale_s)
            mine = np.flatnonzero(position == place)
            which[mine] = len(paths) + self._rng.choice(len(cost), size=len(mine), p=weights / weights.sum())
            paths += actions.listed_paths
        return Routes.of(paths, which)
