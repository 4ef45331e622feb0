"""GeoPackage, as `to_geopackage` writes it -> RoadNetwork, read as the SQLite file that it is.

The readers of other packages follow whatever a file calls a table. A view can count for ever, a generated column can
compute for ever, and the pages of a damaged file can lead in circles. Here only plain tables are read, and no more
rows, bytes and steps of SQLite than an honest file of the size can hold.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routesim.errors import NetworkError
from routesim.roads.columns import EDGE_NUMBERS
from routesim.roads.importers.bans import Bans
from routesim.roads.importers.files import MAX_BYTES, existing_file, reads_files
from routesim.roads.importers.labels import decode_label
from routesim.roads.importers.tables import GEOPACKAGE_FORMAT
from routesim.roads.network import RoadNetwork
from routesim.roads.signal_times import SignalTimes

_TIME_COLUMNS = tuple(column.name for column in fields(SignalTimes))
_EDGE_COLUMNS = ("tail", "head", "key", "name", "highway", "imputed_bits", *EDGE_NUMBERS)
# A row of a table takes at least this much of a file, and one byte of it at most so many steps of SQLite.
_LEAST_ROW_BYTES = 4
_STEPS = 10_000
_STEPS_PER_BYTE = 50
# How long the bounding box before a geometry is, by the bits of its flags that say so.
_BOX_BYTES = (0, 32, 48, 48, 64)


@reads_files
def from_geopackage(path: str | Path, *, max_bytes: int = MAX_BYTES) -> RoadNetwork:
    """Read what `to_geopackage` wrote."""
    file = existing_file(path, "GeoPackage", max_bytes=max_bytes)
    try:
        with file.open("rb") as stream:
            if stream.read(16) != b"SQLite format 3\x00":
                raise NetworkError("it does not begin as a GeoPackage does")
        with closing(_opened(file)) as base:
            return _rebuild(_PlainTables(base, file.stat().st_size))
    except NetworkError as error:
        raise NetworkError(f"{file}: {error}") from None
    except (sqlite3.Error, ValueError, KeyError, TypeError, IndexError, OverflowError, OSError) as error:
        raise NetworkError(f"{file} is no GeoPackage of a network, or is damaged: {error}") from None


def _opened(file: Path) -> sqlite3.Connection:
    size = file.stat().st_size
    # Without a journal beside it nobody is writing, and the file needs no locks, which take a writable folder.
    alone = not any(file.with_name(file.name + ending).exists() for ending in ("-wal", "-journal"))
    base = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro{'&immutable=1' if alone else ''}", uri=True)
    base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(size, 2**20))
    base.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 2**20)
    base.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    base.execute("PRAGMA trusted_schema = OFF")
    base.execute("PRAGMA cell_size_check = ON")
    left = 1000 + size * _STEPS_PER_BYTE // _STEPS

    def stop() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    base.set_progress_handler(stop, _STEPS)
    return base


class _PlainTables:
    """The tables of a GeoPackage, of which together no more is read than the file can hold."""

    def __init__(self, base: sqlite3.Connection, size: int) -> None:
        self.base = base
        self.rows_left, self.bytes_left = size // _LEAST_ROW_BYTES, 4 * size
        schema = base.execute("SELECT name, type, sql FROM sqlite_master").fetchall()
        self.names = {name for name, _, _ in schema}
        self.plain = {
            name
            for name, kind, sql in schema
            if kind == "table" and isinstance(sql, str) and sql.upper().startswith("CREATE TABLE")
        }

    def columns(self, table: str, wanted: Sequence[str]) -> dict[str, list[Any]]:
        """Return these columns of a plain table, in the order of its rows."""
        if table not in self.plain:
            raise NetworkError(f"it needs a table {table} as to_geopackage writes it, and no view in its place")
        known = self.kinds(table)
        for column in wanted:
            if known.get(column, 1) != 0:
                raise NetworkError(f"its table {table} needs a plain column {column} as to_geopackage writes it")
        columns: dict[str, list[Any]] = {column: [] for column in wanted}
        chosen = ", ".join(map(_quoted, wanted))
        for row in self.base.execute(f"SELECT {chosen} FROM {_quoted(table)} NOT INDEXED"):  # noqa: S608 - quoted
            self.rows_left -= 1
            self.bytes_left -= sum(len(value) for value in row if isinstance(value, str | bytes))
            if self.rows_left < 0 or self.bytes_left < 0:
                raise NetworkError(f"its table {table} claims to hold more than fits into the file")
            for values, value in zip(columns.values(), row, strict=True):
                values.append(value)
        return columns

    def kinds(self, table: str) -> dict[str, int]:
        """Return the columns of a table, with a number that tells plain ones (0) from hidden and computed ones."""
        return {str(row[1]): row[6] for row in self.base.execute(f"PRAGMA table_xinfo({_quoted(table)})")}

    def geometries(self, table: str, column: str, stored: Sequence[Any]) -> NDArray[Any]:
        """Return shapely's objects, None where there is none."""
        import shapely

        packed = [_well_known(value, table) for value in stored]
        try:
            return np.asarray(shapely.from_wkb(np.array([*packed, None], dtype=object)[:-1]), dtype=object)
        except (shapely.errors.GEOSException, NotImplementedError) as error:  # curves are not supported
            raise NetworkError(f"column {column} of table {table} must hold geometries: {error}") from None

    def geometry_column(self, table: str) -> str:
        rows = self.columns("gpkg_geometry_columns", ("table_name", "column_name"))
        for name, column in zip(*rows.values(), strict=True):
            if name == table and isinstance(column, str):
                return column
        raise NetworkError(f"it does not say which column of {table} holds the geometry")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _well_known(value: Any, table: str) -> bytes | None:
    """Return the well-known binary within a GeoPackage's geometry."""
    if value is None:
        return None
    if not isinstance(value, bytes) or len(value) < 8 or value[:2] != b"GP" or value[3] >> 1 & 7 >= len(_BOX_BYTES):
        raise NetworkError(f"a geometry in table {table} is not in the form of a GeoPackage")
    return value[8 + _BOX_BYTES[value[3] >> 1 & 7] :]


def _rebuild(tables: _PlainTables) -> RoadNetwork:
    import shapely

    about = tables.columns("network", ("format", "about"))
    if about["format"] != [GEOPACKAGE_FORMAT]:
        raise NetworkError(f"the format must be {GEOPACKAGE_FORMAT}")
    header = json.loads(about["about"][0])
    line, point = tables.geometry_column("edges"), tables.geometry_column("nodes")
    edges = tables.columns("edges", (*_EDGE_COLUMNS, line))
    # Files from before networks knew signals have no column for them.
    marks = ("no_through", "signals") if "signals" in tables.kinds("nodes") else ("no_through",)
    nodes = tables.columns("nodes", ("label", *marks, point))
    # Files from before networks knew programmes, and those of networks that know none, have no table for them.
    times = tables.columns("signal_times", _TIME_COLUMNS) if "signal_times" in tables.names else {}
    # So it is with bans.
    banned = tables.columns("banned_turns", ("ban", "edge")) if "banned_turns" in tables.names else {}
    lines = tables.geometries("edges", line, edges[line])
    points = tables.geometries("nodes", point, nodes[point])
    shape_xy, owners = shapely.get_coordinates(lines, return_index=True)
    offsets = np.zeros(len(lines) + 1, dtype=np.int64)
    np.cumsum(np.bincount(owners, minlength=len(lines)), out=offsets[1:])
    # Unknown numbers are NULL, which becomes NaN.
    numbers: dict[str, Any] = {column: np.array(edges[column], dtype=np.float64) for column in EDGE_NUMBERS}
    return RoadNetwork(
        labels=tuple(decode_label(text) for text in nodes["label"]),
        x=shapely.get_x(points),
        y=shapely.get_y(points),
        no_through=np.array(nodes["no_through"]),
        signals=np.array(nodes.get("signals", ()), dtype=np.bool_),
        signal_times=SignalTimes(**{column: np.array(values) for column, values in times.items()}),
        tails=np.array(edges["tail"]),
        heads=np.array(edges["head"]),
        keys=np.array(edges["key"]),
        names=tuple(edges["name"]),
        highways=tuple(edges["highway"]),
        imputed_bits=np.array(edges["imputed_bits"]),
        shape_xy=shape_xy,
        shape_offsets=offsets,
        crs=header["crs"],
        name=header["name"],
        attribution=header["attribution"],
        **_bans(banned, known=header.get("bans_known", False)).columns,
        left_out={},
        **numbers,
    )


def _bans(rows: Mapping[str, list[Any]], *, known: bool) -> Bans:
    """Return the bans of the rows, which stand together."""
    owner, edges = (np.array(rows.get(column, ()), dtype=None if rows else np.int64) for column in ("ban", "edge"))
    if owner.dtype.kind not in "iu" or not (np.diff(owner) >= 0).all():
        raise NetworkError("the column ban of its table banned_turns must hold whole numbers in ascending order")
    return Bans.of_rows(np.unique(owner, return_counts=True)[1], edges, known=known)
