"""Reading files that anybody may have changed: within limits, nothing unpickled, and every fault is one line."""

import io
import json
import math
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints
from routesim.errors import ResultsError

if TYPE_CHECKING:
    import pyarrow as pa

MOST_JSON_BYTES = 1 << 28
MOST_CELLS = 1 << 28
"""How many numbers a table or all arrays of a file may hold: 2 GiB of them."""

MOST = 1e100
"""No number that means something is larger; the squares of those below are still numbers."""

_MOST_MEMBERS = 10_000
_LONGEST = 400
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")


@contextmanager
def reading(source: Path, what: str) -> Iterator[None]:
    """Turn whatever goes wrong while files of a folder are read into one line: there may be anything in them."""
    try:
        yield
    except Exception as problem:
        raise ResultsError(f"{source} holds no {what} that can be read: {one_line(problem)}") from problem


def one_line(problem: Exception | str, longest: int = _LONGEST) -> str:
    """Return a text, or what an error says, in one line of bounded length, its middle left out where it is long."""
    if isinstance(problem, OSError) and problem.strerror and problem.filename is not None:
        return f"{Path(str(problem.filename)).name}: {problem.strerror}"
    if isinstance(problem, RecursionError):
        return "it is nested too deeply"
    if isinstance(problem, MemoryError):
        return "it takes more memory than there is"
    if isinstance(problem, KeyError):
        return f"{problem} is missing"
    said = " ".join(str(problem).split()) or type(problem).__name__
    printable = "".join(letter if letter.isprintable() else "?" for letter in said)
    if len(printable) <= longest:
        return printable
    return f"{printable[: longest // 2]} … {printable[-(longest // 2) :]}"


def read_json(path: Path, *, most_bytes: int = MOST_JSON_BYTES) -> Any:
    """Return the content of a JSON file, in which there is no NaN, nothing endless and no half character."""
    with path.open("rb") as stream:
        raw = stream.read(most_bytes + 1)
    if len(raw) > most_bytes:
        raise ResultsError(f"{path.name} is larger than {most_bytes:,} bytes")
    text = raw.decode("utf-8")
    del raw
    try:
        content = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError as problem:
        raise ResultsError(f"{path.name} is nested too deeply") from problem
    except ValueError as problem:
        raise ResultsError(f"{path.name} is no JSON: {problem}") from problem
    if _HALF_CHARACTER.search(text):
        json.dumps(content, ensure_ascii=False).encode("utf-8")
    return content


def read_table(path: Path) -> "pa.Table":
    """Return the table of a Parquet file after a look at its size."""
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            about = file.metadata
            if about.num_rows * max(1, about.num_columns) > MOST_CELLS:
                raise ResultsError(f"it has {about.num_rows:,} rows of {about.num_columns} columns")
            return file.read()
    except Exception as problem:
        raise ResultsError(f"{path.name}: {one_line(problem)}") from problem


def read_arrays(path: Path, *, stored: bool = False) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file after a look at their sizes; `stored` are those that are not compressed."""
    arrays: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        # What is stored as it is does not swell when it is read.
        if stored and any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ResultsError("it is compressed, which checkpoints are not")
        if not stored and sum(member.file_size for member in members) > 8 * MOST_CELLS:
            raise ResultsError(f"{path.name} holds more than {8 * MOST_CELLS:,} bytes")
        if len(members) > _MOST_MEMBERS:
            raise ResultsError(f"{path.name} holds {len(members):,} arrays")
        for member in members:
            with archive.open(member) as packed:
                raw = packed.read(member.file_size + 1)
            arrays[member.filename.removesuffix(".npy")] = _array(raw, member.filename)
    return arrays


def floats(values: Any, name: str, *, missing: bool = False) -> Floats:
    """Return a list of JSON as finite numbers; null, where it may be `missing`, is NaN."""
    if not isinstance(values, list):
        raise ResultsError(f"{name} must be a list of numbers, got {values!r:.40}")
    for value in values:
        if type(value) not in (int, float) and not (missing and value is None):
            raise ResultsError(f"{name} must be numbers, got {value!r:.40}")
    return finite(np.array([math.nan if value is None else float(value) for value in values]), name, missing=missing)


def finite(values: Floats, name: str, *, missing: bool = False) -> Floats:
    """Return numbers that are finite, or NaN where they may be `missing`, and of a size that means something."""
    good = np.abs(values) <= MOST
    if missing:
        good |= np.isnan(values)
    if not good.all():
        raise ResultsError(f"{name} must be finite, got {values[~good].flat[0]}")
    return values


def number(value: Any, name: str, *, least: float = -MOST) -> float:
    """Return a number of JSON."""
    if type(value) not in (int, float) or not least <= value <= MOST:
        raise ResultsError(f"{name} must be a finite number{_from(least)}, got {value!r:.40}")
    return float(value)


def whole(value: Any, name: str, *, least: int = 0, most: int = 1 << 62) -> int:
    """Return a whole number of JSON."""
    if type(value) is not int or not least <= value <= most:
        raise ResultsError(f"{name} must be a whole number from {least} to {most}, got {_short(value)}")
    return value


def wholes(values: Any, name: str, most: int) -> list[int]:
    """Return a list of JSON as whole numbers from 0 to `most`."""
    if not isinstance(values, list):
        raise ResultsError(f"{name} must be a list of whole numbers, got {_short(values)}")
    return [whole(value, name, most=most) for value in values]


def text(value: Any, name: str) -> str:
    """Return a text of JSON."""
    if not isinstance(value, str):
        raise ResultsError(f"{name} must be a text, got {_short(value)}")
    return value


def truth(value: Any, name: str) -> bool:
    """Return a truth value of JSON."""
    if not isinstance(value, bool):
        raise ResultsError(f"{name} must be true or false, got {_short(value)}")
    return value


def column(table: "pa.Table", name: str) -> NDArray[Any]:
    """Return a column of a table that holds numbers and no nulls."""
    values = table[name]
    if values.null_count:
        raise ResultsError(f"column {name} lacks {values.null_count:,} of its values")
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise ResultsError(f"column {name} must hold numbers, got {values.type}")
    return array


def whole_column(table: "pa.Table", name: str, most: int = 1 << 62) -> Ints:
    """Return a column of whole numbers from 0 to `most`."""
    values = column(table, name)
    if values.dtype.kind == "f":
        raise ResultsError(f"column {name} must hold whole numbers, got {values.dtype}")
    if len(values) and not (values.min() >= 0 and values.max() <= most):
        raise ResultsError(f"column {name} must lie between 0 and {most}, got {values.min()} to {values.max()}")
    return values.astype(np.int64)


def float_column(table: "pa.Table", name: str) -> Floats:
    """Return a column of finite numbers."""
    return finite(column(table, name).astype(np.float64), f"column {name}")


def _array(raw: bytes, name: str) -> NDArray[Any]:
    content = io.BytesIO(raw)
    version = np.lib.format.read_magic(content)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(content)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(content)
    else:
        raise ResultsError(f"array {name} has version {version} of NumPy's format")
    if dtype.hasobject:
        raise ResultsError(f"array {name} holds objects, which are never unpickled")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(raw) - content.tell():
        raise ResultsError(f"array {name} says that it has shape {shape}, which does not fill it")
    flat = np.frombuffer(raw, dtype=dtype, offset=content.tell())
    return flat.reshape(shape, order="F" if fortran else "C").copy()


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits:.40} is no finite number")
    return value


def _short(value: Any) -> str:
    # A whole number of many digits cannot be written out in short.
    return f"{value.bit_length()} bits" if type(value) is int and value.bit_length() > 200 else f"{value!r:.40}"


def _from(least: float) -> str:
    return "" if least == -MOST else f" from {least:g} on"
