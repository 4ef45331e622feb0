"""Numbers that would make results without meaning are refused, with the limit named, wherever they come from."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from town import town

import routesim as rs
from routesim.errors import InputError, LongPlanWarning, NetworkError, ScenarioError, TooManyStatesError
from routesim.planning import Planner, check_plan
from routesim.scenario.files import parse_scenario

TNTP = (
    "<NUMBER OF ZONES> 2\n<NUMBER OF NODES> 2\n<FIRST THRU NODE> 1\n<NUMBER OF LINKS> 1\n<END OF METADATA>\n"
    "~ init_node term_node capacity length free_flow_time b power speed toll link_type ;\n"
    "1 2 {capacity} 1 1 0.15 {beta} 50 0 1 ;\n"
)
LIMITS = [("capacity", 1e-300, r"between 1e-06 and 1e\+12, got 1e-300"), ("beta", 300.0, "between 0 and 20, got 300")]

TRAFFIC = """
kind = "traffic"
title = "one road"
replications = 1
seed = 0
[traffic]
window_s = 300
edges = [{ from = "s", to = "t", free_flow_s = 10, capacity_vph = CAPACITY, bpr_beta = BETA }]
demand = { pairs = [{ from = "s", to = "t", vehicles = 5 }] }
[[learners]]
name = "FreeFlowRouter"
"""

BANDIT = """
kind = "bandit"
title = "arms"
rounds = 10
replications = 1
seed = 0
[bandit]
arms = 200
windows = [WINDOW]
noise_variance = 0.1
congestion = { name = "CONGESTION" }
[[learners]]
name = "CARMAB"
"""


def departing(at_s: float) -> rs.Demand:
    """Two trips that depart at one time."""
    return rs.Demand.from_trips({"origin": ["s"] * 2, "destination": ["t"] * 2, "departure_s": [at_s] * 2})


@pytest.mark.parametrize("at_s", [2e9, 1e18, 1e300])
def test_departures_too_late_to_be_told_apart_are_refused(at_s: float) -> None:
    with pytest.raises(InputError, match=r"departure_s must be a finite number between 0 and 1e\+09, got .* vehicle 0"):
        departing(at_s)
    with pytest.raises(InputError, match=r"end_s must be between 0 and 1e\+09"):
        rs.Demand.from_od({"origin": ["s"], "destination": ["t"], "vehicles": [5.0]}, start_s=0.0, end_s=at_s)


def test_the_latest_departure_drives_as_the_first() -> None:
    roads = town([("s", "t", 10.0)])
    first, last = (rs.TrafficSimulator(roads, departing(at_s)).run(rs.FreeFlowRouter()) for at_s in (0.0, 1e9))
    np.testing.assert_allclose(first.arrival_s, last.arrival_s - 1e9, atol=1e-6)


@pytest.mark.parametrize(("name", "value", "limit"), LIMITS)
def test_roads_without_meaning_are_refused_by_every_way_in(name: str, value: float, limit: str, tmp_path: Path) -> None:
    column = {"capacity": "capacity_vph", "beta": "bpr_beta"}[name]
    graph = nx.MultiDiGraph()
    graph.add_edge("s", "t", free_flow_s=10.0, **{column: value})
    nx.write_graphml(graph, tmp_path / "roads.graphml")
    (tmp_path / "net.tntp").write_text(TNTP.format(**{"capacity": 100, "beta": 4, name: value}))
    for read, source in (
        (rs.RoadNetwork.from_networkx, graph),
        (rs.RoadNetwork.from_graphml, tmp_path / "roads.graphml"),
        (rs.RoadNetwork.from_tntp, tmp_path / "net.tntp"),
    ):
        with pytest.raises(NetworkError, match=f"{column} must be a finite number {limit}"):
            read(source)  # type: ignore[operator]
    given = {"capacity": "1000.0", "beta": "4.0", name: repr(value)}
    with pytest.raises(ScenarioError, match=rf"traffic.edges.0.{column}: Input should be"):
        parse_scenario(TRAFFIC.replace("CAPACITY", given["capacity"]).replace("BETA", given["beta"]))


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({"capacity": 1e-300}, r"BPR's capacity must be between 1e-06 and 1e\+15, got 1e-300"),
        ({"capacity": [10.0, 1e-300]}, "BPR's capacity must be between"),
        ({"capacity": 10.0, "beta": 300}, "BPR's beta must be between 0 and 20, got 300"),
        ({"capacity": 10.0, "alpha": 1e300}, r"BPR's alpha must be between 0 and 1e\+12"),
    ],
)
def test_curves_without_meaning_are_refused(options: dict[str, Any], limit: str) -> None:
    with pytest.raises(InputError, match=limit):
        rs.congestion.BPR(**options)
    toml = ", ".join(f"{name} = {value}" for name, value in options.items())
    with pytest.raises(ScenarioError, match=limit):
        parse_scenario(BANDIT.replace('"CONGESTION"', f'"bpr", {toml}').replace("WINDOW", "2").replace("200", "2"))


def test_a_capacity_too_small_for_the_window_is_refused() -> None:
    roads = town([("s", "t", 10.0)], capacity_vph=1e-5)
    with pytest.raises(InputError, match=r"vehicles in a window of 1 s must be between 1e-06 and .*, got 2.7"):
        rs.TrafficSimulator(roads, departing(0.0), window_s=1.0)


def test_a_standstill_for_ever_is_an_error_and_no_number() -> None:
    roads = town([("s", "t", 10.0)], capacity_vph=1e-3, beta=20.0)
    table = {"origin": ["s"] * 9, "destination": ["t"] * 9, "departure_s": np.arange(9.0)}
    with pytest.raises(InputError, match=r"vehicle 1 arrives at .* s, later than 1e\+12 s.* raise capacities"):
        rs.TrafficSimulator(roads, rs.Demand.from_trips(table)).run(rs.FreeFlowRouter())


def test_a_plan_of_hours_is_refused_before_it_starts() -> None:
    arms = rs.ActionSet.arms(200)
    cost = r"a plan over 200 edges with a window of 4,500 would take about 2.4 hours.*shorter window or fewer actions"
    with pytest.raises(TooManyStatesError, match=cost):
        rs.plan(arms, np.zeros((200, 4501)), 4500)
    world = rs.RoundEnvironment.from_congestion(arms, np.full(200, 0.5), rs.congestion.Inverse(), 4500, 0.1)
    with pytest.raises(TooManyStatesError, match=cost):
        rs.run(world, rs.CARMAB(), 10)
    with pytest.raises(TooManyStatesError, match=r"window must be at most 5,000 .* got 100,000: .* days and 750 GB"):
        check_plan(arms, 100_000)


def test_a_plan_of_minutes_is_warned_of_before_it_starts() -> None:
    with pytest.warns(LongPlanWarning, match=r"window of 1,000 may take about 7 minutes; use a shorter window"):
        Planner(rs.ActionSet.arms(200), 1000)


def test_a_scenario_says_what_its_window_would_cost() -> None:
    toml = BANDIT.replace("CONGESTION", "inverse")
    with pytest.raises(ScenarioError, match=r"windows.0: Input should be less than or equal to 5000"):
        parse_scenario(toml.replace("WINDOW", "5001"))
    with pytest.raises(ScenarioError, match=r"would take about 2.4 hours"):
        parse_scenario(toml.replace("WINDOW", "4500"))
    contextual = toml.replace('"bandit"', '"contextual"').replace("[bandit]\narms = 200", "[contextual]\nfeatures = 2")
    contextual = contextual.replace(
        "windows = [WINDOW]", 'settings = [{ arms = 9, window = 13 }]\ncontexts = ["known"]'
    )
    with pytest.raises(ScenarioError, match="reaches window 12, got 13"):
        parse_scenario(contextual)


def test_carcb_says_which_window_it_reaches() -> None:
    arms = rs.ActionSet.arms(9)
    contexts = rs.UniformContexts(9, 2)
    world = rs.ContextualEnvironment(arms, [0.6, 0.8], contexts, rs.congestion.Inverse(), 13, 0.1, known=False)
    with pytest.raises(TooManyStatesError, match=r"reaches window 12, got 13.*shorter window, or LinUCB"):
        rs.run(world, rs.CARCB(), 10)


def test_a_long_window_is_planned() -> None:
    base = np.array([0.9, 0.5, 0.2])
    found = rs.plan(rs.ActionSet.arms(3), base[:, np.newaxis] / (1 + np.arange(401)), 400)
    assert 0 < found.value <= found.bound < 2 * found.value
