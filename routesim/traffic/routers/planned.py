"""PlannedRouter: the shares of a static plan, dealt out evenly."""

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from routesim.arrays import Floats
from routesim.assignment.assignment import Assignment, Objective, assign, travel_times
from routesim.checks import number
from routesim.errors import CapacityWarning, InputError
from routesim.registry import IN_PYTHON
from routesim.roads.network import RoadNetwork
from routesim.traffic.protocol import Departures, Driven, Routes, TrafficTask
from routesim.traffic.routers.base import Feedback, Foreseen
from routesim.traffic.routers.dealer import Dealer
from routesim.traffic.routers.od_pairs import part_of

_ROUNDS = 8  # of planning and seeing how the others drive then


@dataclass
class PlannedRouter:
    """The paths of a static assignment, in its shares: the system optimum of the demand unless told otherwise.

    It knows the roads' BPR curves and the demand's mean rates, and looks at nothing while vehicles drive. Where it is
    followed by a share of the vehicles only (`CompliantRouter`), it plans for them around the flows of the others.
    Where roads queue, it plans on what they pass there, and a plan that asks for more is a CapacityWarning. With
    `max_detour`, nobody is sent on a path longer than 1 + `max_detour` times his best at the equilibrium's times. That
    is a limit on the advice; what is realised in a run is in `Traffic.inequality`.
    """

    plan: Assignment | None = field(default=None, metadata=IN_PYTHON)
    objective: Objective = "system"
    relative_gap: float = 1e-4
    max_detour: float | None = None
    informed: ClassVar[bool] = True
    learns: ClassVar[bool] = False

    interval_s: float | None = field(init=False, default=None)
    feedback: Feedback = field(init=False, default="none")

    def __post_init__(self) -> None:
        if self.max_detour is not None:
            number("max_detour", self.max_detour, 0.0, 1e9)
            if self.objective != "system":
                raise InputError(f'max_detour belongs to the objective "system", got "{self.objective}"')

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:  # noqa: ARG002 - dealing is no chance
        """Make the plan, unless there is one."""
        self._use(task, self.plan or self._assigned(task.static_roads(), task.demand))

    def start_among(self, task: TrafficTask, rng: np.random.Generator, share: float, others: Foreseen) -> None:
        """Make the plan for a share of the vehicles around the others; a plan that was given stays what it is.

        How the others drive may depend on the plan, so both are worked out in turn, from the plan that ignores the
        others on, and the plan with the least total time of all vehicles is kept.
        """
        if self.plan is not None or share == 0:
            self.start(task, rng)
            return
        mine, roads = part_of(task, share), task.static_roads()
        plan = best = self._assigned(roads, task.demand)
        planned, least = share * plan.flows, np.inf
        for _ in range(_ROUNDS):
            background = others(task, 1 - share, planned)
            together = planned + background
            total = float(together @ travel_times(roads, together))
            if total < least:
                best, least = plan, total
            plan = self._assigned(roads, mine, background=background, start=plan)
            before, planned = planned, np.maximum(0.0, plan.flows - background)
            if np.abs(planned - before).sum() <= 1e-3 * planned.sum():
                break
        self._use(task, best)

    def flows_among(self, task: TrafficTask, share: float, others: Floats) -> Floats:  # noqa: ARG002 - it looks at nobody
        """Return the flows of a share of the vehicles that takes this plan, whatever the others do."""
        plan = self.plan or self._assigned(task.static_roads(), task.demand)
        return plan.flows * share

    def _assigned(self, roads: RoadNetwork, demand: Any, **among: Any) -> Assignment:
        return assign(roads, demand, self.objective, self.relative_gap, max_detour=self.max_detour, **among)

    def _use(self, task: TrafficTask, plan: Assignment) -> None:
        index, n_nodes = task.network.node_index, task.network.n_nodes
        pairs = np.array([index(start) * n_nodes + index(end) for start, end in plan.pairs], dtype=np.int64)
        self._dealer = Dealer(pairs, n_nodes)
        self._dealer.use(plan.path_shares)
        if task.lessons.counted == "vehicles":
            _warn_above_capacity(task.static_roads(), plan.flows)

    def route(self, departures: Departures) -> Routes:
        """Deal paths to these vehicles."""
        return self._dealer.deal(departures)

    def learn(self, driven: Driven) -> None:
        """Learn nothing."""


def _warn_above_capacity(roads: RoadNetwork, flows: Floats) -> None:
    """Warn of a plan that sends more vehicles down a road than it passes."""
    load = flows / roads.capacity_vph
    above = int((load > 1.0).sum())
    if above:
        worst = int(np.argmax(load))
        warnings.warn(
            f"the plan asks for more than capacity on {above} of {roads.n_edges} roads, the worst, edge {worst}, "
            f"{load[worst]:.2f} times: queues grow there for as long as the demand lasts; plan for less demand",
            CapacityWarning,
            stacklevel=2,
        )
