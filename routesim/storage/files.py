"""Files that are written whole or not at all: into a file beside them first, which is then moved to their place."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from routesim.errors import ResultsError, RoutesimError


@contextmanager
def whole_file(path: str | Path, error: type[RoutesimError] = ResultsError) -> Iterator[Path]:
    """Give the path of an empty file beside `path` to write to, and move it there only when all went well.

    Several may write the same file at the same time: the last one stays. What the system refuses is an `error`.
    """
    try:
        target = Path(path)
    except TypeError:
        raise error(f"a file is named by a text or a Path, got {path!r:.80}") from None
    if target.is_dir():
        raise error(f"cannot write {target}: it is a folder; name a file in it")
    fresh = target.with_name(f".{target.stem}-{secrets.token_hex(6)}{target.suffix}")
    try:
        try:
            mode = _make(fresh)
        except ValueError as problem:  # a name with a null letter
            raise error(f"cannot write {target}: {problem}") from problem
        with _moved(fresh, target):
            yield fresh
            fresh.chmod(mode)  # of a writer that removed the file and made its own
    except OSError as problem:
        raise error(f"cannot write {target}: {problem.strerror or problem}") from problem


@contextmanager
def durable_file(path: Path) -> Iterator[Path]:
    """Do as `whole_file` does, and return when the disk holds the new file; what the system refuses stays an OSError.

    One process at a time may write such a file, so that one that is killed leaves at most `beside(path)`, which the
    next one replaces.
    """
    fresh = beside(path)
    with _moved(fresh, path):
        yield fresh
        sync(fresh)
    sync(path.parent)


def beside(path: Path) -> Path:
    """Return the place where a durable file is written before it is moved to `path`."""
    return path.with_name(f".{path.name}.new")


def sync(path: Path) -> None:
    """Return when the disk holds a file, or the names inside a folder."""
    windows = os.name == "nt"
    if windows and path.is_dir():
        return  # folders cannot be opened there
    number = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _make(path: Path) -> int:
    """Make an empty file that was not there and return its permissions: those that the umask leaves a new file."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        return stat.S_IMODE(os.fstat(number).st_mode)
    finally:
        os.close(number)


@contextmanager
def _moved(fresh: Path, target: Path) -> Iterator[None]:
    try:
        yield
        fresh.replace(target)
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
