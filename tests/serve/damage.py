# ruff: noqa: S608 - the tables and numbers in these statements are made up here
"""Damaged journals: a journal of everything a service writes, and seeded ways to damage a copy of it.

    python tests/serve/damage.py FOLDER FIRST LAST     try the seeds FIRST to LAST - 1, in a process of its own

Each case ends in the one clear error or in a service with the undamaged state, and a refused journal can be rescued or
is refused in one line again; anything else ends the process.
"""

import asyncio
import json
import logging
import resource
import shutil
import signal
import sqlite3
import struct
import sys
from collections import Counter
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from routesim.errors import ResultsError
from routesim.serve.rescue import rescue
from routesim.serve.rows import seal
from routesim.serve.served import Served, load_served
from routesim.serve.service import Service

ROADS = """
kind = "city"
title = "A ring with spokes"
rounds = 10
replications = 1
seed = 0
learners = ["UCB1"]

[city]
origin = "n0"
destination = "n3"
window = 4
noise = 0.1
routes = 4
method = "all"
congestion = { name = "linear", slope = 1.0 }
edges = [
"""
KINDS = ("young", "closed", "killed")
FILES = ("journal.sqlite", "journal.sqlite-wal", "journal.mark")
SECONDS = 60
MEMORY = 2 << 30


def write_roads(path: Path) -> Path:
    """A ring of six nodes around a seventh, in both directions."""
    lines = []
    for here in range(6):
        for start, end in ((here, (here + 1) % 6), ((here + 1) % 6, here), (here, 6), (6, here)):
            lines.append(f'  {{ from = "n{start}", to = "n{end}", free_flow_s = {10 + (start * 7 + end * 3) % 5}.0 }},')
    path.write_text(ROADS + "\n".join(lines) + "\n]\n")
    return path


@cache
def roads_of(path: Path) -> Served:
    return load_served(str(path))


async def talk(service: Service, first: int, last: int) -> None:
    """Recommend on eight pairs in turn, and observe most of it late, in total and by edges."""
    made: list[Any] = []
    for number in range(first, last):
        ends = service.served.ends if number % 2 else (number % 7, (number + 3) % 7)
        row, path = await service.recommend(ends, (), f"r{number}" if number % 5 else None)
        made.append((row.number, len(path)))
        if number % 3 == 2 and len(made) > 1:
            for late, edges in (made.pop(), made.pop(0)):
                seconds = np.full(1 if late % 2 else edges, 20.0 + late % 11)
                request = f"o{late}" if late % 4 else None
                await service.observe(service.name(late), seconds, total=bool(late % 2), request=request)
            made = made[-5:]


def make(folder: Path, kind: str, served: Served) -> None:
    """Make a journal: young without snapshots, closed in order, or as after a kill; the last two are pruned."""
    limits = {"snapshot_rows": 40, "keep_rows": 60} if kind != "young" else {}

    async def live() -> None:
        service = Service(served, folder / "live", most_pairs=4, **limits)
        await talk(service, 0, 30 if kind == "young" else 150)
        if kind == "closed":
            await service.close()
        shutil.copytree(folder / "live", folder / kind)
        if kind != "closed":
            (folder / kind / "journal.sqlite-shm").unlink()
            await service.close()

    asyncio.run(live())
    shutil.rmtree(folder / "live")


def seen(service: Service) -> dict[str, Any]:
    """All that a service knows: the state of its desk, and every row that must still be there."""
    journal, state = service.journal, service.desk.state()
    rows: dict[str, Any] = {"next": service._next, "token": journal.token}
    for row in journal.story(after=0):
        rows[f"row {row.number}"] = row.values()
    for number in range(400):
        for what, found in (
            (f"request r{number}", journal.decision_of_request(f"r{number}")),
            (f"request o{number}", journal.observation_of_request(f"o{number}")),
            (f"observation {number}", journal.observation_of(number)),
        ):
            rows[what] = None if found is None else found.values()
    return {**rows, **{name: (value.dtype.str, value.shape, value.tobytes()) for name, value in state.items()}}


def opened(folder: Path, served: Served) -> dict[str, Any]:
    service = Service(served, folder, most_pairs=4, snapshot_rows=40, keep_rows=60)
    try:
        return seen(service)
    finally:
        service.journal.release()


# ---- damages ----------------------------------------------------------------------------------------------


def damage(folder: Path, rng: np.random.Generator) -> str:
    """Damage the journal in a folder; return what was done."""
    ways = (flip, flip, cut, blank, swap, lose, rows_gone, values, values, nonsense, nonsense, schema, rollback)
    way = ways[int(rng.integers(len(ways)))]
    return f"{way.__name__} {way(folder, rng)}"


def _one_of(folder: Path, rng: np.random.Generator) -> Path:
    there = [folder / name for name in FILES if (folder / name).exists() and (folder / name).stat().st_size]
    return there[int(rng.integers(len(there)))]


def flip(folder: Path, rng: np.random.Generator) -> str:
    path = _one_of(folder, rng)
    content = bytearray(path.read_bytes())
    # Half of the flips in what is used most: headers, and the first bytes of pages.
    for _ in range(int(rng.integers(1, 9))):
        at = int(rng.integers(len(content)))
        if rng.random() < 0.5:
            at = min(at - at % 4096 + int(rng.integers(100)), len(content) - 1)
        content[at] ^= int(rng.integers(1, 256))
    path.write_bytes(content)
    return path.name


def cut(folder: Path, rng: np.random.Generator) -> str:
    path = _one_of(folder, rng)
    length = int(rng.integers(path.stat().st_size))
    path.write_bytes(path.read_bytes()[: length - length % 4096 if rng.random() < 0.3 else length])
    return f"{path.name} at {length}"


def blank(folder: Path, rng: np.random.Generator) -> str:
    path = _one_of(folder, rng)
    content = bytearray(path.read_bytes())
    at, length = int(rng.integers(len(content))), int(rng.integers(1, 8192))
    piece = bytes(length) if rng.random() < 0.5 else rng.bytes(length)
    content[at : at + length] = piece[: len(content) - at]
    path.write_bytes(content)
    return f"{path.name} at {at}"


def swap(folder: Path, rng: np.random.Generator) -> str:
    path = folder / "journal.sqlite"
    content = path.read_bytes()
    pages = [content[at : at + 4096] for at in range(0, len(content), 4096)]
    one, two = rng.integers(len(pages), size=2).tolist()
    pages[one], pages[two] = pages[two], pages[one]
    path.write_bytes(b"".join(pages))
    return f"pages {one} and {two}"


def lose(folder: Path, rng: np.random.Generator) -> str:
    path = _one_of(folder, rng)
    path.unlink() if rng.random() < 0.5 else path.write_bytes(b"")
    return path.name


def rollback(folder: Path, rng: np.random.Generator) -> str:
    """The last rows are gone, without a gap and with an `about` that fits: only the mark knows better."""
    with closing(sqlite3.connect(folder / "journal.sqlite")) as file:
        (last,) = file.execute("select value from about where name = 'last'").fetchone()
        kept = int(last) - int(rng.integers(1, 20))
        for table in ("decisions", "observations", "evictions"):
            file.execute(f"delete from {table} where number > {kept}")
        entry = ("last", str(kept))
        file.execute("insert or replace into about values (?, ?, ?)", (*entry, seal("", "about", entry)))
        file.commit()
    return f"to {kept}"


def _sql(folder: Path, rng: np.random.Generator, statements: list[str]) -> str:
    statement = statements[int(rng.integers(len(statements)))]
    with closing(sqlite3.connect(folder / "journal.sqlite")) as file:
        numbers = [
            number for (number,) in file.execute("select number from decisions union select number from observations")
        ]
        statement = statement.replace("NUMBER", str(numbers[int(rng.integers(len(numbers)))]))
        file.executescript("pragma writable_schema = on;" + statement)
        file.commit()
    return statement


def rows_gone(folder: Path, rng: np.random.Generator) -> str:
    tables = ["decisions", "observations", "evictions", "snapshots", "about"]
    ways = [f"delete from {table}" for table in tables]
    ways += [f"delete from {table} where number >= NUMBER" for table in tables[:4]]
    ways += [f"delete from {table} where number = NUMBER" for table in tables[:2]]
    ways += [f"delete from about where name = '{name}'" for name in ("token", "base", "last", "format", "start")]
    ways += ["delete from decisions where number <= NUMBER", "delete from observations where number % 2 = 0"]
    return _sql(folder, rng, ways)


def values(folder: Path, rng: np.random.Generator) -> str:
    nan = struct.pack("<d", float("nan")).hex()
    ways = [
        f"update observations set seconds = x'{nan}' where number >= NUMBER",
        "update observations set seconds = zeroblob(8) where number >= NUMBER",
        "update observations set seconds = 'text' where number >= NUMBER",
        "update observations set seconds = zeroblob(30000000) where number = (select max(number) from observations)",
        "update observations set total = 1 - total where number >= NUMBER",
        "update observations set total = 'yes' where number >= NUMBER",
        "update observations set decision = decision + 1000 where number >= NUMBER",
        "update observations set decision = -decision",
        "update observations set number = number + 1000 where number >= NUMBER",
        "update observations set request = x'ff' where number = (select max(number) from observations)",
        "update decisions set counts = zeroblob(length(counts)) where number >= NUMBER",
        "update decisions set counts = zeroblob(70000) where number >= NUMBER",
        "update decisions set counts = 17 where number >= NUMBER",
        "update decisions set action = action + 1 where number >= NUMBER",
        "update decisions set action = 9223372036854775807 where number >= NUMBER",
        "update decisions set action = 'one' where number >= NUMBER",
        "update decisions set expected_s = 9e999 where number >= NUMBER",
        "update decisions set expected_s = expected_s + 1 where number >= NUMBER",
        "update decisions set origin = 99 where number >= NUMBER",
        "update decisions set origin = destination, destination = origin where number >= NUMBER",
        "update decisions set request = 'x' || request where number >= NUMBER",
        "update decisions set request = cast(x'fffe' as text) where number = (select max(number) from decisions)",
        "update decisions set traveller = 'nobody' where number >= NUMBER",
        "update decisions set checksum = 5 where number >= NUMBER",
        "update evictions set origin = destination, destination = origin",
        "update snapshots set number = number + 1000",
        "update snapshots set number = number - 7",
        "update snapshots set horizon = horizon + 1",
        "update snapshots set content = zeroblob(length(content))",
        "update snapshots set content = zeroblob(50000000) where number = (select max(number) from snapshots)",
        "update snapshots set content = 'text'",
        "insert into snapshots select number + 1000, horizon, content, checksum from snapshots limit 1",
        "update about set value = value + 1 where name = 'last'",
        "update about set value = value + 1 where name = 'base'",
        "update about set value = 'x' where name = 'scenario or learner'",
        "update about set value = '00000000' where name = 'token'",
        "update about set value = x'00' where name = 'start'",
        "insert into about values ('more', 'x', x'00')",
        "insert into decisions select number + 1000, null, origin, destination, traveller, action, expected_s, counts, "
        "checksum from decisions limit 3",
    ]
    return _sql(folder, rng, ways)


def schema(folder: Path, rng: np.random.Generator) -> str:
    ways = [
        "drop table evictions",
        "drop table snapshots; create table snapshots (number, horizon, content, checksum)",
        "create view more as with recursive n(i) as (select 1 union all select i + 1 from n) select i from n",
        "create trigger more after insert on decisions begin delete from observations; end",
        "create index more on decisions (action)",
        "alter table decisions add column more",
        "drop table about; create view about as select 'a' as name, 'b' as value, x'00' as checksum",
        "update sqlite_master set sql = 'CREATE TABLE decisions (number)' where name = 'decisions'",
        "update sqlite_master set rootpage = 3 where name = 'decisions'",
        "delete from sqlite_master where name like 'sqlite_autoindex%'",
    ]
    try:
        return _sql(folder, rng, ways)
    except sqlite3.Error as problem:  # SQLite will not have it, which is as good a case as any
        return str(problem)


def nonsense(folder: Path, rng: np.random.Generator) -> str:
    """Values that make no sense under checksums that fit."""
    number = struct.pack
    ways: list[tuple[str, int, Any]] = [
        *(("observations", 4, number("<d", value)) for value in (float("nan"), float("inf"), -1.0)),
        *(("observations", 4, value) for value in (b"", b"abc", bytes(16000), "text", 5, None)),
        *(("observations", 3, value) for value in (2, -1, "yes")),
        *(("observations", 1, value) for value in (10**6, 0, -3, "one")),
        ("observations", 2, "no id at all"),
        *(("decisions", 7, value) for value in (b"", b"abc", bytes(2000), b"\xff\xff\xff\xff", 17)),
        *(("decisions", 6, value) for value in (float("inf"), -1.0, "soon")),
        *(("decisions", 5, value) for value in (-1, 10**6, "first")),
        *(("decisions", 2, value) for value in (-1, 7, 10**12, "n0")),
        ("decisions", 1, "a b"),
        ("decisions", 1, 12),
        *(("evictions", 1, value) for value in (-1, 7, "n0")),
        *(("snapshots", 1, value) for value in (-1, 10**6, "far")),
        *(("snapshots", 2, value) for value in (b"", b"PK", "text", 5)),
    ]
    with closing(sqlite3.connect(folder / "journal.sqlite")) as file:
        (token,) = file.execute("select value from about where name = 'token'").fetchone()
        there = [way for way in ways if file.execute(f"select 1 from {way[0]}").fetchone()]
        table, column, value = there[int(rng.integers(len(there)))]
        # One that counts: after the last snapshot, or the newest snapshot itself.
        (last,) = file.execute(f"select max(number) from {table}").fetchone()
        row = list(file.execute(f"select * from {table} where number = {last}").fetchone())[:-1]
        row[column] = value
        content = row[-1]
        checksum = seal(token, table, row) if table != "snapshots" or isinstance(content, bytes) else b""
        names = [name for _, name, *_ in file.execute(f"pragma table_info({table})")]
        settings = ", ".join(f"{name} = ?" for name in names)
        try:
            file.execute(f"update {table} set {settings} where number = {last}", (*row, checksum))
        except sqlite3.IntegrityError:
            file.execute(f"delete from {table} where number = {last}")
        file.commit()
    return f"{table}, {names[column]} = {value!r:.30}"


# ---- trying -----------------------------------------------------------------------------------------------


def bytes_of(folder: Path) -> dict[str, bytes]:
    """All that is in the files; an empty write-ahead log is as good as none."""
    held = {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}
    return {name: content for name, content in held.items() if content}


def attempt(base: Path, work: Path, seed: int, served: Served, undamaged: dict[str, dict[str, Any]]) -> str:
    """Damage a copy and open it; return how it ended, or raise what must not happen."""
    rng = np.random.default_rng(seed)
    kind = KINDS[int(rng.integers(len(KINDS)))]
    case, new = work / "case", work / "rescued"
    for folder in (case, new):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base / kind, case)
    what = f"seed {seed}, {kind}: {damage(case, rng)}"
    before = bytes_of(case)
    try:
        found = opened(case, served)
    except ResultsError as problem:
        said = str(problem)
        assert str(case) in said, (what, said)
        assert "\n" not in said, (what, said)
        assert f"routesim rescue {case} --out" in said, (what, said)
        assert bytes_of(case) == before, f"{what}: a refused journal was changed"
    else:
        expected = undamaged[kind]
        assert found == expected, f"{what}: {[name for name in expected if found.get(name) != expected[name]]}"
        return "the same state"
    try:
        rescue(case, new)
    except ResultsError as problem:
        said, outcome = str(problem), "refused, nothing to rescue"
        assert "\n" not in said, (what, said)
        assert not new.exists(), what
    else:
        outcome = "refused, rescued"
        try:
            opened(new, served)
        except ResultsError as problem:
            # Without the scenario a rescue cannot know what its rows may say under checksums that fit.
            said, outcome = str(problem), "refused, rescued and refused"
            assert ": nonsense" in what, (what, said)
    assert bytes_of(case) == before, f"{what}: the rescue changed the damaged journal"
    return outcome


def prepare(base: Path) -> tuple[Served, dict[str, dict[str, Any]]]:
    served = roads_of(write_roads(base / "ring.toml"))
    undamaged = {}
    for kind in KINDS:
        make(base, kind, served)
        shutil.copytree(base / kind, base / "copy")
        undamaged[kind] = opened(base / "copy", served)
        shutil.rmtree(base / "copy")
    return served, undamaged


def main() -> None:
    base, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    logging.disable()
    served, undamaged = prepare(base)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    ended: Counter[str] = Counter()
    for seed in range(first, last):
        signal.alarm(SECONDS)  # a case that hangs ends the process
        ended[attempt(base, base, seed, served, undamaged)] += 1
    print(json.dumps(ended))


if __name__ == "__main__":
    main()
