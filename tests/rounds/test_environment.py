"""The round environment: counts over the window, rewards by hand, noise, ranges, and what learners are told."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import random_actions
from numpy.testing import assert_allclose, assert_array_equal
from slow_twins import play_by_hand

import routesim as rs
from routesim.errors import InputError
from routesim.rounds.environment import Tally
from routesim.rounds.kernels import Trace


def silent(actions: rs.ActionSet, window: int, seed: int = 0) -> rs.RoundEnvironment:
    rewards = np.sort(np.random.default_rng(seed).random((actions.n_edges, window + 1)), axis=1)[:, ::-1]
    return rs.RoundEnvironment(actions, rewards, window, noise_std=0.0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 5), st.lists(st.integers(0, 3), min_size=1, max_size=25))
def test_counts_and_rewards_are_those_of_the_window(seed: int, window: int, played: list[int]) -> None:
    actions = random_actions(np.random.default_rng(seed), 4)
    world = silent(actions, window, seed)
    counts, expected = play_by_hand(actions, world.rewards, window, played)
    for now, action in enumerate(played):
        seen = world.observe()
        assert seen.round == now
        assert seen.history == tuple(played[max(0, now - window) : now])
        assert_array_equal(seen.counts[actions.positions(action)], counts[now])
        feedback = world.step(action)
        assert_array_equal(feedback.counts, counts[now])
        assert_allclose([feedback.reward, world.expected_reward], expected[now])
        assert_allclose(feedback.rewards.sum(), expected[now])


def test_the_window_empties_by_itself() -> None:
    world = rs.RoundEnvironment.from_congestion(rs.ActionSet.arms(2), [1, 1], rs.congestion.Reciprocal(), 2, 0.0)
    paid = [world.step(action).reward for action in (0, 0, 0, 0, 1, 1, 0)]
    assert_allclose(paid, [1, 1 / 2, 1 / 3, 1 / 3, 1, 1 / 2, 1])


def test_a_table_is_played_like_its_actions_one_by_one() -> None:
    actions = rs.ActionSet([(0, 2), (1, 2), (3,)])
    rewards = -np.cumsum(np.random.default_rng(0).random((4, 3)), axis=1)
    whole, stepped = (rs.RoundEnvironment(actions, rewards, 2, [0.1, 0.2, 0.0, 0.3]) for _ in range(2))
    policy = np.random.default_rng(1).integers(0, 3, size=9).astype(np.int32)
    tally, trace = Tally.empty(4, 2), Trace.empty(70_000)
    assert whole.play(policy, tally, trace) == 70_000, "more than one block of noise"
    by_hand = Tally.empty(4, 2)
    for now in range(2_000):
        history = (0, 0, *stepped.observe().history)[-2:]
        feedback = stepped.step(int(policy[history[0] * 3 + history[1]]))
        by_hand.add(feedback)
        assert (feedback.action, feedback.reward) == (trace.actions[now], trace.rewards[now])
        assert stepped.expected_reward == trace.expected_rewards[now]
    assert tally.visits.sum() == 70_000 * 2 - (trace.actions == 2).sum()


def test_playing_stops_when_a_pair_reaches_its_limit() -> None:
    world = silent(rs.ActionSet.arms(2), 1)
    tally, trace = Tally.empty(2, 1), Trace.empty(100)
    tally.limits[1, 1] = 3
    always_one = np.array([1, 1], dtype=np.int32)
    assert world.play(always_one, tally, trace) == 4, "the first use meets count 0, the next three count 1"
    assert tally.full
    assert tally.visits.tolist() == [[0, 0], [1, 3]]


def test_noise_has_the_stated_spread_on_each_edge() -> None:
    actions = rs.ActionSet([(0, 1)])
    world = rs.RoundEnvironment(actions, [[0.5], [0.5]], 0, noise_std=[0.1, 0.4])
    world.reset(np.random.default_rng(1))
    noise = np.array([world.step(0).rewards for _ in range(20_000)]) - 0.5
    assert_allclose(noise.std(axis=0), [0.1, 0.4], rtol=0.03)
    assert_allclose(noise.mean(axis=0), 0, atol=0.01)
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.03, "each edge has its own noise"


def test_the_counts_shown_cannot_be_written_to() -> None:
    world = silent(rs.ActionSet.arms(2), 2)
    with pytest.raises(ValueError, match="read-only"):
        world.observe().counts[0] = 5


def test_bandits_are_told_zero_to_one_and_roads_their_free_flow() -> None:
    bandit = silent(rs.ActionSet.arms(2), 1).task()
    assert (bandit.low.tolist(), bandit.high.tolist(), bandit.scale.tolist()) == ([0, 0], [1, 1], [1, 1])
    road = rs.RoundEnvironment.from_congestion(
        rs.ActionSet.arms(2), [-60, -90], rs.congestion.Linear(0.5), 1, noise_std=[6, 9]
    ).task()
    assert road.low.tolist() == [-np.inf, -np.inf]
    assert road.high.tolist() == [-60, -90]
    assert road.scale.tolist() == [6, 9]
    wide = rs.RoundEnvironment(rs.ActionSet.arms(1), [[-3.0]], 0, 0.1, reward_range=(-10, 0)).task()
    assert wide.scale.tolist() == [10]


def test_only_the_entitled_are_told_rewards() -> None:
    world = silent(rs.ActionSet.arms(2), 1)
    assert (world.task().rewards, world.task().free_flow_rewards) == (None, None)
    told = world.task("free_flow")
    assert told.rewards is None
    assert_array_equal(told.free_flow_rewards, world.rewards[:, 0])
    assert_array_equal(world.task("rewards").rewards, world.rewards)


ARMS = rs.ActionSet.arms(2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rs.RoundEnvironment(ARMS, [[1], [1]], -1, 0), "window must be at least 0, got -1"),
        (lambda: rs.RoundEnvironment(ARMS, [[1], [1]], 1.5, 0), "whole number"),
        (lambda: rs.RoundEnvironment(ARMS, [[1], [np.nan]], 0, 0), "got nan on edge 1 at count 0"),
        (lambda: rs.RoundEnvironment(ARMS, [[1], [1]], 1, 0), r"shape \(2, 2\), got shape \(2, 1\)"),
        (
            lambda: rs.RoundEnvironment(ARMS, [[1.5], [1]], 0, 0),
            "edge 0 at count 0 is 1.5, outside the range 0 to 1",
        ),
        (lambda: rs.RoundEnvironment(ARMS, [[0.5], [-1]], 0, 0), "edge 1 .* is -1, outside"),
        (lambda: rs.RoundEnvironment(ARMS, [[-5], [-1]], 0, 0, reward_range=(-2, 0)), "is -5, outside"),
        (lambda: rs.RoundEnvironment(ARMS, [[0], [0]], 0, 0, reward_range=(1, 0)), "low <= high"),
        (
            lambda: rs.RoundEnvironment(ARMS, [[0.1, 0.2], [1, 1]], 1, 0),
            "edge 0 goes from 0.1 at count 0 to 0.2",
        ),
        (lambda: rs.RoundEnvironment(ARMS, [[1], [1]], 0, -0.1), "at least 0, got -0.1"),
        (lambda: rs.RoundEnvironment(ARMS, [["a"], [1]], 0, 0), "rewards must be numbers"),
        (lambda: rs.RoundEnvironment(ARMS, [[1], [1]], 0, "loud"), "noise_std must be numbers"),
        (lambda: rs.RoundEnvironment(ARMS, [[1], [1]], 0, 0, reward_range=5), r"reward_range is \(low, high\)"),
        (lambda: rs.RoundEnvironment.from_congestion(ARMS, ["a", 1], rs.congestion.Inverse(), 1, 0), "base must be"),
        (
            lambda: rs.RoundEnvironment.from_congestion(ARMS, [1, 1], rs.congestion.Inverse, 1, 0),
            "a function of counts",
        ),
        (lambda: rs.RoundEnvironment.from_congestion(ARMS, [1, 1], "inverse", 1, 0), "a function of counts"),
        (lambda: rs.RoundEnvironment(ARMS, [[1], [1]], 0, [1, 2, 3]), r"shape \(2,\), got shape \(3,\)"),
        (
            lambda: rs.RoundEnvironment.from_congestion(ARMS, [1], rs.congestion.Inverse(), 1, 0),
            "one value per edge",
        ),
        (
            lambda: rs.RoundEnvironment.from_congestion(ARMS, [1.2, 1], rs.congestion.Inverse(), 1, 0),
            "edge 0 at count 0 is 1.2",
        ),
        (
            lambda: rs.RoundEnvironment.from_congestion(ARMS, [0.2, 0.1], rs.congestion.Linear(0.5), 1, 0),
            "must not rise with the count",
        ),
        (
            lambda: rs.RoundEnvironment.from_congestion(ARMS, [-2, -1], rs.congestion.Inverse(), 2, 0),
            "must not rise with the count",
        ),
        (
            lambda: rs.RoundEnvironment.from_congestion(ARMS, [0.2, 0.1], lambda _: np.ones(7), 1, 0),
            r"returned shape \(7,\)",
        ),
        (lambda: rs.RoundEnvironment(ARMS, [[1], [1]], 0, 0).step(2), "0 to 1, got 2"),
        (lambda: rs.RoundEnvironment(ARMS, [[1], [1]], 0, 0).step(-1), "0 to 1, got -1"),
    ],
)
def test_bad_input_is_named(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_a_copy_shows_its_own_counts() -> None:
    world = silent(rs.ActionSet.arms(2), 2)
    world.step(0)
    for twin in (copy.deepcopy(world), pickle.loads(pickle.dumps(world))):  # noqa: S301 - our own bytes
        twin.step(1)
        assert twin.observe().counts.tolist() == [1, 1]
    assert world.observe().counts.tolist() == [1, 0]


def test_a_refused_step_changes_nothing() -> None:
    world = silent(rs.ActionSet.arms(2), 2)
    world.step(1)
    with pytest.raises(InputError):
        world.step(2)
    assert world.observe()[:2] == (1, (1,))
    assert world.observe().counts.tolist() == [0, 1]
