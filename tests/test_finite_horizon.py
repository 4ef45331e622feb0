"""The comparator over a finite number of rounds: the best total from empty roads, as the paper has it."""

from itertools import product

import numpy as np
import pytest

import routesim as rs


def best_total(world: rs.RoundEnvironment, rounds: int) -> float:
    """Look at every sequence of actions."""
    used = world.actions.incidence.toarray().astype(np.int64)
    best = -np.inf
    for sequence in product(range(len(used)), repeat=rounds):
        total = 0.0
        for now, action in enumerate(sequence):
            counts = sum(
                (used[before] for before in sequence[max(0, now - world.window) : now]), np.zeros_like(used[0])
            )
            total += float((used[action] * world.rewards[np.arange(used.shape[1]), counts]).sum())
        best = max(best, total)
    return best


@pytest.mark.parametrize("window", [0, 1, 2, 3])
def test_it_is_the_best_of_all_sequences(window: int) -> None:
    rng = np.random.default_rng(window)
    actions = rs.ActionSet.from_incidence([[1, 1, 0], [0, 1, 1], [0, 0, 1]])
    rewards = np.sort(rng.uniform(0, 0.3, (3, window + 1)), axis=1)[:, ::-1]
    world = rs.RoundEnvironment(actions, rewards, window, noise_std=0.0)
    for rounds in (1, 2, 5):
        found = rs.compare(world, rounds, finite_horizon=True)
        assert found.value == found.bound == pytest.approx(best_total(world, rounds) / rounds, rel=1e-12)


def test_over_many_rounds_it_is_a_window_above_the_best_average() -> None:
    world = rs.RoundEnvironment.from_congestion(
        rs.ActionSet.arms(3), [0.9, 0.6, 0.5], rs.congestion.Inverse(), window=3, noise_std=0.0
    )
    average = rs.compare(world, 100).value
    differences = [rounds * (rs.compare(world, rounds, finite_horizon=True).value - average) for rounds in (50, 5_000)]
    assert 0 <= differences[0] < 3
    assert 0 <= differences[1] < 3
    run = rs.run(world, rs.GreedyCongestion(), 50, comparator=rs.compare(world, 50, finite_horizon=True))
    assert run.average_regret[-1] >= 0


def test_several_pairs_and_contexts_have_none() -> None:
    pair = rs.ActionSet.arms(2)
    world = rs.RoundEnvironment(rs.ActionSet.several([pair, pair], [1, 1]), [[1.0], [0.5]], 0, noise_std=0.0)
    with pytest.raises(rs.RoutesimError, match="finite_horizon is for a list of paths"):
        rs.compare(world, 10, finite_horizon=True)
