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

import numpy as np

from routesim.kernels import inlined_kernel, lean_kernel, prefetch
from routesim.roads.shortest import priced_by
from routesim.traffic.engines.agenda import cancel, schedule
from routesim.traffic.engines.choice import BY_COUNT, believed_at, kind_of, look, price_of, settle
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
from routesim.traffic.engines.fleet import COUNT, ENTERED, LENGTH
from routesim.traffic.engines.noise import lognormal_factor
from routesim.traffic.engines.queue_lines import (
    append,
    due_at,
    green_at,
    headway_of,
    lane_for,
    next_edge,
    queued_on,
    room_at,
    schedule_gate,
    stop_waiting,
    tag_of,
    wait,
)
from routesim.traffic.engines.queue_state import (
    AFTER,
    CHANGED_S,
    CLEAR_S,
    EDGE,
    FIRST,
    FORCED,
    FREE_S,
    GAP_S,
    IN,
    LAST_IN,
    LAST_OUT,
    OUT,
    PACE_S,
    RING,
    SERVED,
    SINCE_S,
    SIZE,
    SLACK_S,
    SPREAD_S,
    STORAGE,
    TAG,
    WAITS,
    WENT_TO,
    QueuePresent,
    QueueRoads,
    QueueWorld,
)
from routesim.traffic.engines.records import (
    BIN,
    add_seconds,
    close_bin,
    count_entry,
    has_room,
    remembers,
    stand,
    teach,
)
from routesim.traffic.protocol import ASK

LOADS = PATHS + 1  # what `drive` answers beyond what every core does: there is no room for loads
LEAST_S = 1e-3  # the least time an edge takes: zero would let a vehicle be everywhere at once
_MEMORY = 0.1  # the weight of the newest exit in the pace


@lean_kernel
def seconds_now(roads: QueueRoads, edge: int, vehicles: int, now: float) -> float:
    """Return the time that a road is expected to take with so many vehicles ahead, at the pace of its exits."""
    flows, pace = roads.flows[edge], roads.flows[edge, PACE_S]
    if roads.numbers[edge, IN] > roads.numbers[edge, OUT]:
        pace = max(pace, (1.0 - _MEMORY) * pace + _MEMORY * (now - flows[LAST_OUT]))
    else:  # neither the last exits nor that nobody leaves now say anything of an empty road
        pace = roads.headway_s[edge]
    return float(max(flows[FREE_S] + roads.red_s[edge], (vehicles + 0.5) * pace))


@lean_kernel
def _cost_now(present: QueuePresent, edge: int) -> float:
    """Return what a road costs at present; infinite where it is closed and only open ones are wanted."""
    roads = present.roads
    if present.open_only and roads.closed[edge]:
        return np.inf
    outside = present.who[present.who.shape[0] - roads.numbers.shape[0] + edge, SIZE]
    vehicles = roads.numbers[edge, IN] - roads.numbers[edge, OUT] + outside
    if present.kind == BY_COUNT:
        return believed_at(present.beliefs, edge, vehicles)
    return price_of(present.beliefs, present.kind, edge, seconds_now(roads, edge, vehicles, present.now))


priced_by(QueuePresent, _cost_now)


@lean_kernel
def _seek(world: QueueWorld, vehicle: int, now: float, open_only: bool) -> int:
    """Find the path of a vehicle from where it is, at present; the answer is OVER where nothing is needed."""
    fleet, roads, beliefs = world.fleet, world.roads, world.beliefs
    kind = kind_of(fleet, vehicle)
    least = beliefs.least_weight[kind] if kind >= 0 else 1.0
    costs = QueuePresent(roads, beliefs, world.lines.who, now, kind, open_only)
    length = look(roads.graph, fleet, world.search, costs, least, vehicle)
    return settle(fleet, world.clock, vehicle, length, now)


@lean_kernel
def _choose(world: QueueWorld, vehicle: int, now: float) -> int:
    """Find the path of a vehicle as `_seek` does; where there is none but over closed roads, it leads up to them."""
    need = _seek(world, vehicle, now, True)
    return _seek(world, vehicle, now, False) if need == NO_WAY else need


@inlined_kernel
def _leave(world: QueueWorld, line: int, now: float) -> int:
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
            schedule_gate(world, edge, now)
        if remembers(world.teaching):
            teach(world.teaching, world.fleet, vehicle, now)
    after = lines.after[vehicle]
    who[FIRST] = after
    who[SIZE] -= 1
    if outside:
        lines.when[line, CLEAR_S] = now
    else:
        since = max(lines.when[line, CLEAR_S], now - lines.when[line, SLACK_S])
        lines.when[line, CLEAR_S] = since + headway_of(world, line, vehicle)
    lines.when[line, SINCE_S] = np.inf
    if after < 0:
        cancel(agenda, line)
    else:
        schedule(agenda, line, due_at(world, line, after, max(lines.when[line, CLEAR_S], now)))
    return int(vehicle)


@inlined_kernel
def _enter(world: QueueWorld, vehicle: int, edge: int, now: float) -> None:
    """Put a vehicle on a road."""
    rules, lines, roads, fleet = world.rules, world.lines, world.roads, world.fleet
    numbers, flows, state = roads.numbers[edge], roads.flows[edge], fleet.state[vehicle]
    ahead = numbers[IN] - numbers[OUT]
    if world.teaching.queued.shape[0] > 0:
        world.teaching.queued[vehicle] = queued_on(roads, lines, edge, now)
    if state[ENTERED] == 0 and world.teaching.rates.shape[0] > 0:  # the wait outside is part of the trip
        fleet.cost[vehicle] += (now - fleet.departure_s[vehicle]) * world.teaching.rates[fleet.kind[vehicle], edge]
    count_entry(world.loads, edge, ahead * (now - flows[CHANGED_S]))
    flows[CHANGED_S] = now
    flows[LAST_IN] = max(flows[LAST_IN] + flows[GAP_S], now - flows[SPREAD_S])
    numbers[IN] += 1
    seconds = flows[FREE_S]
    if rules.noise > 0.0:
        seconds *= lognormal_factor(rules.noise, rules.seed, vehicle, state[ENTERED])
    lines.ready_s[vehicle] = now + max(seconds, LEAST_S)
    if ahead == 0:
        flows[LAST_OUT] = lines.ready_s[vehicle]  # the pace of exits counts from when somebody could leave
    state[ENTERED] += 1
    state[COUNT] = ahead
    fleet.entered_s[vehicle] = now
    world.clock[EVENTS] += 1
    line = lane_for(roads, lines, edge, next_edge(fleet, vehicle))
    if append(lines, line, vehicle):
        schedule(world.agenda, line, due_at(world, line, vehicle, lines.when[line, CLEAR_S]))


@inlined_kernel
def _pass(world: QueueWorld, line: int, edge: int, now: float) -> None:
    """Let the first vehicle of a line enter a road, or arrive where the road is -1."""
    vehicle = _leave(world, line, now)
    world.lines.who[line, WENT_TO] = edge
    if edge < 0:
        world.fleet.arrival_s[vehicle] = now
    else:
        world.roads.flows[edge, SERVED] = world.lines.when[line, TAG]
        _enter(world, vehicle, edge, now)


@inlined_kernel
def _take_from_gate(world: QueueWorld, edge: int, now: float) -> None:
    """Let a road take the vehicle whose turn it is, or by force the one that has waited longest.

    Lines for which it has become red meanwhile come back when it is green again.
    """
    lines, roads = world.lines, world.roads
    line = roads.numbers[edge, WAITS]
    while line >= 0:
        after = np.int64(lines.who[line, AFTER])
        green = green_at(world, int(line), int(lines.who[line, FIRST]), now)
        if green > now:
            stop_waiting(world, int(line))
            schedule(world.agenda, int(line), green)
        line = after
    chosen = roads.numbers[edge, WAITS]
    room = room_at(roads, edge) <= now
    if chosen < 0 or not (room or lines.when[chosen, SINCE_S] + world.rules.stuck_s <= now):
        schedule_gate(world, edge, now)
        return
    if room:
        line = np.int64(lines.who[chosen, AFTER])
        while line >= 0:
            if lines.when[line, TAG] < lines.when[chosen, TAG]:
                chosen = line
            line = np.int64(lines.who[line, AFTER])
    else:
        world.clock[FORCED] += 1
    stop_waiting(world, int(chosen))
    _pass(world, int(chosen), edge, now)
    schedule_gate(world, edge, now)


@lean_kernel
def _go_elsewhere(world: QueueWorld, line: int, now: float) -> int:
    """Let the first vehicle of a line, whose next road is closed, look for another way; OVER where nothing is needed.

    Outside the roads it may have to stand in another line then.
    """
    lines, fleet = world.lines, world.fleet
    vehicle = lines.who[line, FIRST]
    need = _choose(world, vehicle, now)
    if need != OVER or fleet.state[vehicle, ENTERED] > 0:
        return need
    other = lines.who.shape[0] - world.roads.numbers.shape[0] + next_edge(fleet, vehicle)
    if other != line:
        _leave(world, line, now)
        if append(lines, other, vehicle):
            schedule(world.agenda, other, now)
    return OVER


@inlined_kernel
def _advance(world: QueueWorld, line: int, now: float) -> int:
    """Let the first vehicle of a line move on, or wait for the road that it enters next; OVER if nothing is needed."""
    rules, fleet, roads, lines = world.rules, world.fleet, world.roads, world.lines
    vehicle = lines.who[line, FIRST]
    state = fleet.state[vehicle]
    on_road = state[ENTERED] > 0
    edge = next_edge(fleet, vehicle)
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
        edge = next_edge(fleet, vehicle)
        green = green_at(world, line, vehicle, now)
        if green > now:
            schedule(world.agenda, line, green)
            return OVER
    if on_road and world.teaching.log.shape[0] > 0 and world.teaching.logged[0] == len(world.teaching.log):
        return LESSON
    if edge >= 0 and (roads.numbers[edge, WAITS] >= 0 or room_at(roads, edge) > now):
        wait(world, line, edge, now)
    else:
        if edge >= 0:
            lines.when[line, TAG] = tag_of(world, line, edge)
        _pass(world, line, edge, now)
    return OVER


@lean_kernel
def _close_bins(world: QueueWorld, now: float) -> bool:
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
            stand(world.standing, loads.book[BIN], edge, on, queued_on(roads, lines, edge, end), outside)
        close_bin(loads, end, bin_s)
    return True


@lean_kernel
def _settle(world: QueueWorld, until: float) -> bool:
    """Write down what there is at `until`, at which the traffic stops; False where there is no room for it."""
    if until == np.inf:
        return True
    if not _close_bins(world, until):
        return False
    for edge in range(len(world.roads.numbers)):
        numbers, flows = world.roads.numbers[edge], world.roads.flows[edge]
        if numbers[IN] > numbers[OUT]:
            add_seconds(world.loads, edge, (numbers[IN] - numbers[OUT]) * (until - flows[CHANGED_S]))
            flows[CHANGED_S] = until
    return True


@inlined_kernel
def _look_ahead(world: QueueWorld) -> None:
    """Start to fetch what is known of the vehicles that may be next: misses of the cache that overlap cost little."""
    agenda, fleet, who = world.agenda, world.fleet, world.lines.who
    for place in range(1, min(5, agenda.size[0])):
        line = agenda.items[place]
        if line < who.shape[0]:
            vehicle = who[line, FIRST]
            prefetch(fleet.state, fleet.state.shape[1] * vehicle)
            prefetch(world.lines.ready_s, vehicle)
            prefetch(world.lines.after, vehicle)
            prefetch(fleet.entered_s, vehicle)


@lean_kernel
def drive(until: float, world: QueueWorld) -> int:
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
            return TIME if _settle(world, until) else LOADS
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
            line = n_lines - n_edges + next_edge(fleet, vehicle)
            lines.ready_s[vehicle] = now
            clock[DEPARTED] += 1
            if append(lines, line, vehicle):
                schedule(agenda, line, now)
        elif agenda.items[0] < n_lines:
            _look_ahead(world)
            need = _advance(world, agenda.items[0], now)
            if need != OVER:
                return need
        else:
            edge = agenda.items[0] - n_lines
            log = world.teaching.log
            if log.shape[0] > 0 and world.teaching.logged[0] == len(log):
                return LESSON
            _take_from_gate(world, int(edge), now)
