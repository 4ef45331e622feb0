"""PosteriorSampling: the posterior by hand, the isotonic draw, the epochs, and how fast it learns."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import isotonic_regression

import routesim as rs
from routesim.errors import InputError
from routesim.learners.posterior_sampling import non_increasing
from routesim.rounds.environment import Feedback
from routesim.rounds.kernels import Trace


def bandit(seed: int = 0, noise_std: float = math.sqrt(0.1)) -> rs.RoundEnvironment:
    base = np.random.default_rng(seed).random(4)
    return rs.RoundEnvironment.from_congestion(rs.ActionSet.arms(4), base, rs.congestion.Inverse(), 4, noise_std)


def roads(noise_std: float = 5.0) -> rs.RoundEnvironment:
    actions = rs.ActionSet([(0, 1), (1, 2, 3), (4,)])
    base = -np.array([40.0, 0.0, 30.0, 20.0, 60.0])
    return rs.RoundEnvironment.from_congestion(actions, base, rs.congestion.Linear(0.5), 3, noise_std)


def started(world: rs.RoundEnvironment, **settings: float) -> rs.PosteriorSampling:
    learner = rs.PosteriorSampling(**settings)
    learner.start(world.task(), np.random.default_rng(0))
    return learner


def seen(learner: rs.PosteriorSampling, edge: int, count: int, rewards: list[float]) -> None:
    for reward in rewards:
        pair = np.array([edge], dtype=np.int32), np.array([count], dtype=np.int32)
        learner.update(Feedback(edge, reward, *pair, np.array([reward])))


def test_the_posterior_by_hand() -> None:
    learner = started(bandit(noise_std=0.5))
    seen(learner, 1, 2, [0.2, 0.4])
    mean, std = learner.posterior()
    # Before: 1/2 with variance 1/12. Two observations with variance 1/4 and sum 0.6.
    assert_allclose([mean[0, 0], std[0, 0]], [0.5, math.sqrt(1 / 12)])
    assert_allclose([mean[1, 2], std[1, 2]], [(0.5 * 12 + 0.6 * 4) / 20, math.sqrt(1 / 20)])


def test_what_is_believed_of_roads_before_anything_is_seen() -> None:
    mean, std = started(roads(), slope=0.5, spread=0.2).posterior()
    assert_allclose(mean[0], [-40, -60, -80, -100])
    assert_allclose(std[0], [8, 28, 48, 68])
    assert mean[1, 0] == 0.0, "a road without length"
    assert (std > 0).all()


def test_without_noise_one_observation_tells_all() -> None:
    learner = started(bandit(noise_std=0.0))
    seen(learner, 0, 1, [0.25])
    mean, std = learner.posterior()
    assert_allclose(mean[0, 1], 0.25, atol=1e-9)
    assert std[0, 1] < 1e-6


def test_the_isotonic_fit_is_that_of_scipy() -> None:
    rng = np.random.default_rng(1)
    values, weights = rng.standard_normal((50, 9)), rng.uniform(0.1, 10, (50, 9))
    values[0], values[1] = np.arange(9), np.arange(9)[::-1]
    found = non_increasing(values, weights)
    for row in range(50):
        expected = isotonic_regression(values[row], weights=weights[row], increasing=False).x
        assert_allclose(found[row], expected, atol=1e-12)
    assert_array_equal(found[1], values[1])


def test_draws_fall_with_the_count_and_stay_in_the_range() -> None:
    for world in (bandit(), roads(), roads(0.0)):
        learner = started(world)
        for _ in range(20):
            drawn = learner._believed(0)
            assert (np.diff(drawn, axis=1) <= 1e-12).all()
            assert (drawn <= world.high[:, np.newaxis]).all()
            assert (drawn >= world.low[:, np.newaxis]).all()


def test_an_epoch_ends_when_a_pair_has_doubled_or_when_it_is_longer_than_the_one_before() -> None:
    world, learner = bandit(), started(bandit())
    now = before = 0
    reasons = set()
    for _ in range(100):
        visits = learner.tally.visits.copy()
        epoch = learner.epoch(now)
        assert epoch is not None
        played = world.play(epoch.policy.table, epoch.tally, Trace.empty(100_000).part(0, epoch.end - now))
        doubled = bool((epoch.tally.visits - visits >= np.maximum(1, visits)).any())
        assert played == before + 1 or doubled
        assert played <= before + 1
        reasons.add(doubled)
        now, before = now + played, played
    assert reasons == {True, False}


def test_it_learns_faster_than_optimism() -> None:
    regrets = np.mean(
        [
            [rs.run(bandit(seed), learner, 10_000, seed).average_regret[-1] for seed in range(10)]
            for learner in (rs.PosteriorSampling(), rs.CARMAB())
        ],
        axis=1,
    )
    assert regrets[0] < 0.004
    assert regrets[0] < 0.7 * regrets[1]


@pytest.mark.parametrize("slope", [0.05, 0.25, 1.0])
def test_roads_are_learned_whatever_the_prior(slope: float) -> None:
    run = rs.run(roads(), rs.PosteriorSampling(slope=slope), rounds=5_000, seed=0)
    assert_allclose(run.expected_rewards[-500:].mean(), run.comparator_value, rtol=0.01)


def test_a_run_goes_on_from_its_state() -> None:
    world, learner = roads(), started(roads())
    world.reset(np.random.default_rng(1))
    for _ in range(200):
        learner.update(world.step(learner.choose(world.observe())))
    again = started(roads())
    again.restore(learner.state())
    for _ in range(60):
        one, other = (player.choose(world.observe()) for player in (learner, again))
        assert one == other
        feedback = world.step(one)
        learner.update(feedback)
        again.update(feedback)
    assert learner.epochs == again.epochs > 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"slope": -0.1}, "slope must be between 0 and 1e\\+06, got -0.1"),
        ({"spread": 0.0}, "spread must be between 1e-06 and 1e\\+06, got 0.0"),
        ({"planner": "magic"}, "got 'magic'"),
    ],
)
def test_senseless_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rs.PosteriorSampling(**settings)
