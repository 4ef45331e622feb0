"""What objects say of themselves in a line, and the figures that people ask a run for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import worlds
from town import braess

import routesim as rs
from routesim.errors import InputError


def objects() -> list[Any]:
    """Return an object of every kind that people print."""
    network, on_roads, on_arms = braess(), worlds.paths(3), worlds.arms()
    demand = rs.Demand.from_trips({"origin": ["s"] * 900, "destination": ["t"] * 900, "departure_s": list(range(900))})
    simulator = rs.TrafficSimulator(network, demand)
    runs = [rs.run(one, rs.CARMAB(), 400, 0) for one in (on_roads, on_arms)]
    return [network, on_roads, on_arms, worlds.contexts(known=True), simulator, simulator.run(rs.GreedyRouter()), *runs]


@pytest.mark.parametrize("one", objects(), ids=lambda one: type(one).__name__)
def test_an_object_says_what_it_is_in_a_line(one: Any) -> None:
    assert len(repr(one)) < 300
    assert "\n" not in repr(one)
    assert type(one).__name__ in repr(one)


def test_a_run_tells_its_mean_trip_on_roads_and_its_mean_reward_anywhere() -> None:
    routes = rs.ActionSet.between(braess(), "s", "t", method="all")
    free_flow_s = braess().free_flow_s[routes.edges]
    trips = rs.RoundEnvironment.from_congestion(routes, -free_flow_s, rs.congestion.Linear(0.5), 4, noise_std=1.0)
    run = rs.run(trips, rs.RandomPath(), 300, 0)
    assert run.mean_trip_s == pytest.approx(-np.mean(run.expected_rewards)) == -run.mean_reward
    assert run.thinned(10).mean_trip_s == pytest.approx(run.mean_trip_s)
    assert repr(run).startswith("<Run RandomPath: 300 rounds, mean trip ")
    on_arms = rs.run(worlds.arms(), rs.UCB1(), 300, 0)
    assert on_arms.mean_reward == pytest.approx(np.mean(on_arms.expected_rewards))
    with pytest.raises(InputError, match="mean_trip_s needs a run on roads"):
        _ = on_arms.mean_trip_s


def test_a_scenario_runs_by_its_name_from_python(tmp_path: Path) -> None:
    outcome = rs.run_scenario("plain-bandit", tmp_path / "named", rounds=200, seed=3, replications=1, workers=1)
    assert (outcome.summary["seed"], outcome.summary["rounds"]) == (3, 200)
    again = rs.run_scenario(tmp_path / "named" / "scenario.toml", tmp_path / "file", workers=1)
    assert again.cells == outcome.cells != []
    from routesim.scenario.files import load_scenario

    with pytest.raises(InputError, match="set its fields"):
        rs.run_scenario(load_scenario("plain-bandit"), tmp_path / "object", rounds=5)
