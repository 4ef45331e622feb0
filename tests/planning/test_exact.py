"""The exact planners agree with each other, with value iteration, with enumeration and with hand-made answers."""

import numpy as np
import pytest
from instances import random_actions, random_rewards
from numpy.testing import assert_allclose
from slow_twins import (
    average_of_policy,
    best_average_by_value_iteration,
    best_cycle_by_enumeration,
    path_reward,
)

import routesim as rs
from routesim.errors import InputError, TooManyStatesError
from routesim.planning.exact.planner import ExactPlanner

# (actions, window) pairs that keep the slow twins quick
SIZES = [
    (1, 0),
    (1, 3),
    (2, 0),
    (5, 0),
    (2, 1),
    (4, 1),
    (2, 2),
    (3, 2),
    (5, 2),
    (2, 3),
    (3, 3),
    (2, 4),
    (3, 4),
    (4, 4),
    (2, 5),
    (3, 5),
]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("n_actions", "window"), SIZES)
def test_howard_karp_and_value_iteration_agree(n_actions: int, window: int, seed: int) -> None:
    rng = np.random.default_rng([seed, n_actions, window])
    actions = random_actions(rng, n_actions)
    rewards = random_rewards(rng, actions, window)
    scale = max(1.0, float(np.abs(rewards).max()))
    howard = rs.plan(actions, rewards, window, method="exact")
    karp = rs.plan(actions, rewards, window, method="karp")
    low, high = best_average_by_value_iteration(actions, rewards / scale, window)
    assert high - low < 1e-9, "the slow twin did not settle"
    for plan in (howard, karp):
        assert low - 1e-9 <= plan.value / scale <= high + 1e-9
        assert plan.bound == plan.value
        assert plan.gap == 0
        assert_allclose(average_of_policy(plan, actions, rewards, window), plan.value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("n_actions", "window"), [(2, 1), (2, 2), (2, 3), (3, 1), (4, 1)])
def test_no_simple_cycle_beats_the_plan(n_actions: int, window: int, seed: int) -> None:
    rng = np.random.default_rng([seed, n_actions, window, 7])
    actions = random_actions(rng, n_actions)
    rewards = random_rewards(rng, actions, window)
    expected = best_cycle_by_enumeration(actions, rewards, window)
    assert_allclose(rs.plan(actions, rewards, window).value, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", ["exact", "karp"])
def test_the_cycle_is_what_the_policy_plays(method: str) -> None:
    rng = np.random.default_rng(3)
    actions, window = rs.ActionSet.arms(4), 4
    rewards = random_rewards(rng, actions, window)
    plan = rs.plan(actions, rewards, window, method=method)
    assert plan.cycle is not None
    wound = plan.cycle * (window + 1)
    paid = [
        path_reward(actions, rewards, wound[len(wound) - len(plan.cycle) + k - window :][:window], action)
        for k, action in enumerate(plan.cycle)
    ]
    assert_allclose(np.mean(paid), plan.value, rtol=1e-12)


def test_every_arm_the_same_is_one_great_tie_and_still_ends() -> None:
    for window in range(6):
        for constant in (0.0, 1.0, 0.1, -3.7):
            plan = rs.plan(rs.ActionSet.arms(4), np.full((4, window + 1), constant), window)
            assert_allclose(plan.value, constant, rtol=1e-15)


def test_howard_ends_on_ties_that_only_rounding_tells_apart() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        rewards = 0.1 * rng.integers(1, 4, size=(3, 6)) + rng.choice([0, 1e-16, -1e-16], size=(3, 6))
        exact, karp = (rs.plan(rs.ActionSet.arms(3), rewards, 5, method=m) for m in ("exact", "karp"))
        assert_allclose(exact.value, karp.value, atol=1e-12)


def test_two_roads_by_hand() -> None:
    # An empty road pays 1, one used once in the window 0.5. At window 1 taking turns pays 1. At window 2 taking
    # turns pays only 0.5, as each road is met with one use; two and two pays 1, 0.5, 1, 0.5.
    rewards = [[1.0, 0.5, 0.0], [1.0, 0.5, 0.0]]
    assert rs.plan(rs.ActionSet.arms(2), [row[:2] for row in rewards], 1).value == 1.0
    assert rs.plan(rs.ActionSet.arms(2), rewards, 2).value == 0.75


def test_a_shared_edge_counts_for_both_paths() -> None:
    # Edge 2 is in both paths, so it is always met at count 1; edges 0 and 1 alternate and are met empty.
    actions = rs.ActionSet([(0, 2), (1, 2)])
    rewards = [[-1.0, -9.0], [-1.0, -9.0], [-1.0, -5.0]]
    assert rs.plan(actions, rewards, 1).value == -6.0


def test_window_zero_is_the_best_arm() -> None:
    plan = rs.plan(rs.ActionSet.arms(3), [[0.2], [0.9], [0.5]], 0)
    assert (plan.value, plan.cycle, plan.policy([])) == (0.9, (1,), 1)


def test_a_short_history_is_padded_with_action_0() -> None:
    rng = np.random.default_rng(5)
    plan = rs.plan(rs.ActionSet.arms(3), random_rewards(rng, rs.ActionSet.arms(3), 3), 3)
    assert plan.policy([]) == plan.policy([0, 0, 0])
    assert plan.policy([2]) == plan.policy([0, 0, 2])
    with pytest.raises(InputError, match="at most window=3"):
        plan.policy([0, 0, 0, 0])
    with pytest.raises(InputError, match="got 3"):
        plan.policy([3])
    with pytest.raises(InputError, match=r"got 0\.5"):
        plan.policy([0.5, 1])


def test_a_warm_start_changes_no_value() -> None:
    rng = np.random.default_rng(11)
    actions, window = random_actions(rng, 4), 4
    planner = ExactPlanner(actions, window)
    before = planner.plan(random_rewards(rng, actions, window))
    for _ in range(20):
        rewards = random_rewards(rng, actions, window)
        cold, warm = planner.plan(rewards), planner.plan(rewards, start=before)
        assert_allclose(warm.value, cold.value, rtol=1e-11)
        before = warm


def test_too_many_histories_name_the_numbers_and_the_way_out() -> None:
    with pytest.raises(TooManyStatesError, match=r"8 actions and window 9 .* 10\*\*8 .* reaches window 7"):
        rs.plan(rs.ActionSet.arms(8), np.zeros((8, 10)), 9, method="exact")
    with pytest.raises(TooManyStatesError, match=r"window 1000 .* 10\*\*903"):
        rs.plan(rs.ActionSet.arms(8), np.zeros((8, 1001)), 1000, method="exact")
    with pytest.raises(TooManyStatesError, match=r"Karp.*16,384 histories.*exact"):
        rs.plan(rs.ActionSet.arms(4), np.zeros((4, 8)), 7, method="karp")


@pytest.mark.parametrize(
    ("rewards", "window", "method", "message"),
    [
        ([[1.0, 0.5]], 1, "exact", r"shape \(2, 2\), got shape \(1, 2\)"),
        ([[1.0], [1.0]], -1, "exact", "window must be at least 0, got -1"),
        ([[1.0], [1.0]], 0.5, "exact", "whole number"),
        ([[1.0, np.nan], [1.0, 0.5]], 1, "exact", "edge 0 at count 1"),
        ([[1.0, -np.inf], [1.0, 0.5]], 1, "karp", "finite"),
        ([[1.0], [1.0]], 0, "quickest", "one of auto, exact"),
    ],
)
def test_bad_input_is_named(rewards: object, window: object, method: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rs.plan(rs.ActionSet.arms(2), rewards, window, method=method)
