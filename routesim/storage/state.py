"""State as plain arrays: what a learner or an environment carries from round to round, flat under dotted names."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from routesim.errors import ResultsError

State: TypeAlias = dict[str, NDArray[Any]]

_WORD = (1 << 64) - 1


@runtime_checkable
class Resumable(Protocol):
    """What can be stopped and gone on with later, to the same numbers bit for bit.

    A learner of your own that has these methods takes part in checkpoints; one without them plays as well, and starts
    over. So does one that inherits them but changes `start`, `choose` or `update`: extend both, or neither.
    """

    def state(self) -> State:
        """Return all that changes from round to round, as copies in plain arrays."""

    def restore(self, state: State) -> None:
        """Take up a state, right after `start` or `reset` with the same arguments as when it was made."""


def resumable(thing: object) -> bool:
    """Say whether `state` speaks for the whole of this thing: no subclass has changed how it plays without it."""
    return isinstance(thing, Resumable) and speaks_for(thing, "state")


def speaks_for(thing: object, method: str) -> bool:
    """Say whether a method speaks for the whole of this thing: no subclass has changed how it plays without it."""
    line = type(thing).__mro__
    spoken = next((place for place, kind in enumerate(line) if method in vars(kind)), len(line))
    plays = ("start", "choose", "update", "reset", "step")
    return not any(name in vars(kind) for kind in line[:spoken] for name in plays)


def collect(source: object, *names: str) -> State:
    """Return copies of some attributes: arrays, numbers or truth values."""
    return {name.removeprefix("_"): np.array(getattr(source, name)) for name in names}


def put_back(target: object, state: State, *names: str) -> None:
    """Set attributes to what `collect` returned; each must have the shape and type of what is there now."""
    for name in names:
        now = getattr(target, name)
        value = taken(state, name.removeprefix("_"), np.asarray(now))
        setattr(target, name, value if isinstance(now, np.ndarray) else value.item())


def taken(state: State, name: str, like: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of the array of this name, which must have the shape and type of `like`."""
    value = named(state, name, like.dtype, like.ndim)
    if value.shape != like.shape:
        raise ResultsError(f"the state does not fit: {name} has shape {value.shape}, expected {like.shape}")
    return value


def named(state: State, name: str, dtype: Any, ndim: int) -> NDArray[Any]:
    """Return a copy of the array of this name, which must have this type and number of dimensions."""
    if name not in state:
        raise ResultsError(f"the state does not fit: it has no {name}")
    value = state[name]
    if value.dtype != dtype or value.ndim != ndim:
        expected = f"{np.dtype(dtype)} in {ndim} dimension(s)"
        raise ResultsError(f"the state does not fit: {name} is {value.dtype} in {value.ndim}, expected {expected}")
    return value.copy()


def whole_from(state: State, name: str, least: int, most: int) -> int:
    """Return the whole number of this name, which must lie between `least` and `most`."""
    value = int(named(state, name, np.int64, 0))
    if not least <= value <= most:
        raise ResultsError(f"the state does not fit: {name} is {value}, expected {least} to {most}")
    return value


def check_numbers(name: str, values: NDArray[Any], below: int) -> None:
    """Refuse numbers outside 0 .. below - 1, which compiled loops would follow out of their arrays."""
    if values.size and not (values.min() >= 0 and values.max() < below):
        raise ResultsError(f"the state does not fit: {name} lie in {values.min()}..{values.max()}, below {below} asked")


def join(**parts: State) -> State:
    """Return the states of parts as one, each under its name and a dot."""
    return {f"{name}.{key}": value for name, state in parts.items() for key, value in state.items()}


def part(state: State, name: str) -> State:
    """Return the state of one part of a joined one; empty if there is none."""
    start = f"{name}."
    return {key.removeprefix(start): value for key, value in state.items() if key.startswith(start)}


def pack_rows(rows: Iterable[Sequence[int] | NDArray[Any]]) -> State:
    """Return sequences of whole numbers, of any length each, as two arrays."""
    arrays = [np.asarray(row, dtype=np.int64) for row in rows]
    ends = np.cumsum([len(row) for row in arrays], dtype=np.int64)
    return {"ends": ends, "values": np.concatenate([np.empty(0, dtype=np.int64), *arrays])}


def unpack_rows(state: State, below: int) -> list[tuple[int, ...]]:
    """Return what `pack_rows` packed, all numbers from 0 to `below` - 1."""
    ends, values = named(state, "ends", np.int64, 1), named(state, "values", np.int64, 1)
    bounds = np.concatenate(([0], ends))
    if (np.diff(bounds) < 0).any() or bounds[-1] != len(values):
        raise ResultsError("the state does not fit: rows end where they cannot")
    check_numbers("rows", values, below)
    return [tuple(values[first:last].tolist()) for first, last in pairwise(bounds)]


def rng_state(rng: np.random.Generator) -> State:
    """Return where a generator stands, as whole numbers; any of numpy's."""
    return {name: _packed(holder[key]) for name, holder, key in _leaves(rng.bit_generator.state)}


def restore_rng(rng: np.random.Generator, state: State) -> None:
    """Put a generator of the same kind where another one stood."""
    inside = rng.bit_generator.state
    for name, holder, key in list(_leaves(inside)):
        value, now = taken(state, name, _packed(holder[key])), holder[key]
        if isinstance(now, str):
            if value.tobytes() != now.encode():
                raise ResultsError(f"the state does not fit: it comes from another generator than {now}")
        elif isinstance(now, np.ndarray):
            holder[key] = value
        else:
            holder[key] = int(value[0]) | int(value[1]) << 64
    try:
        rng.bit_generator.state = inside
    except (ValueError, TypeError, OverflowError) as problem:
        raise ResultsError(f"the state does not fit: {problem}") from None


def _leaves(inside: Any, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    for key in inside:
        if isinstance(inside[key], dict):
            yield from _leaves(inside[key], f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inside, key


def _packed(value: Any) -> NDArray[Any]:
    if isinstance(value, str):
        return np.frombuffer(value.encode(), dtype=np.uint8)
    if isinstance(value, np.ndarray):
        return value
    return np.array([int(value) & _WORD, int(value) >> 64], dtype=np.uint64)
