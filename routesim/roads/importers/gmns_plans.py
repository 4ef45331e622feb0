"""Timing plans of GMNS -> fixed-time programmes of signal controllers.

1. Of a controller's plans, which hold at different times of day, the first with a cycle_length counts, as one without
   is actuated; without any such, the first.
2. The phases of a ring follow each other in order of barrier and position. Rings run side by side, and no ring begins
   with a barrier's phases before all have ended those of the barrier before. As phases before a barrier end together,
   the last one of a ring that would end early stays green.
3. A phase is green for max_green seconds, for min_green and one extension where that is missing, as the format says:
   where vehicles queue, they extend every green to its maximum. Where this does not fit into the cycle_length, all
   phases have the same part of the way from min_green to max_green, so much that it does. Then follows its clearance.
4. The cycle is cycle_length, in which nobody has green in the time that no phase fills, or the sum of the phases.
5. The coord_ref_to (the begin of green unless stated) of the coord_phase, or else the first phase, comes `offset`
   seconds after the beginning of the simulation.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from routesim.roads.signal_times import CYCLE_LIMITS_S

REFERENCES = ("begin_of_green", "begin_of_yellow", "begin_of_red")


class Phase(NamedTuple):
    """One phase of a plan; green is NaN in those for people on foot only."""

    num: int
    ring: int
    barrier: int
    position: int
    least_s: float
    most_s: float
    after_s: float  # clearance


class TimingPlan(NamedTuple):
    """One timing plan; numbers are NaN where it does not say."""

    key: str
    controller: str
    cycle_s: float
    offset_s: float
    coord_phase: float
    coord_ref_to: str


class Programme(NamedTuple):
    """A plan laid out: when the green of each phase, by its number, starts in the cycle and how long it is."""

    plan: str
    cycle_s: float
    greens: Mapping[int, tuple[float, float]]


def fixed_time(
    plans: Sequence[TimingPlan], phases: Mapping[str, Sequence[Phase]]
) -> tuple[dict[str, Programme], dict[str, str]]:
    """Return the programme of each controller, and why others have none."""
    count = Counter(plan.key for plan in plans)
    programmes: dict[str, Programme] = {}
    unusable: dict[str, str] = {}
    # First those with a cycle, as those without are actuated.
    for plan in sorted(plans, key=lambda plan: math.isnan(plan.cycle_s)):
        if plan.controller in programmes:
            continue
        found = _programme(plan, phases.get(plan.key, ())) if count[plan.key] == 1 else "its id is not unique"
        if isinstance(found, Programme):
            programmes[plan.controller] = found
        else:
            unusable.setdefault(plan.controller, f"in plan {plan.key!r:.40}, {found}")
    return programmes, unusable


def _programme(plan: TimingPlan, phases: Sequence[Phase]) -> Programme | str:
    """Return a plan laid out, or why it cannot be."""
    if not phases:
        return "there is no phase"
    if len({phase.num for phase in phases}) < len(phases):
        return "a signal_phase_num is there twice"
    if len({(phase.ring, phase.barrier, phase.position) for phase in phases}) < len(phases):
        return "two phases have the same ring, barrier and position"
    silent = [phase.num for phase in phases if math.isnan(phase.most_s) and phase.after_s == 0]
    if silent:
        return f"phase {silent[0]} has no time"
    greens, total = _laid_out(phases, 1.0)
    cycle = total if math.isnan(plan.cycle_s) else plan.cycle_s
    if not CYCLE_LIMITS_S[0] <= cycle <= CYCLE_LIMITS_S[1]:
        return f"the phases take {total:g} s"
    if total > cycle + 1e-6:
        fits, exceeds = 0.0, 1.0
        if _laid_out(phases, fits)[1] > cycle + 1e-6:
            return f"the phases do not fit into the cycle of {cycle:g} s"
        for _ in range(50):
            middle = (fits + exceeds) / 2
            fits, exceeds = (middle, exceeds) if _laid_out(phases, middle)[1] <= cycle else (fits, middle)
        greens, _ = _laid_out(phases, fits)
    shift = 0.0 if math.isnan(plan.offset_s) else plan.offset_s
    for phase in phases:
        if phase.num == plan.coord_phase:
            start, green = greens[phase.num]
            shift -= start + (0.0, green, green + phase.after_s)[REFERENCES.index(plan.coord_ref_to)]
    return Programme(
        plan.key,
        cycle,
        {num: (_within(start + shift, cycle), min(green, cycle)) for num, (start, green) in greens.items()},
    )


def _within(second: float, cycle: float) -> float:
    rest = second % cycle
    return rest if rest < cycle else 0.0  # just below 0, it rounds up


def _laid_out(phases: Sequence[Phase], part: float) -> tuple[dict[int, tuple[float, float]], float]:
    """Return when the green of each phase starts and how long it is, and when the last barrier's phases have ended.

    Greens are so much of the way from their least to their most.
    """
    greens: dict[int, tuple[float, float]] = {}
    begin = 0.0
    in_order = sorted(phases, key=lambda phase: (phase.barrier, phase.position))
    for _, together in groupby(in_order, key=lambda phase: phase.barrier):
        rings: dict[int, tuple[float, int]] = {}  # how far each has come, and its last phase
        for phase in together:
            start, _ = rings.get(phase.ring, (begin, 0))
            green = 0.0 if math.isnan(phase.most_s) else phase.least_s + part * (phase.most_s - phase.least_s)
            greens[phase.num] = start, green
            rings[phase.ring] = start + green + phase.after_s, phase.num
        begin = max(end for end, _ in rings.values())
        for end, last in rings.values():
            start, green = greens[last]
            if green > 0:
                greens[last] = start, green + begin - end
    return greens, begin
