"""Contexts: read in blocks, checked as they are read, and every mistake named."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import routesim as rs
from routesim.errors import InputError
from routesim.travellers.contexts import Contexts, unit_vectors


def made(contexts: Any, known: bool = True, **options: Any) -> rs.ContextualEnvironment:
    theta = np.full(3, 0.5)
    return rs.ContextualEnvironment(
        rs.ActionSet.arms(2), theta, contexts, rs.congestion.Inverse(), 2, 0.1, known=known, **options
    )


FINE = unit_vectors(np.random.default_rng(0), (20, 2, 3))


def spoiled(place: tuple[int, ...], value: float) -> np.ndarray:
    features = FINE.copy()
    features[place] = value
    return features


@pytest.mark.parametrize(
    ("contexts", "known", "message"),
    [
        (FINE[:, :1], True, r"shape \(rounds, 2 edges, 3 features as in theta\), got \(20, 1, 3\)"),
        (FINE[:, :, :2], True, r"got \(20, 2, 2\)"),
        (FINE[0], True, r"got \(2, 3\)"),
        (FINE[:0], True, r"got \(0, 2, 3\)"),
        (np.full((20, 2, 3), "far"), True, "contexts must be numbers"),
        (spoiled((7, 1, 2), np.nan), True, "finite, got .*nan.* at round 7, edge 1"),
        (spoiled((3, 0, 0), np.inf), True, "round 3, edge 0"),
        (spoiled((5, 1, 0), 3.0), True, 'length 3.* at round 5, edge 1; scale them, or ask for lengths="rescale"'),
        (FINE, False, r"sampler contexts\(rng, n\), got ndarray"),
        (lambda _rng, n: FINE[: n - 1], False, "the sampler, asked for 256 rounds, must return the shape"),
        (lambda _rng, _n: "rain", False, "must return an array of numbers, got str"),
        (lambda _rng, n: np.full((n, 2, 3), np.nan), False, "finite"),
        (lambda _rng, n: np.ones((n, 2, 3)), False, "longer than 1, got length 1.73205"),
        (lambda first, last: FINE[first : last + 1], True, r"contexts\(0, 1\) must return the shape \(1 rounds"),
    ],
)
def test_bad_contexts_are_named(contexts: Any, known: bool, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made(contexts, known)


def test_a_function_that_fails_late_is_caught_when_it_is_read() -> None:
    bad = spoiled((15, 0, 1), np.nan)
    world = made(lambda first, last: bad[first:last])
    with pytest.raises(InputError, match="at round 15, edge 0"):
        rs.run(world, rs.CARCB(), rounds=20, seed=0)
    with pytest.raises(InputError, match=r"contexts\(0, 30\) must return the shape \(30 rounds"):
        rs.run(made(lambda first, last: FINE[first:last]), rs.CARCB(), rounds=30, seed=0)


def test_more_rounds_than_contexts_are_refused_before_any_is_played() -> None:
    with pytest.raises(InputError, match="contexts for 20 rounds only, and 21 are to be played"):
        rs.run(made(FINE), rs.CARCB(), rounds=21, seed=0)
    world = made(FINE)
    for _ in range(20):
        world.step(0)
    with pytest.raises(InputError, match="all 20 rounds are used up"):
        world.step(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"theta": [[1.0]]}, "theta is one finite number per feature"),
        ({"theta": [0.5, np.nan, 0.5]}, "theta is one finite number per feature"),
        ({"congestion": rs.congestion.Linear(0.5)}, "must not rise with the count"),
        ({"congestion": lambda counts: np.full(np.shape(counts), np.nan)}, "must be finite"),
        ({"noise_std": -1.0}, "noise_std"),
        ({"window": -1}, "window must be at least 0"),
        ({"lengths": "shorten"}, "lengths is one of refuse, rescale, keep; got 'shorten'"),
        ({"free_flow_rewards": [1.0]}, "free_flow_rewards need one value per edge"),
        ({"reward_range": (1, 0)}, "low <= high"),
    ],
)
def test_bad_parameters_are_named(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "actions": rs.ActionSet.arms(2),
        "theta": np.full(3, 0.5),
        "contexts": FINE,
        "congestion": rs.congestion.Inverse(),
        "window": 2,
        "noise_std": 0.1,
    }
    with pytest.raises(InputError, match=message):
        rs.ContextualEnvironment(**{**given, **options})


def test_long_features_are_shortened_only_when_asked() -> None:
    long = FINE * 3
    assert_allclose(made(long, lengths="rescale").contexts.read(0, 20), FINE)
    assert_array_equal(made(long, lengths="keep").contexts.read(0, 20), long)
    short = FINE / 2
    assert_array_equal(made(short, lengths="rescale").contexts.read(3, 5), short[3:5])


def test_a_long_file_of_contexts_is_never_read_whole() -> None:
    asked: list[int] = []
    n_edges, dimension = 200, 6

    def read(first: int, last: int) -> np.ndarray:
        asked.append(last - first)
        return np.full((last - first, n_edges, dimension), 0.1)

    contexts = Contexts(read, True, n_edges, dimension)
    paths = rs.ActionSet([tuple(range(0, 100)), tuple(range(100, 200))])
    world = rs.ContextualEnvironment(
        paths, np.full(dimension, -1.0), read, rs.congestion.Linear(0.5), 2, 0.1, known=True
    )
    rs.run(world, rs.CARCB(ridge=1e-6), rounds=3_000, seed=0)
    assert max(asked) == contexts.block
    assert contexts.block * n_edges * dimension * 8 <= 1 << 22, "four megabytes at a time"


def test_gaussian_contexts_have_the_stated_moments() -> None:
    means = np.array([[0.3, -0.2], [0.0, 0.5]])
    covariances = np.array([[[0.2, 0.05], [0.05, 0.1]], [[0.3, 0.0], [0.0, 0.1]]])
    sampler = rs.GaussianContexts(means, covariances)
    drawn = sampler(np.random.default_rng(0), 40_000)
    assert drawn.shape == (40_000, 2, 2)
    assert_allclose(drawn.mean(axis=0), means, atol=0.01)
    for edge in range(2):
        assert_allclose(np.cov(drawn[:, edge].T), covariances[edge], atol=0.01)
    with pytest.raises(InputError, match="longer than 1"):
        rs.ContextualEnvironment(
            rs.ActionSet.arms(2), [0.5, 0.5], sampler, rs.congestion.Inverse(), 1, 0.1, known=False
        )


@pytest.mark.parametrize(
    ("means", "covariances", "message"),
    [
        ([0.1, 0.2], np.eye(2), "one row per edge"),
        ([[0.1, 0.2]], np.eye(3), "covariances need shape"),
        ([[0.1, 0.2]], -np.eye(2), "positive definite"),
    ],
)
def test_bad_gaussians_are_named(means: Any, covariances: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rs.GaussianContexts(means, covariances)


def test_drawn_contexts_are_the_same_however_they_are_read() -> None:
    drawn = rs.DrawnContexts(rs.UniformContexts(2, 3), seed=5)
    whole = drawn(0, 5_000)
    assert_array_equal(np.concatenate([drawn(0, 1), drawn(1, 1_500), drawn(1_500, 5_000)]), whole)
    assert_array_equal(drawn(2_047, 2_049), whole[2_047:2_049])
    assert len(np.unique(whole[:, 0, 0])) == 5_000
    assert_allclose(np.linalg.norm(whole, axis=2), 1.0)
