"""Traffic signals of the queue engine: programmes worked out by hand, what they pass, how long they make wait."""

from collections.abc import Sequence
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from queue_town import drive

import routesim as rs
from routesim.errors import InputError
from routesim.traffic.engines.queue_roads import Greens, capacities
from routesim.traffic.engines.signals import JUNCTION_M, LOST_S, default_greens

CYCLE_S = 90.0
ARMS = {"w": (-1.0, 0.0), "e": (1.0, 0.0), "s": (0.0, -1.0), "n": (0.0, 1.0)}


def junction(arms: str, *, lanes: dict[str, int] | None = None, capacity_vph: float | None = None) -> rs.RoadNetwork:
    """Two-way roads of 500 m and 36 s from a node x with signals; edges lead from each arm to x, then back."""
    graph = nx.MultiDiGraph(crs="planar")
    for arm in arms:
        graph.add_node(arm, x=500.0 * ARMS[arm][0], y=500.0 * ARMS[arm][1])
    graph.add_node("x", x=0.0, y=0.0, highway="traffic_signals")
    data = {} if capacity_vph is None else {"capacity_vph": capacity_vph}
    for ends in ([(arm, "x") for arm in arms], [("x", arm) for arm in arms]):
        for tail, head in ends:
            count = (lanes or {}).get(tail if head == "x" else head, 1)
            graph.add_edge(tail, head, length=500.0, speed_kph=50.0, lanes=str(count), highway="secondary", **data)
    return rs.RoadNetwork.from_networkx(graph)


def through(
    network: rs.RoadNetwork, tail: str, head: str, departure_s: Sequence[float]
) -> tuple[rs.Demand, list[list[int]]]:
    """Vehicles from one arm to another, and their path."""
    n = len(departure_s)
    demand = rs.Demand.from_trips({"origin": [tail] * n, "destination": [head] * n, "departure_s": departure_s})
    ends = list(zip(network.tails.tolist(), network.heads.tolist(), strict=True))
    a, x, b = (network.node_index(label) for label in (tail, "x", head))
    return demand, [[ends.index((a, x)), ends.index((x, b))]] * n


def shares(network: rs.RoadNetwork, cycle_s: float = CYCLE_S) -> list[float]:
    return default_greens(network, cycle_s).share.tolist()


def test_a_crossing_shares_what_the_two_phases_do_not_lose() -> None:
    # 90 s without twice 5 s are 80 s, of which each of two streets with one lane has half.
    network = junction("wesn")
    greens = default_greens(network, CYCLE_S)
    assert greens.share.tolist() == pytest.approx([40 / 90] * 4 + [1.0] * 4)
    assert greens.wait_s.tolist() == pytest.approx([(50 / 90) ** 2 * 45] * 4 + [0.0] * 4)
    rows = greens.rows
    assert rows.first.tolist() == [0, 1, 2, 3, 4, 4, 4, 4, 4]
    assert rows.to.tolist() == [-1] * 4
    assert rows.cycle_s.tolist() == [CYCLE_S] * 4
    assert rows.green_s.tolist() == pytest.approx([40.0] * 4)
    west, east, south, north = rows.start_s.tolist()
    assert (west, south) == (east, north)
    assert (south - west) % CYCLE_S == pytest.approx(45.0)


@pytest.mark.parametrize(
    ("lanes", "along", "across"),
    [
        ({"w": 3, "e": 3}, 60 / 90, 20 / 90),
        ({"w": 3}, 60 / 90, 20 / 90),  # the widest road of a phase counts
        ({"n": 3}, 20 / 90, 60 / 90),
        ({"w": 9}, 80 / 90 - 0.2, 0.2),  # the others have at least a fifth of the cycle
    ],
)
def test_wide_streets_have_longer_green(lanes: dict[str, int], along: float, across: float) -> None:
    assert shares(junction("wesn", lanes=lanes))[:4] == pytest.approx([along, along, across, across])


def test_a_side_street_has_a_phase_of_its_own() -> None:
    assert shares(junction("wes", lanes={"w": 3, "e": 3}))[:3] == pytest.approx([60 / 90, 60 / 90, 20 / 90])


def test_a_crossing_on_foot_is_green_most_of_the_time() -> None:
    assert shares(junction("we")) == [0.7, 0.7, 1.0, 1.0]
    assert shares(junction("w")) == [0.7, 1.0]


def test_roads_that_bend_arrive_as_their_last_piece_does() -> None:
    network = junction("we")
    # The road from the east ends southwards.
    shape = np.array([[500.0, 0.0], [0.0, 500.0], [0.0, 0.0]])
    network = replace(network, shape_xy=shape, shape_offsets=np.array([0, 0, 3, 3, 3]))
    assert shares(network)[:2] == pytest.approx([40 / 90] * 2)


def test_roads_without_a_place_cross_in_turn() -> None:
    graph = nx.DiGraph()
    for arm in "abcd":
        graph.add_edge(arm, "x", free_flow_s=10.0)
    graph.nodes["x"]["highway"] = "traffic_signals"
    greens = default_greens(rs.RoadNetwork.from_networkx(graph), CYCLE_S)
    assert greens.share.tolist() == pytest.approx([40 / 90] * 4)
    assert np.unique(greens.rows.start_s).size == 2


@pytest.mark.parametrize(("metres", "stops"), [(JUNCTION_M, 1), (JUNCTION_M + 1.0, 2)])
def test_corners_of_one_junction_stop_nobody_twice(metres: float, stops: int) -> None:
    """A street whose directions are apart is crossed at two nodes with signals."""
    graph = nx.DiGraph(crs="planar")
    for node, x, y in (
        ("s", 0, -500),
        ("x", 0, 0),
        ("y", 0, metres),
        ("n", 0, 500),
        ("e", 500, metres),
        ("w", -500, 0),
    ):
        graph.add_node(node, x=float(x), y=float(y))
    graph.nodes["x"]["highway"] = graph.nodes["y"]["highway"] = "traffic_signals"
    for tail, head, length in (("s", "x", 500), ("x", "y", metres), ("y", "n", 500), ("w", "x", 500), ("e", "y", 500)):
        graph.add_edge(tail, head, length=float(length), speed_kph=50.0)
    network = rs.RoadNetwork.from_networkx(graph)
    greens = default_greens(network, CYCLE_S)
    path = [
        next(
            e
            for e in range(5)
            if (network.tails[e], network.heads[e]) == (network.node_index(a), network.node_index(b))
        )
        for a, b in (("s", "x"), ("x", "y"), ("y", "n"), ("w", "x"), ("e", "y"))
    ]
    assert (greens.share[path[:3]] < 1).sum() == stops
    starts = {e: greens.rows.start_s[greens.rows.first[e]] for e in (path[3], path[4])}
    assert (starts[path[3]] == starts[path[4]]) == (stops == 1)  # one junction, one programme


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_crossing_streets_are_never_green_together(data: st.DataObject) -> None:
    arms = data.draw(st.sampled_from(["wesn", "wes", "wn", "esn"]))
    lanes = {arm: data.draw(st.integers(1, 6)) for arm in arms}
    cycle_s = data.draw(st.floats(20.0, 600.0))
    network = junction(arms, lanes=lanes)
    rows = default_greens(network, cycle_s).rows
    assert rows.green_s.min() >= 0.2 * cycle_s - 1e-9
    times = np.linspace(0.0, cycle_s, 1000)
    green = (times[:, np.newaxis] - rows.start_s) % cycle_s < rows.green_s
    axis = np.array([arm in "we" for arm in arms])
    assert not (green[:, axis].any(axis=1) & green[:, ~axis].any(axis=1)).any()
    # Of each phase 5 s are lost.
    assert rows.green_s[axis].max() + rows.green_s[~axis].max() == pytest.approx(cycle_s - 2 * LOST_S)


def test_nodes_start_their_cycles_at_moments_of_their_own_and_always_the_same() -> None:
    graph = nx.DiGraph()
    for node in range(50):
        graph.add_edge(("a", node), ("x", node), free_flow_s=10.0)
        graph.nodes["x", node]["highway"] = "traffic_signals"
    network = rs.RoadNetwork.from_networkx(graph)
    starts = default_greens(network, CYCLE_S).rows.start_s
    assert np.array_equal(starts, default_greens(network, CYCLE_S).rows.start_s)
    assert np.unique(starts).size == 50
    assert np.histogram(starts, bins=5, range=(0.0, CYCLE_S))[0].min() >= 8


def test_no_signals_no_programme() -> None:
    network = replace(junction("wesn"), signals=np.zeros(5, dtype=np.bool_))
    greens = default_greens(network, CYCLE_S)
    assert len(greens.rows.to) == 0
    assert greens.share.tolist() == [1.0] * 8


@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.parametrize("arms", ["we", "wesn"])
def test_a_capacity_that_is_given_is_not_cut_by_the_red(arms: str, lanes: bool) -> None:
    """Red is in a given capacity already, and a guessed one of a class is replaced by the saturation flow."""
    network, physics = junction(arms, capacity_vph=700.0), rs.physics.Queue(lanes=lanes)
    greens = default_greens(network, CYCLE_S)
    mean_vph = capacities(network, physics, greens).exit_vph * greens.share
    assert mean_vph.tolist() == pytest.approx([700.0] * network.n_edges)
    guessed = junction(arms)
    mean_vph = capacities(guessed, physics, greens).exit_vph * greens.share
    expected = 1800.0 * greens.share if lanes else guessed.capacity_vph
    assert mean_vph.tolist() == pytest.approx(expected.tolist())


@pytest.mark.parametrize(
    ("arms", "lanes", "cycle_s"),
    [
        ("we", {}, 90.0),
        ("wesn", {}, 90.0),
        ("wesn", {"s": 9}, 90.0),
        ("wesn", {}, 61.0),
        ("wesn", {"w": 2, "e": 2}, 75.5),
    ],
)
def test_a_queue_passes_the_green_share_of_the_saturation_flow(
    arms: str, lanes: dict[str, int], cycle_s: float
) -> None:
    network = junction(arms, lanes=lanes)
    demand, paths = through(network, "w", "e", np.arange(4000) * 0.1)
    physics = rs.physics.Queue(cycle_s=cycle_s)
    arrivals = np.sort(rs.TrafficSimulator(network, demand, physics=physics).run(paths).arrival_s)
    share = default_greens(network, cycle_s).share[paths[0][0]]
    # From one cycle to another after the first: so many vehicles, up to those of one lane that round up.
    cycles = 20
    passed = ((arrivals > 4 * cycle_s) & (arrivals <= (4 + cycles) * cycle_s)).sum()
    expected = share * 1800.0 * lanes.get("w", 1) / 3600.0 * cycles * cycle_s
    assert passed == pytest.approx(expected, abs=lanes.get("w", 1))


@pytest.mark.parametrize("lanes", [True, False])
def test_a_given_capacity_is_what_a_queue_passes_in_the_long_run(lanes: bool) -> None:
    network = junction("wesn", capacity_vph=700.0)
    demand, paths = through(network, "w", "e", np.arange(1000) * 0.1)
    arrivals = np.sort(rs.TrafficSimulator(network, demand, physics=rs.physics.Queue(lanes=lanes)).run(paths).arrival_s)
    passed = ((arrivals > 360.0) & (arrivals <= 360.0 + 40 * CYCLE_S)).sum()
    assert passed == pytest.approx(700.0, abs=1)


@pytest.mark.parametrize(("arms", "lanes"), [("we", {}), ("wesn", {}), ("wesn", {"s": 9})])
def test_few_vehicles_wait_half_the_red_if_they_come_at_red(arms: str, lanes: dict[str, int]) -> None:
    network = junction(arms, lanes=lanes)
    demand, paths = through(network, "w", "e", np.arange(2000) * 97.31)  # moments of the cycle in turn, none a queue
    greens = default_greens(network, CYCLE_S)
    traffic = rs.TrafficSimulator(network, demand, physics="queue").run(paths)
    wait_s = traffic.travel_time_s - network.free_flow_s[paths[0]].sum()
    share = greens.share[paths[0][0]]
    assert wait_s.mean() == pytest.approx((1 - share) ** 2 * CYCLE_S / 2, rel=0.02)
    assert wait_s.mean() == pytest.approx(greens.wait_s[paths[0][0]], rel=0.02)
    assert wait_s.min() == pytest.approx(0.0, abs=1e-6)
    assert wait_s.max() == pytest.approx((1 - share) * CYCLE_S, rel=0.02)
    assert (wait_s < 1e-6).mean() == pytest.approx(share, abs=0.01)


def is_red(greens: Greens, edge: int, times: np.ndarray) -> np.ndarray:
    row = greens.rows.first[edge]
    phase = (times - greens.rows.start_s[row]) % greens.rows.cycle_s[row]
    return (phase > greens.rows.green_s[row] + 1e-6) & (phase < greens.rows.cycle_s[row] - 1e-6)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), vehicles=st.integers(1, 400))
def test_nobody_passes_at_red(seed: int, vehicles: int) -> None:
    network = junction("wesn", lanes={"w": 2, "e": 4})  # so wide that nobody is held up on the road behind
    greens = default_greens(network, CYCLE_S)
    rng = np.random.default_rng(seed)
    departure_s = np.sort(rng.uniform(0.0, 600.0, vehicles))
    _, paths = through(network, "w", "e", departure_s)
    _, witness = drive(network, paths, departure_s, "queue")
    passed = witness.column("entered_s")[witness.column("edges") == paths[0][1]]
    assert len(passed) == vehicles
    assert not is_red(greens, paths[0][0], passed).any()


@pytest.mark.parametrize("stuck_s", [200.0, np.inf])
def test_nobody_who_was_held_back_passes_at_red_once_there_is_room(stuck_s: float) -> None:
    """The road behind takes one vehicle in 36 s and is full, so that those at green wait, some into the red."""
    network = junction("wesn")
    slow = network.capacity_vph.copy()
    demand, paths = through(network, "w", "e", np.arange(300) * 1.0)
    slow[paths[0][1]] = 100.0
    bits = network.imputed_bits.copy()
    bits[paths[0][1]] &= ~np.uint8(4)
    network = replace(network, capacity_vph=slow, imputed_bits=bits)
    physics = rs.physics.Queue(stuck_s=stuck_s)
    traffic = rs.TrafficSimulator(network, demand, physics=physics, bin_s=1.0).run(paths)
    greens = default_greens(network, CYCLE_S)
    entries = traffic.edge_counts[:, paths[0][1]]
    begin = np.arange(len(entries)).astype(float)
    assert entries.sum() == 300
    used = begin[entries > 0]
    wholly_red = is_red(greens, paths[0][0], used) & is_red(greens, paths[0][0], used + 1.0)
    assert not wholly_red.any()
    assert (np.diff(traffic.arrival_s) > 35.9).all()
    if stuck_s == np.inf:
        assert traffic.forced_moves == 0


def test_those_who_are_stuck_move_by_force_in_spite_of_signals_but_at_green() -> None:
    """A closed ring of full roads with signals moves on by force, though no vehicle is held back by red for long."""
    graph = nx.MultiDiGraph(crs="planar")
    corners = {"a": (0.0, 0.0), "b": (100.0, 0.0), "c": (100.0, 100.0), "d": (0.0, 100.0)}
    for corner, (x, y) in corners.items():
        graph.add_node(corner, x=x, y=y, highway="traffic_signals")
    for tail, head in ("ab", "bc", "cd", "da"):
        graph.add_edge(tail, head, length=100.0, speed_kph=36.0)
    network = rs.RoadNetwork.from_networkx(graph)
    ends = list(zip(network.tails.tolist(), network.heads.tolist(), strict=True))
    ring = [ends.index((network.node_index(t), network.node_index(h))) for t, h in ("ab", "bc", "cd", "da")]
    rows, paths = [], []
    for vehicle in range(400):
        first = vehicle % 4
        path = [ring[(first + k) % 4] for k in range(3)]
        labels = network.labels
        rows.append((labels[network.tails[path[0]]], labels[network.heads[path[-1]]], 0.0))
        paths.append(path)
    origin, destination, departure_s = zip(*rows, strict=True)
    demand = rs.Demand.from_trips({"origin": origin, "destination": destination, "departure_s": departure_s})
    traffic = rs.TrafficSimulator(network, demand, physics=rs.physics.Queue(stuck_s=100.0)).run(paths)
    assert traffic.arrived.all()
    assert traffic.forced_moves > 0


def test_the_physics_can_do_without_signals() -> None:
    network = junction("wesn")
    demand, paths = through(network, "w", "e", [0.0, 200.0, 411.0])
    for physics in ("plain-queue", rs.physics.Queue(signals=False)):
        traffic = rs.TrafficSimulator(network, demand, physics=physics).run(paths)
        assert traffic.travel_time_s.tolist() == pytest.approx([72.0] * 3)


def test_those_who_arrive_at_the_junction_need_no_green() -> None:
    network = junction("we")
    n = 40
    demand = rs.Demand.from_trips({"origin": ["w"] * n, "destination": ["x"] * n, "departure_s": np.arange(n) * 10.0})
    traffic = rs.TrafficSimulator(network, demand, physics="queue").run([[0]] * n)
    assert traffic.travel_time_s.tolist() == pytest.approx([36.0] * n)


@pytest.mark.parametrize("cycle_s", [0.0, 19.0, 601.0, float("nan")])
def test_a_cycle_must_leave_time_for_two_phases(cycle_s: float) -> None:
    with pytest.raises(InputError, match="cycle_s lies between 20 and 600"):
        rs.physics.Queue(cycle_s=cycle_s)
