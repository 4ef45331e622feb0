"""The journal: every recommendation and observation in an SQLite file, on the disk before it is acknowledged.

Rows wait for one commit together: while a commit is on its way to the disk, those that come in form the next one.
Recommendations, observations and evictions share one numbering, so reading them in that order tells the whole story
again, from the first row or from a snapshot on.
"""

import asyncio
import io
import sqlite3
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from routesim.errors import ResultsError
from routesim.serve import ledger
from routesim.serve.ledger import FILE, Ledger, Snapshot, connect, damaged
from routesim.serve.rows import ANY, FORMAT, ROW_OF, Bounds, Observed, Recommended, Row, seal
from routesim.storage.state import State

_LOCK = "lock.sqlite"


class Journal:
    """The file in a state folder; one process at a time may have it open."""

    def __init__(self, folder: Path, about: Mapping[str, str], bounds: Bounds = ANY) -> None:
        self.folder = folder
        self._batch: list[Row | tuple[Snapshot, State]] = []
        self._waiting: asyncio.Future[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self.broken: str | None = None
        self.snapshots: list[Snapshot] = []
        self.useless: list[tuple[int, str]] = []
        self.routes: set[tuple[int, int, int, int]] = set()
        with ExitStack() as opened:
            with self._writable():
                folder.mkdir(parents=True, exist_ok=True)
                opened.enter_context(closing(hold(folder)))
                self._about = self._checked({"format": FORMAT, **about}, bounds)
                # Nothing is written to a journal before all of it is found to make sense.
                self._reader = opened.enter_context(closing(connect(folder / FILE, mode="ro")))
            self._opened = opened.pop_all()
        self.token = self._about["token"]
        # One thread: SQLite has one writer anyway, and commits stay in order.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")

    def _checked(self, about: Mapping[str, str], bounds: Bounds) -> dict[str, str]:
        """Make a journal, or check one that is there; return what it says of itself."""
        if ledger.is_new(self.folder):
            with closing(Ledger.create(self.folder, about)) as made:
                return made.about
        held, self.snapshots, self.useless, self.routes = ledger.check(self.folder, about, bounds)
        return held

    def open_for_writing(self) -> None:
        """Begin to write; snapshots that are of no use go."""
        with self._writable():
            self._reader.close()
            useless = [number for number, _ in self.useless]
            kept = [snapshot for snapshot in self.snapshots if snapshot.number not in useless]
            self._ledger = self._opened.enter_context(closing(Ledger(self.folder, self._about, kept)))
            self._ledger.remove_snapshots(useless)
            self._reader = self._opened.enter_context(closing(connect(self.folder / FILE)))

    @contextmanager
    def _writable(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as problem:
            advice = "give another folder with --state"
            raise ResultsError(f"cannot keep a state in {self.folder}: {problem}; {advice}") from None

    # ---- reading -------------------------------------------------------------------------------------

    @property
    def start(self) -> int:
        """The row after which the desk was empty: 0, unless earlier rows were lost."""
        return int(self._about["start"])

    @property
    def base(self) -> int:
        """The last row that was pruned when the journal was opened."""
        return int(self._about["base"])

    @property
    def last(self) -> int:
        """The last row when the journal was opened, 0 if there was none."""
        return int(self._about["last"])

    def story(self, after: int) -> Iterator[Row]:
        """Yield all rows with a number above `after`, in order."""
        for table, row in ledger.merged(self._reader, after):
            yield ROW_OF[table].of(row[:-1])

    def decision(self, number: int) -> Recommended | None:
        """Return the recommendation of this number."""
        return self._found("decisions", "number", number)  # type: ignore[return-value]

    def decision_of_request(self, request: str) -> Recommended | None:
        """Return the recommendation that this request asked for."""
        return self._found("decisions", "request", request)  # type: ignore[return-value]

    def observation_of(self, decision: int) -> Observed | None:
        """Return what was observed of a decision."""
        return self._found("observations", "decision", decision)  # type: ignore[return-value]

    def observation_of_request(self, request: str) -> Observed | None:
        """Return the observation that this request brought."""
        return self._found("observations", "request", request)  # type: ignore[return-value]

    def _found(self, table: str, column: str, value: int | str) -> Row | None:
        try:
            query = f"select * from {table} where {column} = ?"  # noqa: S608 - both are names of ours
            row = self._reader.execute(query, (value,)).fetchone()
        except sqlite3.Error as problem:
            raise damaged(self.folder, f"table {table}", str(problem)) from None
        if row is None:
            return None
        if seal(self.token, table, row[:-1]) != row[-1]:
            raise damaged(self.folder, f"table {table}, row {row[0]}", "its checksum does not fit")
        return ROW_OF[table].of(row[:-1])

    def state(self, snapshot: Snapshot) -> State:
        """Return the state that a snapshot keeps."""
        query = "select content from snapshots where number = ?"
        try:
            (content,) = self._reader.execute(query, (snapshot.number,)).fetchone()
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile) as problem:
            raise ResultsError(f"the snapshot cannot be read: {problem}") from None

    # ---- writing -------------------------------------------------------------------------------------

    def append(self, row: Row) -> "asyncio.Future[None]":
        """Write a row with the next commit; the future is done when it is on the disk."""
        return self._append(row)

    def keep(self, snapshot: Snapshot, state: State) -> "asyncio.Future[None]":
        """Write a snapshot with the next commit; older ones go, and later the rows before the older one's horizon."""
        return self._append((snapshot, state))

    def _append(self, row: Row | tuple[Snapshot, State]) -> "asyncio.Future[None]":
        loop = asyncio.get_running_loop()
        if self._waiting is None:
            self._waiting = loop.create_future()
        self._batch.append(row)
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

    def _commit(self, batch: list[Any]) -> None:
        if self.broken is not None:
            raise sqlite3.OperationalError(self.broken)
        rows = [one for one in batch if isinstance(one, Row)]
        snapshots = [(one[0], _packed(one[1])) for one in batch if not isinstance(one, Row)]
        self._ledger.write(rows, snapshots)

    async def close(self) -> None:
        """Wait for what is on its way, and let go of the file."""
        if self._writing is not None:
            await self._writing
        self._thread.shutdown()
        self.release()

    def release(self) -> None:
        """Let go of a file to which nothing is on its way."""
        self._opened.close()


def _packed(state: State) -> bytes:
    content = io.BytesIO()
    np.savez_compressed(content, **state)  # type: ignore[arg-type]
    return content.getvalue()


def hold(folder: Path, *, mode: str = "rwc") -> sqlite3.Connection:
    """Return a lock on the folder that ends with the process, however it ends."""
    lock = connect(folder / _LOCK, patience_s=0.0, mode=mode)
    try:
        lock.execute("begin exclusive")
    except sqlite3.DatabaseError as problem:
        lock.close()
        if problem.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            advice = "stop it, or give another folder with --state"
            raise ResultsError(f"another service uses the state in {folder}; {advice}") from None
        if isinstance(problem, sqlite3.OperationalError):
            raise
        raise ResultsError(f"{folder / _LOCK} is damaged ({problem}); nothing is kept in it: delete it") from None
    return lock
