"""Bands of means by Student's t, computed by hand."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from routesim.results.bands import half_width, mean_curve, standard_error

# The quantiles of Student's t at 97.5 %, as tables of it print them.
T_1, T_2, T_4 = 12.7062, 4.30265, 2.77645


def test_a_band_by_hand() -> None:
    # 1 to 5 lie 2, 1, 0, 1, 2 from their mean 3: the variance is 10 / 4, the standard error sqrt(2.5 / 5).
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert_allclose(standard_error(values), np.sqrt(0.5))
    assert_allclose(half_width(values), T_4 * np.sqrt(0.5), rtol=1e-5)
    assert_allclose(half_width(values, level=0.9), 2.131847 * np.sqrt(0.5), rtol=1e-6)


def test_two_values_differ_from_their_mean_by_the_standard_error() -> None:
    # 3 and 7: the variance is (4 + 4) / 1, the standard error sqrt(8 / 2) = 2.
    assert standard_error([3.0, 7.0]) == 2.0
    assert_allclose(half_width([3.0, 7.0]), 2 * T_1, rtol=1e-5)


def test_each_column_has_a_band_of_its_own_and_gaps_are_left_out() -> None:
    gap = np.nan
    sample = np.array([[3.0, 0.0, gap, gap], [7.0, 3.0, 5.0, gap], [gap, 6.0, gap, gap]])
    mean, lower, upper = mean_curve(sample)
    assert_array_equal(mean, [5.0, 3.0, 5.0, gap])
    assert_allclose(
        upper - mean, [2 * T_1, T_2 * np.sqrt(3), 0.0, gap], rtol=1e-5
    )  # of one value the ends are the mean
    assert_allclose(mean - lower, upper - mean)


def test_a_single_value_tells_no_width() -> None:
    assert_array_equal([standard_error([4.0]), half_width([4.0])], [np.nan, np.nan])
    assert_array_equal(half_width([[3.0, 4.0]]), [np.nan, np.nan])
