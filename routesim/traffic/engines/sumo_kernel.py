"""The compiled part of SUMO's engine: writes down, in the arrays that all engines have, what SUMO says happened.

SUMO says once a second on which edge of its path every vehicle is. A vehicle that passed several edges since then
entered them at even intervals within that second.
"""

from typing import NamedTuple

from routesim.arrays import Floats, Ints, Ints32
from routesim.kernels import lean_kernel
from routesim.traffic.engines.choice import Beliefs, Search, believed_at
from routesim.traffic.engines.compiled import DEPARTED, EVENTS, LESSON, PATHS, TIME
from routesim.traffic.engines.fleet import COUNT, ENTERED, LENGTH, START, Fleet
from routesim.traffic.engines.records import (
    BIN,
    EdgeLoads,
    Occupancy,
    Teaching,
    add_seconds,
    close_bin,
    count_entry,
    has_room,
    remembers,
    stand,
    teach,
)

LOADS = PATHS + 1  # what `follow` answers beyond what every core does: there is no room for loads
# Positions in the clock beyond those of every core: the next event, moves by force, and the first vehicle that has not
# entered the roads.
NEXT, FORCED, WAITING = range(3, 6)
_SECOND, _VEHICLE, _PLACE = range(3)
_CLOCK = -1  # instead of a vehicle: an event that only tells the time; lower numbers tell how many halt


class SumoWorld(NamedTuple):
    """All that `follow` works on."""

    bin_s: float
    clock: Ints
    events: Ints  # rows of second, vehicle and place on its path, see `routesim.traffic.engines.sumo_worker`
    fleet: Fleet
    on: Ints32  # vehicles on each edge
    changed_s: Floats  # up to when the seconds that they spend there are written down
    halting: Ints32  # of them, those who halted at the end of the bin
    outside: Ints32  # and those who wait to enter it; zero but while a bin ends
    loads: EdgeLoads
    standing: Occupancy
    search: Search
    beliefs: Beliefs
    teaching: Teaching


@lean_kernel
def _spend(world: SumoWorld, edge: int, now: float) -> None:
    """Write down the time that the vehicles on an edge have spent there up to now."""
    if now > world.changed_s[edge]:
        if world.on[edge] > 0:
            add_seconds(world.loads, edge, world.on[edge] * (now - world.changed_s[edge]))
        world.changed_s[edge] = now


@lean_kernel
def _end_bin(world: SumoWorld) -> None:
    """Write down the bin that ends, and where vehicles are at its end."""
    clock, fleet, outside = world.clock, world.fleet, world.outside
    time_bin = world.loads.book[BIN]
    end = (time_bin + 1) * world.bin_s
    while clock[WAITING] < clock[DEPARTED] and fleet.state[clock[WAITING], ENTERED] > 0:
        clock[WAITING] += 1
    for vehicle in range(clock[WAITING], clock[DEPARTED]):
        if fleet.state[vehicle, ENTERED] == 0 and fleet.departure_s[vehicle] < end:
            outside[fleet.paths[fleet.state[vehicle, START]]] += 1
    for edge in range(len(world.on)):
        _spend(world, edge, end)
        if world.on[edge] > 0 or outside[edge] > 0:
            queued = min(world.halting[edge], world.on[edge])
            stand(world.standing, time_bin, edge, world.on[edge], queued, outside[edge])
        world.halting[edge], outside[edge] = 0, 0
    close_bin(world.loads, end, world.bin_s)


@lean_kernel
def _move(world: SumoWorld, vehicle: int, second: int, entered: int, arrives: bool) -> None:
    """Let a vehicle enter the edges of its path up to a number of them, and arrive."""
    fleet, clock = world.fleet, world.clock
    before = fleet.state[vehicle, ENTERED]
    steps = entered - before + (1 if arrives else 0)
    earliest = max(fleet.entered_s[vehicle], fleet.departure_s[vehicle], world.loads.book[BIN] * world.bin_s)
    for step in range(1, steps + 1):
        now = max(second - 1.0 + step / steps, earliest)
        driven = fleet.state[vehicle, ENTERED]
        if driven > 0:
            edge = fleet.paths[fleet.state[vehicle, START] + driven - 1]
            _spend(world, edge, now)
            world.on[edge] -= 1
            if remembers(world.teaching):
                teach(world.teaching, fleet, vehicle, now)
        if driven == fleet.state[vehicle, LENGTH]:
            fleet.arrival_s[vehicle] = now
            return
        edge = fleet.paths[fleet.state[vehicle, START] + driven]
        _spend(world, edge, now)
        fleet.state[vehicle, COUNT] = world.on[edge]
        world.on[edge] += 1
        count_entry(world.loads, edge, 0.0)
        fleet.entered_s[vehicle] = now
        fleet.state[vehicle, ENTERED] = driven + 1
        clock[EVENTS] += 1


@lean_kernel
def follow(until_s: float, world: SumoWorld) -> int:  # noqa: ARG001 - SUMO has driven until then
    """Take in the events that there are; LESSON where the log has no room for one, LOADS where a bin has none."""
    fleet, clock, log = world.fleet, world.clock, world.teaching.log
    while clock[NEXT] < len(world.events):
        event = world.events[clock[NEXT]]
        second, vehicle, place = event[_SECOND], event[_VEHICLE], event[_PLACE]
        if vehicle < _CLOCK:
            world.halting[place] = _CLOCK - 1 - vehicle
            clock[NEXT] += 1
            continue
        while second >= (world.loads.book[BIN] + 1) * world.bin_s:
            if not has_room(world.loads, world.standing):
                return LOADS
            _end_bin(world)
        if vehicle != _CLOCK:
            entered = place + 1 if place >= 0 else fleet.state[vehicle, LENGTH]
            need = entered - fleet.state[vehicle, ENTERED] + 1
            if log.shape[0] > 0 and world.teaching.logged[0] + need > log.shape[0]:
                return LESSON
            _move(world, vehicle, second, entered, place < 0)
        clock[NEXT] += 1
    return TIME


@lean_kernel
def believe(beliefs: Beliefs, counts: Ints32, costs: Floats) -> None:
    """Fill in what every edge is believed to cost with so many vehicles on it."""
    for edge in range(len(counts)):
        costs[edge] = believed_at(beliefs, edge, counts[edge])
