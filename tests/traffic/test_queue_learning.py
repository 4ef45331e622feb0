"""What routers see and learn where roads queue: the delay behind a full road, counts, flows and plans."""

import warnings
from typing import Any

import networkx as nx
import numpy as np
import pytest
from queue_town import Witness, drive, roads
from town import edge

import routesim as rs
from routesim.errors import CapacityWarning
from routesim.traffic.protocol import TrafficTask
from routesim.traffic.routers.by_flow import between, flows_at, priced, totals_at

QUEUES = ["queue", "plain-queue"]


def two_ways(short_vph: float = 600.0) -> rs.RoadNetwork:
    """A short way of 60 s that passes little, and a long one of 120 s."""
    return roads([("s", "t", 500.0, 60.0, short_vph), ("s", "t", 1500.0, 120.0, 1800.0)])


def demand(vehicles: float, hours: float = 2.0) -> rs.Demand:
    return rs.Demand.from_od({"origin": ["s"], "destination": ["t"], "vehicles": [vehicles * hours]}, 0.0, 3600 * hours)


def task_of(physics: str, network: rs.RoadNetwork, trips: rs.Demand, **options: Any) -> TrafficTask:
    class Asker(rs.FreeFlowRouter):
        feedback = "lessons"

    asker = Asker()
    rs.TrafficSimulator(network, trips, physics=physics, **options).run(asker)
    return asker._task


@pytest.mark.parametrize("physics", QUEUES)
def test_greedy_vehicles_avoid_a_road_held_back_from_ahead_and_come_back_when_it_is_empty(physics: str) -> None:
    # From m to x directly (20 s), or over z (60 s); beyond x lie t, whose road passes 12 an hour and holds few, and y.
    network = roads(
        [
            ("m", "x", 300.0, 20.0, 1800.0),
            ("m", "z", 300.0, 30.0, 1800.0),
            ("z", "x", 300.0, 30.0, 1800.0),
            ("x", "t", 20.0, 2.0, 12.0),
            ("x", "y", 300.0, 20.0, 1800.0),
        ]
    )
    direct = edge(network, "m", "x")
    # Those who go to y depart before, while and long after those who go to t stand on the direct road, which passes
    # 1,800 an hour but is held back by the road to t.
    to_t = [(60.0 + k, "t") for k in range(12)]
    to_y = [(0.0, "y"), *((1500.0 + 60 * k, "y") for k in range(10)), (20_000.0, "y")]
    trips = sorted(to_t + to_y)
    table = {"origin": ["m"] * len(trips), "destination": [goal for _, goal in trips]}
    simulator = rs.TrafficSimulator(
        network,
        rs.Demand.from_trips({**table, "departure_s": [time for time, _ in trips]}),
        physics=rs.physics.Queue(stuck_s=np.inf) if physics == "queue" else rs.physics.PlainQueue(stuck_s=np.inf),
    )
    traffic = simulator.run(rs.GreedyRouter())
    assert traffic.arrived.all()
    first = np.array([traffic.path(v)[0] == direct for v in range(len(trips))])
    to_y_now = np.array([goal == "y" for _, goal in trips])
    went = first[to_y_now]
    assert went[0]  # nobody is on the way
    assert not went[1:-1].any()
    assert went[-1]  # the road has emptied, however slowly vehicles left it last
    assert traffic.travel_time_s[to_y_now].tolist() == pytest.approx([40.0] + [80.0] * 10 + [40.0])


@pytest.mark.parametrize("physics", QUEUES)
def test_lessons_also_say_who_stood_in_the_queue(physics: str) -> None:
    # One comes every 5 s and one leaves every 10 s, 20 s after it came at the earliest: vehicle k at 20 + 10 k.
    network = roads([("0", "1", 300.0, 20.0, 360.0)])
    _, witness = drive(network, [[0]] * 40, 5.0 * np.arange(40) + 0.1, physics)
    assert witness.left_s == pytest.approx(20.1 + 10.0 * np.arange(40))
    came, left = witness.column("entered_s"), witness.left_s
    for k in range(40):
        assert witness.column("counts")[k] == (left[:k] > came[k]).sum()
        # Who reaches the end at the very moment stands there already.
        assert witness.column("queued")[k] == ((came[:k] + 20 <= came[k] + 1e-9) & (left[:k] > came[k])).sum()
    assert witness.column("queued").max() > 10
    window = rs.TrafficSimulator(network, demand_at("0", "1"), physics="window")
    observer = Witness()
    window.run(observer)
    assert all(part.queued is None for part in observer.parts)


def demand_at(origin: str, destination: str) -> rs.Demand:
    return rs.Demand.from_trips({"origin": [origin], "destination": [destination], "departure_s": [0.0]})


def test_counts_stand_for_flows_by_the_window_or_by_littles_law() -> None:
    counts, times = np.array([0, 1, 2, 4]), np.array([[10.0, 10.0, 20.0, 16.0], [60.0, 60.0, 60.0, 60.0]])
    entries = task_of("window", two_ways(), demand(10), window_s=300.0)
    assert entries.lessons.counted == "entries"
    assert flows_at(entries, counts, times).tolist() == [[0.0, 12.0, 24.0, 48.0]]
    assert totals_at(entries, counts, times)[1].tolist() == [0.0, 720.0, 1440.0, 2880.0]
    queues = task_of("queue", two_ways(), demand(10))
    assert queues.lessons.counted == "vehicles"
    # One vehicle that takes 10 s is 360 an hour; two that take 20 s are no more, and count as a little more.
    flows = flows_at(queues, counts, times)
    assert flows == pytest.approx(np.array([[0.0, 360.0, 363.6, 900.0], [0.0, 60.0, 120.0, 240.0]]))
    # Vehicle-seconds in an hour: 3,600 for each vehicle on the road, which is flow x time where the flow is its own.
    assert totals_at(queues, counts, times).tolist() == [[0.0, 3600.0, 7200.0, 14_400.0]] * 2
    assert flows[1] * times[1] == pytest.approx(totals_at(queues, counts, times)[1])
    # Rows that differ are read at common flows: the price of a road between two flows, and the last one beyond.
    prices = priced(between(flows), np.array([[10.0, 20.0, 30.0, 50.0], [60.0, 60.0, 60.0, 60.0]]))
    assert prices.knots[0] == 0
    for k, flow in enumerate(prices.knots):
        assert prices.values[0, k] == pytest.approx(np.interp(flow, [0, 180, 361.8, 631.8], [10, 20, 30, 50]))
        assert prices.values[1, k] == 60


@pytest.mark.parametrize("physics", QUEUES)
def test_carmab_learns_what_a_road_passes(physics: str) -> None:
    # 900 an hour come, of whom the short way passes 600. All who take it would wait for half an hour in the end.
    simulator = rs.TrafficSimulator(two_ways(), demand(900.0), physics=physics)
    second = {}
    for router in (rs.FreeFlowRouter(), rs.GreedyRouter(), rs.PlannedRouter(), rs.CARMABRouter()):
        traffic = simulator.run(router, seed=1)
        late = traffic.departure_s >= 3600
        second[type(router).__name__] = traffic.travel_time_s[late].mean()
        share = np.mean([traffic.path(v)[0] == 0 for v in np.flatnonzero(late)])
    assert second["FreeFlowRouter"] > 1000
    assert 0.3 < share < 0.75  # CARMABRouter's
    assert second["CARMABRouter"] < 1.1 * second["GreedyRouter"] < 150
    assert second["PlannedRouter"] < 1.1 * second["GreedyRouter"]


@pytest.mark.parametrize("physics", QUEUES)
def test_a_plan_keeps_to_what_roads_pass_and_says_where_it_cannot(physics: str) -> None:
    task = task_of(physics, two_ways(), demand(10))
    seen = task.static_roads()
    assert seen.capacity_vph == pytest.approx([600.0, 1800.0])
    assert seen.free_flow_s.tolist() == [60.0, 120.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = rs.assign(seen, demand(900.0), "system")
        assert (plan.flows <= seen.capacity_vph).all()
        rs.TrafficSimulator(two_ways(), demand(900.0), physics=physics).run(rs.PlannedRouter())
    with pytest.warns(CapacityWarning, match="more than capacity on 2 of 2 roads, the worst, edge [01], 1.* times"):
        rs.TrafficSimulator(two_ways(), demand(3000.0, 0.2), physics=physics).run(rs.PlannedRouter())
    window = task_of("window", two_ways(), demand(10))
    assert window.static_roads() is window.network


def test_static_roads_have_the_wait_for_green_and_what_passes_while_it_is() -> None:
    network = rs.load_city("cologne")
    assert network.signals.any()
    plain, signals = (rs.physics.as_physics(name).static_roads(network) for name in ("plain-queue", "queue"))
    assert plain.free_flow_s.tolist() == network.free_flow_s.tolist()
    assert plain.capacity_vph == pytest.approx(network.capacity_vph)
    waits = signals.free_flow_s > network.free_flow_s
    assert 0 < waits.sum() < network.n_edges
    assert (signals.capacity_vph[waits] < 1800.0 * np.maximum(1, np.round(network.lanes))[waits]).all()


@pytest.mark.parametrize("physics", QUEUES)
def test_carcb_finds_theta_in_queues_and_does_not_send_vehicles_round_for_nothing(physics: str) -> None:
    graph = nx.grid_2d_graph(4, 4, create_using=nx.DiGraph)
    for k, (_, _, road) in enumerate(graph.edges(data=True)):
        road |= {"length_m": 150.0, "free_flow_s": 12.0 + 0.5 * (k % 7), "capacity_vph": 700.0, "lanes": 1}
    network = rs.RoadNetwork.from_networkx(graph)
    ends = {"origin": [(0, 0), (0, 3), (3, 1)], "destination": [(3, 3), (3, 0), (0, 2)]}
    trips = rs.Demand.from_od({**ends, "vehicles": [300.0] * 3}, 0.0, 3600.0)
    terms = {"time": 1.0, "time*hurried": 0.5}
    features = rs.RoadFeatures(network, range(network.n_edges), list(terms))
    costs = rs.TripCosts(rs.Travellers({"hurried": 1, "calm": 1}), features, features.theta(terms))
    simulator = rs.TrafficSimulator(network, trips, physics=physics, noise=0.1, trip_costs=costs)
    router = rs.CARCBRouter()
    traffic, greedy = simulator.run(router), simulator.run(rs.GreedyRouter())
    assert router.theta == pytest.approx(features.theta(terms))
    assert traffic.trip_cost is not None
    assert greedy.trip_cost is not None
    assert traffic.trip_cost.mean() < 1.03 * greedy.trip_cost.mean()
