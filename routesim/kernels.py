"""The decorators that turn a plain function over arrays into machine code."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, ParamSpec, TypeVar, cast

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from routesim.errors import NotKeptWarning

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def _compiled(function: Callable[_Parameters, _Result], **options: Any) -> Callable[_Parameters, _Result]:
    """Compile on first use and keep the machine code on disk, or in this process only where there is no place."""
    try:
        made = numba.njit(cache=True, nogil=True, **options)(function)
    except RuntimeError as problem:
        if "cannot cache" not in str(problem):
            raise
        _warn_of_no_place()
        made = numba.njit(nogil=True, **options)(function)
    return cast("Callable[_Parameters, _Result]", made)


@cache
def _warn_of_no_place() -> None:
    # A folder that others may write to would do harm: what numba keeps is code, which the next process runs.
    warnings.warn(
        "compiled code cannot be kept, neither beside routesim nor in the home folder, so every start compiles anew "
        "(seconds to a minute); set NUMBA_CACHE_DIR to a folder that only you can write to",
        NotKeptWarning,
        stacklevel=2,
    )


def kernel(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile `function` on first use and keep the machine code on disk for the next process."""
    return _compiled(function)


def lean_kernel(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile as `kernel` does, but without reference counts: only for functions that make no array but views.

    Counting the references to an array argument is an atomic operation or two at every call, which took a third of
    the time in a loop of small steps. The caller in Python holds all arrays for as long as such a function runs.
    numba has no public option for this; tests/test_interfaces.py notices when the private one changes.
    """
    return _compiled(function, _nrt=False, forceinline=False)


def inlined_kernel(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile as `lean_kernel` does, and make it a part of the code of every kernel that calls it.

    A call hands over every array of every argument by value, a thousand words for all that an engine works on, which
    takes longer than a small step itself.
    """
    return _compiled(function, _nrt=False, forceinline=True)


def lean_part(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile as `lean_kernel` does, but only as a part of the kernels that call it, with which it is kept on disk.

    What is on disk of a function by itself lists the types it was compiled for. In a function that takes types of
    other modules this would tie every caller to them: one type renamed, and the list could not be read any more.
    """
    options: dict[str, Any] = {"nogil": True, "_nrt": False}
    return cast("Callable[_Parameters, _Result]", numba.njit(**options)(function))


def _prefetch(context: Any, array: Any, index: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001 - numba's protocol
    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = target.make_array(signature.args[0])(target, builder, arguments[0]).data
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [data.type, number, number, number])
        instruction = builder.module.declare_intrinsic("llvm.prefetch", [data.type], kind)
        # To be read, to be kept in every cache, and data.
        builder.call(instruction, [builder.gep(data, [arguments[1]]), number(0), number(3), number(1)])
        return target.get_dummy_value()

    return types.void(array, types.intp), generate


# prefetch(array, index): start to bring element `index` of a C-contiguous array, counted flat, into the cache.
prefetch = cast("Callable[[Any, int], None]", intrinsic(_prefetch))
