"""Every path of a graph as the action set, and several pairs of ends: rounds, learners and plans as for lists."""

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from worlds import grid

import routesim as rs
from routesim.errors import InputError
from routesim.rounds.environment import Tally
from routesim.rounds.kernels import Trace


def world_on(
    actions: rs.ActionSet, network: rs.RoadNetwork, window: int = 3, noise: float = 0.1
) -> rs.RoundEnvironment:
    base = -network.free_flow_s[actions.edges]
    return rs.RoundEnvironment.from_congestion(actions, base, rs.congestion.Linear(0.5), window, -noise * base)


def test_a_graph_set_lists_no_paths() -> None:
    network = grid()
    actions = rs.ActionSet.on_graph(network, (0, 0), (2, 2))
    assert actions.paths is None
    assert actions.n_actions is None
    assert_array_equal(actions.edges, np.arange(network.n_edges))
    with pytest.raises(InputError, match=r"list of paths.*ActionSet\.between"):
        _ = actions.incidence


def test_rounds_on_a_graph_and_on_its_list_are_the_same() -> None:
    network = grid()
    listed = rs.ActionSet.between(network, (0, 0), (2, 2), method="all")
    whole = rs.ActionSet.on_graph(network, (0, 0), (2, 2))
    assert listed.n_edges < whole.n_edges, "edges back into the origin are on no path"
    one, other = world_on(listed, network), world_on(whole, network)
    for number in np.random.default_rng(0).integers(listed.n_listed, size=50).tolist():
        seen, also = one.step(number), other.step(listed.paths[number])
        assert (seen.reward, one.expected_reward) == (also.reward, other.expected_reward)
        assert_array_equal(seen.counts, also.counts)
        assert_array_equal(listed.edges[seen.edges], also.edges)
    history = tuple(listed.paths[number] for number in one.observe().history)
    assert other.observe().history == history


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (0, "tuple of edge indices"),
        ((), "a path of edges 0 to"),
        ((999,), "a path of edges 0 to"),
        ((0,), "does not lead from node"),
    ],
)
def test_what_is_no_path_is_refused_and_changes_nothing(action: object, message: str) -> None:
    network = grid()
    world = world_on(rs.ActionSet.on_graph(network, (0, 0), (2, 2)), network)
    with pytest.raises(InputError, match=message):
        world.step(action)
    assert world.observe().round == 0
    assert world.observe().counts.sum() == 0


@pytest.mark.parametrize("learner", [rs.Oracle(), rs.ShortestPath(), rs.CARMAB(confidence=1)], ids=repr)
@pytest.mark.parametrize("whole", [True, False], ids=["graph", "list"])
def test_cycles_played_in_one_call_give_the_numbers_of_single_steps(learner: rs.Learner, whole: bool) -> None:
    network = grid()
    ends = (0, 0), (2, 2)
    actions = rs.ActionSet.on_graph(network, *ends) if whole else rs.ActionSet.between(network, *ends, method="all")
    window = 3 if whole else 8  # twelve paths and a window of eight are too many joint histories
    world = world_on(actions, network, window)
    fast = rs.run(world, learner, rounds=150, seed=3)
    plain = rs.run(world, learner, rounds=150, seed=3, compiled=False, comparator=None)
    assert_array_equal(fast.actions, plain.actions)
    assert_array_equal(fast.rewards, plain.rewards)
    assert fast.paths == plain.paths


def test_a_cycle_is_followed_until_the_tally_is_full() -> None:
    network = grid()
    world = world_on(rs.ActionSet.on_graph(network, (0, 0), (2, 2)), network)
    first, second = rs.ActionSet.between(network, (0, 0), (2, 2), k=2, method="k-shortest").paths
    tally, trace = Tally.empty(network.n_edges, 3), Trace.empty(100)
    tally.limits[first[0], :] = 4
    played = world.follow([first, second], tally, trace)
    assert tally.full
    assert set(trace.actions[:played].tolist()) == {0, 1}
    assert world.paths == (first, second)


def test_the_oracle_earns_what_its_plan_promises_on_a_graph() -> None:
    network = grid(4)
    actions = rs.ActionSet.on_graph(network, (0, 0), (3, 3))
    world = world_on(actions, network, window=4)
    plan = rs.plan(actions, world.rewards, 4)
    assert plan.method == "edgewise"
    assert plan.bound >= plan.value
    run = rs.run(world, rs.Oracle(), rounds=2_000, seed=0)
    cycle = len(plan.cycle)
    assert_allclose(run.expected_rewards[-100 * cycle :].mean(), plan.value, rtol=1e-9)
    greedy = rs.run(world, rs.GreedyCongestion(), rounds=500, seed=0, comparator=plan)
    fixed = rs.run(world, rs.ShortestPath(), rounds=500, seed=0, comparator=plan)
    assert plan.value >= greedy.expected_rewards[-200:].mean() - 1e-9
    assert plan.value > fixed.expected_rewards[-200:].mean()
    assert (greedy.average_regret_upper >= greedy.average_regret).all()


def test_carmab_learns_a_whole_graph() -> None:
    network = grid()
    actions = rs.ActionSet.on_graph(network, (0, 0), (2, 2))
    world = world_on(actions, network)
    run = rs.run(world, rs.CARMAB(confidence=1), rounds=1_500, seed=0)
    late = run.expected_rewards[-200:].mean()
    assert late >= 1.02 * run.comparator_value, "within 2 % of the best known, in cost"
    assert late <= run.comparator_bound + 1e-9


@pytest.mark.parametrize("learner", [rs.UCB1(), rs.ThompsonSampling(), rs.EpsilonGreedy(), rs.RandomPath()], ids=repr)
def test_learners_of_whole_actions_need_a_list(learner: rs.Learner) -> None:
    network = grid()
    world = world_on(rs.ActionSet.on_graph(network, (0, 0), (2, 2)), network)
    with pytest.raises(InputError, match="list of paths"):
        rs.run(world, learner, rounds=10, seed=0)


def two_pairs(network: rs.RoadNetwork, whole: bool) -> rs.ActionSet:
    pairs = [((0, 0), (2, 2)), ((2, 0), (0, 2))]
    if whole:
        return rs.ActionSet.several([rs.ActionSet.on_graph(network, *ends) for ends in pairs], rates=[3, 1])
    lists = [rs.ActionSet.between(network, *ends, k=4, method="k-shortest") for ends in pairs]
    return rs.ActionSet.several(lists, rates=[3, 1])


@pytest.mark.parametrize("whole", [True, False], ids=["graph", "list"])
def test_each_round_serves_a_pair_drawn_by_its_rate(whole: bool) -> None:
    network = grid()
    actions = two_pairs(network, whole)
    world = world_on(actions, network)
    learners = [rs.ShortestPath(), rs.GreedyCongestion(), rs.Oracle(), rs.CARMAB(confidence=1)]
    if not whole:
        learners += [rs.UCB1(), rs.ThompsonSampling(), rs.EpsilonGreedy(), rs.RandomPath()]
    plan = rs.plan(actions, world.rewards, 3)
    assert plan.bound >= plan.value - 3 * plan.value_error
    served = {}
    for learner in learners:
        run = rs.run(world, learner, rounds=1_200 if learner.knows != "nothing" else 200, seed=1, comparator=plan)
        starts = np.array([network.tails[path[0]] for path in run.paths])[run.actions]
        served[repr(learner)] = starts[:200].tolist()
        assert run.expected_rewards.mean() <= plan.bound + 5.0, "noise of the pairs drawn aside, nobody beats the bound"
    assert len({tuple(pairs) for pairs in served.values()}) == 1, "every learner serves the same travellers"
    share = np.mean([pair == starts[0] for pair in served[repr(learners[0])]])
    assert 0.15 < min(share, 1 - share) < 0.35


def test_the_wrong_pair_is_refused() -> None:
    network = grid()
    world = world_on(two_pairs(network, whole=False), network)
    pair = world.observe().pair
    with pytest.raises(InputError, match="actions run from"):
        world.step(0 if pair == 1 else 4)


def test_several_pairs_are_checked() -> None:
    network = grid()
    one = rs.ActionSet.on_graph(network, (0, 0), (2, 2))
    listed = rs.ActionSet.between(network, (0, 0), (2, 2), k=2, method="k-shortest")
    for sets, rates, message in (
        ([one], [1, 2], "one rate each"),
        ([], [], "one rate each"),
        ([one, one], [1, 0], "above 0"),
        ([one, listed], [1, 1], "not some of each"),
        ([one, rs.ActionSet.on_graph(grid(4), (0, 0), (2, 2))], [1, 1], "same network"),
        ([rs.ActionSet.several([one, one], [1, 1]), one], [1, 1], "one pair of ends"),
    ):
        with pytest.raises(InputError, match=message):
            rs.ActionSet.several(sets, rates)
    with pytest.raises(InputError, match="edgewise"):
        rs.plan(one, np.zeros((network.n_edges, 2)), 1, method="exact")


def test_zones_without_through_traffic_are_only_ends() -> None:
    graph = nx.DiGraph()
    for tail, head, time in (("a", "z", 1.0), ("z", "b", 1.0), ("a", "m", 5.0), ("m", "b", 5.0)):
        graph.add_edge(tail, head, free_flow_s=time)
    network = rs.RoadNetwork.from_networkx(graph)
    closed = np.array([label == "z" for label in network.labels])
    from dataclasses import replace

    zoned = replace(network, no_through=closed)
    for roads, expected in ((network, -2.0), (zoned, -10.0)):
        actions = rs.ActionSet.on_graph(roads, "a", "b")
        rewards = -np.repeat(roads.free_flow_s[:, np.newaxis], 2, axis=1)
        assert_allclose(rs.plan(actions, rewards, 1).value, expected)
