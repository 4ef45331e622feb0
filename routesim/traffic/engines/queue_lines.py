"""The steps of the queue engine's core: lines of vehicles, the gates of roads at which they wait, lanes and signals."""

import numpy as np

from routesim.kernels import lean_kernel
from routesim.traffic.engines.agenda import cancel, schedule
from routesim.traffic.engines.fleet import ENTERED, LENGTH, START, Fleet
from routesim.traffic.engines.noise import lognormal_factor
from routesim.traffic.engines.queue_state import (
    AFTER,
    BEFORE,
    BLOCKED,
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
    QueueRoads,
    QueueWorld,
    SignalRows,
    VehicleLines,
)

_TURN = np.pi / 4  # from which on a change of direction is a turn


@lean_kernel
def next_edge(fleet: Fleet, vehicle: int) -> int:
    """Return the road that a vehicle enters next, -1 where it has arrived at the end of this one."""
    state = fleet.state[vehicle]
    return int(fleet.paths[state[START] + state[ENTERED]]) if state[ENTERED] < state[LENGTH] else -1


@lean_kernel
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


@lean_kernel
def due_at(world: QueueWorld, line: int, vehicle: int, earliest: float) -> float:
    """Return when a vehicle that is first in its line can leave it."""
    lines, signals = world.lines, world.signals
    time = max(lines.ready_s[vehicle], earliest)
    edge = lines.who[line, EDGE]
    outside = line >= lines.who.shape[0] - world.roads.numbers.shape[0]
    if not outside and signals.first[edge] < signals.first[edge + 1]:
        to = next_edge(world.fleet, vehicle)
        if to >= 0:
            time = green_from(signals, edge, to, time)
    return float(time)


@lean_kernel
def headway_of(world: QueueWorld, line: int, vehicle: int) -> float:
    """Return the time that the line's exit is taken by a vehicle."""
    headway = world.lines.when[line, HEADWAY]
    if world.rules.headway_noise > 0.0:
        place = world.fleet.state[vehicle, ENTERED]
        headway *= lognormal_factor(world.rules.headway_noise, ~world.rules.seed, vehicle, place)
    return float(headway)


@lean_kernel
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


@lean_kernel
def schedule_gate(world: QueueWorld, edge: int) -> None:
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
    schedule(world.agenda, gate, time)


@lean_kernel
def wait(world: QueueWorld, line: int, edge: int, now: float) -> None:
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
        schedule_gate(world, edge)


@lean_kernel
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


@lean_kernel
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
