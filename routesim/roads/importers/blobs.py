"""The frame of a PBF file: its blobs, found, checked and unpacked."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from routesim.errors import NetworkError
from routesim.roads.importers.files import MAX_STREAM_BYTES, most_bytes, too_large
from routesim.roads.importers.wire import fields_of, only_dense

# The limits of the format itself.
_MAX_HEADER_BYTES = 64 * 2**10
_MAX_BLOB_BYTES = 32 * 2**20
_FEATURES = {b"OsmSchema-V0.6", b"DenseNodes"}
_PEEK_BYTES = 2**15


def walk(file: Path, max_bytes: int | None) -> Iterator[tuple[int, int]]:
    """Yield where each blob of data begins and how long it is, and refuse a file that promises too much."""
    total = 0
    try:
        with file.open("rb") as stream:
            size = file.stat().st_size
            limit = most_bytes(size, max_bytes, default=MAX_STREAM_BYTES)
            while (at := stream.tell()) < size:
                where = f"{file} byte {at}"
                header_size = int.from_bytes(exactly(stream, 4, where), "big")
                if header_size > _MAX_HEADER_BYTES:
                    raise NetworkError(f"{where}: no PBF of OpenStreetMap, a header claims {header_size} bytes")
                kind, blob_size = _blob_header(exactly(stream, header_size, where), where)
                if (kind == b"OSMHeader") != (at == 0):
                    raise NetworkError(f"{where}: a PBF of OpenStreetMap begins with its one header, got {kind!r:.30}")
                begin = stream.tell()
                blob = exactly(stream, blob_size, where)
                total += max(blob_size, _stated_size(blob, where))
                if total > limit:
                    raise too_large(file, limit)
                if at == 0:
                    _check_header(blob, where)
                elif kind == b"OSMData":
                    yield begin, blob_size
    except OSError as error:
        raise NetworkError(f"cannot read {file}: {error}") from None


def _blob_header(content: bytes, where: str) -> tuple[bytes, int]:
    fields = _single(content, where, numbers=(3,))
    size = fields[3][0] if 3 in fields else -1
    if not 0 <= size <= _MAX_BLOB_BYTES:
        raise NetworkError(f"{where}: a blob must state a size up to {_MAX_BLOB_BYTES} bytes, got {size}")
    return content[slice(*fields.get(1, (0, 0)))], size


def _stated_size(blob: bytes, where: str) -> int:
    size = _single(blob, where, numbers=(2,)).get(2, (0, -1))[0]
    if not 0 <= size <= _MAX_BLOB_BYTES:
        raise NetworkError(f"{where}: a blob may hold {_MAX_BLOB_BYTES} bytes, claims {size}")
    return size


def _check_header(blob: bytes, where: str) -> None:
    try:
        content = unpacked(blob)
        features = {content[start:end] for number, start, end in _fields(content, where) if number == 4 and end >= 0}
    except ValueError as error:
        raise NetworkError(f"{where}: the header is damaged: {error}") from None
    if features - _FEATURES:
        raise NetworkError(f"{where}: the file needs {features - _FEATURES}, which is not supported")


def _fields(content: bytes, where: str) -> list[list[int]]:
    try:
        found: list[list[int]] = fields_of(np.frombuffer(content, dtype=np.uint8), 0, len(content)).tolist()
    except ValueError as error:
        raise NetworkError(f"{where}: damaged, or no PBF of OpenStreetMap: {error}") from None
    return found


def _single(content: bytes, where: str, *, numbers: tuple[int, ...]) -> dict[int, tuple[int, int]]:
    """Return where each field of a message lies that has every field once: these are `numbers`, the others lists."""
    found: dict[int, tuple[int, int]] = {}
    for number, start, end in _fields(content, where):
        if number in found:
            raise NetworkError(f"{where}: damaged, or no PBF of OpenStreetMap: field {number} is stated twice")
        if number > 0 and (end < 0) != (number in numbers):
            raise NetworkError(f"{where}: damaged, or no PBF of OpenStreetMap: field {number} is of another kind")
        found[number] = start, end
    return found


def unpacked(blob: bytes) -> bytes:
    """Return what a blob holds, which must be exactly as long as the blob says."""
    fields = _single(blob, "a blob", numbers=(2,))
    if 1 in fields:
        return blob[slice(*fields[1])]
    size = fields[2][0] if 2 in fields else 0
    if 3 in fields:
        content = _inflate(zlib.decompressobj(), blob[slice(*fields[3])], size)
    elif 4 in fields:
        content = _inflate(lzma.LZMADecompressor(memlimit=2**27), blob[slice(*fields[4])], size)
    else:
        raise ValueError("it is packed in a way other than zlib or lzma")
    if len(content) != size:
        raise ValueError(f"it states {size} bytes and holds another number")
    return content


def _inflate(tool: zlib._Decompress | lzma.LZMADecompressor, packed: bytes, size: int) -> bytes:
    try:
        return tool.decompress(packed, size + 1)
    except (zlib.error, lzma.LZMAError) as error:
        raise ValueError(str(error)) from None


def exactly(stream: IO[bytes], n: int, where: str) -> bytes:
    """Read `n` bytes, which must be there."""
    data = stream.read(n)
    if len(data) < n:
        raise NetworkError(f"{where}: the file breaks off within a blob, {n - len(data)} bytes are missing")
    return data


def holds_only_nodes(blob: bytes) -> bool:
    """Tell by its beginning whether a blob is one group of nodes and nothing else; False where that cannot be seen."""
    fields = _single(blob, "a blob", numbers=(2,))
    if 3 not in fields or 2 not in fields:
        return False
    begin = _begin(blob[slice(*fields[3])])
    return bool(only_dense(np.frombuffer(begin, dtype=np.uint8), fields[2][0]))


def _begin(packed: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(packed, _PEEK_BYTES)
    except zlib.error:
        return b""
