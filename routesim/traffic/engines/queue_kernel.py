"""The compiled core of the queue engine: vehicles in lines, one event for each passage from a road to the next.

Vehicles stand in lines, first in first out: one line for each lane of a road, and one outside each road for those who
depart into it. Whoever is first in a line can leave it once the free-flow time is over, the one before is a headway
ahead, and the signal is green; then the next road has to take it. A road takes a vehicle an entry headway after the
one before, and where it stores only so many, a wave after the exit that made room for it. Lines whose first vehicle is
not taken wait at the gate of the road, which takes from them in proportion to their capacity. A line that has waited
for `stuck_s` seconds moves by force, which is counted.

On the agenda are lines (when their first vehicle can leave) and gates (when they can take the next). `drive` runs
until it is done or needs something, as in the window engine: nothing of an event has happened when it stops at one.
"""

from typing import NamedTuple

import numpy as np

from routesim.arrays import Bools, Floats, Ints, Ints32
from routesim.kernels import lean_kernel
from routesim.roads.graph import Graph
from routesim.roads.shortest import priced_by
from routesim.traffic.engines.agenda import Agenda, cancel, schedule
from routesim.traffic.engines.choice import NO_ROOM, Beliefs, Search, adopt, kind_of, look, price_of
from routesim.traffic.engines.fleet import COUNT, ENTERED, LENGTH, START, Fleet
from routesim.traffic.engines.noise import lognormal_factor
from routesim.traffic.engines.records import (
    BIN,
    EdgeLoads,
    Standing,
    Teaching,
    add_seconds,
    close_bin,
    count_entry,
    has_room,
    remembers,
    stand,
    teach,
)
from routesim.traffic.protocol import ASK

# What `drive` answers: all vehicles have arrived or can never move again, the time is reached, a vehicle departs
# without a route, the log of driven edges is full, a vehicle has no way to its goal, or a pool is too small.
OVER, TIME, ROUTE, LESSON, NO_WAY, PATHS, LOADS = range(7)
# Positions in the clock: vehicles departed, entries into edges, moves by force, and the vehicle an answer is about.
DEPARTED, EVENTS, FORCED, WANTED = range(4)
# Columns of Lines.who: the first and last vehicle, how many there are, the road they are on or outside of, the road
# they wait for, and their neighbours among those who wait for it.
FIRST, LAST, SIZE, EDGE, BLOCKED, AFTER, BEFORE = range(7)
# Columns of Lines.when: the headway of those who leave, the last exit, since when the line waits, the tag by which
# gates take lines in turn, and how far each passage puts it back.
HEADWAY, LEFT_S, SINCE_S, TAG, STEP = range(5)
# Columns of Roads.numbers: vehicles that entered and left, how many the road stores (0: any number), where its ring of
# exit times begins, the first and last line at its gate, its first lane, and the number of its lanes.
IN, OUT, STORAGE, RING, WAITS, LAST_WAITS, LANE, LANES = range(8)
# Columns of Roads.flows: the free-flow time, the headway of those who enter, the time a wave takes from end to start,
# the last entry, since when the number of vehicles is what it is, the tag of the line taken last, the present seconds
# between exits, and the last exit.
FREE_S, GAP_S, WAVE_S, LAST_IN, CHANGED_S, SERVED, PACE_S, LAST_OUT = range(8)
RIGHT, STRAIGHT, LEFT = range(3)

LEAST_S = 1e-3  # the least time an edge takes: zero would let a vehicle be everywhere at once
_TURN = np.pi / 4  # from which on a change of direction is a turn
_MEMORY = 0.1  # the weight of the newest exit in the pace


class Rules(NamedTuple):
    """The numbers that hold for the whole run; `reroute_s` is 0 where nobody looks for a better way."""

    bin_s: float
    noise: float
    headway_noise: float
    seed: np.uint64
    reroute_s: float
    stuck_s: float


class Signals(NamedTuple):
    """When it is green at the end of a road: rows first[e] … first[e + 1] - 1, of all movements where `to` is -1.

    A row is green from `start_s` on for `green_s` seconds, every `cycle_s` seconds.
    """

    first: Ints
    to: Ints32
    cycle_s: Floats
    start_s: Floats
    green_s: Floats


class Lines(NamedTuple):
    """The lines: those of the lanes, then the one outside each road; columns as named above."""

    who: Ints32
    when: Floats
    after: Ints32  # for each vehicle the next one in its line
    ready_s: Floats  # for each vehicle when it reaches the end of its road on its own


class Roads(NamedTuple):
    """The roads, with columns as named above."""

    graph: Graph
    numbers: Ints
    flows: Floats
    ring: Floats
    headway_s: Floats  # between exits from all lanes together
    red_s: Floats  # the mean wait for green
    closed: Bools
    lanes: Ints32  # for each road and direction of the turn at its end the first lane and the one after the last
    leaves: Floats  # the direction in which a road leaves its node
    arrives: Floats  # and that in which it arrives


class Present(NamedTuple):
    """What roads cost at a moment, for `search` of `routesim.roads.shortest`."""

    roads: Roads
    beliefs: Beliefs
    who: Ints32
    now: float
    kind: int


class World(NamedTuple):
    """All that `drive` works on."""

    rules: Rules
    clock: Ints
    agenda: Agenda
    fleet: Fleet
    lines: Lines
    roads: Roads
    signals: Signals
    loads: EdgeLoads
    standing: Standing
    search: Search
    beliefs: Beliefs
    teaching: Teaching


@lean_kernel
def seconds_now(roads: Roads, edge: int, vehicles: int, now: float) -> float:
    """Return the time that a road is expected to take with so many vehicles ahead, at the pace of its exits."""
    flows = roads.flows[edge]
    pace = max(flows[PACE_S], (1.0 - _MEMORY) * flows[PACE_S] + _MEMORY * (now - flows[LAST_OUT]))
    return float(max(flows[FREE_S] + roads.red_s[edge], (vehicles + 0.5) * pace))


@lean_kernel
def _cost_now(present: Present, edge: int) -> float:
    """Return what a road costs at present; infinite where it is closed."""
    roads = present.roads
    if roads.closed[edge]:
        return np.inf
    outside = present.who[present.who.shape[0] - roads.numbers.shape[0] + edge, SIZE]
    vehicles = roads.numbers[edge, IN] - roads.numbers[edge, OUT] + outside
    return price_of(present.beliefs, present.kind, edge, seconds_now(roads, edge, vehicles, present.now))


priced_by(Present, _cost_now)


@lean_kernel
def _choose(world: World, vehicle: int, now: float) -> int:
    """Find the path of a vehicle from where it is, at present; the answer is OVER where nothing is needed."""
    fleet, roads, beliefs = world.fleet, world.roads, world.beliefs
    kind = kind_of(fleet, vehicle)
    least = beliefs.least_weight[kind] if kind >= 0 else 1.0
    costs = Present(roads, beliefs, world.lines.who, now, kind)
    length = look(roads.graph, fleet, world.search, costs, least, vehicle)
    if length == NO_ROOM:
        return PATHS
    if length == 0 and fleet.state[vehicle, LENGTH] == 0:
        world.clock[WANTED] = vehicle
        return NO_WAY
    adopt(fleet, vehicle, length, now)
    return OVER


@lean_kernel
def _next_edge(fleet: Fleet, vehicle: int) -> int:
    """Return the road that a vehicle enters next, -1 where it has arrived at the end of this one."""
    state = fleet.state[vehicle]
    return int(fleet.paths[state[START] + state[ENTERED]]) if state[ENTERED] < state[LENGTH] else -1


@lean_kernel
def _green(signals: Signals, edge: int, to: int, time: float) -> float:
    """Return the first moment from `time` on at which it is green for those who go on to a road."""
    best, any_row = np.inf, False
    for row in range(signals.first[edge], signals.first[edge + 1]):
        if signals.to[row] >= 0 and signals.to[row] != to:
            continue
        any_row = True
        cycle = signals.cycle_s[row]
        phase = (time - signals.start_s[row]) % cycle
        best = min(best, time if phase < signals.green_s[row] else time + (cycle - phase))
    return float(best) if any_row else time


@lean_kernel
def _due(world: World, line: int, vehicle: int, earliest: float) -> float:
    """Return when a vehicle that is first in its line can leave it."""
    lines, signals = world.lines, world.signals
    time = max(lines.ready_s[vehicle], earliest)
    edge = lines.who[line, EDGE]
    outside = line >= lines.who.shape[0] - world.roads.numbers.shape[0]
    if not outside and signals.first[edge] < signals.first[edge + 1]:
        to = _next_edge(world.fleet, vehicle)
        if to >= 0:
            time = _green(signals, edge, to, time)
    return time


@lean_kernel
def _headway(world: World, line: int, vehicle: int) -> float:
    """Return the time that the line's exit is taken by a vehicle."""
    headway = world.lines.when[line, HEADWAY]
    if world.rules.headway_noise > 0.0:
        place = world.fleet.state[vehicle, ENTERED]
        headway *= lognormal_factor(world.rules.headway_noise, ~world.rules.seed, vehicle, place)
    return float(headway)


@lean_kernel
def _lane(roads: Roads, lines: Lines, edge: int, to: int) -> int:
    """Return the lane of a road with the fewest vehicles among those from which it goes on to another."""
    numbers = roads.numbers[edge]
    first, n_lanes = numbers[LANE], numbers[LANES]
    if n_lanes == 1:
        return int(first)
    low, high = np.int64(0), n_lanes
    if to >= 0:
        turn = (roads.leaves[to] - roads.arrives[edge] + np.pi) % (2.0 * np.pi) - np.pi
        which = LEFT if turn > _TURN else (RIGHT if turn < -_TURN else STRAIGHT)
        low, high = np.int64(roads.lanes[edge, 2 * which]), np.int64(roads.lanes[edge, 2 * which + 1])
    best = first + low
    for lane in range(first + low + 1, first + high):
        if lines.who[lane, SIZE] < lines.who[best, SIZE]:
            best = lane
    return int(best)


@lean_kernel
def _room_at(roads: Roads, edge: int) -> float:
    """Return when a road can take the next vehicle; infinite while it is full or closed."""
    if roads.closed[edge]:
        return np.inf
    numbers, flows = roads.numbers[edge], roads.flows[edge]
    time = flows[LAST_IN] + flows[GAP_S]
    storage = numbers[STORAGE]
    if storage > 0:
        if numbers[IN] - numbers[OUT] >= storage:
            return np.inf
        time = max(time, roads.ring[numbers[RING] + numbers[IN] % storage] + flows[WAVE_S])
    return float(time)


@lean_kernel
def _schedule_gate(world: World, edge: int) -> None:
    """Let the gate of a road be due when it can take the next, or when the line that waits longest moves by force."""
    lines, roads = world.lines, world.roads
    gate = lines.who.shape[0] + edge
    first = roads.numbers[edge, WAITS]
    if first < 0:
        cancel(world.agenda, gate)
        return
    time = _room_at(roads, edge)
    if not roads.closed[edge]:
        time = min(time, lines.when[first, SINCE_S] + world.rules.stuck_s)
    schedule(world.agenda, gate, time)


@lean_kernel
def _wait(world: World, line: int, edge: int, now: float) -> None:
    """Let a line wait at the gate of a road."""
    who, numbers = world.lines.who, world.roads.numbers[edge]
    cancel(world.agenda, line)
    world.lines.when[line, SINCE_S] = now
    world.lines.when[line, TAG] = world.roads.flows[edge, SERVED] + world.lines.when[line, STEP]
    last = numbers[LAST_WAITS]
    who[line, BLOCKED], who[line, AFTER], who[line, BEFORE] = edge, -1, last
    numbers[LAST_WAITS] = line
    if last >= 0:
        who[last, AFTER] = line
    else:
        numbers[WAITS] = line
        _schedule_gate(world, edge)


@lean_kernel
def _stop_waiting(world: World, line: int) -> None:
    """Take a line away from the gate at which it waits."""
    who = world.lines.who
    numbers = world.roads.numbers[who[line, BLOCKED]]
    before, after = who[line, BEFORE], who[line, AFTER]
    if before >= 0:
        who[before, AFTER] = after
    else:
        numbers[WAITS] = after
    if after >= 0:
        who[after, BEFORE] = before
    else:
        numbers[LAST_WAITS] = before
    who[line, BLOCKED] = -1


@lean_kernel
def _append(lines: Lines, line: int, vehicle: int) -> bool:
    """Put a vehicle at the end of a line; say whether it is the first there."""
    who = lines.who[line]
    lines.after[vehicle] = -1
    who[SIZE] += 1
    alone = who[FIRST] < 0
    if alone:
        who[FIRST] = vehicle
    else:
        lines.after[who[LAST]] = vehicle
    who[LAST] = vehicle
    return bool(alone)


@lean_kernel
def _leave(world: World, line: int, now: float) -> int:
    """Take the first vehicle out of a line, give its place on the road free, and let the next one come."""
    lines, roads, agenda = world.lines, world.roads, world.agenda
    who = lines.who[line]
    vehicle = who[FIRST]
    edge, outside = who[EDGE], line >= lines.who.shape[0] - roads.numbers.shape[0]
    if not outside:
        numbers, flows = roads.numbers[edge], roads.flows[edge]
        add_seconds(world.loads, edge, (numbers[IN] - numbers[OUT]) * (now - flows[CHANGED_S]))
        flows[CHANGED_S] = now
        if numbers[STORAGE] > 0:
            roads.ring[numbers[RING] + numbers[OUT] % numbers[STORAGE]] = now
        numbers[OUT] += 1
        if now > lines.ready_s[vehicle] + LEAST_S:
            flows[PACE_S] += _MEMORY * (now - flows[LAST_OUT] - flows[PACE_S])
        else:
            flows[PACE_S] = roads.headway_s[edge]
        flows[LAST_OUT] = now
        if numbers[WAITS] >= 0:
            _schedule_gate(world, edge)
        if remembers(world.teaching):
            teach(world.teaching, world.fleet, vehicle, now)
    after = lines.after[vehicle]
    who[FIRST] = after
    who[SIZE] -= 1
    lines.when[line, LEFT_S] = now
    if after < 0:
        cancel(agenda, line)
    else:
        earliest = now if outside else now + _headway(world, line, vehicle)
        schedule(agenda, line, _due(world, line, after, earliest))
    return int(vehicle)


@lean_kernel
def _enter(world: World, vehicle: int, edge: int, now: float) -> None:
    """Put a vehicle on a road."""
    rules, lines, roads, fleet = world.rules, world.lines, world.roads, world.fleet
    numbers, flows, state = roads.numbers[edge], roads.flows[edge], fleet.state[vehicle]
    ahead = numbers[IN] - numbers[OUT]
    count_entry(world.loads, edge, ahead * (now - flows[CHANGED_S]))
    flows[CHANGED_S] = flows[LAST_IN] = now
    numbers[IN] += 1
    seconds = flows[FREE_S]
    if rules.noise > 0.0:
        seconds *= lognormal_factor(rules.noise, rules.seed, vehicle, state[ENTERED])
    lines.ready_s[vehicle] = now + max(seconds, LEAST_S)
    state[ENTERED] += 1
    state[COUNT] = ahead
    fleet.entered_s[vehicle] = now
    world.clock[EVENTS] += 1
    line = _lane(roads, lines, edge, _next_edge(fleet, vehicle))
    if _append(lines, line, vehicle):
        earliest = lines.when[line, LEFT_S] + lines.when[line, HEADWAY]
        schedule(world.agenda, line, _due(world, line, vehicle, earliest))


@lean_kernel
def _pass(world: World, line: int, edge: int, now: float) -> None:
    """Let the first vehicle of a line enter a road, or arrive where the road is -1."""
    vehicle = _leave(world, line, now)
    if edge < 0:
        world.fleet.arrival_s[vehicle] = now
    else:
        world.roads.flows[edge, SERVED] = world.lines.when[line, TAG]
        _enter(world, vehicle, edge, now)


@lean_kernel
def _take_from_gate(world: World, edge: int, now: float) -> None:
    """Let a road take the vehicle whose turn it is, or by force the one that has waited longest."""
    lines, roads = world.lines, world.roads
    chosen = roads.numbers[edge, WAITS]
    if _room_at(roads, edge) <= now:
        line = lines.who[chosen, AFTER]
        while line >= 0:
            if lines.when[line, TAG] < lines.when[chosen, TAG]:
                chosen = line
            line = lines.who[line, AFTER]
    else:
        world.clock[FORCED] += 1
    _stop_waiting(world, int(chosen))
    _pass(world, int(chosen), edge, now)
    _schedule_gate(world, edge)


@lean_kernel
def _go_elsewhere(world: World, line: int, now: float) -> int:
    """Let the first vehicle of a line, whose next road is closed, look for another way; OVER where nothing is needed.

    Outside the roads it may have to stand in another line then.
    """
    lines, fleet = world.lines, world.fleet
    vehicle = lines.who[line, FIRST]
    need = _choose(world, vehicle, now)
    if need != OVER or fleet.state[vehicle, ENTERED] > 0:
        return need
    other = lines.who.shape[0] - world.roads.numbers.shape[0] + _next_edge(fleet, vehicle)
    if other != line:
        _leave(world, line, now)
        if _append(lines, other, vehicle):
            schedule(world.agenda, other, now)
    return OVER


@lean_kernel
def _advance(world: World, line: int, now: float) -> int:
    """Let the first vehicle of a line move on, or wait for the road that it enters next; OVER if nothing is needed."""
    rules, fleet, roads, lines = world.rules, world.fleet, world.roads, world.lines
    vehicle = lines.who[line, FIRST]
    state = fleet.state[vehicle]
    on_road = state[ENTERED] > 0
    edge = _next_edge(fleet, vehicle)
    again = (
        rules.reroute_s > 0.0
        and on_road
        and edge >= 0
        and fleet.reroutes[vehicle]
        and now - fleet.chosen_s[vehicle] >= rules.reroute_s
    )
    if again or (edge >= 0 and roads.closed[edge]):
        need = _choose(world, vehicle, now) if on_road else _go_elsewhere(world, line, now)
        if need != OVER:
            return need
        if lines.who[line, FIRST] != vehicle:
            return OVER
        edge = _next_edge(fleet, vehicle)
        due = _due(world, line, vehicle, now)
        if due > now:
            schedule(world.agenda, line, due)
            return OVER
    if on_road and world.teaching.log.shape[0] > 0 and world.teaching.logged[0] == len(world.teaching.log):
        return LESSON
    if edge >= 0 and (roads.numbers[edge, WAITS] >= 0 or _room_at(roads, edge) > now):
        _wait(world, line, edge, now)
    else:
        if edge >= 0:
            lines.when[line, TAG] = roads.flows[edge, SERVED] + lines.when[line, STEP]
        _pass(world, line, edge, now)
    return OVER


@lean_kernel
def _close_bins(world: World, now: float) -> bool:
    """Write down the time bins that end up to `now`; False where there is no room for them."""
    roads, lines, loads, bin_s = world.roads, world.lines, world.loads, world.rules.bin_s
    first_outside = lines.who.shape[0] - roads.numbers.shape[0]
    while now >= (loads.book[BIN] + 1) * bin_s:
        end = (loads.book[BIN] + 1) * bin_s
        if not has_room(loads, world.standing):
            return False
        for edge in range(len(roads.numbers)):
            numbers = roads.numbers[edge]
            on, outside = numbers[IN] - numbers[OUT], lines.who[first_outside + edge, SIZE]
            if on + outside == 0:
                continue
            add_seconds(loads, edge, on * (end - roads.flows[edge, CHANGED_S]))
            roads.flows[edge, CHANGED_S] = end
            queued = 0
            for line in range(numbers[LANE], numbers[LANE] + numbers[LANES]):
                vehicle = lines.who[line, FIRST]
                while vehicle >= 0:
                    queued += lines.ready_s[vehicle] <= end
                    vehicle = lines.after[vehicle]
            stand(world.standing, loads.book[BIN], edge, on, queued, outside)
        close_bin(loads, end, bin_s)
    return True


@lean_kernel
def drive(until: float, world: World) -> int:
    """Take events in order until one at or after `until`, the end, or something is needed: see the answers above."""
    rules, clock, agenda, fleet, lines = world.rules, world.clock, world.agenda, world.fleet, world.lines
    departure_s, n_lines, n_edges = fleet.departure_s, lines.who.shape[0], world.roads.numbers.shape[0]
    bin_end = (world.loads.book[BIN] + 1) * rules.bin_s
    while True:
        departs = clock[DEPARTED] < len(departure_s)
        now = departure_s[clock[DEPARTED]] if departs else np.inf
        if agenda.size[0] > 0 and agenda.times[0] < now:
            departs, now = False, agenda.times[0]
        elif not departs:
            return OVER
        if now >= until:
            return TIME
        if now >= bin_end:
            if not _close_bins(world, now):
                return LOADS
            bin_end = (world.loads.book[BIN] + 1) * rules.bin_s
        if departs:
            vehicle = clock[DEPARTED]
            if fleet.state[vehicle, LENGTH] == 0:
                if fleet.choice[vehicle] == ASK:
                    clock[WANTED] = vehicle
                    return ROUTE
                need = _choose(world, vehicle, now)
                if need != OVER:
                    return need
            line = n_lines - n_edges + _next_edge(fleet, vehicle)
            lines.ready_s[vehicle] = now
            clock[DEPARTED] += 1
            if _append(lines, line, vehicle):
                schedule(agenda, line, now)
        elif agenda.items[0] < n_lines:
            need = _advance(world, agenda.items[0], now)
            if need != OVER:
                return need
        else:
            edge = agenda.items[0] - n_lines
            log = world.teaching.log
            if log.shape[0] > 0 and world.teaching.logged[0] == len(log):
                return LESSON
            _take_from_gate(world, int(edge), now)


@lean_kernel
def let_look_again(world: World, edge: int, now: float) -> None:
    """Let the lines that wait at the gate of a road look at it again, after it was closed, opened or changed."""
    line = world.roads.numbers[edge, WAITS]
    while line >= 0:
        _stop_waiting(world, int(line))
        schedule(world.agenda, int(line), now)
        line = world.roads.numbers[edge, WAITS]
    _schedule_gate(world, edge)
