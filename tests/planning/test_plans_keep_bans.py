"""Plans and learners on whole graphs keep to banned turns."""

from dataclasses import replace

import numpy as np
import pytest
from banned import driven_bans, streets, walks
from numpy.testing import assert_allclose

import routesim as rs
from routesim.errors import InputError
from routesim.planning import Planner
from routesim.planning.edgewise.choices import RoadGraph
from routesim.planning.edgewise.sharing import FlowSharing

WINDOW = 2


def rewards_on(network: rs.RoadNetwork) -> np.ndarray:
    return -network.free_flow_s[:, None] * (1.0 + 0.5 * np.arange(WINDOW + 1))


def cases(n_ways: int) -> list[tuple[rs.RoadNetwork, tuple[int, int]]]:
    """Towns, each with two corners between which there are several ways."""
    found = []
    for seed in range(6):
        network = streets(3, seed, 8, n_ways)
        ends = 0, network.n_nodes - 1
        if len(list(zip(range(3), simple_walks(network, ends), strict=False))) == 3:
            found.append((network, ends))
    return found[:2]


def simple_walks(network: rs.RoadNetwork, ends: tuple[int, int]):
    return (found for found in walks(network, network.free_flow_s, *ends) if len(set(found[1])) == len(found[1]))


@pytest.mark.parametrize("n_ways", [0, 10])
def test_a_plan_on_a_graph_is_worth_as_much_as_one_on_its_list(n_ways: int) -> None:
    for network, ends in cases(n_ways):
        labels = [network.labels[node] for node in ends]
        listed = rs.ActionSet.between(network, *labels, k=6, method="k-shortest")
        whole = rs.ActionSet.on_graph(network, *labels)
        rewards = rewards_on(network)
        exact = rs.plan(listed, rewards[listed.edges], WINDOW)
        found = rs.plan(whole, rewards, WINDOW)
        assert found.bound >= exact.value - 1e-9
        assert found.value >= exact.value * 1.02, "at most 2 % below the best of the list (values are negative)"
        for path in found.cycle:
            assert not driven_bans(network, path)
            assert len(set(path)) == len(path)


@pytest.mark.parametrize("n_ways", [0, 10])
def test_the_best_path_at_prices_is_that_of_a_search_over_histories(n_ways: int) -> None:
    for network, ends in cases(n_ways):
        value, path = RoadGraph(network.graph, np.array([ends[0]]), np.array([ends[1]])).best(-network.free_flow_s, 0)
        least, _ = next(simple_walks(network, ends))
        assert_allclose([-value, network.free_flow_s[path].sum()], least)
        actions = rs.ActionSet.on_graph(network, *(network.labels[node] for node in ends))
        best = actions.best(-network.free_flow_s)
        assert_allclose(network.free_flow_s[list(best)].sum(), least)


def test_flows_by_arc_cost_what_the_cheapest_path_costs_where_uses_are_worth_the_same() -> None:
    # Without congestion the best flow is one path, and the prices of its edges are what they cost.
    for network, ends in cases(0):
        actions = rs.ActionSet.on_graph(network, *(network.labels[node] for node in ends))
        graph = Planner(actions, WINDOW, "edgewise")._choices
        free = -network.free_flow_s
        sharing = FlowSharing(graph, np.arange(network.n_edges), free)
        grid = np.array([0.0, 1.0])
        value, prices = sharing.solve(grid, free[:, None] * grid, free)
        assert_allclose(value, -next(simple_walks(network, ends))[0])
        assert (prices <= free + 1e-9).all()
        used = network.graph.roads[sharing.shared_arcs[sharing.shares > 0.5]]
        assert_allclose(free[used].sum(), value)


def test_every_policy_of_a_run_keeps_to_the_bans_and_below_the_bound() -> None:
    network, ends = cases(10)[0]
    actions = rs.ActionSet.on_graph(network, *(network.labels[node] for node in ends))
    base = -network.free_flow_s[actions.edges]
    world = rs.RoundEnvironment.from_congestion(actions, base, rs.congestion.Linear(0.5), WINDOW, -0.1 * base)
    for learner in (rs.ShortestPath(), rs.GreedyCongestion(), rs.CARMAB()):
        run = rs.run(world, learner, 60, seed=0)
        assert not any(driven_bans(network, path) for path in run.paths)


def test_several_pairs_are_planned_together() -> None:
    network, ends = cases(0)[0]
    labels = [network.labels[node] for node in ends]
    sets = [rs.ActionSet.on_graph(network, *labels), rs.ActionSet.on_graph(network, *labels[::-1])]
    found = rs.plan(rs.ActionSet.several(sets, [1.0, 2.0]), rewards_on(network), WINDOW)
    for pair in range(2):
        path = found.policy((), pair)
        assert not driven_bans(network, path)
    assert found.value <= found.bound


def test_an_action_over_a_ban_is_refused_by_name() -> None:
    network = streets(3, 0, 0, 0)
    walk = next(iter(simple_walks(network, (0, 8))))[1]
    banned = replace(network, banned_turns=[walk[:2]])
    actions = rs.ActionSet.on_graph(banned, network.labels[0], network.labels[8])
    base = -network.free_flow_s
    world = rs.RoundEnvironment.from_congestion(actions, base, rs.congestion.Linear(0.5), WINDOW, 0.0)
    with pytest.raises(InputError, match=f"the banned turn from edge {walk[0]} onto edge {walk[1]}"):
        world.step(walk)
