"""The contextual planner: brute force on tiny horizons, a linear programme for few contexts, and honest errors."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import random_actions
from numpy.testing import assert_allclose, assert_array_equal
from slow_twins import best_average_with_contexts, best_sequence, contextual_reward

import routesim as rs
from routesim.errors import TooManyStatesError
from routesim.planning.contextual.exact import ContextualPlanner


def instance(seed: int, n_actions: int, window: int, rounds: int) -> tuple[ContextualPlanner, np.ndarray]:
    """Arms or overlapping paths, multipliers that differ by edge or not, bases of any sign, some with many ties."""
    rng = np.random.default_rng(seed)
    actions = random_actions(rng, n_actions)
    rows = 1 if rng.random() < 0.5 else actions.n_edges
    multipliers = np.broadcast_to(rng.random((rows, window + 1)), (actions.n_edges, window + 1)).copy()
    bases = rng.normal(size=(rounds, actions.n_edges))
    if rng.random() < 0.3:
        bases, multipliers = bases.round(), multipliers.round(1)
    return ContextualPlanner(actions, window, multipliers), bases


def reader(bases: np.ndarray, first: int = 0):
    return lambda start, end: bases[start - first : end - first]


def play_blocks(planner: ContextualPlanner, bases: np.ndarray, first: int, history: tuple[int, ...]) -> float:
    """What the planned actions earn, by hand."""
    past, total, actions = list(history), 0.0, planner.actions
    for block in planner.blocks(reader(bases, first), first, first + len(bases), reads=3):
        for now in range(block.first, block.last):
            recent = tuple(past[max(0, len(past) - planner.window) :]) if planner.window else ()
            state = 0
            for action in recent:
                state = state * actions.n_actions + action
            action = int(block.table[now - block.first, state])
            total += contextual_reward(actions, planner.multipliers, bases[now - first], recent, action)
            past.append(action)
    return total


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(0, 3), st.integers(1, 6))
def test_the_programme_equals_brute_force_from_empty_roads(seed: int, k: int, window: int, rounds: int) -> None:
    planner, bases = instance(seed, k, window, rounds)
    best = best_sequence(planner.actions, planner.multipliers, bases, window)
    assert_allclose(planner.best(reader(bases), 0, rounds, reads=2), best, atol=1e-10)
    assert_allclose(play_blocks(planner, bases, 0, ()), best, atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(1, 3), st.integers(1, 5))
def test_the_programme_equals_brute_force_after_any_history(seed: int, k: int, window: int, rounds: int) -> None:
    planner, bases = instance(seed, k, window, rounds)
    for history in itertools.islice(itertools.product(range(k), repeat=window), 5):
        best = best_sequence(planner.actions, planner.multipliers, bases, window, history)
        assert_allclose(play_blocks(planner, bases, 10, history), best, atol=1e-10)


@pytest.mark.parametrize("kind", ["arms", "paths"])
def test_rewards_known_in_advance_for_each_action_are_planned_for(kind: str) -> None:
    actions = rs.ActionSet.arms(3) if kind == "arms" else rs.ActionSet([(0, 1), (1, 2), (0, 2)])
    rng = np.random.default_rng(3)
    bases, bonus = rng.random((5, 3)), rng.normal(size=(5, 3))
    multipliers = np.tile([1.0, 0.5, 0.3], (3, 1))
    best = -np.inf
    for played in itertools.product(range(3), repeat=5):
        earned = [
            contextual_reward(actions, multipliers, bases[now], played[max(0, now - 2) : now], played[now])
            + bonus[now, played[now]]
            for now in range(5)
        ]
        best = max(best, sum(earned))
    planner = ContextualPlanner(actions, 2, multipliers)
    for reads in (1, 2, 5):
        assert_allclose(planner.best(reader(bases), 0, 5, reader(bonus), reads=reads), best)


@pytest.mark.parametrize("stored", [1, 9 * 8, 9 * 8 * 5, 1 << 20])
@pytest.mark.parametrize("kind", ["arms", "paths"])
def test_blocks_and_checkpoints_change_nothing_but_memory(kind: str, stored: int) -> None:
    actions = rs.ActionSet.arms(3) if kind == "arms" else rs.ActionSet([(0, 1), (1, 2), (0, 2)])
    bases, multipliers = np.random.default_rng(1).random((1000, 3)), np.tile([1.0, 0.5, 0.3], (3, 1))
    whole = next(ContextualPlanner(actions, 2, multipliers).blocks(reader(bases), 0, 1000))
    asked: list[int] = []

    def read(first: int, last: int) -> np.ndarray:
        asked.append(last - first)
        return bases[first:last]

    planner = ContextualPlanner(actions, 2, multipliers, stored)
    blocks = list(planner.blocks(read, 0, 1000, reads=7))
    assert [block.first for block in blocks[1:]] == [block.last for block in blocks[:-1]]
    assert max(block.table.nbytes for block in blocks) <= max(stored, 9)
    assert_array_equal(np.concatenate([block.table for block in blocks])[2:], whole.table[2:])
    assert max(asked) <= 7
    levels = np.ceil(np.log(1000) / np.log(max(2, stored / 72)))
    assert sum(asked) <= 1000 * (levels + 1), "each level of checkpoints reads every round once more"


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(0, 2), st.integers(1, 3))
def test_value_iteration_equals_the_exact_expectation_over_few_contexts(
    seed: int, k: int, window: int, kinds: int
) -> None:
    planner, bases = instance(seed, k, window, kinds)
    weights = np.random.default_rng(seed).dirichlet(np.ones(kinds))
    truth = best_average_with_contexts(planner.actions, planner.multipliers, bases, weights, window)
    found = planner.stationary(bases, weights, tolerance=1e-9)
    assert found.low - 1e-7 <= truth <= found.high + 1e-7
    assert found.high - found.low <= 1e-8 * max(1.0, np.abs(bases).max())


def test_a_sample_of_equal_contexts_is_the_plan_without_contexts() -> None:
    actions = rs.ActionSet.arms(3)
    base, multipliers = np.array([0.9, 0.5, 0.2]), np.tile(rs.congestion.Reciprocal()(np.arange(4)), (3, 1))
    found = ContextualPlanner(actions, 3, multipliers).stationary(np.tile(base, (5, 1)), tolerance=1e-9)
    assert_allclose([found.low, found.high], rs.plan(actions, base[:, None] * multipliers, 3).value, atol=1e-8)


def test_after_every_history_the_best_action_gains_an_average_between_the_bounds() -> None:
    rng = np.random.default_rng(0)
    actions, kinds = rs.ActionSet.arms(3), rng.random((4, 3))
    planner = ContextualPlanner(actions, 2, np.tile([1.0, 0.6, 0.3], (3, 1)))
    found = planner.stationary(kinds, max_sweeps=6)
    assert found.sweeps == 6
    for history in itertools.product(range(3), repeat=2):
        gains = [
            max(
                contextual_reward(actions, planner.multipliers, bases, history, action)
                + found.values[3 * history[1] + action]
                for action in range(3)
            )
            - found.values[3 * history[0] + history[1]]
            for bases in kinds
        ]
        assert found.low - 1e-12 <= np.mean(gains) <= found.high + 1e-12


def test_too_many_histories_are_refused_by_name() -> None:
    with pytest.raises(TooManyStatesError, match="10 actions and window 9"):
        ContextualPlanner(rs.ActionSet.arms(10), 9, np.ones((10, 10)))
    paths = rs.ActionSet([tuple(range(place, place + 40)) for place in range(17)])
    with pytest.raises(TooManyStatesError, match="groups of edges"):
        ContextualPlanner(paths, 5, np.ones((paths.n_edges, 6)))
