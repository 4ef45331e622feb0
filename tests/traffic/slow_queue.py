"""Roads with one queue each in plain Python, written down as the rules are: the slow twin of the queue engine.

The n-th vehicle of a road enters it no earlier than an entry headway after the entry before, and no earlier than a
wave after the exit of vehicle n - storage, unless the road stores all vehicles there are. It leaves no earlier than its
entry and the free-flow time, an exit headway after the exit before, and when the next road takes it. A road of several
lanes saves headways that were not used, one for each lane but the first: so many go side by side. A road that does not
take whoever comes lets them wait and takes from them in turns, in proportion to capacity: a turn comes 3600 / capacity
after the turn taken last, or after the queue's own turn before if it has queued for the same road since, but never
before the turn taken last. Who has waited for `stuck_s` seconds moves by force.

Nothing is kept in order: every step looks at all roads for what happens next.
"""

from dataclasses import dataclass, field
from math import ceil, floor, inf

import numpy as np

import routesim as rs


@dataclass
class SlowRoad:
    """A road with all that ever happened on it."""

    free_s: float
    exit_headway_s: float
    entry_headway_s: float
    wave_s: float
    storage: float
    lanes: int
    inside: list[int] = field(default_factory=list)
    outside: list[int] = field(default_factory=list)
    entries_s: list[float] = field(default_factory=list)
    exits_s: list[float] = field(default_factory=list)
    waiting: list["Waiting"] = field(default_factory=list)
    turn: float = 0.0  # of whoever was taken last
    enter_s: float = -inf  # when the next entry is an entry headway after the one before, unused ones saved
    exit_s: float = -inf  # and the next exit

    def takes_from_s(self) -> float:
        """When the next vehicle can enter; infinite while the road is full."""
        number = len(self.entries_s)
        time = self.enter_s
        if number >= self.storage:
            before = number - int(self.storage)
            time = max(time, self.exits_s[before] + self.wave_s if before < len(self.exits_s) else inf)
        return time


@dataclass
class Waiting:
    """A queue whose first vehicle waits for a road: the queue of a road, or the one outside of it."""

    road: int
    is_outside: bool
    since_s: float
    turn: float


def roads_of(network: rs.RoadNetwork, physics: rs.physics.Queue) -> list[SlowRoad]:
    """The rules of storage, waves and headways for each road."""
    roads = []
    for edge in range(network.n_edges):
        free_s, capacity = float(network.free_flow_s[edge]), float(network.capacity_vph[edge])
        lanes, length_m = float(network.lanes[edge]), float(np.nan_to_num(network.length_m[edge]))
        jam, wave_mps = physics.jam_density_per_km / 1000.0, physics.wave_kph / 3.6  # vehicles a metre and lane
        wave_s = length_m / wave_mps
        connector = bool(network.no_through[network.tails[edge]] or network.no_through[network.heads[edge]])
        storage, entry = inf, physics.saturation_vph * lanes
        if length_m > 0:
            # The highest flow of the triangular diagram: at the density where free flow and the wave meet.
            entry = 3600.0 * lanes * jam * wave_mps / (1.0 + wave_mps / (length_m / free_s))
            if not connector:
                own = ceil(capacity * (free_s + wave_s) / 3600.0)
                storage = max(floor(lanes * length_m * jam), own, 1)
        roads.append(
            SlowRoad(max(free_s, 1e-3), 3600.0 / capacity, 3600.0 / max(entry, capacity), wave_s, storage, round(lanes))
        )
    return roads


class SlowQueue:
    """Vehicles on given paths; `passages` are (vehicle, edge, entered, left) in the order in which they end."""

    def __init__(
        self, network: rs.RoadNetwork, paths: list[list[int]], departure_s: list[float], physics: rs.physics.Queue
    ) -> None:
        self.roads, self.stuck_s = roads_of(network, physics), physics.stuck_s
        for road in self.roads:
            if road.storage >= len(paths):  # a road that stores all vehicles there are limits nobody
                road.storage = inf
        self.paths, self.departure_s = paths, departure_s
        self.place = [-1] * len(paths)
        self.entered_s = [[0.0] * len(path) for path in paths]
        self.arrival_s = [np.nan] * len(paths)
        self.passages: list[tuple[int, int, float, float]] = []
        self.last_moves: dict[tuple[int, bool], tuple[SlowRoad, float, float]] = {}  # of a queue: where to, turn, when
        self.forced_moves, self.departed, self.now_s = 0, 0, 0.0

    def run(self) -> "SlowQueue":
        while True:
            options = list(self._options())
            if not options:
                return self
            # At one moment departures come first, then roads, then those outside, then roads that take who waits.
            time, kind, number = min(options)
            assert time >= self.now_s
            self.now_s = time
            if kind == 0:
                self.roads[self.paths[number][0]].outside.append(number)
                self.departed += 1
            elif kind == 3:
                self._take(number)
            else:
                self._come(number, is_outside=kind == 2)

    def _options(self):  # type: ignore[no-untyped-def]  # an iterator of (time, kind, number)
        if self.departed < len(self.paths):
            yield self.departure_s[self.departed], 0, self.departed
        for number, road in enumerate(self.roads):
            if road.inside and not self._waits(number, is_outside=False):
                ready_s, clear_s = self._ready_s(road.inside[0]), self._clear_s(number, is_outside=False)
                yield max(ready_s, clear_s, self.now_s), 1, number
            if road.outside and not self._waits(number, is_outside=True):
                yield self.now_s, 2, number
            if road.waiting:
                yield min(road.takes_from_s(), road.waiting[0].since_s + self.stuck_s), 3, number

    def _ready_s(self, vehicle: int) -> float:
        """When a vehicle is at the end of its road, or outside its first one."""
        if self.place[vehicle] < 0:
            return self.departure_s[vehicle]
        road = self.roads[self.paths[vehicle][self.place[vehicle]]]
        return self.entered_s[vehicle][self.place[vehicle]] + road.free_s

    def _clear_s(self, number: int, *, is_outside: bool) -> float:
        """When the next vehicle of a queue may move after the one before."""
        road = self.roads[number]
        if is_outside:
            return self.last_moves[number, True][2] if (number, True) in self.last_moves else -inf
        return road.exit_s

    def _waits(self, number: int, *, is_outside: bool) -> bool:
        return any(one.road == number and one.is_outside == is_outside for road in self.roads for one in road.waiting)

    def _come(self, number: int, *, is_outside: bool) -> None:
        """The first vehicle of a queue comes to its end: it arrives, enters the next road, or waits for it."""
        road = self.roads[number]
        vehicle = (road.outside if is_outside else road.inside)[0]
        if self.place[vehicle] + 1 == len(self.paths[vehicle]):
            self._leave(number)
            self.last_moves.pop((number, False), None)
            self.arrival_s[vehicle] = self.now_s
            return
        to = self.roads[self.paths[vehicle][self.place[vehicle] + 1]]
        turn, last = to.turn + road.exit_headway_s, self.last_moves.get((number, is_outside))
        if (
            last is not None
            and last[0] is to
            and self._ready_s(vehicle) <= self._clear_s(number, is_outside=is_outside)
        ):
            turn = min(turn, max(last[1] + road.exit_headway_s, to.turn))
        one = Waiting(number, is_outside, self.now_s, turn)
        if to.waiting or to.takes_from_s() > self.now_s:
            to.waiting.append(one)
        else:
            self._move(one, to)

    def _take(self, number: int) -> None:
        """A road takes the one whose turn it is, the first to come among equals; by force who has waited longest."""
        road = self.roads[number]
        if road.takes_from_s() <= self.now_s:
            one = min(road.waiting, key=lambda other: other.turn)
        else:
            one = road.waiting[0]
            self.forced_moves += 1
        road.waiting.remove(one)
        self._move(one, road)

    def _move(self, one: Waiting, to: SlowRoad) -> None:
        vehicle = self.roads[one.road].outside.pop(0) if one.is_outside else self._leave(one.road)
        to.turn = one.turn
        self.last_moves[one.road, one.is_outside] = to, one.turn, self.now_s
        to.inside.append(vehicle)
        to.entries_s.append(self.now_s)
        headway_s = to.entry_headway_s
        to.enter_s = max(to.enter_s, self.now_s - (to.lanes - 1) * headway_s) + headway_s
        self.place[vehicle] += 1
        self.entered_s[vehicle][self.place[vehicle]] = self.now_s

    def _leave(self, number: int) -> int:
        road = self.roads[number]
        vehicle = road.inside.pop(0)
        road.exits_s.append(self.now_s)
        headway_s = road.exit_headway_s
        road.exit_s = max(road.exit_s, self.now_s - (road.lanes - 1) * headway_s) + headway_s
        self.passages.append((vehicle, number, self.entered_s[vehicle][self.place[vehicle]], self.now_s))
        return vehicle
