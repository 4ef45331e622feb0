"""CompliantRouter: a share of the vehicles follows one router, the others another."""

import copy
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from routesim.arrays import Bools, Ints
from routesim.errors import InputError
from routesim.registry import IN_PYTHON
from routesim.traffic.protocol import Departures, Driven, Router, Routes, TrafficTask
from routesim.traffic.routers.base import Feedback, Foreseeable, PlansAround, RouterTraits
from routesim.traffic.routers.greedy import GreedyRouter


@dataclass
class CompliantRouter:
    """A `share` of the vehicles, by chance, follows the `recommended` router; the others follow their own.

    Both routers are copied, and asked as often as the one that asks more often. A PlannedRouter that is recommended
    plans for its share around the flows of the others, where these can be foreseen: those of free-flow, planned and
    greedy drivers, the last as an equilibrium. `around=False` makes it plan as if everybody followed.
    """

    recommended: Router = field(metadata=IN_PYTHON)
    own: Router = field(default_factory=GreedyRouter, metadata=IN_PYTHON)
    share: float = 0.5
    around: bool = True

    feedback: Feedback = field(init=False, default="none")
    interval_s: float | None = field(init=False, default=None)
    _order: ClassVar[tuple[Feedback, ...]] = ("none", "lessons", "all")

    @property
    def informed(self) -> bool:
        """Whether those who follow are sent by a router that was told how roads congest."""
        return RouterTraits.of(self.recommended).informed

    @property
    def needs_contexts(self) -> bool:
        """Whether one of the two routers learns from travellers."""
        return any(RouterTraits.of(one).needs_contexts for one in (self.recommended, self.own))

    @property
    def learns(self) -> bool:
        """Whether those who follow are sent by a router that learns."""
        return RouterTraits.of(self.recommended).learns

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InputError(f"share must lie between 0 and 1, got {self.share}")
        for name, router in (("recommended", self.recommended), ("own", self.own)):
            if not isinstance(router, Router):
                raise InputError(f"{name} must be a router, got {router!r}; the share is given as share=")
        wants = {self.recommended.feedback, self.own.feedback}
        if len(wants - {"none"}) > 1:
            raise InputError("two learning routers that want different feedback cannot be mixed")
        self.feedback = max(wants, key=self._order.index)
        given = [one.interval_s for one in (self.recommended, self.own) if one.interval_s is not None]
        self.interval_s = min(given) if given else None

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:
        """Begin a run."""
        self._rng, *streams = rng.spawn(3)
        self._follows = np.empty(0, dtype=np.int8)
        self._routers = copy.deepcopy((self.recommended, self.own))
        recommended, own = self._routers
        if self.around and isinstance(recommended, PlansAround) and isinstance(own, Foreseeable):
            recommended.start_among(task, streams[0], self.share, own.flows_among)
        else:
            recommended.start(task, streams[0])
        own.start(task, streams[1])

    def route(self, departures: Departures) -> Routes:
        """Return the paths of these vehicles, from one router or the other."""
        follows = self._who_follows(departures.vehicles)
        which = np.empty(len(follows), dtype=np.int64)
        indptr, edges, tolls = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32), None
        weights = believed = None
        for router, mine in zip(self._routers, (follows, ~follows), strict=True):
            if not mine.any():
                continue
            part = router.route(departures.part(mine))
            which[mine] = np.where(part.which >= 0, part.which + len(indptr) - 1, part.which)
            indptr = np.concatenate((indptr, len(edges) + part.indptr[1:]))
            edges = np.concatenate((edges, part.edges))
            tolls = part.tolls if part.tolls is not None else tolls
            weights = part.weights if part.weights is not None else weights
            believed = part.believed if part.believed is not None else believed
        return Routes(indptr, edges, which, tolls, weights, believed)

    def _who_follows(self, vehicles: Ints) -> Bools:
        """Draw who follows; whoever is asked about again, as when roads are closed, stays what he is."""
        known = len(self._follows)
        if len(vehicles) and vehicles[-1] >= known:
            more = np.full(max(known, int(vehicles[-1]) + 1 - known), -1, dtype=np.int8)
            self._follows = np.concatenate((self._follows, more))
        new = vehicles[self._follows[vehicles] < 0]
        self._follows[new] = self._rng.random(len(new)) < self.share
        return np.asarray(self._follows[vehicles] == 1, dtype=np.bool_)

    def learn(self, driven: Driven) -> None:
        """Show both routers what was driven."""
        for router in self._routers:
            if router.feedback == "all":
                router.learn(driven)
