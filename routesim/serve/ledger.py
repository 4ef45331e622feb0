"""The SQLite file of a journal: made, checked as a whole before it is used, written, and pruned.

Every row has a checksum, the numbers of decisions, observations and evictions have no gaps, and the table `about`
says with which number they begin and end. The mark, a small file beside it, repeats the last number once a commit is
on the disk: SQLite leaves out a damaged end of its write-ahead log without a word, and the mark tells that it did.
"""

import heapq
import json
import os
import secrets
import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from routesim.errors import ResultsError
from routesim.serve.rows import (
    ANY,
    MOST_BYTES,
    NUMBERED,
    SCHEMA,
    TABLE_OF,
    Bounds,
    Following,
    Row,
    row_problem,
    seal,
    sealed,
)

FILE, MARK = "journal.sqlite", "journal.mark"
TableRow: TypeAlias = tuple[str, tuple[Any, ...]]
CHANGING = ("start", "base", "last")
"""The entries of `about` that change: where an empty desk began, what is pruned, and the last row."""

_MARK_BYTES = 512  # one sector: written as a whole
_NOT_ALLOWED = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY)
_EMPTY_BYTES = 4096  # of an SQLite file without tables
_PRUNED = 4  # rows pruned for each one written, so that pruning keeps up in small steps


class Snapshot(NamedTuple):
    """A kept state: after which row, and up to which row decisions may be forgotten with it."""

    number: int
    horizon: int


class Checked(NamedTuple):
    """What a file holds that was found to be whole."""

    about: dict[str, str]
    snapshots: list[Snapshot]
    useless: list[tuple[int, str]]
    routes: set[tuple[int, int, int, int]]


def damaged(folder: Path, where: str, what: str) -> ResultsError:
    """Return the one error for a state that cannot be trusted, which says what to do."""
    command = f"routesim rescue {shlex.quote(str(folder))} --out NEW_FOLDER"
    return ResultsError(f"the state in {folder} is damaged: {where}: {what}; save what can be saved with: {command}")


def connect(path: Path, patience_s: float = 5.0, *, mode: str = "rwc") -> sqlite3.Connection:
    """Open an SQLite file; the connection may be used by one thread after the other."""
    # The writer works in a thread of its own, and an application may be closed in another than it was made in.
    where = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(where, timeout=patience_s, isolation_level=None, check_same_thread=False, uri=True)


# ---- the mark ----------------------------------------------------------------------------------------------


def mark_of(about: Mapping[str, str]) -> bytes:
    """Return what the mark says of a journal: all that never changes, and the last number."""
    said = {name: value for name, value in about.items() if name not in ("start", "base")}
    text = json.dumps({**said, "checksum": seal("", "mark", sorted(said.items())).hex()})
    return text.encode().ljust(_MARK_BYTES - 1) + b"\n"


def read_mark(folder: Path) -> dict[str, str] | None:
    """Return what the mark says, None if there is none."""
    try:
        with (folder / MARK).open("rb") as file:
            said = json.loads(file.read(_MARK_BYTES + 1))
        checksum = said.pop("checksum")
        if checksum == seal("", "mark", sorted(said.items())).hex() and said["last"].isdecimal():
            return dict(said)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise damaged(folder, f"file {MARK}", "its checksum does not fit")


# ---- checking ----------------------------------------------------------------------------------------------


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Call a file damaged that SQLite cannot read, unless it may not."""
    try:
        yield
    except sqlite3.Error as problem:
        if getattr(problem, "sqlite_errorcode", None) in _NOT_ALLOWED:
            raise
        raise damaged(folder, f"file {FILE}", " ".join(str(problem).split())) from None
    except (UnicodeError, OverflowError):  # SQLite repeats names that are no text in its complaints
        raise damaged(folder, f"file {FILE}", "it holds names or texts that are none") from None


def is_new(folder: Path) -> bool:
    """Is there no journal yet, or one that was interrupted before it held anything?"""
    path = folder / FILE
    if path.exists() and path.stat().st_size:
        with _reading(folder), closing(connect(path, mode="ro")) as reader:
            if reader.execute("select count(*) from sqlite_master").fetchone()[0]:
                return False
        if path.stat().st_size > _EMPTY_BYTES:
            raise damaged(folder, f"file {FILE}", "it has no tables")
    mark = read_mark(folder)
    if mark is not None and mark["last"] != "0":
        raise damaged(folder, f"file {FILE}", f"it is empty, and {mark['last']} rows were acknowledged")
    return True


def check(folder: Path, expected: Mapping[str, str], bounds: Bounds) -> Checked:
    """Return what the journal in a folder holds, or say what is damaged; nothing in the folder changes."""
    with _reading(folder), closing(connect(folder / FILE, mode="ro")) as reader:
        about = _check_about(folder, reader, expected)
        for (said,) in reader.execute("pragma integrity_check(1)"):
            if said != "ok":
                raise damaged(folder, f"file {FILE}", " ".join(str(said).split()))
        reader.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
        routes = _check_rows(folder, reader, about, bounds)
        snapshots, useless = _check_snapshots(folder, reader, about)
    return Checked(about, snapshots, useless, routes)


def read_about(reader: sqlite3.Connection) -> dict[str, str]:
    """Return the entries of `about` whose checksums fit."""
    entries = reader.execute("select name, value, checksum from about").fetchall()
    return {
        name: value
        for name, value, checksum in entries
        if row_problem("about", (name, value), ANY) is None and seal("", "about", (name, value)) == checksum
    }


def _check_about(folder: Path, reader: sqlite3.Connection, expected: Mapping[str, str]) -> dict[str, str]:
    schema = dict(reader.execute("select name, sql from sqlite_master where sql is not null"))
    if "about" in schema and "checksum" not in str(schema["about"]):
        command = f"routesim rescue {shlex.quote(str(folder))} --out NEW_FOLDER"
        raise ResultsError(f"the state in {folder} is of an earlier routesim; take it over with: {command}")
    if schema != SCHEMA:
        names = sorted(str(name) for name in {*schema, *SCHEMA} if schema.get(name) != SCHEMA.get(name))
        raise damaged(folder, f"table {names[0][:100]}", "it is missing, or is not one of a journal")
    about = read_about(reader)
    for (name,) in reader.execute("select name from about"):
        if name not in about:
            raise damaged(folder, f"table about, row {name!r:.100}", "its checksum does not fit")
    for name in (*expected, "token", *CHANGING):
        if name not in about:
            raise damaged(folder, f"table about, row {name!r}", "it is missing")
    for name, value in expected.items():
        if about[name] != value:
            raise ResultsError(
                f"{folder} holds the state of another {name}; give another folder with --state, or delete this one"
            )
    mark = read_mark(folder)
    if mark is not None and (mark.get("token") != about["token"] or int(mark["last"]) > int(about["last"])):
        what = f"the rows end with {about['last']}, and those up to {mark['last']} were acknowledged"
        raise damaged(folder, f"file {FILE}", what)
    return about


def _check_rows(
    folder: Path, reader: sqlite3.Connection, about: Mapping[str, str], bounds: Bounds
) -> set[tuple[int, int, int, int]]:
    """Check every row by itself and against those before it; return which routes of which pairs there are."""
    base, last, token = int(about["base"]), int(about["last"]), about["token"]
    following, routes = Following(base), set()
    for table, row in merged(reader, base):
        values = row[:-1]
        problem = None if seal(token, table, values) == row[-1] else "its checksum does not fit"
        problem = problem or row_problem(table, values, bounds) or following.problem(table, values)
        if problem is not None:
            raise damaged(folder, f"table {table}, row {values[0]}", problem)
        if table == "decisions":
            routes.add((values[2], values[3], values[5], len(values[7]) // 2))
    if following.last != last:
        raise damaged(folder, "table about, row 'last'", f"it says {last}, and the rows end with {following.last}")
    for table in NUMBERED:
        query = f"select count(*) from {table} where number <= ?"  # noqa: S608 - a name of ours
        (count,) = reader.execute(query, (base,)).fetchone()
        if count:
            raise damaged(folder, f"table {table}", f"it has rows up to {base}, which are pruned")
    return routes


def merged(reader: sqlite3.Connection, after: int) -> Iterator[TableRow]:
    """Yield the rows of all numbered tables above `after` with their tables, by number."""
    return in_order(table_rows(reader, table, after) for table in NUMBERED)


def in_order(tables: Iterable[Iterable[TableRow]], *, back: bool = False) -> Iterator[TableRow]:
    """Yield the rows of several tables by number; `back` from the last one on."""
    return heapq.merge(*tables, key=lambda one: one[1][0], reverse=back)


def table_rows(reader: sqlite3.Connection, table: str, after: int, *, back: bool = False) -> Iterator[TableRow]:
    """Yield the rows of a table above `after` with its name, by number; `back` from the last one on."""
    order = "desc" if back else "asc"
    query = f"select * from {table} where number > ? order by number {order}"  # noqa: S608 - names of ours
    for row in reader.execute(query, (after,)):
        yield table, row


def _check_snapshots(
    folder: Path, reader: sqlite3.Connection, about: Mapping[str, str]
) -> tuple[list[Snapshot], list[tuple[int, str]]]:
    """Return the snapshots, newest first, and those of no use; refuse a state that cannot be told without these."""
    good, useless = [], []
    base, last = int(about["base"]), int(about["last"])
    numbers = list(map(itemgetter(0), reader.execute("select number from snapshots order by number desc")))
    reader.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1 << 30)
    for number in numbers:
        what = snapshot_problem(reader, number, about["token"], base, last)
        if isinstance(what, Snapshot):
            good.append(what)
        else:
            useless.append((number, what))
    if not good and base > int(about["start"]):
        row, what = useless[0] if useless else (base, "there is none")
        raise damaged(folder, f"table snapshots, row {row}", f"{what}, and rows up to {base} are pruned")
    return good, useless


def snapshot_problem(reader: sqlite3.Connection, number: int, token: str, base: int, last: int) -> Snapshot | str:
    """Return a snapshot that can be used, or why it cannot."""
    row = reader.execute("select * from snapshots where number = ?", (number,)).fetchone()
    problem = row_problem("snapshots", row[:-1], ANY)
    if problem is None and seal(token, "snapshots", row[:-1]) != row[-1]:
        problem = "its checksum does not fit"
    if problem is None and not base <= number <= last:
        problem = f"it is of row {number}, and the rows go from {base + 1} to {last}"
    return problem or Snapshot(number, row[1])


# ---- writing -----------------------------------------------------------------------------------------------


class Ledger:
    """The file of a journal, open for writing."""

    def __init__(self, folder: Path, about: Mapping[str, str], snapshots: Sequence[Snapshot] = ()) -> None:
        self.about, self._folder = dict(about), folder
        self._snapshots = sorted(snapshots)
        with ExitStack() as opened:
            self._file = opened.enter_context(closing(connect(folder / FILE)))
            self._file.execute("pragma journal_mode = wal")
            self._file.execute("pragma synchronous = full")
            how = "r+b" if (folder / MARK).exists() else "w+b"
            self._mark = opened.enter_context((folder / MARK).open(how, buffering=0))
            self._write_mark()
            os.fsync(self._mark.fileno())
            self._opened = opened.pop_all()

    @classmethod
    def create(cls, folder: Path, about: Mapping[str, str]) -> "Ledger":
        """Make an empty journal, whole or not at all."""
        held = {**dict.fromkeys(CHANGING, "0"), "token": secrets.token_hex(4), **about}
        with closing(connect(folder / FILE)) as file:
            file.execute("pragma journal_mode = wal")
            file.execute("begin")
            for statement in SCHEMA.values():
                file.execute(statement)
            rows = [sealed("", "about", entry) for entry in held.items()]
            file.executemany("insert into about values (?, ?, ?)", rows)
            file.execute("commit")
        return cls(folder, held)

    def write(self, rows: Sequence[Row], snapshots: Sequence[tuple[Snapshot, bytes]] = ()) -> None:
        """Write rows and snapshots in one commit, and prune a little; all are on the disk in the end."""
        about = dict(self.about)
        kept = list(self._snapshots)
        self._file.execute("begin")
        try:
            for row in rows:
                self._insert(TABLE_OF[type(row)], row.values())
                about["last"] = str(row.number)
            for snapshot, content in snapshots:
                kept = [*kept, snapshot][-2:]
                self._file.execute("delete from snapshots where number = ? or number < ?", (snapshot[0], kept[0][0]))
                self._insert("snapshots", (*snapshot, content))
            self._prune(about, kept, _PRUNED * (len(rows) + 4))
            changed = [(name, about[name]) for name in CHANGING if about[name] != self.about[name]]
            rows_about = [(value, seal("", "about", (name, value)), name) for name, value in changed]
            self._file.executemany("update about set value = ?, checksum = ? where name = ?", rows_about)
            self._file.execute("commit")
        except BaseException:
            if self._file.in_transaction:  # SQLite has rolled back itself where the disk is full
                self._file.execute("rollback")
            raise
        self.about, self._snapshots = about, kept
        self._write_mark()

    def _write_mark(self) -> None:
        self._mark.seek(0)
        self._mark.write(mark_of(self.about))

    def _insert(self, table: str, values: tuple[Any, ...]) -> None:
        places = ", ".join("?" * (len(values) + 1))
        statement = f"insert into {table} values ({places})"  # noqa: S608 - a name of ours
        self._file.execute(statement, sealed(self.about["token"], table, values))

    def _prune(self, about: dict[str, str], kept: Sequence[Snapshot], most: int) -> None:
        """Remove the oldest rows that even the older of two snapshots has done with."""
        base = int(about["base"])
        upto = min(base + most, kept[0].horizon) if len(kept) > 1 else base
        if upto > base:
            for table in NUMBERED:
                self._file.execute(f"delete from {table} where number <= ?", (upto,))  # noqa: S608 - a name of ours
            about["base"] = str(upto)

    def remove_snapshots(self, numbers: Sequence[int]) -> None:
        """Remove snapshots that are of no use."""
        self._file.executemany("delete from snapshots where number = ?", [(number,) for number in numbers])

    def close(self) -> None:
        """Let go of the file."""
        self._opened.close()
