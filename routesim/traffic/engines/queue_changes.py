"""What happens in the queue engine when roads lose capacity, get it back, are closed or opened."""

from routesim.arrays import Floats
from routesim.kernels import lean_kernel
from routesim.traffic.engines.agenda import schedule
from routesim.traffic.engines.queue_lines import due_at, green_at, schedule_gate, stop_waiting
from routesim.traffic.engines.queue_state import (
    BLOCKED,
    CLEAR_S,
    FIRST,
    HEADWAY,
    LANE,
    LANES,
    PACE_S,
    SLACK_S,
    STEP,
    WAITS,
    QueueWorld,
)


@lean_kernel
def _let_look_again(world: QueueWorld, edge: int, now: float) -> None:
    """Let the lines that wait at the gate of a road look at it again, after it was closed, opened or changed."""
    line = world.roads.numbers[edge, WAITS]
    while line >= 0:
        stop_waiting(world, int(line))
        schedule(world.agenda, int(line), green_at(world, int(line), int(world.lines.who[line, FIRST]), now))
        line = world.roads.numbers[edge, WAITS]
    schedule_gate(world, edge, now)


@lean_kernel
def change_roads(world: QueueWorld, before: Floats, share: Floats, now: float) -> None:
    """Let every road pass another share of its capacity from now on; nobody enters where it is 0."""
    roads, lines = world.roads, world.lines
    for edge in range(len(share)):
        roads.closed[edge] = share[edge] == 0.0
    for edge in range(len(share)):
        # Those on a closed road drive on as if nothing had happened.
        ratio = (share[edge] if share[edge] > 0.0 else 1.0) / (before[edge] if before[edge] > 0.0 else 1.0)
        if ratio != 1.0:
            roads.headway_s[edge] /= ratio
            roads.flows[edge, PACE_S] /= ratio
            first = roads.numbers[edge, LANE]
            for line in range(first, first + roads.numbers[edge, LANES]):
                when, vehicle = lines.when[line], lines.who[line, FIRST]
                when[HEADWAY] /= ratio
                when[STEP] /= ratio
                when[SLACK_S] /= ratio
                if when[CLEAR_S] > now:
                    when[CLEAR_S] = now + (when[CLEAR_S] - now) / ratio
                if vehicle >= 0 and lines.who[line, BLOCKED] < 0:
                    due = due_at(world, line, vehicle, when[CLEAR_S])
                    schedule(world.agenda, line, due if due >= now else green_at(world, line, vehicle, now))
        if roads.numbers[edge, WAITS] >= 0 and (share[edge] == 0.0) | (before[edge] == 0.0):
            _let_look_again(world, edge, now)
