"""Checks of what users hand in: a value comes back clean, or the error names the rule, the value and the fix."""

from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routesim.errors import InputError


def whole(name: str, value: Any, least: int) -> int:
    """Return a whole number of at least `least`."""
    try:
        number = index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, got {value!r}") from None
    if number < least:
        raise InputError(f"{name} must be at least {least}, got {number}")
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


def number(name: str, value: Any, least: float = -np.inf, most: float = np.inf) -> float:
    """Return one finite number between `least` and `most`."""
    array = numbers(name, value)
    if array.ndim > 0 or isinstance(value, str):
        raise InputError(f"{name} must be one number, got {value!r:.80}")
    if not least <= array <= most:
        rule = f"at least {least:g}" if most == np.inf else f"between {least:g} and {most:g}"
        raise InputError(f"{name} must be {rule}, got {value}")
    return float(array)
