"""Prices that look back: every such bound holds, it is never above that of plain prices, and closes real gaps."""

from itertools import product

import numpy as np
import pytest
from edgewise_instances import FAMILIES, arms, draw_instance, exact_optimum, grid_edges, grid_paths, path_set
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import routesim as rs
from routesim.planning import Planner
from routesim.planning.edgewise.choices import PathSet, merge_edges
from routesim.planning.edgewise.edge_models import HistoryModel
from routesim.planning.edgewise.planner import plan_paths
from routesim.planning.edgewise.prices import certified_bound
from routesim.planning.edgewise.recent_prices import (
    arc_prices,
    certified_recent_bound,
    find_recent_prices,
    longest_memory,
    recent_window,
)
from routesim.planning.edgewise.single_edge import plain_window

Floats = NDArray[np.float64]

# Arm 0 pays 2 when rested, arm 1 pays 1 when it was just used; a run of arm 1 between two uses of arm 0 earns 1 a
# round, however long it is, and nothing earns more.
RESTED_OR_REPEATED = np.array([[2.0, 0.0], [0.0, 1.0]])


def slow_arc_prices(paths: PathSet, prices: Floats, memory: int) -> Floats:
    arcs = []
    for *before, action in product(range(paths.n_actions), repeat=memory + 1):
        total = 0.0
        for edge in paths.edges_of(action):
            newest_first = [int(edge in paths.edges_of(earlier)) for earlier in reversed(before)]
            total += prices[edge, sum(used << back for back, used in enumerate(newest_first))]
        arcs.append(total)
    return np.array(arcs).reshape(-1, paths.n_actions)


class TestCertifiedBound:
    def test_two_arms_by_hand(self) -> None:
        # One price for both arms: price + (2 - price) / 2 + max(0, 1 - price), least at price 1.
        plain = certified_bound(arms(2), RESTED_OR_REPEATED, np.ones(2), HistoryModel(plain_window(1)))
        assert plain == pytest.approx(1.5, abs=1e-12)
        # Prices by the round before: arm 0 pays 2 if rested, arm 1 pays 1 if repeated. No arm keeps anything, and
        # the cycles of the two actions collect 0 (0 for ever), 1 (1 for ever) and (2 + 0) / 2 (in turn).
        closer = certified_recent_bound(arms(2), RESTED_OR_REPEATED, 1, RESTED_OR_REPEATED)
        assert 1.0 <= closer <= 1.0 + 1e-12

    def test_other_prices_of_two_arms_by_hand(self) -> None:
        # Arm 0 keeps (2 - 1) / 2 in turn, arm 1 keeps 1 - 0 for ever; in turn the actions collect (1 + 0.5) / 2.
        prices = np.array([[1.0, 0.0], [0.5, 0.0]])
        assert certified_recent_bound(arms(2), RESTED_OR_REPEATED, 1, prices) == pytest.approx(0.5 + 1.0 + 0.75)

    @settings(max_examples=200, deadline=None)
    @given(st.integers(0, 1_000_000))
    def test_any_prices_bound_the_optimum(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        family = str(rng.choice(["any table", *FAMILIES]))
        instance = draw_instance(family, int(rng.integers(21)), 300, rng)
        rewards = instance.rewards
        memory = int(rng.integers(1, min(instance.window, 4) + 1))
        if rng.random() < 0.5:  # near the rewards, where the bound is close
            prices = rewards[:, [0]] + rng.normal(size=(len(rewards), 1 << memory)) * rng.choice([0.0, 0.01, 0.3])
        else:
            prices = rng.uniform(rewards.min() - 1, rewards.max() + 1, size=(len(rewards), 1 << memory))
        bound = certified_recent_bound(instance.paths, rewards, instance.window, prices)
        lower, _ = exact_optimum(instance)
        assert bound >= lower - 1e-12 * np.abs(rewards).sum()

    def test_rewards_as_prices_of_the_whole_window_are_exact(self) -> None:
        rng = np.random.default_rng(0)
        for number in range(28):
            instance = draw_instance("any table", number % 4, 500, rng)
            prices = instance.rewards[:, plain_window(instance.window).labels]
            bound = certified_recent_bound(instance.paths, instance.rewards, instance.window, prices)
            lower, upper = exact_optimum(instance)
            assert lower <= bound + 1e-13
            assert bound == pytest.approx(upper, abs=1e-9)

    def test_prices_that_do_not_look_back_give_the_plain_bound(self) -> None:
        rng = np.random.default_rng(1)
        for number in range(21):
            instance = draw_instance("any table", number, 500, rng)
            prices = rng.uniform(-1, 1, size=instance.paths.n_edges)
            plain = certified_bound(
                instance.paths, instance.rewards, prices, HistoryModel(plain_window(instance.window))
            )
            same = certified_recent_bound(
                instance.paths, instance.rewards, instance.window, np.repeat(prices[:, None], 2, axis=1)
            )
            assert same == pytest.approx(plain, abs=1e-10)

    @pytest.mark.parametrize("memory", [1, 2, 3])
    def test_arcs_collect_the_prices_of_their_edges(self, memory: int) -> None:
        rng = np.random.default_rng(memory)
        routes = grid_paths(3)
        paths = path_set([routes[route] for route in rng.permutation(len(routes))[:5]], len(grid_edges(3)))
        prices = rng.normal(size=(paths.n_edges, 1 << memory))
        np.testing.assert_allclose(
            arc_prices(paths.indptr, paths.indices, prices), slow_arc_prices(paths, prices, memory), atol=1e-12
        )

    def test_labels_tell_the_newest_rounds_and_the_count(self) -> None:
        window = recent_window(4, 4)
        assert window.labels[0b1101] == 0b01 * 5 + 3
        assert window.labels[0b0010] == 0b10 * 5 + 1
        assert window.n_labels == 3 * 5 + 5


class TestSearch:
    def test_two_arms_by_hand(self) -> None:
        plan = plan_paths(arms(2), RESTED_OR_REPEATED, 1)
        assert plan.value == 1.0
        assert plan.bound == pytest.approx(1.0, abs=1e-9)
        assert plan_paths(arms(2), RESTED_OR_REPEATED, 1, tight_bound=False).bound == pytest.approx(1.5, abs=1e-6)

    @pytest.mark.parametrize("family", ["any table", *FAMILIES])
    def test_the_bound_lies_between_the_optimum_and_the_plain_bound(self, family: str) -> None:
        rng = np.random.default_rng(7)
        before, after = 0.0, 0.0
        for number in range(28):
            instance = draw_instance(family, number, 300, rng)
            lower, upper = exact_optimum(instance)
            plain = plan_paths(instance.paths, instance.rewards, instance.window, tight_bound=False)
            assert plain.cycle is not None
            cycle = np.array(plain.cycle, np.int64)
            enough = plain.value + 2e-3 * abs(plain.value)
            merged, tables = merge_edges(instance.paths, instance.rewards)
            prices = find_recent_prices(merged, tables, instance.window, plain.prices, cycle, enough)
            assert prices is not None
            bound = certified_recent_bound(merged, tables, instance.window, prices)
            slack = 1e-9 * max(1.0, abs(upper))
            assert lower - slack <= bound <= plain.bound + slack
            if prices.shape[1] == 1 << instance.window:
                assert bound <= max(enough, upper + 0.06 * (plain.bound - upper)) + slack
            before += (plain.bound - upper) / abs(upper)
            after += (bound - upper) / abs(upper)
        assert after <= 0.7 * before + 28 * 2e-3

    def test_plans_are_never_bounded_worse_and_earn_the_same(self) -> None:
        rng = np.random.default_rng(8)
        closer = 0
        for number in range(28):
            instance = draw_instance("any table" if number % 2 else "reciprocal", number, 1_000, rng)
            plain = plan_paths(instance.paths, instance.rewards, instance.window, tight_bound=False)
            plan = plan_paths(instance.paths, instance.rewards, instance.window)
            assert plan.value == plain.value
            assert plan.bound <= plain.bound
            assert (plan.recent_prices is not None) == (plan.bound < plain.bound)
            if plan.recent_prices is not None:
                closer += 1
                merged, tables = merge_edges(instance.paths, instance.rewards)
                again = certified_recent_bound(merged, tables, instance.window, plan.recent_prices)
                assert plan.bound == pytest.approx(again, rel=1e-12)
        assert closer >= 5

    def test_a_gap_on_a_grid_is_closed(self) -> None:
        rng = np.random.default_rng(5)
        routes = sorted(grid_paths(4), key=len)[:60]
        paths = path_set([routes[route] for route in rng.permutation(60)[:12]], len(grid_edges(4)))
        times = rng.uniform(3, 20, size=(paths.n_edges, 1))
        rewards = -times * (1 + 0.15 * np.arange(9.0) ** 4)
        plain = plan_paths(paths, rewards, 8, tight_bound=False)
        assert plain.value < 1.03 * plain.bound
        plan = plan_paths(paths, rewards, 8)
        assert 1.015 * plan.bound <= plan.value <= plan.bound
        assert plan_paths(paths, rewards, 8).bound == plan.bound

    def test_only_what_fits_is_tried(self) -> None:
        assert longest_memory(12, 47, 8) == 3
        assert longest_memory(8, 26, 8) == 4
        assert longest_memory(3, 3, 2) == 2
        assert longest_memory(20, 83, 8) == 2
        assert longest_memory(20, 200, 8) == 1
        assert longest_memory(60, 100, 8) == 0
        assert longest_memory(5, 5, 30) == 0
        assert longest_memory(5, 5, 0) == 0
        rewards = np.sort(np.random.default_rng(2).uniform(size=(5, 31)))[:, ::-1].copy()
        prices = np.zeros(5)
        assert find_recent_prices(arms(5), rewards, 30, prices, np.arange(5), -np.inf) is None


class TestReplanning:
    def test_prices_are_taken_over_and_stay_valid(self) -> None:
        rng = np.random.default_rng(9)
        taken = 0
        for number in range(12):
            instance = draw_instance("reciprocal", number, 1_000, rng)
            first = plan_paths(instance.paths, instance.rewards, instance.window)
            again = plan_paths(instance.paths, instance.rewards, instance.window, warm=first.warm, kicks=0)
            assert again.bound <= first.bound * (1 + 1e-4)
            taken += again.recent_prices is not None
            changed = rng.uniform(size=instance.rewards.shape)
            other = plan_paths(instance.paths, changed, instance.window, warm=first.warm, kicks=0)
            assert other.value <= other.bound + 1e-12
        assert taken > 0

    def test_who_needs_the_policy_alone_does_not_wait_for_a_close_bound(self) -> None:
        actions = rs.ActionSet.arms(2)
        close = Planner(actions, 1, "edgewise").plan(RESTED_OR_REPEATED)
        plain = Planner(actions, 1, "edgewise").plan(RESTED_OR_REPEATED, tight_bound=False)
        assert close.bound == pytest.approx(1.0, abs=1e-9)
        assert plain.bound == pytest.approx(1.5, abs=1e-6)
