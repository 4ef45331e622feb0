"""The cells of a table from outside as texts, and what is wrong with one of them, as a spreadsheet numbers its rows."""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats
from routesim.checks import LATEST_S
from routesim.errors import InputError, NetworkError, ResultsError
from routesim.registry import nearest
from routesim.roads.importers.files import read_text
from routesim.storage import reading
from routesim.storage.reading import one_line

_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?", re.ASCII)
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?", re.ASCII)
_LONGEST = 700
_MOST_PARTS = 10_000


@dataclass(frozen=True)
class Cells:
    """Columns of texts by name; `rows` are the numbers that a spreadsheet gives the rows, the header being row 1."""

    file: str
    columns: Mapping[str, Sequence[str]]
    rows: Sequence[int]

    def has(self, column: str) -> bool:
        """Tell whether the table has a column."""
        return column in self.columns

    def column(self, name: str, purpose: str = "") -> Sequence[str]:
        """Return a column, or say that it is missing."""
        if name not in self.columns:
            have = ", ".join(self.columns)
            raise InputError(
                one_line(
                    f"{self.file} row 1: a column {name!r} is needed{f' ({purpose})' if purpose else ''}; there are "
                    f"{have:.200}{nearest(name, self.columns)}",
                    _LONGEST,
                )
            )
        return self.columns[name]

    def mistake(self, place: int, column: str, what: str, fix: str) -> InputError:
        """Return the error that a cell makes; `place` counts rows from 0."""
        said = f"{self.file} row {self.rows[place]}, column {column}: the value {what}; {fix}"
        return InputError(one_line(said, _LONGEST))

    def numbers(self, name: str, unit: str = "") -> Floats:
        """Return a column of finite numbers."""
        texts = self.column(name)
        try:
            values = np.array([float(text) for text in texts], dtype=np.float64)
        except ValueError:
            values = np.array([_number(text) for text in texts], dtype=np.float64)
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise self._no_number(int(wrong[0]), name, unit)
        return values

    def seconds(self, name: str) -> Floats:
        """Return a column of times in seconds."""
        values = self.numbers(name, "seconds")
        wrong = np.flatnonzero((values < 0) | (values > LATEST_S))
        if len(wrong):
            row = int(wrong[0])
            fix = "count seconds from the first day of the demand"
            raise self.mistake(row, name, f"is {values[row]:g}, outside 0 to {LATEST_S:g} s", fix)
        return values

    def weights(self, place: int, otherwise: Floats) -> Floats:
        """Return the weights of a row's `profile`, which may be empty."""
        text = self.columns["profile"][place] if self.has("profile") else ""
        if not text:
            return otherwise
        try:
            return profile_weights([float(part) for part in text.replace(";", " ").split()])
        except ValueError:
            fix = "list weights of at least 0, not all of them 0, with semicolons between, as in 1;3;1"
            raise self.mistake(place, "profile", f"is {text!r:.40}", fix) from None

    def _no_number(self, place: int, name: str, unit: str) -> InputError:
        text = self.columns[name][place]
        what, fix = f"is {text!r:.40}, which is no finite number", f"give a number{f' of {unit}' if unit else ''}"
        clock = _CLOCK.fullmatch(text)
        if not text:
            what, fix = "is empty", f"{fix}, or remove the row"
        elif clock and unit == "seconds":
            hours, minutes, left = (int(part or 0) for part in clock.groups())
            since = hours * 3600 + minutes * 60 + left
            what, fix = f"is {text!r}, a time of day", f"write seconds from midnight, {since}"
        elif _THOUSANDS.fullmatch(text):
            fix = f"write {text.replace(',', '')}, or {text.replace(',', '.', 1)} if the comma is the decimal point"
        elif math.isfinite(_number(text.replace(",", "."))):
            fix = f"write it with a point, {text.replace(',', '.')}"
        return self.mistake(place, name, what, fix)


def read_cells(path: str | Path) -> Cells:
    """Read a .csv file (also .csv.gz), with commas, semicolons or tabs between its values, or a .parquet file."""
    file = str(path)
    if file.lower().endswith(".parquet"):
        return _parquet(file)
    try:
        text = read_text(path, "demand", max_bytes=None)
    except NetworkError as problem:
        fix = '; save it as "CSV UTF-8"' if "UTF-8" in str(problem) else ""
        raise InputError(one_line(f"cannot read the table {problem}{fix}", _LONGEST)) from None
    header, _, _ = text.partition("\n")
    separator = max(",;\t", key=header.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    names: list[str] = []
    rows: list[int] = []
    values: list[list[str]] = []
    try:
        for number, row in enumerate(reader, start=1):
            if number == 1:
                names = _header(file, row)
            elif any(cell.strip() for cell in row):
                if len(row) != len(names):
                    raise InputError(
                        f"{file} row {number} has {len(row)} values, and row 1 has {len(names)} columns; put a value "
                        "that contains the separator in double quotes"
                    )
                rows.append(number)
                values.append(row)
    except csv.Error as problem:
        raise InputError(one_line(f"{file} row {len(rows) + 2} is not CSV: {problem}", _LONGEST)) from None
    if not rows:
        raise InputError(f"{file} has no rows below its header; a table of demand has a row for each trip or rate")
    columns = {name: [row[place].strip() for row in values] for place, name in enumerate(names)}
    return Cells(file, columns, rows)


def profile_weights(profile: ArrayLike) -> Floats:
    """Return the weights of equal parts of a time."""
    weights = np.array(profile, dtype=np.float64)
    bad = weights.ndim != 1 or len(weights) > _MOST_PARTS or not np.isfinite(weights).all() or (weights < 0).any()
    if bad or not weights.sum() > 0:
        raise InputError(f"a profile lists weights of at least 0, not all of them 0, got {profile!r:.80}")
    return weights


def _header(file: str, row: Sequence[str]) -> list[str]:
    names = [name.strip().lower() for name in row]
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{file} row 1 names the column {twice!r:.40} twice; remove one of them")
    return names


def _parquet(file: str) -> Cells:
    try:
        table = reading.read_table(Path(file))
    except (ResultsError, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as problem:
        raise InputError(one_line(f"cannot read the table {file}: {problem}", _LONGEST)) from None
    names = _header(file, table.column_names)
    columns = {
        name: ["" if cell is None else str(cell).strip() for cell in table.column(place).to_pylist()]
        for place, name in enumerate(names)
    }
    if not table.num_rows:
        raise InputError(f"{file} has no rows; a table of demand has a row for each trip or rate")
    return Cells(file, columns, range(2, table.num_rows + 2))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
