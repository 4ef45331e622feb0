"""What engines with a compiled core have in common: they give it routes, run it, and make room when it asks."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from routesim.arrays import Bools, Floats, Ints, Ints32
from routesim.kernels import lean_kernel
from routesim.traffic.engines.base import Happened, Setting, Stop
from routesim.traffic.engines.fleet import ENTERED, LENGTH, START, Fleet
from routesim.traffic.protocol import Departures, Driven, Lessons, Routes
from routesim.traffic.reach import no_way

# What every core answers when it stops; it has answers of its own beyond these: all vehicles have arrived or can never
# move again, the time is reached, a vehicle departs without a route, the log of driven edges is full, a vehicle has no
# way to its goal, or the pool of paths is too small.
OVER, TIME, ROUTE, LESSON, NO_WAY, PATHS = range(6)
# Positions in the clock of every core, which has others of its own beyond these: vehicles departed, entries into edges,
# and the vehicle or count that an answer is about.
DEPARTED, EVENTS, WANTED = range(3)
_STOPS: dict[int, Literal["over", "time", "route", "lesson"]] = {
    OVER: "over",
    TIME: "time",
    ROUTE: "route",
    LESSON: "lesson",
}


@lean_kernel
def _over(fleet: Fleet, first: int, closed: Bools, found: Bools) -> None:
    """Mark the vehicles from `first` on whose path leads over a closed road."""
    for vehicle in range(first, len(fleet.state)):
        start, length = fleet.state[vehicle, START], fleet.state[vehicle, LENGTH]
        for place in range(start, start + length):
            found[vehicle] |= closed[fleet.paths[place]]


class CompiledEngine(ABC):
    """An engine whose `_world` holds the arrays that its core works on; they grow as they are needed."""

    lessons: Lessons

    def __init__(self, setting: Setting, drive: Callable[[float, Any], int], world: Any) -> None:
        self._setting, self._network, self._drive, self._world = setting, setting.network, drive, world
        self._share = np.ones(setting.network.n_edges)
        self.lessons = world.teaching.lessons
        if setting.reroutes.any() or setting.incidents:
            self._steer()

    def _steer(self) -> None:
        search = self._world.search.steered(self._network, np.unique(self._setting.destinations))
        self._world = self._world._replace(search=search)

    def take(self, departures: Departures, routes: Routes) -> None:
        """Give vehicles that have not departed their routes."""
        beliefs = self._world.beliefs.given(routes)
        if (routes.which < 0).any():
            self._steer()
        self._world = self._world._replace(beliefs=beliefs, fleet=self._world.fleet.take(departures, routes))

    def run(self, until_s: float) -> Stop:
        """Drive on until something is needed or `until_s` is reached."""
        while True:
            answer = self._drive(until_s, self._world)
            if answer in _STOPS:
                return Stop(_STOPS[answer], int(self._world.clock[WANTED]))
            if answer == NO_WAY:
                setting, wanted = self._setting, int(self._world.clock[WANTED])
                raise no_way(self._network, wanted, setting.origins[wanted], setting.destinations[wanted])
            if answer == PATHS:
                fleet = self._world.fleet
                fleet = fleet.with_room(len(fleet.paths) + self._network.n_nodes)
                self._world = self._world._replace(fleet=fleet)
            else:
                self._make_room(answer)

    @abstractmethod
    def _make_room(self, need: int) -> None:
        """Make room where the core has answered that its arrays are too small."""

    def change(self, share: Floats, now_s: float, next_s: float) -> None:
        """Let every road have a share of its capacity from now on, up to `next_s`; a share of 0 closes it for entry."""
        before, self._share = self._share, share.copy()
        self._change(before, now_s, next_s)

    @abstractmethod
    def _change(self, before: Floats, now_s: float, next_s: float) -> None:
        """Take over the shares `_share`, which were `before` up to now."""

    def set_to_cross(self, closed: Bools) -> Ints:
        """Return the vehicles that have not departed and whose path leads over a closed road."""
        fleet = self._world.fleet
        found = np.zeros(len(fleet.state), dtype=np.bool_)
        _over(fleet, self.departed(), closed, found)
        return np.flatnonzero(found)

    def departed(self) -> int:
        """Return how many vehicles have departed."""
        return int(self._world.clock[DEPARTED])

    def driven(self) -> Driven | None:
        """Return the edges driven to their end since the last call, None where there are none."""
        found: Driven | None = self._world.teaching.driven(self._world.fleet)
        return found

    def happened(self) -> Happened:
        """Return what happened so far."""
        fleet = self._world.fleet
        arrived = np.isfinite(fleet.arrival_s)
        loads, load_seconds = self._world.loads.all_rows()
        return Happened(
            fleet.arrival_s,
            int(self._world.clock[EVENTS]),
            fleet.state[:, START].copy(),
            fleet.state[:, LENGTH].copy(),
            fleet.state[:, ENTERED].copy(),
            fleet.paths[: fleet.used[0]],
            loads,
            load_seconds,
            None if self._setting.trip_costs is None else np.where(arrived, fleet.cost, np.nan),
            *self._held_back(),
        )

    def _held_back(self) -> tuple[int, Ints32 | None]:
        """Return the moves by force, and where vehicles stood over time; nothing where roads hold nobody back."""
        return 0, None
