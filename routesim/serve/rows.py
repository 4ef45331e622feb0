"""The rows of a journal: what each table holds, the checksum of every row, and which values make sense."""

import hashlib
import math
import re
import struct
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.serve.desk import Decision, Ends

FORMAT = "2"
MOST_NUMBER = (1 << 62) - 1
MOST_BYTES = 1 << 24  # of one row; snapshots may be larger
COLUMNS = {
    "decisions": (
        "number integer primary key, request text unique, origin integer not null, destination integer not null, "
        "traveller text not null, action integer not null, expected_s real not null, counts blob not null"
    ),
    "observations": (
        "number integer primary key, decision integer not null unique, request text unique, "
        "total integer not null, seconds blob not null"
    ),
    "evictions": "number integer primary key, origin integer not null, destination integer not null",
    "snapshots": "number integer primary key, horizon integer not null, content blob not null",
    "about": "name text primary key, value text not null",
}
SCHEMA = {
    table: f"CREATE TABLE {table} ({columns}, checksum blob not null)"  # as SQLite itself writes it down
    for table, columns in COLUMNS.items()
}
NUMBERED = ("decisions", "observations", "evictions")
"""The tables whose rows share one numbering without gaps."""

_TEXT = (str, type(None))
_KINDS: dict[str, tuple[Any, ...]] = {
    "decisions": (int, _TEXT, int, int, str, int, float, bytes),
    "observations": (int, int, _TEXT, int, bytes),
    "evictions": (int, int, int),
    "snapshots": (int, int, bytes),
    "about": (str, str),
}
_REQUEST = re.compile(r"[A-Za-z0-9._:-]{1,64}")


class Recommended(NamedTuple):
    """A decision, its number, and the id of the request that asked for it."""

    number: int
    request: str | None
    decision: Decision

    def values(self) -> tuple[Any, ...]:
        """Return the row as it is stored."""
        ends, traveller, action, counts, expected_s = self.decision
        stored = counts.astype("<u2").tobytes()
        return (self.number, self.request, *ends, "\n".join(traveller), action, expected_s, stored)

    @classmethod
    def of(cls, values: Any) -> "Recommended":
        """Return what a stored row says."""
        number, request, origin, destination, traveller, action, expected_s, counts = values
        who = tuple(traveller.split("\n")) if traveller else ()
        met = np.frombuffer(counts, dtype="<u2").astype(np.int32)
        return cls(number, request, Decision((origin, destination), who, action, met, expected_s))


class Observed(NamedTuple):
    """The seconds of a decision's trip, on each edge or in total."""

    number: int
    decision: int
    request: str | None
    total: bool
    seconds: NDArray[np.float64]

    def values(self) -> tuple[Any, ...]:
        """Return the row as it is stored."""
        stored = self.seconds.astype("<f8").tobytes()
        return (self.number, self.decision, self.request, int(self.total), stored)

    @classmethod
    def of(cls, values: Any) -> "Observed":
        """Return what a stored row says."""
        number, decision, request, total, seconds = values
        return cls(number, decision, request, bool(total), np.frombuffer(seconds, dtype="<f8").astype(np.float64))

    def says_the_same(self, other: "Observed") -> bool:
        """Tell whether two observations are of the same trip with the same seconds."""
        same = (self.decision, self.total) == (other.decision, other.total)
        return same and np.array_equal(self.seconds, other.seconds)


class Evicted(NamedTuple):
    """An origin-destination pair whose learner gave way to that of another pair."""

    number: int
    ends: Ends

    def values(self) -> tuple[Any, ...]:
        """Return the row as it is stored."""
        return (self.number, *self.ends)

    @classmethod
    def of(cls, values: Any) -> "Evicted":
        """Return what a stored row says."""
        number, origin, destination = values
        return cls(number, (origin, destination))


Row: TypeAlias = Recommended | Observed | Evicted
TABLE_OF: dict[type[Row], str] = {Recommended: "decisions", Observed: "observations", Evicted: "evictions"}
ROW_OF: dict[str, type[Row]] = {table: kind for kind, table in TABLE_OF.items()}


class Bounds(NamedTuple):
    """What the numbers in rows must lie below; without a scenario only what holds in all of them."""

    n_nodes: int = MOST_NUMBER
    window: int = (1 << 16) - 1


ANY = Bounds()


def seal(token: str, table: str, values: Sequence[Any]) -> bytes:
    """Return the checksum of a row, which fits no other row, table or journal."""
    if table == "snapshots":  # the text of a long content would be four times as long
        values = (*values[:-1], hashlib.blake2b(values[-1]).hexdigest())
    return hashlib.blake2b(f"{token} {table} {tuple(values)!r}".encode("utf-8", "replace"), digest_size=8).digest()


def sealed(token: str, table: str, values: Sequence[Any]) -> tuple[Any, ...]:
    """Return a row with its checksum, as it is stored."""
    return (*values, seal(token, table, values))


def row_problem(table: str, values: Sequence[Any], bounds: Bounds) -> str | None:
    """Return what makes no sense in a row by itself, None if all does."""
    kinds = _KINDS[table]
    if len(values) != len(kinds) or not all(map(isinstance, values, kinds)):
        return "a value has another type than its column"
    if table == "about":
        return None
    if not 0 < values[0] <= MOST_NUMBER:
        return f"its number is {values[0]}"
    if table == "decisions":
        return _decision_problem(values, bounds)
    if table == "observations":
        return _observation_problem(values)
    if table == "evictions":
        return _ends_problem(values[1], values[2], bounds)
    return None if 0 <= values[1] <= values[0] else f"its horizon is {values[1]}, which lies ahead of it"


def _decision_problem(values: Sequence[Any], bounds: Bounds) -> str | None:
    _, request, origin, destination, _, action, expected_s, counts = values
    if request is not None and not _REQUEST.fullmatch(request):
        return "its request id breaks the rules of ids"
    if action < 0:
        return f"its route has the number {action}"
    if not (math.isfinite(expected_s) and expected_s >= 0):
        return f"its expected time is {expected_s} seconds"
    if not counts or len(counts) % 2:
        return f"its counts have {len(counts)} bytes, which are no whole numbers of two bytes each"
    if bounds.window < ANY.window and max(struct.unpack(f"<{len(counts) // 2}H", counts)) > bounds.window:
        return f"it has a count above the window, {bounds.window}"
    return _ends_problem(origin, destination, bounds)


def _ends_problem(origin: int, destination: int, bounds: Bounds) -> str | None:
    if 0 <= origin < bounds.n_nodes and 0 <= destination < bounds.n_nodes and origin != destination:
        return None
    return f"it goes from node {origin} to node {destination}, which are no two nodes of the roads"


def _observation_problem(values: Sequence[Any]) -> str | None:
    number, decision, request, total, seconds = values
    if request is not None and not _REQUEST.fullmatch(request):
        return "its request id breaks the rules of ids"
    if not 0 < decision < number:
        return f"it observes decision {decision}, which was not made before it"
    if total not in (0, 1):
        return f"total is {total}"
    if not seconds or len(seconds) % 8 or (total and len(seconds) != 8):
        return f"its seconds have {len(seconds)} bytes, which is no whole number of times"
    for one in struct.unpack(f"<{len(seconds) // 8}d", seconds):
        if not (math.isfinite(one) and one >= 0):
            return f"it has a time of {one} seconds"
    return None


class Following:
    """Rows in the order of their numbers, each checked against those before it."""

    def __init__(self, base: int) -> None:
        self.base = self.last = base
        # Of each number: the edges of a decision, negative once it is observed, and 0 for rows of other tables.
        self._edges = array("i")

    def problem(self, table: str, values: Sequence[Any]) -> str | None:
        """Take in the next row; return what does not fit those before it, None if all does."""
        number = values[0]
        if number != self.last + 1:
            return f"row {self.last + 1} is missing" if number > self.last else f"there are two rows {number}"
        edges = 0
        if table == "decisions":
            edges = len(values[-1]) // 2
        elif table == "observations" and values[1] > self.base:
            at = values[1] - self.base - 1
            known = self._edges[at]
            if known <= 0:
                return f"it observes row {values[1]}, which is no decision or was observed before"
            if not values[3] and len(values[-1]) != 8 * known:
                return f"it has {len(values[-1]) // 8} times for the {known} edges of decision {values[1]}"
            self._edges[at] = -known
        self._edges.append(edges)
        self.last = number
        return None
