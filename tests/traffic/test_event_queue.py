"""The queue of events: the order of a plain heap, whatever comes, and whole runs as with a sorted list."""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_simulator import grid, rush

import routesim as rs
from routesim.traffic.engines import window_kernel as events
from routesim.traffic.engines.event_queue import (
    FEW,
    LEVEL,
    MANY,
    NEAR,
    NEVER,
    WAITING,
    EventQueue,
    add,
    advance,
    empty_queue,
    key_of,
    replace,
    take,
    time_of,
)


def drain(queue: EventQueue) -> Iterator[tuple[float, int]]:
    """Take everything off a queue."""
    while True:
        if queue.book[NEAR] == 0:
            advance(queue, NEVER)
        if queue.book[NEAR] == 0:
            return
        yield time_of(queue.near[0, 0]), int(queue.near[0, 1])
        take(queue)


def test_keys_have_the_order_of_the_times() -> None:
    times = [0.0, 5e-324, 1e-3, 1.0, np.nextafter(1.0, 2.0), 2.0, 1e4, 1e300, np.inf]
    keys = [key_of(time) for time in times]
    assert keys == sorted(set(keys))
    assert keys[-1] < NEVER
    assert [time_of(key) for key in keys] == times
    assert key_of(-0.0) == key_of(0.0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 1e-3, 1.0, 30.0, 1e6]), st.booleans())
def test_the_order_is_that_of_a_plain_heap(seed: int, spread: float, whole: bool) -> None:
    """Vehicles depart from a list and every event brings about the next, soon or late, often at the same moment."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 1500))
    departures = np.sort(rng.random(n) * rng.choice([0.0, 1.0, 1e4]))
    delays = 1e-3 + rng.random((n, 6)) * spread * 10.0 ** -rng.integers(0, 8, (n, 6))
    if whole:
        departures, delays = np.floor(departures), np.ceil(delays)
    queue, heap = empty_queue(n), list[tuple[float, int, int]]()
    step, departed, serial = np.zeros(n, dtype=np.int64), 0, n
    while True:
        key = key_of(departures[departed]) if departed < n else NEVER
        if queue.book[NEAR] == 0:
            advance(queue, key)
        departs = departed < n and not (heap and heap[0][0] < departures[departed])
        # What the queue holds in its heap is its first event, if any comes before the departure.
        assert departs == (departed < n and not (queue.book[NEAR] > 0 and queue.near[0, 0] < key))
        if not departs and not heap:
            break
        if departs:
            now, vehicle = float(departures[departed]), departed
            departed += 1
        else:
            now, _, vehicle = heappop(heap)
            assert (time_of(queue.near[0, 0]), queue.near[0, 1] % n) == (now, vehicle)
        if step[vehicle] == delays.shape[1]:
            take(queue)
            continue
        leaves = now + float(delays[vehicle, step[vehicle]])
        heappush(heap, (leaves, serial, vehicle))
        (add if departs else replace)(queue, key_of(leaves), serial * n + vehicle, key_of(now))
        serial += 1
        step[vehicle] += 1
    assert (step == delays.shape[1]).all()
    assert queue.book[NEAR] == queue.book[WAITING : WAITING + 8].sum() == 0


def test_a_crowded_heap_gives_its_later_events_back() -> None:
    queue = empty_queue(5000)
    add(queue, key_of(100.0), 0, key_of(0.0))
    advance(queue, NEVER)
    level = queue.book[LEVEL]
    times = [100.0, *(100.0 + np.random.default_rng(0).random(4999) * 27.0).tolist()]
    for tag, time in enumerate(times[1:], 1):
        add(queue, key_of(time), tag, key_of(100.0))
        assert queue.book[NEAR] <= MANY
    assert queue.book[LEVEL] < level
    assert list(drain(queue)) == sorted(zip(times, range(5000), strict=True))


def test_a_full_bucket_is_dealt_out_before_it_reaches_the_heap() -> None:
    queue = empty_queue(5000)
    times = (1000.0 + np.random.default_rng(0).random(5000)).tolist()
    for tag, time in enumerate(times):
        add(queue, key_of(time), tag, key_of(0.0))
    advance(queue, NEVER)
    assert 0 < queue.book[NEAR] <= FEW
    assert list(drain(queue)) == sorted(zip(times, range(5000), strict=True))


def test_any_number_of_events_may_be_at_one_moment() -> None:
    queue = empty_queue(3000)
    for tag in range(2999, -1, -1):
        add(queue, key_of(7.0), tag, key_of(1.0))
    assert list(drain(queue)) == [(7.0, tag) for tag in range(3000)]


def sorted_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a sorted list in the place of the queue, and run the core as plain Python."""

    def add(queue: EventQueue, key: int, tag: int, now: int) -> None:  # noqa: ARG001 - the queue's own signature
        rows = [*map(tuple, queue.near[: queue.book[NEAR]].tolist()), (key, tag)]
        queue.book[NEAR] += 1
        queue.near[: queue.book[NEAR]] = sorted(rows)

    def take(queue: EventQueue) -> None:
        queue.book[NEAR] -= 1
        queue.near[: queue.book[NEAR]] = queue.near[1 : queue.book[NEAR] + 1].copy()

    def replace(queue: EventQueue, key: int, tag: int, now: int) -> None:
        take(queue)
        add(queue, key, tag, now)

    for name, function in (("add", add), ("take", take), ("replace", replace)):
        monkeypatch.setattr(events, name, function)
    monkeypatch.setattr(events, "advance", lambda *_: None)
    monkeypatch.setattr(events, "_look_ahead", lambda *_: None)
    monkeypatch.setattr(events, "drive", events.drive.py_func)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("router", "options"),
    [
        (rs.FreeFlowRouter(), {}),
        (rs.FreeFlowRouter(), {"overtaking": False}),
        (rs.GreedyRouter(), {"noise": 0.2}),
        (rs.GreedyRouter(), {"reroute_share": 0.5, "reroute_s": 30.0}),
        (rs.FreeFlowRouter(), {"reroute_share": 0.5, "reroute_s": 30.0, "overtaking": False, "noise": 0.1}),
        (rs.CARMABRouter(interval_s=60.0), {}),
        (rs.UCB1(), {"noise": 0.1}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else type(value).__name__,
)
def test_a_run_is_the_same_to_the_last_bit_as_with_a_sorted_list(
    router: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    network = grid()
    demand = rush(network, 700, 120, seed=2)
    simulator = rs.TrafficSimulator(network, demand, 60.0, **options)
    runs = [simulator.run(router, seed=4), simulator.run(router, seed=4, until_s=90.0)]
    sorted_list(monkeypatch)
    for run, until_s in zip(runs, (None, 90.0), strict=True):
        slow = simulator.run(router, seed=4, until_s=until_s)
        assert run.n_events == slow.n_events > 700
        for name in ("arrival_s", "path_starts", "path_lengths", "edges_entered", "path_edges", "loads"):
            assert getattr(run, name).tobytes() == getattr(slow, name).tobytes(), name
