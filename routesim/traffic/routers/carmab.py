"""CARMABRouter: CARMAB-st, planning flows on what it believes of every road."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from routesim.arrays import Bools, Floats, Ints, Ints32
from routesim.assignment.detours import DetourSolver
from routesim.assignment.paths import PathShares
from routesim.assignment.prices import Prices, prices_at
from routesim.assignment.solver import FlowSolver
from routesim.checks import check_confidence, number, seconds, whole
from routesim.learners.carmab import CARMAB
from routesim.traffic.protocol import BELIEVED, Departures, Driven, Routes, TrafficTask
from routesim.traffic.routers.base import Feedback, Foreseen
from routesim.traffic.routers.by_flow import between, convex_slopes, flows_at, priced, read_at, totals_at
from routesim.traffic.routers.dealer import Dealer
from routesim.traffic.routers.od_pairs import part_of
from routesim.traffic.routers.optimistic_bins import bin_middles, optimistic_times
from routesim.traffic.routers.road_beliefs import RoadBeliefs

_FAIR = 0.2  # by which a path of the plan may cost more than the best of them, and half of what all may than planned
_LEAST_BUSY = 1e-3  # of the mean rate: plans are made for some vehicles at any time
_NEARLY_NONE = 1e-9  # vehicles an hour


@dataclass
class CARMABRouter:
    """CARMAB-st in continuous time: travel times by count are learned from what was driven, and flows planned on them.

    It knows the roads on empty streets and the demand's rates, and nothing of congestion. Every `interval_s` seconds
    it takes in what was driven, and every `plan_s` seconds it plans the flows with the least total time for those who
    follow, around what drives there besides. Vehicles are dealt the paths of the plan in its shares, as long as a path
    costs about as much at the present counts as was planned; others take the path that is believed quickest at the
    counts of their departure, plus what one more vehicle costs the others in the plan.

    A road's travel time is believed to rise with a power of the count, from a posterior over its capacity; where that
    does not fit, the mean times of bins of counts take its place. With `forget`, a road is learned anew when its latest
    times contradict what was believed, or a vehicle does not come out of it, as after an incident.

    With a number for `confidence` it is as near to the paper's algorithm as continuous time allows: the shortest times
    that the estimates by (edge, bin of counts) allow, and the shares of the plan dealt out evenly until the next. The
    radius is confidence x spread x sqrt(log(edges x bins x plans / delta) / uses); `forget` is without meaning then.

    With `max_detour`, it plans for paths of at most 1 + `max_detour` times the pair's best, at the times that it
    believes in where everybody looks after himself, and deals no others.
    """

    confidence: float | None = None
    delta: float = 0.1
    interval_s: float | None = 60.0
    plan_s: float = 300.0
    forget: bool = True
    relative_gap: float = 1e-3
    most_iterations: int = 50
    max_detour: float | None = None

    monotone: ClassVar[bool] = True  # it always uses that no road is quicker at a larger count
    stands_for: ClassVar[type | None] = CARMAB

    feedback: Feedback = field(init=False, default="lessons")
    plans: int = field(init=False, default=0, repr=False)

    def __post_init__(self) -> None:
        check_confidence(1.0 if self.confidence is None else self.confidence, self.delta)
        if self.interval_s is not None:
            seconds("interval_s", self.interval_s)
        seconds("plan_s", self.plan_s)
        number("relative_gap", self.relative_gap, 0.0, 1.0)
        whole("most_iterations", self.most_iterations, 1)
        if self.max_detour is not None:
            number("max_detour", self.max_detour, 0.0, 1e9)

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:
        """Begin a run, knowing nothing."""
        self.start_among(task, rng, 1.0, None)

    def start_among(
        self,
        task: TrafficTask,
        rng: np.random.Generator,  # noqa: ARG002 - what is believed needs no chance
        share: float,
        others: Foreseen | None,  # noqa: ARG002 - how others drive is learned, not known
    ) -> None:
        """Begin a run in which a share of the vehicles follows."""
        self._task, self._share = task, share
        self._starts: Floats = np.asarray(task.lessons.bin_starts, dtype=np.float64)
        self._solver = FlowSolver(task.network, part_of(task, share if share > 0 else 1.0))
        index, n_nodes = task.network.node_index, task.network.n_nodes
        pairs = np.array([index(a) * n_nodes + index(b) for a, b in self._solver.labels], dtype=np.int64)
        self._dealer = Dealer(pairs, n_nodes)
        self.plans, self._planned_s = 0, -np.inf
        self._tolls, self._marginal = np.zeros(task.network.n_edges), np.empty(task.network.n_edges)
        self._busy = 1.0
        self.beliefs = RoadBeliefs(task, forget=self.forget) if self.confidence is None else None

    def route(self, departures: Departures) -> Routes:
        """Plan anew where it is time, and send these vehicles off."""
        due = departures.now_s >= self._planned_s + self.plan_s
        if due:
            self._planned_s = departures.now_s
            self.plans += 1
        if self.beliefs is None:
            if due:
                times = self.optimistic_times()
                self._dealer.use(self._solved(bin_middles(self._task), times, self._seen_last()))
            return self._dealer.deal(departures)
        counts = self._task.counts()
        news = self.beliefs.look(departures.now_s, counts)
        if due:
            self.beliefs.pool()
            self._plan(self.beliefs.times, counts, departures.now_s)
        if news or due:
            self._costs = self.beliefs.times + self._tolls[:, np.newaxis]
        dealt = self._dealer.deal(departures)
        if self.max_detour is not None:
            return dealt
        fair = self._fair_paths(counts)
        return dealt._replace(
            which=np.where(fair[dealt.which], dealt.which, BELIEVED), believed=self._costs if news or due else None
        )

    def _fair_paths(self, counts: Ints32) -> Bools:
        """Say which paths of the plan cost about as much at these counts as the plan has it."""
        shares, starts = self._dealer.shares, self._starts
        now = _read(starts - counts[:, np.newaxis], self._costs)
        costs = np.add.reduceat(now[shares.edges], shares.indptr[:-1])
        planned = np.add.reduceat(self._marginal[shares.edges], shares.indptr[:-1])
        pairs = np.diff(shares.first)
        least = np.repeat(np.minimum.reduceat(costs, shares.first[:-1]), pairs)
        fair = (costs <= (1 + _FAIR) * least) & (least <= (1 + 2 * _FAIR) * planned)
        return np.asarray(fair, dtype=np.bool_)

    def learn(self, driven: Driven) -> None:
        """Nothing to do: the lessons of the task are up to date."""

    def _plan(self, times: Floats, counts: Ints32, now_s: float) -> None:
        """Plan the flows of those who follow on these travel times, and what one more vehicle costs the others."""
        solver, starts = self._solver, self._starts
        flows = np.ascontiguousarray(np.broadcast_to(flows_at(self._task, starts, times), times.shape))
        busy = max(_LEAST_BUSY, self._task.demand.rate_at(now_s, now_s + self.plan_s))
        own = (solver.flows - solver.background) * (busy / self._busy)
        if self._share < 1.0:
            solver.background = np.maximum(0.0, _read(starts - counts[:, np.newaxis], flows) - own)
        solver.scale(busy / self._busy)
        self._busy = busy
        self._dealer.use(self._solved(starts, times, np.full(len(times), len(starts) - 1)))
        self._tolls = np.maximum(0.0, self._marginal - _read(flows - self._planned[:, np.newaxis], times))

    def _solved(self, counts: Floats, times: Floats, last: Ints) -> PathShares:
        """Return the paths with the least total time at these times by (edge, count), from where the last plan was."""
        solver: FlowSolver | DetourSolver = self._solver
        if self.max_detour is not None:
            flows, usual_s = flows_at(self._task, counts, times), np.empty(len(times))
            rising = np.column_stack((np.zeros(len(flows)), flows + _NEARLY_NONE))
            usual = priced(rising, np.column_stack((times[:, 0], times)))
            self._solver.solve(usual, self.relative_gap, self.most_iterations)
            prices_at(usual, self._solver.flows, usual_s)
            solver = DetourSolver(self._solver, usual_s, self.max_detour)
        prices = self._prices(counts, times, last)
        solver.solve(prices, self.relative_gap, self.most_iterations)
        self._planned = solver.flows
        prices_at(prices, solver.flows, self._marginal)
        return solver.path_shares(1e-3)

    def optimistic_times(self) -> Floats:
        """Return the shortest travel time believed possible by (edge, bin), which never falls with the count."""
        return optimistic_times(self._task, self.confidence or 1.0, self.delta, self.plans)

    def _seen_last(self) -> Ints:
        """Return the bin of the largest count seen on each road, beyond which the last price goes on."""
        seen = self._task.lessons.visits > 0
        return np.where(seen.any(axis=1), seen.shape[1] - 1 - np.argmax(seen[:, ::-1], axis=1), 0)

    def _prices(self, counts: Floats, times: Floats, last: Ints) -> Prices:
        """Return the marginal total time at each flow, from straight lines through the times at the counts.

        The total time of an edge is the flow x the time at that flow. Differences of noisy totals are noisier still,
        so the slopes are those of the greatest convex function below the totals; beyond the last they go on.
        """
        flows = flows_at(self._task, counts, times)
        slopes = convex_slopes(flows, totals_at(self._task, counts, times), last, times[:, 0])
        # The price paid by the first vehicle is the free-flow time; between two bins it is that of their middle.
        return priced(between(flows), np.column_stack((times[:, 0], slopes)))


def _read(apart: Floats, values: Floats) -> Floats:
    """Return the value of each edge where `apart`, which rises, is 0, on straight lines between its own."""
    return np.ascontiguousarray(read_at(np.zeros(1), apart, values)[:, 0])
