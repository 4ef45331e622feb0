"""The steps of the queue engine's core: lines of vehicles, the gates of roads at which they wait, lanes and signals."""

import numpy as np

from routesim.kernels import inlined_kernel, lean_kernel
from routesim.traffic.engines.agenda import cancel, schedule
from routesim.traffic.engines.fleet import ENTERED, LENGTH, START, Fleet
from routesim.traffic.engines.noise import lognormal_factor
from routesim.traffic.engines.queue_state import (
    AFTER,
    BEFORE,
    BLOCKED,
    CLEAR_S,
    EDGE,
    FIRST,
    GAP_S,
    HEADWAY,
    IN,
    LANE,
    LANES,
    LAST,
    LAST_IN,
    LAST_WAITS,
    LEFT,
    OUT,
    RIGHT,
    RING,
    SERVED,
    SINCE_S,
    SIZE,
    STEP,
    STORAGE,
    STRAIGHT,
    TAG,
    WAITS,
    WAVE_S,
    WENT_TO,
    QueueRoads,
    QueueWorld,
    SignalRows,
    VehicleLines,
)

_TURN = np.pi / 4  # from which on a change of direction is a turn


@inlined_kernel
def next_edge(fleet: Fleet, vehicle: int) -> int:
    """Return the road that a vehicle enters next, -1 where it has arrived at the end of this one."""
    state = fleet.state[vehicle]
    return int(fleet.paths[state[START] + state[ENTERED]]) if state[ENTERED] < state[LENGTH] else -1


@inlined_kernel
def green_from(signals: SignalRows, edge: int, to: int, time: float) -> float:
    """Return the first moment from `time` on at which it is green for those who go on to a road."""
    best, any_row = np.inf, False
    for row in range(signals.first[edge], signals.first[edge + 1]):
        if signals.to[row] >= 0 and signals.to[row] != to:
            continue
        any_row = True
        cycle = signals.cycle_s[row]
        phase = (time - signals.start_s[row]) % cycle
        best = min(best, time if phase < signals.green_s[row] else time + (cycle - phase))
    return float(best if any_row else time)


@inlined_kernel
def red_for(signals: SignalRows, edge: int, to: int, time: float) -> float:
    """Return for how long it has been red at a moment for those who go on to a road; 0 where it is green."""
    least, any_row = np.inf, False
    for row in range(signals.first[edge], signals.first[edge + 1]):
        if signals.to[row] >= 0 and signals.to[row] != to:
            continue
        any_row = True
        phase = (time - signals.start_s[row]) % signals.cycle_s[row]
        least = min(least, max(phase - signals.green_s[row], 0.0))
    return float(least if any_row else 0.0)


@inlined_kernel
def has_signals(world: QueueWorld, line: int) -> bool:
    """Tell whether there are signals at the end of the road on which a line stands."""
    edge, first = world.lines.who[line, EDGE], world.signals.first
    outside = line >= world.lines.who.shape[0] - world.roads.numbers.shape[0]
    return bool(not outside and first[edge] < first[edge + 1])


@inlined_kernel
def green_at(world: QueueWorld, line: int, vehicle: int, time: float) -> float:
    """Return the first moment from `time` on at which it is green for a vehicle; those who arrive need none."""
    if not has_signals(world, line):
        return time
    to = next_edge(world.fleet, vehicle)
    return green_from(world.signals, world.lines.who[line, EDGE], to, time) if to >= 0 else time


@inlined_kernel
def due_at(world: QueueWorld, line: int, vehicle: int, earliest: float) -> float:
    """Return when a vehicle that is first in its line can leave it."""
    lines, signals = world.lines, world.signals
    ready = lines.ready_s[vehicle]
    if has_signals(world, line) and earliest > ready:
        to, edge = next_edge(world.fleet, vehicle), lines.who[line, EDGE]
        spent = red_for(signals, edge, to, earliest) if to >= 0 else 0.0
        if 0.0 < spent < lines.when[line, HEADWAY]:
            # What was left of the green counts towards the headway, so that a queue uses every second of green.
            earliest = green_from(signals, edge, to, earliest) + spent
    return green_at(world, line, vehicle, max(ready, earliest))


@inlined_kernel
def headway_of(world: QueueWorld, line: int, vehicle: int) -> float:
    """Return the time that the line's exit is taken by a vehicle."""
    headway = world.lines.when[line, HEADWAY]
    if world.rules.headway_noise > 0.0:
        place = world.fleet.state[vehicle, ENTERED]
        headway *= lognormal_factor(world.rules.headway_noise, ~world.rules.seed, vehicle, place)
    return float(headway)


@inlined_kernel
def lane_for(roads: QueueRoads, lines: VehicleLines, edge: int, to: int) -> int:
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
def queued_on(roads: QueueRoads, lines: VehicleLines, edge: int, now: float) -> int:
    """Return how many vehicles have reached the end of a road and have not left it."""
    numbers, queued = roads.numbers[edge], 0
    for line in range(numbers[LANE], numbers[LANE] + numbers[LANES]):
        vehicle = lines.who[line, FIRST]
        while vehicle >= 0:
            queued += lines.ready_s[vehicle] <= now
            vehicle = lines.after[vehicle]
    return queued


@inlined_kernel
def room_at(roads: QueueRoads, edge: int) -> float:
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


@inlined_kernel
def schedule_gate(world: QueueWorld, edge: int, now: float) -> None:
    """Let the gate of a road be due when it can take the next, or when the line that waits longest moves by force."""
    lines, roads = world.lines, world.roads
    gate = lines.who.shape[0] + edge
    first = roads.numbers[edge, WAITS]
    if first < 0:
        cancel(world.agenda, gate)
        return
    time = room_at(roads, edge)
    if not roads.closed[edge]:
        time = min(time, lines.when[first, SINCE_S] + world.rules.stuck_s)
    schedule(world.agenda, gate, max(time, now))


@inlined_kernel
def tag_of(world: QueueWorld, line: int, edge: int) -> float:
    """Return the tag by which a line that comes to the gate of a road is taken: a step after the one taken last.

    A line that has queued since it was taken last goes on from its own tag, as its next vehicle could come no sooner;
    otherwise a small road would have less than its share.
    """
    lines, served = world.lines, world.roads.flows[edge, SERVED]
    when = lines.when[line]
    tag = served + when[STEP]
    if lines.who[line, WENT_TO] == edge and lines.ready_s[lines.who[line, FIRST]] <= when[CLEAR_S]:
        tag = min(tag, max(when[TAG] + when[STEP], served))
    return float(tag)


@inlined_kernel
def wait(world: QueueWorld, line: int, edge: int, now: float) -> None:
    """Let a line wait at the gate of a road, behind those whose first vehicle was held back before its own."""
    who, when, numbers = world.lines.who, world.lines.when, world.roads.numbers[edge]
    cancel(world.agenda, line)
    when[line, SINCE_S] = min(when[line, SINCE_S], now)
    when[line, TAG] = tag_of(world, line, edge)
    before, after = numbers[LAST_WAITS], np.int64(-1)
    while before >= 0 and when[before, SINCE_S] > when[line, SINCE_S]:
        before, after = np.int64(who[before, BEFORE]), before
    who[line, BLOCKED], who[line, AFTER], who[line, BEFORE] = edge, after, before
    if after >= 0:
        who[after, BEFORE] = line
    else:
        numbers[LAST_WAITS] = line
    if before >= 0:
        who[before, AFTER] = line
    else:
        numbers[WAITS] = line
        schedule_gate(world, edge, now)


@inlined_kernel
def stop_waiting(world: QueueWorld, line: int) -> None:
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


@inlined_kernel
def append(lines: VehicleLines, line: int, vehicle: int) -> bool:
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
