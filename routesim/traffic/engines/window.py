"""The window engine: on entering, a vehicle sees how many others entered the road in the last `window_s` seconds.

The edge then takes free_flow_s x congestion(count) x noise, at least a millisecond. Entries at exactly the time of the
vehicle's own count only where their event came first. Roads hold nothing back: this is the paper's world carried over
to continuous time, and no model of queues.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats
from routesim.checks import BPR_LIMITS, within
from routesim.congestion import BPR, CongestionFunction
from routesim.errors import InputError
from routesim.roads.network import RoadNetwork
from routesim.traffic.engines import window_kernel as core
from routesim.traffic.engines.base import Happened, Setting, Stop
from routesim.traffic.engines.choice import Beliefs, Search
from routesim.traffic.engines.event_queue import empty_queue
from routesim.traffic.engines.fleet import ENTERED, LENGTH, START, Fleet
from routesim.traffic.engines.records import EdgeLoads, Teaching
from routesim.traffic.engines.window_counts import Windows, counts_now
from routesim.traffic.protocol import Departures, Driven, Routes
from routesim.traffic.reach import no_way

_STOPS: dict[int, Literal["over", "time", "route", "lesson"]] = {
    core.OVER: "over",
    core.TIME: "time",
    core.ROUTE: "route",
    core.LESSON: "lesson",
}


@dataclass(frozen=True)
class Window:
    """Travel times by the count of entries in the window.

    `congestion` multiplies the free-flow time by the count. `BPR()` reads it as a flow, count / window_s, against each
    road's own capacity, alpha and beta; `BPR(capacity=...)` takes a capacity in entries per window.
    `overtaking=False` makes vehicles leave an edge in the order they entered it.
    """

    congestion: CongestionFunction = BPR()  # noqa: RUF009 - frozen
    overtaking: bool = True

    name: ClassVar[str] = "window"
    label: ClassVar[str] = "window count"

    @property
    def has_static_references(self) -> bool:
        """Whether roads congest as static assignments assume: by BPR with their own capacities."""
        return isinstance(self.congestion, BPR) and self.congestion.capacity is None

    def check(self, network: RoadNetwork, window_s: float) -> None:
        """Refuse a congestion function that does not fit the roads."""
        CountLaw(network, self.congestion, window_s)

    def engine(self, setting: Setting) -> "WindowEngine":
        """Return an engine with empty roads."""
        return WindowEngine(setting, self)


class CountLaw:
    """What a count makes of each edge's travel time: a BPR curve with numbers by edge, or a table by count."""

    def __init__(self, network: RoadNetwork, congestion: CongestionFunction, window_s: float) -> None:
        self._network, self._congestion = network, congestion
        self.bpr = None
        if not isinstance(congestion, BPR):
            return
        if congestion.capacity is None:
            if not (np.ndim(congestion.alpha) == 0 == np.ndim(congestion.beta)) or (
                (congestion.alpha, congestion.beta) != (BPR().alpha, BPR().beta)
            ):
                raise InputError(
                    "BPR without a capacity takes each road's own alpha and beta; give BPR(capacity=...) too"
                )
            per_window = within(
                f"capacity_vph x window_s / 3600, vehicles in a window of {window_s:g} s",
                network.capacity_vph / 3600.0 * window_s,
                *BPR_LIMITS["capacity"],
            )
            self.bpr = network.bpr_alpha.copy(), per_window, network.bpr_beta.copy()
        else:
            self.bpr = self._by_edge("alpha"), self._by_edge("capacity"), self._by_edge("beta")

    def _by_edge(self, name: str) -> Floats:
        given = np.asarray(getattr(self._congestion, name), dtype=np.float64)
        if given.shape not in ((), (self._network.n_edges,)):
            raise InputError(f"BPR's {name} is one number or one for each of {self._network.n_edges} edges")
        return np.ascontiguousarray(np.broadcast_to(given, (self._network.n_edges,))).copy()

    def table(self, counts: int) -> Floats:
        """Return the multipliers at 0 … counts - 1, one row for all edges or one each, once they keep the rules."""
        values = np.asarray(self._congestion(np.arange(counts)[np.newaxis, :]), dtype=np.float64)
        values = np.atleast_2d(values)
        if values.shape not in ((1, counts), (self._network.n_edges, counts)):
            raise InputError(
                f"the congestion function returned shape {values.shape} for {counts} counts on "
                f"{self._network.n_edges} edges; it must work element by element, for one row or one per edge"
            )
        if not np.isfinite(values).all() or (values <= 0).any() or (np.diff(values, axis=1) < -1e-12).any():
            raise InputError(
                "a congestion function multiplies travel times here: its values must be finite, above 0 and must "
                f"not fall with the count; got {values[0, :4].tolist()} … at counts 0, 1, 2, 3, …"
            )
        return np.ascontiguousarray(values)

    def multiplier(self, edges: NDArray[Any], counts: NDArray[Any]) -> Floats:
        """Return the travel times of some edges at some counts, relative to free flow."""
        numbers = np.asarray(counts, dtype=np.int64)
        if self.bpr is not None:
            alpha, capacity, beta = (values[edges] for values in self.bpr)
            return np.asarray(1.0 + alpha * (numbers / capacity) ** beta, dtype=np.float64)
        table = self.table(int(numbers.max(initial=0)) + 1)
        return np.asarray(table[edges if len(table) > 1 else 0, numbers], dtype=np.float64)


class WindowEngine:
    """The window count at work: the arrays of the compiled core, which grow as they are needed."""

    def __init__(self, setting: Setting, physics: Window) -> None:
        self._setting, self._network = setting, setting.network
        self._law = CountLaw(setting.network, physics.congestion, setting.window_s)
        self._goals, goal_row = np.unique(setting.destinations, return_inverse=True)
        clock = np.zeros(4, dtype=np.int64)
        clock[core.SERIAL] = setting.n_vehicles
        n_edges, costs = setting.network.n_edges, setting.trip_costs
        rates = None if costs is None else costs.costs / setting.network.free_flow_s
        self._world = core.World(
            rules=core.Rules(
                setting.window_s,
                setting.bin_s,
                setting.noise,
                setting.noise_seed,
                setting.reroute_s if setting.reroutes.any() else 0.0,
            ),
            clock=clock,
            queue=empty_queue(setting.n_vehicles),
            fleet=Fleet.build(setting, goal_row),
            roads=self._roads(physics.overtaking),
            windows=Windows.build(n_edges),
            loads=EdgeLoads.build(n_edges),
            search=Search.build(setting.network.graph),
            beliefs=Beliefs.build(n_edges),
            wanted=np.empty(1, dtype=np.int64),
            teaching=Teaching.build(setting.feedback, n_edges, rates),
        )
        self.lessons = self._world.teaching.lessons
        if setting.reroutes.any():
            self._steer()

    def _roads(self, overtaking: bool) -> core.Roads:
        network, law = self._network, self._law
        alpha, capacity, beta = law.bpr or (np.empty(0), np.empty(0), np.empty(0))
        return core.Roads(
            graph=network.graph,
            free_flow=network.free_flow_s.copy(),  # writable: a read-only array would be another type to the compiler
            alpha=alpha,
            per_capacity=1.0 / capacity,
            beta=beta,
            table=np.empty((0, 0)) if law.bpr is not None else law.table(64),
            last_exit=np.empty(0) if overtaking else np.zeros(network.n_edges),
        )

    def _steer(self) -> None:
        search = self._world.search.steered(self._network, self._goals)
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
            answer = core.drive(until_s, self._world)
            if answer in _STOPS:
                return Stop(_STOPS[answer], int(self._world.clock[core.WANTED]))
            self._make_room(answer)

    def _make_room(self, need: int) -> None:
        world, wanted = self._world, int(self._world.clock[core.WANTED])
        if need == core.PATHS:
            room = len(world.fleet.paths) + self._network.n_nodes
            self._world = world._replace(fleet=world.fleet.with_room(room))
        elif need == core.ENTRIES:
            self._world = world._replace(windows=world.windows.with_room())
        elif need == core.LOADS:
            self._world = world._replace(loads=world.loads.with_room())
        elif need == core.TIMES:
            self._world = world._replace(roads=world.roads._replace(table=self._law.table(2 * (wanted + 1))))
        else:
            setting = self._setting
            raise no_way(self._network, wanted, setting.origins[wanted], setting.destinations[wanted])

    def driven(self) -> Driven | None:
        """Return the edges driven to their end since the last call, None where there are none."""
        return self._world.teaching.driven(self._world.fleet)

    def counts(self, now_s: float) -> NDArray[np.int32]:
        """Return the entries into every edge during the last `window_s` seconds."""
        out = np.empty(self._network.n_edges, dtype=np.int32)
        counts_now(self._world.windows, now_s - self._setting.window_s, out)
        return out

    def time_at(self, counts: NDArray[Any]) -> Floats:
        """Return the travel time of every edge at these counts."""
        return self._network.free_flow_s * self._law.multiplier(np.arange(self._network.n_edges), counts)

    def multiplier(self, edges: NDArray[Any], counts: NDArray[Any]) -> Floats:
        """Return the travel times of some edges at some counts, relative to free flow."""
        return self._law.multiplier(edges, counts)

    def happened(self) -> Happened:
        """Return what happened so far."""
        fleet = self._world.fleet
        arrived = np.isfinite(fleet.arrival_s)
        return Happened(
            fleet.arrival_s,
            int(self._world.clock[core.EVENTS]),
            fleet.state[:, START].copy(),
            fleet.state[:, LENGTH].copy(),
            fleet.state[:, ENTERED].copy(),
            fleet.paths[: fleet.used[0]],
            *self._world.loads.all_rows(),
            None if self._setting.trip_costs is None else np.where(arrived, fleet.cost, np.nan),
        )
