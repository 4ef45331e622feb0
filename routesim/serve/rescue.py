"""Rescue: a new journal of all that makes sense in a damaged one, or in one of an earlier format.

The damaged folder is only read. Where a snapshot survives that covers the damage, the rows after the damage are kept
and nothing that was learned is lost; otherwise those before it are kept, as far as they go.
"""

import io
import shutil
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from routesim.errors import ResultsError
from routesim.serve.journal import hold
from routesim.serve.ledger import (
    FILE,
    Ledger,
    Snapshot,
    TableRow,
    connect,
    in_order,
    read_about,
    read_mark,
    snapshot_problem,
    table_rows,
)
from routesim.serve.rows import ANY, FORMAT, NUMBERED, ROW_OF, Following, Row, row_problem, seal
from routesim.storage.folders import durable_folder

_UNREADABLE = (sqlite3.Error, ValueError, TypeError, OverflowError)
_BATCH = 10_000
_FIRST_FORMAT = ("decisions", "observations")


class Rescued(NamedTuple):
    """What a rescue kept of a journal, and what it did not."""

    first: int
    last: int
    lost: int
    problem: str | None
    forgotten: int

    def lines(self) -> list[str]:
        """Return what happened in words."""
        kept = self.last - self.first + 1
        said = [f"kept {kept:,} rows" + (f", {self.first:,} to {self.last:,}" if kept else "")]
        if self.problem is not None:
            said.append(f"lost {self.lost:,} rows; the first damage: {self.problem}")
        if self.forgotten:
            said.append(f"lost with them: what was learned from the rows up to {self.forgotten:,}")
        return said


class _Source:
    """A copy of a damaged journal, read as far as it can be read."""

    def __init__(self, folder: Path, reader: sqlite3.Connection) -> None:
        self.reader = reader
        self.problem: str | None = None
        self.stopped: str | None = None
        self.about = _about(folder, reader)
        self.sealed = self.about.get("format") == FORMAT
        self.token = self.about["token"]
        numbers = [self._end(table, "max") for table in NUMBERED]
        self.last = max(int(self.about.get("last", 0)), *numbers)
        first = min((number for number in (self._end(table, "min") for table in NUMBERED) if number), default=1)
        self.base = int(self.about.get("base", max(0, first - 1)))
        self.start = int(self.about.get("start", 0))

    def _end(self, table: str, which: str) -> int:
        try:
            query = f"select {which}(number) from {table}"  # noqa: S608 - names of ours
            return int(self.reader.execute(query).fetchone()[0] or 0)
        except _UNREADABLE:
            return 0

    def rows(self, after: int, *, back: bool = False) -> Iterator[tuple[str, tuple[Any, ...], str | None]]:
        """Yield rows with their tables by number, and what is wrong with each, as far as SQLite can read them."""
        tables = NUMBERED if self.sealed else _FIRST_FORMAT
        for table, row in in_order((self._readable(table, after, back=back) for table in tables), back=back):
            values, problem = row, None
            if self.sealed:
                values = row[:-1]
                problem = None if seal(self.token, table, values) == row[-1] else "its checksum does not fit"
            yield table, values, problem or row_problem(table, values, ANY)

    def _readable(self, table: str, after: int, *, back: bool) -> Iterator[TableRow]:
        try:
            yield from table_rows(self.reader, table, after, back=back)
        except _UNREADABLE as problem:
            self.stopped = f"table {table}: {' '.join(str(problem).split())}"

    def good(self, base: int) -> Iterator[TableRow]:
        """Yield the rows above `base` as far as they make sense; `problem` says why they end before the last."""
        self.problem = self.stopped = None
        following, requests = Following(base), {table: set[str]() for table in NUMBERED}
        for table, values, found in self.rows(base):
            problem = found or following.problem(table, values)
            request = {"decisions": 1, "observations": 2}.get(table, 0)
            if problem is None and request and values[request] is not None:
                if values[request] in requests[table]:
                    problem = f"request {values[request]!r} is that of an earlier row"
                requests[table].add(values[request])
            if problem is not None:
                self.problem = self.stopped or f"table {table}, row {values[0]}: {problem}"
                return
            yield table, values
        if following.last < self.last:
            self.problem = self.stopped or f"row {following.last + 1} is missing"

    def intact_end(self) -> tuple[int, int]:
        """Return the numbers of the first and the last row of those at the end that are whole."""
        first, last = 0, 0
        for _, values, problem in self.rows(self.base, back=True):
            if problem is not None or (last and values[0] != first - 1):
                break
            first, last = values[0], last or values[0]
        return first, last

    def snapshots(self, base: int, last: int) -> list[Snapshot]:
        """Return the snapshots that can be used with the rows from `base` to `last`, oldest first."""
        found = []
        try:
            numbers = [number for (number,) in self.reader.execute("select number from snapshots order by number")]
        except _UNREADABLE:
            return []
        for number in numbers if self.sealed else ():
            try:
                one = snapshot_problem(self.reader, number, self.token, base, last)
            except _UNREADABLE:
                continue
            if isinstance(one, Snapshot) and self.content(number) is not None:
                found.append(one)
        return found

    def content(self, number: int) -> bytes | None:
        """Return what a snapshot holds, None if it cannot be read."""
        (content,) = self.reader.execute("select content from snapshots where number = ?", (number,)).fetchone()
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                for name in arrays.files:
                    arrays[name]
        except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile):
            return None
        return bytes(content)


def rescue(folder: Path, out: Path) -> Rescued:
    """Write a new journal to `out` of what makes sense in the one of `folder`, which stays as it is."""
    if not (folder / FILE).is_file():
        raise ResultsError(f"{folder} holds no {FILE}, so there is nothing to rescue")
    if out.exists() or out.is_symlink():
        raise ResultsError(f"{out} exists; name a new folder with --out")
    with ExitStack() as opened:
        # Where there is no lock, or none that may be taken here, no service is writing.
        with suppress(sqlite3.OperationalError):
            opened.enter_context(closing(hold(folder, mode="rw")))
        fresh = opened.enter_context(durable_folder(out))
        fresh.mkdir(parents=True)
        copy = Path(opened.enter_context(TemporaryDirectory(dir=fresh.parent)))
        for name in (FILE, f"{FILE}-wal"):
            if (folder / name).exists():
                shutil.copyfile(folder / name, copy / name)
        reader = opened.enter_context(closing(connect(copy / FILE)))
        try:
            return _rescue(_Source(folder, reader), fresh)
        except (sqlite3.Error, UnicodeError) as problem:
            raise ResultsError(f"nothing in {folder} can be read any more: {problem}; restore a copy of it") from None


def _about(folder: Path, reader: sqlite3.Connection) -> dict[str, str]:
    """Return what the journal, or else its mark, says it belongs to."""
    about: dict[str, str] = {}
    try:
        columns = [column for _, column, *_ in reader.execute("pragma table_info(about)")]
        about = read_about(reader) if "checksum" in columns else dict(reader.execute("select name, value from about"))
    except _UNREADABLE:
        pass
    try:
        mark = read_mark(folder) or {}
        about = {**mark, **about, "last": max(mark.get("last", "0"), about.get("last", "0"), key=int)}
    except (ResultsError, ValueError):
        about.pop("last", None)
    for name in ("format", "token", "scenario or learner"):
        if not isinstance(about.get(name), str):
            raise ResultsError(f"nothing in {folder} says any more what {name} it is of; restore a copy of it")
    return about


def _rescue(source: _Source, out: Path) -> Rescued:
    base = source.base
    last = max((values[0] for _, values in source.good(base)), default=base)
    problem = source.problem
    if problem is not None:
        first, end = source.intact_end()
        newest = source.snapshots(first - 1, end)[-1:]
        if newest and _can_follow(source, newest[0], first - 1, end):
            base, last = first - 1, end
    snapshots = source.snapshots(base, last)
    fresh = base > source.start and not snapshots
    fixed = {name: source.about[name] for name in ("token", "scenario or learner")}
    numbers = {"base": str(base), "last": str(base), "start": str(base if fresh else source.start)}
    with closing(Ledger.create(out, {"format": FORMAT, **fixed, **numbers})) as ledger:
        rows: list[Row] = []
        for table, values in source.good(base):
            rows.append(ROW_OF[table].of(values))
            if len(rows) >= _BATCH:
                ledger.write(rows)
                rows = []
        ledger.write(rows)
        for one in snapshots[-2:]:
            ledger.write([], [(one, source.content(one.number) or b"")])
    lost = max(source.last, last) - source.base - (last - base)
    return Rescued(base + 1, last, lost, problem, base if fresh else 0)


def _can_follow(source: _Source, snapshot: Snapshot, base: int, last: int) -> bool:
    """Can the rows after a snapshot be repeated with those above `base` alone?"""
    end = base
    for table, values in source.good(base):
        if table == "observations" and values[0] > snapshot.number and values[1] <= base:
            return False
        end = values[0]
    return end == last
