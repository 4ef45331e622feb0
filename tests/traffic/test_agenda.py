"""The agenda: the order of a plain heap, with times that change and items that are taken off while they wait."""

from heapq import heapify, heappop

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from routesim.traffic.engines.agenda import Agenda, cancel, schedule


def first(agenda: Agenda) -> tuple[float, int] | None:
    return (float(agenda.times[0]), int(agenda.items[0])) if agenda.size[0] else None


def holds(agenda: Agenda, due: dict[int, float]) -> None:
    """The agenda has exactly these items, knows the place of each, and no node is due before the one above it."""
    size = int(agenda.size[0])
    assert {int(agenda.items[k]): float(agenda.times[k]) for k in range(size)} == due
    assert [int(agenda.place[agenda.items[k]]) for k in range(size)] == list(range(size))
    assert (np.delete(agenda.place, list(due)) == -1).all()
    keys = list(zip(agenda.times[:size].tolist(), agenda.items[:size].tolist(), strict=True))
    assert all(keys[(k - 1) // 4] < keys[k] for k in range(1, size))


def drain(agenda: Agenda) -> list[tuple[float, int]]:
    found = []
    while (head := first(agenda)) is not None:
        found.append(head)
        cancel(agenda, head[1])
    return found


TIMES = st.one_of(st.integers(0, 4).map(float), st.floats(0.0, 1e6), st.just(np.inf))  # with many ties
STEPS = st.lists(st.tuples(st.integers(0, 29), st.one_of(st.none(), TIMES)), max_size=200)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_whatever_is_put_on_moved_or_taken_off_the_order_is_that_of_a_plain_heap(
    steps: list[tuple[int, float | None]],
) -> None:
    agenda, due = Agenda.build(30), dict[int, float]()
    for item, time in steps:
        if time is None:
            cancel(agenda, item)  # does nothing where it is not on the agenda
            due.pop(item, None)
        else:
            schedule(agenda, item, time)
            due[item] = time
        holds(agenda, due)
        assert first(agenda) == min(((when, what) for what, when in due.items()), default=None)
    heap = [(time, item) for item, time in due.items()]
    heapify(heap)
    assert drain(agenda) == [heappop(heap) for _ in range(len(heap))]


def test_items_of_one_moment_are_due_in_the_order_of_their_numbers() -> None:
    agenda = Agenda.build(500)
    for item in np.random.default_rng(0).permutation(500).tolist():
        schedule(agenda, item, 7.0)
    assert drain(agenda) == [(7.0, item) for item in range(500)]


def test_a_full_agenda_is_drained_and_filled_again() -> None:
    rng, agenda = np.random.default_rng(1), Agenda.build(2000)
    for _ in range(2):
        times = rng.random(2000).tolist()
        for item, time in enumerate(times):
            schedule(agenda, item, time)
        for item in range(0, 2000, 3):  # some earlier, some later
            times[item] = float(rng.random())
            schedule(agenda, item, times[item])
        assert drain(agenda) == sorted((time, item) for item, time in enumerate(times))
        assert (agenda.place == -1).all()
