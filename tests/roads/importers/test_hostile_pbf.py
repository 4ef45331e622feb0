"""Messages of a PBF whose fields are of another kind than expected: a NetworkError, never a crash of the process."""

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from routesim.errors import NetworkError
from routesim.roads.importers import wire
from routesim.roads.network import RoadNetwork


def number(value: int) -> bytes:
    """A varint; a negative one takes ten bytes."""
    value &= 2**64 - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(tag: int, content: int | bytes) -> bytes:
    if isinstance(content, int):
        return number(tag << 3) + number(content)
    return number(tag << 3 | 2) + number(len(content)) + content


def blob(kind: bytes, content: bytes) -> bytes:
    packed = field(2, len(content)) + field(3, zlib.compress(content, 9))
    header = field(1, kind) + field(3, len(packed))
    return struct.pack(">I", len(header)) + header + packed


def pbf(*blocks: bytes) -> bytes:
    return blob(b"OSMHeader", field(4, b"OsmSchema-V0.6")) + b"".join(blob(b"OSMData", block) for block in blocks)


def zigzag(*values: int) -> bytes:
    return b"".join(number(value << 1 ^ value >> 63) for value in values)


TEXTS = field(1, b"".join(field(1, text) for text in (b"", b"highway", b"primary")))
WAY = field(3, field(1, 7) + field(2, b"\x01") + field(3, b"\x02") + field(8, zigzag(1, 1)))
PLACES = {1: zigzag(1, 1), 8: zigzag(500000000, 10000), 9: zigzag(70000000, 10000)}


def dense(**instead: int) -> bytes:
    """Two nodes and a way between them; the columns named are plain numbers instead of lists."""
    columns = {tag: instead.get(f"column_{tag}", PLACES[tag]) for tag in PLACES}
    return TEXTS + field(2, field(2, b"".join(field(tag, column) for tag, column in columns.items()))) + field(2, WAY)


FAR = -(2**40)
CRAFTED = {
    "a group": pbf(field(2, FAR)),
    "the string table": pbf(field(1, FAR) + field(2, WAY)),
    "a string": pbf(field(1, field(1, b"highway") + field(1, FAR)) + field(2, WAY)),
    "a column of ids": pbf(dense(column_1=FAR)),
    "a column of latitudes": pbf(dense(column_8=FAR)),
    "a column of longitudes": pbf(dense(column_9=FAR)),
    "a group, nearby": pbf(field(2, -(2**16))),
    "a group, forward": pbf(field(2, 2**62)),
    "a list of nodes": pbf(TEXTS + field(2, field(3, field(2, b"\x01") + field(3, b"\x02") + field(8, FAR)))),
    "a list of keys": pbf(TEXTS + field(2, field(3, field(2, FAR) + field(3, b"\x02") + field(8, zigzag(1, 1))))),
}


@pytest.mark.parametrize("what", CRAFTED)
def test_a_plain_number_in_place_of_a_list_is_an_error_and_no_crash(what: str, tmp_path: Path) -> None:
    file = tmp_path / "n.osm.pbf"
    file.write_bytes(CRAFTED[what])
    # In a process of its own: what is looked for ends the process.
    code = (
        "import sys\nfrom routesim.errors import NetworkError\nfrom routesim.roads.network import RoadNetwork\n"
        "try:\n    print(RoadNetwork.from_osm(sys.argv[1]))\nexcept NetworkError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, file], check=False, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, f"ended with {run.returncode}: {run.stderr[-500:]}"
    assert run.stdout.startswith(str(file))
    assert "damaged" in run.stdout


def test_the_file_of_the_report_is_as_small_as_it_was() -> None:
    assert len(CRAFTED["a group"]) < 100


def test_the_same_file_with_lists_is_a_road(tmp_path: Path) -> None:
    (tmp_path / "n.osm.pbf").write_bytes(pbf(dense()))
    network = RoadNetwork.from_osm(tmp_path / "n.osm.pbf")
    assert (network.n_nodes, network.n_edges, network.labels) == (2, 2, (1, 2))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (field(17, b"ab"), "field 17 must be a number"),
        (field(19, b""), "field 19 must be a number"),
        (field(17, 0), "granularity must be from 1"),
        (field(20, -(2**63)), "beyond the Earth"),
        (TEXTS + TEXTS, "more than one table of texts"),
    ],
)
def test_other_fields_of_a_block_are_checked(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "n.osm.pbf").write_bytes(pbf(content))
    with pytest.raises(NetworkError, match=message):
        RoadNetwork.from_osm(tmp_path / "n.osm.pbf")


@pytest.mark.parametrize("span", [(-1, 3), (FAR, -1), (3, 2), (0, 11), (11, 11), (2**62, 2**62 + 1)])
def test_no_kernel_looks_outside_its_buffer(span: tuple[int, int]) -> None:
    buffer = np.full(10, 8, dtype=np.uint8)
    spans = np.array([span], dtype=np.int64)
    for read in (
        lambda: wire.fields_of(buffer, *span),
        lambda: wire.spans_of(buffer, *span),
        lambda: wire.delta_values(buffer, *span),
        lambda: wire.plain_nodes(buffer, spans, 1, 2),
        lambda: wire.dense_tagged(buffer, *span, 3, 1, 2),
        lambda: wire.relations_with(buffer, spans, 1, 2),
        lambda: wire.plain_values(buffer, *span),
        lambda: wire.ways_with(buffer, spans, np.array([-1, 0, -1], dtype=np.int64), 1),
        lambda: wire.delta_lists(buffer, spans, 3),
    ):
        with pytest.raises(ValueError, match="outside its message"):
            read()


def test_a_blob_that_states_two_sizes_is_refused(tmp_path: Path) -> None:
    """The first, small one would be counted and the second, large one taken."""
    packed = field(2, 10) + field(3, zlib.compress(bytes(2**20))) + field(2, 2**20)
    header = field(1, b"OSMData") + field(3, len(packed))
    (tmp_path / "n.osm.pbf").write_bytes(pbf() + struct.pack(">I", len(header)) + header + packed)
    with pytest.raises(NetworkError, match="field 2 is stated twice"):
        RoadNetwork.from_osm(tmp_path / "n.osm.pbf")


# A relation of type restriction whose lists are `lists`: keys, values, roles, ids and kinds of members.
RESTRICTED = field(1, b"".join(field(1, text) for text in (b"", b"type", b"restriction", b"no_u_turn", b"from")))


def relation(**lists: bytes | int) -> bytes:
    whole: dict[str, bytes | int] = {"keys": b"\x01\x02", "values": b"\x02\x03", "roles": b"\x04"}
    whole |= {"ids": zigzag(7), "kinds": b"\x01", **lists}
    numbers = {"keys": 2, "values": 3, "roles": 8, "ids": 9, "kinds": 10}
    inside = b"".join(field(numbers[name], content) for name, content in whole.items())
    return pbf(RESTRICTED + field(2, field(4, field(1, 1) + inside)))


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({"roles": 5}, "a number stands where a list belongs|one list each"),
        ({"ids": 5}, "a number stands where a list belongs"),
        ({"kinds": FAR}, "a number stands where a list belongs"),
        ({"keys": b"\x01"}, "not as many values as keys"),
        ({"values": b"\x02\x63"}, "points to a text that is not there"),
        ({"roles": b"\x63"}, "points to a text that is not there"),
        ({"roles": b"\x04\x04"}, "not as many roles as members"),
        ({"kinds": b"\x03"}, "neither node, way nor relation"),
        ({"ids": b"\x80"}, "a number breaks off"),
    ],
)
def test_a_damaged_relation_is_refused(lists: dict[str, bytes | int], message: str, tmp_path: Path) -> None:
    (tmp_path / "n.osm.pbf").write_bytes(relation(**lists))
    with pytest.raises(NetworkError, match=rf"n\.osm\.pbf byte \d+: the blob there is damaged: .*({message})"):
        RoadNetwork.from_osm(tmp_path / "n.osm.pbf")


def test_a_whole_relation_is_read_and_counted(tmp_path: Path) -> None:
    ways = pbf(dense())
    (tmp_path / "n.osm.pbf").write_bytes(ways + relation()[len(pbf()) :])
    network = RoadNetwork.from_osm(tmp_path / "n.osm.pbf")
    assert network.left_out["turn restrictions that are incomplete"] == 1


def test_the_beginning_of_a_block_is_read_with_care() -> None:
    block = TEXTS + field(2, field(2, field(1, PLACES[1])))
    for content, said in (
        (block + bytes(30), False),
        (block[:-1], False),
        (TEXTS + field(2, field(3, b"")), False),
        (field(2, field(2, field(1, PLACES[1]))), False),
        (b"", False),
        (TEXTS + field(2, field(2, bytes(100))), True),
        (TEXTS + field(2, field(2, bytes(100))) + field(2, WAY), False),
        (TEXTS + field(2, field(2, bytes(100)) + WAY), False),
    ):
        buffer = np.frombuffer(content, dtype=np.uint8)
        assert wire.only_dense(buffer, len(content)) == said
        assert not wire.only_dense(buffer, len(content) + 1)
