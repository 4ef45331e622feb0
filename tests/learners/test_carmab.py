"""CARMAB: the confidence set, the epochs, the optimism, and the theory's promises."""

import math

import numpy as np
import pytest
from instances import random_actions
from numpy.testing import assert_allclose, assert_array_equal

import routesim as rs
from routesim.errors import InputError
from routesim.learners.carmab import CARMAB, mixture_radius
from routesim.rounds.environment import Feedback
from routesim.rounds.kernels import Trace


def bandit(seed: int = 0, arms: int = 4, window: int = 4, noise_std: float = math.sqrt(0.1)) -> rs.RoundEnvironment:
    base = np.random.default_rng(seed).random(arms)
    curve = rs.congestion.Inverse()
    return rs.RoundEnvironment.from_congestion(rs.ActionSet.arms(arms), base, curve, window, noise_std)


def started(world: rs.RoundEnvironment, **parameters: float) -> CARMAB:
    learner = CARMAB(**parameters)
    learner.start(world.task(), np.random.default_rng(0))
    return learner


def seen(learner: CARMAB, edge: int, count: int, rewards: list[float]) -> None:
    for reward in rewards:
        pair = np.array([edge], dtype=np.int32), np.array([count], dtype=np.int32)
        learner.update(Feedback(edge, reward, *pair, np.array([reward])))


def test_the_confidence_set_by_hand() -> None:
    learner = started(bandit(arms=2, window=3), confidence=0.1, delta=0.1)
    seen(learner, 0, 1, [0.4, 0.6])
    lower, upper = learner.confidence_set(now=9)
    radius = 0.1 * math.sqrt(math.log(2 * 3 * 10 / 0.1) / 2)
    assert_allclose([lower[0, 1], upper[0, 1]], [0.5 - radius, 0.5 + radius])
    assert (lower[0, 0], upper[0, 0]) == (0, 1), "never seen: the whole range"


def test_the_radius_counts_the_edges_of_the_longest_path_and_the_scale_of_the_edge() -> None:
    world = rs.RoundEnvironment(rs.ActionSet([(0, 1), (2,)]), -np.ones((3, 3)) * [[50], [60], [70]], 2, [5, 6, 7])
    learner = started(world, confidence=1)
    seen(learner, 2, 0, [-90.0] * 4)
    lower, upper = learner.confidence_set(now=0)
    radius = 7 * math.sqrt(math.log(2 * 3 * 2 * 1 / 0.1) / 4)
    assert_allclose([lower[2, 0], upper[2, 0]], [-90 - radius, -90 + radius])
    assert upper[0, 0] == -50, "a road is never faster than free flow"


def test_the_confidence_set_is_clipped_to_the_range() -> None:
    learner = started(bandit(), confidence=0.01)
    seen(learner, 0, 0, [1.7])
    seen(learner, 1, 0, [-0.9])
    lower, upper = learner.confidence_set(now=0)
    assert (lower[0, 0], upper[0, 0]) == (1, 1)
    assert (lower[1, 0], upper[1, 0]) == (0, 0)


def test_monotone_bounds_carry_over_to_larger_counts() -> None:
    world = bandit(arms=2, window=2, noise_std=0.0)
    learners = [started(world, monotone=flag) for flag in (False, True)]
    for learner in learners:
        seen(learner, 0, 0, [0.3] * 50)
        seen(learner, 1, 0, [0.2] * 50)
        learner.epoch(100)
    plain, tight = (learner.plan for learner in learners)
    assert plain is not None
    assert tight is not None
    assert plain.value == pytest.approx(1.0), "counts never seen look perfect"
    assert tight.value < 0.35, "but cannot beat the empty road"


def test_an_epoch_ends_when_a_pair_has_doubled() -> None:
    world, learner = bandit(), CARMAB(confidence=1)
    learner.start(world.task(), np.random.default_rng(0))
    now = 0
    for _ in range(60):
        before = learner.tally.visits.copy()
        policy, tally, _ = learner.epoch(now)
        now += world.play(policy.table, tally, Trace.empty(100_000))
        during = tally.visits - before
        grown = during >= np.maximum(1, before)
        assert grown.sum() == 1, "on arms one pair fills the epoch, in its last round"
        assert (during <= np.maximum(1, before)).all()
    assert tally.visits.sum() == now


@pytest.mark.parametrize("window", [0, 1, 3, 5])
@pytest.mark.parametrize("kind", ["arms", "paths"])
@pytest.mark.parametrize(
    "learner",
    [
        rs.CARMAB(),
        rs.CARMAB(confidence=1, monotone=False),
        rs.CARMAB(planner="karp"),
        rs.PosteriorSampling(),
        rs.Oracle(),
        rs.ShortestPath(),
    ],
    ids=repr,
)
def test_the_compiled_epoch_and_the_plain_loop_give_identical_numbers(
    learner: rs.Learner, kind: str, window: int
) -> None:
    rng = np.random.default_rng(window)
    actions = rs.ActionSet.arms(3) if kind == "arms" else rs.ActionSet([(0, 1), (1, 2, 3), (4,)])
    if kind == "arms":
        world = rs.RoundEnvironment.from_congestion(actions, rng.random(3), rs.congestion.Reciprocal(), window, 0.3)
    else:
        base = -rng.uniform(10, 100, size=5)
        world = rs.RoundEnvironment.from_congestion(actions, base, rs.congestion.Linear(0.5), window, -base / 10)
    fast = rs.run(world, learner, rounds=3_000, seed=4)
    plain = rs.run(world, learner, rounds=3_000, seed=4, compiled=False)
    assert_array_equal(fast.actions, plain.actions)
    assert_array_equal(fast.expected_rewards, plain.expected_rewards)
    assert_array_equal(fast.rewards, plain.rewards)
    assert fast.summary() == plain.summary()


def coverage(noise_std: float, runs: int = 200, **parameters: float | None) -> float:
    """The share of runs whose confidence set held the true rewards at every plan."""
    good = 0
    for seed in range(runs):
        world, learner = bandit(seed, noise_std=noise_std), CARMAB(**parameters)
        world.reset(np.random.default_rng(seed))
        learner.start(world.task(), np.random.default_rng(0))
        now, held = 0, True
        while now < 3_000:
            policy, tally, _ = learner.epoch(now)
            lower, upper = learner.confidence_set(now)
            held = held and bool(((lower <= world.rewards) & (world.rewards <= upper)).all())
            now += world.play(policy.table, tally, Trace.empty(3_000 - now))
        good += held
    return good / runs


@pytest.mark.parametrize("noise_std", [math.sqrt(0.1), 0.5])
def test_the_true_rewards_lie_in_the_confidence_set(noise_std: float) -> None:
    # 0.5 is the largest deviation that rewards inside [0, 1] can have, the case of the paper's Hoeffding bound.
    assert coverage(confidence=1.0, delta=0.1, noise_std=noise_std) >= 0.9


@pytest.mark.parametrize("noise_std", [math.sqrt(0.1), 1.0])
@pytest.mark.parametrize("delta", [0.1, 0.5])
def test_the_radius_from_the_noise_covers_as_often_as_it_says(delta: float, noise_std: float) -> None:
    assert coverage(delta=delta, noise_std=noise_std, runs=100) >= 1 - delta


def test_a_radius_that_is_too_small_fails_to_cover() -> None:
    assert coverage(confidence=0.2, noise_std=0.5, runs=50) < 0.9


def test_the_radius_from_the_noise_is_robbins_and_holds_at_all_times_at_once() -> None:
    radius = mixture_radius(np.array([1.0, 3.0]), 0.1)
    assert_allclose(radius, [math.sqrt(2 * math.log(2 / 0.01)), math.sqrt(4 * math.log(4 / 0.01)) / 3])
    # Walks of 2,000 steps that ever leave it: 0.2 at most, and not so few that the radius is much too wide.
    walks = np.random.default_rng(0).standard_normal((2_000, 2_000)).cumsum(axis=1)
    steps = np.arange(1.0, 2_001.0)
    ever = (np.abs(walks / steps) > mixture_radius(steps, 0.2)).any(axis=1).mean()
    assert 0.05 < ever < 0.2


def test_the_radius_of_a_road_is_that_of_its_noise() -> None:
    world = rs.RoundEnvironment(rs.ActionSet([(0, 1), (2,)]), -np.ones((3, 3)) * [[50], [60], [70]], 2, [5, 6, 7])
    learner = started(world, delta=0.1)
    seen(learner, 2, 0, [-90.0] * 4)
    lower, upper = learner.confidence_set(now=1_000)
    radius = 7 * math.sqrt(5 * math.log(5 / (0.1 / 9) ** 2)) / 4
    assert_allclose([lower[2, 0], upper[2, 0]], [-90 - radius, min(-70, -90 + radius)])


def test_carmab_as_it_comes_is_good_after_ten_thousand_rounds() -> None:
    regrets = [rs.run(bandit(seed), rs.CARMAB(), 10_000, seed).average_regret[-1] for seed in range(10)]
    assert np.mean(regrets) < 0.02


def test_regret_grows_clearly_slower_than_the_rounds() -> None:
    early, late = [], []
    for seed in range(8):
        run = rs.run(bandit(seed), rs.CARMAB(confidence=1), rounds=1_000_000, seed=seed)
        early.append(run.regret[10**4 - 1])
        late.append(run.regret[-1])
    assert np.mean(late) / np.mean(early) < 10**0.8


def test_optimism_is_justified() -> None:
    """Whenever the truth lies in the confidence set, the plan promises at least the best possible."""
    world, learner = bandit(3), CARMAB(confidence=1)
    learner.start(world.task(), np.random.default_rng(0))
    best, now = rs.plan(world.actions, world.rewards, world.window).value, 0
    for _ in range(80):
        policy, tally, _ = learner.epoch(now)
        assert learner.plan is not None
        assert learner.plan.value >= best - 1e-9
        now += world.play(policy.table, tally, Trace.empty(100_000))


def test_window_zero_is_a_plain_bandit_and_carmab_finds_the_best_arm() -> None:
    world = rs.RoundEnvironment(rs.ActionSet.arms(4), [[0.2], [0.9], [0.5], [0.7]], 0, noise_std=0.3)
    run = rs.run(world, rs.CARMAB(confidence=1), rounds=50_000, seed=1)
    assert run.comparator_value == 0.9
    assert (run.actions[-1000:] == 1).mean() > 0.95
    assert run.average_regret[-1] < 0.02


def test_the_tightened_bounds_learn_sooner() -> None:
    totals = [
        np.mean(
            [rs.run(bandit(s), rs.CARMAB(confidence=1, monotone=m), 50_000, s).average_regret[-1] for s in range(6)]
        )
        for m in (False, True)
    ]
    assert totals[1] < 0.75 * totals[0]


def test_paths_without_noise_are_learned_to_the_optimum() -> None:
    rng = np.random.default_rng(2)
    actions = random_actions(rng, 5)
    base = -rng.uniform(10, 100, size=actions.n_edges)
    world = rs.RoundEnvironment.from_congestion(actions, base, rs.congestion.Linear(0.5), 3, noise_std=0.0)
    run = rs.run(world, rs.CARMAB(), rounds=20_000, seed=0)
    assert_allclose(run.expected_rewards[-1_000:].mean(), run.comparator_value, rtol=1e-2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"confidence": 0}, r"confidence must be between 1e-09 and 1e\+09, got 0"),
        ({"confidence": math.nan}, "confidence"),
        ({"confidence": "a"}, "confidence must be numbers, got 'a'"),
        ({"delta": 0}, "delta must be between 1e-100 and 1, got 0"),
        ({"delta": 1.0}, "delta"),
        ({"planner": "magic"}, "got 'magic'"),
    ],
)
def test_senseless_parameters_are_refused(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CARMAB(**parameters)
