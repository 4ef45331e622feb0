"""Whole files of every format of roads, and ways to damage them that know the format."""
# ruff: noqa: S608 - the SQL below is made of names in files that were made here

from __future__ import annotations

import bz2
import gzip
import io
import random
import re
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gmns_crossroads import TABLES, newer_tables
from road_files import GMNS_LINKS, GMNS_NODES, TNTP_NET, osm_grid, tricky_graph, tricky_network
from sumo_nets import CROSSROADS, UTM

# A case's files by name: most formats have one, TNTP and GMNS several.
Files = dict[str, bytes]
Rng = random.Random

NUMBERS = (
    "0", "-0", "-1", "1e308", "-1e308", "1e309", "1e-320", "nan", "inf", "-inf", "9" * 400, "9" * 5000, "-" + "9" * 400,
    "9223372036854775807", "9223372036854775808", "-9223372036854775809", "4294967296", "2147483648", "1e18", "0x10",
    "1_000", "١٢", "--5", "+5", "1.0", "", " ", "true", "null", "0.1e1", "1e", "1" + "0" * 30, "65536", "181", "91",
)  # fmt: skip
TEXTS = ("", "\n", "\r\nx", "\x1b[31m", "\u2028", "[" * 2000, "['" * 500, "\\" * 99, "'\\" * 999, "a" * 70_000, "ä€😀")

TNTP_NODES = "Node X Y ;\n1 7.0 50.0 ;\n2 7.001 50.0 ;\n3 7.002 50.0 ;\n"
GEOJSON = (
    '{"type": "FeatureCollection", "features": ['
    + ", ".join(
        f'{{"type": "Feature", "properties": {{"id": {i}}}, '
        f'"geometry": {{"type": "Point", "coordinates": [7.{i}, 50]}}}}'
        for i in (1, 2, 3)
    )
    + "]}"
)
HEADED = TNTP_NET.replace("<END", "<ORIGINAL HEADER>~ Init Term Capacity Length (km) Free Flow Time (min) B\n<END")


def whole_files(kind: str, folder: Path) -> list[Files]:
    """Return undamaged files of a format; the first time they are made and kept in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    return _WHOLE[kind](folder)


def write_case(kind: str, whole: list[Files], at: int, rng: Rng | None, folder: Path) -> tuple[object, ...]:
    """Write a damaged copy (or a whole one without `rng`) and return the reader and its arguments."""
    files = dict(whole[at])
    if rng is not None:
        name = rng.choice(sorted(files))
        other = rng.choice(whole)
        files[name] = _damaged(kind, files[name], other.get(name, b""), rng, name)
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    if kind == "gmns":
        return "gmns.from_gmns", folder
    names = sorted(files, key=lambda name: name.startswith("place"))
    return READERS[kind], *(folder / name for name in names)


READERS = {
    "pbf": "osm.from_osm",
    "xml": "osm.from_osm",
    "graphml": "graphml.from_graphml",
    "npz": "archive.load",
    "gpkg": "geopackage.from_geopackage",
    "tntp": "tntp.from_tntp",
    "sumo": "sumo.from_sumo",
}


def _damaged(kind: str, content: bytes, other: bytes, rng: Rng, name: str) -> bytes:
    if name.endswith(".gz"):
        if rng.random() < 0.3:
            return flipped(content, other, rng)
        return gzip.compress(tokens(gzip.decompress(content), rng), 1)
    if name.endswith(".bz2"):
        if rng.random() < 0.3:
            return flipped(content, other, rng)
        return bz2.compress(tokens(bz2.decompress(content), rng), 1)
    by_format: Callable[[bytes, Rng], bytes] = {"pbf": pbf, "npz": npz, "gpkg": gpkg}.get(kind, tokens)
    return by_format(content, rng) if rng.random() < 0.75 else flipped(content, other, rng)


# ---- bytes, whatever they mean ------------------------------------------------------------------------


def flipped(content: bytes, other: bytes, rng: Rng) -> bytes:
    """Flip, insert, delete, double or splice bytes, a few times."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(changed) + 1)
        span = min(rng.choice((1, 2, 4, 8, 64, 1024)), len(changed) - at)
        what = rng.randrange(7)
        if what == 0 and span:
            changed[at] ^= 1 << rng.randrange(8)
        elif what == 1 and span:
            changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif what == 2:
            changed[at:at] = rng.randbytes(rng.choice((1, 2, 9)))
        elif what == 3:
            del changed[at : at + span]
        elif what == 4:
            changed[at:at] = changed[at : at + span] * rng.choice((1, 2, 50))
        elif what == 5 and other:
            start = rng.randrange(len(other))
            changed[at : at + span] = other[start : start + rng.choice((1, 16, 256))]
        elif what == 6 and rng.random() < 0.2:
            del changed[at:]
    return bytes(changed)


_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_WORD = re.compile(rb"[A-Za-z_.:]+")
_QUOTED = re.compile(rb"\"[^\"\n]*\"|'[^'\n]*'|>[^<\n]+<")
_PIECE = re.compile(rb"<[^>\n]*>|[^\n]*\n|\{[^{}]*\}|\[[^\[\]]*\]")


def tokens(content: bytes, rng: Rng) -> bytes:
    """Change numbers, words, values and whole elements of a text."""
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        pattern = rng.choice((_NUMBER, _NUMBER, _WORD, _QUOTED, _QUOTED, _PIECE, _PIECE, _PIECE))
        found = list(pattern.finditer(content))
        if not found:
            continue
        token = rng.choice(found)
        start, end = token.span()
        new = _new_token(pattern, token[0], rng, rng.choice(found)[0])
        if rng.random() < 0.05 and pattern is not _PIECE:
            content = content.replace(token[0], new, 200)
        else:
            content = content[:start] + new + content[end:]
    return content


def _new_token(pattern: re.Pattern[bytes], old: bytes, rng: Rng, another: bytes) -> bytes:
    if pattern is _NUMBER:
        return rng.choice(NUMBERS).encode()
    if pattern is _WORD:
        return rng.choice((another, b"", b"x", old + b":" + old, old.upper()))
    if pattern is _QUOTED:
        inside = rng.choice((*NUMBERS, *TEXTS, another[1:-1].decode("utf-8", "replace"))).encode("utf-8")
        return old[:1] + inside + old[-1:]
    deep = rng.choice((70, 2000))
    return rng.choice(
        (b"", another, old * 2, old + another, another + old, old * deep, b"[" * deep, b'{"a":' * deep, b"<a>" * deep)
    )


# ---- PBF ---------------------------------------------------------------------------------------------

# Which fields of a message are messages themselves.
_BLOCK: dict[int, Any] = {1: {}, 2: {1: {}, 2: {}, 3: {}, 4: {}}}
_PACKED = (2, 3, 8, 9, 10)
Fields = list[list[Any]]


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def parse_message(data: bytes, schema: dict[int, Any] | None) -> Fields:
    """Take a message apart into [number, kind, content], messages within it too."""
    fields, at = [], 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        content: Any
        if tag & 7 == 0:
            content, at = _read_varint(data, at)
        else:
            length, at = _read_varint(data, at)
            content, at = data[at : at + length], at + length
            if schema is not None and tag >> 3 in schema:
                content = parse_message(content, schema[tag >> 3])
        fields.append([tag >> 3, tag & 7, content])
    return fields


def encode_message(fields: Fields, rng: Rng, lies: float = 0.0) -> bytes:
    """Put a message together; some of its lengths are lies."""
    out = b""
    for number, kind, content in fields:
        out += varint(number << 3 | kind)
        if isinstance(content, int):
            out += varint(content)
            continue
        raw = encode_message(content, rng, lies) if isinstance(content, list) else content
        length = len(raw)
        if rng.random() < lies:
            length = rng.choice((0, length + 1, length - 1, 2**31, 2**62, -1, -length, rng.randrange(length + 2)))
        out += (varint(length) if kind == 2 else b"") + raw
    return out


_VALUES = (0, 1, -1, 2**31, 2**32, 2**40, -(2**40), 2**62, -(2**62), 2**63 - 1, -(2**63), 1000, 127, 128)


def _change_message(message: Fields, rng: Rng) -> None:
    places: list[tuple[Fields, int]] = []

    def collect(fields: Fields) -> None:
        for i, part in enumerate(fields):
            places.append((fields, i))
            if isinstance(part[2], list):
                collect(part[2])

    collect(message)
    if not places:
        return
    fields, i = rng.choice(places)
    part, what = fields[i], rng.randrange(8)
    if what == 0:  # another kind: a number for a list, a list for a number
        part[1] = rng.choice((0, 0, 1, 2, 3, 5))
        part[2] = rng.choice(_VALUES) if part[1] == 0 else rng.randbytes(8 if part[1] == 1 else 4)
    elif what == 1 and part[1] == 0:
        part[2] = rng.choice(_VALUES)
    elif what == 2:
        part[0] = rng.choice((1, 2, 3, 4, 8, 9, 17, 19, 20, 0, 2**28, -1))
    elif what == 3:
        del fields[i]
    elif what == 4:
        fields.insert(rng.randrange(len(fields) + 1), [part[0], part[1], part[2]])
    elif what == 5:
        fields[i], fields[-1] = fields[-1], fields[i]
    elif isinstance(part[2], bytes):
        changed = bytearray(flipped(part[2], part[2], rng))
        if rng.random() < 0.5:
            at = rng.randrange(len(changed) + 1)
            changed[at : at + rng.randrange(3)] = varint(rng.choice(_VALUES))
        part[2] = bytes(changed)
    else:
        part[1], part[2] = 0, rng.choice(_VALUES)


def blobs_of(content: bytes) -> list[tuple[bytes, bytes]]:
    """Return kind and content of every blob of a PBF."""
    found, at = [], 0
    while at < len(content):
        size = struct.unpack(">I", content[at : at + 4])[0]
        header = {number: value for number, _, value in parse_message(content[at + 4 : at + 4 + size], None)}
        at += 4 + size
        blob = {number: value for number, _, value in parse_message(content[at : at + header[3]], None)}
        at += header[3]
        found.append((header[1], blob[1] if 1 in blob else zlib.decompress(blob[3])))
    return found


def pbf(content: bytes, rng: Rng) -> bytes:
    """Change messages within the blobs of a PBF, or the frame of the blobs."""
    out, blobs = b"", blobs_of(content)
    chosen = rng.randrange(1, len(blobs)) if rng.random() < 0.9 else 0
    for i, (kind, block) in enumerate(blobs):
        changed = block
        if i == chosen and rng.random() < 0.2:
            changed = flipped(block, blobs[-1][1], rng)
        elif i == chosen:
            message = parse_message(block, _BLOCK if i else None)
            for _ in range(rng.choice((1, 1, 2, 4))):
                _change_message(message, rng)
            changed = encode_message(message, rng, lies=rng.choice((0.0, 0.0, 0.0, 0.01)))
        blob: Fields = [[2, 0, len(changed)], [3, 2, zlib.compress(changed, 1)]]
        header: Fields = [[1, 2, kind], [3, 0, 0]]
        if i == chosen and rng.random() < 0.1:
            _change_message(blob, rng)
        packed = encode_message(blob, rng)
        header[1][2] = len(packed)
        if i == chosen and rng.random() < 0.05:
            _change_message(header, rng)
        head = encode_message(header, rng)
        out += struct.pack(">I", len(head)) + head + packed
    return out


# ---- zip and SQLite ----------------------------------------------------------------------------------

_DESCRIPTIONS = (
    b"'<f8'", b"'|O'", b"'<U4'", b"'<i8'", b"'|u1'", b"'<f2'", b"'>i4'", b"'<M8[s]'", b"[('a', '<i8')]", b"'", b"((",
    b"1" * 5000, b"'<c16'", b"'|b1'", b"9" * 400, b"-1", b"(" * 3000, b"__import__('os')", b"{}", b"0o7",
    b"1if 1else 2", b"'\\x00'", b"'|V8'",
)  # fmt: skip


def npz(content: bytes, rng: Rng) -> bytes:
    """Change members of a zip of arrays: their headers, their content, their names, their number."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        members = [[name, old.read(name)] for name in old.namelist()]
        for _ in range(rng.choice((1, 1, 2, 3))):
            at, what = rng.randrange(len(members)), rng.randrange(7)
            name, raw = members[at]
            if what == 0 and len(members) > 1:
                del members[at]
            elif what == 1:
                members[at][0] = rng.choice(members)[0]
            elif what == 2:
                members[at][1] = rng.choice(members)[1]
            elif what == 3:
                members[at][1] = flipped(raw, raw, rng)
            elif what == 4:
                members[at][1] = tokens(raw, rng)
            else:
                part = rng.choice(
                    (rb"'descr': ([^,]*)", rb"'shape': (\([^)]*\))", rb"'fortran_order': (\w+)", rb"(\{.*\})")
                )
                found = re.search(part, raw)
                if found:
                    raw = raw[: found.start(1)] + rng.choice(_DESCRIPTIONS) + raw[found.end(1) :]
                    size = raw.find(b"\n", 10) + 1 - 10
                    if 0 < size < 65536 and rng.random() < 0.8:
                        raw = raw[:8] + struct.pack("<H", size) + raw[10:]
                    members[at][1] = raw
        how = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) * 9 + (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
        for name in dict.fromkeys(name for name, _ in members):
            new.writestr(name, next(raw for other, raw in members if other == name), how)
    return out.getvalue()


_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS fid"


def gpkg(content: bytes, rng: Rng) -> bytes:
    """Change a GeoPackage by SQL: its values, its tables, what stands behind their names."""
    base = sqlite3.connect(":memory:")
    base.deserialize(content)
    base.execute("PRAGMA writable_schema = ON")
    steps = iter(range(1000))
    base.set_progress_handler(lambda: next(steps, None) is None, 10_000)  # no change waits for an endless view
    for _ in range(rng.choice((1, 1, 2, 3))):
        try:
            _change_table(base, rng)
        except (sqlite3.Error, OverflowError, UnicodeError, ValueError):
            continue  # what SQLite does not let pass is no file either
    base.set_progress_handler(None, 0)
    try:
        base.commit()
    except sqlite3.DatabaseError:
        base.rollback()  # the schema is damaged beyond what SQLite writes
    changed = base.serialize()
    base.close()
    return changed


def _change_table(base: sqlite3.Connection, rng: Rng) -> None:
    for (trigger,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        base.execute(f'DROP TRIGGER "{trigger}"')  # those of the spatial index call functions that are not here
    tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    main = [name for name in ("edges", "edges", "nodes", "network") if name in tables]  # no endless view is read here
    table = rng.choice((*main, *tables))
    columns = [row[1] for row in base.execute(f'PRAGMA table_info("{table}")')]
    if not columns:
        return
    column, what = rng.choice(columns), rng.randrange(9)
    value: object = rng.choice((
        None, 0, -1, 1, 2**62, -(2**63), 1e308, float("inf"), "x", "", *NUMBERS, *TEXTS, b"", b"GP\x00\x01",
        rng.randbytes(40), '{"tuple": [1, {"tuple": []}]}', "NaN", "[1]", '{"tuple":[' * 600,
    ))  # fmt: skip
    some = rng.choice(("", " WHERE rowid = 1", " WHERE rowid = (SELECT max(rowid) FROM {})")).format(f'"{table}"')
    if what <= 2:
        base.execute(f'UPDATE "{table}" SET "{column}" = ?{some}', (value,))
    elif what == 3:
        rows = base.execute(f'SELECT rowid, "{column}" FROM "{table}"').fetchall()
        row, old = rng.choice(rows or [(0, None)])
        if isinstance(old, bytes):
            base.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (flipped(old, old, rng), row))
    elif what == 4:
        base.execute(f'DELETE FROM "{table}"{some}')
    elif what == 5:
        base.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
    elif what == 6:
        base.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{rng.choice((*columns, "x"))}"')
    elif what == 7:
        _stand_in(base, table, columns, rng)
    else:
        sql = base.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
        new = tokens(sql.encode(), rng).decode("utf-8", "replace")
        base.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (new, table))


def _stand_in(base: sqlite3.Connection, table: str, columns: list[str], rng: Rng) -> None:
    """Put a view in the place of a table: endless, or of itself, or of very many rows."""
    base.execute(f'ALTER TABLE "{table}" RENAME TO "{table}_hidden"')
    if rng.random() < 0.5:  # how many rows there are, so that readers have to count
        base.execute("UPDATE gpkg_ogr_contents SET feature_count = NULL")
    listed = ", ".join(f'"{column}"' for column in columns)
    endless = ", ".join([_ENDLESS, *(f'1 AS "{column}"' for column in columns[1:])]) + " FROM n"
    view = rng.choice((
        f'SELECT {listed} FROM "{table}_hidden"',
        endless,
        f'SELECT a.* FROM "{table}_hidden" a, ({_ENDLESS} FROM n LIMIT 1000000000)',
        f'SELECT * FROM "{table}"',
    ))  # fmt: skip
    base.execute(f'CREATE VIEW "{table}" AS {view}')


# ---- whole files -------------------------------------------------------------------------------------


def _pbf_files(folder: Path) -> list[Files]:
    source = folder / "whole.osm"
    if not source.exists():
        import osmium

        source.write_text(osm_grid(bans=True), encoding="utf-8")
        for i, options in enumerate(("pbf_compression=none", "pbf_dense_nodes=false", "pbf_compression=zlib")):
            target = osmium.io.File(str(folder / f"{i}.osm.pbf"), f"pbf,{options}")
            with osmium.SimpleWriter(target) as writer:
                for item in osmium.FileProcessor(str(source)):
                    writer.add(item)
    return [{"roads.osm.pbf": file.read_bytes()} for file in sorted(folder.glob("*.osm.pbf"))]


def _xml_files(_: Path) -> list[Files]:
    text = osm_grid(bans=True).encode()
    return [{"roads.osm": text}, {"roads.osm.gz": gzip.compress(text)}, {"roads.osm.bz2": bz2.compress(text)}]


def _graphml_files(folder: Path) -> list[Files]:
    own, other = folder / "own.graphml", folder / "other.graphml"
    if not other.exists():
        import networkx as nx

        tricky_network().to_graphml(own)
        graph = tricky_graph()
        for _, _, data in graph.edges(data=True):
            data.pop("geometry", None)
            data |= {"osmid": 7, "lanes": "['2', '3']", "geometry": "LINESTRING (1 2, 1.0005 2.1, 1.001 2)"}
        for _, data in graph.nodes(data=True):
            data.setdefault("x", 1)
            data.setdefault("y", 2)
        nx.write_graphml(nx.relabel_nodes(graph, {node: i for i, node in enumerate(graph)}), other)
    text = own.read_text(encoding="utf-8")
    typed = text.replace('attr.name="edge_index" attr.type="string"', 'attr.name="edge_index" attr.type="long"')
    undirected = other.read_text(encoding="utf-8").replace('edgedefault="directed"', 'edgedefault="undirected"')
    whole = (text, typed, other.read_text(encoding="utf-8"), undirected)
    return [{"roads.graphml": one.encode()} for one in whole]


def _npz_files(folder: Path) -> list[Files]:
    import networkx as nx

    from routesim.roads.network import RoadNetwork

    if not (folder / "b.npz").exists():
        tricky_network().save(folder / "a.npz")
        numbered = nx.relabel_nodes(tricky_graph(), {node: i for i, node in enumerate(tricky_graph())})
        RoadNetwork.from_networkx(numbered).save(folder / "b.npz")
    return [{"roads.npz": file.read_bytes()} for file in sorted(folder.glob("*.npz"))]


def _gpkg_files(folder: Path) -> list[Files]:
    if not (folder / "a.gpkg").exists():
        tricky_network().to_geopackage(folder / "a.gpkg")
    return [{"roads.gpkg": (folder / "a.gpkg").read_bytes()}]


def _tntp_files(_: Path) -> list[Files]:
    return [
        {"roads_net.tntp": TNTP_NET.encode()},
        {"roads_net.tntp": HEADED.encode(), "place.tntp": TNTP_NODES.encode()},
        {"roads_net.tntp": TNTP_NET.encode(), "place.geojson": GEOJSON.encode()},
    ]


def _gmns_files(_: Path) -> list[Files]:
    links = GMNS_LINKS.splitlines()
    drawn = "\n".join(
        [f"{links[0]},geometry", *(f'{line},"LINESTRING (7.0 50.0, 7.001 50.0)"' for line in links[1:]), ""]
    )
    config = "dataset_name,long_length,speed\nx,m,kph\n"
    return [
        {"node.csv": GMNS_NODES.encode(), "link.csv": GMNS_LINKS.encode()},
        {"node.csv": GMNS_NODES.encode(), "link.csv": drawn.encode(), "config.csv": config.encode()},
        *({f"{name}.csv": text.encode() for name, text in tables.items()} for tables in (TABLES, newer_tables())),
    ]


def _sumo_files(_: Path) -> list[Files]:
    shifted = CROSSROADS.replace('netOffset="100.00,-200.00"', 'netOffset="-691000.00,-5335000.00"')
    banned = '<param key="turns" value="left in"/><param key="banned_ways" value="left side,left side out"/>'
    shifted = shifted.replace('<param key="origin" value="hand"/>', banned)
    projected = shifted.replace('projParameter="!"', f'projParameter="{UTM}"').encode()
    return [
        {"roads.net.xml": CROSSROADS.encode()},
        {"roads.net.xml": projected},
        {"roads.net.xml.gz": gzip.compress(projected, 1)},
    ]


_WHOLE: dict[str, Callable[[Path], list[Files]]] = {
    "pbf": _pbf_files,
    "xml": _xml_files,
    "graphml": _graphml_files,
    "npz": _npz_files,
    "gpkg": _gpkg_files,
    "tntp": _tntp_files,
    "gmns": _gmns_files,
    "sumo": _sumo_files,
}
