"""Fitting roads to what was seen on them: known roads are found again, and what is no better is not taken."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import routesim as rs
from routesim.errors import InputError, NotFittedWarning
from routesim.traffic.calibration import times_at

WAIT_S = 12.0


@pytest.fixture(scope="module")
def worlds() -> tuple[rs.RoadNetwork, rs.RoadNetwork]:
    """Ingolstadt as it comes, and a truth in which small roads pass half as much and signals cost 12 s."""
    network = rs.load_city("ingolstadt")
    small = np.array(["residential" in kind for kind in network.highways])
    signal = network.signals[network.heads]
    truth = replace(
        network,
        free_flow_s=network.free_flow_s + WAIT_S * signal,
        capacity_vph=network.capacity_vph * np.where(small, 0.5, 1.0),
        bpr_alpha=np.where(small, 1.0, network.bpr_alpha),
    )
    return network, truth


def seen(truth: rs.RoadNetwork, seed: int, most: float = 1.2) -> dict[str, Any]:
    """Flows up to so many times capacity on all roads, and the times that they take, within 5 %."""
    rng = np.random.default_rng(seed)
    edges = np.repeat(np.arange(truth.n_edges), 4)
    flow = truth.capacity_vph[edges] * rng.uniform(0.1, most, len(edges))
    time_s = times_at(truth, edges, flow) * rng.normal(1.0, 0.05, len(edges))
    return {"edge": edges, "flow_vph": flow, "travel_time_s": time_s}


def test_known_roads_are_found_again(worlds: tuple[rs.RoadNetwork, rs.RoadNetwork]) -> None:
    network, truth = worlds
    found = rs.calibration(network, seen(truth, 1), check=seen(truth, 2, most=0.9))
    assert found.kept
    assert found.wait_s == pytest.approx(WAIT_S, rel=0.1)
    assert found.held_out[1] < 0.06 < 0.2 < found.held_out[0]
    assert found.elsewhere[1] < 0.06 < found.elsewhere[0]
    # No time tells alpha from capacity: 1 / 0.5 ** 4 is 0.15 / factor ** 4 with the alpha that stays.
    factors = dict(found.classes)
    assert factors["residential"] == pytest.approx((0.15 * 0.5**4) ** 0.25, rel=0.03)
    assert factors["primary"] == pytest.approx(1.0, rel=0.03)
    fitted = found.network
    edges, flow = np.arange(network.n_edges), truth.capacity_vph
    assert times_at(fitted, edges, flow).sum() == pytest.approx(times_at(truth, edges, flow).sum(), rel=0.03)
    assert repr(found).startswith("<Calibration of ")


def test_traffic_is_observed_as_it_was_driven(worlds: tuple[rs.RoadNetwork, rs.RoadNetwork]) -> None:
    network, truth = worlds
    demand = rs.load_demand("ingolstadt", scale=2.0)
    light = rs.load_demand("ingolstadt", scale="ordinary")
    observed, other = (rs.TrafficSimulator(truth, some).run(rs.GreedyRouter()) for some in (demand, light))
    fitted = rs.calibrate(network, observed, check=other)
    means = [
        rs.TrafficSimulator(some, light).run(rs.GreedyRouter()).mean_travel_time_s for some in (network, fitted, truth)
    ]
    assert means[0] < 0.8 * means[2]
    assert means[1] == pytest.approx(means[2], rel=0.15)


def test_what_is_worse_elsewhere_is_not_taken(worlds: tuple[rs.RoadNetwork, rs.RoadNetwork]) -> None:
    network, truth = worlds
    with pytest.warns(NotFittedWarning, match="the roads stay as they are: <Calibration of .* not kept"):
        kept = rs.calibrate(network, seen(truth, 1), check=seen(network, 2))
    assert kept is network


def test_speeds_say_times_by_the_lengths_of_roads(worlds: tuple[rs.RoadNetwork, rs.RoadNetwork]) -> None:
    network, truth = worlds
    times = seen(truth, 3)
    speeds = {name: times[name] for name in ("edge", "flow_vph")}
    speeds["speed_kph"] = 3.6 * network.length_m[times["edge"]] / times["travel_time_s"]
    one, two = rs.calibration(network, times), rs.calibration(network, speeds)
    assert one.held_out == pytest.approx(two.held_out)


def test_a_table_that_says_nothing_of_times_is_refused(worlds: tuple[rs.RoadNetwork, rs.RoadNetwork]) -> None:
    network, _ = worlds
    good = {"edge": [0, 1], "flow_vph": [10.0, 10.0], "travel_time_s": [20.0, 20.0]}
    with pytest.raises(InputError, match="observed is a Traffic, or a table with the columns edge, flow_vph and"):
        rs.calibrate(network, {"edge": [0, 1], "flow_vph": [10.0, 10.0]})
    with pytest.raises(InputError, match="the columns of observed must be equally long"):
        rs.calibrate(network, good | {"edge": [0]})
    for wrong in ({"edge": [0, 9999]}, {"edge": [0, 0.5]}, {"flow_vph": [1, np.nan]}, {"travel_time_s": [1, 0]}):
        with pytest.raises(InputError, match="row 1 of observed must have an edge"):
            rs.calibrate(network, good | wrong)
    with pytest.raises(InputError, match="at least two roads, got 1"):
        rs.calibrate(network, good | {"edge": [3, 3]})
