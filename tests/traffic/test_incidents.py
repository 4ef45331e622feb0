"""Roads that lose capacity or are closed: by hand in both engines, and what holds in random towns."""

from typing import Any

import numpy as np
import pytest
from queue_town import PLAIN, Witness, chain, demand_of, roads

import routesim as rs
from routesim.errors import InputError

ENGINES = ("window", "plain-queue", "queue")
# a -> b -> d is the quicker way, a -> c -> d the other; b leads nowhere but to d.
FORK = [
    ("a", "b", 600.0, 60.0, 1800.0),
    ("a", "c", 900.0, 90.0, 1800.0),
    ("b", "d", 600.0, 60.0, 1800.0),
    ("c", "d", 900.0, 90.0, 1800.0),
]
AB, AC, BD, CD = range(4)
BELOW, ABOVE = [AB, BD], [AC, CD]


def trips(*departure_s: float, origin: str = "a", destination: str = "d") -> rs.Demand:
    n = len(departure_s)
    return rs.Demand.from_trips({"origin": [origin] * n, "destination": [destination] * n, "departure_s": departure_s})


def fork(*departure_s: float, physics: str = "window", **options: Any) -> rs.TrafficSimulator:
    return rs.TrafficSimulator(roads(FORK), trips(*departure_s), physics=physics, **options)


def paths_of(traffic: Any) -> list[list[int]]:
    starts, lengths = traffic.path_starts, traffic.path_lengths
    return [traffic.path_edges[a : a + n].tolist() for a, n in zip(starts, lengths, strict=True)]


@pytest.mark.parametrize("physics", ENGINES)
def test_whoever_comes_to_a_closed_road_waits_and_whoever_departs_goes_round_it(physics: str) -> None:
    simulator = fork(50.0, 120.0, 600.0, physics=physics, incidents=[rs.Incident([BD], 100.0, 500.0)])
    traffic = simulator.run(rs.FreeFlowRouter())
    assert paths_of(traffic) == [BELOW, ABOVE, BELOW]
    # The first is at b at 110 s, from where there is no other way, and goes on when the road opens at 500 s.
    assert traffic.arrival_s == pytest.approx([560.0, 300.0, 720.0], abs=0.05)
    assert traffic.incidents == (rs.Incident([BD], 100.0, 500.0),)


@pytest.mark.parametrize("physics", ENGINES)
def test_whoever_can_goes_another_way_from_where_he_is(physics: str) -> None:
    network = roads([*FORK[:3], ("b", "c", 300.0, 30.0, 1800.0), FORK[3]])
    simulator = rs.TrafficSimulator(
        network, trips(50.0), physics=physics, incidents=[rs.Incident([BD], 100.0)], congestion=None
    )
    traffic = simulator.run([BELOW])
    assert paths_of(traffic) == [[AB, 3, 4]]
    assert traffic.arrival_s == pytest.approx([50.0 + 60.0 + 30.0 + 90.0], abs=0.05)


@pytest.mark.parametrize("physics", ENGINES)
def test_those_on_a_road_that_is_closed_drive_on(physics: str) -> None:
    traffic = fork(0.0, physics=physics, incidents=[rs.Incident(BELOW, 70.0, 900.0)]).run([BELOW])
    assert traffic.arrival_s == pytest.approx([120.0], abs=0.05)  # on the second road since 60 s


@pytest.mark.parametrize("physics", ENGINES)
def test_where_every_way_is_closed_one_waits_and_for_ever_if_it_stays_so(physics: str) -> None:
    closures = [rs.Incident([AB], 0.0, 300.0), rs.Incident([AC], 0.0, 400.0)]
    traffic = fork(10.0, 20.0, physics=physics, incidents=closures).run(rs.GreedyRouter())
    assert traffic.arrival_s == pytest.approx([420.0, 420.0], abs=2.5)  # as soon as one is open, not both
    forever = fork(10.0, physics=physics, incidents=[rs.Incident([BD, CD], 0.0)]).run(rs.GreedyRouter())
    assert not forever.arrived.any()
    assert forever.summary()["arrived"] == 0


def test_a_lost_capacity_holds_back_what_it_does_not_pass() -> None:
    # A vehicle every 4 s reaches the end of the road from 60 s on, which passes one every 3.6 s, and one every 7.2 s
    # from 600 s to 1,200 s.
    network = chain((1500.0, 60.0, 1000.0), (1500.0, 60.0, 3600.0))
    departure_s = np.arange(0.0, 1800.0, 4.0)
    paths = [[0, 1]] * len(departure_s)
    demand, seen = demand_of(network, paths, departure_s), Witness(paths)
    incident = rs.Incident(0, 600.0, 1200.0, capacity=0.5)
    rs.TrafficSimulator(network, demand, physics=PLAIN, incidents=[incident]).run(seen)
    first = seen.column("edges") == 0
    left = np.sort((seen.column("entered_s") + seen.column("travel_time_s"))[first])
    assert np.diff(left[left < 600.0]) == pytest.approx(4.0)
    during = left[(left >= 608.0) & (left < 1200.0)]
    assert np.diff(during) == pytest.approx(7.2)
    assert abs(len(left[(left >= 600.0) & (left < 1200.0)]) - 600.0 / 7.2) <= 1
    # 150 came in ten minutes and 83 left: the queue of 67 goes at 1 / 3.6 - 1 / 4 a second, 67 / 0.0278 = 2,400 s.
    after = left[left > 1210.0]
    assert np.diff(after) == pytest.approx(3.6, abs=1e-6)
    # What was left of a headway at a change is driven at the new pace.
    assert left[left >= 1200.0][0] == pytest.approx(1200.0 + (during[-1] + 7.2 - 1200.0) / 2)


def test_the_window_count_is_read_at_more_than_it_is() -> None:
    linear = rs.congestion.Linear(1.0)
    steps = [(0.0, 60.0), (1.0, 120.0), (2.0, 180.0)]  # the third meets two: 60 s x (1 + 2)
    for share in (1.0, 0.5, 0.4):
        simulator = rs.TrafficSimulator(
            chain((600.0, 60.0, 1800.0)),
            trips(*(time for time, _ in steps), origin="0", destination="1"),
            congestion=linear,
            incidents=[rs.Incident(0, 0.5, 100.0, capacity=share)],
        )
        expected = [60.0] + [60.0 * (1 + count / share) for count in (1, 2)]
        assert simulator.run(rs.FreeFlowRouter()).travel_time_s == pytest.approx(expected)


@pytest.mark.parametrize("physics", ENGINES)
def test_informed_routers_know_of_lost_capacity_and_others_do_not(physics: str) -> None:
    departure_s = np.arange(0.0, 1800.0, 6.0)
    incident = rs.Incident(BELOW, 0.0, capacity=0.1)

    def below(router: Any) -> float:
        traffic = fork(*departure_s, physics=physics, incidents=[incident]).run(router)
        return float(np.mean([path == BELOW for path in paths_of(traffic)]))

    assert below(rs.FreeFlowRouter()) == 1.0
    assert below(rs.GreedyRouter()) < 0.5


@pytest.mark.parametrize("physics", ["window", "plain-queue"])
@pytest.mark.parametrize("seed", range(6))
def test_in_random_towns_nobody_enters_a_closed_road_and_all_who_can_arrive(physics: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    town = rs.load_city("cologne")
    edges = rng.choice(town.n_edges, size=12, replace=False)
    starts = rng.uniform(0.0, 1200.0, size=12)
    incidents = [
        rs.Incident([edge], start, start + rng.uniform(60.0, 900.0), capacity=float(rng.choice([0.0, 0.0, 0.2])))
        for edge, start in zip(edges, starts, strict=True)
    ]
    origins, destinations = rng.choice(town.n_nodes, size=(2, 400))
    apart = (origins != destinations) & _joined(town, origins, destinations)
    rows = {
        "origin": [town.labels[node] for node in origins[apart]],
        "destination": [town.labels[node] for node in destinations[apart]],
        "departure_s": np.sort(rng.uniform(0.0, 1800.0, size=int(apart.sum()))),
    }
    simulator = rs.TrafficSimulator(
        town, rs.Demand.from_trips(rows), physics=physics, incidents=incidents, reroute_share=0.3
    )
    seen = Witness()
    traffic = simulator.run(seen)
    assert traffic.arrived.all()  # every closure ends
    entered, entered_s = seen.column("edges"), seen.column("entered_s")
    for one in incidents:
        if one.capacity == 0:
            inside = (entered == one.edges[0]) & (entered_s >= one.start_s) & (entered_s < one.end_s)
            assert not inside.any()
    assert len(entered) == traffic.edges_entered.sum() == traffic.n_events
    again = simulator.run(Witness())
    np.testing.assert_array_equal(traffic.arrival_s, again.arrival_s)


def _joined(town: rs.RoadNetwork, origins: Any, destinations: Any) -> Any:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    matrix = coo_array((np.ones(town.n_edges), (town.tails, town.heads)), shape=(town.n_nodes, town.n_nodes))
    _, part = connected_components(matrix.tocsr(), directed=True, connection="strong")
    return part[origins] == part[destinations]


@pytest.mark.parametrize("physics", ["window", "queue"])
@pytest.mark.parametrize(
    "router",
    [
        rs.FreeFlowRouter(),
        rs.PlannedRouter(),
        rs.LogitRouter(),
        rs.CompliantRouter(rs.PlannedRouter(), rs.FreeFlowRouter(), share=0.5),
        rs.CARMABRouter(),
    ],
    ids=lambda router: type(router).__name__,
)
def test_every_router_goes_round_a_closed_road(physics: str, router: Any) -> None:
    departure_s = np.arange(0.0, 1200.0, 5.0)
    closed = rs.Incident([BD], 300.0, 700.0)
    traffic = fork(*departure_s, physics=physics, incidents=[closed]).run(router)
    taken = paths_of(traffic)
    shut = (departure_s >= 300.0) & (departure_s < 700.0)
    assert all(path == ABOVE for path, hit in zip(taken, shut, strict=True) if hit)
    assert any(path == BELOW for path, hit in zip(taken, shut, strict=True) if not hit)
    assert traffic.arrived.all()


def test_who_follows_is_not_drawn_again_when_roads_close() -> None:
    departure_s = np.arange(0.0, 1200.0, 5.0)
    router = rs.CompliantRouter(rs.GreedyRouter(), rs.FreeFlowRouter(), share=0.5)
    fork(*departure_s).run(router, seed=3)
    before = router._follows[: len(departure_s)].copy()
    fork(*departure_s, incidents=[rs.Incident([BD], 300.0, 700.0)]).run(router, seed=3)
    np.testing.assert_array_equal(before, router._follows[: len(departure_s)])


def test_incidents_that_end_together_or_overlap_leave_the_least() -> None:
    from routesim.roads.incidents import change_times, shares_at

    incidents = [rs.Incident([0, 1], 10.0, 30.0, capacity=0.5), rs.Incident([1], 20.0, 30.0, capacity=0.2)]
    assert change_times(incidents) == [10.0, 20.0, 30.0]
    assert [shares_at(incidents, time, 2).tolist() for time in (0.0, 10.0, 20.0, 30.0)] == [
        [1.0, 1.0],
        [0.5, 0.5],
        [0.5, 0.2],
        [1.0, 1.0],
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"edges": []}, "one or more edges"),
        ({"edges": [1.5]}, "indices"),
        ({"edges": [-1]}, "indices"),
        ({"start_s": -1.0}, "starts at 0 s or later"),
        ({"start_s": float("nan")}, "starts at 0 s or later"),
        ({"end_s": 5.0}, "ends after that"),
        ({"capacity": 1.5}, "0 \\(closed\\) or from 0.001 to 1"),
        ({"capacity": 1e-9}, "0 \\(closed\\) or from 0.001 to 1"),
    ],
)
def test_incidents_without_meaning_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rs.Incident(**({"edges": [0], "start_s": 10.0, "end_s": 20.0} | given))


def test_incidents_must_be_on_edges_that_there_are() -> None:
    with pytest.raises(InputError, match="edge 7; the network has edges 0 … 3"):
        fork(0.0, incidents=[rs.Incident([7], 0.0)])
    with pytest.raises(InputError, match="list of rs"):
        fork(0.0, incidents=[(0, 1)])
