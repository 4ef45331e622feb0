"""Files that may be anything: opened and decompressed within a limit, and refused in one line."""

import bz2
import gzip
import zlib
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import IO, ParamSpec, TypeVar

import numpy as np

from routesim.errors import NetworkError

# How much a file may hold once decompressed; every reader takes `max_bytes` to raise or lower it.
# OpenStreetMap files are read as a stream; the others are held in memory and take several times their size.
MAX_STREAM_BYTES = 2 * 2**30
MAX_BYTES = 2**30
# Road files grow by a factor of 2 to 15 when they are decompressed. One that grows by more than this, and to more
# than a moment's work, is a bomb: bz2 can pack 2 GiB into 2 KiB.
_GROWTH = 100
_HARMLESS_BYTES = 64 * 2**20
_CHUNK = 2**20
_LONGEST_MESSAGE = 1000

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def reads_files(read: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Let a reader's error be one line of bounded length, whatever the file put into it.

    Numbers that are too large for their unit become infinite, which the network refuses by name, without a warning.
    """

    @wraps(read)
    def reader(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        try:
            with np.errstate(all="ignore"):
                return read(*arguments, **options)
        except NetworkError as error:
            raise NetworkError(one_line(str(error))) from None
        except (MemoryError, RecursionError) as error:
            which = next(iter((*arguments, *options.values())), "the file")
            why = "needs more memory than there is" if isinstance(error, MemoryError) else "is nested too deeply"
            raise NetworkError(one_line(f"{which} {why}")) from None

    return reader


def one_line(message: str) -> str:
    """Return a message without line breaks and control characters, its middle left out where it is long."""
    if len(message) > _LONGEST_MESSAGE:
        message = f"{message[: _LONGEST_MESSAGE // 2]} … {message[-_LONGEST_MESSAGE // 2 :]}"
    return "".join(character if character.isprintable() else " " for character in message)


def most_bytes(size: int, max_bytes: int | None, *, default: int = MAX_BYTES, harmless: int = _HARMLESS_BYTES) -> int:
    """Return how much a file of `size` bytes may hold once decompressed; `max_bytes` replaces every other limit."""
    return min(default, max(harmless, _GROWTH * size)) if max_bytes is None else max_bytes


def too_large(file: str | Path, limit: int) -> NetworkError:
    """Return the error of a file that holds more than it may."""
    return NetworkError(f"{file} holds more than {limit} bytes once decompressed; raise max_bytes if you trust it")


def existing_file(path: str | Path, what: str, *, max_bytes: int | None = None) -> Path:
    """Return the path of a file that is there, not empty, and not larger than `max_bytes`."""
    try:
        file = Path(path)
        if file.is_dir():
            raise NetworkError(f"{file} is a folder; give the {what} file itself")
        if not file.exists():
            raise NetworkError(f"no file {file}; give the path of a {what} file")
        if not file.is_file():
            raise NetworkError(f"{file} is not a regular file; give the path of a {what} file")
        if file.stat().st_size == 0:
            raise NetworkError(f"{file} is empty; a {what} file was expected")
        if max_bytes is not None and file.stat().st_size > max_bytes:
            raise NetworkError(f"{file} is larger than {max_bytes} bytes; raise max_bytes if you trust it")
    except (OSError, TypeError, ValueError) as error:
        if isinstance(error, NetworkError):
            raise
        raise NetworkError(f"cannot look at {path!r}: {error}") from None
    return file


def read_chunks(file: Path, *, max_bytes: int | None, default: int = MAX_BYTES) -> Iterator[bytes]:
    """Yield a file's bytes, decompressed when it is .gz or .bz2; more than `most_bytes` are an error.

    The bytes of the file that were taken in so far say how much may have come out, so a bomb ends early.
    """
    total = 0
    try:
        with file.open("rb") as packed, _unpacked(file, packed) as stream:
            while chunk := stream.read(_CHUNK):
                total += len(chunk)
                limit = most_bytes(packed.tell(), max_bytes, default=default)
                if total > limit:
                    raise too_large(file, limit)
                yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise NetworkError(f"{file} breaks off or is damaged after {total} decompressed bytes: {error}") from None
    except OSError as error:
        raise NetworkError(f"cannot read {file} after {total} bytes: {error}") from None


def read_text(path: str | Path, what: str, *, max_bytes: int | None) -> str:
    """Return a whole text file, which must be UTF-8."""
    file = existing_file(path, what)
    raw = b"".join(read_chunks(file, max_bytes=max_bytes))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise NetworkError(
            f"{file} line {line} is not UTF-8 text: byte {error.start} is {raw[error.start]:#04x}"
        ) from None


def _unpacked(file: Path, packed: IO[bytes]) -> IO[bytes]:
    if file.suffix == ".gz":
        return gzip.open(packed, "rb")  # type: ignore[return-value]  # a GzipFile reads bytes
    if file.suffix == ".bz2":
        return bz2.open(packed, "rb")
    return packed
