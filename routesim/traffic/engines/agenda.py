"""An agenda of items with a time each: which is due first, with times that may change while they wait.

A heap of four children a node that knows the place of every item, so that an item's time is changed or taken off in
logarithmic time. Items of equal times are due in the order of their numbers.
"""

from typing import NamedTuple, Self

import numpy as np

from routesim.arrays import Floats, Ints, Ints32
from routesim.kernels import inlined_kernel


class Agenda(NamedTuple):
    """The item `items[0]` is due first, at `times[0]`; `place` is the place of each item, -1 where it has none."""

    times: Floats
    items: Ints32
    place: Ints32
    size: Ints

    @classmethod
    def build(cls, n_items: int) -> Self:
        """Return an agenda on which nothing is due."""
        return cls(
            np.empty(n_items),
            np.empty(n_items, dtype=np.int32),
            np.full(n_items, -1, dtype=np.int32),
            np.zeros(1, dtype=np.int64),
        )


@inlined_kernel
def _up(agenda: Agenda, slot: int, item: int, time: float) -> int:
    """Find the place of an item at or above a free slot, moving those after it down."""
    times, items, place, _ = agenda
    while slot > 0:
        above = (slot - 1) >> 2
        other = times[above]
        if other < time or (other == time and items[above] < item):
            break
        times[slot], items[slot] = other, items[above]
        place[items[slot]] = slot
        slot = above
    return slot


@inlined_kernel
def _down(agenda: Agenda, slot: int, item: int, time: float) -> int:
    """Find the place of an item at or below a free slot, moving those before it up."""
    times, items, place, size = agenda
    child = 4 * slot + 1
    while child < size[0]:
        best, least, first = child, times[child], items[child]
        # Which child comes first is a coin toss: without branches there is nothing to guess.
        for other in range(child + 1, min(child + 4, size[0])):
            before = (times[other] < least) | ((times[other] == least) & (items[other] < first))
            best = other if before else best
            least = times[other] if before else least
            first = items[other] if before else first
        if time < least or (time == least and item < first):
            break
        times[slot], items[slot], place[first] = least, first, slot
        slot, child = best, 4 * best + 1
    return slot


@inlined_kernel
def schedule(agenda: Agenda, item: int, time: float) -> None:
    """Let an item be due at a time, whether it is on the agenda or not."""
    slot = agenda.place[item]
    if slot < 0:
        slot = _up(agenda, agenda.size[0], item, time)
        agenda.size[0] += 1
    elif time < agenda.times[slot]:
        slot = _up(agenda, slot, item, time)
    else:
        slot = _down(agenda, slot, item, time)
    agenda.times[slot], agenda.items[slot], agenda.place[item] = time, item, slot


@inlined_kernel
def cancel(agenda: Agenda, item: int) -> None:
    """Take an item off the agenda, if it is on it."""
    times, items, place, size = agenda
    slot = place[item]
    if slot < 0:
        return
    place[item] = -1
    size[0] -= 1
    if slot == size[0]:
        return
    last, time = items[size[0]], times[size[0]]
    found = _up(agenda, slot, last, time)
    if found == slot:
        found = _down(agenda, slot, last, time)
    times[found], items[found], place[last] = time, last, found
