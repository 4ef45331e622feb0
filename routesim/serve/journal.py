"""The journal: every recommendation and observation in an SQLite file, on the disk before it is acknowledged.

Rows wait for one commit together: while a commit is on its way to the disk, those that come in form the next one.
Recommendations and observations share one numbering, so reading both in that order tells the whole story again.
"""

import asyncio
import io
import secrets
import sqlite3
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from routesim.errors import ResultsError
from routesim.serve.desk import Decision
from routesim.storage.state import State

_FORMAT = "1"
_FILE, _LOCK = "journal.sqlite", "lock.sqlite"
_SCHEMA = """
create table if not exists about (name text primary key, value text not null) without rowid;
create table if not exists decisions (
    number integer primary key, request text unique, origin integer not null, destination integer not null,
    traveller text not null, action integer not null, expected_s real not null, counts blob not null);
create table if not exists observations (
    number integer primary key, decision integer not null unique, request text unique,
    total integer not null, seconds blob not null);
create table if not exists snapshots (number integer primary key, content blob not null);
"""
_INSERTS = {
    "decisions": "insert into decisions values (?, ?, ?, ?, ?, ?, ?, ?)",
    "observations": "insert into observations values (?, ?, ?, ?, ?)",
    "snapshots": "insert or replace into snapshots values (?, ?)",
}
_DECISION = "select number, request, origin, destination, traveller, action, expected_s, counts from decisions where "
_OBSERVATION = "select number, decision, request, total, seconds from observations where "


class Recommended(NamedTuple):
    """A row of the journal: a decision, its number, and the id of the request that asked for it."""

    number: int
    request: str | None
    decision: Decision

    def row(self) -> tuple[Any, ...]:
        """Return the row as it is stored."""
        ends, traveller, action, counts, expected_s = self.decision
        stored = counts.astype("<u2").tobytes()
        return (self.number, self.request, *ends, "\n".join(traveller), action, expected_s, stored)

    @classmethod
    def of(cls, row: Any) -> "Recommended":
        """Return what a stored row says."""
        number, request, origin, destination, traveller, action, expected_s, counts = row
        who = tuple(traveller.split("\n")) if traveller else ()
        met = np.frombuffer(counts, dtype="<u2").astype(np.int32)
        return cls(number, request, Decision((origin, destination), who, action, met, expected_s))


class Observed(NamedTuple):
    """A row of the journal: the seconds of a decision's trip, on each edge or in total."""

    number: int
    decision: int
    request: str | None
    total: bool
    seconds: NDArray[np.float64]

    def row(self) -> tuple[Any, ...]:
        """Return the row as it is stored."""
        stored = self.seconds.astype("<f8").tobytes()
        return (self.number, self.decision, self.request, int(self.total), stored)

    @classmethod
    def of(cls, row: Any) -> "Observed":
        """Return what a stored row says."""
        number, decision, request, total, seconds = row
        return cls(number, decision, request, bool(total), np.frombuffer(seconds, dtype="<f8").astype(np.float64))

    def says_the_same(self, other: "Observed") -> bool:
        """Tell whether two observations are of the same trip with the same seconds."""
        same = (self.decision, self.total) == (other.decision, other.total)
        return same and np.array_equal(self.seconds, other.seconds)


class Journal:
    """The file in a state folder; one process at a time may have it open."""

    def __init__(self, folder: Path, about: Mapping[str, str]) -> None:
        self._batch: list[tuple[str, tuple[Any, ...]]] = []
        self._waiting: asyncio.Future[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self.broken: str | None = None
        with ExitStack() as opened:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._lock = opened.enter_context(closing(_hold(folder)))
                self._writer = opened.enter_context(closing(_connect(folder / _FILE)))
                self._writer.execute("pragma journal_mode = wal")
                self._writer.execute("pragma synchronous = full")
                self._writer.executescript(_SCHEMA)
                self._reader = opened.enter_context(closing(_connect(folder / _FILE)))
                self.token = self._check(folder, {"format": _FORMAT, **about})
            except (sqlite3.Error, OSError) as problem:
                advice = "give another folder with --state"
                raise ResultsError(f"cannot keep a state in {folder}: {problem}; {advice}") from None
            self._opened = opened.pop_all()
        # One thread: SQLite has one writer anyway, and commits stay in order.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")

    def _check(self, folder: Path, about: Mapping[str, str]) -> str:
        """Note what the state belongs to, or refuse that of something else; return the token of decision ids."""
        held = dict(self._reader.execute("select name, value from about"))
        if not held:
            held = {**about, "token": secrets.token_hex(4)}
            self._writer.execute("begin")
            self._writer.executemany("insert into about values (?, ?)", held.items())
            self._writer.execute("commit")
        for name, value in about.items():
            if held.get(name) != value:
                raise ResultsError(
                    f"{folder} holds the state of another {name}; give another folder with --state, or delete this one"
                )
        return str(held["token"])

    # ---- reading -------------------------------------------------------------------------------------

    def last(self) -> int:
        """Return the largest number in the journal, 0 if it is empty."""
        query = "select max(coalesce((select max(number) from decisions), 0), {})"
        (number,) = self._reader.execute(query.format("coalesce((select max(number) from observations), 0)")).fetchone()
        return int(number)

    def story(self, after: int) -> Iterator[Recommended | Observed]:
        """Yield all rows with a number above `after`, in order."""
        decisions = map(Recommended.of, self._reader.execute(f"{_DECISION} number > ? order by number", (after,)))
        observations = map(Observed.of, self._reader.execute(f"{_OBSERVATION} number > ? order by number", (after,)))
        decision, observation = next(decisions, None), next(observations, None)
        while decision is not None or observation is not None:
            if observation is None or (decision is not None and decision.number < observation.number):
                assert decision is not None  # noqa: S101 - the loop goes on while there is one of the two
                yield decision
                decision = next(decisions, None)
            else:
                yield observation
                observation = next(observations, None)

    def decision(self, number: int) -> Recommended | None:
        """Return the recommendation of this number."""
        row = self._reader.execute(f"{_DECISION} number = ?", (number,)).fetchone()
        return None if row is None else Recommended.of(row)

    def decision_of_request(self, request: str) -> Recommended | None:
        """Return the recommendation that this request asked for."""
        row = self._reader.execute(f"{_DECISION} request = ?", (request,)).fetchone()
        return None if row is None else Recommended.of(row)

    def observation_of(self, decision: int) -> Observed | None:
        """Return what was observed of a decision."""
        row = self._reader.execute(f"{_OBSERVATION} decision = ?", (decision,)).fetchone()
        return None if row is None else Observed.of(row)

    def observation_of_request(self, request: str) -> Observed | None:
        """Return the observation that this request brought."""
        row = self._reader.execute(f"{_OBSERVATION} request = ?", (request,)).fetchone()
        return None if row is None else Observed.of(row)

    def snapshot(self) -> tuple[int, State] | None:
        """Return the latest snapshot and the number up to which it goes."""
        row = self._reader.execute("select number, content from snapshots order by number desc limit 1").fetchone()
        if row is None:
            return None
        try:
            with np.load(io.BytesIO(row[1]), allow_pickle=False) as arrays:
                return int(row[0]), {name: arrays[name] for name in arrays.files}
        except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile) as problem:
            raise ResultsError(f"the snapshot cannot be read: {problem}") from None

    # ---- writing -------------------------------------------------------------------------------------

    def append(self, row: Recommended | Observed) -> "asyncio.Future[None]":
        """Write a row with the next commit; the future is done when it is on the disk."""
        return self._append("decisions" if isinstance(row, Recommended) else "observations", row.row())

    def keep(self, number: int, state: State) -> "asyncio.Future[None]":
        """Write a snapshot of the state after the row of this number, with the next commit; older ones go."""
        return self._append("snapshots", (number, state))

    def _append(self, table: str, row: tuple[Any, ...]) -> "asyncio.Future[None]":
        loop = asyncio.get_running_loop()
        if self._waiting is None:
            self._waiting = loop.create_future()
        self._batch.append((table, row))
        if self._writing is None:
            self._writing = loop.create_task(self._write_all())
        return self._waiting

    async def _write_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting is not None:
            batch, waiting = self._batch, self._waiting
            self._batch, self._waiting = [], None
            try:
                await loop.run_in_executor(self._thread, self._commit, batch)
                waiting.set_result(None)
            except Exception as problem:
                # What is in memory is ahead of the disk from here on, so nothing more may be acknowledged.
                self.broken = str(problem)
                waiting.set_exception(ResultsError(f"the journal cannot be written: {problem}"))
        self._writing = None

    def _commit(self, batch: list[tuple[str, tuple[Any, ...]]]) -> None:
        if self.broken is not None:
            raise sqlite3.OperationalError(self.broken)
        self._writer.execute("begin")
        try:
            for table, row in batch:
                if table == "snapshots":
                    number, state = row
                    content = io.BytesIO()
                    np.savez_compressed(content, **state)
                    row = (number, content.getvalue())
                    self._writer.execute("delete from snapshots where number < ?", (number,))
                self._writer.execute(_INSERTS[table], row)
            self._writer.execute("commit")
        except sqlite3.Error:
            self._writer.execute("rollback")
            raise

    async def close(self) -> None:
        """Wait for what is on its way, and let go of the file."""
        if self._writing is not None:
            await self._writing
        self._thread.shutdown()
        self._opened.close()


def _connect(path: Path, patience_s: float = 5.0) -> sqlite3.Connection:
    # The writer works in a thread of its own, and an application may be closed in another than it was made in.
    return sqlite3.connect(path, timeout=patience_s, isolation_level=None, check_same_thread=False)


def _hold(folder: Path) -> sqlite3.Connection:
    """Return a lock on the folder that ends with the process, however it ends."""
    lock = _connect(folder / _LOCK, patience_s=0.0)
    try:
        lock.execute("begin exclusive")
    except sqlite3.OperationalError:
        lock.close()
        raise ResultsError(
            f"another service uses the state in {folder}; stop it, or give another folder with --state"
        ) from None
    return lock
