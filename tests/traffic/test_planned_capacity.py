"""PlannedRouter where roads have a capacity: it keeps to it as far as there are other ways, and says where not."""

import warnings

import pytest
from queue_town import roads

import routesim as rs
from routesim.errors import CapacityWarning

# A quick road that passes 600 vehicles an hour, and a way around that takes five times as long.
TWO_WAYS = [("a", "b", 600.0, 40.0, 600.0), ("a", "c", 1500.0, 100.0, 900.0), ("c", "b", 1500.0, 100.0, 900.0)]


def demand(per_hour: int) -> rs.Demand:
    trips = {"origin": ["a"] * per_hour, "destination": ["b"] * per_hour}
    return rs.Demand.from_trips({**trips, "departure_s": [3600 * k / per_hour for k in range(per_hour)]})


def waits(physics: str, per_hour: int, router: rs.Router) -> float:
    """How long the vehicles on the quick road take beyond its 40 s, at most."""
    traffic = rs.TrafficSimulator(roads(TWO_WAYS), demand(per_hour), physics=physics).run(router)
    return float(traffic.travel_time_s[traffic.path_lengths == 1].max()) - 40.0


@pytest.mark.parametrize("physics", ["queue", "plain-queue"])
def test_a_plan_takes_the_way_around_rather_than_ask_for_more_than_capacity(physics: str) -> None:
    network, wanted = roads(TWO_WAYS), demand(900)
    static = rs.assign(network, wanted, "system")
    assert static.flows[0] > 1.1 * 600  # BPR alone has the quick road carry more than it can
    assert waits(physics, 900, rs.PlannedRouter()) < 30
    with pytest.warns(
        CapacityWarning, match=r"the plan asks for more than capacity on 1 of 3 roads, .* edge 0, 1\.\d+ times"
    ):
        assert waits(physics, 900, rs.PlannedRouter(plan=static)) > 200


def test_a_plan_that_has_no_other_way_says_so() -> None:
    with pytest.warns(CapacityWarning, match="the plan asks for more than capacity on 3 of 3 roads"):
        waits("plain-queue", 2400, rs.PlannedRouter())


def test_the_window_count_is_planned_as_ever() -> None:
    network, wanted = roads(TWO_WAYS), demand(900)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapacityWarning)
        for physics, objective in (("window", "system"), ("window", "user")):
            simulator = rs.TrafficSimulator(network, wanted, physics=physics)
            planned = simulator.run(rs.PlannedRouter(objective=objective))
            static = simulator.run(rs.PlannedRouter(rs.assign(network, wanted, objective)))
            assert planned.arrival_s.tolist() == static.arrival_s.tolist()
