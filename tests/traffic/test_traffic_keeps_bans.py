"""Vehicles keep to banned turns: in both engines, under every router, and on the way."""

from dataclasses import replace

import numpy as np
import pytest
from banned import driven_bans, quickest, streets
from numpy.testing import assert_allclose
from town import edge, town

import routesim as rs
from routesim.errors import NoPathError, RouteError
from routesim.roads.edits import connected_nodes

PHYSICS = ("window", "queue")


def city(seed: int, **columns: float) -> rs.RoadNetwork:
    return streets(5, seed, 60, 25, **columns).largest_component()


def trips(network: rs.RoadNetwork, n: int, seed: int, gap_s: float) -> rs.Demand:
    rng = np.random.default_rng(seed)
    pairs = [rng.choice(network.n_nodes, 2, replace=False).tolist() for _ in range(n)]
    return rs.Demand.from_trips(
        {
            "origin": [network.labels[start] for start, _ in pairs],
            "destination": [network.labels[end] for _, end in pairs],
            "departure_s": np.arange(n) * gap_s,
        }
    )


def paths_of(traffic: rs.Traffic) -> list[list[int]]:
    return [
        traffic.path_edges[start : start + length].tolist()
        for start, length in zip(traffic.path_starts, traffic.path_lengths, strict=True)
    ]


def ends_of(network: rs.RoadNetwork, traffic: rs.Traffic) -> list[tuple[int, int]]:
    nodes = [network.node_index(place) for place in traffic.places]
    return [(nodes[start], nodes[end]) for start, end in zip(traffic.origins, traffic.destinations, strict=True)]


def quickest_times(network: rs.RoadNetwork, traffic: rs.Traffic) -> list[float]:
    return [quickest(network, network.free_flow_s, *ends) for ends in ends_of(network, traffic)]


def assert_lawful(network: rs.RoadNetwork, traffic: rs.Traffic) -> None:
    for path, (start, end) in zip(paths_of(traffic), ends_of(network, traffic), strict=True):
        assert not driven_bans(network, path)
        assert (network.tails[path[0]], network.heads[path[-1]]) == (start, end)
        assert (network.heads[path[:-1]] == network.tails[path[1:]]).all()


@pytest.mark.parametrize("physics", PHYSICS)
@pytest.mark.parametrize("router", [rs.GreedyRouter(), rs.FreeFlowRouter()], ids=lambda one: type(one).__name__)
def test_on_empty_roads_trips_take_as_long_as_a_search_over_histories_says(physics: str, router: rs.Router) -> None:
    for seed in range(2):
        network = city(seed, capacity_vph=1e6, lanes=4.0)
        demand = trips(network, 40, seed, gap_s=2000.0)
        share = 1.0 if isinstance(router, rs.GreedyRouter) else 0.0
        traffic = rs.TrafficSimulator(network, demand, physics=physics, reroute_share=share, reroute_s=1.0).run(
            router, seed=0
        )
        assert_lawful(network, traffic)
        assert_allclose(traffic.travel_time_s, quickest_times(network, traffic), rtol=1e-6)


@pytest.mark.parametrize("physics", PHYSICS)
def test_in_congestion_and_rerouted_on_the_way_nobody_takes_a_banned_turn(physics: str) -> None:
    network = city(3, capacity_vph=300.0)
    demand = trips(network, 120, 3, gap_s=0.4)
    changed = 0
    for router in (rs.GreedyRouter(), rs.LogitRouter(k=3)):
        traffic = rs.TrafficSimulator(network, demand, physics=physics, reroute_share=0.5, reroute_s=30.0).run(
            router, seed=1
        )
        assert_lawful(network, traffic)
        least = quickest_times(network, traffic)
        driven = [network.free_flow_s[path].sum() for path in paths_of(traffic)]
        changed += int((np.array(driven) > np.array(least) + 1e-6).sum())
    assert changed, "congestion sends some another way"


@pytest.mark.parametrize("physics", PHYSICS)
def test_who_meets_a_closed_road_goes_on_as_his_last_edges_allow(physics: str) -> None:
    checked = 0
    for seed in range(6):
        network = city(seed, capacity_vph=1e6, lanes=4.0)
        ends = {"origin": [network.labels[0]], "destination": [network.labels[-1]], "departure_s": [0.0]}
        demand = rs.Demand.from_trips(ends)
        first = rs.TrafficSimulator(network, demand, physics=physics).run(rs.FreeFlowRouter(), seed=0)
        path, times = paths_of(first)[0], network.free_flow_s
        if len(path) < 5:
            continue
        driven, closed = path[:3], path[3]
        open_times = times.copy()
        open_times[closed] = np.inf
        to_go = quickest(network, open_times, *ends_of(network, first)[0], tuple(driven))
        if not np.isfinite(to_go):
            continue
        start_s = float(times[driven[:2]].sum() + times[driven[2]] / 2)  # he is on the edge before
        closure = rs.Incident([closed], start_s=start_s)
        traffic = rs.TrafficSimulator(network, demand, physics=physics, incidents=[closure]).run(
            rs.FreeFlowRouter(), seed=0
        )
        assert_lawful(network, traffic)
        assert_allclose(traffic.travel_time_s[0], times[driven].sum() + to_go, rtol=1e-6)
        checked += 1
    assert checked >= 4


def test_a_fixed_path_over_a_ban_is_refused_by_name() -> None:
    network = town([("a", "b", 10.0), ("b", "c", 10.0), ("a", "c", 60.0)])
    turn = edge(network, "a", "b"), edge(network, "b", "c")
    network = replace(network, banned_turns=[turn])
    demand = rs.Demand.from_trips({"origin": ["a"], "destination": ["c"], "departure_s": [0.0]})
    simulator = rs.TrafficSimulator(network, demand)
    with pytest.raises(RouteError, match=f"vehicle 0 a path that takes the banned turn from edge {turn[0]} onto edge"):
        simulator.run([list(turn)], seed=0)
    assert simulator.run(rs.GreedyRouter(), seed=0).travel_time_s[0] == pytest.approx(60.0, rel=1e-3)


def test_a_trip_that_bans_make_impossible_is_refused() -> None:
    network = town([("a", "b", 10.0), ("b", "c", 10.0), ("c", "a", 10.0)])
    network = replace(network, banned_turns=[(edge(network, "a", "b"), edge(network, "b", "c"))])
    demand = rs.Demand.from_trips({"origin": ["a"], "destination": ["c"], "departure_s": [0.0]})
    with pytest.raises(NoPathError, match="from node 'a' to node 'c'"):
        rs.TrafficSimulator(network, demand).run(rs.GreedyRouter(), seed=0)


def test_days_end_in_an_equilibrium_without_banned_turns() -> None:
    network = city(1, capacity_vph=400.0)
    assert connected_nodes(network).all()
    demand = trips(network, 200, 1, gap_s=4.0)
    found = rs.day_to_day(rs.TrafficSimulator(network, demand), days=20, gap=0.05)
    assert_lawful(network, found.traffic)
    assert found.converged


def test_quickest_paths_at_the_times_of_empty_roads_are_those_of_a_search_over_histories() -> None:
    for seed in range(3):
        network = city(seed, capacity_vph=1e6)
        demand = trips(network, 30, seed, gap_s=500.0)
        traffic = rs.day_to_day(rs.TrafficSimulator(network, demand), days=2, gap=0.01).traffic
        assert_lawful(network, traffic)
        assert_allclose(traffic.travel_time_s, quickest_times(network, traffic), rtol=1e-6)
