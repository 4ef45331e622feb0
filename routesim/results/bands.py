"""Confidence bands: the mean over replications, and how far it may be off by Student's t distribution."""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from routesim.arrays import Floats, Ints
from routesim.errors import InputError
from routesim.results.run import Run

LEVEL = 0.95


class Curve(NamedTuple):
    """A mean over replications in each step, and its 95 % band."""

    mean: Floats
    lower: Floats
    upper: Floats


class Band(NamedTuple):
    """A mean over replications with its confidence band, at some of the rounds (numbered from 1)."""

    rounds: Ints
    mean: Floats
    lower: Floats
    upper: Floats


class _Sample(NamedTuple):
    """What a sample says of each column: how many values are finite, their mean and their standard deviation."""

    n: NDArray[np.intp]
    mean: Floats
    deviation: Floats


def standard_error(sample: ArrayLike) -> Floats:
    """Return the standard error of the mean over the first axis, 0 where there are fewer than two values.

    Values that are not finite are left out, here and in `half_width` and `mean_curve`.
    """
    n, _, deviation = _described(sample)
    return deviation / np.sqrt(np.maximum(n, 1))


def half_width(sample: ArrayLike, level: float = LEVEL) -> Floats:
    """Return half the width of the Student-t band of the mean over the first axis, 0 for fewer than two values."""
    from scipy.special import stdtrit

    n, _, deviation = _described(sample)
    quantile = np.asarray(stdtrit(np.maximum(n - 1, 1), 0.5 + level / 2), dtype=np.float64)
    return quantile * deviation / np.sqrt(np.maximum(n, 1))


def mean_curve(sample: Floats) -> Curve:
    """Return the mean over the rows and its 95 % band, NaN where no row has a value."""
    mean, half = _described(sample).mean, half_width(sample)
    return Curve(mean, mean - half, mean + half)


def regret_band(runs: Sequence[Run], *, level: float = LEVEL, at: Sequence[int] | Ints | None = None) -> Band:
    """Return the mean average regret of replications, with the Student-t band of its mean.

    `at` lists rounds, counted from 1; by default about 200 of them, evenly spaced on a logarithmic axis. Of thinned
    runs the values are those at the end of the row in which a round lies, and the band's rounds say where that is.
    """
    if not runs:
        raise InputError("a band needs at least one run, got none")
    if not 0 < level < 1:
        raise InputError(f"the level of a band lies between 0 and 1, got {level}")
    shortest = min(run.rounds for run in runs)
    if at is None:
        at = np.unique(np.geomspace(1, shortest, 200).round().astype(np.int64))
    chosen = np.asarray(at, dtype=np.int64)
    if chosen.size == 0:
        raise InputError("a band needs at least one round, got none")
    if chosen.min() < 1 or chosen.max() > shortest:
        raise InputError(f"rounds of a band lie between 1 and {shortest}, got {chosen.min()} to {chosen.max()}")
    thinned = [run.ends for run in runs if len(run.actions) < run.rounds]
    if thinned:
        common = reduce(np.intersect1d, thinned)
        common = common[common <= shortest]
        if not len(common):
            raise InputError("the rows of these runs end after different rounds; keep as many rows of each")
        chosen = np.unique(common[np.minimum(np.searchsorted(common, chosen), len(common) - 1)])
    sample = np.stack([run.average_regret[np.searchsorted(run.ends, chosen)] for run in runs])
    mean, half = sample.mean(axis=0), half_width(sample, level)
    return Band(chosen, mean, mean - half, mean + half)


def _described(sample: ArrayLike) -> _Sample:
    values = np.asarray(sample, dtype=np.float64)
    known = np.isfinite(values)
    n = known.sum(axis=0)
    mean = np.where(known, values, 0.0).sum(axis=0) / np.maximum(n, 1)
    squares = np.where(known, (values - mean) ** 2, 0.0).sum(axis=0)
    return _Sample(n, np.where(n > 0, mean, np.nan), np.sqrt(squares / np.maximum(n - 1, 1)))
