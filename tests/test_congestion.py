"""Congestion functions: values by hand, one value per edge, and refused parameters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from routesim import congestion
from routesim.congestion import CongestionFunction
from routesim.errors import InputError

COUNTS = np.arange(5)


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        (congestion.Constant(), [1, 1, 1, 1, 1]),
        (congestion.Inverse(), [1, 1, 1 / 2, 1 / 3, 1 / 4]),
        (congestion.Reciprocal(), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]),
        (congestion.Linear(-0.3), [1, 0.7, 0.4, 0.1, 0]),
        (congestion.Linear(0.5), [1, 1.5, 2, 2.5, 3]),
        (congestion.Linear(-0.5, floor=0.2), [1, 0.5, 0.2, 0.2, 0.2]),
        (congestion.Threshold(2, 0.1), [1, 1, 0.1, 0.1, 0.1]),
        (congestion.BPR(capacity=2), [1, 1 + 0.15 / 16, 1.15, 1 + 0.15 * 1.5**4, 3.4]),
        (congestion.Table([1, 0.8, 0.1]), [1, 0.8, 0.1, 0.1, 0.1]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_by_hand(curve: CongestionFunction, expected: list[float]) -> None:
    assert_allclose(curve(COUNTS), expected)
    assert_allclose(curve(COUNTS[np.newaxis, :]), [expected])


def test_one_capacity_per_edge() -> None:
    curve = congestion.BPR(capacity=[1, 2])
    table = curve(np.arange(3)[np.newaxis, :])
    assert_allclose(table, [[1, 1.15, 3.4], [1, 1 + 0.15 / 16, 1.15]])
    assert_allclose(curve(np.array([2, 1])), [3.4, 1 + 0.15 / 16]), "present counts, one per edge"


def test_one_table_row_per_edge() -> None:
    curve = congestion.Table([[1, 0.5], [1, 0.2]])
    assert_allclose(curve(np.arange(3)[np.newaxis, :]), [[1, 0.5, 0.5], [1, 0.2, 0.2]])
    assert_allclose(curve(np.array([0, 4])), [1, 0.2])


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20).map(sorted))
def test_bandit_curves_never_rise_and_road_curves_never_fall(counts: list[int]) -> None:
    n = np.array(counts)
    for falling in (
        congestion.Inverse(),
        congestion.Reciprocal(),
        congestion.Linear(-0.1),
        congestion.Threshold(3, 0.2),
    ):
        assert (np.diff(falling(n)) <= 0).all()
    for rising in (congestion.BPR(capacity=3), congestion.Linear(0.2), congestion.Threshold(3, 4.0)):
        assert (np.diff(rising(n)) >= 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: congestion.BPR(capacity=0), r"capacity must be between 1e-06 and 1e\+15, got 0"),
        (lambda: congestion.BPR(capacity=[1, np.nan]), "capacity"),
        (lambda: congestion.BPR(capacity=1, alpha=-1), r"alpha must be between 0 and 1e\+12, got -1"),
        (lambda: congestion.Threshold(0, 0.5), r"between 1 and 1e\+15, got 0"),
        (lambda: congestion.Threshold(1, -0.5), r"between 0 and 1e\+09, got -0.5"),
        (lambda: congestion.Linear(np.inf), "finite"),
        (lambda: congestion.Linear("a"), "must be numbers, got 'a'"),
        (lambda: congestion.BPR(capacity="x"), "must be numbers"),
        (lambda: congestion.Table([[1, 2], [1]]), "must be numbers"),
        (lambda: congestion.Table([]), "shape"),
        (lambda: congestion.BPR()(COUNTS), "needs a capacity"),
        (lambda: congestion.BPR(capacity=[1, 2, 3])(COUNTS), "3 edges, but the counts have shape"),
    ],
)
def test_senseless_parameters_are_refused(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
