"""Traffic in continuous time: answers worked out by hand, the slow twin, conservation, and bad input."""

import subprocess
import sys
from collections.abc import Sequence
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from town import braess, edge, town

import routesim as rs
from routesim.congestion import BPR, Inverse, Linear, Table
from routesim.errors import InputError, NetworkError, NoPathError, RouteError


def trips(rows: Sequence[tuple[str, str, float]]) -> rs.Demand:
    origin, destination, departure_s = zip(*rows, strict=True)
    return rs.Demand.from_trips({"origin": origin, "destination": destination, "departure_s": departure_s})


def grid(n: int = 5) -> rs.RoadNetwork:
    roads = []
    for i in range(n):
        for j in range(n):
            for k, m in ((i + 1, j), (i, j + 1)):
                if k < n and m < n:
                    roads += [(f"{i}.{j}", f"{k}.{m}", 20.0 + i), (f"{k}.{m}", f"{i}.{j}", 21.0 + j)]
    return town(roads, capacity_vph=400.0)


def rush(network: rs.RoadNetwork, vehicles: int, seconds: float, seed: int) -> rs.Demand:
    rng = np.random.default_rng(seed)
    ends = [rng.choice(network.n_nodes, 2, replace=False) for _ in range(vehicles)]
    times = np.sort(rng.integers(0, int(seconds), vehicles)).astype(float)  # whole seconds, so that there are ties
    labels = network.labels
    return rs.Demand.from_trips(
        {"origin": [labels[a] for a, _ in ends], "destination": [labels[b] for _, b in ends], "departure_s": times}
    )


def slow_twin(simulator: rs.TrafficSimulator, paths: Sequence[Sequence[int]], times: Sequence[float]) -> list[float]:
    """The arrivals of vehicles on given paths, straight from the definition; BPR, and overtaking or not."""
    network, window = simulator.network, simulator.window_s
    entries: list[list[float]] = [[] for _ in range(network.n_edges)]
    last_exit = [0.0] * network.n_edges
    queue = [(time, vehicle, vehicle, 0) for vehicle, time in enumerate(times)]
    arrivals, serial = [np.nan] * len(times), len(times)
    while queue:
        now, _, vehicle, place = heappop(queue)
        if place == len(paths[vehicle]):
            arrivals[vehicle] = now
            continue
        e = paths[vehicle][place]
        count = sum(now - window < time <= now for time in entries[e])
        entries[e].append(now)
        load = count / window * 3600 / network.capacity_vph[e]
        leaves = now + network.free_flow_s[e] * (1 + network.bpr_alpha[e] * load ** network.bpr_beta[e])
        if not simulator.physics.overtaking:  # type: ignore[attr-defined]
            leaves = last_exit[e] = max(leaves, last_exit[e])
        heappush(queue, (leaves, serial, vehicle, place + 1))
        serial += 1
    return arrivals


def test_one_road_two_vehicles() -> None:
    # 36 vehicles an hour are one in the window of 100 s, so the second meets BPR at count / capacity = 1.
    road = town([("s", "t", 50.0)], capacity_vph=36.0)
    traffic = rs.TrafficSimulator(road, trips([("s", "t", 0.0), ("s", "t", 10.0)]), window_s=100).run([[0], [0]])
    assert traffic.travel_time_s.tolist() == pytest.approx([50.0, 50.0 * 1.15])
    assert traffic.n_events == 2
    table = traffic.trips
    assert table.columns.tolist() == ["origin", "destination", "departure_s", "arrival_s", "travel_time_s", "path"]
    assert table.loc[1, ["origin", "destination", "path"]].tolist() == ["s", "t", (0,)]


def test_an_entry_leaves_the_window_exactly_when_it_is_window_s_old() -> None:
    road = town([("s", "t", 50.0)])
    for second, count in ((99.0, 1), (100.0, 0), (np.nextafter(100.0, 0.0), 1)):
        demand = trips([("s", "t", 0.0), ("s", "t", second)])
        traffic = rs.TrafficSimulator(road, demand, 100, Linear(slope=1.0)).run([[0], [0]])
        assert traffic.travel_time_s.tolist() == pytest.approx([50.0, 50.0 * (1 + count)])


def test_of_two_at_the_same_moment_only_the_first_is_counted() -> None:
    road = town([("s", "t", 50.0)])
    demand = trips([("s", "t", 5.0)] * 3)
    traffic = rs.TrafficSimulator(road, demand, 10, Linear(slope=1.0)).run([[0]] * 3)
    assert traffic.travel_time_s.tolist() == [50.0, 100.0, 150.0]


def test_who_departs_goes_before_who_comes_from_another_road_at_the_same_moment() -> None:
    roads = town([("s", "m", 10.0), ("m", "t", 50.0)])
    demand = trips([("s", "t", 0.0), ("m", "t", 10.0)])
    traffic = rs.TrafficSimulator(roads, demand, 100, Linear(slope=1.0)).run([[0, 1], [1]])
    assert traffic.travel_time_s.tolist() == [10.0 + 100.0, 50.0]


def test_without_overtaking_vehicles_leave_in_the_order_they_came() -> None:
    # The second meets an empty window, and would leave at 61, before the first.
    roads = town([("s", "t", 50.0), ("r", "s", 1.0)])
    demand = trips([("s", "t", 0.0), ("s", "t", 0.0), ("s", "t", 11.0)])
    free = rs.TrafficSimulator(roads, demand, 10, Linear(slope=1.0)).run([[0]] * 3)
    assert free.arrival_s.tolist() == [50.0, 100.0, 61.0]
    ordered = rs.TrafficSimulator(roads, demand, 10, Linear(slope=1.0), overtaking=False).run([[0]] * 3)
    assert ordered.arrival_s.tolist() == [50.0, 100.0, 100.0]


def test_the_congestion_may_be_any_function_that_does_not_fall() -> None:
    road = town([("s", "t", 10.0)])
    demand = trips([("s", "t", 0.1 * k) for k in range(300)])
    by_table = rs.TrafficSimulator(road, demand, 60, Table([1.0, 2.0, 5.0])).run([[0]] * 300)
    assert by_table.travel_time_s.tolist() == pytest.approx([10.0, 20.0] + [50.0] * 298)
    by_line = rs.TrafficSimulator(road, demand, 60, Linear(slope=0.5)).run([[0]] * 300)
    assert by_line.travel_time_s.tolist() == pytest.approx([10 + 5 * k for k in range(300)])
    own_capacity = rs.TrafficSimulator(road, demand, 60, BPR(capacity=10.0, alpha=1.0, beta=1.0)).run([[0]] * 300)
    assert own_capacity.travel_time_s.tolist() == pytest.approx([10 + k for k in range(300)])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_the_compiled_core_agrees_with_its_slow_twin(seed: int, overtaking: bool) -> None:
    network = grid()
    demand = rush(network, 200, 300, seed)
    simulator = rs.TrafficSimulator(network, demand, 60.0, overtaking=overtaking)
    traffic = simulator.run(rs.FreeFlowRouter())
    paths = [traffic.path(vehicle).tolist() for vehicle in range(200)]
    assert traffic.arrival_s == pytest.approx(slow_twin(simulator, paths, demand.departure_s.tolist()), rel=1e-12)


@pytest.mark.parametrize(
    "router",
    [
        rs.FreeFlowRouter(),
        rs.GreedyRouter(),
        rs.LogitRouter(k=3),
        rs.PlannedRouter(),
        rs.CompliantRouter(rs.PlannedRouter(), rs.GreedyRouter(), share=0.5),
        rs.CARMABRouter(interval_s=60.0),
        rs.UCB1(),
    ],
    ids=lambda router: type(router).__name__,
)
def test_nothing_is_lost_and_a_seed_repeats(router: Any) -> None:
    network = grid()
    demand = rush(network, 400, 600, seed=1)
    simulator = rs.TrafficSimulator(network, demand, 120, noise=0.2, reroute_share=0.3, reroute_s=30)
    traffic = simulator.run(router, seed=5)
    assert traffic.arrived.all()
    assert (traffic.edges_entered == traffic.path_lengths).all()
    assert traffic.n_events == traffic.path_lengths.sum() == traffic.edge_counts.sum()
    assert (traffic.travel_time_s > 0).all()
    for vehicle in range(traffic.n_vehicles):
        path = traffic.path(vehicle)
        assert (network.heads[path[:-1]] == network.tails[path[1:]]).all()
        assert network.labels[network.tails[path[0]]] == demand.places[demand.origins[vehicle]]
        assert network.labels[network.heads[path[-1]]] == demand.places[demand.destinations[vehicle]]
    again = simulator.run(router, seed=5)
    assert np.array_equal(traffic.arrival_s, again.arrival_s)
    assert not np.array_equal(traffic.arrival_s, simulator.run(router, seed=6).arrival_s)


def test_a_run_that_is_stopped_accounts_for_every_vehicle() -> None:
    network = grid()
    demand = rush(network, 400, 600, seed=1)
    simulator = rs.TrafficSimulator(network, demand, 120)
    whole, part = simulator.run(rs.GreedyRouter()), simulator.run(rs.GreedyRouter(), until_s=300)
    summary = part.summary()
    assert summary["arrived"] + summary["driving"] + summary["not_departed"] == summary["vehicles"] == 400
    assert summary["not_departed"] == (demand.departure_s >= 300).sum() > 0
    assert summary["arrived"] == (whole.arrival_s < 300).sum() > 0
    assert np.array_equal(part.arrival_s[part.arrived], whole.arrival_s[part.arrived])
    assert part.n_events == part.edges_entered.sum()


def test_noise_has_mean_one_and_belongs_to_the_vehicle_and_the_edge() -> None:
    road = town([("s", "t", 50.0)], alpha=0.0)
    demand = trips([("s", "t", float(k)) for k in range(20_000)])
    times = rs.TrafficSimulator(road, demand, 60, noise=0.3).run(rs.FreeFlowRouter(), seed=2).travel_time_s / 50
    assert times.mean() == pytest.approx(1, abs=0.01)
    assert np.log(times).std() == pytest.approx(0.3, abs=0.01)
    assert abs(np.corrcoef(times[1:], times[:-1])[0, 1]) < 0.03


def test_rerouting_takes_the_way_that_became_better() -> None:
    # Vehicle 0 sets out for the short way; by the time it reaches m, three others have filled it.
    roads = town([("s", "m", 60.0), ("m", "t", 10.0), ("m", "n", 10.0), ("n", "t", 10.0)])
    rows = [("s", "t", 0.0), *(("m", "t", 50.0 + k) for k in range(3))]
    first = [edge(roads, "s", "m"), edge(roads, "m", "t")]
    paths = [first, *[[first[1]]] * 3]
    stays = rs.TrafficSimulator(roads, trips(rows), 100, Linear(slope=1.0)).run(paths)
    assert stays.arrival_s[0] == 60 + 10 * 4
    turns = rs.TrafficSimulator(roads, trips(rows), 100, Linear(slope=1.0), reroute_share=1.0, reroute_s=30.0)
    traffic = turns.run(paths)
    assert traffic.arrival_s[0] == 60 + 20
    assert traffic.path(0).tolist() == [first[0], edge(roads, "m", "n"), edge(roads, "n", "t")]
    # A trip of less than reroute_s is not looked at again.
    lazy = rs.TrafficSimulator(roads, trips(rows), 100, Linear(slope=1.0), reroute_share=1.0, reroute_s=61.0)
    assert lazy.run(paths).arrival_s[0] == 60 + 10 * 4


def test_braess_greedy_drivers_lose_by_the_bridge_and_the_planned_ones_do_not() -> None:
    departures = np.arange(6000) * 0.6  # 6,000 an hour
    demand = trips([("s", "t", time) for time in departures.tolist()])

    def mean(bridge: bool, router: Any) -> float:
        traffic = rs.TrafficSimulator(braess(bridge), demand, 300).run(router)
        return float(traffic.measured(1200, 3000).mean())

    greedy_without, greedy_with = mean(False, rs.GreedyRouter()), mean(True, rs.GreedyRouter())
    assert greedy_without == pytest.approx(83, rel=0.02)
    assert greedy_with > 1.05 * greedy_without
    assert mean(True, rs.PlannedRouter(objective="user")) == pytest.approx(92, rel=0.01)
    assert mean(True, rs.PlannedRouter()) == pytest.approx(83, rel=0.01)


def test_loads_by_time_bin_are_the_entries() -> None:
    roads = town([("s", "m", 10.0), ("m", "t", 50.0)], alpha=0.0)
    demand = trips([("s", "t", 0.0), ("s", "t", 55.0)])
    traffic = rs.TrafficSimulator(roads, demand, 300, bin_s=60).run([[0, 1], [0, 1]])
    assert traffic.edge_counts.tolist() == [[2, 1], [0, 1]]


def test_results_are_written_as_parquet(tmp_path: Path) -> None:
    from pyarrow import parquet

    network = grid()
    traffic = rs.TrafficSimulator(network, rush(network, 50, 100, 0)).run(rs.GreedyRouter(), until_s=120)
    traffic.save(tmp_path / "out")
    table = parquet.read_table(tmp_path / "out" / "trips.parquet").to_pydict()
    assert table["path"] == [traffic.path(vehicle).tolist() for vehicle in range(50)]
    assert [time is None for time in table["arrival_s"]] == (~traffic.arrived).tolist()
    loads = parquet.read_table(tmp_path / "out" / "loads.parquet")
    assert sum(loads["entries"].to_pylist()) == traffic.n_events


def test_the_summary_sets_the_mean_trip_beside_equilibrium_and_optimum() -> None:
    demand = rs.Demand.from_od({"origin": ["s"], "destination": ["t"], "vehicles": [6000.0]})
    traffic = rs.TrafficSimulator(braess(), demand, 300).run(rs.PlannedRouter())
    summary = traffic.summary(references=True, from_s=1200, to_s=3000)
    assert summary["user_equilibrium_s"] == pytest.approx(92, rel=1e-3)
    assert summary["system_optimum_s"] == pytest.approx(83, rel=1e-3)
    assert abs(summary["excess_over_system_optimum"]) < 0.03
    assert summary["distance_to_user_equilibrium"] < -0.05
    assert not any("regret" in name for name in summary)


@pytest.mark.parametrize(
    ("paths", "match"),
    [
        ([[0, 2], []], "vehicle 1 an empty path"),
        ([[0, 2], [0, 7]], "vehicle 1 an edge outside 0 … 2"),
        ([[0, 2], [0, 1]], "vehicle 1 a broken path"),
        ([[0, 2], [2]], "vehicle 1 a path from 'm' to 't'; it goes from 's' to 't'"),
        ([[0, 2]], "1 paths were given, but there is a vehicle 1"),
    ],
)
def test_a_broken_path_is_an_error_that_names_the_vehicle(paths: list[list[int]], match: str) -> None:
    roads = town([("s", "m", 10.0), ("s", "t", 70.0), ("m", "t", 50.0)])
    with pytest.raises(RouteError, match=match):
        rs.TrafficSimulator(roads, trips([("s", "t", 0.0), ("s", "t", 1.0)])).run(paths)


def test_trips_that_cannot_be_made_are_refused_before_anything_drives() -> None:
    roads = town([("s", "t", 10.0), ("u", "t", 10.0)])
    for router in (rs.FreeFlowRouter(), rs.GreedyRouter(), [[0], [1]]):
        with pytest.raises(NoPathError, match="vehicle 1 cannot go from node 's' to node 'u'"):
            rs.TrafficSimulator(roads, trips([("s", "t", 0.0), ("s", "u", 1.0)])).run(router)
    with pytest.raises(NetworkError, match="no node 'x'"):
        rs.TrafficSimulator(roads, trips([("s", "x", 0.0)]))


def test_settings_that_make_no_sense_are_refused() -> None:
    roads, demand = town([("s", "t", 10.0)]), trips([("s", "t", 0.0)])
    for options, match in (
        ({"window_s": 0}, r"window_s must be between 0.001 and 1e\+09, got 0"),
        ({"bin_s": -1.0}, "bin_s"),
        ({"noise": -0.1}, "noise"),
        ({"reroute_share": 2.0}, "reroute_share"),
        ({"congestion": BPR(alpha=0.3)}, "give BPR\\(capacity="),
        ({"congestion": BPR(capacity=[1.0, 2.0])}, "one for each of 1 edges"),
    ):
        with pytest.raises(InputError, match=match):
            rs.TrafficSimulator(roads, demand, **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must not fall"):
        rs.TrafficSimulator(roads, demand, 10, Inverse()).run(rs.FreeFlowRouter())
    with pytest.raises(InputError, match="must be a Demand"):
        rs.TrafficSimulator(roads, {"origin": ["s"]})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a router is"):
        rs.TrafficSimulator(roads, demand).run("fast")
    with pytest.raises(InputError, match="use PlannedRouter"):
        rs.TrafficSimulator(roads, demand).run(rs.Oracle())


def test_a_demand_of_nobody_is_an_empty_run() -> None:
    empty = rs.Demand.from_trips({"origin": [], "destination": [], "departure_s": []})
    traffic = rs.TrafficSimulator(town([("s", "t", 10.0)]), empty).run(rs.GreedyRouter())
    assert (traffic.n_vehicles, traffic.n_events, traffic.edge_counts.shape) == (0, 0, (0, 1))


MILLION = """
import resource
import networkx as nx, numpy as np, routesim as rs
side, n, rng = 30, 1_000_000, np.random.default_rng(0)
grid = nx.grid_2d_graph(side, side).to_directed()
for _, _, road in grid.edges(data=True):
    road.update(length=500.0, free_flow_s=100 / 3, capacity_vph=1800.0)
network = rs.RoadNetwork.from_networkx(nx.convert_node_labels_to_integers(grid))
starts = rng.integers(side * side, size=2000)
ends = (starts + rng.integers(1, side * side, size=2000)) % (side * side)
which = rng.integers(2000, size=n)
trips = {"origin": starts[which], "destination": ends[which], "departure_s": np.sort(rng.random(n) * 3600)}
traffic = rs.TrafficSimulator(network, rs.Demand.from_trips(trips)).run(rs.FreeFlowRouter())
assert traffic.arrived.all()
print(traffic.n_events, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss is that of Linux")
def test_a_million_vehicles_stay_within_two_gigabytes() -> None:
    out = subprocess.run([sys.executable, "-c", MILLION], capture_output=True, text=True, check=True)
    events, most_bytes = map(int, out.stdout.split())
    assert events > 15_000_000
    assert most_bytes < 2e9
