"""Checks of what users hand in: a value comes back clean, or the error names the rule, the value and the fix."""

from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routesim.errors import InputError

LATEST_S = 1e9
"""The latest time and the longest span in seconds, some 31 years: up to it times are told apart to 1.2e-7 s."""

SHORTEST_S = 1e-3
"""The shortest window, time bin or interval in seconds."""

HORIZON_S = 1e12
"""When the last vehicle must have arrived: beyond it, times are no longer told apart to a millisecond."""

MOST_VEHICLES = 1e8
"""The largest number of vehicles that one demand may expect: some 20 GB while they drive."""

LARGEST_REWARD = 1e15
"""The largest size of a mean reward, of its noise, and of what a congestion function returns."""

RIDGES = (1e-12, 1e12)
"""The least and the largest weight of a ridge, where it is not 0."""

MOST_CONTEXTS = 100_000
"""The largest sample of contexts that a plan is averaged over."""

# Parameters of a travel-time curve of the Bureau of Public Roads, and capacities in uses of a window.
BPR_LIMITS = {"alpha": (0.0, 1e12), "beta": (0.0, 20.0), "capacity": (1e-6, 1e15)}


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return a whole number of at least `least`, and at most `most` if that is given."""
    try:
        number = index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, got {value!r}") from None
    if number < least:
        raise InputError(f"{name} must be at least {least}, got {number}")
    if most is not None and number > most:
        raise InputError(f"{name} must be at most {most:,}, got {number}")
    return number


def numbers(name: str, value: Any) -> NDArray[np.float64]:
    """Return finite numbers of any shape as an array."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, got {value!r:.80}") from None
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite, got {value!r:.80}")
    return array


def within(name: str, value: Any, least: float, most: float) -> NDArray[np.float64]:
    """Return finite numbers of any shape, all of them between `least` and `most`."""
    array = numbers(name, value)
    outside = ~((array >= least) & (array <= most))
    if outside.any():
        given = value if array.ndim == 0 else float(array[outside][0])
        raise InputError(f"{name} must be between {least:g} and {most:g}, got {given!r:.80}")
    return array


def check_confidence(confidence: Any, delta: Any) -> None:
    """Refuse a width of confidence intervals, or a chance that they fail, with which no plan could be made."""
    number("confidence", confidence, 1e-9, 1e9)
    number("delta", delta, 1e-100, 1 - 1e-9)


def seconds(name: str, value: Any, least: float = SHORTEST_S) -> float:
    """Return a time or a span in seconds that keeps its meaning: between `least` and `LATEST_S`."""
    return number(name, value, least, LATEST_S)


def number(name: str, value: Any, least: float = -np.inf, most: float = np.inf) -> float:
    """Return one finite number between `least` and `most`."""
    array = numbers(name, value)
    if array.ndim > 0 or isinstance(value, str):
        raise InputError(f"{name} must be one number, got {value!r:.80}")
    if not least <= array <= most:
        rule = f"at least {least:g}" if most == np.inf else f"between {least:g} and {most:g}"
        raise InputError(f"{name} must be {rule}, got {value}")
    return float(array)
