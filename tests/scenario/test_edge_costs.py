"""Tolls, distance and fixed costs in seconds: in path sets, rounds, the free-flow router and city scenarios."""

import networkx as nx
import numpy as np
import pytest
from town import town

import routesim as rs
from routesim.errors import InputError, ScenarioError
from routesim.runner.units import city_environment
from routesim.scenario.files import parse_scenario, to_toml


def two_ways() -> rs.RoadNetwork:
    """Over the bridge in 20 s (edges 0 and 2), over the ford in 26 s (edges 1 and 3)."""
    return town([("s", "b", 10.0), ("s", "f", 13.0), ("b", "t", 10.0), ("f", "t", 13.0)])


def by_name(network: rs.RoadNetwork, paths: tuple[tuple[int, ...], ...]) -> list[str]:
    return [str(network.labels[network.heads[path[0]]]) for path in paths]


@pytest.mark.parametrize("method", ["penalty", "k-shortest", "all"])
def test_a_toll_makes_the_other_way_the_cheapest(method: str) -> None:
    roads = two_ways()
    toll = np.where(roads.heads == roads.node_index("b"), 7.0, 0.0)
    free = rs.ActionSet.between(roads, "s", "t", 2, method)  # type: ignore[arg-type]
    charged = rs.ActionSet.between(roads, "s", "t", 2, method, edge_cost_s=toll)  # type: ignore[arg-type]
    assert by_name(roads, free.paths) == ["b", "f"]
    assert by_name(roads, charged.paths) == ["f", "b"]


def test_the_cheapest_paths_of_a_grid_are_those_of_networkx() -> None:
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 5)).to_directed()
    rng = np.random.default_rng(0)
    for _, _, data in graph.edges(data=True):
        data["free_flow_s"] = float(rng.integers(5, 20))
    roads = rs.RoadNetwork.from_networkx(graph)
    toll = rng.integers(0, 15, roads.n_edges).astype(float)
    for e in range(roads.n_edges):
        graph[roads.labels[roads.tails[e]]][roads.labels[roads.heads[e]]]["both"] = roads.free_flow_s[e] + toll[e]
    path = rs.ActionSet.between(roads, 0, 24, 1, "k-shortest", edge_cost_s=toll).paths[0]
    total = float((roads.free_flow_s + toll)[list(path)].sum())
    assert total == pytest.approx(nx.shortest_path_length(graph, 0, 24, weight="both"))
    demand = rs.Demand.from_trips({"origin": [0], "destination": [24], "departure_s": [0.0]})
    driven = rs.TrafficSimulator(roads, demand).run(rs.FreeFlowRouter(edge_cost_s=toll)).path(0)
    assert float((roads.free_flow_s + toll)[driven].sum()) == pytest.approx(total)


def test_rounds_pay_costs_whatever_the_count() -> None:
    actions = rs.ActionSet.arms(2)
    rounds = rs.RoundEnvironment.from_congestion(
        actions, [-10.0, -20.0], rs.congestion.Linear(0.5), 2, 0.0, edge_cost_s=[3.0, 0.0]
    )
    assert rounds.rewards.tolist() == [[-13.0, -18.0, -23.0], [-20.0, -30.0, -40.0]]


@pytest.mark.parametrize(
    ("costs", "message"),
    [([1.0], "one value for each of 4 edges"), ([0, 0, -1, 0], "between 0 and 1e"), (["a"] * 4, "must be numbers")],
)
def test_costs_that_make_no_sense_are_refused(costs: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rs.ActionSet.between(two_ways(), "s", "t", 2, edge_cost_s=costs)


SCENARIO = """
kind = "city"
title = "a toll on the bridge"
rounds = 10
replications = 1
seed = 0
learners = ["ShortestPath"]
[city]
origin = "s"
destination = "t"
method = "all"
window = 1
noise = 0.0
congestion = { name = "linear", slope = 1.0 }
costs = [{ road = "bridge", cost_s = 5.0 }, { between = ["s", "b"], cost_s = 2.5 }]
edges = [
  { from = "s", to = "b", free_flow_s = 10.0 }, { from = "b", to = "t", free_flow_s = 10.0, name = "bridge" },
  { from = "s", to = "f", free_flow_s = 13.0 }, { from = "f", to = "t", free_flow_s = 13.0 },
]
"""


def test_a_city_scenario_has_costs() -> None:
    scenario = parse_scenario(SCENARIO)
    assert parse_scenario(to_toml(scenario)) == scenario
    rounds = city_environment(scenario)  # type: ignore[arg-type]  # it is of a city
    actions, network = rounds.actions, rounds.actions.network
    assert network is not None
    assert by_name(network, actions.listed_paths) == ["f", "b"]
    seconds = {
        tuple(sorted(row)) for row in (-rounds.rewards).tolist()
    }  # at count 0 and 1: 10 s (and the cost), then twice the 10 s (and the cost once)
    assert seconds == {(12.5, 22.5), (15.0, 25.0), (13.0, 26.0)}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('road = "bridge"', 'road = "brigde"', "costs: no road is called 'brigde' .did you mean 'bridge'"),
        ('road = "bridge"', "edges = [9]", "an edge of costs must be at most 3, got 9"),
        ('between = ["s", "b"], ', "", "a cost is on one of road, between and edges; got none"),
        ("cost_s = 5.0", "cost_s = -5.0", "cost_s: Input should be greater than or equal to 0"),
    ],
)
def test_nonsense_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises((ScenarioError, InputError), match=message):
        city_environment(parse_scenario(SCENARIO.replace(old, new)))  # type: ignore[arg-type]
