"""Least squares from sums of products: the same theta as from the observations themselves, whatever they determine."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from routesim.learners.least_squares import least_squares


@pytest.mark.parametrize("n_seen", [2, 4, 30])
def test_theta_is_the_shortest_that_fits_the_observations_best(n_seen: int) -> None:
    rng = np.random.default_rng(n_seen)
    features, seen = rng.normal(size=(n_seen, 4)), rng.normal(size=n_seen)
    theta, determined = least_squares(features.T @ features, features.T @ seen)
    expected, _, rank, _ = np.linalg.lstsq(features, seen, rcond=None)
    assert_allclose(theta, expected, rtol=1e-9)
    assert determined == rank == min(n_seen, 4)


def test_features_that_depend_on_each_other_share_a_weight() -> None:
    # The second feature is twice the first, so of all theta with theta[0] + 2 * theta[1] = 5 the shortest is (1, 2).
    features = np.array([[1.0, 2.0], [3.0, 6.0]])
    theta, determined = least_squares(features.T @ features, features.T @ np.array([5.0, 15.0]))
    assert_allclose(theta, [1.0, 2.0])
    assert determined == 1


def test_nothing_seen_leaves_theta_at_zero() -> None:
    theta, determined = least_squares(np.zeros((3, 3)), np.zeros(3))
    assert theta.tolist() == [0.0, 0.0, 0.0]
    assert determined == 0
