"""CARMABRouter: CARMAB-st, planning flows on what it believes of every road."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats
from routesim.assignment.assignment import FlowSolver
from routesim.assignment.frank_wolfe import Prices
from routesim.checks import check_confidence, number, seconds, whole
from routesim.kernels import kernel
from routesim.learners.carmab import CARMAB
from routesim.planning.hull import hull_corners
from routesim.traffic.protocol import Departures, Driven, Routes, TrafficTask
from routesim.traffic.routers.base import Feedback
from routesim.traffic.routers.by_flow import between, flows_at, priced, totals_at
from routesim.traffic.routers.dealer import Dealer


@dataclass
class CARMABRouter:
    """CARMAB-st in continuous time: optimistic travel times by (edge, bin of counts), flows planned on them.

    It knows the roads on empty streets and the demand's mean rates, and nothing of congestion. Every `interval_s`
    seconds it takes the shortest travel times that its estimates allow, plans the flows with the least total time
    on them, and deals the shares out evenly until the next plan. The radius of a confidence interval is
    confidence x scale x sqrt(log(edges x bins x plans / delta) / uses), where scale is the spread seen in the bin.
    Where roads queue, counts are vehicles on the road, and the flow at a count follows by Little's law.
    """

    confidence: float | None = None
    delta: float = 0.1
    interval_s: float | None = 300.0
    relative_gap: float = 1e-3
    most_iterations: int = 50

    monotone: ClassVar[bool] = True  # it always uses that no road is quicker at a larger count
    stands_for: ClassVar[type | None] = CARMAB

    feedback: Feedback = field(init=False, default="lessons")
    plans: int = field(init=False, default=0, repr=False)

    def __post_init__(self) -> None:
        check_confidence(1.0 if self.confidence is None else self.confidence, self.delta)
        if self.interval_s is not None:
            seconds("interval_s", self.interval_s)
        number("relative_gap", self.relative_gap, 0.0, 1.0)
        whole("most_iterations", self.most_iterations, 1)

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:  # noqa: ARG002 - optimism needs no chance
        """Begin a run, knowing nothing."""
        self._task = task
        self._solver = FlowSolver(task.network, task.demand.per_hour())
        index, n_nodes = task.network.node_index, task.network.n_nodes
        pairs = np.array([index(a) * n_nodes + index(b) for a, b in self._solver.labels], dtype=np.int64)
        self._dealer = Dealer(pairs, n_nodes)
        self.plans = 0

    def route(self, departures: Departures) -> Routes:
        """Plan anew and deal paths to these vehicles."""
        self.plans += 1
        self._solver.solve(self._prices(), self.relative_gap, self.most_iterations)
        self._dealer.use(self._solver.path_shares(1e-3))
        return self._dealer.deal(departures)

    def learn(self, driven: Driven) -> None:
        """Nothing to do: the lessons of the task are up to date."""

    def optimistic_times(self) -> Floats:
        """Return the shortest travel time believed possible by (edge, bin), which never falls with the count."""
        lessons, free_flow = self._task.lessons, self._task.network.free_flow_s[:, np.newaxis]
        uses = np.maximum(1, lessons.visits)
        mean = lessons.sums / uses
        spread = np.sqrt(np.maximum(0.0, lessons.squares / uses - mean**2))
        pairs = lessons.visits.size
        radius = (self.confidence or 1.0) * spread * np.sqrt(np.log(pairs * self.plans / self.delta) / uses)
        lower = np.where(lessons.visits > 0, np.maximum(mean - radius, free_flow), free_flow)
        # A road is no quicker at a larger count, so what is known of a count bounds all larger ones.
        return np.asarray(np.maximum.accumulate(lower, axis=1), dtype=np.float64)

    def _prices(self) -> Prices:
        """Return the marginal total time at each flow, from straight lines through the optimistic times at the bins.

        The total time of an edge is the flow x the time at that flow. Differences of noisy totals are noisier still,
        so the slopes are those of the greatest convex function below the totals seen; beyond them the last goes on.
        """
        lessons, times = self._task.lessons, self.optimistic_times()
        starts = lessons.bin_starts
        middles = np.append((starts[:-1] + starts[1:] - 1) / 2, starts[-1])
        flows = flows_at(self._task, middles, times)
        seen = lessons.visits > 0
        last = np.where(seen.any(axis=1), seen.shape[1] - 1 - np.argmax(seen[:, ::-1], axis=1), 0)
        slopes = _convex_slopes(flows, totals_at(self._task, middles, times), last, times[:, 0])
        # The price paid by the first vehicle is the free-flow time; between two bins it is that of their middle.
        return priced(between(flows), np.column_stack((times[:, 0], slopes)))


@kernel
def _convex_slopes(flows: Floats, totals: Floats, last: NDArray[np.int64], least: Floats) -> Floats:
    """Return, for each edge and step between flows, the slope of the greatest convex function below the totals.

    Only the flows up to `last` count, and no slope is below `least`; later steps have the slope of the last one.
    There is one row of flows for all edges, or one each.
    """
    slopes = np.empty((len(totals), flows.shape[1] - 1))
    corners = np.empty(flows.shape[1], dtype=np.int64)
    for edge in range(len(totals)):
        mine = flows[edge if len(flows) > 1 else 0]
        size = hull_corners(mine, -totals[edge, : last[edge] + 1], corners)
        slope = least[edge]
        for piece in range(1, size):
            one, two = corners[piece - 1], corners[piece]
            slope = max(slope, (totals[edge, two] - totals[edge, one]) / (mine[two] - mine[one]))
            slopes[edge, one:two] = slope
        slopes[edge, last[edge] :] = slope
    return slopes
