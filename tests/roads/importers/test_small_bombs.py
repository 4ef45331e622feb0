"""Small files that would take minutes, gigabytes or a traceback: each is refused in one line that names it."""

import bz2
import gzip
import io
import json
import sqlite3
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from road_files import TNTP_NET, tricky_network

from routesim.demand.tntp import read_tntp_trips
from routesim.errors import NetworkError
from routesim.roads.network import RoadNetwork

DIGITS = "9" * 400


def read_alone(file: Path, seconds: float = 60.0, megabytes: int = 2048) -> str:
    """Read a file in a process of its own, within limits, and return what it says."""
    code = (
        "import resource, sys\nfrom routesim.errors import NetworkError\n"
        "from routesim.roads.importers import read_network\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({megabytes * 2**20},) * 2)\n"
        "try:\n    print(read_network(sys.argv[1]))\nexcept NetworkError as error:\n    print(error)\n"
    )
    command = [sys.executable, "-c", code, str(file)]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=seconds)
    assert run.returncode == 0, run.stderr[-500:]
    return run.stdout


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_a_file_that_grows_a_thousandfold_is_refused(
    ending: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """2 GiB of nodes, within the limit that large honest files need, end after 64 MiB."""
    file = tmp_path / f"n.osm{ending}"
    nodes = b'<node id="1" lat="0" lon="0"/>' * (2**24 // 30)
    file.write_bytes(pack(b"<osm>") + pack(nodes) * 127 + pack(b"</osm>"))
    assert file.stat().st_size < 2**23
    assert f"{file} holds more than {64 * 2**20} bytes once decompressed" in read_alone(file)


def test_one_that_grows_a_thousandfold_and_stays_small_is_read(tmp_path: Path) -> None:
    file = tmp_path / "n.osm.bz2"
    file.write_bytes(bz2.compress(b"<osm>" + b" " * 2**24 + b"</osm>"))
    with pytest.raises(NetworkError, match="no drivable road"):
        RoadNetwork.from_osm(file)


def test_own_files_that_grow_a_thousandfold_are_refused(tmp_path: Path) -> None:
    """A gigabyte of nodes at the same place, one byte each: 60 GB once they are labels."""
    file = tmp_path / "n.npz"
    tricky_network().save(file)
    with np.load(file) as arrays:
        content = {name: arrays[name] for name in arrays.files}
    content["labels"] = np.ones(2**28, dtype=np.int8)
    np.savez_compressed(file, **content)
    with pytest.raises(NetworkError, match="holds more than 134217728 bytes or 64 arrays; raise max_bytes"):
        RoadNetwork.from_file(file)
    content["labels"] = np.ones(2**10, dtype=np.int8)
    np.savez_compressed(file, **content)
    with pytest.raises(NetworkError, match="labels must be texts or 64-bit whole numbers, got int8"):
        RoadNetwork.from_file(file)


@pytest.mark.parametrize("table", ["edges", "nodes", "network"])
@pytest.mark.parametrize(
    "view",
    [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS fid, hidden.* FROM n, hidden",
        "SELECT * FROM hidden",
    ],
)
def test_a_geopackage_whose_table_is_a_view_is_refused(table: str, view: str, tmp_path: Path) -> None:
    file = tmp_path / "n.gpkg"
    tricky_network().to_geopackage(file)
    with sqlite3.connect(file) as base:
        for (trigger,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            base.execute(f'DROP TRIGGER "{trigger}"')
        base.execute(f'ALTER TABLE "{table}" RENAME TO hidden')
        base.execute(f'CREATE VIEW "{table}" AS {view}')
        base.execute("UPDATE gpkg_ogr_contents SET feature_count = NULL")
    base.close()
    assert f"{file}: it needs a table {table} as to_geopackage writes it, and no view" in read_alone(file)


def test_a_geopackage_whose_column_is_computed_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "n.gpkg"
    tricky_network().to_geopackage(file)
    with sqlite3.connect(file) as base:
        base.execute("DROP TABLE network")
        base.execute("CREATE TABLE network (fid, format TEXT, about TEXT AS (hex(zeroblob(1000))))")
        base.execute("INSERT INTO network (fid, format) VALUES (1, 'routesim-geopackage-1')")
    base.close()
    assert "its table network needs a plain column about" in read_alone(file)


def test_a_geopackage_whose_pages_lead_to_each_other_ends(tmp_path: Path) -> None:
    """Six levels of pages that point to the next one 400 times each would be 4e15 rows."""
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE network (format TEXT, about TEXT)")
    base.executemany("INSERT INTO network VALUES ('routesim-geopackage-1', ?)", [("x" * 900,)] * 9)
    content = bytearray(base.serialize())
    root = base.execute("SELECT rootpage FROM sqlite_master").fetchone()[0]
    base.close()
    size = struct.unpack(">H", content[16:18])[0]
    last = len(content) // size
    for level in range(6):
        below = last + 1 + level + 1 if level < 5 else last
        cells = 400
        page = bytearray(size)
        body = size - 6 * cells
        page[0] = 5
        page[3:5], page[5:7] = struct.pack(">H", cells), struct.pack(">H", body)
        page[8:12] = struct.pack(">I", below)
        for i in range(cells):
            page[12 + 2 * i : 14 + 2 * i] = struct.pack(">H", body + 6 * i)
            page[body + 6 * i : body + 6 * i + 6] = struct.pack(">I", below) + bytes([i >> 7 | 0x80, i & 0x7F])
        content += page
    content[(root - 1) * size : root * size] = content[last * size : (last + 1) * size]
    content[28:32] = struct.pack(">I", len(content) // size)
    (tmp_path / "n.gpkg").write_bytes(content)
    said = read_alone(tmp_path / "n.gpkg")
    assert "n.gpkg" in said
    assert "more than fits" in said or "malformed" in said or "interrupted" in said


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': ((",
        b"1if 1else 2",
        b"(" * 3000,
        b"'" + b"\\N{",
        b"{'descr': '<f8', 'shape': 9}",
        b"{[",
        b"\x00",
        b"",
    ],
)
def test_headers_of_arrays_that_do_not_parse(header: bytes, tmp_path: Path) -> None:
    file = tmp_path / "n.npz"
    tricky_network().save(file)
    out = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            raw = old.read(name)
            if name == "tails.npy":
                raw = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n" + bytes(48)
            new.writestr(name, raw)
    file.write_bytes(out.getvalue())
    with pytest.raises(NetworkError, match=r"n\.npz: array 'tails\.npy' must be one row of numbers") as caught:
        RoadNetwork.from_file(file)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("column", ["tails", "x_steps", "header"])
def test_own_files_hold_whole_numbers_where_these_belong(column: str, tmp_path: Path) -> None:
    file = tmp_path / "n.npz"
    tricky_network().save(file)
    with np.load(file) as arrays:
        content = {name: arrays[name] for name in arrays.files}
    content.setdefault("x_steps", np.ones(1))
    content |= {"x_scale": np.array([1]), column: np.full(len(content[column]), np.nan)}
    content.pop("x", None)
    np.savez_compressed(file, **content)
    with pytest.raises(NetworkError, match=r"n\.npz: (tails|x_steps|texts) must be .*, got float64"):
        RoadNetwork.from_file(file)


def test_numbers_that_their_unit_makes_infinite_are_refused_without_a_warning(tmp_path: Path) -> None:
    net = tmp_path / "n.tntp"
    net.write_text(TNTP_NET.replace("<END", "<ORIGINAL HEADER>~ Length (km) Free Flow Time (min)\n<END"))
    assert RoadNetwork.from_tntp(net).n_edges == 4
    lines = net.read_text().splitlines()
    fields = lines[-1].split()
    fields[3] = "1e308"
    net.write_text("\n".join([*lines[:-1], " ".join(fields)]))
    with pytest.raises(NetworkError, match=r"n\.tntp.* finite"):
        RoadNetwork.from_tntp(net)


def test_a_geopackage_whose_texts_are_nested_without_end_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "n.gpkg"
    tricky_network().to_geopackage(file)
    with sqlite3.connect(file) as base:
        base.execute("UPDATE network SET about = ?", ("[" * 100_000,))
    base.close()
    with pytest.raises(NetworkError, match=r"n\.gpkg is nested too deeply"):
        RoadNetwork.from_geopackage(file)


@pytest.mark.parametrize("kind", ["long", "int", "string", "double"])
@pytest.mark.parametrize("attribute", ["x", "free_flow_s", "edge_index", "lanes", "no_through"])
def test_whole_numbers_of_400_digits_in_graphml(kind: str, attribute: str, tmp_path: Path) -> None:
    file = tmp_path / "n.graphml"
    place, way = (f'<data key="k">{DIGITS}</data>', "") if attribute in {"x", "no_through"} else ("", DIGITS)
    edge = f'<data key="k">{way}</data>' if way else ""
    file.write_text(
        f'<graphml><key id="k" attr.name="{attribute}" attr.type="{kind}"/>'
        '<key id="t" attr.name="travel_time" attr.type="double"/>'
        '<key id="w" attr.name="created_with" attr.type="string"/><graph><data key="w">routesim</data>'
        f'<node id="1">{place}</node><node id="2"/>'
        f'<edge source="1" target="2">{edge}<data key="t">60</data></edge></graph></graphml>'
    )
    try:
        assert RoadNetwork.from_graphml(file).n_edges == 1
    except NetworkError as error:
        assert str(file) in str(error)  # noqa: PT017
        assert attribute in {"x", "free_flow_s"}


@pytest.mark.parametrize("changed", ["id", "lon", "lat"])
@pytest.mark.parametrize("value", [DIGITS, "1e999", "-" + DIGITS, "9" * 5000])
def test_whole_numbers_of_400_digits_in_geojson(changed: str, value: str, tmp_path: Path) -> None:
    net, places = tmp_path / "n_net.tntp", tmp_path / "places.geojson"
    net.write_text(TNTP_NET)
    said = {"id": "1", "lon": "7", "lat": "50"} | {changed: value}
    point = f'"geometry": {{"coordinates": [{said["lon"]}, {said["lat"]}]}}'
    places.write_text(f'{{"features": [{{"properties": {{"id": {said["id"]}}}, {point}}}]}}')
    with pytest.raises(NetworkError, match=r"places\.geojson") as caught:
        RoadNetwork.from_tntp(net, places)
    assert len(str(caught.value)) < 1100
    assert str(caught.value).isprintable()


def test_values_whose_reading_took_the_square_of_their_length(tmp_path: Path) -> None:
    graphml = tmp_path / "n.graphml"
    graphml.write_text(
        '<graphml><key id="n" attr.name="name"/><key id="t" attr.name="travel_time"/>'
        '<graph><node id="1"/><node id="2"/>'
        f'<edge source="1" target="2"><data key="t">60</data><data key="n">[{chr(39)}a{chr(39)}, '
        + "'\\" * 2_000_000
        + "]</data></edge></graph></graphml>"
    )
    assert read_alone(graphml).strip() == "<RoadNetwork unnamed: 2 nodes, 1 edges>"
    tntp = tmp_path / "n.tntp"
    tntp.write_text(TNTP_NET.replace("<END", f"<ORIGINAL HEADER>{'Length (' * 500_000}\n<END"))
    assert read_alone(tntp).strip() == "<RoadNetwork n: 3 nodes, 4 edges>"


@pytest.mark.parametrize("label", ["--5", "9" * 5000, "-", "5-"])
def test_gmns_ids_that_only_look_like_numbers(label: str, tmp_path: Path) -> None:
    (tmp_path / "node.csv").write_text(f"node_id,x_coord,y_coord\n{label},7,50\n2,7.001,50\n")
    (tmp_path / "link.csv").write_text(f"from_node_id,to_node_id,length\n{label},2,71.5\n")
    assert RoadNetwork.from_gmns(tmp_path, length_unit="m").labels == (label, "2")


def test_messages_are_one_line_whatever_the_file_says(tmp_path: Path) -> None:
    trips = tmp_path / "n_trips.tntp"
    trips.write_text("<END OF METADATA>\nOrigin 1\n" + "\x1b[31m" * 5000)
    graphml = tmp_path / "n.graphml"
    crs = json.dumps("a\nb" * 9000)
    graphml.write_text(
        f'<graphml><key id="c" attr.name="crs"/><key id="x" attr.name="x"/><graph><data key="c">{crs}\n</data>'
        '<node id="1"><data key="x">1e13</data></node></graph></graphml>'
    )
    for read, file in ((read_tntp_trips, trips), (RoadNetwork.from_graphml, graphml)):
        with pytest.raises(NetworkError) as caught:
            read(file)
        assert str(caught.value).isprintable()
        assert file.name in str(caught.value)
        assert len(str(caught.value)) < 1100
