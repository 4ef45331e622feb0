"""Plans made edge by edge: what they promise, what they prove, and how they are played."""

from dataclasses import replace
from itertools import product

import networkx as nx
import numpy as np
import pytest
from edgewise_instances import (
    Instance,
    arms,
    draw_instance,
    exact_optimum,
    grid_edges,
    grid_paths,
    path_set,
    reward_table,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from routesim.errors import InputError, NoPathError
from routesim.planning.cycles import CyclePolicy, cycle_value, reorder, shortcut
from routesim.planning.edgewise.choices import PathSet, RoadGraph, merge_edges, path_rows
from routesim.planning.edgewise.count_policy import CountPolicy
from routesim.planning.edgewise.edge_models import HistoryModel, MajorantModel
from routesim.planning.edgewise.flow_cycles import exchanges, flow_cycle
from routesim.planning.edgewise.index_policy import IndexPolicy
from routesim.planning.edgewise.planner import EdgewiseResult, plan_graph, plan_paths
from routesim.planning.edgewise.prices import certified_bound
from routesim.planning.edgewise.single_edge import best_averages, plain_window, toll_values
from routesim.roads.graph import Graph

Floats = NDArray[np.float64]


def grid_graph(side: int, *ends: tuple[int, int], rates: tuple[float, ...] = ()) -> RoadGraph:
    tails, heads = np.array(grid_edges(side), np.int32).T
    pairs = ends or ((0, side * side - 1),)
    origins, destinations = zip(*pairs, strict=True)
    return RoadGraph(Graph.build(tails, heads, side * side), np.array(origins), np.array(destinations), np.array(rates))


def averages_by_enumeration(rewards: Floats, price: float, window: int, longest: int) -> float:
    """Return the best average over all 0-1 cycles of up to `longest` rounds."""
    best = 0.0
    for period in range(1, longest + 1):
        for cycle in product((0, 1), repeat=period):
            total = 0.0
            for now, used in enumerate(cycle):
                count = sum(cycle[(now - back) % period] for back in range(1, window + 1))
                total += used * (rewards[count] - price)
            best = max(best, total / period)
    return best


def slow_cycle_value(cycle: list[int], paths: PathSet, rewards: Floats, window: int) -> float:
    total = 0.0
    for now, action in enumerate(cycle):
        recent = [paths.edges_of(cycle[(now - back) % len(cycle)]) for back in range(1, window + 1)]
        for edge in paths.edges_of(action):
            total += rewards[edge, sum(edge in used for used in recent)]
    return total / len(cycle)


def played_average(plan: EdgewiseResult, paths: PathSet, rewards: Floats, window: int, start: list[int]) -> float:
    """Play the policy on its own history until it is on its cycle, and average one period."""
    assert plan.cycle is not None
    assert isinstance(plan.policy, CyclePolicy)
    history = list(start)
    earned = []
    for _ in range(window + 2 * len(plan.cycle)):
        recent = history[max(0, len(history) - window) :]
        action = plan.policy(recent)
        assert isinstance(action, int)
        counts = np.zeros(paths.n_edges, np.int64)
        for before in recent:
            counts[paths.edges_of(before)] += 1
        earned.append(rewards[paths.edges_of(action), counts[paths.edges_of(action)]].sum())
        history.append(action)
    return float(np.mean(earned[-len(plan.cycle) :]))


class TestSingleEdge:
    @pytest.mark.parametrize("window", [1, 2, 3])
    @pytest.mark.parametrize("falling", [True, False])
    def test_best_average_is_that_of_the_best_cycle(self, window: int, falling: bool) -> None:
        rng = np.random.default_rng(window)
        for _ in range(10):
            rewards = rng.uniform(-1, 1, size=(1, window + 1))
            if falling:
                rewards = np.sort(rewards)[:, ::-1].copy()
            price = float(rng.uniform(-1, 1))
            average, pattern = best_averages(rewards, np.array([price]), plain_window(window))
            assert average[0] == pytest.approx(averages_by_enumeration(rewards[0], price, window, 8), abs=1e-12)
            assert pattern[0] @ (rewards[0] - price) == pytest.approx(average[0], abs=1e-12)

    def test_alternating_is_best_where_a_second_use_is_worthless(self) -> None:
        average, pattern = best_averages(np.array([[1.0, 0.0]]), np.array([0.25]), plain_window(1))
        assert average[0] == pytest.approx((1.0 - 0.25) / 2)
        np.testing.assert_allclose(pattern, [[0.5, 0.0]])

    def test_sixteen_rounds_agree_with_and_without_the_histories_that_cannot_pay(self) -> None:
        counts = np.arange(13)
        table = -(1 + 0.15 * (counts / 3.0) ** 4)[None, :]
        prices = np.array([-2.5])
        small = best_averages(table, prices, plain_window(12))[0]
        nearly = table.copy()
        nearly[0, -1] = nearly[0, -2] + 1e-9  # no longer falling: every history is looked at
        assert small[0] == pytest.approx(best_averages(nearly, prices, plain_window(12))[0][0], abs=1e-9)
        sixteen = -(1 + 0.15 * (np.arange(17) / 4.0) ** 4)[None, :]
        assert 0 < best_averages(sixteen, prices, plain_window(16))[0][0] < 1.5

    def test_toll_values_settle_where_lazy_value_iteration_does(self) -> None:
        rng = np.random.default_rng(5)
        rewards = np.sort(rng.uniform(size=(3, 5)))[:, ::-1].copy()
        prices = rng.uniform(0.2, 0.8, size=3)
        labels = plain_window(4).labels
        values = np.empty((3, 16))
        toll_values(rewards, prices, labels, 400, 0.0, values)
        histories = np.arange(16)
        for edge in range(3):
            value = np.zeros(16)
            for _ in range(400):
                unused = value[histories << 1 & 15]
                used = rewards[edge, labels] - prices[edge] + value[(histories << 1 & 15) | 1]
                value = (value + np.maximum(unused, used)) / 2
                value -= value[0]
            np.testing.assert_allclose(values[edge], value, atol=1e-12)


class TestBound:
    def test_two_equal_arms_by_hand(self) -> None:
        # Two arms worth 1 when rested and 0 otherwise, window 1: alternating earns 1, and nothing can earn
        # more.
        plan = plan_paths(arms(2), np.array([[1.0, 0.0], [1.0, 0.0]]), 1)
        assert plan.value == 1.0
        assert plan.bound == pytest.approx(1.0, abs=1e-12)

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 10_000))
    def test_any_prices_bound_the_optimum(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        family = rng.choice(["any table", "inverse", "threshold", "BPR time"])
        instance = draw_instance(str(family), int(rng.integers(21)), 300, rng)
        lower, _ = exact_optimum(instance)
        prices = rng.uniform(instance.rewards.min(axis=1) - 1, instance.rewards.max(axis=1) + 1)
        slack = 1e-12 * np.abs(instance.rewards).sum()
        history = HistoryModel(plain_window(instance.window))
        assert certified_bound(instance.paths, instance.rewards, prices, history) >= lower - slack
        assert certified_bound(instance.paths, instance.rewards, prices, MajorantModel()) >= lower - slack

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 10_000))
    def test_no_cycle_beats_the_bound(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        instance = draw_instance("reciprocal", int(rng.integers(21)), 2_000, rng)
        paths, rewards, window = instance.paths, instance.rewards, instance.window
        plan = plan_paths(paths, rewards, window, kicks=0)
        for _ in range(200):
            cycle = rng.integers(paths.n_actions, size=rng.integers(1, 3 * window + 3))
            assert cycle_value(cycle, paths.rows, rewards, window) <= plan.bound + 1e-12

    def test_bound_is_reproduced_from_the_prices_alone(self) -> None:
        instance = draw_instance("BPR time", 4, 2_000, np.random.default_rng(1))
        plan = plan_paths(instance.paths, instance.rewards, instance.window, tight_bound=False)
        merged, tables = merge_edges(instance.paths, instance.rewards)
        again = certified_bound(merged, tables, plan.prices, HistoryModel(plain_window(instance.window)))
        assert plan.bound == pytest.approx(again, rel=1e-12)

    def test_long_window_bound_of_arms_is_the_mean_of_the_largest_rewards(self) -> None:
        rewards = reward_table("reciprocal", 5, 30, np.random.default_rng(2))
        largest = np.sort(rewards.ravel())[::-1][:31].mean()
        plan = plan_paths(arms(5), rewards, 30, tight_bound=False)
        assert plan.bound == pytest.approx(largest, rel=1e-6)
        # Potentials prove more: no edge can always find what the first uses of a window find.
        closer = plan_paths(arms(5), rewards, 30)
        assert closer.value <= closer.bound < largest

    def test_exact_histories_never_bound_worse_than_the_always_valid_bound(self) -> None:
        rng = np.random.default_rng(3)
        for number in range(14):
            instance = draw_instance("random falling", number, 500, rng)
            prices = rng.uniform(size=instance.paths.n_edges)
            exact = HistoryModel(plain_window(instance.window)).best_averages(instance.rewards, prices)
            assert np.all(exact <= MajorantModel().best_averages(instance.rewards, prices) + 1e-12)


class TestPolicy:
    @pytest.mark.parametrize("family", ["inverse", "linear", "threshold", "BPR time"])
    def test_the_policy_earns_its_value_from_any_history(self, family: str) -> None:
        rng = np.random.default_rng(11)
        for number in range(7):
            instance = draw_instance(family, number, 2_000, rng)
            paths, rewards, window = instance.paths, instance.rewards, instance.window
            plan = plan_paths(paths, rewards, window)
            starts: list[list[int]] = [[], rng.integers(paths.n_actions, size=window).tolist()]
            for start in starts:
                assert played_average(plan, paths, rewards, window, start) == pytest.approx(plan.value, rel=1e-12)

    @settings(max_examples=100, deadline=None)
    @given(st.lists(st.integers(0, 2), min_size=1, max_size=12), st.integers(0, 5), st.integers(0, 10_000))
    def test_every_history_is_steered_onto_the_cycle(self, sequence: list[int], window: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        paths, rewards = arms(3), np.sort(rng.uniform(size=(3, window + 1)))[:, ::-1].copy()
        whole = slow_cycle_value(sequence, paths, rewards, window)
        cycle, value = shortcut(np.array(sequence, np.int64), paths.rows, rewards, window)
        assert value >= whole - 1e-12
        assert value == pytest.approx(slow_cycle_value(cycle.tolist(), paths, rewards, window), rel=1e-12)
        policy = CyclePolicy(tuple(cycle.tolist()), window)
        history = rng.integers(3, size=window).tolist()
        for _ in range(window + 3 * len(cycle)):
            history.append(policy(history[len(history) - window :]))
        last = history[-2 * len(cycle) :]
        assert last[: len(cycle)] == last[len(cycle) :]
        assert any(last[turn:] + last[:turn] == 2 * cycle.tolist() for turn in range(len(cycle)))

    def test_never_worse_than_simple_policies(self) -> None:
        rng = np.random.default_rng(6)
        for number in range(14):
            instance = draw_instance("any table", number, 1_000, rng)
            plan = plan_paths(instance.paths, instance.rewards, instance.window)
            assert {"fixed", "in turn", "greedy", "index"} <= plan.candidates.keys()
            assert plan.value >= max(plan.candidates.values()) - 1e-12

    def test_greedy_counts_by_hand(self) -> None:
        # Window 2: take the good arm while it is worth more than the other, which is always at its best.
        greedy = CountPolicy(arms(2), np.array([[1.0, 0.5, 0.1], [0.4, 0.4, 0.4]]), np.zeros(2), 2)
        actions, earned = greedy.play(np.zeros(6, np.int64))
        assert list(actions) == [0, 0, 1, 0, 0, 1]
        np.testing.assert_allclose(earned, [1.0, 0.5, 0.4, 0.5, 0.5, 0.4])
        assert greedy([0, 0]) == 1

    def test_window_zero_is_the_best_action_for_ever(self) -> None:
        plan = plan_paths(arms(3), np.array([[0.2], [0.9], [0.5]]), 0)
        assert plan.cycle == (1,)
        assert plan.value == 0.9
        assert plan.bound == pytest.approx(0.9, abs=1e-12)
        assert plan.policy([]) == 1

    def test_one_action_is_its_full_window(self) -> None:
        plan = plan_paths(path_set([[0, 1]], 2), np.array([[-1.0, -2.0, -4.0], [-1.0, -1.0, -3.0]]), 2)
        assert plan.value == -7.0
        assert plan.bound == pytest.approx(-7.0, rel=1e-12)


class TestOrder:
    def test_bursts_are_found_where_they_pay(self) -> None:
        # Window 2, period 4: the use after a use finds a count of 1 either way, but the first of two in a row
        # finds 0 where alternating uses always find 1.
        rewards = np.array([[-1.0, -2.0, -9.0], [-1.0, -2.0, -9.0]])
        sequence = np.array([0, 1, 0, 1], np.int64)
        paths = arms(2)
        before = cycle_value(sequence, paths.rows, rewards, 2)
        value = reorder(sequence, paths.rows, rewards, 2, 1_000)
        assert before == -2.0
        assert value == -1.5
        assert sorted(sequence.tolist()) == [0, 0, 1, 1]

    def test_exchanged_paths_use_the_same_edges(self) -> None:
        choices = grid_graph(4)
        graph = choices.graph
        rng = np.random.default_rng(0)
        seen = 0
        for _ in range(30):
            one, other = (choices.best(-rng.uniform(size=graph.n_edges), 0)[1] for _ in range(2))
            for pair in exchanges(graph, one, other):
                seen += 1
                np.testing.assert_array_equal(np.sort(np.concatenate(pair)), np.sort(np.concatenate([one, other])))
                for path in pair:
                    assert graph.tails[path[0]] == 0
                    assert graph.heads[path[-1]] == 15
                    np.testing.assert_array_equal(graph.heads[path[:-1]], graph.tails[path[1:]])
        assert seen > 30

    def test_a_flow_of_one_window_earns_what_it_promises(self) -> None:
        # In a period of window + 1 every use finds all the others of its edge, in whatever order they come.
        window = 4
        rewards = reward_table("linear time", len(grid_edges(4)), window, np.random.default_rng(5))
        graph = grid_graph(4)
        start = graph.best(rewards[:, 0], 0)[1].astype(np.int64)
        cycle = flow_cycle(graph, rewards, window, window + 1, start, 1e-6)
        assert cycle is not None
        uses = np.bincount(np.concatenate(cycle), minlength=graph.n_edges)
        expected = sum(count * rewards[edge, count - 1] for edge, count in enumerate(uses) if count) / (window + 1)
        value = cycle_value(np.arange(window + 1), path_rows(cycle), rewards, window)
        assert value == pytest.approx(expected)
        search = plan_graph(graph, rewards, window)
        assert search.value >= value

    def test_actions_that_are_the_same_path(self) -> None:
        plan = plan_paths(path_set([[0], [0], [1]], 2), np.array([[-1.0, -5.0], [-1.0, -5.0]]), 1)
        assert plan.value == -1.0


class TestGraph:
    def test_shortest_path_agrees_with_networkx(self) -> None:
        rng = np.random.default_rng(0)
        graph = grid_graph(6)
        costs = rng.uniform(size=graph.n_edges)
        reference = nx.DiGraph()
        for edge, (tail, head) in enumerate(grid_edges(6)):
            reference.add_edge(tail, head, cost=costs[edge])
        for destination in range(1, 36):
            value, path = replace(graph, destinations=np.array([destination])).best(-costs, 0)
            assert -value == pytest.approx(nx.shortest_path_length(reference, 0, destination, weight="cost"))
            assert costs[path].sum() == pytest.approx(-value)

    def test_window_zero_is_the_shortest_path(self) -> None:
        rewards = reward_table("linear time", len(grid_edges(3)), 0, np.random.default_rng(2))
        best = max(rewards[path, 0].sum() for path in grid_paths(3))
        plan = plan_graph(grid_graph(3), rewards, 0)
        assert plan.value == pytest.approx(best, rel=1e-12)
        assert plan.bound == pytest.approx(best, rel=1e-12)

    @pytest.mark.parametrize("window", [1, 2, 3])
    def test_every_path_of_a_grid_against_the_exact_optimum(self, window: int) -> None:
        rng = np.random.default_rng(window)
        paths = path_set(grid_paths(3), len(grid_edges(3)))
        for family in ("BPR time", "linear time"):
            rewards = reward_table(family, paths.n_edges, window, rng)
            lower, upper = exact_optimum(Instance(paths, rewards, window))
            plan = plan_graph(grid_graph(3), rewards, window)
            assert lower <= plan.bound + 1e-9 * abs(lower)
            assert plan.value <= upper + 1e-9 * abs(upper)
            assert plan.value >= 1.03 * upper
            assert plan.bound <= 0.95 * lower

    def test_the_policy_on_a_graph_earns_its_value(self) -> None:
        window = 5
        rewards = reward_table("BPR time", len(grid_edges(5)), window, np.random.default_rng(8))
        plan = plan_graph(grid_graph(5), rewards, window)
        assert plan.cycle is not None
        history: list[tuple[int, ...]] = []
        earned = []
        for _ in range(window + 2 * len(plan.cycle)):
            action = plan.policy(history[max(0, len(history) - window) :])
            assert isinstance(action, tuple)
            counts = np.zeros(rewards.shape[0], np.int64)
            for before in history[max(0, len(history) - window) :]:
                counts[list(before)] += 1
            earned.append(rewards[list(action), counts[list(action)]].sum())
            history.append(action)
        assert np.mean(earned[-len(plan.cycle) :]) == pytest.approx(plan.value, rel=1e-12)
        assert plan.value <= plan.bound

    def test_a_larger_grid_is_planned_to_within_four_per_cent(self) -> None:
        window = 8
        times = np.random.default_rng(0).uniform(3, 20, size=len(grid_edges(15)))
        rewards = -times[:, None] * (1 + 0.15 * (np.arange(window + 1) / 2.0) ** 4)
        plan = plan_graph(grid_graph(15), rewards, window)
        assert plan.bound * 1.04 <= plan.value <= plan.bound
        assert plan.value >= max(plan.candidates.values())

    def test_positive_rewards_and_missing_paths_are_refused(self) -> None:
        with pytest.raises(InputError, match=r"at most 0, got 1\.0 on edge 0"):
            plan_graph(grid_graph(3), np.ones((24, 3)), 2)
        one_way = RoadGraph(Graph.build([0], [1], 2), np.array([1]), np.array([0]))
        with pytest.raises(NoPathError, match="from node 1 to node 0"):
            plan_graph(one_way, -np.ones((1, 3)), 2)


class TestWarmStart:
    def test_replanning_from_a_plan_keeps_bound_and_value(self) -> None:
        rng = np.random.default_rng(7)
        for number in range(7):
            instance = draw_instance("reciprocal", number, 2_000, rng)
            first = plan_paths(instance.paths, instance.rewards, instance.window)
            again = plan_paths(instance.paths, instance.rewards, instance.window, warm=first.warm, kicks=0)
            assert again.bound <= first.bound * (1 + 1e-4)
            assert again.value >= first.value * (1 - 1e-12)

    def test_bounds_stay_valid_when_rewards_change(self) -> None:
        rng = np.random.default_rng(9)
        instance = draw_instance("reciprocal", 3, 2_000, rng)
        warm = plan_paths(instance.paths, instance.rewards, instance.window).warm
        for _ in range(10):
            changed = rng.uniform(size=instance.rewards.shape)
            lower, upper = exact_optimum(Instance(instance.paths, changed, instance.window))
            plan = plan_paths(instance.paths, changed, instance.window, warm=warm, kicks=5)
            assert plan.value <= upper + 1e-9
            assert lower <= plan.bound + 1e-9
            warm = plan.warm

    def test_on_a_graph(self) -> None:
        rng = np.random.default_rng(10)
        rewards = reward_table("BPR time", len(grid_edges(8)), 6, rng)
        first = plan_graph(grid_graph(8), rewards, 6)
        plan = plan_graph(grid_graph(8), rewards * rng.uniform(0.95, 1.05, size=(len(rewards), 1)), 6, warm=first.warm)
        assert plan.bound * 1.06 <= plan.value <= plan.bound

    def test_of_other_actions_is_refused(self) -> None:
        warm = plan_paths(arms(3), np.ones((3, 2)), 1).warm
        with pytest.raises(InputError, match="same actions, got 3 prices for 2 edges"):
            plan_paths(arms(2), np.ones((2, 2)), 1, warm=warm)


class TestLongWindows:
    def test_twenty_arms_over_120_rounds_earn_far_more_than_greedy(self) -> None:
        ratios = []
        for draw in range(10):
            rewards = reward_table("reciprocal", 20, 120, np.random.default_rng(draw))
            plan = plan_paths(arms(20), rewards, 120, kicks=0, tight_bound=False)
            assert plan.value <= plan.bound
            _, earned = CountPolicy(arms(20), rewards, np.zeros(20), 120).play(np.zeros(5_000, np.int64))
            ratios.append(plan.value / earned[1_000:].mean())
        assert np.mean(ratios) >= 1.8

    def test_a_graph_in_blocks(self) -> None:
        rewards = reward_table("linear time", len(grid_edges(4)), 20, np.random.default_rng(3))
        plan = plan_graph(grid_graph(4), rewards, 20, max_paths=200)
        assert plan.value <= plan.bound
        assert plan.value >= max(plan.candidates.values())


class TestSeveralPairs:
    def test_disjoint_pairs_earn_their_share_each(self) -> None:
        # Pair 0 has one road, pair 1 another; constant rewards, so the mean is the rate-weighted reward.
        paths = PathSet(np.array([0, 1, 2]), np.array([0, 1], np.int32), 2, np.array([0, 1, 2]), np.array([1.0, 3.0]))
        plan = plan_paths(paths, np.array([[-4.0, -4.0], [-8.0, -8.0]]), 1)
        assert plan.bound == pytest.approx(-7.0, rel=1e-12)
        assert plan.cycle is None
        assert abs(plan.value - -7.0) <= 5 * plan.value_error

    @pytest.mark.parametrize("window", [4, 20])
    def test_shared_roads_of_a_path_set(self, window: int) -> None:
        rng = np.random.default_rng(window)
        routes = grid_paths(3)
        paths = path_set(routes, len(grid_edges(3)))
        pairs = PathSet(paths.indptr, paths.indices, paths.n_edges, np.array([0, 6, 12]), np.array([0.5, 0.5]))
        rewards = reward_table("linear time", paths.n_edges, window, rng)
        plan = plan_paths(pairs, rewards, window)
        assert plan.value <= plan.bound + 5 * plan.value_error
        assert plan.value >= plan.candidates["greedy"]
        assert 0 < plan.value_error < 0.05 * abs(plan.value)
        assert isinstance(plan.policy, CountPolicy | IndexPolicy)
        assert plan.policy([], 1) in list(range(6, 12))

    @pytest.mark.parametrize("window", [6, 20])
    def test_shared_roads_of_a_graph(self, window: int) -> None:
        graph = grid_graph(6, (0, 35), (5, 30), rates=(2.0, 1.0))
        rewards = reward_table("linear time", graph.n_edges, window, np.random.default_rng(1))
        plan = plan_graph(graph, rewards, window, rounds=600)
        assert plan.value <= plan.bound + 5 * plan.value_error
        assert plan.value >= plan.candidates["greedy"]
        again = plan_graph(graph, rewards, window, rounds=600, warm=plan.warm)
        assert again.bound <= plan.bound * (1 - 1e-2)


class TestInput:
    def test_merged_edges_earn_together(self) -> None:
        paths = path_set([[0, 1, 2], [0, 1, 3]], 5)
        rewards = np.arange(10.0).reshape(5, 2)
        merged, tables = merge_edges(paths, rewards)
        assert merged.n_edges == 3
        first, second = set(merged.edges_of(0).tolist()), set(merged.edges_of(1).tolist())
        for edges, expected in ((first & second, rewards[0] + rewards[1]), (first - second, rewards[2])):
            assert len(edges) == 1
            np.testing.assert_allclose(tables[edges.pop()], expected)

    @pytest.mark.parametrize(
        ("rewards", "window", "message"),
        [
            (np.ones((2, 2)), -1, "window must be at least 0, got -1"),
            (np.ones((2, 3)), 1, r"window \+ 1 = 2 columns, got shape \(2, 3\)"),
            (np.array([[1.0, np.nan], [0.0, 0.0]]), 1, "finite, got nan for edge 0 at count 1"),
        ],
    )
    def test_mistakes_are_named(self, rewards: Floats, window: int, message: str) -> None:
        with pytest.raises(InputError, match=message):
            plan_paths(arms(2), rewards, window)

    def test_rates_and_edges_are_checked(self) -> None:
        with pytest.raises(InputError, match="rates must be 1 non-negative numbers"):
            PathSet(np.array([0, 1]), np.array([0], np.int32), 1, np.array([0, 1]), np.array([-1.0]))
        with pytest.raises(InputError, match=r"edges must lie in 0\.\.0, got 0\.\.3"):
            PathSet(np.array([0, 2]), np.array([0, 3], np.int32), 1)
