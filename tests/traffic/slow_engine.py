"""A physics and its engine in plain Python: BPR by the entries in the window, written down as it is defined."""

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from routesim.roads.network import RoadNetwork
from routesim.traffic.engines.base import Engine, Happened, Setting, Stop
from routesim.traffic.engines.records import BIN_STARTS
from routesim.traffic.protocol import BELIEVED, GREEDY, Departures, Driven, Lessons, Routes


@dataclass(frozen=True)
class SlowWindow:
    """BPR by the entries in the window, written down as it is defined."""

    name: ClassVar[str] = "slow"
    label: ClassVar[str] = "slow window count"
    has_static_references: ClassVar[bool] = True

    def check(self, network: RoadNetwork, window_s: float) -> None:
        pass

    def static_roads(self, network: RoadNetwork) -> RoadNetwork:
        return network

    def engine(self, setting: Setting) -> Engine:
        return SlowEngine(setting)


class SlowEngine:
    def __init__(self, setting: Setting) -> None:
        self.setting, self.network = setting, setting.network
        n, n_edges = setting.n_vehicles, setting.network.n_edges
        self.queue = [(float(time), vehicle, vehicle) for vehicle, time in enumerate(setting.departure_s)]
        self.serial = n
        self.routes: list[list[int] | None] = [None] * n
        self.greedy, self.by_count = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
        self.believed: NDArray[np.float64] | None = None
        self.entered: list[list[tuple[int, float, int]]] = [[] for _ in range(n)]  # edge, time, count
        self.entries: list[list[float]] = [[] for _ in range(n_edges)]
        self.arrival_s = np.full(n, np.nan)
        self.loads: dict[tuple[int, int], tuple[int, float]] = {}
        self.log: list[tuple[int, int, int, int, float, float]] = []
        self.share, self.next_s = np.ones(n_edges), np.inf
        self.taught: set[tuple[int, int]] = set()  # passages that were shown before a vehicle waited
        shape = (n_edges, len(BIN_STARTS))
        self.lessons = Lessons(BIN_STARTS, np.zeros(shape, dtype=np.int64), np.zeros(shape), np.zeros(shape))

    def take(self, departures: Departures, routes: Routes) -> None:
        self.believed = routes.believed if routes.believed is not None else self.believed
        for vehicle, which in zip(departures.vehicles.tolist(), routes.which.tolist(), strict=True):
            self.greedy[vehicle] = which in (GREEDY, BELIEVED)
            self.by_count[vehicle] = which == BELIEVED
            path = routes.edges[routes.indptr[which] : routes.indptr[which + 1]].tolist() if which >= 0 else None
            self.routes[vehicle] = path

    def run(self, until_s: float) -> Stop:
        while self.queue:
            now, _, vehicle = self.queue[0]
            if now >= until_s:
                return Stop("time")
            if self.routes[vehicle] is None:
                if not self.greedy[vehicle]:
                    return Stop("route", vehicle)
                self.routes[vehicle] = self._quickest(vehicle, now, self.share > 0) or self._quickest(vehicle, now)
            elif self._is_shut(vehicle):
                driven = [edge for edge, _, _ in self.entered[vehicle]]
                rest = self._quickest(vehicle, now, self.share > 0)
                self.routes[vehicle] = driven + rest if rest else self.routes[vehicle]
            heappop(self.queue)
            self._move(vehicle, now)
        return Stop("over")

    def change(self, share: NDArray[np.float64], now_s: float, next_s: float) -> None:  # noqa: ARG002 - from now on
        self.share, self.next_s = share.copy(), next_s

    def departed(self) -> int:
        waiting = {vehicle for _, serial, vehicle in self.queue if serial == vehicle}
        return self.setting.n_vehicles - len(waiting)

    def set_to_cross(self, closed: NDArray[np.bool_]) -> NDArray[np.int64]:
        later = range(self.departed(), self.setting.n_vehicles)
        return np.array([one for one in later if any(closed[self.routes[one] or []])], dtype=np.int64)

    def _is_shut(self, vehicle: int) -> bool:
        route, done = self.routes[vehicle] or [], len(self.entered[vehicle])
        return done < len(route) and self.share[route[done]] == 0

    def _quickest(self, vehicle: int, now: float, usable: NDArray[np.bool_] | None = None) -> list[int]:
        times = self.time_at(self.counts(now))
        if self.by_count[vehicle]:
            rows = zip(self.counts(now), self.believed, strict=True)
            times = np.array([np.interp(count, BIN_STARTS, row) for count, row in rows])
        if usable is not None:
            times = np.where(usable, times, np.inf)
        done = self.entered[vehicle]
        origin = int(self.network.heads[done[-1][0]] if done else self.setting.origins[vehicle])
        goal = int(self.setting.destinations[vehicle])
        best, heap = {origin: (0.0, -1)}, [(0.0, origin)]
        while heap:
            cost, node = heappop(heap)
            for edge in np.flatnonzero(self.network.tails == node).tolist() if cost == best[node][0] else []:
                head, there = int(self.network.heads[edge]), cost + float(times[edge])
                if there < best.get(head, (np.inf, -1))[0]:
                    best[head] = there, edge
                    heappush(heap, (there, head))
        if goal not in best:
            return []
        path, node = [], goal
        while node != origin:
            path.append(best[node][1])
            node = int(self.network.tails[path[-1]])
        return path[::-1]

    def _move(self, vehicle: int, now: float) -> None:
        route, done = self.routes[vehicle], self.entered[vehicle]
        assert route is not None
        if done and (vehicle, len(done)) not in self.taught:
            self.taught.add((vehicle, len(done)))
            edge, entered_s, count = done[-1]
            column = int(np.searchsorted(BIN_STARTS, count, side="right")) - 1
            self.lessons.visits[edge, column] += 1
            self.lessons.sums[edge, column] += now - entered_s
            self.lessons.squares[edge, column] += (now - entered_s) ** 2
            self.log.append((vehicle, len(done) - 1, edge, count, entered_s, now - entered_s))
        if len(done) == len(route):
            self.arrival_s[vehicle] = now
            return
        if self._is_shut(vehicle):
            if self.next_s < np.inf:
                heappush(self.queue, (self.next_s, self.serial, vehicle))
                self.serial += 1
            return
        edge = route[len(done)]
        count = self._count(edge, now)
        spent = float(self.network.free_flow_s[edge] * self.multiplier(np.array([edge]), np.array([count]))[0])
        cell = int(now // self.setting.bin_s), edge
        uses, seconds = self.loads.get(cell, (0, 0.0))
        self.loads[cell] = uses + 1, seconds + spent
        self.entries[edge].append(now)
        done.append((edge, now, count))
        heappush(self.queue, (now + spent, self.serial, vehicle))
        self.serial += 1

    def _count(self, edge: int, now: float) -> int:
        return sum(now - self.setting.window_s < time <= now for time in self.entries[edge])

    def driven(self) -> Driven | None:
        if self.setting.feedback != "all" or not self.log:
            return None
        vehicles, places, edges, counts, entered_s, took = map(np.array, zip(*self.log, strict=True))
        self.log.clear()
        return Driven(vehicles, places, edges, counts, entered_s, took, took)

    def counts(self, now_s: float) -> NDArray[np.int32]:
        return np.array([self._count(edge, now_s) for edge in range(self.network.n_edges)], dtype=np.int32)

    def time_at(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        return self.network.free_flow_s * self.multiplier(np.arange(self.network.n_edges), counts)

    def multiplier(self, edges: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.float64]:
        network = self.network
        load = counts / np.where(self.share > 0, self.share, 1.0)[edges]
        load = load / (network.capacity_vph[edges] / 3600 * self.setting.window_s)
        return np.asarray(1 + network.bpr_alpha[edges] * load ** network.bpr_beta[edges])

    def happened(self) -> Happened:
        lengths = np.array([len(route or ()) for route in self.routes], dtype=np.int64)
        entered = np.array([len(done) for done in self.entered], dtype=np.int64)
        edges = np.array([edge for route in self.routes for edge in route or ()], dtype=np.int32)
        rows = sorted((*cell, uses, seconds) for cell, (uses, seconds) in self.loads.items())
        loads = np.array([row[:3] for row in rows], dtype=np.int64).reshape(-1, 3)
        starts = np.cumsum(lengths) - lengths
        seconds = np.array([row[3] for row in rows])
        return Happened(self.arrival_s, int(entered.sum()), starts, lengths, entered, edges, loads, seconds, None)
