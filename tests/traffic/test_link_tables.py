"""Link volumes, path flows, skims and select link beside slow, obvious computations."""

import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from town import town

import routesim as rs
from routesim.errors import InputError

PHYSICS = ["window", "plain-queue"]


def grid(side: int = 4) -> rs.RoadNetwork:
    graph = nx.DiGraph()
    for one, other in nx.grid_2d_graph(side, side).edges:
        for u, v in ((one, other), (other, one)):
            graph.add_edge(str(u), str(v), length=300.0, free_flow_s=20.0 + (sum(u) % 3), capacity_vph=700.0)
    return rs.RoadNetwork.from_networkx(graph)


@pytest.fixture(scope="module", params=PHYSICS)
def traffic(request: pytest.FixtureRequest) -> rs.Traffic:
    corners = [str((0, 0)), str((3, 3)), str((0, 3)), str((3, 0))]
    pairs = [(one, other) for one in corners for other in corners if one != other]
    table = {
        "origin": [one for one, _ in pairs],
        "destination": [other for _, other in pairs],
        "vehicles": [80.0 + 5 * number for number in range(len(pairs))],
    }
    demand = rs.Demand.from_od(table, 0, 1200)
    simulator = rs.TrafficSimulator(grid(), demand, physics=request.param, bin_s=100.0)
    return simulator.run(rs.GreedyRouter(), seed=3, until_s=1300.0)  # some are still on their way


def test_select_link_beside_a_loop_over_vehicles(traffic: rs.Traffic) -> None:
    edge = int(np.argmax(np.bincount(traffic.loads[:, 1], traffic.loads[:, 2])))
    flows, pairs = Counter[int](), Counter[tuple[str, str]]()
    for vehicle in range(traffic.n_vehicles):
        driven = traffic.path(vehicle)[: traffic.edges_entered[vehicle]].tolist()
        if edge in driven:
            flows.update(driven)
            places = traffic.places
            pairs[places[traffic.origins[vehicle]], places[traffic.destinations[vehicle]]] += 1
    found = traffic.select_link(edge)
    assert {e: int(n) for e, n in enumerate(found.vehicles) if n} == dict(flows)
    assert (
        dict(zip(zip(found.pairs.origin, found.pairs.destination, strict=True), found.pairs.vehicles, strict=True))
        == pairs
    )
    assert len(repr(found)) < 100
    with pytest.raises(InputError, match="edges run from 0 to 47, got 48"):
        traffic.select_link(48)


def test_skims_and_path_flows_beside_a_loop_over_vehicles(traffic: rs.Traffic) -> None:
    times: dict[tuple[object, ...], list[float]] = {}
    by_path: dict[tuple[object, ...], list[float]] = {}
    for row in traffic.trips.itertuples():
        if traffic.edges_entered[row.Index] > 0:
            times.setdefault((row.origin, row.destination), []).append(row.travel_time_s)
            by_path.setdefault((row.origin, row.destination, row.path), []).append(row.travel_time_s)
    skims = traffic.skims().set_index(["origin", "destination"])
    assert set(skims.index) == set(times)
    for pair, took in times.items():
        row, ended = skims.loc[pair], [one for one in took if not math.isnan(one)]
        assert (row.vehicles, row.arrived) == (len(took), len(ended))
        assert row.mean_travel_time_s == pytest.approx(np.mean(ended))
        assert row.slowest_s == max(ended)
    flows = traffic.path_flows()
    assert flows.vehicles.sum() == int(traffic.departed.sum())
    assert flows.groupby(["origin", "destination"]).share.sum().tolist() == pytest.approx([1.0] * len(times))
    network = traffic.network
    for row in flows.itertuples():
        took = by_path[row.origin, row.destination, row.path]
        assert row.vehicles == len(took)
        assert row.free_flow_s == pytest.approx(sum(network.free_flow_s[edge] for edge in row.path))
        assert row.length_m == 300.0 * len(row.path)
    early = traffic.skims(to_s=600.0)
    assert early.vehicles.sum() == int((traffic.departed & (traffic.departure_s < 600)).sum())


def test_link_tables_add_up(traffic: rs.Traffic) -> None:
    fine, coarse, whole = traffic.links(), traffic.links(400.0), traffic.links(math.inf)
    assert fine.volume.sum() == coarse.volume.sum() == whole.volume.sum() == traffic.n_events
    assert sorted(set(coarse.start_s)) == [0.0, 400.0, 800.0, 1200.0]
    entered = traffic.edge_counts
    for row in coarse.itertuples():
        bins = slice(int(row.start_s // 100), int(row.start_s // 100) + 4)
        counts = entered[bins, row.edge]
        assert row.volume == counts.sum()
        assert row.flow_vph == pytest.approx(counts.sum() * 9.0)
        assert row.v_c == pytest.approx(counts.sum() * 9.0 / 700.0)
        assert row.largest_v_c == pytest.approx(counts.max() * 36.0 / 700.0)
        part = fine[(fine.edge == row.edge) & (fine.start_s // 400 == row.start_s // 400)]
        assert (
            np.isnan(row.largest_delay_s) and part.mean_delay_s.isna().all()
        ) or row.largest_delay_s == pytest.approx(part.mean_delay_s.max())
    assert len(whole) == whole.edge.nunique()
    with pytest.raises(InputError, match="a multiple of the bins that the run recorded, 100 s, got 250"):
        traffic.links(250.0)


def test_delays_by_hand() -> None:
    """Four vehicles in turn meet 0, 1, 2 and 3 others: at 10 s each they take 10, 15, 20 and 25 s."""
    trips = {"origin": ["s"] * 4, "destination": ["t"] * 4, "departure_s": [0.0, 1.0, 2.0, 103.0]}
    simulator = rs.TrafficSimulator(
        town([("s", "t", 10.0)], capacity_vph=36.0),
        rs.Demand.from_trips(trips),
        congestion=rs.congestion.Linear(0.5),
        bin_s=100.0,
    )
    with pytest.warns(UserWarning, match="above capacity"):
        traffic = simulator.run(rs.FreeFlowRouter())
    first, second = traffic.links().itertuples()
    assert (first.start_s, first.end_s, first.u, first.v, first.volume) == (0.0, 100.0, "s", "t", 3)
    assert (first.flow_vph, first.v_c) == (108.0, 3.0)
    assert (first.mean_delay_s, second.mean_delay_s) == (5.0, 15.0)
    whole = next(traffic.links(math.inf).itertuples())
    assert (whole.volume, whole.mean_delay_s, whole.largest_delay_s) == (4, 7.5, 15.0)
    assert (whole.v_c, whole.largest_v_c) == (2.0, 3.0)


def test_a_queues_delay_by_littles_law() -> None:
    """A road that passes one vehicle in 10 s gets 20 at once: the n-th leaves at 10 s + 10 n s (D/D/1)."""
    trips = {"origin": ["s"] * 20, "destination": ["t"] * 20, "departure_s": [0.0] * 20}
    roads = town([("s", "a", 10.0), ("a", "t", 10.0)], capacity_vph=360.0)
    simulator = rs.TrafficSimulator(roads, rs.Demand.from_trips(trips), physics="plain-queue", bin_s=50.0)
    traffic = simulator.run(rs.FreeFlowRouter())
    whole = traffic.links(math.inf).set_index("edge")
    on_roads = float(whole.volume @ (whole.mean_delay_s + whole.free_flow_s))
    assert on_roads == pytest.approx(traffic.load_seconds.sum())
    assert (whole.volume == 20).all()
