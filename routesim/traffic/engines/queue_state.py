"""What the compiled core of the queue engine works on: lines of vehicles, roads, signals, and what stands where."""

from typing import NamedTuple

import numpy as np

from routesim.arrays import Bools, Floats, Ints, Ints32
from routesim.roads.graph import Graph
from routesim.traffic.engines.agenda import Agenda
from routesim.traffic.engines.choice import Beliefs, Search
from routesim.traffic.engines.compiled import WANTED
from routesim.traffic.engines.fleet import Fleet
from routesim.traffic.engines.records import EdgeLoads, Occupancy, Teaching

FORCED = WANTED + 1  # the position of the moves by force in the clock
# Columns of VehicleLines.who: the first and last vehicle, how many there are, the road they are on or outside of, the
# road they wait for, their neighbours among those who wait for it, and the road that the last who left went on to.
FIRST, LAST, SIZE, EDGE, BLOCKED, AFTER, BEFORE, WENT_TO = range(8)
# Columns of VehicleLines.when: the headway of those who leave, from when on the next may, since when its first is held
# back, the tag by which gates take lines in turn, how far each passage puts it back, and how long an exit that was not
# used can be used later: as many leave side by side as there are lanes.
HEADWAY, CLEAR_S, SINCE_S, TAG, STEP, SLACK_S = range(6)
# Columns of QueueRoads.numbers: vehicles that entered and left, how many the road stores (0: any number), where its
# ring of exit times begins, the first and last line at its gate, its first lane, and the number of its lanes.
IN, OUT, STORAGE, RING, WAITS, LAST_WAITS, LANE, LANES = range(8)
# Columns of QueueRoads.flows: the free-flow time, the headway of those who enter, the time a wave takes to the start,
# the last entry, since when the number of vehicles is what it is, the tag of the line taken last, the present seconds
# between exits, the last exit, or when the one vehicle on the road could leave, and how long an entry that was not used
# can be used later.
FREE_S, GAP_S, WAVE_S, LAST_IN, CHANGED_S, SERVED, PACE_S, LAST_OUT, SPREAD_S = range(9)
RIGHT, STRAIGHT, LEFT = range(3)


class QueueRules(NamedTuple):
    """The numbers that hold for the whole run; `reroute_s` is 0 where nobody looks for a better way."""

    bin_s: float
    noise: float
    headway_noise: float
    seed: np.uint64
    reroute_s: float
    stuck_s: float


class SignalRows(NamedTuple):
    """When it is green at the end of a road: rows first[e] … first[e + 1] - 1, of all movements where `to` is -1.

    A row is green from `start_s` on for `green_s` seconds, every `cycle_s` seconds.
    """

    first: Ints
    to: Ints32
    cycle_s: Floats
    start_s: Floats
    green_s: Floats


class VehicleLines(NamedTuple):
    """The lines: those of the lanes, then the one outside each road; columns as named above."""

    who: Ints32
    when: Floats
    after: Ints32  # for each vehicle the next one in its line
    ready_s: Floats  # for each vehicle when it reaches the end of its road on its own


class QueueRoads(NamedTuple):
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


class QueuePresent(NamedTuple):
    """What roads cost at a moment, for `search` of `routesim.roads.shortest`."""

    roads: QueueRoads
    beliefs: Beliefs
    who: Ints32
    now: float
    kind: int
    open_only: bool


class QueueWorld(NamedTuple):
    """All that `drive` works on."""

    rules: QueueRules
    clock: Ints
    agenda: Agenda
    fleet: Fleet
    lines: VehicleLines
    roads: QueueRoads
    signals: SignalRows
    loads: EdgeLoads
    standing: Occupancy
    search: Search
    beliefs: Beliefs
    teaching: Teaching
