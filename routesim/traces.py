"""Traces while rounds are played: every round, or rows of equal numbers of rounds, in memory that does not grow."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.compiled import kernel
from routesim.environment import Trace
from routesim.errors import ResultsError
from routesim.state import State, collect, named, taken, whole_from

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

STEPS = 48
"""How many steps of rounds the plays are counted in, at most."""

ROW = np.dtype([("action", "<i4"), ("expected_reward", "<f8"), ("reward", "<f8")])
"""A row as it is stored: its last action, and the sums over its rounds."""

_STRETCH = 1 << 18
_SCRATCH = 1 << 16


class KeptTrace(NamedTuple):
    """What a run keeps: a row a round where `ends` is None, else means over the rounds up to each of `ends`."""

    actions: NDArray[np.int32]
    expected_rewards: Floats
    rewards: Floats
    ends: Ints | None
    plays: Ints | None


def equal_ends(rounds: int, at_most: int) -> Ints:
    """Return the last round, counted from 1, of each of at most `at_most` equal parts; the last may be shorter.

    >>> equal_ends(10, 4).tolist(), equal_ends(3, 48).tolist()
    ([3, 6, 9, 10], [1, 2, 3])
    """
    size = -(-rounds // at_most)
    return np.minimum(np.arange(1, -(-rounds // size) + 1, dtype=np.int64) * size, rounds)


@kernel
def add_rows(values: Floats, size: int, first: int, sums: Floats) -> None:
    """Add values number `first` and following to the sums of rows of `size` values, one by one.

    One by one, so that it does not matter in how many calls they come.
    """
    for place in range(len(values)):
        sums[(first + place) // size] += values[place]


def row_sums(values: Floats, size: int) -> Floats:
    """Return the sum of every `size` values, the last of what is left."""
    sums = np.zeros(-(-len(values) // size))
    add_rows(values, size, 0, sums)
    return sums


def count_plays(actions: NDArray[np.int32], step_ends: Ints) -> Ints:
    """Return rows (step, action, uses): how often each action was played in each step, where it was at all."""
    rows, first = [np.empty((0, 3), dtype=np.int64)], 0
    for step, last in enumerate(step_ends.tolist()):
        rows.append(_plays_of(step, np.bincount(actions[first:last])))
        first = last
    return np.concatenate(rows)


def _plays_of(step: int, uses: NDArray[Any]) -> Ints:
    played = np.flatnonzero(uses)
    return np.column_stack((np.full(len(played), step), played, uses[played])).astype(np.int64)


class TraceKeeper:
    """Takes in the rounds of a run and keeps a row for each, or at most `keep` rows of equal numbers of rounds.

    `room` and `put` take the coming rounds, `advance` says how many were written.
    """

    def __init__(self, rounds: int, keep: int | None = None) -> None:
        self.rounds, self.now = rounds, 0
        self.size = 1 if keep is None else -(-rounds // keep)
        self._thin = self.size > 1
        n_rows = -(-rounds // self.size)
        self._rows = Trace(np.zeros(n_rows, dtype=np.int32), np.zeros(n_rows), np.zeros(n_rows))
        if not self._thin:
            self._rows = Trace.empty(n_rows)
            return
        self._scratch = Trace.empty(min(rounds, _SCRATCH))
        self._taken = 0  # rounds that are in rows already; those after them up to `now` are in the scratch
        self._step_ends = equal_ends(rounds, STEPS)
        self._uses = np.zeros(0, dtype=np.int64)
        self._plays = [np.empty((0, 3), dtype=np.int64)]

    def room(self) -> Trace:
        """Return where the coming rounds are to be written: at least one, not beyond the last."""
        if not self._thin:
            return self._rows.part(self.now, self.now + _STRETCH)
        place = self._place()
        return self._scratch.part(place, min(len(self._scratch.actions), place + self.rounds - self.now))

    def put(self, action: int, expected: float, paid: float) -> None:
        """Write the coming round."""
        place = self._place() if self._thin else self.now
        actions, expected_rewards, rewards = self._scratch if self._thin else self._rows
        actions[place], expected_rewards[place], rewards[place] = action, expected, paid

    def advance(self, played: int) -> None:
        """Go on by `played` rounds that were written."""
        self.now += played

    def _place(self) -> int:
        if self.now - self._taken == len(self._scratch.actions):
            self._take_in()
        return self.now - self._taken

    def _take_in(self) -> None:
        """Move the rounds of the scratch into rows, and count their actions step by step."""
        if not self._thin or self._taken == self.now:
            return
        first, written = self._taken, self._scratch.part(0, self.now - self._taken)
        rows = np.arange(first // self.size, -(-self.now // self.size))
        self._rows.actions[rows] = written.actions[np.minimum((rows + 1) * self.size, self.now) - 1 - first]
        add_rows(written.expected_rewards, self.size, self._taken, self._rows.expected_rewards)
        add_rows(written.rewards, self.size, self._taken, self._rows.rewards)
        while self._taken < self.now:
            step = int(np.searchsorted(self._step_ends, self._taken, side="right"))
            last = min(self.now, int(self._step_ends[step]))
            uses = np.bincount(written.actions[self._taken - first : last - first], minlength=len(self._uses))
            uses[: len(self._uses)] += self._uses
            self._uses = uses
            if last == self._step_ends[step]:
                self._plays.append(_plays_of(step, self._uses))
                self._uses = np.zeros(0, dtype=np.int64)
            self._taken = last

    def kept(self) -> KeptTrace:
        """Return the trace of all rounds."""
        if not self._thin:
            return KeptTrace(*self._rows, None, None)
        self._take_in()
        ends = np.minimum(np.arange(1, len(self._rows.actions) + 1) * self.size, self.rounds)
        widths = np.diff(ends, prepend=0)
        means = (self._rows.expected_rewards / widths, self._rows.rewards / widths)
        return KeptTrace(self._rows.actions, *means, ends, np.concatenate(self._plays))

    def rows(self, first: int) -> NDArray[Any]:
        """Return the complete rows from row `first` on, as they are stored."""
        self._take_in()
        part = self._rows.part(first, self._complete())
        rows = np.empty(len(part.actions), dtype=ROW)
        rows["action"], rows["expected_reward"], rows["reward"] = part
        return rows

    def _complete(self) -> int:
        return len(self._rows.actions) if self.now == self.rounds else self.now // self.size

    def state(self) -> State:
        """Return all but the complete rows: the row and the step under way, and the plays so far."""
        self._take_in()
        state = collect(self, "now")
        if self._thin:
            row = min(self.now // self.size, len(self._rows.actions) - 1)
            under_way = np.array([self._rows.expected_rewards[row], self._rows.rewards[row]])
            state |= collect(self, "_uses") | {"under_way": under_way, "plays": np.concatenate(self._plays)}
        return state

    def restore(self, state: State, rows: NDArray[Any]) -> None:
        """Take up a state and the complete rows."""
        self.now = whole_from(state, "now", 0, self.rounds)
        if len(rows) != self._complete():
            raise ResultsError(f"the state does not fit: {len(rows)} rows, expected {self._complete()}")
        if self._thin:
            self._taken = self.now
            self._uses, self._plays = named(state, "uses", np.int64, 1), [named(state, "plays", np.int64, 2)]
            row = min(self.now // self.size, len(self._rows.actions) - 1)
            self._rows.expected_rewards[row], self._rows.rewards[row] = taken(state, "under_way", np.empty(2))
        self._rows.actions[: len(rows)] = rows["action"]
        self._rows.expected_rewards[: len(rows)] = rows["expected_reward"]
        self._rows.rewards[: len(rows)] = rows["reward"]
