"""TNTP trip tables: the demand that goes with a TNTP network."""

import math
import re
from pathlib import Path
from typing import Any

from routesim.errors import NetworkError
from routesim.roads.importers.files import read_text, reads_files

_TOTAL = re.compile(r"<TOTAL OD FLOW>\s*([^\s<]+)", re.IGNORECASE)
_END = re.compile(r"<END OF METADATA>", re.IGNORECASE)
_PLACES = 1e-4  # relative difference between the trips and the total that is put down to printed decimals


@reads_files
def read_tntp_trips(path: str | Path, *, max_bytes: int | None = None) -> dict[str, list[Any]]:
    """Read a `*_trips.tntp` file as a table of origin, destination and vehicles, without trips from a zone to itself.

    The trips must add up to the total that the file states, so a file that breaks off is an error.
    """
    text = read_text(path, "TNTP trips", max_bytes=max_bytes)
    end = _END.search(text)
    if end is None:
        raise NetworkError(f"{path} has no line <END OF METADATA>; it is no TNTP trip table")
    table: dict[str, list[Any]] = {"origin": [], "destination": [], "vehicles": []}
    origin, total = None, 0.0
    first_line = text.count("\n", 0, end.end()) + 1
    for number, line in enumerate(text[end.end() :].splitlines(), first_line):
        content = line.strip()
        if not content or content.startswith("~"):
            continue
        if content.lower().startswith("origin"):
            origin = _zone(content[len("origin") :], path, number)
            continue
        if origin is None:
            raise NetworkError(f"{path} line {number}: trips come before the first origin: {content!r:.60}")
        for entry in filter(None, (part.strip() for part in content.split(";"))):
            zone, colon, amount = entry.partition(":")
            if not colon:
                raise NetworkError(f"{path} line {number}: expected 'destination : trips', got {entry!r:.60}")
            destination, vehicles = _zone(zone, path, number), _amount(amount, path, number)
            total += vehicles
            if vehicles > 0 and destination != origin:
                for column, value in (("origin", origin), ("destination", destination), ("vehicles", vehicles)):
                    table[column].append(value)
    stated = _TOTAL.search(text, 0, end.start())
    if stated and abs(_amount(stated[1], path, 1) - total) > _PLACES * max(total, 1.0):
        raise NetworkError(f"{path} announces {stated[1]} trips and holds {total:g}; it breaks off or is damaged")
    return table


def _zone(text: str, path: str | Path, number: int) -> int:
    try:
        return int(text)
    except ValueError:
        raise NetworkError(f"{path} line {number}: a zone must be a whole number, got {text.strip()!r:.40}") from None


def _amount(text: str, path: str | Path, number: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise NetworkError(f"{path} line {number}: trips must be a number of at least 0, got {text.strip()!r:.40}")
    return value
