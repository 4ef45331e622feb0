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

from routesim.arrays import Bools, Floats, Ints
from routesim.kernels import lean_kernel, prefetch
from routesim.roads.graph import Graph
from routesim.roads.shortest import priced_by
from routesim.traffic.engines.choice import BY_COUNT, Beliefs, Search, believed_at, kind_of, look, price_of, settle
from routesim.traffic.engines.compiled import (
    DEPARTED,
    EVENTS,
    LESSON,
    NO_WAY,
    OVER,
    PATHS,
    ROUTE,
    TIME,
    WANTED,
)
from routesim.traffic.engines.event_queue import NEAR, NEVER, EventQueue, add, advance, key_of, replace, take, time_of
from routesim.traffic.engines.fleet import COUNT, ENTERED, LENGTH, MOST_VEHICLES, START, Fleet
from routesim.traffic.engines.noise import lognormal_factor
from routesim.traffic.engines.records import BIN, EdgeLoads, Teaching, close_bin, count_entry, remembers, teach
from routesim.traffic.engines.window_counts import HEAD, HELD, OFFSET, ROOM, Windows, count_on, enter, make_room
from routesim.traffic.protocol import ASK

# What `drive` answers beyond what every core does: there is no room for entry times, travel times by count, or loads.
ENTRIES, TIMES, LOADS = range(PATHS + 1, PATHS + 4)
SERIAL = WANTED + 1  # the position of the next serial in the clock

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
    After an incident a table is read at count * scale, with a straight line between counts.
    """

    graph: Graph
    free_flow: Floats
    alpha: Floats
    per_capacity: Floats
    beta: Floats
    table: Floats
    last_exit: Floats  # of those on the edge so far; empty where overtaking is allowed
    scale: Floats  # one over the share of its capacity that an edge has; empty without incidents, or without a table
    closed: Bools  # whether nobody may enter; empty without incidents
    next_change_s: Floats  # when roads change next


class Present(NamedTuple):
    """What edges cost at the counts of a moment, for `search` of `routesim.roads.shortest`.

    Costs are seconds and tolls where `kind` is BY_SECONDS, what the router believes at the count where it is BY_COUNT,
    and else what it believes seconds to cost travellers of this kind. Where the table of travel times is too short an
    edge counts as closed, and `wanted` is its count.
    """

    roads: Roads
    beliefs: Beliefs
    windows: Windows
    since: float
    kind: int
    open_only: bool
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
    row = roads.table[edge if roads.table.shape[0] > 1 else 0]
    if len(roads.scale) > 0:
        place = count * roads.scale[edge]
        low = int(place)
        if low + 1 >= len(row):
            return np.nan
        return float(roads.free_flow[edge] * (row[low] + (place - low) * (row[low + 1] - row[low])))
    return float(roads.free_flow[edge] * row[count]) if count < len(row) else np.nan


@lean_kernel
def _reach(roads: Roads, edge: int, count: int) -> int:
    """Return up to where the table of travel times is read for an edge at a count."""
    return int(count * roads.scale[edge]) + 1 if len(roads.scale) > 0 else count


@lean_kernel
def _cost_now(present: Present, edge: int) -> float:
    """Return what an edge costs at the present count; infinite where it is closed or the table is too short."""
    roads = present.roads
    if present.open_only and len(roads.closed) > 0 and roads.closed[edge]:
        return np.inf
    count = count_on(present.windows, edge, present.since)
    if present.kind == BY_COUNT:
        return believed_at(present.beliefs, edge, count)
    seconds = _time_at(roads, edge, count)
    if np.isnan(seconds):
        present.wanted[0] = max(present.wanted[0], _reach(roads, edge, count))
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
        if learns and state[vehicle, ENTERED] > 0:
            column = teaching.bin_of[min(state[vehicle, COUNT], len(teaching.bin_of) - 1)]
            cell = paths[place - 1] * teaching.visits.shape[1] + column
            prefetch(teaching.visits, cell)
            prefetch(teaching.sums, cell)
            prefetch(teaching.squares, cell)


@lean_kernel
def _seek(world: World, vehicle: int, now: float, open_only: bool) -> int:
    """Find the path of a vehicle from where it is, at present counts; the answer is OVER where nothing is needed."""
    fleet, roads, beliefs, wanted = world.fleet, world.roads, world.beliefs, world.wanted
    kind = kind_of(fleet, vehicle)
    least = beliefs.least_weight[kind] if kind >= 0 else 1.0
    wanted[0] = -1
    costs = Present(roads, beliefs, world.windows, now - world.rules.window_s, kind, open_only, wanted)
    length = look(roads.graph, fleet, world.search, costs, least, vehicle)
    if wanted[0] >= 0:
        world.clock[WANTED] = wanted[0]
        return TIMES
    return settle(fleet, world.clock, vehicle, length, now)


@lean_kernel
def _choose(world: World, vehicle: int, now: float) -> int:
    """Find the path of a vehicle as `_seek` does; where there is none but over closed roads, it leads up to them."""
    need = _seek(world, vehicle, now, True)
    return _seek(world, vehicle, now, False) if need == NO_WAY and len(world.roads.closed) > 0 else need


@lean_kernel
def _is_shut(world: World, vehicle: int) -> bool:
    """Tell whether the edge that a vehicle enters next is closed."""
    state, closed = world.fleet.state[vehicle], world.roads.closed
    decided = state[ENTERED] < state[LENGTH]
    return bool(len(closed) > 0 and decided and closed[world.fleet.paths[state[START] + state[ENTERED]]])


@lean_kernel
def _wait(world: World, vehicle: int, departs: bool, now_key: int) -> None:
    """Let a vehicle whose next edge is closed look again when roads change next, if they ever do."""
    clock, then = world.clock, world.roads.next_change_s[0]
    tag = clock[SERIAL] * MOST_VEHICLES + vehicle
    clock[SERIAL] += 1
    if departs:
        clock[DEPARTED] += 1
        if then < np.inf:
            add(world.queue, key_of(then), tag, now_key)
    elif then < np.inf:
        replace(world.queue, key_of(then), tag, now_key)
    else:
        take(world.queue)


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
        if undecided or looks_again or _is_shut(world, vehicle):
            need = _choose(world, vehicle, now)
            if need != OVER:
                return need
        edge, count, spent = -1, 0, 0.0
        shut = _is_shut(world, vehicle)
        if not arrives and not shut:
            edge = fleet.paths[state[vehicle, START] + state[vehicle, ENTERED]]
            count = count_on(windows, edge, now - rules.window_s)
            if count == windows.rings[edge, ROOM] and not make_room(windows, edge):
                return ENTRIES
            spent = _time_at(roads, edge, count)
            if np.isnan(spent):
                clock[WANTED] = _reach(roads, edge, count)
                return TIMES
        if keeps and state[vehicle, ENTERED] > 0 and fleet.entered_s[vehicle] >= 0.0:
            if logs and teaching.logged[0] == len(teaching.log):
                return LESSON
            teach(teaching, fleet, vehicle, now)
        if shut:
            fleet.entered_s[vehicle] = -1.0  # the edge before is driven to its end
            _wait(world, vehicle, departs, now_key)
            continue
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
