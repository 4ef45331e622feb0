"""Routers that learn: CARMAB-st planning flows on what it believes of every road, and learners for each pair."""

import copy
from dataclasses import dataclass, field
from operator import index

import numpy as np
from numpy.typing import NDArray

from routesim.assignment.assignment import FlowSolver
from routesim.assignment.frank_wolfe import Prices
from routesim.errors import InputError
from routesim.kernels import kernel
from routesim.learners.base import Learner
from routesim.planning.hull import hull_corners
from routesim.rounds import environment
from routesim.traffic.protocol import Departures, Driven, Routes, TrafficTask
from routesim.traffic.routers.basic import Feedback, candidates, pair_numbers
from routesim.traffic.routers.planned import Dealer

Floats = NDArray[np.float64]


@dataclass
class CARMABRouter:
    """CARMAB-st in continuous time: optimistic travel times by (edge, bin of counts), flows planned on them.

    It knows the roads on empty streets and the demand's mean rates, and nothing of congestion. Every `interval_s`
    seconds it takes the shortest travel times that its estimates allow, plans the flows with the least total time
    on them, and deals the shares out evenly until the next plan. The radius of a confidence interval is
    confidence x scale x sqrt(log(edges x bins x plans / delta) / uses), where scale is the spread seen in the bin.
    """

    confidence: float = 1.0
    delta: float = 0.1
    interval_s: float | None = 300.0
    relative_gap: float = 1e-3
    most_iterations: int = 50

    feedback: Feedback = field(init=False, default="lessons")
    plans: int = field(init=False, default=0, repr=False)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.confidence) and self.confidence > 0):
            raise InputError(f"confidence must be finite and above 0, got {self.confidence}")
        if not 0 < self.delta < 1:
            raise InputError(f"delta must lie between 0 and 1, got {self.delta}")

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
        radius = self.confidence * spread * np.sqrt(np.log(pairs * self.plans / self.delta) / uses)
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
        flows = middles * (3600.0 / self._task.window_s)
        seen = lessons.visits > 0
        last = np.where(seen.any(axis=1), seen.shape[1] - 1 - np.argmax(seen[:, ::-1], axis=1), 0)
        # The price paid by the first vehicle is the free-flow time; between two bins it is that of their middle.
        knots = np.concatenate(([0.0], (flows[1:] + flows[:-1]) / 2))
        prices = np.column_stack((times[:, 0], _convex_slopes(flows, flows * times, last, times[:, 0])))
        none = np.empty(0)
        return Prices(none, none, none, none, knots, prices)


@kernel
def _convex_slopes(flows: Floats, totals: Floats, last: NDArray[np.int64], least: Floats) -> Floats:
    """Return, for each edge and step between flows, the slope of the greatest convex function below the totals.

    Only the flows up to `last` count, and no slope is below `least`; later steps have the slope of the last one.
    """
    slopes = np.empty((len(totals), len(flows) - 1))
    corners = np.empty(len(flows), dtype=np.int64)
    for edge in range(len(totals)):
        size = hull_corners(flows, -totals[edge, : last[edge] + 1], corners)
        slope = least[edge]
        for piece in range(1, size):
            one, two = corners[piece - 1], corners[piece]
            slope = max(slope, (totals[edge, two] - totals[edge, one]) / (flows[two] - flows[one]))
            slopes[edge, one:two] = slope
        slopes[edge, last[edge] :] = slope
    return slopes


@dataclass
class PairLearnersRouter:
    """A copy of a learner for every pair of places, which chooses among up to `k` paths that differ.

    A trip teaches its learner when it ends, with the travel time of each edge as a negative reward: late, and in
    another order than the trips began. The learner sees the present counts of its edges, and no history.
    """

    learner: Learner
    k: int = 8
    max_overlap: float = 0.75

    interval_s: float | None = field(init=False, default=0.0)
    feedback: Feedback = field(init=False, default="all")

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:
        """Begin a run with no pair known."""
        self._task, self._rng = task, rng
        self._learners: dict[int, tuple[environment.Task, Learner]] = {}
        self._rounds: dict[int, int] = {}
        self._driving: dict[int, tuple[int, int, list[float], list[int]]] = {}

    def route(self, departures: Departures) -> Routes:
        """Ask the learner of each vehicle's pair."""
        counts = self._task.counts()
        paths = []
        numbers = pair_numbers(departures, self._task.network.n_nodes)
        for vehicle, pair in zip(departures.vehicles.tolist(), numbers.tolist(), strict=True):
            if pair not in self._learners:
                self._learners[pair] = self._meet(pair)
            task, learner = self._learners[pair]
            now = self._rounds.get(pair, 0)
            self._rounds[pair] = now + 1
            action = index(learner.choose(environment.Observation(now, (), counts[task.actions.edges])))  # type: ignore[arg-type]  # a listed action is a number
            self._driving[vehicle] = (pair, action, [], [])
            paths.append(task.actions.listed_paths[action])
        return Routes.of(paths, np.arange(len(paths)))

    def learn(self, driven: Driven) -> None:
        """Collect the edges of each trip; at its last edge, tell the learner of its pair."""
        columns = (driven.vehicles, driven.counts, driven.travel_time_s)
        for vehicle, count, time_s in zip(*(column.tolist() for column in columns), strict=True):
            pair, action, rewards, counts = self._driving[vehicle]
            rewards.append(-time_s)
            counts.append(count)
            task, learner = self._learners[pair]
            positions = task.actions.positions(action)
            if len(rewards) == len(positions):
                met, paid = np.array(counts, dtype=np.int32), np.array(rewards)
                learner.update(environment.Feedback(action, float(paid.sum()), positions, met, paid))
                del self._driving[vehicle]

    def _meet(self, pair: int) -> tuple[environment.Task, Learner]:
        actions = candidates(self._task, pair, self.k, self.max_overlap)
        free_flow = self._task.network.free_flow_s[actions.edges]
        # The scale of what is not known about an edge: its noise, and where there is little, its free-flow time.
        scale = free_flow * max(self._task.noise, 1.0)
        task = environment.Task(actions, 0, np.full(len(free_flow), -np.inf), -free_flow, scale)
        learner = copy.deepcopy(self.learner)
        learner.start(task, self._rng.spawn(1)[0])
        return task, learner
