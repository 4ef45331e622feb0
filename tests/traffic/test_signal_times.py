"""Known programmes of signals in the queue engine: by hand, beside the default one, and vehicles at green only."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gmns_crossroads import CYCLE_S, GREENS, PHASES, TABLES, write_tables
from hypothesis import given, settings
from hypothesis import strategies as st

import routesim as rs
from routesim.traffic.engines.queue_roads import capacities
from routesim.traffic.engines.signals import default_greens, signal_greens

FREE_S = 36.0  # on each road


@pytest.fixture
def network(tmp_path: Path) -> rs.RoadNetwork:
    return rs.RoadNetwork.from_gmns(write_tables(tmp_path, TABLES))


def edge(network: rs.RoadNetwork, tail: int, head: int) -> int:
    ends = list(zip(network.tails.tolist(), network.heads.tolist(), strict=True))
    return ends.index((network.node_index(tail), network.node_index(head)))


def drive(
    network: rs.RoadNetwork, tail: int, head: int, departure_s: Sequence[float], **options: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return when vehicles from one arm to another entered their second road, and how long they waited for it."""
    n = len(departure_s)
    demand = rs.Demand.from_trips({"origin": [tail] * n, "destination": [head] * n, "departure_s": departure_s})
    path = [edge(network, tail, 5), edge(network, 5, head)]
    traffic = rs.TrafficSimulator(network, demand, physics=rs.physics.Queue(**options)).run([path] * n)
    return traffic.arrival_s - FREE_S, traffic.travel_time_s - 2 * FREE_S


def test_the_mean_of_a_programme_by_hand(network: rs.RoadNetwork) -> None:
    greens = signal_greens(network, 60.0)
    west, east, south, north = (edge(network, arm, 5) for arm in (1, 2, 3, 4))
    # From the east straight on 45 s, and left 10 s of these: the road is green for 45 s.
    shares = [30 / 90, 45 / 90, 25 / 90, 25 / 90]
    assert greens.share[[west, east, south, north]].tolist() == pytest.approx(shares)
    waits = [60**2 / 180, (2 * 45**2 / 180 + 80**2 / 180) / 3, 65**2 / 180, 65**2 / 180]
    assert greens.wait_s[[west, east, south, north]].tolist() == pytest.approx(waits)
    others = np.setdiff1d(np.arange(network.n_edges), [west, east, south, north])
    assert greens.share[others].tolist() == [1.0] * 4
    rows = greens.rows
    assert len(rows.to) == len(PHASES)
    assert (np.diff(rows.first)[others] == 0).all()
    assert rows.cycle_s.tolist() == [CYCLE_S] * len(PHASES)


@pytest.mark.parametrize(
    ("tail", "head", "departure_s", "wait_s"),
    [
        (1, 2, 0.0, 0.0),  # at the junction at 36, green until 37
        (1, 2, 2.0, 59.0),  # until 97
        (2, 1, 2.0, 0.0),  # green until 52
        (2, 3, 0.0, 6.0),  # left: from 42
        (2, 3, 17.0, 79.0),  # at 53, green from 132
        (3, 4, 0.0, 21.0),  # the side street: from 57
    ],
)
@pytest.mark.parametrize("cycle_s", [60.0, 120.0])
def test_vehicles_wait_for_the_green_of_their_movement(
    tail: int, head: int, departure_s: float, wait_s: float, cycle_s: float, network: rs.RoadNetwork
) -> None:
    _, waited = drive(network, tail, head, [departure_s], cycle_s=cycle_s)
    assert waited.tolist() == pytest.approx([wait_s])


@settings(max_examples=20, deadline=None)
@given(movement=st.sampled_from(sorted(PHASES)), seed=st.integers(0, 1000))
def test_vehicles_pass_at_green_only(
    movement: tuple[int, int], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    crossroads = rs.RoadNetwork.from_gmns(write_tables(tmp_path_factory.mktemp("crossroads"), TABLES))
    rng = np.random.default_rng(seed)
    entered, waited = drive(crossroads, *movement, np.cumsum(rng.uniform(20.0, 200.0, 50)))
    start_s, green_s = GREENS[PHASES[movement]]
    second = (entered - start_s + 1e-6) % CYCLE_S
    assert (second <= green_s + 2e-6).all()
    assert waited.min() > -1e-6
    assert waited.max() <= CYCLE_S - green_s + 6.0  # and behind others of the same red


@pytest.mark.parametrize(("movement", "lanes"), [((2, 3), 1), ((1, 2), 2), ((3, 4), 1)])
def test_a_queue_passes_what_its_green_lets_through(
    movement: tuple[int, int], lanes: int, network: rs.RoadNetwork
) -> None:
    """Left turns have one lane of two, and 10 s in 90."""
    entered, _ = drive(network, *movement, np.arange(1500) * 0.5)
    passed = ((entered > 4 * CYCLE_S) & (entered <= 14 * CYCLE_S)).sum()
    _, green_s = GREENS[PHASES[movement]]
    assert passed == pytest.approx(10 * green_s * lanes * 1800.0 / 3600.0, abs=2)


def test_roads_of_which_a_programme_does_not_speak_have_no_signals(network: rs.RoadNetwork) -> None:
    times, north = network.signal_times, edge(network, 4, 5)
    kept = times.edge != north
    columns = {name: values[kept] for name, values in times.columns().items()}
    silent = replace(network, signal_times=rs.SignalTimes(**columns))
    greens = signal_greens(silent, 90.0)
    assert greens.share[north] == 1.0
    assert greens.rows.first[north] == greens.rows.first[north + 1]
    assert drive(silent, 4, 3, [0.0, 100.0])[1].tolist() == pytest.approx([0.0, 0.0])


def test_other_nodes_have_the_default_programme(network: rs.RoadNetwork) -> None:
    both = replace(network, signals=np.array([True, False, False, False, True]))
    greens, default = signal_greens(both, 60.0), default_greens(both, 60.0)
    back, west = edge(network, 5, 1), edge(network, 1, 5)
    assert np.diff(default.rows.first).nonzero()[0].tolist() == [back]
    row = greens.rows.first[back]
    assert greens.rows.cycle_s[row] == 60.0
    assert greens.share[back] == default.share[back] == 0.7
    assert greens.wait_s[back] == default.wait_s[back]
    assert greens.rows.cycle_s[greens.rows.first[west]] == CYCLE_S


@pytest.mark.parametrize(("metres", "stops"), [(25.0, False), (500.0, True)])
def test_whoever_passed_a_known_corner_is_not_stopped_at_the_next(
    metres: float, stops: bool, network: rs.RoadNetwork
) -> None:
    """The default programme of a corner does not stop those who come from the other one."""
    back, west = edge(network, 5, 1), edge(network, 1, 5)
    length_m = network.length_m.copy()
    length_m[[back, west]] = metres
    corners = replace(network, length_m=length_m, signals=np.array([True, False, False, False, True]))
    greens = signal_greens(corners, 90.0)
    assert (greens.share[back] < 1.0) == stops
    assert greens.share[west] == pytest.approx(30 / 90)  # as the programme says


@pytest.mark.parametrize("lanes", [True, False])
def test_red_is_in_a_given_capacity_already(lanes: bool, network: rs.RoadNetwork) -> None:
    given_vph = np.full(network.n_edges, 700.0)
    known = replace(network, capacity_vph=given_vph, imputed_bits=np.zeros(network.n_edges, dtype=np.uint8))
    greens = signal_greens(known, 90.0)
    mean_vph = capacities(known, rs.physics.Queue(lanes=lanes), greens).exit_vph * greens.share
    assert mean_vph.tolist() == pytest.approx([700.0] * network.n_edges)


def test_the_physics_can_do_without_signals(network: rs.RoadNetwork) -> None:
    assert drive(network, 1, 2, [2.0], signals=False)[1].tolist() == pytest.approx([0.0])


def test_greens_that_overlap_or_reach_over_the_end_of_the_cycle(network: rs.RoadNetwork) -> None:
    west, to = edge(network, 1, 5), edge(network, 5, 2)
    times = rs.SignalTimes([west] * 3, [to] * 3, [90.0] * 3, [80.0, 0.0, 30.0], [20.0, 15.0, 10.0])
    greens = signal_greens(replace(network, signal_times=times), 90.0)
    # Red from 15 to 30 and from 40 to 80.
    assert greens.share[west] == pytest.approx(35 / 90)
    assert greens.wait_s[west] == pytest.approx((15**2 + 40**2) / 180)
    always = rs.SignalTimes([west], [-1], [90.0], [50.0], [90.0])
    greens = signal_greens(replace(network, signal_times=always), 90.0)
    assert (greens.share[west], greens.wait_s[west]) == (1.0, 0.0)
