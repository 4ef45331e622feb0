"""Files that may be anything: opened and decompressed within a limit."""

import bz2
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from routesim.errors import NetworkError

# How much a file may hold once decompressed; every reader takes `max_bytes` to raise or lower it.
# OpenStreetMap files are read as a stream; the others are held in memory and take several times their size.
MAX_STREAM_BYTES = 2 * 2**30
MAX_BYTES = 2**30
_CHUNK = 2**20


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


def read_chunks(file: Path, *, max_bytes: int) -> Iterator[bytes]:
    """Yield a file's bytes, decompressed when it is .gz or .bz2; more than `max_bytes` are an error."""
    total = 0
    try:
        with _open(file) as stream:
            while chunk := stream.read(_CHUNK):
                total += len(chunk)
                if total > max_bytes:
                    raise NetworkError(
                        f"{file} holds more than {max_bytes} bytes once decompressed; raise max_bytes if you trust it"
                    )
                yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise NetworkError(f"{file} breaks off or is damaged after {total} decompressed bytes: {error}") from None
    except OSError as error:
        raise NetworkError(f"cannot read {file} after {total} bytes: {error}") from None


def read_text(path: str | Path, what: str, *, max_bytes: int) -> str:
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


def _open(file: Path) -> IO[bytes]:
    if file.suffix == ".gz":
        return gzip.open(file, "rb")  # type: ignore[return-value]  # a GzipFile reads bytes
    if file.suffix == ".bz2":
        return bz2.open(file, "rb")
    return file.open("rb")
