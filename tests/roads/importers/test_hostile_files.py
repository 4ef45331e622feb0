"""Malformed and hostile files end in a NetworkError that names them: no hang, bounded memory."""

import gzip
import io
import os
import resource
import struct
import subprocess
import sys
import textwrap
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import osmium
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from road_files import GMNS_LINKS, GMNS_NODES, TNTP_NET, osm_grid, shared, tricky_network

from routesim.errors import NetworkError
from routesim.roads import importers
from routesim.roads.network import RoadNetwork

READERS: dict[str, Callable[[Path], RoadNetwork]] = {
    f"n{ending}": partial(importers.call, reader) for ending, (reader, _) in importers.FORMATS.items()
}


@pytest.mark.parametrize("name", READERS)
def test_nothing_a_folder_an_empty_file_and_noise(name: str, tmp_path: Path) -> None:
    read, file = READERS[name], tmp_path / name
    with pytest.raises(NetworkError, match="no file"):
        read(file)
    with pytest.raises(NetworkError, match="is a folder"):
        read(tmp_path)
    file.write_bytes(b"")
    with pytest.raises(NetworkError, match="is empty"):
        read(file)
    for noise in (
        b"\x00" * 1000,
        bytes(range(256)) * 8,
        b"<osm>",
        "<graphml>é".encode("latin-1"),
        b"PK\x03\x04" + b"x" * 99,
    ):
        file.write_bytes(noise)
        with pytest.raises(NetworkError, match=name.replace(".", r"\.")):
            read(file)


@pytest.mark.parametrize("path", ["a\x00b", None, 17])
def test_what_is_no_path(path: Any) -> None:
    with pytest.raises(NetworkError):
        RoadNetwork.from_osm(path)


def test_an_unknown_ending_is_named(tmp_path: Path) -> None:
    (tmp_path / "roads.shp").write_bytes(b"x")
    with pytest.raises(NetworkError, match=r"must end in \.osm"):
        RoadNetwork.from_osm(tmp_path / "roads.shp")


BOMB = """<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;">]>"""


@pytest.mark.parametrize(("name", "root"), [("n.osm", "osm"), ("n.graphml", "graphml")])
def test_entities_are_refused(name: str, root: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(f"{BOMB}<{root}>&d;</{root}>")
    with pytest.raises(NetworkError, match=rf"{name} line 1: a document type or entity declaration"):
        READERS[name](tmp_path / name)
    (tmp_path / name).write_text(f'<!DOCTYPE x SYSTEM "file:///etc/passwd"><{root}/>')
    with pytest.raises(NetworkError, match="document type"):
        READERS[name](tmp_path / name)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('lat="50.0000000"', 'lat="nan"', "line 3: node '1' needs a lat within ±90, got 'nan'"),
        ('lat="50.0000000"', 'lat="95"', "needs a lat within ±90"),
        ('lat="50.0000000"', "", "needs a lat within ±90, got ''"),
        ('lon="7.0000000"', 'lon="inf"', "needs a lon within ±180"),
        ('node id="1"', 'node id="one"', "<node> needs a whole number as its id"),
        ('node id="1"', f'node id="{2**63}"', "<node> needs a whole number as its id"),
        ('nd ref="1"', "nd", "<nd> needs a whole number as its ref"),
        ("</osm>", "", "is not XML"),
        ("</way>", "</wax>", "line .* is not XML: mismatched tag"),
        ('v="primary"', 'v="footway"', None),
        ("highway", "building", "no drivable road"),
        ("nd ref", "nd xref", "<nd> needs a whole number"),
        ("UTF-8", "UTF-99", "cannot be read|is not XML"),
        ("Straße", "Stra\udcffe", "is not XML|cannot be read"),
    ],
)
def test_mistakes_in_osm_xml_are_named_with_their_line(old: str, new: str, message: str | None, tmp_path: Path) -> None:
    text = osm_grid()
    assert old in text
    count = -1 if old in {"highway", "nd ref"} else 1
    (tmp_path / "n.osm").write_bytes(text.replace(old, new, count).encode("utf-8", "surrogateescape"))
    if message is None:
        assert RoadNetwork.from_osm(tmp_path / "n.osm").n_nodes > 1
        return
    with pytest.raises(NetworkError, match=message) as caught:
        RoadNetwork.from_osm(tmp_path / "n.osm")
    assert "n.osm" in str(caught.value)


def test_roads_whose_points_are_all_missing(tmp_path: Path) -> None:
    ways = [line for line in osm_grid().splitlines() if "<node" not in line]
    (tmp_path / "n.osm").write_text("\n".join(ways), encoding="utf-8")
    with pytest.raises(NetworkError, match="not one point of its roads is in the file"):
        RoadNetwork.from_osm(tmp_path / "n.osm")


def test_a_gzip_bomb_stops_at_the_limit(tmp_path: Path) -> None:
    bomb = tmp_path / "n.osm.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as stream:
        stream.write(b"<osm>")
        for _ in range(64):
            stream.write(b" " * 2**20)
    with pytest.raises(NetworkError, match="holds more than 1000000 bytes once decompressed; raise max_bytes"):
        RoadNetwork.from_osm(bomb, max_bytes=1_000_000)
    torn = tmp_path / "torn.osm.gz"
    torn.write_bytes(bomb.read_bytes()[:-20])
    with pytest.raises(NetworkError, match="breaks off or is damaged"):
        RoadNetwork.from_osm(torn)


def in_little_memory(code: str, megabytes: int = 1200) -> str:
    """Run code in a process that may not take more memory than this, and return what it printed."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * 2**20, megabytes * 2**20))

    start = "import sys\nfrom routesim.roads.network import RoadNetwork\nfrom routesim.errors import NetworkError\n"
    run = subprocess.run(
        [sys.executable, "-c", start + textwrap.dedent(code)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        preexec_fn=limit,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout


def test_hostile_xml_fits_into_little_memory(tmp_path: Path) -> None:
    attributes = "".join(f' a{i}="{"x" * 10}"' for i in range(1_000_000))
    (tmp_path / "wide.graphml").write_text(f"<graphml><node{attributes}/></graphml>")
    keys = "".join(f'<key id="k{i}" attr.name="k{i}" attr.type="string"/>' for i in range(200_000))
    (tmp_path / "keys.graphml").write_text(f"<graphml>{keys}</graphml>")
    data = "<data key='k'>v</data>" * 10
    (tmp_path / "undeclared.graphml").write_text(f"<graphml><graph><node id='1'>{data}</node></graph></graphml>")
    (tmp_path / "deep.graphml").write_text("<graphml>" + "<a>" * 1_000_000)
    values = "".join(f'<data key="k{i}">v</data>' for i in range(999)) * 1000
    keys = "".join(f'<key id="k{i}" attr.name="k{i}"/>' for i in range(999))
    (tmp_path / "values.graphml").write_text(f"<graphml>{keys}<graph><node id='1'>{values}</node></graph></graphml>")
    with gzip.open(tmp_path / "endless.osm.gz", "wb", compresslevel=1) as stream:
        stream.write(b"<osm><node id='")
        for _ in range(200):
            stream.write(b"1" * 2**20)
    printed = in_little_memory(f"""
        for name in ("wide.graphml", "keys.graphml", "undeclared.graphml", "deep.graphml"):
            try:
                print(RoadNetwork.from_graphml({str(tmp_path)!r} + "/" + name))
            except NetworkError as error:
                print(name, "->", error)
        print("values", RoadNetwork.from_graphml({str(tmp_path)!r} + "/values.graphml"))
        try:
            RoadNetwork.from_osm({str(tmp_path)!r} + "/endless.osm.gz")
        except NetworkError as error:
            print("endless", "->", error)
    """)
    for expected in (
        "one element longer than",
        "more than 1000 <key> elements",
        "which no <key> declares",
        "nested more than 64 deep",
        "values <RoadNetwork unnamed: 1 nodes, 0 edges>",
        "endless ->",
    ):
        assert expected in printed


def test_other_limits_can_be_met_and_raised(tmp_path: Path) -> None:
    file = tmp_path / "n.osm"
    file.write_text(osm_grid(), encoding="utf-8")
    with pytest.raises(NetworkError, match="more than 3 drivable ways; raise max_ways"):
        RoadNetwork.from_osm(file, max_ways=3)
    ways = osm_grid().replace('<nd ref="1"/>', '<nd ref="1"/><nd ref="3"/>' * 500, 1)
    file.write_text(ways, encoding="utf-8")
    with pytest.raises(NetworkError, match="more than 800 points of drivable ways"):
        RoadNetwork.from_osm(file, max_ways=40)
    many = "".join(f'<tag k="k{i}" v=""/>' for i in range(2000))
    file.write_text(osm_grid().replace("</way>", f"{many}</way>", 1), encoding="utf-8")
    with pytest.raises(NetworkError, match="more than 1000 tags on one way"):
        RoadNetwork.from_osm(file)
    tricky_network().to_geopackage(tmp_path / "n.gpkg")
    with pytest.raises(NetworkError, match="larger than 1000 bytes; raise max_bytes"):
        RoadNetwork.from_geopackage(tmp_path / "n.gpkg", max_bytes=1000)
    (tmp_path / "n.graphml").write_text(f"<graphml><key id='k'/><data key='k'>{'x' * 2**24}</data></graphml>")
    with pytest.raises(NetworkError, match="a value longer than"):
        RoadNetwork.from_graphml(tmp_path / "n.graphml")


def test_a_geopackage_that_points_elsewhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "n.gpkg").write_text("<OGRVRTDataSource><OGRVRTLayer name='edges'/></OGRVRTDataSource>")
    with pytest.raises(NetworkError, match="does not begin as a GeoPackage does"):
        RoadNetwork.from_geopackage(tmp_path / "n.gpkg")


def pbf_blob(kind: bytes, content: bytes, stated: int | None = None) -> bytes:
    """A blob of a PBF file, which may lie about how much it holds."""

    def number(value: int) -> bytes:
        out = b""
        while value > 0x7F:
            out += bytes([value & 0x7F | 0x80])
            value >>= 7
        return out + bytes([value])

    packed = zlib.compress(content)
    blob = b"\x10" + number(len(content) if stated is None else stated) + b"\x1a" + number(len(packed)) + packed
    header = b"\x0a" + number(len(kind)) + kind + b"\x18" + number(len(blob))
    return struct.pack(">I", len(header)) + header + blob


def test_pbf_bombs_and_lies(tmp_path: Path) -> None:
    head = pbf_blob(b"OSMHeader", b"\x22\x0eOsmSchema-V0.6")
    file = tmp_path / "n.osm.pbf"
    zeros = bytes(31 * 2**20)
    file.write_bytes(head + pbf_blob(b"OSMData", zeros) * 200)
    assert file.stat().st_size < 10 * 2**20
    with pytest.raises(NetworkError, match=rf"holds more than {100 * file.stat().st_size} bytes once decompressed"):
        RoadNetwork.from_osm(file)
    with pytest.raises(NetworkError, match="holds more than 2147483648 bytes once decompressed"):
        RoadNetwork.from_osm(file, max_bytes=2 * 2**30)
    file.write_bytes(head + pbf_blob(b"OSMData", zeros, stated=100))
    with pytest.raises(NetworkError, match="states 100 bytes and holds another number"):
        RoadNetwork.from_osm(file)
    file.write_bytes(head + pbf_blob(b"OSMData", b"", stated=2**40))
    with pytest.raises(NetworkError, match="a blob may hold 33554432 bytes, claims"):
        RoadNetwork.from_osm(file)
    file.write_bytes(pbf_blob(b"OSMHeader", b"\x22\x15HistoricalInformation"))
    with pytest.raises(NetworkError, match=r"HistoricalInformation.*not supported"):
        RoadNetwork.from_osm(file)
    file.write_bytes(head)
    with pytest.raises(NetworkError, match="no drivable road"):
        RoadNetwork.from_osm(file)


def test_a_pbf_that_breaks_off_names_the_place(tmp_path: Path) -> None:
    whole = shared("osm/andorra.osm.pbf").read_bytes()
    for length in (3, 50, 1000, len(whole) // 2, len(whole) - 1):
        (tmp_path / "n.osm.pbf").write_bytes(whole[:length])
        with pytest.raises(NetworkError, match=r"n\.osm\.pbf byte \d+: the file breaks off"):
            RoadNetwork.from_osm(tmp_path / "n.osm.pbf")


def small_pbf(folder: Path) -> bytes:
    """A PBF whose blobs are not compressed, so that a changed byte reaches the reader of messages."""
    source, target = folder / "whole.osm", folder / "whole.osm.pbf"
    source.write_text(osm_grid(), encoding="utf-8")
    with osmium.SimpleWriter(osmium.io.File(str(target), "pbf,pbf_compression=none")) as writer:
        for item in osmium.FileProcessor(str(source)):
            writer.add(item)
    return target.read_bytes()


def own_file(folder: Path) -> bytes:
    """An own file that is not compressed, with the check sums of its members as they should be."""
    tricky_network().save(folder / "whole.npz")
    stored = io.BytesIO()
    with zipfile.ZipFile(folder / "whole.npz") as packed, zipfile.ZipFile(stored, "w") as plain:
        for name in packed.namelist():
            plain.writestr(name, packed.read(name))
    return stored.getvalue()


def graphml(folder: Path) -> bytes:
    tricky_network().to_graphml(folder / "whole.graphml")
    return (folder / "whole.graphml").read_bytes()


def geopackage(folder: Path) -> bytes:
    tricky_network().to_geopackage(folder / "whole.gpkg")
    return (folder / "whole.gpkg").read_bytes()


WHOLE: dict[str, Callable[[Path], bytes]] = {
    "n.osm": lambda _: osm_grid().encode(),
    "n.osm.gz": lambda _: gzip.compress(osm_grid().encode()),
    "n.osm.pbf": small_pbf,
    "n.graphml": graphml,
    "n_net.tntp": lambda _: TNTP_NET.encode(),
    "n.npz": own_file,
    "n.gpkg": geopackage,
}


def mutated(content: bytes, changes: list[tuple[float, int, int]]) -> bytes:
    changed = bytearray(content)
    for place, how, value in changes:
        at = int(place * (len(changed) - 1))
        if how == 0:
            changed[at] = value
        elif how == 1:
            del changed[at : at + value]
        elif how == 2:
            changed[at:at] = bytes([value])
        else:
            changed[at] ^= 1 << (value % 8)
        if not changed:
            break
    return bytes(changed)


@pytest.mark.parametrize("name", WHOLE)
def test_any_change_of_bytes_gives_a_network_or_a_network_error(name: str, tmp_path: Path) -> None:
    content, file, outcomes = (
        WHOLE[name](tmp_path),
        tmp_path / name,
        {"network": 0, "refused": 0, "nameless": 0},
    )
    change = st.tuples(st.floats(0, 1), st.integers(0, 3), st.integers(0, 255))

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.lists(change, min_size=1, max_size=6))
    def check(changes: list[tuple[float, int, int]]) -> None:
        file.write_bytes(mutated(content, changes))
        try:
            assert importers.read_network(file).n_nodes > 0
            outcomes["network"] += 1
        except NetworkError as error:
            outcomes["refused" if file.name in str(error) else "nameless"] += 1

    check()
    assert outcomes["refused"] > 0
    assert outcomes["nameless"] == 0


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_change_of_gmns_tables(tmp_path: Path, data: st.DataObject) -> None:
    change = st.tuples(st.floats(0, 1), st.integers(0, 3), st.integers(0, 255))
    for name, text in (("node.csv", GMNS_NODES), ("link.csv", GMNS_LINKS)):
        changes = data.draw(st.lists(change, max_size=3))
        (tmp_path / name).write_bytes(mutated(text.encode(), changes))
    try:
        assert RoadNetwork.from_gmns(tmp_path).n_nodes > 0
    except NetworkError as error:
        assert ".csv" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("member", "content", "message"),
    [
        ("length_m", np.array([1.0]), "length_m must have 6 values"),
        ("tails_", None, None),
        ("tails", np.array([[1, 2]]), "one row of numbers"),
        ("tails", np.array([99] * 6), "node indices"),
        ("names_codes", np.array([99] * 6), "damaged"),
        ("names_codes", np.array([-1] * 6), "names do not fit"),
        ("header", np.frombuffer(b'{"format": "other"}', dtype=np.uint8), "the format must be"),
        ("header", np.frombuffer(b"\xff\xff", dtype=np.uint8), "damaged"),
        ("tails", np.array(["a"]), "one row of numbers"),
    ],
)
def test_own_files_are_checked_when_read(member: str, content: Any, message: str | None, tmp_path: Path) -> None:
    file = tmp_path / "n.npz"
    tricky_network().save(file)
    with np.load(file) as arrays:
        changed = {name: arrays[name] for name in arrays.files}
    if message is None:
        del changed["tails"]
        message = "damaged"
    else:
        changed = {name: value for name, value in changed.items() if not name.startswith(f"{member}_s")}
        changed[member] = content
    np.savez(file, **changed)
    with pytest.raises(NetworkError, match=message):
        RoadNetwork.from_file(file)


def test_an_own_file_with_pickles_or_promises_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "n.npz"
    np.savez(file, header=np.array([{"a": 1}], dtype=object))
    with pytest.raises(NetworkError, match="one row of numbers"):
        RoadNetwork.from_file(file)
    promise = io.BytesIO()
    np.lib.format.write_array_header_1_0(promise, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header.npy", promise.getvalue())
    with pytest.raises(NetworkError, match="one row of numbers that fills it"):
        RoadNetwork.from_file(file)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", bytes(50 * 2**20))
    with pytest.raises(NetworkError, match="holds more than 1000000 bytes"):
        RoadNetwork.from_file(file, max_bytes=1_000_000)
