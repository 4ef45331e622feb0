"""Checkpoints: the file from which a run goes on after it was stopped, written whole or not at all.

The state is one .npz file of plain arrays. The rows of the trace, which only ever grow, are appended to a file ".rows"
beside it; the .npz says how many of them count. So a checkpoint costs what is new, however long the run has been.
"""

import hashlib
import signal
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

import routesim
from routesim.checks import number
from routesim.errors import ResultsError
from routesim.storage.files import beside, durable_file, sync
from routesim.storage.reading import one_line, read_arrays
from routesim.storage.state import State, join, named, part, taken, whole_from

ROW = np.dtype([("action", "<i4"), ("expected_reward", "<f8"), ("reward", "<f8")])
"""A row of a trace as it is stored: its last action, and the sums over its rounds."""

_FORMAT = b"routesim-checkpoint-1"
_HEAD = b"routesim-rows-1\n"
_SHARE = 20  # writing takes at most about one part in so many of the time
_MANY = 10**18
_PLAIN = (int, float, str, bool, bytes, complex, type(None))


class Game(Protocol):
    """What a checkpoint saves: a state that changes, and rows that are only ever added to."""

    def state(self) -> State:
        """Return the state between two rounds."""

    def rows(self, first: int) -> NDArray[Any]:
        """Return the complete rows of the trace from number `first` on."""


class Checkpoint:
    """The checkpoint of one run, which plays one or more games after each other; each has a name.

    What the files hold from before is read at once; `begin` returns it. Files of another run, or damaged ones, are a
    ResultsError. `tick` is called between rounds, and writes whenever `every_s` seconds have passed, or an interrupt is
    to be raised.
    """

    def __init__(self, path: str | Path, run: bytes, every_s: float) -> None:
        self.path = Path(path)
        self.every_s = number("checkpoint_s", every_s, least=0)
        self.interrupted: Callable[[], bool] = lambda: False
        self._run = np.frombuffer(run, dtype=np.uint8)
        self._beside = self.path.with_name(f"{self.path.name}.rows")
        self._games: dict[str, Game] = {}
        self._counts: dict[str, int] = {}
        self._crc = 0
        self._stored: dict[str, tuple[State, NDArray[Any]]] = {}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                self._read()
            else:
                self._begin_rows()
        except OSError as problem:
            raise ResultsError(f"cannot write a checkpoint to {self.path}: {problem.strerror or problem}") from problem
        self._due = time.monotonic() + self.every_s

    def begin(self, name: str, game: Game) -> tuple[State, NDArray[Any]] | None:
        """Save this game too from now on; return its state and rows if the files told of it."""
        self._games[name] = game
        return self._stored.pop(name, None)

    def tick(self) -> None:
        """Write if it is time to, between two rounds; raise the interrupt that was postponed."""
        if self.interrupted():
            self.write()
            raise KeyboardInterrupt
        if time.monotonic() >= self._due:
            self.write()

    def write(self) -> None:
        """Write every game as it is; nothing if none tells its state."""
        if not self._games:
            return
        began = time.monotonic()
        content = {"format": np.frombuffer(_FORMAT, dtype=np.uint8), "run": self._run}
        try:
            for name, game in self._games.items():
                content |= join(games=join(**{name: game.state()}))
                self._append(name, game.rows(self._counts.get(name, 0)))
            content |= {"crc": np.array(self._crc)}
            content |= join(rows={name: np.array(count) for name, count in self._counts.items()})
            self._put(content)
        except OSError as problem:
            reason = f"cannot write the checkpoint {self.path}: {problem.strerror or problem}"
            kept = "the last one is left, to go on from" if self.path.exists() else "there is none yet"
            raise ResultsError(f"{reason}; {kept}") from problem
        now = time.monotonic()
        self._due = now + max(self.every_s, _SHARE * (now - began))

    def _append(self, name: str, rows: NDArray[Any]) -> None:
        new = rows.tobytes()
        with self._beside.open("ab") as stream:
            stream.write(new)
        sync(self._beside)
        self._crc = zlib.crc32(new, self._crc)
        self._counts[name] = self._counts.get(name, 0) + len(rows)

    def leave(self) -> None:
        """Tidy up after a failure: rows without a state are of no use."""
        if not self.path.exists():
            self.remove()

    def remove(self) -> None:
        """Delete the files: the run is done."""
        # The state first: rows without it are begun anew, a state without its rows would be damaged.
        for path in (self.path, self._beside, beside(self.path)):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _put(self, content: State) -> None:
        for name, array in content.items():
            if np.asarray(array).dtype.hasobject:
                raise ResultsError(f"a state is made of plain arrays, and {name} holds objects; they are never pickled")
        with durable_file(self.path) as fresh, fresh.open("wb") as stream:
            np.savez(stream, **content)  # type: ignore[arg-type]  # no array has the name of an option

    def _begin_rows(self) -> None:
        if self._beside.exists():
            with self._beside.open("rb") as stream:
                if not _HEAD.startswith(stream.read(len(_HEAD))):
                    raise ResultsError(f"{self._beside} exists and is no part of a checkpoint; name another one")
        self._beside.write_bytes(_HEAD)

    def _read(self) -> None:
        """Take up what the files hold."""
        try:
            content = read_arrays(self.path, stored=True)
            if named(content, "format", np.uint8, 1).tobytes() != _FORMAT:
                raise ResultsError("it has another format")
            if taken(content, "run", self._run).tobytes() != self._run.tobytes():
                raise ResultsError(
                    "it belongs to another run; environment, learner, rounds, seed, replication, keep and the version "
                    "of routesim must be the same"
                )
            counted, games = part(content, "rows"), part(content, "games")
            self._counts = {name: whole_from(counted, name, 0, _MANY) for name in counted}
            self._crc = whole_from(content, "crc", 0, (1 << 32) - 1)
            rows, first = self._read_rows(sum(self._counts.values())), 0
            for name, count in self._counts.items():
                self._stored[name] = part(games, name), rows[first : first + count]
                first += count
        except Exception as problem:  # whatever nonsense the file holds
            self.refuse(problem)

    def _read_rows(self, count: int) -> NDArray[Any]:
        if not self._beside.is_file():
            raise ResultsError(f"{self._beside.name} is missing")
        with self._beside.open("r+b") as stream:
            if stream.read(len(_HEAD)) != _HEAD:
                raise ResultsError(f"{self._beside.name} is no part of a checkpoint")
            size = count * ROW.itemsize
            stored = stream.read(size) if size <= self._beside.stat().st_size else b""
            if len(stored) < size or zlib.crc32(stored) != self._crc:
                raise ResultsError(f"{self._beside.name} does not hold its {count:,} rows")
            stream.truncate(len(_HEAD) + size)  # what came after them was not finished
        return np.frombuffer(stored, dtype=ROW)

    def refuse(self, problem: Exception) -> NoReturn:
        """Say that the run cannot go on from these files."""
        raise ResultsError(
            f"cannot go on from the checkpoint {self.path}: {one_line(problem)}; delete it to start over, or name "
            "another one"
        ) from problem


@contextmanager
def postponed_interrupts() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C wait for the end of a round; the value says whether it was pressed. A second one does not wait."""
    pressed = False

    def press(*_: object) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    ours = threading.current_thread() is threading.main_thread()
    ours = ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, press)
    try:
        yield lambda: pressed
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def fingerprint(*things: Any) -> bytes:
    """Return a number for the content of these things: arrays, settings, dataclasses, functions by name.

    Of objects it takes what is public: names with an underscore in front, and fields that do not count when two are
    compared, hold work under way.
    """
    digest = hashlib.blake2b(digest_size=32)
    _feed(digest.update, (routesim.__version__, *things), ())
    return digest.digest()


def _feed(tell: Callable[[bytes], None], thing: Any, inside: tuple[int, ...]) -> None:
    kind = type(thing)
    tell(f"<{kind.__module__}.{kind.__qualname__}".encode())
    inside = (*inside, id(thing))
    contents: list[Any] = []
    if isinstance(thing, _PLAIN):
        tell(repr(thing).encode())
    elif isinstance(thing, np.ndarray | np.generic):
        array = np.asarray(thing)
        tell(f"{array.dtype.str}{array.shape}".encode())
        if array.dtype.hasobject:
            contents = array.ravel().tolist()
        elif array.size:
            rows = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
            step = max(1, (1 << 20) // max(1, rows.shape[1]))
            for first in range(0, len(rows), step):  # a long file of contexts is never read whole
                tell(rows[first : first + step].tobytes())
    elif isinstance(thing, list | tuple):
        if all(type(one) in _PLAIN for one in thing):
            tell(repr(tuple(thing)).encode())
        else:
            contents = list(thing)
    elif isinstance(thing, dict):
        contents = [part for item in thing.items() for part in item]
    elif isinstance(thing, partial):
        contents = [thing.func, thing.args, thing.keywords]
    elif isinstance(thing, FunctionType | BuiltinFunctionType | MethodType | type):
        tell(f"{thing.__module__}.{thing.__qualname__}".encode())
        if isinstance(thing, FunctionType):
            closed = [cell.cell_contents for cell in thing.__closure__ or ()]
            contents = [closed, list(thing.__defaults__ or ())]
        elif isinstance(thing, MethodType):
            contents = [thing.__self__]
    elif is_dataclass(thing):
        names = [one.name for one in fields(thing) if one.compare and not one.name.startswith("_")]
        contents = [(name, getattr(thing, name)) for name in names if hasattr(thing, name)]
    else:
        contents = sorted((name, value) for name, value in getattr(thing, "__dict__", {}).items() if name[0] != "_")
    for one in contents:
        if id(one) not in inside:
            _feed(tell, one, inside)
    tell(b">")
