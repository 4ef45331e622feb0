"""The baselines behave as their names say, and none beats the oracle in the long run."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from worlds import players

import routesim as rs
from routesim.errors import InputError

ALL = players(needs_contexts=False)


def congested(noise_std: float = 0.3) -> rs.RoundEnvironment:
    base = [0.64, 0.27, 0.04, 0.02]
    return rs.RoundEnvironment.from_congestion(rs.ActionSet.arms(4), base, rs.congestion.Inverse(), 4, noise_std)


@pytest.mark.parametrize("learner", ALL, ids=repr)
def test_every_learner_keeps_the_contract(learner: rs.Learner) -> None:
    run = rs.run(congested(), learner, rounds=400, seed=5)
    again = rs.run(congested(), learner, rounds=400, seed=5)
    other = rs.run(congested(), learner, rounds=400, seed=6)
    assert isinstance(learner, rs.Learner)
    assert run.actions.tolist() == again.actions.tolist(), "the same seed gives the same run"
    assert run.rewards.tolist() != other.rewards.tolist()
    assert set(run.actions.tolist()) <= {0, 1, 2, 3}
    assert run.summary()["informed"] == (learner.knows == "rewards")


@pytest.mark.parametrize("learner", ALL, ids=repr)
def test_nobody_beats_the_comparator_for_long(learner: rs.Learner) -> None:
    run = rs.run(congested(), learner, rounds=3_000, seed=1)
    # The window of four empty rounds at the start is the only lead anyone can have.
    assert run.regret[-1] > -4


def test_the_oracle_has_no_regret_and_planning_pays() -> None:
    world = congested()
    regret = {type(b).__name__: rs.run(world, b, 20_000, 0).average_regret[-1] for b in ALL}
    assert abs(regret["Oracle"]) < 1e-3
    assert regret["CARMAB"] < min(regret[name] for name in ("UCB1", "ThompsonSampling", "EpsilonGreedy", "RandomPath"))
    assert regret["CARMAB"] < regret["GreedyCongestion"], "a learner that plans beats an informed one that does not"


@pytest.mark.parametrize("learner", [rs.UCB1(), rs.ThompsonSampling(), rs.EpsilonGreedy(0.02)], ids=repr)
def test_the_classics_find_the_best_arm_of_a_plain_bandit(learner: rs.Learner) -> None:
    world = rs.RoundEnvironment(rs.ActionSet.arms(3), [[0.2], [0.8], [0.5]], 0, noise_std=0.3)
    run = rs.run(world, learner, rounds=5_000, seed=0)
    assert (run.actions[-2_000:] == 1).mean() > 0.9
    assert set(run.actions[:3].tolist()) == {0, 1, 2}, "each is tried once first"


def test_ucb1_by_hand() -> None:
    world = rs.RoundEnvironment(rs.ActionSet.arms(2), [[0.5], [0.4]], 0, noise_std=0.0)
    # After one try each the means decide; arm 1 returns once sqrt(2 log t) (1/sqrt(n1) - 1/sqrt(n0)) > 0.1.
    plays, sequence = [0, 0], []
    for now in range(50):
        bounds = [
            mean + np.sqrt(2 * np.log(now + 1) / n) if n else np.inf for mean, n in zip((0.5, 0.4), plays, strict=True)
        ]
        sequence.append(int(np.argmax(bounds)))
        plays[sequence[-1]] += 1
    assert rs.run(world, rs.UCB1(), rounds=50, seed=0).actions.tolist() == sequence


def test_greedy_takes_the_best_now() -> None:
    world = rs.RoundEnvironment.from_congestion(
        rs.ActionSet.arms(2), [0.9, 0.5], rs.congestion.Reciprocal(), 2, noise_std=0.3
    )
    # 0.9 | 0.45 < 0.5 | 0.45 > 0.25 | counts (1, 1): 0.45 again | counts (2, 0): 0.5 | ...
    assert rs.run(world, rs.GreedyCongestion(), rounds=5, seed=0).actions.tolist() == [0, 1, 0, 0, 1]


def test_shortest_path_never_moves() -> None:
    run = rs.run(congested(), rs.ShortestPath(), rounds=50, seed=0)
    assert set(run.actions.tolist()) == {0}
    assert_allclose(run.expected_rewards[-1], 0.64 / 4)


def test_epsilon_is_the_share_of_random_choices() -> None:
    world = rs.RoundEnvironment(rs.ActionSet.arms(2), [[0.9], [0.1]], 0, noise_std=0.0)
    run = rs.run(world, rs.EpsilonGreedy(epsilon=0.2), rounds=20_000, seed=0)
    assert_allclose((run.actions == 1).mean(), 0.1, atol=0.01)
    with pytest.raises(InputError, match="epsilon"):
        rs.EpsilonGreedy(epsilon=1.5)


def test_random_path_is_uniform() -> None:
    counts = np.bincount(rs.run(congested(), rs.RandomPath(), rounds=20_000, seed=0).actions)
    assert_allclose(counts / 20_000, 0.25, atol=0.02)


def test_an_informed_learner_says_when_it_is_not_told() -> None:
    with pytest.raises(InputError, match="tells it the rewards"):
        rs.GreedyCongestion().start(congested().task(), np.random.default_rng(0))
