"""The one decorator that turns a plain function over arrays into machine code."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def kernel(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile `function` on first use and keep the machine code on disk for the next process."""
    return cast("Callable[_Parameters, _Result]", numba.njit(cache=True, nogil=True)(function))
