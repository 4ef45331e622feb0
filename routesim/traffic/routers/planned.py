"""PlannedRouter: the shares of a static plan, dealt out so evenly that no path falls behind its share."""

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from routesim.assignment.assignment import Assignment, Objective, PathShares, assign, travel_times
from routesim.errors import RouteError
from routesim.kernels import kernel
from routesim.traffic.protocol import Departures, Driven, Routes, TrafficTask
from routesim.traffic.routers.basic import Feedback, pair_numbers, part_of

_ROUNDS = 8  # of planning and seeing how the others drive then


class Foreseen(Protocol):
    """How others drive: the task, their share and the flows planned for the rest -> their flows."""

    def __call__(self, task: TrafficTask, share: float, others: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return vehicles an hour for each edge."""


class Dealer:
    """Deals paths of pairs of nodes by their shares: each vehicle takes the path furthest behind its share."""

    def __init__(self, pairs: NDArray[np.int64], n_nodes: int) -> None:
        """Take the pairs that will be asked for, numbered as `pair_numbers` does."""
        self._n_nodes = n_nodes
        self._order = np.argsort(pairs)
        self._sorted = pairs[self._order]

    def use(self, shares: PathShares) -> None:
        """Deal these shares from now on, with nothing dealt yet."""
        self._shares = shares
        self._dealt = np.zeros(len(shares.shares))
        self._seen = np.zeros(len(shares.first) - 1)

    def deal(self, departures: Departures) -> Routes:
        """Return the paths of these vehicles."""
        asked = pair_numbers(departures, self._n_nodes)
        place = np.minimum(np.searchsorted(self._sorted, asked), len(self._sorted) - 1)
        unknown = np.flatnonzero(self._sorted[place] != asked)
        if len(unknown):
            raise RouteError(
                f"vehicle {departures.vehicles[unknown[0]]} goes between nodes for which nothing was planned; "
                "plan with the demand that is simulated"
            )
        shares = self._shares
        which = _deal(self._order[place], shares.first, shares.shares, self._dealt, self._seen)
        return Routes(shares.indptr, shares.edges, which)


@dataclass
class PlannedRouter:
    """The paths of a static assignment, in its shares: the system optimum of the demand unless told otherwise.

    It knows the roads' BPR curves and the demand's mean rates, and looks at nothing while vehicles drive. Where it is
    followed by a share of the vehicles only (`CompliantRouter`), it plans for them around the flows of the others.
    """

    plan: Assignment | None = None
    objective: Objective = "system"
    relative_gap: float = 1e-4
    informed: ClassVar[bool] = True

    interval_s: float | None = field(init=False, default=None)
    feedback: Feedback = field(init=False, default="none")

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:  # noqa: ARG002 - dealing is no chance
        """Make the plan, unless there is one."""
        self._use(task, self.plan or assign(task.network, task.demand, self.objective, self.relative_gap))

    def start_among(self, task: TrafficTask, rng: np.random.Generator, share: float, others: Foreseen) -> None:
        """Make the plan for a share of the vehicles around the others; a plan that was given stays what it is.

        How the others drive may depend on the plan, so both are worked out in turn, from the plan that ignores the
        others on, and the plan with the least total time of all vehicles is kept.
        """
        if self.plan is not None or share == 0:
            self.start(task, rng)
            return
        mine = part_of(task, share)
        plan = best = assign(task.network, task.demand, self.objective, self.relative_gap)
        planned, least = share * plan.flows, np.inf
        for _ in range(_ROUNDS):
            background = others(task, 1 - share, planned)
            together = planned + background
            total = float(together @ travel_times(task.network, together))
            if total < least:
                best, least = plan, total
            plan = assign(task.network, mine, self.objective, self.relative_gap, background=background)
            before, planned = planned, np.maximum(0.0, plan.flows - background)
            if np.abs(planned - before).sum() <= 1e-3 * planned.sum():
                break
        self._use(task, best)

    def flows_among(self, task: TrafficTask, share: float, others: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ARG002 - it looks at nobody
        """Return the flows of a share of the vehicles that takes this plan, whatever the others do."""
        plan = self.plan or assign(task.network, task.demand, self.objective, self.relative_gap)
        return plan.flows * share

    def _use(self, task: TrafficTask, plan: Assignment) -> None:
        index, n_nodes = task.network.node_index, task.network.n_nodes
        pairs = np.array([index(start) * n_nodes + index(end) for start, end in plan.pairs], dtype=np.int64)
        self._dealer = Dealer(pairs, n_nodes)
        self._dealer.use(plan.path_shares)

    def route(self, departures: Departures) -> Routes:
        """Deal paths to these vehicles."""
        return self._dealer.deal(departures)

    def learn(self, driven: Driven) -> None:
        """Learn nothing."""


@kernel
def _deal(
    pairs: NDArray[np.int64],
    first: NDArray[np.int64],
    shares: NDArray[np.float64],
    dealt: NDArray[np.float64],
    seen: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Give each vehicle, in order, the path of its pair that is furthest behind its share."""
    which = np.empty(len(pairs), dtype=np.int64)
    for vehicle, pair in enumerate(pairs):
        seen[pair] += 1.0
        best, behind = first[pair], -np.inf
        for path in range(first[pair], first[pair + 1]):
            lag = shares[path] * seen[pair] - dealt[path]
            if lag > behind:
                best, behind = path, lag
        dealt[best] += 1.0
        which[vehicle] = best
    return which
