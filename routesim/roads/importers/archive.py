"""routesim's own file of a network: a zip of plain NumPy arrays (.npz), compact, exact and checked when read.

Numbers on a decimal grid, as OpenStreetMap's coordinates are (1e-7 degrees), are stored as whole
differences from the one before; all others as they are. Either way they come back bit for bit. Texts are
stored once each, as JSON. Nothing in the file is ever executed (no pickles), and its sizes are checked
before memory is taken.
"""

import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints
from routesim.errors import NetworkError
from routesim.roads.columns import EDGE_NUMBERS
from routesim.roads.importers.bans import Bans, rows_of
from routesim.roads.importers.files import existing_file, most_bytes, reads_files
from routesim.roads.importers.labels import decode_label, encode_label
from routesim.roads.network import RoadNetwork
from routesim.roads.signal_times import SignalTimes
from routesim.storage.files import whole_file

FORMAT = "routesim-network-1"
_SCALES = (1, 10, 100, 1000, 10_000_000)
_TIMES = "signal_times_"
_BANS = "bans_"
_WHOLE = ("tails", "heads", "keys", "shape_offsets")
# The header of one row of numbers, as NumPy writes it. NumPy's own reader hands whatever it finds to Python's parser.
_HEADER = re.compile(
    rb"\{'descr': '([<>|][biuf]\d{1,2})', 'fortran_order': (?:False|True), 'shape': \((\d{1,18}),\), \} *\n"
)
_MAGIC = b"\x93NUMPY\x01\x00"
# A regular grid packs a thousandfold, and what holds so much still fits into the memory of a small machine.
_HARMLESS_BYTES = 128 * 2**20


def save(network: RoadNetwork, path: str | Path) -> None:
    """Write a network so that `load` gives the same one back."""
    arrays: dict[str, Any] = {}
    header: dict[str, Any] = {
        "format": FORMAT, "name": network.name, "crs": network.crs, "attribution": network.attribution,
        "bans_known": network.bans_known,
    }  # fmt: skip
    if network.left_out:
        header["left_out"] = dict(network.left_out)
    arrays["header"] = _text_array(header)
    if all(type(label) is int and abs(label) < 2**62 for label in network.labels):
        arrays["labels"] = np.diff(np.array(network.labels, dtype=np.int64), prepend=np.int64(0))
    else:
        arrays["labels"] = _text_array([encode_label(label) for label in network.labels])
    for column in _WHOLE:
        arrays[column] = _narrow(np.diff(getattr(network, column).astype(np.int64), prepend=np.int64(0)))
    for column, values in _floats_of(network).items():
        arrays.update(_pack(column, values))
    for column in ("names", "highways"):
        texts: tuple[str, ...] = getattr(network, column)
        table = {text: code for code, text in enumerate(dict.fromkeys(texts))}
        arrays[f"{column}_table"] = _text_array(list(table))
        arrays[f"{column}_codes"] = _narrow(np.array([table[text] for text in texts], dtype=np.int64))
    arrays["imputed_bits"] = network.imputed_bits
    arrays["no_through"] = np.packbits(network.no_through)
    if network.signals.any():
        arrays["signals"] = np.packbits(network.signals)
    if len(network.signal_times):
        arrays.update({_TIMES + column: values for column, values in network.signal_times.columns().items()})
    if network.bans:
        arrays[_BANS + "sizes"], arrays[_BANS + "edges"] = (_narrow(column) for column in rows_of(network.bans))
    with whole_file(path, NetworkError) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


@reads_files
def load(path: str | Path, *, max_bytes: int | None = None) -> RoadNetwork:
    """Read a network that `save` wrote."""
    file = existing_file(path, "routesim network (.npz)")
    try:
        with file.open("rb") as stream:
            return read(stream, str(file), max_bytes=max_bytes)
    except OSError as error:
        raise NetworkError(f"cannot read {file}: {error}") from None


def read(stream: IO[bytes], where: str, *, max_bytes: int | None = None) -> RoadNetwork:
    """Read a network from an open file; `where` names it in errors."""
    try:
        return _build(read_arrays(stream, max_bytes))
    except NetworkError as error:
        raise NetworkError(f"{where}: {error}") from None
    except (
        KeyError, ValueError, TypeError, IndexError, OverflowError, EOFError, RecursionError, NotImplementedError,
        RuntimeError, zipfile.BadZipFile, zlib.error, struct.error,
    ) as error:  # fmt: skip
        raise NetworkError(f"{where} is no network saved by routesim, or is damaged: {error}") from None


def _build(arrays: dict[str, NDArray[Any]]) -> RoadNetwork:
    header = _texts(arrays["header"])
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise NetworkError(f"the format must be {FORMAT}; it may come from another version of routesim")
    stored = arrays["labels"]
    labels: tuple[Any, ...]
    if stored.dtype == np.uint8:
        labels = tuple(decode_label(text) for text in _texts(stored))
    elif stored.dtype == np.int64:
        labels = tuple(np.cumsum(stored).tolist())
    else:
        raise NetworkError(f"labels must be texts or 64-bit whole numbers, got {stored.dtype}")
    whole: dict[str, Any] = {column: np.cumsum(_integers(column, arrays)) for column in _WHOLE}
    n_nodes, n_edges = len(labels), len(whole["tails"])
    columns = (*EDGE_NUMBERS, "x", "y", "shape_x", "shape_y")
    numbers: dict[str, Any] = {column: _unpack(column, arrays) for column in columns}
    texts: dict[str, Any] = {}
    for column in ("names", "highways"):
        table, codes = _texts(arrays[f"{column}_table"]), arrays[f"{column}_codes"].tolist()
        if not isinstance(table, list) or len(codes) != n_edges or (codes and min(codes) < 0):
            raise NetworkError(f"{column} do not fit the edges")
        texts[column] = tuple(table[code] for code in codes)
    shape_x, shape_y = numbers.pop("shape_x"), numbers.pop("shape_y")
    # Files of networks without signals, as all were once, do not speak of them.
    signals = arrays.get("signals", np.zeros_like(arrays["no_through"]))
    times = {name.removeprefix(_TIMES): values for name, values in arrays.items() if name.startswith(_TIMES)}
    # Files from before networks knew bans do not speak of them.
    none = np.empty(0, dtype=np.int64)
    bans = Bans.of_rows(
        arrays.get(_BANS + "sizes", none), arrays.get(_BANS + "edges", none), known=header.get("bans_known", False)
    )
    return RoadNetwork(
        labels=labels,
        imputed_bits=arrays["imputed_bits"],
        no_through=_truths(arrays["no_through"], n_nodes),
        signals=_truths(signals, n_nodes),
        signal_times=SignalTimes(**times),
        shape_xy=np.column_stack((shape_x, shape_y)),
        crs=header["crs"],
        name=header["name"],
        attribution=header["attribution"],
        left_out=header.get("left_out", {}),
        **bans.columns,
        **texts,
        **whole,
        **numbers,
    )


def _truths(packed: NDArray[Any], n: int) -> NDArray[np.bool_]:
    # NumPy would fill up a row that is too short, an empty one with whatever is in memory.
    if len(packed) != (n + 7) // 8:
        raise NetworkError(f"{n} truth values take {(n + 7) // 8} bytes, got {len(packed)}")
    return np.unpackbits(packed, count=n).astype(np.bool_)


def _floats_of(network: RoadNetwork) -> dict[str, Floats]:
    columns: dict[str, Floats] = {column: getattr(network, column) for column in EDGE_NUMBERS}
    columns |= {"x": network.x, "y": network.y}
    return columns | {"shape_x": network.shape_xy[:, 0], "shape_y": network.shape_xy[:, 1]}


def _pack(column: str, values: Floats) -> dict[str, NDArray[Any]]:
    """Store a column as differences on the coarsest decimal grid that keeps it exact, else as it is."""
    if len(values) and np.isfinite(values).all() and np.abs(values).max() < 2**52 / _SCALES[-1]:
        for scale in _SCALES:
            grid = np.rint(values * scale)
            # -0.0 and 0.0 compare equal and are not the same bits, so look at the bits.
            if np.array_equal((grid.astype(np.int64) / scale).view(np.int64), values.view(np.int64)):
                steps = np.diff(grid.astype(np.int64), prepend=np.int64(0))
                return {f"{column}_steps": _narrow(steps), f"{column}_scale": np.array([scale])}
    return {column: np.ascontiguousarray(values)}


def _unpack(column: str, arrays: dict[str, NDArray[Any]]) -> Floats:
    if column in arrays:
        return arrays[column].astype(np.float64)
    scale = int(arrays[f"{column}_scale"][0])
    if scale not in _SCALES:
        raise NetworkError(f"{column} has a grid of {scale}, expected one of {_SCALES}")
    return np.asarray(np.cumsum(_integers(f"{column}_steps", arrays)) / scale, dtype=np.float64)


def _integers(column: str, arrays: dict[str, NDArray[Any]]) -> Ints:
    """Return a column that must hold whole numbers; others would become arbitrary ones."""
    if arrays[column].dtype.kind not in "iu":
        raise NetworkError(f"{column} must be whole numbers, got {arrays[column].dtype}")
    return arrays[column].astype(np.int64)


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in the smallest type that holds them."""
    if len(values) == 0:
        return values.astype(np.int8)
    low, high = int(values.min()), int(values.max())
    for dtype in (np.int8, np.int16, np.int32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return values.astype(dtype)
    return values


def _text_array(value: Sequence[str] | dict[str, Any]) -> NDArray[np.uint8]:
    # Escaped, so that any text at all survives, also one no encoding knows.
    return np.frombuffer(json.dumps(value).encode("ascii"), dtype=np.uint8)


def _texts(array: NDArray[Any]) -> Any:
    if array.dtype != np.uint8:
        raise NetworkError(f"texts must be stored as bytes, got {array.dtype}")
    return json.loads(array.tobytes().decode("ascii"))


def read_arrays(stream: IO[bytes], max_bytes: int | None = None) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file, each one row of numbers, after a look at their sizes."""
    limit = most_bytes(stream.seek(0, os.SEEK_END), max_bytes, harmless=_HARMLESS_BYTES)
    arrays: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        if len(members) > 64 or sum(member.file_size for member in members) > limit:
            raise NetworkError(f"holds more than {limit} bytes or 64 arrays; raise max_bytes if you trust it")
        for member in members:
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise NetworkError(f"array {member.filename!r:.80} is packed in a way NumPy does not use")
            with archive.open(member) as packed:
                raw = packed.read(member.file_size + 1)
            arrays[member.filename.removesuffix(".npy")] = _array(raw, member.filename)
    return arrays


def _array(raw: bytes, name: str) -> NDArray[Any]:
    if raw[:8] != _MAGIC:
        raise NetworkError(f"array {name!r:.80} is not in version 1.0 of NumPy's format")
    start = 10 + int.from_bytes(raw[8:10], "little")
    header = _HEADER.fullmatch(raw, 10, min(start, len(raw)))
    if header is None:
        raise NetworkError(f"array {name!r:.80} must be one row of numbers, its header says {raw[10:start]!r:.120}")
    dtype = np.dtype(header[1].decode())
    if int(header[2]) * dtype.itemsize != len(raw) - start:
        raise NetworkError(f"array {name!r:.80} must be one row of numbers that fills it")
    return np.frombuffer(raw, dtype=dtype, offset=start)
