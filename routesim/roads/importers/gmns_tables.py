"""The tables of a GMNS folder, read row by row."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from routesim.errors import NetworkError
from routesim.roads.importers.files import read_text

Row = tuple[int, Mapping[str, str]]
_CAR_USES = {"auto", "car", "all", "c", "vehicle", "motor_vehicle", "sov", "hov"}


def read_table(file: Path, needed: Sequence[str], max_bytes: int | None, most_rows: int | None = None) -> list[Row]:
    """Return the rows of a table with their lines; it has these columns, and no more rows than allowed."""
    text = read_text(file, "GMNS", max_bytes=max_bytes)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        header = [column.strip().lower() for column in next(reader, [])]
        for column in needed:
            if column not in header:
                raise NetworkError(f"{file} line 1 needs a column {column}, got {', '.join(header)[:200]}")
        rows: list[Row] = []
        for row in reader:
            if not any(row):
                continue
            if len(row) != len(header):
                raise NetworkError(f"{file} line {reader.line_num}: {len(header)} values expected, got {len(row)}")
            if len(rows) == most_rows:
                raise NetworkError(f"{file} line {reader.line_num}: the table may hold at most {most_rows} rows")
            rows.append((reader.line_num, dict(zip(header, row, strict=True))))
    except csv.Error as error:
        raise NetworkError(f"{file} line {reader.line_num} is not CSV: {error}") from None
    return rows


def is_for_cars(row: Mapping[str, str]) -> bool:
    """Tell whether the `allowed_uses` of a row name cars, or nobody."""
    uses = {use.strip().lower() for use in row.get("allowed_uses", "").replace(";", ",").split(",")} - {""}
    return not uses or bool(uses & _CAR_USES)


def plain_id(text: str) -> str:
    """Return an id as written, without the ".0" that tables with gaps get from spreadsheets."""
    text = text.strip()
    return text[:-2] if text.endswith(".0") and text[:-2].isdecimal() else text


def number(row: Mapping[str, str], column: str, where: str, *, signed: bool = False) -> float:
    """Return the number in a column of a row, NaN where there is none."""
    text = row.get(column, "").strip()
    if not text:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        raise NetworkError(f"{where}: {column} must be a number, got {text!r:.40}") from None
    if not math.isfinite(value) or (value < 0 and not signed):
        rule = "a finite number" if signed else "a finite number, at least 0"
        raise NetworkError(f"{where}: {column} must be {rule}, got {text!r:.40}")
    return value


def whole_number(row: Mapping[str, str], column: str, where: str) -> int:
    """Return the whole number in a column of a row."""
    value = number(row, column, where)
    if not (value.is_integer() and value < 2**31):
        raise NetworkError(f"{where}: {column} must be a whole number, at least 0, got {row.get(column, '')!r:.40}")
    return int(value)
