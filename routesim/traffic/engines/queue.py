"""The queue engine: roads that pass only so many vehicles, hold only so many, and hold back those behind.

Every road passes vehicles in order, no faster than its capacity, and stores no more than fit on its lanes. Queues form
where more come than pass, spill back when a road is full, and dissolve from the front backwards.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats
from routesim.errors import InputError
from routesim.roads.network import RoadNetwork
from routesim.traffic.engines import queue_kernel as core
from routesim.traffic.engines import queue_state as state
from routesim.traffic.engines.agenda import Agenda
from routesim.traffic.engines.base import Happened, Setting, Stop
from routesim.traffic.engines.choice import Beliefs, Search
from routesim.traffic.engines.fleet import ENTERED, LENGTH, START, Fleet
from routesim.traffic.engines.queue_roads import Greens, build_lines, build_roads, capacities
from routesim.traffic.engines.records import EdgeLoads, Occupancy, Teaching
from routesim.traffic.protocol import Departures, Driven, Routes
from routesim.traffic.reach import no_way

_STOPS: dict[int, Literal["over", "time", "route", "lesson"]] = {
    core.OVER: "over",
    core.TIME: "time",
    core.ROUTE: "route",
    core.LESSON: "lesson",
}


@dataclass(frozen=True)
class Queue:
    """Roads with capacity, storage and spillback.

    `jam_density_per_km` is the number of vehicles that stand on a kilometre of one lane and `wave_kph` the speed at
    which a jam dissolves backwards. A vehicle that could not enter its next road for `stuck_s` seconds moves by force,
    which `Traffic.forced_moves` counts. With `lanes` every lane has a queue of its own, which passes
    `saturation_vph` vehicles an hour where the network has no capacity of its own; without, a road has one queue and
    the network's capacity. With `signals`, the nodes of `network.signals` have traffic lights. `headway_noise` is the
    standard deviation of the logarithm of a factor with mean 1 on the time between two exits.
    """

    jam_density_per_km: float = 140.0
    wave_kph: float = 18.0
    stuck_s: float = 600.0
    lanes: bool = True
    signals: bool = True
    saturation_vph: float = 1800.0
    headway_noise: float = 0.0

    name: ClassVar[str] = "queue"
    has_static_references: ClassVar[bool] = False

    def __post_init__(self) -> None:
        limits = {"jam_density_per_km": (1.0, 1000.0), "wave_kph": (1.0, 200.0), "saturation_vph": (1.0, 1e5)}
        for name, (least, most) in limits.items():
            if not least <= getattr(self, name) <= most:
                raise InputError(f"{name} lies between {least:g} and {most:g}, got {getattr(self, name)}")
        if not self.stuck_s > 0:
            raise InputError(f"stuck_s must be above 0 seconds, got {self.stuck_s}")
        if not 0 <= self.headway_noise <= 3:
            raise InputError(f"headway_noise lies between 0 and 3, got {self.headway_noise}")

    @property
    def label(self) -> str:
        """What results call it."""
        detail = {(True, True): "lanes and signals", (True, False): "lanes, no signals", (False, True): "signals"}
        return f"queue ({detail.get((self.lanes, self.signals), 'plain: no lanes, no signals')})"

    def check(self, network: RoadNetwork, window_s: float) -> None:
        """Accept any roads."""

    def engine(self, setting: Setting) -> "QueueEngine":
        """Return an engine with empty roads."""
        return QueueEngine(setting, self)


@dataclass(frozen=True)
class PlainQueue(Queue):
    """Roads with capacity, storage and spillback, one queue each, and no signals."""

    lanes: bool = False
    signals: bool = False

    name: ClassVar[str] = "plain-queue"


class QueueEngine:
    """Queues at work: the arrays of the compiled core, which grow as they are needed."""

    def __init__(self, setting: Setting, physics: Queue) -> None:
        self._setting, self._network = setting, setting.network
        network, n_edges, n_vehicles = setting.network, setting.network.n_edges, setting.n_vehicles
        self._goals, goal_row = np.unique(setting.destinations, return_inverse=True)
        greens = Greens.none(n_edges)
        found = capacities(network, physics, greens)
        lines, costs = build_lines(found, n_vehicles), setting.trip_costs
        rates = None if costs is None else costs.costs / network.free_flow_s
        self._world = state.QueueWorld(
            rules=state.QueueRules(
                setting.bin_s,
                setting.noise,
                physics.headway_noise,
                setting.noise_seed,
                setting.reroute_s if setting.reroutes.any() else 0.0,
                physics.stuck_s,
            ),
            clock=np.zeros(4, dtype=np.int64),
            agenda=Agenda.build(len(lines.who) + n_edges),
            fleet=Fleet.build(setting, goal_row),
            lines=lines,
            roads=build_roads(network, found, greens, n_vehicles),
            signals=greens.rows,
            loads=EdgeLoads.build(n_edges),
            standing=Occupancy.build(n_edges),
            search=Search.build(network.graph),
            beliefs=Beliefs.build(n_edges),
            teaching=Teaching.build(setting.feedback, n_edges, rates),
        )
        self.lessons = self._world.teaching.lessons
        if setting.reroutes.any():
            self._steer()

    def _steer(self) -> None:
        self._world = self._world._replace(search=self._world.search.steered(self._network, self._goals))

    def take(self, departures: Departures, routes: Routes) -> None:
        """Give vehicles that have not departed their routes."""
        beliefs = self._world.beliefs.given(routes)
        if (routes.which < 0).any():
            self._steer()
        self._world = self._world._replace(beliefs=beliefs, fleet=self._world.fleet.take(departures, routes))

    def run(self, until_s: float) -> Stop:
        """Drive on until something is needed or `until_s` is reached."""
        while True:
            answer = core.drive(until_s, self._world)
            if answer in _STOPS:
                return Stop(_STOPS[answer], int(self._world.clock[state.WANTED]))
            self._make_room(answer)

    def _make_room(self, need: int) -> None:
        world, wanted = self._world, int(self._world.clock[state.WANTED])
        if need == core.PATHS:
            room = len(world.fleet.paths) + self._network.n_nodes
            self._world = world._replace(fleet=world.fleet.with_room(room))
        elif need == core.LOADS:
            self._world = world._replace(loads=world.loads.with_room(), standing=world.standing.with_room())
        else:
            setting = self._setting
            raise no_way(self._network, wanted, setting.origins[wanted], setting.destinations[wanted])

    def driven(self) -> Driven | None:
        """Return the edges driven to their end since the last call, None where there are none."""
        return self._world.teaching.driven(self._world.fleet)

    def counts(self, now_s: float) -> NDArray[np.int32]:  # noqa: ARG002 - the roads are as they are
        """Return the vehicles on every edge."""
        numbers = self._world.roads.numbers
        return (numbers[:, state.IN] - numbers[:, state.OUT]).astype(np.int32)

    def time_at(self, counts: NDArray[Any]) -> Floats:
        """Return the travel time of every edge with so many vehicles on it, if nothing behind it holds them back."""
        return self._network.free_flow_s * self.multiplier(np.arange(self._network.n_edges), counts)

    def multiplier(self, edges: NDArray[Any], counts: NDArray[Any]) -> Floats:
        """Return the travel times of some edges with so many vehicles on them, relative to free flow."""
        roads, free_flow = self._world.roads, np.maximum(self._network.free_flow_s[edges], core.LEAST_S)
        queue = (np.asarray(counts) + 0.5) * roads.headway_s[edges]
        return np.asarray(np.maximum(free_flow + roads.red_s[edges], queue) / free_flow, dtype=np.float64)

    def happened(self) -> Happened:
        """Return what happened so far."""
        fleet = self._world.fleet
        arrived = np.isfinite(fleet.arrival_s)
        return Happened(
            fleet.arrival_s,
            int(self._world.clock[state.EVENTS]),
            fleet.state[:, START].copy(),
            fleet.state[:, LENGTH].copy(),
            fleet.state[:, ENTERED].copy(),
            fleet.paths[: fleet.used[0]],
            *self._world.loads.all_rows(),
            None if self._setting.trip_costs is None else np.where(arrived, fleet.cost, np.nan),
            int(self._world.clock[state.FORCED]),
            self._world.standing.all_rows(),
        )
