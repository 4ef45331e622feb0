"""CARCBRouter: what roads cost whom is learned from what travellers paid, and tolls are planned on it."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from routesim.arrays import Floats
from routesim.assignment.prices import prices_at
from routesim.assignment.solver import FlowSolver
from routesim.checks import RIDGES, number, seconds, whole
from routesim.errors import InputError
from routesim.learners.carcb import CARCB
from routesim.learners.least_squares import least_squares
from routesim.traffic.protocol import WEIGHED, Departures, Driven, Routes, TrafficTask, Weights
from routesim.traffic.routers.base import Feedback
from routesim.traffic.routers.by_flow import between, flows_at, priced, totals_at

_LEAST_RATE = 0.05  # of the median rate: what an estimate that makes a road free or worse is taken for


@dataclass
class CARCBRouter:
    """CARCB in continuous time: theta by least squares, in episodes that double, and tolls planned on its costs.

    It knows how roads congest, the features of roads to each kind of traveller, the shares of the kinds and the
    demand's mean rates, but not theta. Every edge that was driven pays what it cost its traveller, whenever it ends;
    that cost over the congestion multiplier at the count met, and the features, go into the sums of the fit, to
    which the order does not matter. When the edges driven have doubled, from `first_fit` on, theta is fitted anew
    (the shortest one while it is not determined), and the flows of least total cost are planned on the mean costs over
    the kinds. `ridge` is added to the squares of the fit. Each vehicle then takes the path that costs its traveller
    least at the counts of its departure, by the fitted theta, plus what one more vehicle costs the others in the plan,
    unless `tolls` is False. Before the first fit a second costs the same everywhere. The router looks every
    `interval_s` seconds whether an episode is over. Where roads queue, the time measured on an edge over its free-flow
    time takes the place of the multiplier at the count met.
    """

    tolls: bool = True
    first_fit: int = 64
    interval_s: float | None = 60.0
    relative_gap: float = 1e-3
    most_iterations: int = 100
    ridge: float = 0.0

    needs_contexts: ClassVar[bool] = True
    stands_for: ClassVar[type | None] = CARCB

    feedback: Feedback = field(init=False, default="all")
    theta: Floats | None = field(init=False, default=None, repr=False, compare=False)
    episodes: int = field(init=False, default=0, repr=False, compare=False)
    driven: int = field(init=False, default=0, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("first_fit", self.first_fit, 1)
        number("relative_gap", self.relative_gap, 0.0, 1.0)
        whole("most_iterations", self.most_iterations, 1)
        if self.ridge:
            number("ridge, where it is not 0,", self.ridge, *RIDGES)
        seconds("interval_s", self.interval_s)

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:  # noqa: ARG002 - least squares needs no chance
        """Begin a run, knowing nothing of theta."""
        if task.trip_costs is None:
            raise InputError("CARCBRouter needs travellers; give TrafficSimulator(trip_costs=TripCosts(...))")
        self._task, self._trips = task, task.trip_costs
        self._block, self._shares = self._trips.block, self._trips.shares
        n_terms, n_edges = self._block.shape[2], task.network.n_edges
        self.gram, self.moment = self.ridge * np.eye(n_terms), np.zeros(n_terms)
        self.visits = np.zeros((len(self._shares), n_edges), dtype=np.int64)
        self.theta, self.episodes, self.driven = None, 0, 0
        self._weights = Weights(np.ones(self.visits.shape), np.zeros(n_edges))
        self._changed = True
        self._solver: FlowSolver | None = None

    def learn(self, driven: Driven) -> None:
        """Add what was driven to the sums of the fit."""
        assert driven.kinds is not None  # noqa: S101 - there are trip costs
        features = self._block[driven.kinds, driven.edges]
        # Noise is a factor on the time, so over the multiplier all observations of an edge are equally noisy.
        paid = -driven.costs / self._slowdown(driven)
        self.gram += features.T @ features
        self.moment += features.T @ paid
        np.add.at(self.visits, (driven.kinds, driven.edges), 1)
        self.driven += len(paid)

    def _slowdown(self, driven: Driven) -> Floats:
        """Return by how much traffic made each passage longer than on the empty road."""
        if self._task.lessons.counted == "entries":
            return self._task.multiplier(driven.edges, driven.counts)
        # Signals and full roads ahead, which no count tells, are most of the time in queues; it was measured.
        return driven.travel_time_s / self._task.network.free_flow_s[driven.edges]

    def route(self, departures: Departures) -> Routes:
        """Fit and plan where an episode is over; leave the search to the moment of departure."""
        if self.driven >= self.first_fit * 2**self.episodes:
            while self.driven >= self.first_fit * 2**self.episodes:
                self.episodes += 1
            self.theta = self._fitted()
            self._weights, self._changed = self._weighed(self.theta), True
        weights, self._changed = self._weights if self._changed else None, False
        which = np.full(len(departures.vehicles), WEIGHED, dtype=np.int64)
        return Routes(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32), which, weights=weights)

    def _fitted(self) -> Floats:
        return least_squares(self.gram, self.moment)[0]

    def _weighed(self, theta: Floats) -> Weights:
        """Return the rates that theta stands for, and the tolls planned on them."""
        rates = -(self._block @ theta) / self._task.network.free_flow_s
        usual = float(np.median(rates))
        rates = np.maximum(rates, _LEAST_RATE * usual) if usual > 0 else np.ones_like(rates)
        tolls = self._planned_tolls(self._shares @ rates) if self.tolls else np.zeros(rates.shape[1])
        return Weights(rates, tolls)

    def _planned_tolls(self, mean_rates: Floats) -> Floats:
        """Return what one more vehicle costs the others on each edge where the total cost of all is least."""
        if self._solver is None:
            self._solver = FlowSolver(self._task.network, self._task.demand.per_hour())
            self._steps()
        costs = (mean_rates * self._task.network.free_flow_s)[:, np.newaxis]
        prices = self._prices._replace(values=costs * self._prices.values)
        self._solver.solve(prices, self.relative_gap, self.most_iterations)
        all_pay, one_pays = np.empty(len(costs)), np.empty(len(costs))
        prices_at(prices, self._solver.flows, all_pay)
        prices_at(prices._replace(values=costs * self._one_pays.values), self._solver.flows, one_pays)
        return np.maximum(0.0, all_pay - one_pays)

    def _steps(self) -> None:
        """Keep, for the counts of the bins, the multipliers and what one more vehicle adds up to for all."""
        counts, task = self._task.lessons.bin_starts, self._task
        edges = np.arange(task.network.n_edges)[:, np.newaxis]
        one_pays = task.multiplier(edges, counts[np.newaxis, :]) * np.ones((len(edges), 1))
        free_flow = task.network.free_flow_s[:, np.newaxis]
        flows = flows_at(task, counts, one_pays * free_flow)
        self._one_pays = priced(flows, one_pays)
        if task.lessons.counted == "entries":
            after = task.multiplier(edges, counts[np.newaxis, :] + 1)
            all_pay = one_pays + counts * (after - one_pays)
        else:
            more = np.diff(totals_at(task, counts, one_pays * free_flow) / free_flow, axis=1) / np.diff(flows, axis=1)
            all_pay, flows = np.column_stack((one_pays[:, 0], more)), between(flows)
        self._prices = priced(flows, np.maximum.accumulate(all_pay, axis=1))
