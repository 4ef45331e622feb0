"""SUMO as an engine: the same routers, trips and roads in the most trusted open simulator, in closed loop.

SUMO runs in a process of its own on the net that netconvert makes of the roads. Routers are asked and taught as in any
other engine: routes are given at departure and changed on the way, and lessons are the times that vehicles took for
each edge, written down every second.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints, Ints32
from routesim.errors import InputError, RouteError
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import find
from routesim.traffic.engines import sumo_kernel as core
from routesim.traffic.engines.base import Happened, Setting, Stop
from routesim.traffic.engines.choice import Beliefs, Search
from routesim.traffic.engines.compiled import DEPARTED, CompiledEngine
from routesim.traffic.engines.fleet import ENTERED, LENGTH, START, Fleet
from routesim.traffic.engines.queue import Queue
from routesim.traffic.engines.records import EdgeLoads, Occupancy, Teaching
from routesim.traffic.engines.sumo_process import SumoProcess, check_installed, net_of
from routesim.traffic.protocol import ASK, BELIEVED, WEIGHED
from routesim.traffic.reach import no_way

LATEST_DEPARTURE_S = 1e6  # SUMO drives second by second, empty ones too
REFRESH_S = 10  # so often speeds are looked at where somebody goes by them
MEMORY_S = 120.0  # over about so long they are averaged
_BLOCK_S = 300  # so long SUMO drives on by itself
_PRIOR = 0.5  # so many vehicles at the speed limit stand beside those seen: a road that empties is quick again
_PATIENCE_S = {"meso": 2, "micro": 1}  # who is late on an edge is looked at so often
_HEADWAY_S, _SPACE_M = 1.0, 7.5  # of SUMO's cars that follow each other: seconds, and metres where they stand


@dataclass(frozen=True)
class Sumo:
    """SUMO, with the net that netconvert makes of the roads; needs the extra `sumo`.

    `mode` is "meso" (queues by road segment, quick) or "micro" (every car follows the one before it and changes lanes).
    A vehicle that stood for `stuck_s` seconds is moved on by SUMO (a teleport), which `Traffic.forced_moves` counts.
    `speed_deviation` is the standard deviation of the factor by which drivers keep to the speed limit. All of SUMO's
    chance comes from the seed of the run. `junctions=False` lets vehicles of the meso mode pass junctions and signals
    without a stop.
    """

    mode: Literal["meso", "micro"] = "meso"
    stuck_s: float = 300.0
    speed_deviation: float = 0.1
    junctions: bool = True

    name: ClassVar[str] = "sumo"
    has_static_references: ClassVar[bool] = False
    has_day_to_day_reference: ClassVar[bool] = False
    jam_density_per_km: ClassVar[float] = 1000 / _SPACE_M
    wave_kph: ClassVar[float] = 3.6 * _SPACE_M / _HEADWAY_S

    def __post_init__(self) -> None:
        if self.mode not in ("meso", "micro"):
            raise InputError(f'mode is "meso" or "micro", got {self.mode!r}')
        if not 1 <= self.stuck_s <= 86_400:
            raise InputError(f"stuck_s lies between 1 and 86400 seconds, a day, got {self.stuck_s}")
        if not 0 <= self.speed_deviation <= 1:
            raise InputError(f"speed_deviation lies between 0 and 1, got {self.speed_deviation}")

    @property
    def label(self) -> str:
        """What results call it."""
        return f"SUMO {self.mode}" + ("" if self.junctions else ", no junctions")

    def check(self, network: RoadNetwork, window_s: float) -> None:  # noqa: ARG002 - SUMO has no window
        """Refuse roads that SUMO cannot have, and to go on without SUMO."""
        check_installed()
        net_of(network)

    def static_roads(self, network: RoadNetwork) -> RoadNetwork:
        """Return the roads as the queue engine's plans see them."""
        return Queue().static_roads(network)

    def engine(self, setting: Setting) -> "SumoEngine":
        """Return an engine with empty roads."""
        return SumoEngine(setting, self)

    def options(self, seed: np.uint64) -> list[str]:
        """Return the options of SUMO's command line."""
        words = ["--seed", str(int(seed) % (2**31 - 1)), "--no-step-log", "true", "--no-warnings", "true"]
        words += ["--time-to-teleport", f"{self.stuck_s:g}", "--default.speeddev", f"{self.speed_deviation:g}"]
        meso = ["--mesosim", "true", "--meso-junction-control", str(self.junctions).lower()]
        return words + (meso if self.mode == "meso" else [])


@dataclass(frozen=True)
class SumoMicro(Sumo):
    """SUMO's micro mode: every car follows the one before it and changes lanes."""

    mode: Literal["meso", "micro"] = "micro"

    name: ClassVar[str] = "sumo-micro"


class SumoEngine(CompiledEngine):
    """SUMO at work."""

    _world: core.SumoWorld

    def __init__(self, setting: Setting, physics: Sumo) -> None:
        if setting.noise:
            raise InputError(
                f"SUMO has chance of its own, and takes no noise, got {setting.noise}; leave it out, or set "
                "speed_deviation"
            )
        latest = float(setting.departure_s[-1]) if setting.n_vehicles else 0.0
        if latest > LATEST_DEPARTURE_S:
            raise InputError(
                f"in SUMO the last vehicle departs at {LATEST_DEPARTURE_S:g} s at the latest, got {latest:g}; count "
                "departures from the beginning of the day"
            )
        network, n_edges = setting.network, setting.network.n_edges
        _, goal_row = np.unique(setting.destinations, return_inverse=True)
        costs = setting.trip_costs
        rates = None if costs is None else costs.costs / network.free_flow_s
        world = core.SumoWorld(
            bin_s=setting.bin_s,
            clock=np.zeros(6, dtype=np.int64),
            events=np.empty((0, 3), dtype=np.int64),
            fleet=Fleet.build(setting, goal_row),
            on=np.zeros(n_edges, dtype=np.int32),
            changed_s=np.zeros(n_edges),
            halting=np.zeros(n_edges, dtype=np.int32),
            outside=np.zeros(n_edges, dtype=np.int32),
            loads=EdgeLoads.build(n_edges),
            standing=Occupancy.build(n_edges),
            search=Search.build(network.graph),
            beliefs=Beliefs.build(n_edges),
            teaching=Teaching.build(setting.feedback, n_edges, rates, queueing=setting.n_vehicles),
        )
        super().__init__(setting, core.follow, world)
        self._physics = physics
        self._process: SumoProcess | None = None
        self._net = net_of(network)
        self._turns = np.unique(self._net.connections @ [n_edges, 1])
        self._now, self._left, self._held = 0, 0, 0  # held are those who would depart onto a closed road
        self._sums = np.zeros((2, n_edges))  # metres and seconds of late, see `sumo_worker`
        self._known_share = np.ones(n_edges)  # the shares of capacity that SUMO knows of
        self._departing: list[int] = []
        self._turning: dict[int, tuple[int, int]] = {}  # who is to be turned, and where his path was before
        self._static = physics.static_roads(network)
        self.lessons = replace(self.lessons, counted="vehicles")

    def run(self, until_s: float) -> Stop:
        """Drive on until something is needed or `until_s` is reached."""
        departure_s = self._setting.departure_s
        while True:
            stop = super().run(until_s)  # takes in what SUMO said
            if stop.reason == "lesson":
                return stop
            if self.departed() == len(departure_s) and not self._left and not self._departing:
                return Stop("over")
            unasked, asks_s = self._next_question()
            step = REFRESH_S if self._looks else _BLOCK_S
            window = min(until_s, asks_s, (self._now // step + 1) * step)
            self._hand_over(window)
            if window >= self._now + 1:
                self._go(int(window))
            else:
                return Stop("route", unasked) if asks_s < until_s else Stop("time")

    def _next_question(self) -> tuple[int, float]:
        """Return the first vehicle that has to be asked about when it departs, and when that is."""
        first, fleet = self.departed(), self._world.fleet
        waits = np.flatnonzero((fleet.choice[first:] == ASK) & (fleet.state[first:, LENGTH] == 0))
        if not len(waits):
            return -1, np.inf
        return first + int(waits[0]), float(self._setting.departure_s[first + waits[0]])

    @property
    def _looks(self) -> bool:
        """Whether somebody goes by the speeds of the moment."""
        waiting = self._world.fleet.choice[self.departed() :]
        return bool(self._setting.reroutes.any() or self._setting.incidents or (waiting < ASK).any())

    def _hand_over(self, until_s: float) -> None:
        """Let vehicles depart up to a time, those without a route by the quickest way of the moment."""
        first, last = self.departed(), int(np.searchsorted(self._setting.departure_s, until_s, side="left"))
        if last <= first:
            return
        for vehicle in range(first, last):
            if self._world.fleet.state[vehicle, LENGTH] == 0:
                path = self._quickest(vehicle, int(self._setting.origins[vehicle]), -1)
                self._write(vehicle, path)
        self._check_turns(np.arange(first, last))
        self._departing += range(first, last)
        self._world.clock[DEPARTED] = last

    def _check_turns(self, vehicles: Ints) -> None:
        """Refuse paths that SUMO has no connection for, such as back where they came from."""
        fleet, n_edges = self._world.fleet, self._network.n_edges
        starts, lengths = fleet.state[vehicles, START], fleet.state[vehicles, LENGTH] - 1
        owner = np.repeat(np.arange(len(vehicles)), lengths)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + starts[owner]
        edge, onward = fleet.paths[place].astype(np.int64), fleet.paths[place + 1]
        missing = np.flatnonzero(~np.isin(edge * n_edges + onward, self._turns))
        if len(missing):
            one = missing[0]
            raise RouteError(
                f"the router gave vehicle {vehicles[owner[one]]} a path from edge {edge[one]} to edge {onward[one]}, a "
                "turn that SUMO's net does not have, such as back where one came from; leave it out"
            )

    # ---- ways at present -----------------------------------------------------------------------------

    def present_s(self) -> Floats:
        """Return the time that every edge takes at the averaged speed of late, at least that of the empty edge."""
        free_flow, length = self._network.free_flow_s, np.maximum(self._network.length_m, 0.1)
        metres, seconds = self._sums
        limit = length / np.maximum(free_flow, 1e-3)
        pace = (seconds + _PRIOR) / (np.nan_to_num(metres) + _PRIOR * limit)
        return np.asarray(np.maximum(np.where(np.isfinite(length), length * pace, free_flow), free_flow))

    def _quickest(self, vehicle: int, node: int, edge: int) -> Ints32:
        """Return the path that costs a vehicle least from the end of an edge, or -1: from a node where it departs.

        Closed roads are used only where it has no path yet and no other way.
        """
        fleet, search = self._world.fleet, self._world.search
        costs, potential = self._costs(vehicle), search.work.no_potential
        if fleet.choice[vehicle] != WEIGHED and len(search.to_go):
            potential = search.to_go[fleet.goal_row[vehicle]]
        if edge >= 0:
            out = self._network.graph.out_edges[slice(*self._network.graph.indptr[[node, node + 1]])]
            costs[out[~np.isin(edge * self._network.n_edges + out, self._turns)]] = np.inf
        goal, blocked = int(fleet.goal[vehicle]), np.empty(0, dtype=np.int32)
        graph, work = self._network.graph, search.work
        path = find(graph, np.where(self._share > 0, costs, np.inf), node, goal, potential, blocked, work)
        if not len(path) and edge < 0:
            path = find(graph, costs, node, goal, potential, blocked, work)
            if not len(path):
                raise no_way(self._network, vehicle, node, goal)
        return path

    def _costs(self, vehicle: int) -> Floats:
        beliefs, fleet, seconds = self._world.beliefs, self._world.fleet, self.present_s()
        if fleet.choice[vehicle] == BELIEVED:
            core.believe(beliefs, self._world.on, seconds)
            return seconds
        if fleet.choice[vehicle] == WEIGHED:
            return np.asarray(seconds * beliefs.weights[fleet.kind[vehicle]] + beliefs.charge)
        return np.asarray(seconds + beliefs.toll)

    def _write(self, vehicle: int, path: Ints32) -> None:
        """Let a vehicle go on along a path from where it is."""
        fleet = self._world.fleet
        start, length, driven, _ = fleet.state[vehicle]
        fleet = fleet.with_room(int(driven) + len(path))
        used = int(fleet.used[0])
        if length:
            fleet.paths[used : used + driven] = fleet.paths[start : start + driven]
        fleet.paths[used + driven : used + driven + len(path)] = path
        fleet.state[vehicle, START], fleet.state[vehicle, LENGTH] = used, driven + len(path)
        fleet.used[0] = used + driven + len(path)
        self._world = self._world._replace(fleet=fleet)

    def _path(self, vehicle: int) -> Ints32:
        start, length = self._world.fleet.state[vehicle, [START, LENGTH]]
        return self._world.fleet.paths[start : start + length]

    def _turn(self, vehicle: int) -> None:
        """Look for a better way of a vehicle that is on the roads or waits to enter them."""
        fleet = self._world.fleet
        path, driven = self._path(vehicle), int(fleet.state[vehicle, ENTERED])
        fleet.chosen_s[vehicle] = self._now
        edge = int(path[driven - 1]) if driven else -1
        node = int(self._network.heads[edge] if driven else self._setting.origins[vehicle])
        if node == fleet.goal[vehicle]:
            return
        found = self._quickest(vehicle, node, edge)
        if len(found) and not np.array_equal(found, path[driven:]):
            before = (int(fleet.state[vehicle, START]), int(fleet.state[vehicle, LENGTH]))
            self._turning.setdefault(vehicle, before)
            self._write(vehicle, found)

    def _under_way(self) -> Ints:
        """Return the vehicles that have departed and not arrived."""
        first = self.departed()
        return np.flatnonzero(np.isnan(self._world.fleet.arrival_s[:first]))

    def _look_again(self) -> None:
        """Let those who look for a better way now and then do so, once they have come to another edge."""
        fleet, now = self._world.fleet, self._now
        mine = self._under_way()
        mine = mine[fleet.reroutes[mine] & (fleet.state[mine, ENTERED] > 0)]
        due = (now - fleet.chosen_s[mine] >= self._setting.reroute_s) & (fleet.entered_s[mine] >= now - REFRESH_S)
        for vehicle in mine[due].tolist():
            self._turn(vehicle)

    # ---- roads that change ---------------------------------------------------------------------------

    def _change(self, before: Floats, now_s: float, next_s: float) -> None:  # noqa: ARG002 - SUMO opens roads itself
        """Turn those whose path leads over a road that is closed from now on."""
        if self._held and int(now_s) > self._now:  # SUMO has stopped where nobody could move
            share, self._share = self._share, before
            self._go(int(now_s))
            self._share, self._left = share, self._held
        closed = self._share == 0
        if not (closed & (before > 0)).any():
            return
        for vehicle in self._under_way().tolist():
            if closed[self._path(vehicle)[self._world.fleet.state[vehicle, ENTERED] :]].any():
                self._turn(vehicle)

    def _speed_at(self, edges: Ints) -> Floats:
        """Return the speed limit at which cars that follow each other pass a share of the capacity."""
        limit = self._network.length_m[edges] / np.maximum(self._network.free_flow_s[edges], 1e-3)
        share = np.where(self._share[edges] > 0, self._share[edges], 1.0)
        headway = (_HEADWAY_S + _SPACE_M / limit) / share
        return np.asarray(np.where(share < 1, _SPACE_M / (headway - _HEADWAY_S), limit))

    # ---- SUMO ----------------------------------------------------------------------------------------

    def _go(self, until: int) -> None:
        """Have SUMO drive up to a second."""
        if self._process is None:
            options = self._physics.options(self._setting.noise_seed)
            words = {"bin_s": self._setting.bin_s, "patience_s": _PATIENCE_S[self._physics.mode]}
            self._process = SumoProcess(self._net, options, words, self._network.free_flow_s)
        if self._looks:
            self._look_again()
        drain = self.departed() == self._setting.n_vehicles and not self._held
        asked: dict[str, Any] = {"command": "go", "until": until, "pause": REFRESH_S * self._looks, "drain": drain}
        said, found = self._process.ask(asked, self._told())
        for vehicle in found["refused"].tolist():
            self._world.fleet.state[vehicle, [START, LENGTH]] = self._turning[vehicle]
        self._departing, self._turning = [], {}
        fade = np.exp(-(said["second"] - self._now) / MEMORY_S)
        self._sums *= fade
        np.add.at(self._sums[0], found["seen"], REFRESH_S * found["numbers"] * found["speeds"])
        np.add.at(self._sums[1], found["seen"], REFRESH_S * found["numbers"])
        self._now, self._left, self._held = said["second"], said["left"], said["held"]
        self._world.clock[core.FORCED] = said["moved"]
        self._world.clock[core.NEXT] = 0
        self._world = self._world._replace(events=found["events"].reshape(-1, 3))

    def _told(self) -> dict[str, NDArray[Any]]:
        fleet, told = self._world.fleet, {}
        changed = np.flatnonzero(self._share != self._known_share)
        if len(changed):
            told = {"changed": changed, "limits": self._speed_at(changed), "closed": self._share[changed] == 0}
            self._known_share = self._share.copy()
        turning = [vehicle for vehicle in self._turning if vehicle not in set(self._departing)]
        for name, vehicles in (("departing", self._departing), ("turning", turning)):
            paths = [self._path(one)[max(0, int(fleet.state[one, ENTERED]) - 1) :] for one in vehicles]
            told[name] = np.array(vehicles, dtype=np.int64)
            told[f"{name}_starts"] = np.cumsum([0, *map(len, paths)])
            told[f"{name}_edges"] = np.concatenate([np.empty(0, dtype=np.int32), *paths])
        return told | {"departs": self._setting.departure_s[self._departing]}

    def _make_room(self, need: int) -> None:  # noqa: ARG002 - there is one need
        world = self._world
        self._world = world._replace(loads=world.loads.with_room(), standing=world.standing.with_room())

    def counts(self, now_s: float) -> NDArray[np.int32]:  # noqa: ARG002 - the roads are as they are
        """Return the vehicles on every edge."""
        return self._world.on.copy()

    def time_at(self, counts: NDArray[Any]) -> Floats:
        """Return the time of every edge with so many vehicles on it, as the queue engine believes it."""
        return self._network.free_flow_s * self.multiplier(np.arange(self._network.n_edges), counts)

    def multiplier(self, edges: NDArray[Any], counts: NDArray[Any]) -> Floats:
        """Return the times of some edges with so many vehicles on them, relative to free flow: SUMO has no such law."""
        roads, free_flow = self._static, np.maximum(self._network.free_flow_s[edges], 1e-3)
        queue = (np.asarray(counts) + 0.5) * 3600.0 / roads.capacity_vph[edges]
        return np.asarray(np.maximum(roads.free_flow_s[edges], queue) / free_flow, dtype=np.float64)

    def happened(self) -> Happened:
        """Return what happened; the run is over then, and so is SUMO."""
        if self._process is not None:
            self._process.close()
        return super().happened()

    def _held_back(self) -> tuple[int, Ints32]:
        return int(self._world.clock[core.FORCED]), self._world.standing.all_rows()
