"""Travel times as vehicles experienced them, by time of entry and turn, and the quickest paths at these times.

Searches run on the graph of turns: a node stands for the entry into a road, and a further one for the departure from
and the arrival at each node of the network. Its edges are, in this order, the turns between two roads, the ends of
trips at the end of a road, and the starts of trips at the beginning of one, which cost the time waited outside.
"""

from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from routesim.arrays import Bools, Floats, Ints, Ints32
from routesim.kernels import kernel, lean_part
from routesim.roads import shortest
from routesim.roads.graph import Graph
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import Workspace, priced_by
from routesim.roads.turns import allowed_turns
from routesim.traffic.protocol import Driven

MOST_CELLS = 1 << 27
"""Turns x intervals that a table of times may have, 1.5 GB in all; beyond, intervals become longer."""

_PRIOR = 4.0
"""So many vehicles with the mean time of the whole road stand beside those who took a turn: a few say little."""


class Turns(NamedTuple):
    """The graph of turns, and the one that is searched, also turned round.

    They are the same unless ways of three or more roads are banned. Then the graph that is searched has copies of
    roads, and `turn_of` says which turn each of its edges is; it is empty otherwise.
    """

    graph: Graph
    searched: Graph
    back: Graph
    turn_of: Ints32
    n_roads: int
    n_nodes: int

    @classmethod
    def build(cls, network: RoadNetwork) -> Self:
        """Join every road to those onto which one may turn from it.

        Where nothing is banned it never pays to turn back to where the road came from, and this is left out.
        """
        n_roads, n_nodes = network.n_edges, network.n_nodes
        road, onto = allowed_turns(network)
        turns = ~network.no_through[network.heads[road]]
        if not network.bans:
            turns &= network.tails[road] != network.heads[onto]
        road, onto = road[turns], onto[turns]
        roads, arrivals, departures = np.arange(n_roads), n_roads + network.heads, n_roads + n_nodes + network.tails
        tails = np.concatenate((road, roads, departures))
        heads = np.concatenate((onto, arrivals, roads))
        whole = Graph.build(tails, heads, n_roads + 2 * n_nodes)
        # A banned way is a banned sequence of turns, where all of these are there.
        pairs = zip(road.tolist(), onto.tolist(), strict=True) if network.banned_ways else ()
        number = {turn: place for place, turn in enumerate(pairs)}
        ways = [[number.get(turn, -1) for turn in pairwise(way)] for way in network.banned_ways]
        split = Graph.build(tails, heads, n_roads + 2 * n_nodes, banned=[way for way in ways if min(way) >= 0])
        none = np.empty(0, dtype=np.int32)
        searched = split._replace(roads=none, copy_of=none, after=none, memory=1)  # its arcs as edges of their own
        return cls(whole, searched, searched.reverse(), split.roads, n_roads, n_nodes)


class VehiclePaths(NamedTuple):
    """The path of each vehicle: edges[start : start + length]."""

    start: Ints
    length: Ints
    edges: Ints32

    @property
    def indptr(self) -> Ints:
        """Where each path begins, once the paths stand in order."""
        return np.concatenate(([0], np.cumsum(self.length)))

    def in_order(self) -> "VehiclePaths":
        """Return the same with the paths one after the other."""
        ends = np.cumsum(self.length)
        starts = ends - self.length
        place = np.arange(ends[-1]) + np.repeat(self.start - starts, self.length)
        return VehiclePaths(starts, self.length, self.edges[place])

    def mixed(self, others: "VehiclePaths", moves: Bools) -> "VehiclePaths":
        """Return these paths in order, those of the vehicles that move taken from the others."""
        start = np.where(moves, len(self.edges) + others.start, self.start)
        length = np.where(moves, others.length, self.length)
        return VehiclePaths(start, length, np.concatenate((self.edges, others.edges))).in_order()


class Experience:
    """The travel times of one day, gathered while its vehicles drive."""

    def __init__(
        self, turns: Turns, empty_s: Floats, first_s: float, interval_s: float, most_cells: int = MOST_CELLS
    ) -> None:
        """Begin with no vehicle driven; `empty_s` are the times on roads without traffic, from `first_s` on.

        Where there would be more cells than `most_cells`, intervals become longer.
        """
        self._most_cells = most_cells
        self._turns, self._empty_s, self._first_s, self._interval_s = turns, empty_s, first_s, interval_s
        rows = turns.graph.n_edges + turns.n_roads  # of the turns, and of each road as a whole
        self._sums, self._numbers = np.zeros((rows, 2)), np.zeros((rows, 2), dtype=np.int32)

    def add(self, driven: Driven, paths: VehiclePaths, departure_s: Floats) -> None:
        """Take in what vehicles with these paths drove."""
        self._make_room(float((driven.entered_s + driven.travel_time_s).max()) - self._first_s)
        clock = self._first_s, self._interval_s
        _gather(self._turns.graph, driven, paths, departure_s, clock, self._sums, self._numbers)

    def _make_room(self, until_s: float) -> None:
        """Have intervals up to this time and one more, in which all roads are empty again."""
        while until_s // self._interval_s + 2 > self._sums.shape[1]:
            rows, bins = self._sums.shape
            if 2 * rows * bins <= self._most_cells:
                more = (0, 0), (0, bins)
                self._sums, self._numbers = np.pad(self._sums, more), np.pad(self._numbers, more)
            else:  # the same number of intervals, each twice as long
                sums, numbers = np.zeros_like(self._sums), np.zeros_like(self._numbers)
                sums[:, : bins // 2] = self._sums[:, ::2] + self._sums[:, 1::2]
                numbers[:, : bins // 2] = self._numbers[:, ::2] + self._numbers[:, 1::2]
                self._sums, self._numbers, self._interval_s = sums, numbers, 2 * self._interval_s

    def times(self) -> Floats:
        """Return the mean time of every turn by interval of entry."""
        return _mean_times(self._turns.graph, self._empty_s, self._sums, self._numbers, self._interval_s)

    def along(self, times: Floats, paths: VehiclePaths, departure_s: Floats) -> Floats:
        """Return what paths take at these times."""
        return _along(self._turns, times, paths, departure_s - self._first_s, self._interval_s)

    def quickest(
        self, times: Floats, origins: Ints32, goals: Ints32, departure_s: Floats
    ) -> tuple[Floats, VehiclePaths]:
        """Return what the quickest path of each trip takes at these times, and the path."""
        turns = self._turns
        work = Workspace.build(turns.searched)
        tails, since = turns.searched.tails, np.zeros(1)
        costs = EntryTimes(times, tails, turns.turn_of, work.distance, since, self._interval_s)
        # Trips to one destination are searched together: one tree of the least times steers all of them.
        order = np.lexsort((departure_s, goals))
        ends = np.column_stack((turns.n_roads + turns.n_nodes + origins, turns.n_roads + goals))[order].astype(np.int64)
        took, start, length, edges = _search_all(turns, costs, ends, departure_s[order] - self._first_s, work)
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        return took[back], VehiclePaths(start[back], length[back], edges)


class EntryTimes(NamedTuple):
    """The costs of a search: the time of a turn by when the road before it was entered.

    A road is entered when the search reached it, `reached` seconds after a departure at `since`; between the middles
    of two intervals times are interpolated.
    """

    table: Floats
    tails: Ints32
    turn_of: Ints32
    reached: Floats
    since: Floats
    interval_s: float


@lean_part
def _time_of(times: EntryTimes, turn: int) -> float:
    """Return the time that a turn takes from where the search has got to."""
    row = times.turn_of[turn] if times.turn_of.shape[0] > 0 else turn
    return _between(times.table[row], (times.since[0] + times.reached[times.tails[turn]]) / times.interval_s - 0.5)


@lean_part
def _between(row: Floats, place: float) -> float:
    """Interpolate between two of the numbers in a row."""
    if place <= 0.0:
        return float(row[0])
    before = int(place)
    if before >= len(row) - 1:
        return float(row[len(row) - 1])
    part = place - before
    return float((1.0 - part) * row[before] + part * row[before + 1])


priced_by(EntryTimes, _time_of)


@kernel
def _gather(
    graph: Graph,
    driven: Driven,
    paths: VehiclePaths,
    departure_s: Floats,
    clock: tuple[float, float],
    sums: Floats,
    numbers: Ints32,
) -> None:
    """Add the driven edges to the sums of their turns, of their roads and, for first edges, of the waiting outside."""
    first_s, interval_s = clock
    n_turns = graph.tails.size
    n_roads = sums.shape[0] - n_turns
    for record in range(len(driven.vehicles)):
        vehicle, place, road = driven.vehicles[record], driven.places[record], driven.edges[record]
        entered, took = driven.entered_s[record], driven.travel_time_s[record]
        column = int((entered - first_s) // interval_s)
        sums[n_turns + road, column] += took
        numbers[n_turns + road, column] += 1
        if place == 0:
            left = departure_s[vehicle]
            column_out, row = int((left - first_s) // interval_s), n_turns - n_roads + road
            sums[row, column_out] += entered - left
            numbers[row, column_out] += 1
        here = paths.start[vehicle] + place
        if place >= paths.length[vehicle] or paths.edges[here] != road:
            continue  # sent elsewhere on its way: what comes next is not known
        if place == paths.length[vehicle] - 1:
            row = n_turns - 2 * n_roads + road
            sums[row, column] += took
            numbers[row, column] += 1
            continue
        onto = paths.edges[here + 1]
        turn = _turn(graph, road, onto)
        if turn >= 0:
            sums[turn, column] += took
            numbers[turn, column] += 1


@lean_part
def _turn(graph: Graph, road: int, onto: int) -> int:
    """Return the number of the turn from one road onto another, -1 where it is not allowed."""
    for slot in range(graph.indptr[road], graph.indptr[road + 1]):
        turn = graph.out_edges[slot]
        if graph.heads[turn] == onto:
            return int(turn)
    return -1


@kernel
def _along(turns: Turns, table: Floats, paths: VehiclePaths, departure: Floats, interval_s: float) -> Floats:
    """Return what each path takes, road by road from its departure on."""
    graph, took = turns.graph, np.empty(len(departure))
    starts = graph.tails.size - turns.n_roads
    ends = starts - turns.n_roads
    for vehicle in range(len(departure)):
        first, n = paths.start[vehicle], paths.length[vehicle]
        now = departure[vehicle]
        now += _between(table[starts + paths.edges[first]], now / interval_s - 0.5)
        for place in range(first, first + n):
            road = paths.edges[place]
            turn = _turn(graph, road, paths.edges[place + 1]) if place < first + n - 1 else -1
            now += _between(table[turn if turn >= 0 else ends + road], now / interval_s - 0.5)
        took[vehicle] = now - departure[vehicle]
    return took


@kernel
def _mean_times(graph: Graph, empty_s: Floats, sums: Floats, numbers: Ints32, interval_s: float) -> Floats:
    """Return the time of every turn by interval of entry.

    Where nobody entered a road in an interval, it is empty, or as long as first in, first out demands: who enters
    later does not leave before those of the interval before.
    """
    n_turns, bins, n_roads = graph.tails.size, sums.shape[1], len(empty_s)
    table, whole = np.empty((n_turns, bins)), np.empty((n_roads, bins))
    for road in range(n_roads):
        before, waited = 0.0, 0.0
        out = n_turns - n_roads + road
        for column in range(bins):
            n = numbers[n_turns + road, column]
            before = sums[n_turns + road, column] / n if n > 0 else max(empty_s[road], before - interval_s)
            whole[road, column] = before
            n = numbers[out, column]
            waited = sums[out, column] / n if n > 0 else max(0.0, waited - interval_s)
            table[out, column] = waited
    for turn in range(n_turns - n_roads):
        road = graph.tails[turn]
        for column in range(bins):
            n = numbers[turn, column]
            table[turn, column] = (sums[turn, column] + _PRIOR * whole[road, column]) / (n + _PRIOR)
    return table


@kernel
def _search_all(
    turns: Turns, times: EntryTimes, ends: Ints, departure: Floats, work: Workspace
) -> tuple[Floats, Ints, Ints, Ints32]:
    """Search for the quickest path of each trip (from, to), which come by destination."""
    graph, n_trips = turns.searched, len(ends)
    n_places = len(graph.indptr) - 1
    least = np.empty(graph.tails.size)
    for turn in range(len(least)):
        least[turn] = times.table[turns.turn_of[turn] if turns.turn_of.shape[0] > 0 else turn].min()
    took, start, length = np.full(n_trips, np.inf), np.zeros(n_trips, dtype=np.int64), np.zeros(n_trips, dtype=np.int64)
    edges, path = np.empty(64 * (n_trips + n_places), dtype=np.int32), np.empty(n_places, dtype=np.int32)
    potential, used, goal = np.empty(n_places), 0, -1
    for trip in range(n_trips):
        if ends[trip, 1] != goal:
            goal = ends[trip, 1]
            shortest.search(turns.back, least, goal, -1, work.no_potential, 1.0, path[:0], np.inf, work)
            for node in range(n_places):
                known = work.stamp[node] >= work.generation[0]
                potential[node] = work.distance[node] if known else np.inf
        times.since[0] = departure[trip]
        if not shortest.search(graph, times, ends[trip, 0], goal, potential, 1.0, path[:0], np.inf, work):
            continue
        took[trip] = work.distance[goal]
        n = shortest.write_path(graph, work.parent, goal, path) - 1  # the last turn is onto no road
        if used + n > len(edges):
            edges = np.concatenate((edges, np.empty(len(edges) + n, dtype=np.int32)))
        start[trip], length[trip] = used, n
        for place in range(n):
            turn = turns.turn_of[path[place]] if turns.turn_of.shape[0] > 0 else path[place]
            edges[used + place] = turns.graph.heads[turn]
        used += n
    return took, start, length, edges[:used]
