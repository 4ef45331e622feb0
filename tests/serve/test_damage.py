"""Damaged journals: one clear error and a rescue, or the same state; never another one."""

import asyncio
import json
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import damage
import numpy as np
import pytest

import routesim as rs
from routesim.serve.ledger import Ledger
from routesim.serve.rescue import rescue
from routesim.serve.rows import seal
from routesim.serve.served import Served
from routesim.serve.service import Refused, Service

ROOT = Path(__file__).parent.parent.parent
FIRST_FORMAT = """
create table about (name text primary key, value text not null) without rowid;
create table decisions (
    number integer primary key, request text unique, origin integer not null, destination integer not null,
    traveller text not null, action integer not null, expected_s real not null, counts blob not null);
create table observations (
    number integer primary key, decision integer not null unique, request text unique,
    total integer not null, seconds blob not null);
create table snapshots (number integer primary key, content blob not null);
"""


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Served, dict[str, dict[str, Any]]]:
    base = tmp_path_factory.mktemp("journals")
    return base, *damage.prepare(base)


@pytest.fixture
def memory_folder() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of small journals wait for the disk otherwise."""
    memory = Path("/dev/shm")  # noqa: S108 - one's own folder is made in it
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def sql(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "journal.sqlite")) as file:
        for statement in statements:
            file.execute(statement)
        file.commit()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "update observations set seconds = x'000000000000f87f' where number = 5",
            "table observations, row 5: its checks",
        ),
        ("delete from observations where number = 5", "table decisions, row 6: row 5 is missing"),
        ("delete from observations", "row 4 is missing"),
        ("delete from decisions where number > 40", "row .* is missing|observes row|says 51"),
        ("update decisions set counts = zeroblob(2) where number = 7", "table decisions, row 7: its checksum"),
        ("update about set value = '12' where name = 'last'", "table about, row 'last': its checksum"),
        ("delete from about", "table about, row 'format': it is missing"),
        ("drop table evictions", "table evictions: it is missing"),
        ("update observations set total = 'x' where number = 5", "table observations, row 5: its checksum"),
    ],
)
def test_what_is_damaged_is_named_with_what_to_do(
    tmp_path: Path, journals: tuple[Path, Served, Any], statement: str, words: str
) -> None:
    base, served, _ = journals
    shutil.copytree(base / "young", tmp_path / "state")
    sql(tmp_path / "state", statement)
    with pytest.raises(rs.RoutesimError, match=words) as caught:
        Service(served, tmp_path / "state")
    folder = tmp_path / "state"
    said = str(caught.value)
    assert said.startswith(f"the state in {folder} is damaged: ")
    assert said.endswith(f"; save what can be saved with: routesim rescue {folder} --out NEW_FOLDER")


def test_a_snapshot_from_the_future_is_of_no_use(tmp_path: Path, journals: tuple[Path, Served, Any]) -> None:
    base, served, undamaged = journals
    shutil.copytree(base / "killed", tmp_path / "state")
    with closing(sqlite3.connect(tmp_path / "state" / "journal.sqlite")) as file:
        (token,) = file.execute("select value from about where name = 'token'").fetchone()
        values = (10**6, *file.execute("select horizon, content from snapshots order by number").fetchone())
        file.execute("insert into snapshots values (?, ?, ?, ?)", (*values, seal(token, "snapshots", values)))
        file.commit()
    assert damage.opened(tmp_path / "state", served) == undamaged["killed"]


def test_a_lost_end_of_the_log_is_noticed(tmp_path: Path, journals: tuple[Path, Served, Any]) -> None:
    """SQLite itself leaves out the end of a damaged write-ahead log and says nothing."""
    base, served, _ = journals
    folder = tmp_path / "state"
    shutil.copytree(base / "killed", folder)
    log = folder / "journal.sqlite-wal"
    content = bytearray(log.read_bytes())
    content[200] ^= 1  # in the first page of the log
    log.write_bytes(content)
    with pytest.raises(rs.RoutesimError, match="were acknowledged; save what can be saved"):
        Service(served, folder)
    kept = rescue(folder, tmp_path / "new")
    assert kept.lost >= 1
    damage.opened(tmp_path / "new", served)


def test_a_rescue_keeps_all_rows_before_the_damage(tmp_path: Path, journals: tuple[Path, Served, Any]) -> None:
    base, served, undamaged = journals
    shutil.copytree(base / "young", tmp_path / "state")
    last = undamaged["young"]["next"] - 1
    sql(tmp_path / "state", "update observations set seconds = zeroblob(8) where number = 22")
    kept = rescue(tmp_path / "state", tmp_path / "new")
    assert (kept.first, kept.last, kept.lost, kept.forgotten) == (1, 21, last - 21, 0)
    assert kept.lines() == [
        "kept 21 rows, 1 to 21",
        f"lost {last - 21} rows; the first damage: table observations, row 22: its checksum does not fit",
    ]
    found, before = damage.opened(tmp_path / "new", served), undamaged["young"]
    assert found["token"] == before["token"]
    assert {f"row {number}": before[f"row {number}"] for number in range(1, 22)}.items() <= found.items()
    assert found["next"] == 22
    with pytest.raises(rs.RoutesimError, match="exists; name a new folder"):
        rescue(tmp_path / "state", tmp_path / "new")


def test_a_rescue_loses_nothing_that_a_snapshot_covers(tmp_path: Path, journals: tuple[Path, Served, Any]) -> None:
    base, served, undamaged = journals
    shutil.copytree(base / "closed", tmp_path / "state")
    before = undamaged["closed"]
    first = min(int(name.removeprefix("row ")) for name in before if name.startswith("row "))
    sql(tmp_path / "state", f"update decisions set traveller = 'x' where number <= {first + 5}")  # noqa: S608
    with pytest.raises(rs.RoutesimError, match="checksum"):
        Service(served, tmp_path / "state")
    kept = rescue(tmp_path / "state", tmp_path / "new")
    assert kept.last == before["next"] - 1
    assert 0 < kept.lost <= 6
    found = damage.opened(tmp_path / "new", served)
    learned = {name for name in before if not name.startswith(("row", "request", "observation"))}
    assert {name: found[name] for name in learned} == {name: before[name] for name in learned}


def test_a_rescue_without_any_snapshot_begins_with_an_empty_desk(
    tmp_path: Path, journals: tuple[Path, Served, Any]
) -> None:
    base, served, undamaged = journals
    shutil.copytree(base / "closed", tmp_path / "state")
    sql(tmp_path / "state", "delete from snapshots")
    with pytest.raises(rs.RoutesimError, match=r"table snapshots, row .*there is none, and rows up to"):
        Service(served, tmp_path / "state")
    kept = rescue(tmp_path / "state", tmp_path / "new")
    assert kept.lost == 0
    assert kept.forgotten == kept.first - 1 > 0
    assert "what was learned from the rows up to" in kept.lines()[-1]
    found = damage.opened(tmp_path / "new", served)
    assert found["next"] == undamaged["closed"]["next"]


def test_a_state_of_the_first_format_is_taken_over_by_a_rescue(
    tmp_path: Path, journals: tuple[Path, Served, Any]
) -> None:
    base, served, undamaged = journals
    old = tmp_path / "old"
    old.mkdir()
    with (
        closing(sqlite3.connect(old / "journal.sqlite")) as file,
        closing(sqlite3.connect(f"file:{base / 'young' / 'journal.sqlite'}?mode=ro", uri=True)) as now,
    ):
        file.executescript(FIRST_FORMAT)
        about = dict(now.execute("select name, value from about"))
        entries = {"format": "1", **{name: about[name] for name in ("scenario or learner", "token")}}
        file.executemany("insert into about values (?, ?)", entries.items())
        # The first format knew no evictions: only the rows before the first.
        (most,) = now.execute("select min(number) from evictions").fetchone()
        for table in ("decisions", "observations"):
            for row in now.execute(f"select * from {table} where number < {most}"):  # noqa: S608 - a name of ours
                file.execute(f"insert into {table} values ({', '.join('?' * (len(row) - 1))})", row[:-1])  # noqa: S608
        file.commit()
    with pytest.raises(rs.RoutesimError, match=f"earlier routesim; take it over with: routesim rescue {old} --out"):
        Service(served, old)
    kept = rescue(old, tmp_path / "new")
    assert (kept.last, kept.lost, kept.problem) == (most - 1, 0, None)
    found = damage.opened(tmp_path / "new", served)
    assert found["token"] == about["token"]
    assert all(found[f"row {number}"] == undamaged["young"][f"row {number}"] for number in range(1, most))


def test_rescue_is_a_command_and_leaves_a_running_service_alone(
    tmp_path: Path, journals: tuple[Path, Served, Any]
) -> None:
    base, served, _ = journals
    shutil.copytree(base / "young", tmp_path / "state")

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        call = [sys.executable, "-m", "routesim.cli", "rescue", *words]
        return subprocess.run(call, capture_output=True, text=True, check=False, env=environment)

    service = Service(served, tmp_path / "state")
    busy = command(str(tmp_path / "state"), "--out", str(tmp_path / "new"))
    service.journal.release()
    assert (busy.returncode, busy.stdout) == (2, "")
    assert busy.stderr.startswith("routesim: another service uses the state")
    done = command(str(tmp_path / "state"), "--out", str(tmp_path / "new"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("kept ")
    nothing = command(str(tmp_path), "--out", str(tmp_path / "more"))
    assert (nothing.returncode, nothing.stderr.count("\n")) == (2, 1)
    assert "holds no journal.sqlite" in nothing.stderr


def test_the_journal_of_a_long_time_does_not_grow(tmp_path: Path, journals: tuple[Path, Served, Any]) -> None:
    _, served, _ = journals
    sizes, rows = [], []

    async def live() -> None:
        service = Service(served, tmp_path, most_pairs=4, snapshot_rows=50, keep_rows=200)
        for part in range(8):
            await damage.talk(service, 200 * part, 200 * (part + 1))
            with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as file:
                queries = ("select count(*) from decisions", "select count(*) from observations")
                rows.append(sum(file.execute(query).fetchone()[0] for query in queries))
            sizes.append((tmp_path / "journal.sqlite").stat().st_size)
        # Old decisions are too old, recent ones can be observed, and ids of recent requests are known.
        with pytest.raises(Refused, match="too old"):
            await service.observe(service.name(1), np.array([5.0]), total=True, request=None)
        again, _ = await service.recommend(service.served.ends, (), "r1599")
        assert again.number > service.horizon
        await service.close()

    asyncio.run(live())
    assert max(rows) <= 200 + 4 * 50
    assert sizes[-1] <= sizes[2] * 1.2
    before = damage.opened(tmp_path, served)
    assert damage.opened(tmp_path, served) == before


def test_without_its_newest_snapshot_a_pruned_journal_tells_the_same(
    tmp_path: Path, journals: tuple[Path, Served, Any]
) -> None:
    base, served, undamaged = journals
    for kind in ("closed", "killed"):
        folder = tmp_path / kind
        shutil.copytree(base / kind, folder)
        sql(folder, "delete from snapshots where number = (select max(number) from snapshots)")
        assert damage.opened(folder, served) == undamaged[kind]


def test_a_commit_that_fails_leaves_no_half(tmp_path: Path, journals: tuple[Path, Served, Any]) -> None:
    base, served, undamaged = journals
    shutil.copytree(base / "young", tmp_path / "state")
    service = Service(served, tmp_path / "state", most_pairs=4)
    rows = list(service.journal.story(after=0))
    service.journal.release()
    with closing(Ledger(tmp_path / "state", service.journal._about)) as ledger, pytest.raises(sqlite3.IntegrityError):
        ledger.write([rows[0]._replace(number=len(rows) + 1, request=None), rows[0]])
    assert damage.opened(tmp_path / "state", served) == undamaged["young"]


def test_damaged_journals_of_all_kinds(
    memory_folder: Path, journals: tuple[Path, Served, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "routesim.serve")
    base, served, undamaged = journals
    ended = {damage.attempt(base, memory_folder, seed, served, undamaged) for seed in range(60)}
    assert ended >= {"the same state", "refused, rescued"}


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 5000, 1000))
def test_thousands_of_damaged_journals(memory_folder: Path, first: int) -> None:
    """In a process of its own, with a limit of memory, and of time for each case."""
    command = [sys.executable, str(ROOT / "tests/serve/damage.py"), str(memory_folder), str(first), str(first + 1000)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    print(done.stdout)
    assert sum(json.loads(done.stdout).values()) == 1000
