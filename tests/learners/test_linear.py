"""The linear baselines: their fit, their scores by hand, and what exploration is for."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import routesim as rs
from routesim.errors import InputError
from routesim.learners.linear_model import theta_of_round
from routesim.travellers.contexts import unit_vectors

ALL = [rs.LinUCB(), rs.LinUCB(blind=True), rs.LinearThompsonSampling(), rs.LinearGreedy()]


def world(kind: str, rounds: int = 300, noise_std: float = 0.2) -> rs.ContextualEnvironment:
    actions = rs.ActionSet.arms(4) if kind == "arms" else rs.ActionSet([(0, 1), (1, 2, 3), (4,)])
    rng = np.random.default_rng(0)
    theta, features = unit_vectors(rng, (3,)), unit_vectors(rng, (rounds, actions.n_edges, 3))
    return rs.ContextualEnvironment(actions, theta, features, rs.congestion.Inverse(), 3, noise_std)


@pytest.mark.parametrize("kind", ["arms", "paths"])
@pytest.mark.parametrize("blind", [False, True])
def test_linucb_by_hand(kind: str, blind: bool) -> None:
    place, learner = world(kind), rs.LinUCB(ridge=0.5, blind=blind, alpha=2.0)
    learner.start(place.task("congestion"), np.random.default_rng(0))
    squares, moment = 0.5 * np.eye(3), np.zeros(3)
    for _ in range(150):
        seen = place.observe()
        assert seen.features is not None
        factors = np.ones(place.actions.n_edges) if blind else place.multipliers[0, seen.counts]
        regressors = seen.features * factors[:, None]
        theta = np.linalg.solve(squares, moment)
        width = [math.sqrt(x @ np.linalg.solve(squares, x)) for x in regressors]
        by_edge = regressors @ theta + 2.0 * 0.2 * np.array(width)
        scores = place.actions.incidence @ by_edge
        action = learner.choose(seen)
        assert_allclose(scores[action], scores.max())
        feedback = place.step(action)
        learner.update(feedback)
        used = regressors[feedback.edges]
        squares += used.T @ used
        moment += feedback.rewards @ used
    assert_allclose(learner.theta, np.linalg.solve(squares, moment))


def test_thompson_sampling_draws_theta_from_its_posterior() -> None:
    place, learner = world("arms"), rs.LinearThompsonSampling()
    learner.start(place.task("congestion"), np.random.default_rng(1))
    for _ in range(50):
        learner.update(place.step(learner.choose(place.observe())))
    draws = np.array([theta_of_round(learner._believed, learner._rng) for _ in range(20_000)])
    assert_allclose(draws.mean(axis=0), learner.theta, atol=0.003)
    assert_allclose(np.cov(draws.T), 0.2**2 * learner._inverse, atol=3e-4)


@pytest.mark.parametrize("learner", ALL, ids=repr)
@pytest.mark.parametrize("kind", ["arms", "paths"])
def test_every_linear_learner_keeps_the_contract(learner: rs.Learner, kind: str) -> None:
    run, again = (rs.run(world(kind), learner, 300, seed=5) for _ in range(2))
    assert isinstance(learner, rs.Learner)
    assert run.actions.tolist() == again.actions.tolist()
    assert run.summary()["informed"] is False
    assert run.average_regret[-1] > 0


def test_without_noise_every_linear_learner_finds_theta() -> None:
    for learner in ALL[:1] + ALL[2:]:
        place = world("arms", 400, noise_std=0.0)
        player = type(learner)(ridge=1e-6)
        player.start(place.task("congestion"), np.random.default_rng(0))
        for _ in range(400):
            player.update(place.step(player.choose(place.observe())))
        assert_allclose(player.theta, place.theta, atol=1e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rs.LinUCB(ridge=0), r"ridge must be between 1e-12 and 1e\+12, got 0"),
        (lambda: rs.LinUCB(alpha=-1), r"alpha must be between 0 and 1e\+09, got -1"),
        (lambda: rs.LinearGreedy(ridge=math.inf), "ridge must be finite"),
    ],
)
def test_bad_parameters_are_named(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
