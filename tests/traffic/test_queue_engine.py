"""Roads that queue: answers worked out by hand, the slow twin, storage, order and conservation in random runs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from queue_town import PLAIN, Witness, chain, demand_of, drive, random_town, roads, stopped
from slow_queue import SlowQueue, roads_of
from town import edge

import routesim as rs
from routesim.errors import CapacityWarning, InputError

CORRIDOR = [(1000.0, 60.0, 3600.0), (1000.0, 60.0, 3600.0), (1000.0, 60.0, 1000.0)]


@pytest.mark.parametrize("physics", ["queue", "plain-queue"])
@pytest.mark.parametrize(
    ("vph", "mean_s", "last_s"),
    # Vehicle n departs at 3600 n / vph and cannot leave before 180 + 3.6 n: D/D/1.
    [(800, 180.0, 180 + 4.5 * 799), (1200, 180 + 0.6 * 599.5, 180 + 3.6 * 1199), (2000, 180 + 1.8 * 999.5, 7376.4)],
)
def test_a_bottleneck_is_a_queue_with_one_server(physics: str, vph: int, mean_s: float, last_s: float) -> None:
    traffic, _ = drive(chain(*CORRIDOR), [[0, 1, 2]] * vph, np.arange(vph) * 3600 / vph, physics)
    assert traffic.mean_travel_time_s == pytest.approx(mean_s, rel=1e-9)
    assert traffic.arrival_s.max() == pytest.approx(last_s, rel=1e-9)
    assert np.diff(traffic.arrival_s) == pytest.approx(max(3.6, 3600 / vph))  # the outflow
    assert traffic.forced_moves == 0


def test_a_crowd_at_once_leaves_one_by_one() -> None:
    traffic, _ = drive(chain(*CORRIDOR), [[0, 1, 2]] * 200, np.linspace(0, 10, 200))
    assert traffic.arrival_s == pytest.approx(180 + 3.6 * np.arange(200))


def test_waiting_outside_is_part_of_the_trip() -> None:
    # The road stores 14 vehicles, lets one in every 1.8 s or so and out every 10 s; the rest wait in front of it.
    traffic, witness = drive(chain((100.0, 10.0, 360.0)), [[0]] * 50, [0.0] * 50, bin_s=20.0)
    assert traffic.travel_time_s == pytest.approx(10 + 10 * np.arange(50))
    entered = np.sort(witness.column("entered_s"))
    assert entered[14:] == pytest.approx(10 + 10 * np.arange(36) + 20)  # the wave of an exit takes 100 m / 5 m/s
    assert np.diff(entered[:14]) == pytest.approx(30 / 14)  # the highest flow of the triangular diagram
    standing = traffic.standing
    assert standing is not None
    # By 20 s, when the first bin ends, ten have entered and one has left; four more entered at least 10 s ago.
    assert standing[0].tolist() == [0, 0, 9, 4, 40]
    assert (standing[:, 2] <= 14).all()
    # The last entry is at 390 s; then nobody waits outside.
    assert (standing[:, 4] > 0).tolist() == [20 * (k + 1) <= 390 for k in range(len(standing))]


def test_a_queue_grows_back_at_the_speed_of_its_shock() -> None:
    # Ten roads of 200 m and 10 s, then one that passes 900 an hour; 1,500 an hour come.
    n, length, wave_s, jam = 10, 200.0, 40.0, 0.14
    network = chain(*[(length, 10.0, 1800.0)] * n, (length, 10.0, 900.0))
    _, witness = drive(network, [list(range(n + 1))] * 600, 2.4 * np.arange(600))
    edges, entered, left = witness.column("edges"), witness.column("entered_s"), witness.left_s
    # Lighthill-Whitham-Richards: (inflow - outflow) / (density in the queue - density before it), in m/s.
    inflow, outflow, free_mps, wave_mps = 1 / 2.4, 1 / 4.0, 20.0, 5.0
    shock = (inflow - outflow) / ((jam - outflow / wave_mps) - inflow / free_mps)
    first = []  # when those who leave a road are first held back by the queue in the next
    for k in range(n):
        held = left[edges == k] > entered[edges == k] + 10.0 + 1e-6
        first.append(left[edges == k][np.argmax(held)])
        assert held.any()
    speeds = -length / np.diff(first)
    assert np.mean(speeds) == pytest.approx(shock, rel=0.02)
    assert speeds == pytest.approx(shock, rel=0.1)  # one vehicle in 28 makes a road full
    # Inside the queue every exit lets someone in a road further back, a wave later.
    assert wave_s == length / wave_mps


def test_what_happens_at_the_front_moves_back_at_the_wave_speed() -> None:
    # The gaps between exits at the end are random. In the queue behind, every road repeats them a wave later.
    network = chain(*[(200.0, 10.0, 1800.0)] * 3, (200.0, 10.0, 500.0))
    physics = rs.physics.PlainQueue(headway_noise=0.2)
    _, witness = drive(network, [[0, 1, 2, 3]] * 400, np.linspace(0, 800, 400), physics)
    edges, left = witness.column("edges"), witness.left_s
    for k in (0, 1, 2):
        behind, ahead = left[edges == k], left[edges == k + 1]
        # 28 vehicles stand on 200 m: number n + 28 moves 40 s after number n, once the queue is there.
        assert behind[150 + 28 :] == pytest.approx(ahead[150 : 400 - 28] + 40.0)


@pytest.mark.parametrize("physics", [PLAIN, rs.physics.Queue()])
@pytest.mark.parametrize("capacities", [(1800.0, 600.0), (1000.0, 1000.0), (1800.0, 1800.0, 45.0), (650.0, 100.0)])
def test_a_merge_shares_in_proportion_to_capacity_and_nobody_starves(
    capacities: tuple[float, ...], physics: rs.physics.Queue
) -> None:
    ways = range(len(capacities))
    network = roads([*((f"s{k}", "m", 500.0, 30.0, capacities[k]) for k in ways), ("m", "t", 100.0, 6.0, 720.0)])
    rng = np.random.default_rng(0)
    # From every side a fifth more than its share of the 720 an hour, which the road behind the merge passes.
    times = [
        (time, k) for k in ways for time in np.arange(0, 3600, 3600 / (720 * 1.2 * capacities[k] / sum(capacities)))
    ]
    times = sorted((time + float(rng.uniform(0, 0.1)), k) for time, k in times)
    last_road = edge(network, "m", "t")
    paths = [[edge(network, f"s{k}", "m"), last_road] for _, k in times]
    traffic, witness = drive(network, paths, [time for time, _ in times], physics)
    assert traffic.forced_moves == 0
    last, vehicles = witness.column("edges") == last_road, witness.column("vehicles")
    came_from = np.array([k for _, k in times])[vehicles[last]]
    left = witness.left_s[last]
    busy = came_from[(left > 1200) & (left < 3600)]
    assert len(busy) == pytest.approx(480, abs=1)
    for k in ways:
        share = capacities[k] / sum(capacities)
        assert np.sum(busy == k) == pytest.approx(480 * share, abs=2.5)
        if np.sum(busy == k) > 1:  # in turns, not in bursts
            assert np.diff(np.flatnonzero(busy == k)).max() <= np.ceil(1 / share) + 1


def test_who_departs_into_a_full_road_has_a_share_too() -> None:
    network = roads([("s", "m", 500.0, 30.0, 1800.0), ("m", "t", 100.0, 6.0, 720.0)])
    times = np.sort(np.concatenate((np.arange(0, 3600, 4.0), np.arange(0.5, 3600, 4.0))))
    paths = [[0, 1] if time % 4 == 0 else [1] for time in times]
    traffic, witness = drive(network, paths, times)
    first = witness.column("vehicles")[witness.column("edges") == 1][200:400]
    # Those outside count with the capacity of the road that they enter: 720 beside 1,800.
    assert sum(len(paths[v]) == 1 for v in first) == pytest.approx(200 * 720 / 2520, abs=2)
    assert traffic.arrived.all()


def replay(network: rs.RoadNetwork, witness: Witness, physics: rs.physics.Queue) -> None:
    """Go through the entries and exits of every road in time: order, headways, storage and waves."""
    edges, entered, left = witness.column("edges"), witness.column("entered_s"), witness.left_s
    for k, rule in enumerate(roads_of(network, physics)):
        came, went = entered[edges == k], left[edges == k]
        assert (np.diff(came) >= 0.0).all()  # in order of exits: first in first out
        for times, headway_s in ((came, rule.entry_headway_s), (went, rule.exit_headway_s)):
            # Of lanes side by side each can have saved one: k + lanes in a row take k headways at least.
            for k in range(1, len(times) - rule.lanes + 1):
                ahead = k + rule.lanes - 1
                assert (times[ahead:] - times[:-ahead] >= k * headway_s - 1e-6).all()
        assert (went - came >= rule.free_s - 1e-9).all()
        if rule.storage < len(came):
            storage = int(rule.storage)
            assert (came[storage:] >= went[:-storage] + rule.wave_s - 1e-9).all()


@pytest.mark.parametrize("seed", range(30))
def test_random_runs_obey_storage_headways_and_order_and_account_for_every_second(seed: int) -> None:
    network, paths, departure_s, physics = random_town(np.random.default_rng(seed), stuck_s=np.inf)
    traffic, witness = drive(network, paths, departure_s, physics, bin_s=7.0)
    inside = traffic.edges_entered - np.bincount(witness.column("vehicles").astype(int), minlength=len(paths))
    assert set(inside.tolist()) <= {0, 1}
    if traffic.arrived.all():
        replay(network, witness, physics)
        assert [traffic.path(v).tolist() for v in range(len(paths))] == paths
        first = witness.column("places") == 0
        outside = witness.column("entered_s")[first] - np.array(departure_s)[witness.column("vehicles")[first]]
        total = traffic.load_seconds.sum() + outside.sum()
        assert total == pytest.approx(traffic.total_travel_time_s, rel=1e-9)
        assert witness.column("travel_time_s").sum() + outside.sum() == pytest.approx(total, rel=1e-9)
    standing = traffic.standing
    assert standing is not None
    storage = np.array([rule.storage for rule in roads_of(network, physics)])
    assert (standing[:, 2] <= storage[standing[:, 1]]).all()
    assert (standing[:, 3] <= standing[:, 2]).all()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("mode", ["queue", "plain-queue"])
def test_nobody_is_lost_at_any_moment(seed: int, mode: str) -> None:
    rng = np.random.default_rng(100 + seed)
    network, paths, departure_s, _ = random_town(rng)
    simulator = rs.TrafficSimulator(network, demand_of(network, paths, departure_s), physics=mode, bin_s=11.0)
    moments = [5.0, *(11.0 * np.arange(1, 12)).tolist(), *rng.uniform(0, 1000, 12).tolist(), 1e5]
    for until_s in sorted(moments):
        witness = Witness(paths)
        traffic, inside = stopped(simulator, witness, until_s)
        left = np.bincount(witness.column("edges").astype(int), minlength=network.n_edges)
        entered = np.bincount(traffic.loads[:, 1], traffic.loads[:, 2], network.n_edges)
        assert entered.sum() == traffic.n_events == traffic.edges_entered.sum()
        assert (entered == left + inside).all()
        on_road = traffic.departed & ~traffic.arrived
        assert inside.sum() == on_road.sum()
        summary = traffic.summary()
        assert summary["arrived"] + summary["driving"] + summary["not_departed"] == len(paths)
        # Seconds on the road so far: those of passages that ended, and those of passages that go on.
        last_in = {v: departure_s[v] for v in range(len(paths))}
        for v, when in zip(witness.column("vehicles").tolist(), witness.left_s.tolist(), strict=True):
            last_in[v] = max(last_in[v], when)
        if not any(traffic.edges_entered[v] == 1 for v in np.flatnonzero(on_road)):
            going_on = sum(until_s - last_in[int(v)] for v in np.flatnonzero(on_road))
            spent = witness.column("travel_time_s").sum() + going_on
            assert traffic.load_seconds.sum() == pytest.approx(spent, rel=1e-9, abs=1e-6)
        # The last bin that has ended says where everybody was at its end.
        standing = traffic.standing
        assert standing is not None
        if until_s in moments[1:12] and inside.sum():
            now = standing[standing[:, 0] == round(until_s / 11.0) - 1]
            assert np.bincount(now[:, 1], now[:, 2], network.n_edges).tolist() == inside.tolist()
            outside = (np.array(departure_s) < until_s) & ~traffic.departed
            assert now[:, 4].sum() == outside.sum()


@example(6487, 20.0)  # vehicles that go round and pass a road more often than it stores vehicles
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([20.0, 100.0, 600.0]))
def test_the_slow_twin_agrees(seed: int, stuck_s: float) -> None:
    network, paths, departure_s, physics = random_town(np.random.default_rng(seed), stuck_s=stuck_s)
    traffic, witness = drive(network, paths, departure_s, physics)
    slow = SlowQueue(network, paths, departure_s, physics).run()
    assert traffic.arrival_s.tolist() == slow.arrival_s  # to the last bit
    assert traffic.forced_moves == slow.forced_moves
    rows = [witness.column(name).tolist() for name in ("vehicles", "edges", "entered_s", "travel_time_s")]
    assert sorted(zip(*rows, strict=True)) == sorted((v, e, start, end - start) for v, e, start, end in slow.passages)


def ring(stuck_s: float) -> tuple[rs.RoadNetwork, list[list[int]], list[float], Any]:
    """Four roads in a ring, each too short for those who want to go three quarters of the way around."""
    network = roads([(str(k), str((k + 1) % 4), 50.0, 5.0, 1200.0) for k in range(4)])
    paths = [[k % 4, (k + 1) % 4, (k + 2) % 4] for k in range(120)]
    return network, paths, [0.25 * k for k in range(120)], rs.physics.PlainQueue(stuck_s=stuck_s)


def test_a_ring_locks_moves_by_force_and_says_so() -> None:
    network, paths, departure_s, physics = ring(100.0)
    with pytest.warns(
        CapacityWarning, match=r"gridlock: \d+ moves were forced .* and 0 of 120 vehicles did not arrive"
    ):
        traffic, witness = drive(network, paths, departure_s, physics)
    assert traffic.arrived.all()
    assert traffic.forced_moves == traffic.summary()["forced_moves"] > 0
    slow = SlowQueue(network, paths, departure_s, physics).run()
    assert traffic.arrival_s.tolist() == pytest.approx(slow.arrival_s)
    assert traffic.forced_moves == slow.forced_moves
    # Nothing moves before somebody has been stuck for 100 s.
    moves = np.sort(np.concatenate((witness.column("entered_s"), witness.left_s)))
    assert np.diff(moves).max() > 50
    # Whoever has more patience is stuck for longer.
    with pytest.warns(CapacityWarning):
        patient, _ = drive(*ring(400.0))
    assert patient.mean_travel_time_s > traffic.mean_travel_time_s


def test_who_never_moves_by_force_may_never_arrive_and_the_run_says_so() -> None:
    with pytest.warns(
        CapacityWarning, match=r"gridlock: 0 moves were forced .* and \d+ of 120 vehicles did not arrive"
    ):
        traffic, witness = drive(*ring(np.inf))
    inside = int((traffic.departed & ~traffic.arrived).sum())
    assert inside >= 4 * 7  # every road is full: seven vehicles stand on 50 m
    assert traffic.edges_entered.sum() == len(witness.column("edges")) + inside


def test_noise_and_headways_are_random_of_mean_one_and_repeat_with_the_seed() -> None:
    network = chain((2000.0, 100.0, 3600.0))
    times = 5.0 * np.arange(4000)
    plain, _ = drive(network, [[0]] * 4000, times)
    noisy = [drive(network, [[0]] * 4000, times, noise=0.05, seed=seed)[0] for seed in (1, 1, 2)]
    assert np.array_equal(noisy[0].arrival_s, noisy[1].arrival_s)
    assert not np.array_equal(noisy[0].arrival_s, noisy[2].arrival_s)
    assert plain.mean_travel_time_s == pytest.approx(100.0)
    assert 100 < noisy[0].mean_travel_time_s < 106  # nobody overtakes, so who is slow holds others back
    crowd = [
        drive(network, [[0]] * 4000, [0.0] * 4000, rs.physics.PlainQueue(headway_noise=0.5), seed=seed)[0]
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(crowd[0].arrival_s, crowd[1].arrival_s)
    gaps = np.diff(crowd[2].arrival_s)
    assert gaps.mean() == pytest.approx(1.0, rel=0.05)  # entries come every 0.99 s, so exits bind
    assert not np.array_equal(crowd[0].arrival_s, crowd[2].arrival_s)


def test_headways_are_as_random_where_vehicles_come_one_by_one() -> None:
    # Every vehicle comes onto an empty road, 0.9 headways after the one before has left.
    network = chain((0.0, 1e-3, 3600.0), (0.0, 1.0, 360.0))
    physics = rs.physics.PlainQueue(headway_noise=0.3)
    traffic, _ = drive(network, [[0, 1]] * 1000, 10.0 * np.arange(1000), physics)
    delays = traffic.travel_time_s - 1.001
    # At a load of 1 a random headway must sometimes hold back the next vehicle.
    assert delays.max() > 1.0


def test_the_parameters_are_checked_and_named() -> None:
    assert rs.physics.Queue().label == "queue (lanes and signals)"
    assert rs.physics.PlainQueue().label == "queue (plain: no lanes, no signals)"
    for name, value in [("jam_density_per_km", 0.0), ("wave_kph", -1.0), ("stuck_s", 0.0), ("headway_noise", -0.1)]:
        with pytest.raises(InputError, match=name):
            rs.physics.Queue(**{name: value})
    with pytest.raises(InputError, match="stuck_s lies above 0 and at most at a day, 86400 seconds, or is inf: never"):
        rs.physics.Queue(stuck_s=86_401.0)
    with pytest.raises(InputError, match="saturation_vph lies between 1 and 100000, got nan"):
        rs.physics.Queue(saturation_vph=float("nan"))


def test_as_many_go_side_by_side_as_a_road_has_lanes() -> None:
    # Two lanes that pass 3,600 an hour together; the fourth is on its own.
    network = roads([("0", "1", 500.0, 30.0, 3600.0)], lanes=2)
    (rule,) = roads_of(network, PLAIN)
    traffic, witness = drive(network, [[0]] * 4, [100.0, 100.0, 100.0, 200.0])
    gap_s = rule.entry_headway_s
    assert 0 < gap_s <= 1.0
    assert witness.column("entered_s") == pytest.approx([100.0, 100.0, 100.0 + gap_s, 200.0])
    assert traffic.arrival_s == pytest.approx([130.0, 130.0, 131.0, 230.0], abs=1e-9)


@pytest.mark.parametrize("bin_s", [0.1, 0.3, 0.7])
def test_time_bins_of_any_length_come_to_an_end(bin_s: float) -> None:
    """Multiples of these lengths are rounded, some of them down."""
    network = roads([("0", "1", 500.0, 30.0, 3600.0)])
    demand = rs.Demand.from_trips({"origin": ["0"] * 3, "destination": ["1"] * 3, "departure_s": [0.0, 10.0, 20.0]})
    for physics in ("queue", "window"):
        traffic = rs.TrafficSimulator(network, demand, physics=physics, bin_s=bin_s).run([[0]] * 3)
        assert traffic.arrival_s.tolist() == pytest.approx([30.0, 40.0, 50.0])
        assert traffic.edge_counts.sum() == 3
