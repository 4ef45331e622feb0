"""Routers that learn nothing: given paths, empty roads, the present counts, chance, and a mix of two routers."""

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from routesim.assignment.assignment import assign, load_cheapest
from routesim.errors import FewerPathsWarning, InputError, RouteError
from routesim.roads.shortest import Workspace, shortest_tree, trace
from routesim.rounds.actions import ActionSet
from routesim.traffic.engines.window import GREEDY
from routesim.traffic.protocol import Departures, Driven, Router, Routes, TrafficTask

Floats = NDArray[np.float64]
Feedback = Literal["none", "lessons", "all"]


class _Unteachable:
    """What routers without any use for feedback have in common."""

    interval_s: float | None = None
    feedback: Feedback = "none"

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:
        """Begin a run."""
        self._task, self._rng = task, rng

    def learn(self, driven: Driven) -> None:
        """Learn nothing."""


@dataclass
class FixedRouter(_Unteachable):
    """The paths it is given, one for each vehicle in order of departure; each is a sequence of edge indices."""

    paths: Sequence[Sequence[int]]

    def route(self, departures: Departures) -> Routes:
        """Return the paths of these vehicles."""
        if len(departures.vehicles) and len(self.paths) <= departures.vehicles[-1]:
            raise RouteError(
                f"{len(self.paths)} paths were given, but there is a vehicle {departures.vehicles[-1]}; "
                "give one path for each vehicle in order of departure"
            )
        number: dict[tuple[int, ...], int] = {}
        which = [number.setdefault(tuple(self.paths[v]), len(number)) for v in departures.vehicles.tolist()]
        return Routes.of(list(number), which)


@dataclass
class FreeFlowRouter(_Unteachable):
    """The path that is quickest on empty roads, whatever the traffic."""

    def flows_among(self, task: TrafficTask, share: float, others: Floats) -> Floats:  # noqa: ARG002 - whatever the traffic
        """Return the flows of a share of the vehicles."""
        return load_cheapest(task.network, task.demand.per_hour()) * share

    def route(self, departures: Departures) -> Routes:
        """Return the paths of these vehicles."""
        network = self._task.network
        graph, work = network.graph, Workspace.build(network.graph)
        pairs, which = np.unique(pair_numbers(departures, network.n_nodes), return_inverse=True)
        paths: list[list[int]] = []
        origin, parents = -1, np.empty(0, dtype=np.int32)
        for start, goal in zip((pairs // network.n_nodes).tolist(), (pairs % network.n_nodes).tolist(), strict=True):
            if start != origin:
                origin, (_, parents) = start, shortest_tree(graph, network.free_flow_s, start, workspace=work)
            paths.append(trace(graph, parents, goal).tolist())
        return Routes.of(paths, which)


@dataclass
class GreedyRouter(_Unteachable):
    """The path that is quickest at the counts of the moment of departure; it knows how roads congest.

    `tolls`, in seconds per edge, are added to the times, such as the marginal costs of a planned optimum.
    """

    tolls: ArrayLike | None = None
    informed: ClassVar[bool] = True

    def flows_among(self, task: TrafficTask, share: float, others: Floats) -> Floats:
        """Return the flows to be expected of a share of the vehicles: their equilibrium, given those of the others."""
        if share == 0:
            return np.zeros(task.network.n_edges)
        found = assign(task.network, part_of(task, share), "user", 1e-3, background=others)
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


@dataclass
class LogitRouter(_Unteachable):
    """A path by chance: out of up to `k` that differ, in proportion to exp(-time / scale_s).

    The times are those at the counts of the start of each interval of `interval_s` seconds.
    """

    scale_s: float = 60.0
    k: int = 5
    interval_s: float | None = 60.0
    max_overlap: float = 0.75
    informed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (np.isfinite(self.scale_s) and self.scale_s > 0):
            raise InputError(f"scale_s must be finite and above 0, got {self.scale_s}")

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


@dataclass
class CompliantRouter:
    """A `share` of the vehicles, by chance, follows the `recommended` router; the others follow their own.

    Both routers are copied, and asked as often as the one that asks more often. A PlannedRouter that is recommended
    plans for its share around the flows of the others, where these can be foreseen: those of free-flow, planned and
    greedy drivers, the last as an equilibrium. `around=False` makes it plan as if everybody followed.
    """

    recommended: Router
    own: Router = field(default_factory=GreedyRouter)
    share: float = 0.5
    around: bool = True

    feedback: Feedback = field(init=False, default="none")
    interval_s: float | None = field(init=False, default=None)
    _order: ClassVar[tuple[Feedback, ...]] = ("none", "lessons", "all")

    @property
    def informed(self) -> bool:
        """Whether those who follow are sent by a router that was told how roads congest."""
        return bool(getattr(self.recommended, "informed", False))

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InputError(f"share must lie between 0 and 1, got {self.share}")
        wants = {self.recommended.feedback, self.own.feedback}
        if len(wants - {"none"}) > 1:
            raise InputError("two learning routers that want different feedback cannot be mixed")
        self.feedback = max(wants, key=self._order.index)
        given = [one.interval_s for one in (self.recommended, self.own) if one.interval_s is not None]
        self.interval_s = min(given) if given else None

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:
        """Begin a run."""
        self._rng, *streams = rng.spawn(3)
        self._routers = copy.deepcopy((self.recommended, self.own))
        recommended, own = self._routers
        among, foreseen = getattr(recommended, "start_among", None), getattr(own, "flows_among", None)
        if self.around and among is not None and foreseen is not None:
            among(task, streams[0], self.share, foreseen)
        else:
            recommended.start(task, streams[0])
        own.start(task, streams[1])

    def route(self, departures: Departures) -> Routes:
        """Return the paths of these vehicles, from one router or the other."""
        follows = self._rng.random(len(departures.vehicles)) < self.share
        which = np.empty(len(follows), dtype=np.int64)
        indptr, edges, tolls = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32), None
        weights = None
        for router, mine in zip(self._routers, (follows, ~follows), strict=True):
            if not mine.any():
                continue
            part = router.route(departures.part(mine))
            which[mine] = np.where(part.which >= 0, part.which + len(indptr) - 1, part.which)
            indptr = np.concatenate((indptr, len(edges) + part.indptr[1:]))
            edges = np.concatenate((edges, part.edges))
            tolls = part.tolls if part.tolls is not None else tolls
            weights = part.weights if part.weights is not None else weights
        return Routes(indptr, edges, which, tolls, weights)

    def learn(self, driven: Driven) -> None:
        """Show both routers what was driven."""
        for router in self._routers:
            if router.feedback == "all":
                router.learn(driven)


def pair_numbers(departures: Departures, n_nodes: int) -> NDArray[np.int64]:
    """Number the pair of ends of every vehicle: origin x nodes + destination."""
    return departures.origins.astype(np.int64) * n_nodes + departures.destinations


def part_of(task: TrafficTask, share: float) -> dict[str, Any]:
    """Return the demand's mean rates of a share of the vehicles, as a table for `assign`."""
    table = task.demand.per_hour()
    return {**table, "vehicles": table["vehicles"] * share}


def candidates(task: TrafficTask, pair: int, k: int, max_overlap: float) -> ActionSet:
    """Return up to k paths of a pair that differ; fewer are no news here."""
    labels, n_nodes = task.network.labels, task.network.n_nodes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewerPathsWarning)
        return ActionSet.between(
            task.network, labels[pair // n_nodes], labels[pair % n_nodes], k, max_overlap=max_overlap
        )
