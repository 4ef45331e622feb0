"""The compiled core of the traffic simulator: a queue of edge entries, and who entered each edge in the window.

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
from numpy.typing import NDArray

from routesim.kernels import lean_kernel, prefetch
from routesim.roads import shortest
from routesim.roads.graph import Graph
from routesim.roads.shortest import Workspace, priced_by
from routesim.traffic.engines.event_queue import NEAR, NEVER, Queue, add, advance, key_of, replace, take, time_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

# What `drive` answers.
DONE, PAUSED, ASKS, PATHS_FULL, WINDOWS_FULL, TABLE_SHORT, LOADS_FULL, LOG_FULL, NO_WAY = range(9)
# Positions in the clock.
DEPARTED, SERIAL, EVENTS, ARRIVED, USED_PATHS, USED_WINDOWS, USED_LOADS, LOGGED, BIN, TOUCHED, WANTED = range(11)
# Columns of Vehicles.state: where the path starts in the pool, its length (0: undecided), edges entered, count met.
START, LENGTH, ENTERED, COUNT = range(4)
# Columns of Windows.rings: where the ring starts, its capacity (a power of 2), its oldest entry, its size.
OFFSET, ROOM, HEAD, HELD = range(4)

MOST_VEHICLES = 1 << 24
LEAST_S = 1e-3  # the least time an edge takes: zero would let a vehicle be everywhere at once
# Instead of a path: stop and ask when it departs; take the quickest path of that moment; or the one that costs the
# traveller least.
ASK, GREEDY, WEIGHED = -1, -2, -3


class Vehicles(NamedTuple):
    """One row a vehicle, in order of departure."""

    state: Longs
    departure_s: Floats
    arrival_s: Floats
    entered_s: Floats
    goal: Ints  # node
    goal_row: Ints  # row of Search.to_go
    choice: NDArray[np.int8]  # ASK, GREEDY or WEIGHED while the path is undecided
    reroutes: NDArray[np.bool_]
    chosen_s: Floats
    kind: Ints  # row of Roads.rates; empty where travellers do not differ
    cost: Floats  # of the edges driven so far; empty likewise


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
    toll: Floats
    last_exit: Floats  # of those on the edge so far; empty where overtaking is allowed
    rates: Floats  # what a second on each edge costs each kind of traveller; empty where they do not differ
    weights: Floats  # what a router believes of the rates, which WEIGHED goes by
    least_weight: Floats  # of all edges, for each kind
    charge: Floats  # what WEIGHED adds to the cost of each edge


class Windows(NamedTuple):
    """The entry times of the last window, a ring for each edge in a common pool."""

    rings: Longs
    pool: Floats
    free: Longs  # by power of 2: the offset of a freed ring, which holds the next one's, or -1


class Loads(NamedTuple):
    """Entries by edge: the present time bin, which edges it touched, and the bins before as (bin, edge, entries).

    Beside the entries stand the travel times of those who entered, added up, at the counts they met and without noise.
    """

    now: Ints
    seconds_now: Floats
    touched: Ints
    rows: Longs
    row_seconds: Floats


class Search(NamedTuple):
    """What the search for a path at present counts needs; `to_go` bounds the time from a node to each goal."""

    to_go: Floats
    work: Workspace
    wanted: Longs


class Present(NamedTuple):
    """What edges cost at the counts of a moment, for `search` of `routesim.roads.shortest`.

    Costs are seconds and tolls where `kind` is -1, and else what the router believes seconds to cost travellers of
    this kind. Where the table of travel times is too short an edge counts as closed, and `wanted` is its count.
    """

    roads: Roads
    windows: Windows
    since: float
    kind: int
    wanted: Longs


class Lessons(NamedTuple):
    """What driven edges taught: uses, summed times and squares by (edge, bin of the count), or a log of them all."""

    bin_of: NDArray[np.int16]
    visits: Longs
    sums: Floats
    squares: Floats
    log: Floats  # rows of vehicle, place on the path, edge, count, entered_s, travel_time_s, cost


@lean_kernel
def _uniform(x: np.uint64) -> float:
    """Return a number between 0 and 1 that depends on `x` alone (splitmix64)."""
    z = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (float(z >> np.uint64(11)) + 0.5) / 9007199254740992.0


@lean_kernel
def _normal(seed: np.uint64, vehicle: int, place: int) -> float:
    """Return a standard normal number that depends on nothing but these three (Box-Muller)."""
    step = np.uint64(0x9E3779B97F4A7C15)
    x = seed + np.uint64(vehicle) * step * np.uint64(3) + np.uint64(place) * np.uint64(0xD1B54A32D192ED03)
    one, two = _uniform(x + step), _uniform(x + step + step)
    return float(np.sqrt(-2.0 * np.log(one)) * np.cos(2.0 * np.pi * two))


@lean_kernel
def _factor(noise: float, seed: np.uint64, vehicle: int, place: int) -> float:
    """Return the noise of a vehicle at a place of its path: lognormal, of mean 1."""
    return float(np.exp(noise * _normal(seed, vehicle, place) - noise * noise / 2.0))


@lean_kernel
def _count(rings: Longs, pool: Floats, edge: int, since: float) -> int:
    """Forget the entries into an edge up to and including `since`; return how many are left."""
    held = rings[edge, HELD]
    if held > 0:
        head, offset, mask = rings[edge, HEAD], rings[edge, OFFSET], rings[edge, ROOM] - 1
        if pool[offset + head] <= since:
            while held > 0 and pool[offset + head] <= since:
                head = (head + 1) & mask
                held -= 1
            rings[edge, HEAD], rings[edge, HELD] = head, held
    return int(held)


@lean_kernel
def _make_room(windows: Windows, edge: int, clock: Longs) -> bool:
    """Give an edge whose ring is full one of twice the size; False if the pool has no room for it."""
    ring = windows.rings[edge]
    room = max(np.int64(4), 2 * ring[ROOM])
    power = 0
    while (1 << power) < room:
        power += 1
    offset = windows.free[power]
    if offset >= 0:
        windows.free[power] = np.int64(windows.pool[offset])
    else:
        if clock[USED_WINDOWS] + room > len(windows.pool):
            return False
        offset = clock[USED_WINDOWS]
        clock[USED_WINDOWS] += room
    for k in range(ring[HELD]):
        windows.pool[offset + k] = windows.pool[ring[OFFSET] + ((ring[HEAD] + k) & (ring[ROOM] - 1))]
    if ring[ROOM] > 0:
        # The old ring joins the list of free rings of its size.
        windows.pool[ring[OFFSET]] = float(windows.free[power - 1])
        windows.free[power - 1] = ring[OFFSET]
    ring[OFFSET], ring[ROOM], ring[HEAD] = offset, room, 0
    return True


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
    roads, windows = present.roads, present.windows
    count = _count(windows.rings, windows.pool, edge, present.since)
    seconds = _time_at(roads, edge, count)
    if np.isnan(seconds):
        present.wanted[0] = max(present.wanted[0], count)
        return np.inf
    if present.kind >= 0:
        return float(seconds * roads.weights[present.kind, edge] + roads.charge[edge])
    return float(seconds + roads.toll[edge])


priced_by(Present, _cost_now)


@lean_kernel
def _find(
    roads: Roads,
    windows: Windows,
    search: Search,
    origin: int,
    goal: int,
    row: int,
    kind: int,
    since: float,
    out: Ints,
) -> int:
    """Find the path that costs least at present counts and write it to `out`.

    Returns its length, 0 where there is none, or -1 - count where the table of travel times is too short.
    """
    work = search.work
    potential = search.to_go[row] if search.to_go.shape[0] > 0 else work.no_potential
    least = roads.least_weight[kind] if kind >= 0 else 1.0
    search.wanted[0] = -1
    costs = Present(roads, windows, since, kind, search.wanted)
    found = shortest.search(roads.graph, costs, origin, goal, potential, least, out[:0], np.inf, work)
    if search.wanted[0] >= 0:
        return int(-1 - search.wanted[0])
    return shortest.write_path(roads.graph, work.parent, goal, out) if found else 0


@lean_kernel
def _look_ahead(
    near: Longs, size: int, vehicles: Vehicles, paths: Ints, windows: Windows, lessons: Lessons, remembers: bool
) -> None:
    """Start to fetch what the next events will need: misses of the cache that overlap cost little."""
    state, rings = vehicles.state, windows.rings
    learns, weighs = lessons.visits.shape[0] > 0, len(vehicles.cost) > 0
    for row in range(size):
        vehicle = near[row, 1] & (MOST_VEHICLES - 1)
        prefetch(state, state.shape[1] * vehicle)
        if remembers:
            prefetch(vehicles.entered_s, vehicle)
        if weighs:
            prefetch(vehicles.kind, vehicle)
            prefetch(vehicles.cost, vehicle)
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
            column = lessons.bin_of[min(state[vehicle, COUNT], len(lessons.bin_of) - 1)]
            cell = paths[place - 1] * lessons.visits.shape[1] + column
            prefetch(lessons.visits, cell)
            prefetch(lessons.sums, cell)
            prefetch(lessons.squares, cell)


@lean_kernel
def counts_now(windows: Windows, since: float, out: Ints) -> None:
    """Fill `out` with the count of every edge."""
    for edge in range(len(out)):
        out[edge] = _count(windows.rings, windows.pool, edge, since)


@lean_kernel
def drive(
    until: float,
    window_s: float,
    bin_s: float,
    noise: float,
    seed: np.uint64,
    reroute_s: float,
    queue: Queue,
    clock: Longs,
    vehicles: Vehicles,
    paths: Ints,
    roads: Roads,
    windows: Windows,
    loads: Loads,
    search: Search,
    lessons: Lessons,
) -> int:
    """Take events in order until one at or after `until`, the end, or something is needed: see the answers above."""
    near, book = queue.near, queue.book
    state, departure_s, entered_s = vehicles.state, vehicles.departure_s, vehicles.entered_s
    rings, pool, load_now, touched = windows.rings, windows.pool, loads.now, loads.touched
    seconds_now = loads.seconds_now
    n_vehicles, n_nodes = len(departure_s), len(roads.graph.indptr) - 1
    learns, logs, weighs = lessons.visits.shape[0] > 0, lessons.log.shape[0] > 0, roads.rates.shape[0] > 0
    in_order = len(roads.last_exit) > 0
    bin_end = (clock[BIN] + 1) * bin_s
    while True:
        departs = clock[DEPARTED] < n_vehicles
        now_key = key_of(departure_s[clock[DEPARTED]]) if departs else NEVER
        if book[NEAR] == 0:
            advance(queue, now_key)
            _look_ahead(near, book[NEAR], vehicles, paths, windows, lessons, learns or logs or weighs)
        if book[NEAR] > 0 and near[0, 0] < now_key:
            departs, now_key = False, near[0, 0]
        elif not departs:
            return DONE
        vehicle = int(clock[DEPARTED] if departs else near[0, 1] & (MOST_VEHICLES - 1))
        now = time_of(now_key)
        if now >= until:
            return PAUSED
        since = now - window_s
        arrives = not departs and state[vehicle, ENTERED] == state[vehicle, LENGTH]
        if now >= bin_end and not arrives:
            if clock[USED_LOADS] + clock[TOUCHED] > len(loads.rows):
                return LOADS_FULL
            for k in range(clock[TOUCHED]):
                place = clock[USED_LOADS]
                loads.rows[place, 0], loads.rows[place, 1] = clock[BIN], touched[k]
                loads.rows[place, 2], loads.row_seconds[place] = load_now[touched[k]], seconds_now[touched[k]]
                load_now[touched[k]], seconds_now[touched[k]] = 0, 0.0
                clock[USED_LOADS] += 1
            clock[TOUCHED] = 0
            clock[BIN] = np.int64(now // bin_s)
            bin_end = (clock[BIN] + 1) * bin_s
        if departs and state[vehicle, LENGTH] == 0:
            if vehicles.choice[vehicle] == ASK:
                clock[WANTED] = vehicle
                return ASKS
            if clock[USED_PATHS] + n_nodes > len(paths):
                return PATHS_FULL
            room = paths[clock[USED_PATHS] :]
            origin = int(state[vehicle, START])  # until the path is known: the node where the vehicle starts
            kind = int(vehicles.kind[vehicle]) if vehicles.choice[vehicle] == WEIGHED else -1
            goal, row_to_go = vehicles.goal[vehicle], vehicles.goal_row[vehicle]
            length = _find(roads, windows, search, origin, goal, row_to_go, kind, since, room)
            if length <= 0:
                clock[WANTED] = vehicle if length == 0 else -1 - length
                return NO_WAY if length == 0 else TABLE_SHORT
            state[vehicle, START], state[vehicle, LENGTH] = clock[USED_PATHS], length
            clock[USED_PATHS] += length
            vehicles.chosen_s[vehicle] = now
        elif (
            reroute_s > 0.0
            and not departs
            and not arrives
            and vehicles.reroutes[vehicle]
            and now - vehicles.chosen_s[vehicle] >= reroute_s
        ):
            driven = state[vehicle, ENTERED]
            if clock[USED_PATHS] + driven + n_nodes > len(paths):
                return PATHS_FULL
            room = paths[clock[USED_PATHS] + driven :]
            at = int(roads.graph.heads[paths[state[vehicle, START] + driven - 1]])
            kind = int(vehicles.kind[vehicle]) if vehicles.choice[vehicle] == WEIGHED else -1
            goal, row_to_go = vehicles.goal[vehicle], vehicles.goal_row[vehicle]
            length = _find(roads, windows, search, at, goal, row_to_go, kind, since, room)
            if length < 0:
                clock[WANTED] = -1 - length
                return TABLE_SHORT
            vehicles.chosen_s[vehicle] = now
            same = length == state[vehicle, LENGTH] - driven
            for k in range(length):
                same = same and room[k] == paths[state[vehicle, START] + driven + k]
            if length > 0 and not same:
                for k in range(driven):
                    paths[clock[USED_PATHS] + k] = paths[state[vehicle, START] + k]
                state[vehicle, START], state[vehicle, LENGTH] = clock[USED_PATHS], driven + length
                clock[USED_PATHS] += driven + length
        edge, count, spent = -1, 0, 0.0
        if not arrives:
            edge = paths[state[vehicle, START] + state[vehicle, ENTERED]]
            count = _count(rings, pool, edge, since)
            if count == rings[edge, ROOM] and not _make_room(windows, edge, clock):
                return WINDOWS_FULL
            spent = _time_at(roads, edge, count)
            if np.isnan(spent):
                clock[WANTED] = count
                return TABLE_SHORT
        if not departs:
            if logs and clock[LOGGED] == len(lessons.log):
                return LOG_FULL
            # The edge before has been driven: only now is its travel time known to anybody.
            if learns or logs or weighs:
                left, took = paths[state[vehicle, START] + state[vehicle, ENTERED] - 1], now - entered_s[vehicle]
                cost = took
                if weighs:
                    cost *= roads.rates[vehicles.kind[vehicle], left]
                    vehicles.cost[vehicle] += cost
                if learns:
                    column = lessons.bin_of[min(state[vehicle, COUNT], len(lessons.bin_of) - 1)]
                    lessons.visits[left, column] += 1
                    lessons.sums[left, column] += took
                    lessons.squares[left, column] += took * took
                if logs:
                    row = lessons.log[clock[LOGGED]]
                    row[0], row[1], row[2], row[3] = vehicle, state[vehicle, ENTERED] - 1, left, state[vehicle, COUNT]
                    row[4], row[5], row[6] = entered_s[vehicle], took, cost
                    clock[LOGGED] += 1
        if arrives:
            vehicles.arrival_s[vehicle] = now
            clock[ARRIVED] += 1
            take(queue)
            continue
        if load_now[edge] == 0:
            touched[clock[TOUCHED]] = edge
            clock[TOUCHED] += 1
        load_now[edge] += 1
        seconds_now[edge] += spent
        if noise > 0.0:
            spent *= _factor(noise, seed, vehicle, state[vehicle, ENTERED])
        leaves = now + max(spent, LEAST_S)
        if in_order:
            leaves = max(leaves, roads.last_exit[edge])
            roads.last_exit[edge] = leaves
        pool[rings[edge, OFFSET] + ((rings[edge, HEAD] + rings[edge, HELD]) & (rings[edge, ROOM] - 1))] = now
        rings[edge, HELD] += 1
        state[vehicle, ENTERED] += 1
        state[vehicle, COUNT] = count
        if learns or logs or weighs:
            entered_s[vehicle] = now
        clock[EVENTS] += 1
        tag = clock[SERIAL] * MOST_VEHICLES + vehicle
        clock[SERIAL] += 1
        if departs:
            add(queue, key_of(leaves), tag, now_key)
            clock[DEPARTED] += 1
        else:
            replace(queue, key_of(leaves), tag, now_key)
