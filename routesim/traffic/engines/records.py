"""What an engine writes down while it drives: entries by edge and time bin, and what driven edges teach."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints, Ints32
from routesim.kernels import inlined_kernel, lean_kernel
from routesim.traffic.engines.fleet import COUNT, ENTERED, START, Fleet, longer
from routesim.traffic.protocol import Driven, Feedback, Lessons

# Positions in EdgeLoads.book: the present time bin, the edges it touched, and the rows of earlier bins.
BIN, TOUCHED, ROWS = range(3)
# Counts are put into bins, eight for each doubling: [0], [1], … [11], [12], [13, 14], … and one from 2 ** 16 on.
BIN_STARTS = np.concatenate(([0], np.unique(np.round(2.0 ** (np.arange(129) / 8)).astype(np.int64))))
BIN_OF = (np.searchsorted(BIN_STARTS, np.arange(BIN_STARTS[-1] + 1), side="right") - 1).astype(np.int16)
_LOG_ROOM = 1 << 16


class EdgeLoads(NamedTuple):
    """Entries by edge: the present time bin, which edges it touched, and the bins before as (bin, edge, entries).

    Beside the entries stand seconds: in the window engine the travel times of those who entered, as they are expected
    without noise; in the queue engine the time that all vehicles spent on the edge within the bin.
    """

    now: Ints32
    seconds_now: Floats
    touched: Ints32
    rows: Ints
    row_seconds: Floats
    book: Ints

    @classmethod
    def build(cls, n_edges: int) -> Self:
        """Return loads of nothing."""
        return cls(
            np.zeros(n_edges, dtype=np.int32),
            np.zeros(n_edges),
            np.empty(n_edges, dtype=np.int32),
            np.empty((4 * n_edges, 3), dtype=np.int64),
            np.empty(4 * n_edges),
            np.zeros(3, dtype=np.int64),
        )

    def with_room(self) -> Self:
        """Return the same loads with room for more rows."""
        return self._replace(
            rows=longer(self.rows, 2 * len(self.rows)), row_seconds=longer(self.row_seconds, 2 * len(self.row_seconds))
        )

    def all_rows(self) -> tuple[Ints, Floats]:
        """Return the rows of all bins, the present one included, and their seconds."""
        touched, used = self.touched[: self.book[TOUCHED]].astype(np.int64), self.book[ROWS]
        now = np.column_stack((np.full(len(touched), self.book[BIN]), touched, self.now[touched]))
        return (
            np.concatenate((self.rows[:used], now)),
            np.concatenate((self.row_seconds[:used], self.seconds_now[touched])),
        )


@lean_kernel
def close_bin(loads: EdgeLoads, now: float, bin_s: float) -> bool:
    """Move the present bin to the rows and begin the one of `now`; False where the rows have no room for it."""
    book = loads.book
    if book[ROWS] + book[TOUCHED] > len(loads.rows):
        return False
    for place in range(book[TOUCHED]):
        edge, row = loads.touched[place], book[ROWS]
        loads.rows[row, 0], loads.rows[row, 1] = book[BIN], edge
        loads.rows[row, 2], loads.row_seconds[row] = loads.now[edge], loads.seconds_now[edge]
        loads.now[edge], loads.seconds_now[edge] = 0, 0.0
        book[ROWS] += 1
    book[TOUCHED] = 0
    # Three times 0.1 s divided by 0.1 s is less than three: at the end of a bin the next one begins in any case.
    book[BIN] = max(book[BIN] + 1, np.int64(now // bin_s))
    return True


@inlined_kernel
def add_seconds(loads: EdgeLoads, edge: int, seconds: float) -> None:
    """Add seconds to an edge in the present bin."""
    if loads.now[edge] == 0 and loads.seconds_now[edge] == 0.0 and seconds > 0.0:
        loads.touched[loads.book[TOUCHED]] = edge
        loads.book[TOUCHED] += 1
    loads.seconds_now[edge] += seconds


@inlined_kernel
def count_entry(loads: EdgeLoads, edge: int, seconds: float) -> None:
    """Count an entry into an edge in the present bin, and seconds with it."""
    if loads.now[edge] == 0 and loads.seconds_now[edge] == 0.0:
        loads.touched[loads.book[TOUCHED]] = edge
        loads.book[TOUCHED] += 1
    loads.now[edge] += 1
    loads.seconds_now[edge] += seconds


class Occupancy(NamedTuple):
    """Where vehicles were at the end of each time bin: (bin, edge, on the road, in its queue, waiting to enter)."""

    rows: Ints32
    used: Ints

    @classmethod
    def build(cls, n_edges: int) -> Self:
        """Return room for the first bins."""
        return cls(np.empty((2 * n_edges, 5), dtype=np.int32), np.zeros(1, dtype=np.int64))

    def with_room(self) -> Self:
        """Return the same with room for more rows."""
        return self._replace(rows=longer(self.rows, 2 * len(self.rows)))

    def all_rows(self) -> Ints32:
        """Return the rows of all bins that have ended."""
        return self.rows[: self.used[0]].copy()


@lean_kernel
def has_room(loads: EdgeLoads, standing: Occupancy) -> bool:
    """Say whether another bin can be written down, whatever is in it."""
    n_edges = len(loads.now)
    return bool(loads.book[ROWS] + n_edges <= len(loads.rows) and standing.used[0] + n_edges <= len(standing.rows))


@lean_kernel
def stand(standing: Occupancy, time_bin: int, edge: int, on: int, queued: int, outside: int) -> None:
    """Write down where the vehicles of an edge are."""
    row = standing.rows[standing.used[0]]
    row[0], row[1], row[2], row[3], row[4] = time_bin, edge, on, queued, outside
    standing.used[0] += 1


class Teaching(NamedTuple):
    """What driven edges taught: uses, summed times and squares by (edge, bin of the count), or a log of them all.

    `rates` is what a second on each edge costs each kind of traveller. What nobody asked for is empty.
    """

    bin_of: NDArray[np.int16]
    visits: Ints
    sums: Floats
    squares: Floats
    log: Floats  # rows of vehicle, place on the path, edge, count, entered_s, travel_time_s, cost, queued
    logged: Ints
    rates: Floats
    queued: Ints32  # for each vehicle how many it met in the queue of its road; empty where nobody asks for it

    @classmethod
    def build(cls, feedback: Feedback, n_edges: int, rates: Floats | None, *, queueing: int = 0) -> Self:
        """Return room for what a router with this `feedback` wants to be shown, of so many vehicles that may queue."""
        shape = (n_edges if feedback == "lessons" else 0, len(BIN_STARTS))
        return cls(
            BIN_OF.copy(),
            np.zeros(shape, dtype=np.int64),
            np.zeros(shape),
            np.zeros(shape),
            np.empty((_LOG_ROOM if feedback == "all" else 0, 8)),
            np.zeros(1, dtype=np.int64),
            np.empty((0, 0)) if rates is None else rates,
            np.zeros(queueing if feedback == "all" else 0, dtype=np.int32),
        )

    @property
    def lessons(self) -> Lessons:
        """The live view that routers have."""
        return Lessons(BIN_STARTS, self.visits, self.sums, self.squares)

    def driven(self, fleet: Fleet) -> Driven | None:
        """Return what was logged, and begin the log anew; None where it is empty."""
        logged = int(self.logged[0])
        if logged == 0:
            return None
        rows = self.log[:logged]
        vehicles, places, edges, counts = rows[:, :4].T.astype(np.int64)
        entered_s, took, costs = rows[:, 4:7].T.copy()
        self.logged[0] = 0
        kinds = fleet.kind[vehicles] if len(fleet.kind) else None
        queued = rows[:, 7].astype(np.int32) if len(self.queued) else None
        return Driven(vehicles, places, edges, counts, entered_s, took, costs, kinds, queued)


@lean_kernel
def remembers(teaching: Teaching) -> bool:
    """Say whether anybody wants to know how long an edge took."""
    return bool(teaching.visits.shape[0] > 0 or teaching.log.shape[0] > 0 or teaching.rates.shape[0] > 0)


@lean_kernel
def teach(teaching: Teaching, fleet: Fleet, vehicle: int, now: float) -> None:
    """Note the edge that a vehicle has just driven to its end: only now is its travel time known to anybody."""
    state = fleet.state
    edge, count = fleet.paths[state[vehicle, START] + state[vehicle, ENTERED] - 1], state[vehicle, COUNT]
    took = now - fleet.entered_s[vehicle]
    cost = took
    if teaching.rates.shape[0] > 0:
        cost *= teaching.rates[fleet.kind[vehicle], edge]
        fleet.cost[vehicle] += cost
    if teaching.visits.shape[0] > 0:
        column = teaching.bin_of[min(count, len(teaching.bin_of) - 1)]
        teaching.visits[edge, column] += 1
        teaching.sums[edge, column] += took
        teaching.squares[edge, column] += took * took
    if teaching.log.shape[0] > 0:
        row = teaching.log[teaching.logged[0]]
        row[0], row[1], row[2], row[3] = vehicle, state[vehicle, ENTERED] - 1, edge, count
        row[4], row[5], row[6] = fleet.entered_s[vehicle], took, cost
        if teaching.queued.shape[0] > 0:
            row[7] = teaching.queued[vehicle]
        teaching.logged[0] += 1
