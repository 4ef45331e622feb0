"""Congestion functions: how often an edge was used inside the window -> what its base reward is multiplied by.

Each is a small frozen callable on arrays of counts. Bandit rewards are non-negative, so their multiplier must
not rise with the count; travel times are negative rewards, so theirs must not fall. A parameter may be one
number or one value per edge; per-edge parameters expect counts whose first axis runs over the edges.

>>> Inverse()(np.arange(4)).tolist()
[1.0, 1.0, 0.5, 0.3333333333333333]
>>> BPR(capacity=2)(np.array([0, 2, 4])).tolist()
[1.0, 1.15, 3.4]
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from routesim.checks import BPR_LIMITS, LARGEST_REWARD, number, within
from routesim.errors import InputError

Counts: TypeAlias = NDArray[np.int32] | NDArray[np.int64] | NDArray[np.float64]
CongestionFunction: TypeAlias = Callable[[Counts], NDArray[np.float64]]

_STEEPEST = 1e9  # the largest size of a slope or a listed multiplier


@dataclass(frozen=True)
class Constant:
    """1 whatever the count: the plain bandit."""

    def __call__(self, counts: Counts) -> NDArray[np.float64]:
        """Return the multiplier at each count."""
        return np.ones(np.shape(counts))


@dataclass(frozen=True)
class Inverse:
    """1 / max(1, n): the paper's 1/n, read as 1 on an empty road."""

    def __call__(self, counts: Counts) -> NDArray[np.float64]:
        """Return the multiplier at each count."""
        return 1.0 / np.maximum(1.0, _floats(counts))


@dataclass(frozen=True)
class Reciprocal:
    """1 / (1 + n): the first use already halves the reward of the second."""

    def __call__(self, counts: Counts) -> NDArray[np.float64]:
        """Return the multiplier at each count."""
        return 1.0 / (1.0 + _floats(counts))


@dataclass(frozen=True)
class Linear:
    """max(floor, 1 + slope * n): a negative slope for bandits, a positive one for travel times."""

    slope: float
    floor: float = 0.0

    def __post_init__(self) -> None:
        number("Linear's slope", self.slope, -_STEEPEST, _STEEPEST)
        number("Linear's floor", self.floor, -_STEEPEST, _STEEPEST)

    def __call__(self, counts: Counts) -> NDArray[np.float64]:
        """Return the multiplier at each count."""
        return np.maximum(self.floor, 1.0 + self.slope * _floats(counts))


@dataclass(frozen=True)
class Threshold:
    """1 below `limit` uses, `beyond` from `limit` uses on."""

    limit: int
    beyond: float

    def __post_init__(self) -> None:
        number("Threshold's limit of uses", self.limit, 1, LARGEST_REWARD)
        number("Threshold's multiplier beyond the limit", self.beyond, 0, _STEEPEST)

    def __call__(self, counts: Counts) -> NDArray[np.float64]:
        """Return the multiplier at each count."""
        return np.where(_floats(counts) < self.limit, 1.0, self.beyond)


@dataclass(frozen=True, eq=False)
class BPR:
    """1 + alpha * (n / capacity) ** beta: the travel-time curve of the Bureau of Public Roads.

    In rounds `capacity` is in uses per window and must be given; in the simulator None takes each road's own
    capacity, alpha and beta. Beyond a beta of 20, or below a capacity of 1e-6, numbers would lose their meaning.
    """

    capacity: ArrayLike | None = None
    alpha: ArrayLike = 0.15
    beta: ArrayLike = 4.0

    def __post_init__(self) -> None:
        for name, (least, most) in BPR_LIMITS.items():
            if getattr(self, name) is not None:
                within(f"BPR's {name}", getattr(self, name), least, most)

    def __call__(self, counts: Counts) -> NDArray[np.float64]:
        """Return the multiplier at each count."""
        if self.capacity is None:
            raise InputError("BPR needs a capacity in uses per window here; give BPR(capacity=...)")
        alpha, beta, capacity = (_per_edge(value, counts) for value in (self.alpha, self.beta, self.capacity))
        return 1.0 + alpha * np.power(_floats(counts) / capacity, beta)


@dataclass(frozen=True, eq=False)
class Table:
    """Multipliers listed by count, one list for all edges or one row per edge; the last holds beyond its end."""

    values: ArrayLike

    def __post_init__(self) -> None:
        values = within("Table's multipliers", self.values, -_STEEPEST, _STEEPEST)
        if values.ndim not in (1, 2) or values.size == 0:
            raise InputError(f"Table needs multipliers, one row or one row per edge, got shape {values.shape}")

    def __call__(self, counts: Counts) -> NDArray[np.float64]:
        """Return the multiplier at each count."""
        values = _floats(self.values)
        held = np.minimum(np.asarray(counts, dtype=np.int64), values.shape[-1] - 1)
        rows = () if values.ndim == 1 else (_per_edge(np.arange(len(values)), held).astype(np.int64),)
        return _floats(values[(*rows, held)])


def _floats(values: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)


def _per_edge(parameter: ArrayLike, counts: Counts) -> NDArray[np.float64]:
    """Shape a parameter so that one value per edge runs along the first axis of `counts`."""
    values = _floats(parameter)
    if values.ndim == 0:
        return values
    if values.ndim > 1:
        raise InputError(f"a congestion parameter is a number or one value per edge, got shape {values.shape}")
    if np.ndim(counts) == 0 or np.shape(counts)[0] not in (1, len(values)):
        raise InputError(
            f"congestion parameters are given for {len(values)} edges, but the counts have shape {np.shape(counts)}"
        )
    return values.reshape((-1, *(1,) * (np.ndim(counts) - 1)))
