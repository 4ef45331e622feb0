"""A GeoPackage with a curve where a line is expected, which shapely does not read, is refused in one line."""

import sqlite3
from pathlib import Path

import pytest

import routesim as rs
from routesim.errors import NetworkError

LINE, CURVE = (kind.to_bytes(4, "little") for kind in (2, 8))


def test_a_curve_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "town.gpkg"
    rs.load_city("cologne").to_geopackage(file)
    base = sqlite3.connect(file)
    for (trigger,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        base.execute(f"DROP TRIGGER {trigger}")
    column = base.execute("SELECT column_name FROM gpkg_geometry_columns WHERE table_name = 'edges'").fetchone()[0]
    select, update = f"SELECT rowid, {column} FROM edges", f"UPDATE edges SET {column} = ? WHERE rowid = ?"  # noqa: S608
    row, stored = base.execute(select).fetchone()
    assert stored.count(b"\x01" + LINE) == 1  # little-endian, a line
    base.execute(update, (stored.replace(b"\x01" + LINE, b"\x01" + CURVE), row))
    base.commit()
    base.close()
    with pytest.raises(NetworkError, match="must hold geometries") as refused:
        rs.RoadNetwork.from_geopackage(file)
    assert "\n" not in str(refused.value)
