"""The contextual environment and its comparators: rewards by hand, the same contexts for all, honest regret."""

import math
from pathlib import Path

import numpy as np
import pytest
from instances import random_actions
from numpy.testing import assert_allclose, assert_array_equal
from slow_twins import best_sequence, contextual_reward

import routesim as rs
from routesim.errors import InputError
from routesim.planning.contextual.exact import ContextualPlanner
from routesim.rounds.environment import Tally
from routesim.rounds.kernels import Trace
from routesim.travellers.contexts import unit_vectors


def bandit(
    arms: int = 3, window: int = 2, rounds: int = 500, seed: int = 0, *, known: bool = True, noise_std: float = 0.3
) -> rs.ContextualEnvironment:
    rng = np.random.default_rng(seed)
    theta, sampler = unit_vectors(rng, (4,)), rs.UniformContexts(arms, 4)
    contexts = sampler(rng, rounds) if known else sampler
    curve = rs.congestion.Inverse()
    return rs.ContextualEnvironment(rs.ActionSet.arms(arms), theta, contexts, curve, window, noise_std, known=known)


@pytest.mark.parametrize("seed", range(6))
def test_rewards_are_those_of_context_and_window(seed: int) -> None:
    rng = np.random.default_rng(seed)
    actions = random_actions(rng, 4)
    theta, features = unit_vectors(rng, (3,)), unit_vectors(rng, (40, actions.n_edges, 3))
    curve, window = rs.congestion.Reciprocal(), seed % 4
    world = rs.ContextualEnvironment(actions, theta, features, curve, window, 0.0)
    played = rng.integers(4, size=40).tolist()
    for now, action in enumerate(played):
        seen = world.observe()
        assert seen.features is not None
        assert_array_equal(seen.features, features[now])
        feedback = world.step(action)
        past = played[max(0, now - window) : now] if window else []
        expected = contextual_reward(actions, world.multipliers, features[now] @ theta, past, action)
        assert_allclose([feedback.reward, world.expected_reward], expected)
        assert feedback.features is not None
        assert_array_equal(feedback.features, features[now][feedback.edges])


def test_learners_with_one_seed_meet_the_same_contexts_and_noise_whatever_they_play() -> None:
    world = bandit(known=False)
    seen = []
    for action in (0, 2):
        world.reset(np.random.default_rng(7))
        features, noise = [], []
        for now in range(300):
            features.append(world.observe().features)
            feedback = world.step(action if now % 2 else 1)
            noise.append(feedback.reward - world.expected_reward)
        seen.append((np.array(features), np.array(noise)))
    assert_array_equal(seen[0][0], seen[1][0])
    assert_allclose(seen[0][1][::2], seen[1][1][::2], atol=1e-12)
    assert np.abs(seen[0][1][1::2] - seen[1][1][1::2]).min() > 0, "each arm has its own noise"
    assert_allclose(np.std(np.concatenate([part[1] for part in seen])), 0.3, rtol=0.1)


def test_a_table_without_contexts_is_played_like_its_actions_one_by_one() -> None:
    policy = np.random.default_rng(1).integers(0, 3, size=9).astype(np.int32)
    whole, stepped = bandit(rounds=60_000), bandit(rounds=60_000)
    trace = Trace.empty(60_000)
    assert whole.play(policy, Tally.empty(3, 2), trace) == 60_000, "more than one block of contexts and of noise"
    for now in range(60_000):
        history = (0, 0, *stepped.observe().history)[-2:]
        feedback = stepped.step(int(policy[history[0] * 3 + history[1]]))
        assert (feedback.action, feedback.reward) == (trace.actions[now], trace.rewards[now])


def test_only_the_entitled_are_told_theta() -> None:
    world = bandit()
    assert (world.task().contexts, world.task().multipliers, world.task().theta) == (None, None, None)
    told = world.task("congestion")
    assert told.theta is None
    assert told.rewards is None
    assert told.contexts is world.contexts
    assert_array_equal(world.task("rewards").theta, world.theta)


@pytest.mark.parametrize("kind", ["arms", "paths"])
@pytest.mark.parametrize("window", [0, 1, 2])
def test_the_comparator_of_known_contexts_is_the_best_sequence_of_actions(kind: str, window: int) -> None:
    actions = rs.ActionSet.arms(3) if kind == "arms" else rs.ActionSet([(0, 1), (1, 2), (0, 3)])
    rng = np.random.default_rng(window)
    theta, features = unit_vectors(rng, (4,)), unit_vectors(rng, (7, actions.n_edges, 4))
    world = rs.ContextualEnvironment(actions, theta, features, rs.congestion.Reciprocal(), window, 0.4)
    best = best_sequence(actions, world.multipliers, features @ theta, window)
    found = rs.compare(world, 7, seed=3)
    assert_allclose([found.value * 7, found.bound * 7], best)
    assert found.rewards is not None
    run = rs.run(world, rs.RandomPath(), 7, seed=3)
    assert_allclose(run.average_regret, np.cumsum(found.rewards - run.expected_rewards) / np.arange(1, 8))
    assert_allclose(run.regret[-1], best - run.expected_rewards.sum())
    assert run.summary()["average_regret"] == pytest.approx(run.average_regret[-1])
    oracle = rs.run(world, rs.Oracle(), 7, seed=3)
    assert_allclose(oracle.average_regret, 0, atol=1e-12)


def test_the_noise_aware_optimum_knows_the_noise_that_everyone_meets() -> None:
    world, rounds = bandit(rounds=6, noise_std=0.5), 6
    aware = rs.compare(world, rounds, seed=2, noise_aware=True)
    assert aware.noise_aware_value is not None
    best = -np.inf
    # Whoever plays, the world with this seed pays the same noise: so the best is the largest sum paid over all plays.
    for number in range(3**rounds):
        played = [number // 3**place % 3 for place in range(rounds)]
        best = max(best, rs.run(world, Fixed(played), rounds, seed=2, comparator=aware).rewards.sum())
    assert_allclose(aware.noise_aware_value * rounds, best)
    assert aware.noise_aware_value > aware.value
    run = rs.run(world, rs.RandomPath(), rounds, seed=2, comparator=aware)
    assert run.summary()["noise_aware_value"] == aware.noise_aware_value
    with pytest.raises(InputError, match="rounds with contexts only"):
        rs.compare(rs.RoundEnvironment(rs.ActionSet.arms(1), [[1.0]], 0, 0.1), 5, noise_aware=True)


class Fixed:
    """Plays a given list of actions."""

    knows = "nothing"

    def __init__(self, played: list[int]) -> None:
        self.played = played

    def start(self, task: rs.Task, rng: np.random.Generator) -> None:
        pass

    def choose(self, observation: rs.Observation) -> int:
        return self.played[observation.round]

    def update(self, feedback: rs.Feedback) -> None:
        pass


def test_the_comparator_of_stochastic_contexts_is_stationary_and_below_the_clairvoyant_bound() -> None:
    world = bandit(arms=4, window=3, known=False)
    found = rs.compare(world, 20_000, seed=1)
    assert found.value < found.bound
    informed = {name: rs.run(world, one, 20_000, 1, comparator=found) for name, one in INFORMED.items()}
    assert_allclose(informed["Oracle"].average_regret[-1], 0, atol=2e-4)
    assert informed["GreedyCongestion"].average_regret[-1] > 1e-4
    assert informed["GreedyCongestion"].average_regret_upper[-1] > informed["GreedyCongestion"].average_regret[-1]
    # The bound is the best sequence for the contexts that were drawn: replay them to see.
    world.reset(np.random.default_rng(np.random.SeedSequence(1, spawn_key=(0, 0)).spawn(2)[0]))
    drawn = []
    for _ in range(2_000):
        features = world.observe().features
        assert features is not None
        drawn.append(features @ world.theta)
        world.step(0)
    bases = np.array(drawn)
    planner = ContextualPlanner(world.actions, world.window, world.multipliers)
    short = rs.compare(world, 2_000, seed=1)
    assert_allclose(short.bound, planner.best(lambda first, last: bases[first:last], 0, 2_000) / 2_000)


INFORMED = {"Oracle": rs.Oracle(), "GreedyCongestion": rs.GreedyCongestion()}


def test_a_run_with_contexts_survives_saving(tmp_path: Path) -> None:
    run = rs.run(bandit(), rs.CARCB(), 100, seed=1)
    run.save(tmp_path / "one")
    again = rs.Run.load(tmp_path / "one")
    assert again.summary() == run.summary()
    assert again.comparator_rewards is not None
    assert_array_equal(again.average_regret, run.average_regret)
    assert run.average_regret[-1] == pytest.approx(run.comparator_value - run.expected_rewards.mean())


def test_replications_do_not_depend_on_the_workers() -> None:
    world = bandit(known=False)
    alone = rs.replicate(world, rs.CARCB(), 200, seed=7, replications=2)
    together = rs.replicate(world, rs.CARCB(), 200, seed=7, replications=2, workers=2)
    assert [run.summary() for run in alone] == [run.summary() for run in together]
    assert alone[0].rewards[0] != alone[1].rewards[0]


def test_learners_without_contexts_play_here_too() -> None:
    world = bandit(rounds=2_000)
    for learner in (rs.CARMAB(confidence=1), rs.UCB1(), rs.ShortestPath(), rs.ThompsonSampling()):
        run = rs.run(world, learner, 2_000, seed=0)
        assert math.isfinite(run.average_regret[-1])
        assert run.average_regret[-1] > 0.005
    plain = rs.RoundEnvironment(rs.ActionSet.arms(2), [[0.5], [0.4]], 0, 0.1)
    for learner in (rs.CARCB(), rs.LinUCB()):
        with pytest.raises(InputError, match="play it in a ContextualEnvironment"):
            rs.run(plain, learner, 10)


def test_contexts_need_a_list_of_paths_between_one_pair_of_ends() -> None:
    sets = rs.ActionSet.several([rs.ActionSet([(0,), (1,)]), rs.ActionSet([(2,), (3,)])], rates=[1, 1])
    with pytest.raises(InputError, match="one pair of ends"):
        rs.ContextualEnvironment(sets, [1.0], np.ones((5, 4, 1)), rs.congestion.Inverse(), 1, 0.1)


def test_the_roads_are_seen_after_the_last_context() -> None:
    world = bandit(rounds=2, window=3)
    for _ in range(2):
        world.step(1)
    with pytest.raises(InputError, match="contexts of all 2 rounds are used up"):
        world.observe()
    seen = world.observe_roads()
    assert (seen.round, seen.history, seen.counts.tolist(), seen.features) == (2, (1, 1), [0, 2, 0], None)
