"""Routers that keep a limit on detours, and how unequal a run of traffic was."""

import numpy as np
import pytest
from town import town

import routesim as rs
from routesim.errors import InputError
from routesim.roads.shortest import shortest_tree


@pytest.fixture(scope="module")
def world() -> rs.TrafficSimulator:
    return rs.TrafficSimulator(rs.load_city("helsinki"), rs.load_demand("helsinki", end_s=300.0))


def longest(traffic: rs.Traffic, usual: np.ndarray) -> float:
    """The longest path that a vehicle took, over the quickest of its pair, both at these times."""
    best: dict[tuple[object, object], float] = {}
    worst = 0.0
    for trip in traffic.trips.itertuples():
        pair = trip.origin, trip.destination
        if pair not in best:
            start, end = (traffic.network.node_index(place) for place in pair)
            best[pair] = shortest_tree(traffic.network.graph, usual, start)[0][end]
        worst = max(worst, usual[list(trip.path)].sum() / best[pair])
    return float(worst)


def test_every_vehicle_of_a_plan_keeps_the_limit_at_the_times_of_the_equilibrium(world: rs.TrafficSimulator) -> None:
    usual = rs.assign(world.network, world.demand, "user", 1e-8).travel_time_s
    limited, free = (world.run(rs.PlannedRouter(max_detour=limit), seed=0) for limit in (0.05, None))
    assert longest(limited, usual) <= 1.05 + 1e-5
    assert longest(free, usual) > 1.1


def test_carmab_keeps_to_the_best_paths_it_believes_in(world: rs.TrafficSimulator) -> None:
    # Before it has learned anything, it believes that all roads are empty for ever.
    router = rs.CARMABRouter(confidence=1.0, max_detour=0.0, interval_s=None)
    empty = world.run(router, seed=0)
    assert longest(empty, world.network.free_flow_s) == pytest.approx(1.0)
    learned = world.run(rs.CARMABRouter(max_detour=0.1), seed=0)
    assert learned.arrived.all()


def test_a_plan_for_those_who_follow_keeps_the_limit_too(world: rs.TrafficSimulator) -> None:
    traffic = world.run(rs.CompliantRouter(rs.PlannedRouter(max_detour=0.1), rs.FreeFlowRouter(), 0.5), seed=0)
    assert traffic.arrived.all()


def test_the_inequality_of_a_run_is_that_worked_out_by_hand() -> None:
    # Two roads that never congest, of 10 and 12 s: every fourth vehicle takes the longer one.
    roads = town([("s", "t", 10.0), ("s", "t", 12.0)], capacity_vph=1e6, alpha=0.0)
    departures = {"origin": ["s"] * 8, "destination": ["t"] * 8, "departure_s": [30.0 * i for i in range(8)]}
    world = rs.TrafficSimulator(roads, rs.Demand.from_trips(departures))
    traffic = world.run([(1,) if i % 4 == 0 else (0,) for i in range(8)])
    unequal = traffic.inequality()
    assert unequal == pytest.approx((0.25, 0.25, 0.0, 0.05, 0.2))
    assert traffic.summary()["share_excess_above_10_percent"] == pytest.approx(0.25)
    assert traffic.inequality(0, 1.0).worst == pytest.approx(0.2)
    assert np.isnan(traffic.inequality(1e6).worst)


def test_mistakes_are_named() -> None:
    with pytest.raises(InputError, match="max_detour must be between 0 and"):
        rs.PlannedRouter(max_detour=-0.1)
    with pytest.raises(InputError, match='max_detour belongs to the objective "system", got "user"'):
        rs.PlannedRouter(objective="user", max_detour=0.1)
    with pytest.raises(InputError, match="max_detour must be finite"):
        rs.CARMABRouter(max_detour=float("nan"))
