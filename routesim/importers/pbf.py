"""The frame of a PBF file: its blobs walked through, their sizes summed before any is decompressed."""

from pathlib import Path
from typing import IO

from routesim.errors import NetworkError

# The limits of the format itself.
_MAX_HEADER_BYTES = 64 * 2**10
_MAX_BLOB_BYTES = 32 * 2**20


def check_blobs(file: Path, max_bytes: int) -> None:
    """Refuse a file that breaks off, is no PBF, or would decompress to more than `max_bytes`."""
    total = 0
    try:
        with file.open("rb") as stream:
            size = file.stat().st_size
            while (at := stream.tell()) < size:
                where = f"{file} byte {at}"
                header_size = int.from_bytes(_exactly(stream, 4, where), "big")
                if header_size > _MAX_HEADER_BYTES:
                    raise NetworkError(f"{where}: no PBF of OpenStreetMap, a blob's header claims {header_size} bytes")
                header = _fields(_exactly(stream, header_size, where), where)
                if at == 0 and header.get(1) != b"OSMHeader":
                    raise NetworkError(f"{where}: no PBF of OpenStreetMap, it does not begin with a header")
                blob_size = header.get(3)
                if not isinstance(blob_size, int) or blob_size > _MAX_BLOB_BYTES:
                    raise NetworkError(
                        f"{where}: a blob must state a size up to {_MAX_BLOB_BYTES} bytes, got {blob_size!r}"
                    )
                blob = _fields(_exactly(stream, blob_size, where), where)
                raw_size = blob.get(2, blob_size)
                if not isinstance(raw_size, int) or raw_size > _MAX_BLOB_BYTES:
                    raise NetworkError(f"{where}: a blob may hold {_MAX_BLOB_BYTES} bytes, claims {raw_size!r:.40}")
                total += max(raw_size, blob_size)
                if total > max_bytes:
                    raise NetworkError(
                        f"{file} holds more than {max_bytes} bytes once decompressed; raise max_bytes if you trust it"
                    )
    except OSError as error:
        raise NetworkError(f"cannot read {file}: {error}") from None


def _exactly(stream: IO[bytes], n: int, where: str) -> bytes:
    data = stream.read(n)
    if len(data) < n:
        raise NetworkError(f"{where}: the file breaks off in the middle of a blob, {n - len(data)} bytes are missing")
    return data


def _fields(message: bytes, where: str) -> dict[int, int | bytes]:
    """Return the fields of a protocol-buffer message, of repeated ones the last."""
    fields: dict[int, int | bytes] = {}
    at = 0
    while at < len(message):
        tag, at = _varint(message, at, where)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(message, at, where)
            fields[tag >> 3] = value
        elif kind == 2:
            length, at = _varint(message, at, where)
            if at + length > len(message):
                raise NetworkError(f"{where}: a blob's field is longer than the blob")
            fields[tag >> 3] = message[at : at + length]
            at += length
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise NetworkError(f"{where}: a blob holds a field of unknown kind {kind}")
    return fields


def _varint(message: bytes, at: int, where: str) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise NetworkError(f"{where}: a blob holds a number that does not end")
