"""The compiled core of the window engine: entries into edges, in order of time.

An event is a vehicle at the start of the next edge of its path, or at its end. Events are taken in order of
(time, serial); departures have the first serials, in order of the table, and every other event gets the next one
when it is scheduled. So a vehicle that sets out at time t goes before one that arrives from another edge at t.
Departures are read from the table as they come; the queue has the next event of every vehicle on the road. Events of
the same time are in order of their tags, serial * MOST_VEHICLES + vehicle.

`drive` runs until it is done or needs something; its answer says what. Nothing of an event has happened when it
stops at one, so after the need is met it simply goes on.
"""

from typing import NamedTuple

import numpy as np

from routesim.arrays import Floats, Ints
from routesim.kernels import lean_kernel, prefetch
from routesim.roads.graph import Graph
from routesim.roads.shortest import priced_by
from routesim.traffic.engines.choice import NO_ROOM, Beliefs, Search, adopt, kind_of, look, price_of
from routesim.traffic.engines.event_queue import NEAR, NEVER, EventQueue, add, advance, key_of, replace, take, time_of
from routesim.traffic.engines.fleet import COUNT, ENTERED, LENGTH, MOST_VEHICLES, START, Fleet
from routesim.traffic.engines.noise import lognormal_factor
from routesim.traffic.engines.records import BIN, EdgeLoads, Teaching, close_bin, count_entry, remembers, teach
from routesim.traffic.engines.window_counts import HEAD, HELD, OFFSET, ROOM, Windows, count_on, enter, make_room
from routesim.traffic.protocol import ASK

# What `drive` answers: all vehicles have arrived, the time is reached, a vehicle departs without a route, the log of
# driven edges is full, a vehicle has no way to its goal, or a pool is too small: of paths, entry times, travel times
# by count, or loads.
OVER, TIME, ROUTE, LESSON, NO_WAY, PATHS, ENTRIES, TIMES, LOADS = range(9)
# Positions in the clock: vehicles departed, the next serial, entries into edges, and the vehicle or count that an
# answer is about.
DEPARTED, SERIAL, EVENTS, WANTED = range(4)

LEAST_S = 1e-3  # the least time an edge takes: zero would let a vehicle be everywhere at once


class Rules(NamedTuple):
    """The numbers that hold for the whole run; `reroute_s` is 0 where nobody looks for a better way."""

    window_s: float
    bin_s: float
    noise: float
    seed: np.uint64
    reroute_s: float


class Roads(NamedTuple):
    """The network, and for each edge the rule that makes a travel time of a count.

    Where `table` is empty it is free_flow * (1 + alpha * (count * per_capacity) ** beta), `per_capacity` one over the
    entries per window that are the capacity; else free_flow * table[row, count], with one row for all or one an edge.
    """

    graph: Graph
    free_flow: Floats
    alpha: Floats
    per_capacity: Floats
    beta: Floats
    table: Floats
    last_exit: Floats  # of those on the edge so far; empty where overtaking is allowed


class Present(NamedTuple):
    """What edges cost at the counts of a moment, for `search` of `routesim.roads.shortest`.

    Costs are seconds and tolls where `kind` is -1, and else what the router believes seconds to cost travellers of
    this kind. Where the table of travel times is too short an edge counts as closed, and `wanted` is its count.
    """

    roads: Roads
    beliefs: Beliefs
    windows: Windows
    since: float
    kind: int
    wanted: Ints


class World(NamedTuple):
    """All that `drive` works on."""

    rules: Rules
    clock: Ints
    queue: EventQueue
    fleet: Fleet
    roads: Roads
    windows: Windows
    loads: EdgeLoads
    search: Search
    beliefs: Beliefs
    wanted: Ints  # the largest count beyond the table of travel times that a search came across, -1 where none
    teaching: Teaching


@lean_kernel
def _time_at(roads: Roads, edge: int, count: int) -> float:
    """Return the travel time of an edge at a count; nan where the table is too short for it."""
    if roads.table.shape[0] == 0:
        ratio, beta = count * roads.per_capacity[edge], roads.beta[edge]
        if beta == 4.0:
            square = ratio * ratio
            rise = square * square
        else:
            rise = ratio**beta
        return float(roads.free_flow[edge] * (1.0 + roads.alpha[edge] * rise))
    if count >= roads.table.shape[1]:
        return np.nan
    return float(roads.free_flow[edge] * roads.table[edge if roads.table.shape[0] > 1 else 0, count])


@lean_kernel
def _cost_now(present: Present, edge: int) -> float:
    """Return what an edge costs at the present count; infinite where the table of travel times is too short."""
    roads = present.roads
    count = count_on(present.windows, edge, present.since)
    seconds = _time_at(roads, edge, count)
    if np.isnan(seconds):
        present.wanted[0] = max(present.wanted[0], count)
        return np.inf
    return price_of(present.beliefs, present.kind, edge, seconds)


priced_by(Present, _cost_now)


@lean_kernel
def _look_ahead(world: World, size: int) -> None:
    """Start to fetch what the next events will need: misses of the cache that overlap cost little."""
    near, fleet, windows, teaching = world.queue.near, world.fleet, world.windows, world.teaching
    state, paths, rings = fleet.state, fleet.paths, windows.rings
    learns, weighs = teaching.visits.shape[0] > 0, len(fleet.cost) > 0
    entered = remembers(teaching)
    for row in range(size):
        vehicle = near[row, 1] & (MOST_VEHICLES - 1)
        prefetch(state, state.shape[1] * vehicle)
        if entered:
            prefetch(fleet.entered_s, vehicle)
        if weighs:
            prefetch(fleet.kind, vehicle)
            prefetch(fleet.cost, vehicle)
    for row in range(size):
        vehicle = near[row, 1] & (MOST_VEHICLES - 1)
        prefetch(paths, state[vehicle, START] + state[vehicle, ENTERED])
    for row in range(size):
        vehicle = near[row, 1] & (MOST_VEHICLES - 1)
        place = state[vehicle, START] + state[vehicle, ENTERED]
        if state[vehicle, ENTERED] < state[vehicle, LENGTH]:
            edge = paths[place]
            head, held = rings[edge, HEAD], rings[edge, HELD]
            prefetch(windows.pool, rings[edge, OFFSET] + head)
            prefetch(windows.pool, rings[edge, OFFSET] + ((head + held) & (rings[edge, ROOM] - 1)))
        if learns:
            column = teaching.bin_of[min(state[vehicle, COUNT], len(teaching.bin_of) - 1)]
            cell = paths[place - 1] * teaching.visits.shape[1] + column
            prefetch(teaching.visits, cell)
            prefetch(teaching.sums, cell)
            prefetch(teaching.squares, cell)


@lean_kernel
def _choose(world: World, vehicle: int, now: float) -> int:
    """Find the path of a vehicle from where it is, at present counts; the answer is OVER where nothing is needed."""
    fleet, roads, beliefs, wanted = world.fleet, world.roads, world.beliefs, world.wanted
    kind = kind_of(fleet, vehicle)
    least = beliefs.least_weight[kind] if kind >= 0 else 1.0
    wanted[0] = -1
    costs = Present(roads, beliefs, world.windows, now - world.rules.window_s, kind, wanted)
    length = look(roads.graph, fleet, world.search, costs, least, vehicle)
    if length == NO_ROOM:
        return PATHS
    if wanted[0] >= 0:
        world.clock[WANTED] = wanted[0]
        return TIMES
    if length == 0 and fleet.state[vehicle, LENGTH] == 0:
        world.clock[WANTED] = vehicle
        return NO_WAY
    adopt(fleet, vehicle, length, now)
    return OVER


@lean_kernel
def drive(until: float, world: World) -> int:
    """Take events in order until one at or after `until`, the end, or something is needed: see the answers above."""
    rules, clock, queue, fleet, roads = world.rules, world.clock, world.queue, world.fleet, world.roads
    windows, loads, teaching = world.windows, world.loads, world.teaching
    near, book, state, departure_s = queue.near, queue.book, fleet.state, fleet.departure_s
    keeps, logs, in_order = remembers(teaching), teaching.log.shape[0] > 0, len(roads.last_exit) > 0
    bin_end = (loads.book[BIN] + 1) * rules.bin_s
    while True:
        departs = clock[DEPARTED] < len(departure_s)
        now_key = key_of(departure_s[clock[DEPARTED]]) if departs else NEVER
        if book[NEAR] == 0:
            advance(queue, now_key)
            _look_ahead(world, book[NEAR])
        if book[NEAR] > 0 and near[0, 0] < now_key:
            departs, now_key = False, near[0, 0]
        elif not departs:
            return OVER
        vehicle = int(clock[DEPARTED] if departs else near[0, 1] & (MOST_VEHICLES - 1))
        now = time_of(now_key)
        if now >= until:
            return TIME
        arrives = not departs and state[vehicle, ENTERED] == state[vehicle, LENGTH]
        if now >= bin_end and not arrives:
            if not close_bin(loads, now, rules.bin_s):
                return LOADS
            bin_end = (loads.book[BIN] + 1) * rules.bin_s
        undecided = departs and state[vehicle, LENGTH] == 0
        if undecided and fleet.choice[vehicle] == ASK:
            clock[WANTED] = vehicle
            return ROUTE
        looks_again = (
            rules.reroute_s > 0.0
            and not departs
            and not arrives
            and fleet.reroutes[vehicle]
            and now - fleet.chosen_s[vehicle] >= rules.reroute_s
        )
        if undecided or looks_again:
            need = _choose(world, vehicle, now)
            if need != OVER:
                return need
        edge, count, spent = -1, 0, 0.0
        if not arrives:
            edge = fleet.paths[state[vehicle, START] + state[vehicle, ENTERED]]
            count = count_on(windows, edge, now - rules.window_s)
            if count == windows.rings[edge, ROOM] and not make_room(windows, edge):
                return ENTRIES
            spent = _time_at(roads, edge, count)
            if np.isnan(spent):
                clock[WANTED] = count
                return TIMES
        if keeps and not departs:
            if logs and teaching.logged[0] == len(teaching.log):
                return LESSON
            teach(teaching, fleet, vehicle, now)
        if arrives:
            fleet.arrival_s[vehicle] = now
            take(queue)
            continue
        count_entry(loads, edge, spent)
        if rules.noise > 0.0:
            spent *= lognormal_factor(rules.noise, rules.seed, vehicle, state[vehicle, ENTERED])
        leaves = now + max(spent, LEAST_S)
        if in_order:
            leaves = max(leaves, roads.last_exit[edge])
            roads.last_exit[edge] = leaves
        enter(windows, edge, now)
        state[vehicle, ENTERED] += 1
        state[vehicle, COUNT] = count
        if keeps:
            fleet.entered_s[vehicle] = now
        clock[EVENTS] += 1
        tag = clock[SERIAL] * MOST_VEHICLES + vehicle
        clock[SERIAL] += 1
        if departs:
            add(queue, key_of(leaves), tag, now_key)
            clock[DEPARTED] += 1
        else:
            replace(queue, key_of(leaves), tag, now_key)
