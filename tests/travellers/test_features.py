"""Road features and travellers: columns by hand, lengths of at most one, and classes worth learning about."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import routesim as rs
from routesim.errors import InputError
from routesim.scenario.city import CityScenario
from routesim.scenario.files import load_scenario
from routesim.travellers.features import EDGE_COLUMNS

ROADS = rs.load_city("gothenburg")
EDGES = np.arange(0, ROADS.n_edges, 7)


def test_features_by_hand() -> None:
    terms = ["time", "length*thrifty", "motorway*calm", "toll*thrifty"]
    toll = np.linspace(0, 4, len(EDGES))
    phi = rs.RoadFeatures(ROADS, EDGES, terms, extra={"toll": toll})
    assert (phi.trip_columns, phi.dimension) == (("thrifty", "calm"), 4)
    costs = {"time": 1.0, "length*thrifty": 0.05, "motorway*calm": 2.0, "toll*thrifty": 60.0}
    paid = phi.block([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 1.0]]) @ phi.theta(costs)
    seconds, metres = ROADS.free_flow_s[EDGES], ROADS.length_m[EDGES]
    kinds = np.array(ROADS.highways)[EDGES]
    motorway = np.isin(kinds, ["motorway", "motorway_link", "trunk", "trunk_link"])
    assert 0 < motorway.sum() < len(EDGES)
    thrifty = 0.05 * metres + 60 * toll
    calm = 2 * seconds * motorway
    assert_allclose(-paid, [seconds, seconds + thrifty, seconds + calm, seconds + calm + thrifty / 2])


def test_no_feature_vector_is_longer_than_one_and_the_scale_is_used() -> None:
    phi = rs.RoadFeatures(ROADS, EDGES, [*EDGE_COLUMNS, "time*rain"])
    lengths = np.linalg.norm(phi.block([[0.0], [1.0]]), axis=2)
    assert lengths.max() <= 1
    assert np.abs(phi.block([[1.0]])).max(axis=(0, 1)).tolist() == pytest.approx([1 / np.sqrt(7)] * 7)


@pytest.mark.parametrize(
    ("terms", "extra", "message"),
    [
        ([], {}, "at least one term"),
        (["time", "time"], {}, "each of them once"),
        (["tim"], {}, "there is no edge column 'tim' for the term 'tim'; there are time, length"),
        (["time*calm*rain"], {}, "edge column \\* trip column, got 'time\\*calm\\*rain'"),
        (["time*"], {}, "a term is"),
        (["toll"], {"toll": [1.0]}, "'toll' needs one finite value for each of"),
        (["toll"], {"toll": np.zeros(len(EDGES))}, "'toll' is 0 on every edge"),
    ],
)
def test_bad_terms_are_named(terms: list[str], extra: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rs.RoadFeatures(ROADS, EDGES, terms, extra=extra)


def test_bad_trips_and_costs_are_named() -> None:
    phi = rs.RoadFeatures(ROADS, EDGES, ["time", "time*rain"])
    with pytest.raises(InputError, match="trips need the columns rain, got"):
        phi.block(np.ones((3, 2)))
    with pytest.raises(InputError, match="a cost for each of time, time\\*rain; got time"):
        phi.theta({"time": 1.0})
    with pytest.raises(InputError, match="look at 'rain', which is no class or condition; there are calm"):
        rs.Travellers({"calm": 1.0}).sampler(phi)


def test_travellers_come_by_their_shares_and_chances() -> None:
    people = rs.Travellers({"hurried": 3, "calm": 1}, {"rain": 0.2})
    trips = people.draw(np.random.default_rng(0), 40_000)
    assert_allclose(trips.mean(axis=0), [0.75, 0.25, 0.2], atol=0.01)
    assert_array_equal(trips[:, :2].sum(axis=1), 1)
    assert abs(np.corrcoef(trips[:, 0], trips[:, 2])[0, 1]) < 0.02


@pytest.mark.parametrize(
    ("classes", "conditions", "message"),
    [
        ({}, {}, "need classes"),
        ({"calm": -1}, {}, "shares of at least 0"),
        ({"calm": 0}, {}, "not all 0"),
        ({"calm": 1}, {"rain": 1.5}, "chance of 'rain' lies between 0 and 1, got 1.5"),
        ({"calm": 1}, {"calm": 0.5}, "a class and a condition"),
    ],
)
def test_bad_travellers_are_named(classes: Any, conditions: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rs.Travellers(classes, conditions)


def city(rounds: int, replications: int) -> dict[str, np.ndarray]:
    """The mean cost of each replication of the scenario, by learner."""
    scenario = load_scenario("helsinki-travellers", rounds=rounds, replications=replications)
    assert isinstance(scenario, CityScenario)
    network = scenario.city.network()
    world = scenario.city.environment(network, scenario.city.actions(network))
    learners = {"CARCB": rs.CARCB(), "CARMAB": rs.CARMAB(confidence=1), "ShortestPath": rs.ShortestPath()}
    unused = rs.Comparator(0.0, 0.0)
    return {
        name: np.array(
            [
                -rs.run(world, one, rounds, 0, replication=number, comparator=unused).expected_rewards.mean()
                for number in range(replications)
            ]
        )
        for name, one in learners.items()
    }


def test_knowing_the_travellers_pays_and_both_learners_beat_the_shortest_path() -> None:
    costs = city(rounds=1_500, replications=2)
    assert (costs["CARCB"] < 0.97 * costs["CARMAB"]).all()
    assert (costs["CARMAB"] < 0.8 * costs["ShortestPath"]).all()


@pytest.mark.slow
def test_knowing_the_travellers_pays_with_bands() -> None:
    from scipy.stats import ttest_rel

    costs = city(rounds=10_000, replications=10)
    for better, worse in (("CARCB", "CARMAB"), ("CARMAB", "ShortestPath")):
        band = ttest_rel(costs[worse], costs[better]).confidence_interval(0.99)
        assert band.low > 20, (better, worse, band)


def test_the_free_flow_shortest_path_is_what_shortest_path_takes() -> None:
    scenario = load_scenario("helsinki-travellers", rounds=50)
    assert isinstance(scenario, CityScenario)
    network = scenario.city.network()
    actions = scenario.city.actions(network)
    run = rs.run(scenario.city.environment(network, actions), rs.ShortestPath(), 50, 0)
    times = [network.free_flow_s[list(path)].sum() for path in actions.paths or ()]
    assert set(run.actions.tolist()) == {int(np.argmin(times))}
