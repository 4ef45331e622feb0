"""The day-to-day equilibrium: known by hand at bottlenecks, near the static one where roads hold nothing back."""

import warnings
from typing import Any

import networkx as nx
import numpy as np
import pytest
from queue_town import Witness, drive, roads

import routesim as rs
from routesim.errors import CapacityWarning, InputError, NotConvergedWarning
from routesim.traffic.experienced import Experience, Turns, VehiclePaths
from routesim.traffic.simulator import Simulation


def parallel(*rows: tuple[float, float]) -> rs.RoadNetwork:
    """Roads (free-flow seconds, vehicles an hour) from "a" to "b"; they have no length and store everybody."""
    graph = nx.MultiDiGraph()
    for seconds, capacity in rows:
        graph.add_edge("a", "b", free_flow_s=seconds, capacity_vph=capacity)
    return rs.RoadNetwork.from_networkx(graph)


def evenly(vehicles: int, until_s: float) -> rs.Demand:
    trips = {"origin": ["a"] * vehicles, "destination": ["b"] * vehicles}
    return rs.Demand.from_trips({**trips, "departure_s": np.arange(vehicles) * until_s / vehicles})


def first_edges(traffic: rs.Traffic) -> Any:
    return traffic.path_edges[traffic.path_starts]


def test_two_bottlenecks_share_by_capacity_and_take_the_same_time() -> None:
    # 3,600 an hour come: the wait grows by a second every second on both roads.
    simulator = rs.TrafficSimulator(parallel((60, 1200), (60, 600)), evenly(1800, 1800), physics="plain-queue")
    found = rs.day_to_day(simulator, gap=0.01, interval_s=60)
    assert found.converged
    first = first_edges(found.traffic) == 0
    assert first.mean() == pytest.approx(2 / 3, abs=0.01)
    times = found.traffic.travel_time_s
    assert times[first].mean() == pytest.approx(times[~first].mean(), rel=0.03)
    late = found.traffic.departure_s > 300
    assert times[late] == pytest.approx(60 + found.traffic.departure_s[late], rel=0.08)


def test_the_longer_road_is_used_from_the_moment_when_the_queue_makes_up_for_it() -> None:
    simulator = rs.TrafficSimulator(parallel((60, 600), (120, 600)), evenly(1800, 3600), physics="plain-queue")
    found = rs.day_to_day(simulator, gap=0.015, interval_s=60)
    # The first 30 s fill the first road, where the wait grows by 2 s a second up to the 60 s that the second is longer.
    # From then on both take half, and a trip that departs at t takes 120 + (t - 30) / 2.
    assert found.converged
    assert found.traffic.mean_travel_time_s == pytest.approx((2700 + 120 * 3570 + 3570**2 / 4) / 3600, rel=0.015)
    assert (first_edges(found.traffic) == 0).sum() == pytest.approx(15 + 1785 / 2, rel=0.02)
    t, times = found.traffic.departure_s, found.traffic.travel_time_s
    late = t > 300
    assert times[late] == pytest.approx(120 + (t[late] - 30) / 2, rel=0.1)


def test_without_queues_it_is_close_to_the_static_equilibrium() -> None:
    network, demand = parallel((60, 600), (80, 600)), evenly(2400, 7200)
    static = rs.assign(network, demand, "user", 1e-6)
    simulator = rs.TrafficSimulator(network, demand, noise=0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapacityWarning)
        found = rs.day_to_day(simulator, gap=0.01, seed=1)
    # Roads fill during the first window; then flows are steady.
    steady = found.traffic.departure_s > 600
    assert found.traffic.travel_time_s[steady].mean() == pytest.approx(static.mean_travel_time_s, rel=0.015)
    assert (first_edges(found.traffic)[steady] == 0).mean() == pytest.approx(static.flows[0] / 1200, abs=0.02)


def cologne(**options: Any) -> rs.TrafficSimulator:
    return rs.TrafficSimulator(rs.load_city("cologne"), rs.load_demand("cologne", 1500, end_s=1800), **options)


@pytest.mark.parametrize("physics", ["queue", "plain-queue", "window"])
def test_every_vehicle_has_one_path_and_a_seed_repeats(physics: str) -> None:
    simulator = cologne(physics=physics, noise=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, again, other = (rs.day_to_day(simulator, days=4, gap=0.0, seed=seed) for seed in (3, 3, 4))
    traffic, network = found.traffic, simulator.network
    assert found.days == 4
    assert found.gap == found.gaps.min() < found.gaps[0]
    assert traffic.n_vehicles == simulator.run(rs.FreeFlowRouter(), 3).n_vehicles
    assert traffic.arrived.all()
    for vehicle in range(traffic.n_vehicles):
        path = traffic.path(vehicle)
        assert (network.heads[path[:-1]] == network.tails[path[1:]]).all()
        ends = traffic.places[traffic.origins[vehicle]], traffic.places[traffic.destinations[vehicle]]
        assert (network.labels[network.tails[path[0]]], network.labels[network.heads[path[-1]]]) == ends
    assert found.gaps.tolist() == again.gaps.tolist()
    assert traffic.arrival_s.tolist() == again.traffic.arrival_s.tolist()
    assert found.gaps.tolist() != other.gaps.tolist()


def test_it_can_start_from_any_router_and_says_what_it_found() -> None:
    simulator = cologne(physics="plain-queue")
    greedy = simulator.run(rs.GreedyRouter(), 0)
    found = rs.day_to_day(simulator, days=1, gap=1.0, start=rs.GreedyRouter())
    assert found.traffic.arrival_s == pytest.approx(greedy.arrival_s)
    assert repr(found) == f"<DayToDay mean trip {greedy.mean_travel_time_s:.1f} s, gap {found.gap:.2%} on day 1 of 1>"
    with pytest.warns(NotConvergedWarning, match="the least gap of 1 days is"):
        assert "not converged" in repr(rs.day_to_day(simulator, days=1, gap=0.0))


@pytest.mark.parametrize(
    ("options", "settings", "message"),
    [
        ({}, {"days": 0}, "days must be at least 1, got 0"),
        ({}, {"gap": 2.0}, "gap must be between 0 and 1, got 2.0"),
        ({}, {"interval_s": 0.0}, "interval_s must be between"),
        ({"reroute_share": 0.5}, {}, "vehicles keep their paths, got reroute_share 0.5"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rs.day_to_day(cologne(**options), **settings)


def test_the_quickest_path_is_the_best_of_all_at_the_mean_times_of_turns() -> None:
    """The slow twin: every simple path of a small town, timed road by road."""
    side, rng = 3, np.random.default_rng(0)
    places = [(i, j) for i in range(side) for j in range(side)]
    links = [(a, b) for a in places for b in places if abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1]
    rows = [(str(a), str(b), 300.0, float(rng.uniform(20, 40)), float(rng.uniform(300, 900))) for a, b in links]
    network = roads(rows)
    walks = list(nx.all_simple_edge_paths(nx.DiGraph([row[:2] for row in rows]), "(0, 0)", "(2, 2)"))
    ends = zip(network.tails.tolist(), network.heads.tolist(), strict=True)
    number = {(network.labels[a], network.labels[b]): edge for edge, (a, b) in enumerate(ends)}
    paths = [[number[link] for link in walk] for walk in walks]
    driven = [paths[k] for k in rng.integers(len(paths), size=400)]
    departure_s = np.arange(400) * 3.0
    traffic, witness = drive(network, driven, departure_s)
    turns, interval_s = Turns.build(network), 60.0
    seen = Experience(turns, network.free_flow_s.copy(), 0.0, interval_s)
    taken = VehiclePaths(traffic.path_starts, traffic.path_lengths, traffic.path_edges)
    for part in witness.parts:
        seen.add(part, taken, departure_s)
    times = seen.times()

    # A road as a whole, by hand: the mean over those who entered it within an interval, four of whom stand for it in
    # the mean of each of its turns.
    edges, entered, took = (witness.column(name) for name in ("edges", "entered_s", "travel_time_s"))
    follows = {(v, p): driven[v][p + 1] for v in range(400) for p in range(len(driven[v]) - 1)}
    after = np.array(
        [
            follows.get(key, -1)
            for key in zip(witness.column("vehicles").tolist(), witness.column("places").tolist(), strict=True)
        ]
    )
    for turn in range(0, turns.graph.n_edges - 2 * network.n_edges, 5):
        road, onto = int(turns.graph.tails[turn]), int(turns.graph.heads[turn])
        inside = (edges == road) & (entered >= 600) & (entered < 660)
        if inside.any():
            mine = took[inside & (after == onto)]
            expected = (mine.sum() + 4 * took[inside].mean()) / (len(mine) + 4)
            assert times[turn, 10] == pytest.approx(expected)

    every = VehiclePaths(
        np.cumsum([0, *map(len, paths[:-1])]), np.array(list(map(len, paths))), np.concatenate(paths).astype(np.int32)
    )
    a, b = (np.array([network.node_index(place)], dtype=np.int32) for place in ("(0, 0)", "(2, 2)"))
    for when in (0.0, 300.0, 900.0, 1500.0):
        quickest_s, path = seen.quickest(times, a, b, np.array([when]))
        assert quickest_s == pytest.approx(seen.along(times, path, np.array([when])))
        assert quickest_s[0] <= seen.along(times, every, np.full(len(paths), when)).min() + 1e-9
    # Means over all vehicles lose nothing: what their paths take at the mean times is what they took, within a little.
    assert seen.along(times, taken, departure_s).mean() == pytest.approx(traffic.mean_travel_time_s, rel=0.02)


def test_a_road_that_nobody_enters_empties_no_faster_than_its_last_vehicle_leaves() -> None:
    network = parallel((60, 60))  # a vehicle a minute
    router = Witness([[0]] * 10)
    Simulation(rs.TrafficSimulator(network, evenly(10, 10), physics="plain-queue"), router, 0, None).run()
    seen = Experience(Turns.build(network), network.free_flow_s.copy(), 0.0, 100.0)
    paths = VehiclePaths(np.arange(10), np.ones(10, dtype=np.int64), np.zeros(10, dtype=np.int32))
    for part in router.parts:
        seen.add(part, paths, np.arange(10.0))
    late = VehiclePaths(np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int32))
    at = [float(seen.along(seen.times(), late, np.array([when]))[0]) for when in (5.0, 5000.0)]
    assert at[0] > 300
    assert at[1] == pytest.approx(60)
    # In a table of eight intervals for each row, they become twice as long until the day fits.
    short = Experience(Turns.build(network), network.free_flow_s.copy(), 0.0, 10.0, most_cells=8 * 3)
    for part in router.parts:
        short.add(part, paths, np.arange(10.0))
    assert short.times().shape == (2, 8)
    assert short.times()[0, 0] == pytest.approx(np.mean(60 * np.arange(1, 11)), rel=0.05)
