"""What travellers pay beside their seconds, and the router that learns it."""

from typing import Any

import numpy as np
import pytest
from town import town

import routesim as rs
from routesim.errors import InputError, RouteError
from routesim.traffic.protocol import WEIGHED, Driven, Routes, TrafficTask

PEOPLE = rs.Travellers({"hurried": 1, "calm": 1}, {"rain": 0.3})
TERMS = {"time": 1.0, "time*hurried": 0.5, "side_street*hurried": 1.0, "main_road*calm": 1.0, "main_road*rain": 0.5}


def city_costs(network: rs.RoadNetwork) -> rs.TripCosts:
    features = rs.RoadFeatures(network, range(network.n_edges), list(TERMS))
    return rs.TripCosts(PEOPLE, features, features.theta(TERMS))


def two_roads() -> tuple[rs.RoadNetwork, rs.TripCosts]:
    """A quick road with a fee of 30 that only the poor mind, and a slow one."""
    roads = town([("s", "t", 10.0), ("s", "t", 20.0)], alpha=0.0)
    features = rs.RoadFeatures(roads, [0, 1], ["time", "fee*poor"], extra={"fee": [30.0, 0.0]})
    return roads, rs.TripCosts(
        rs.Travellers({"rich": 1, "poor": 3}), features, features.theta({"time": 1, "fee*poor": 1})
    )


def test_kinds_are_all_classes_in_all_conditions_with_their_chances() -> None:
    network = rs.load_city("cologne")
    costs = city_costs(network)
    assert costs.kinds.tolist() == [[1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 1, 1]]
    assert costs.shares.tolist() == pytest.approx([0.35, 0.15, 0.35, 0.15])
    drawn = costs.draw(np.random.default_rng(0), 20_000)
    assert np.bincount(drawn) / 20_000 == pytest.approx(costs.shares, abs=0.02)


def test_a_trip_costs_its_seconds_times_the_rates_of_its_traveller() -> None:
    roads, costs = two_roads()
    assert costs.costs == pytest.approx(np.array([[10.0, 20.0], [40.0, 20.0]]))
    demand = rs.Demand.from_od({"origin": ["s"], "destination": ["t"], "vehicles": [200.0]})
    simulator = rs.TrafficSimulator(roads, demand, congestion=rs.congestion.Linear(slope=0.1), trip_costs=costs)
    traffic = simulator.run(rs.FreeFlowRouter(), seed=1)
    assert traffic.trip_kinds is not None
    rates = np.array([1.0, 4.0])[traffic.trip_kinds]
    assert traffic.trip_cost == pytest.approx(rates * traffic.travel_time_s)
    assert traffic.trips["cost"].tolist() == pytest.approx((rates * traffic.travel_time_s).tolist())
    assert traffic.summary()["mean_cost"] == pytest.approx((rates * traffic.travel_time_s).mean())
    stopped = simulator.run(rs.FreeFlowRouter(), seed=1, until_s=1800.0)
    assert stopped.trip_cost is not None
    assert (np.isnan(stopped.trip_cost) == ~stopped.arrived).all()
    # Travellers have a generator of their own: the same trips and times without them.
    plain = rs.TrafficSimulator(roads, demand, congestion=rs.congestion.Linear(slope=0.1)).run(rs.FreeFlowRouter(), 1)
    assert plain.arrival_s.tolist() == traffic.arrival_s.tolist()
    with pytest.raises(InputError, match="only with TrafficSimulator"):
        plain.measured_cost()


def test_carcb_sends_each_traveller_down_the_road_that_is_cheap_to_them() -> None:
    roads, costs = two_roads()
    demand = rs.Demand.from_od({"origin": ["s"], "destination": ["t"], "vehicles": [2000.0]})

    class Mixed(rs.CARCBRouter):
        """Both roads have to be driven before theta is determined: odd vehicles of the first 100 take the slow one."""

        def route(self, departures: Any) -> Routes:
            routes = super().route(departures)
            early = departures.vehicles < 100
            which = np.where(early, departures.vehicles % 2, routes.which)
            return Routes.of([[0], [1]], which)._replace(weights=routes.weights)

    router = Mixed(first_fit=16)
    traffic = rs.TrafficSimulator(roads, demand, noise=0.1, trip_costs=costs).run(router)
    late = range(1000, traffic.n_vehicles)
    assert traffic.trip_kinds is not None
    assert [int(traffic.path(v)[0]) for v in late] == [int(traffic.trip_kinds[v]) for v in late]


def test_feedback_in_another_order_gives_the_same_fit() -> None:
    network = rs.load_city("cologne")
    demand = rs.load_demand("cologne", end_s=900)
    costs = city_costs(network)

    class Pupil(rs.CARCBRouter):
        def start(self, task: TrafficTask, rng: np.random.Generator) -> None:
            super().start(task, rng)
            self.seen: list[Driven] = []
            self.task = task

        def learn(self, driven: Driven) -> None:
            self.seen.append(driven)
            super().learn(driven)

    pupil = Pupil()
    traffic = rs.TrafficSimulator(network, demand, noise=0.2, trip_costs=costs).run(pupil)
    assert pupil.visits.sum(axis=0).tolist() == traffic.edge_counts.sum(axis=0).tolist()
    assert sum(driven.costs.sum() for driven in pupil.seen) == pytest.approx(np.nansum(traffic.trip_cost))
    again = rs.CARCBRouter()
    again.start(pupil.task, np.random.default_rng(0))
    rng = np.random.default_rng(5)
    for driven in reversed(pupil.seen):
        order = rng.permutation(len(driven.edges))
        again.learn(Driven(*(column[order] for column in driven if column is not None)))
    assert again.visits.tolist() == pupil.visits.tolist()
    assert again.gram == pytest.approx(pupil.gram)
    assert again.moment == pytest.approx(pupil.moment)
    penalised = rs.CARCBRouter(ridge=0.7)
    penalised.start(pupil.task, np.random.default_rng(0))
    for driven in pupil.seen:
        penalised.learn(driven)
    squares = pupil.gram + 0.7 * np.eye(len(pupil.moment))
    assert penalised._fitted() == pytest.approx(np.linalg.solve(squares, pupil.moment))


def test_carcb_finds_theta_and_ends_below_greedy_and_free_flow_in_cologne() -> None:
    network, demand = rs.load_city("cologne"), rs.load_demand("cologne", end_s=5400)
    costs = city_costs(network)
    simulator = rs.TrafficSimulator(network, demand, noise=0.1, trip_costs=costs)
    errors: list[float] = []

    class Watched(rs.CARCBRouter):
        def _fitted(self) -> Any:
            theta = super()._fitted()
            errors.append(float(np.linalg.norm(theta - costs.theta) / np.linalg.norm(costs.theta)))
            return theta

    def mean(router: Any, seed: int) -> float:
        return float(simulator.run(router, seed).measured_cost(3600, 4800).mean())

    first = last = 0.0
    for seed in range(3):
        errors.clear()
        learned = mean(Watched(), seed)
        assert errors[-1] < 0.03
        first, last = first + errors[0], last + errors[-1]
        assert learned < 0.98 * mean(rs.GreedyRouter(), seed)
        assert learned < 0.98 * mean(rs.FreeFlowRouter(), seed)
    assert last < first / 3


def test_other_congestion_functions_and_the_learner_of_the_rounds_will_do() -> None:
    roads, costs = two_roads()
    demand = rs.Demand.from_od({"origin": ["s"], "destination": ["t"], "vehicles": [500.0]})
    simulator = rs.TrafficSimulator(roads, demand, 60, rs.congestion.Linear(slope=0.2), trip_costs=costs)
    traffic = simulator.run(rs.CARCB())
    assert traffic.router == "CARCBRouter"
    assert traffic.arrived.all()
    assert simulator.run(rs.CARCB()).arrival_s.tolist() == traffic.arrival_s.tolist()
    assert simulator.run(rs.CompliantRouter(rs.CARCBRouter(), rs.GreedyRouter())).arrived.all()


def test_mistakes_are_named() -> None:
    roads, costs = two_roads()
    demand = rs.Demand.from_od({"origin": ["s"], "destination": ["t"], "vehicles": [50.0]})
    with pytest.raises(InputError, match="trip_costs=TripCosts"):
        rs.TrafficSimulator(roads, demand).run(rs.CARCBRouter())
    with pytest.raises(InputError, match="edge 0 costs -10 to a trip of rich"):
        rs.TripCosts(costs.travellers, costs.features, -np.asarray(costs.theta))
    with pytest.raises(InputError, match="one number for each of the terms"):
        rs.TripCosts(costs.travellers, costs.features, [1.0])
    with pytest.raises(InputError, match="features of all 3 edges"):
        rs.TrafficSimulator(town([("s", "t", 1.0)] * 3), demand, trip_costs=costs)
    with pytest.raises(InputError, match=r"ridge, where it is not 0, must be between 1e-12 and 1e\+12, got -1"):
        rs.CARCBRouter(ridge=-1)
    with pytest.raises(InputError, match="interval_s"):
        rs.CARCBRouter(interval_s=None)

    class Weighs(rs.FreeFlowRouter):
        def route(self, departures: Any) -> Routes:
            return Routes.of([], np.full(len(departures.vehicles), WEIGHED))

    with pytest.raises(RouteError, match="WEIGHED needs travellers"):
        rs.TrafficSimulator(roads, demand).run(Weighs())
    with pytest.raises(RouteError, match="gave no weights"):
        rs.TrafficSimulator(roads, demand, trip_costs=costs).run(Weighs())
