"""Traces while rounds are played: every round, or rows of equal numbers of rounds, in memory that does not grow."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints, Ints32
from routesim.errors import ResultsError
from routesim.kernels import kernel
from routesim.rounds.environment import EdgeUses
from routesim.rounds.kernels import Trace
from routesim.storage.checkpoint import ROW
from routesim.storage.state import State, collect, join, named, part, taken, whole_from

STEPS = 48
"""How many steps of rounds the plays are counted in, at most."""

PERCENTILES = np.arange(101)

_SAMPLE = 50_000  # rounds whose expected rewards tell how these are spread
_PRIMES = 17, 31, 61, 127, 251, 509, 1021, 2039, 4093, 8191, 16381, 32749, 65521, 131071
_STRETCH = 1 << 18
_SCRATCH = 1 << 16


class StepUses(NamedTuple):
    """The `EdgeUses` of all steps one behind the other: in which step, and what they say of each edge used in it."""

    steps: Ints
    edges: Ints
    uses: Ints
    ratios: Floats

    @classmethod
    def join(cls, parts: "Sequence[StepUses]") -> Self:
        """Return those of several parts, one behind the other."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(*(np.concatenate(column) for column in zip((*[nothing] * 3, np.empty(0)), *parts, strict=True)))


class KeptTrace(NamedTuple):
    """What a run keeps of its rounds: a row for each."""

    actions: Ints32
    expected_rewards: Floats
    rewards: Floats
    edge_uses: StepUses

    @property
    def ends(self) -> Ints:
        """After how many rounds each row ends."""
        return np.arange(1, len(self.actions) + 1)


class KeptRows(NamedTuple):
    """What a thinned run keeps of its rounds: the last action and the mean rewards of those up to each of `ends`.

    `plays` and `play_rewards` are as `count_plays` returns them, and `quantiles` the percentiles 0 to 100 of the
    expected rewards of rounds.
    """

    actions: Ints32
    expected_rewards: Floats
    rewards: Floats
    ends: Ints
    plays: Ints
    play_rewards: Floats
    quantiles: Floats
    edge_uses: StepUses


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


@kernel
def _add_plays(actions: Ints32, expected: Floats, uses: Ints, sums: Floats) -> None:
    """Count the uses of each action, and add up what they were expected to earn, one by one."""
    for place in range(len(actions)):
        uses[actions[place]] += 1
        sums[actions[place]] += expected[place]


def count_plays(actions: Ints32, expected_rewards: Floats, step_ends: Ints) -> tuple[Ints, Floats]:
    """Return rows (step, action, uses) of the actions played in each step, and the expected rewards of each in all."""
    plays = _Plays()
    for first, last in pairwise([0, *step_ends.tolist()]):
        plays.add(actions[first:last], expected_rewards[first:last])
        plays.end_step()
    return plays.rows()


class _Plays:
    """Counts what is played, step by step."""

    def __init__(self) -> None:
        self.uses, self.sums = np.zeros(0, dtype=np.int64), np.zeros(0)
        self._done = [(np.empty((0, 3), dtype=np.int64), np.zeros(0))]
        self._step = 0

    def add(self, actions: Ints32, expected_rewards: Floats) -> None:
        """Count rounds of the step under way."""
        more = max(0, int(actions.max(initial=-1)) + 1 - len(self.uses))
        self.uses = np.concatenate((self.uses, np.zeros(more, dtype=np.int64)))
        self.sums = np.concatenate((self.sums, np.zeros(more)))
        _add_plays(actions, expected_rewards, self.uses, self.sums)

    def end_step(self) -> None:
        """Close the step, and begin the next."""
        played = np.flatnonzero(self.uses)
        rows = np.column_stack((np.full(len(played), self._step), played, self.uses[played])).astype(np.int64)
        self._done.append((rows, self.sums[played]))
        self.uses, self.sums = np.zeros(0, dtype=np.int64), np.zeros(0)
        self._step += 1

    def rows(self) -> tuple[Ints, Floats]:
        """Return what `count_plays` does, of the steps that are closed."""
        rows, sums = zip(*self._done, strict=True)
        return np.concatenate(rows), np.concatenate(sums)

    def state(self) -> State:
        """Return the closed steps and the one under way."""
        rows, sums = self.rows()
        return collect(self, "uses", "sums") | {"plays": rows, "play_rewards": sums}

    def restore(self, state: State, step: int) -> None:
        """Take up a state in which so many steps are closed."""
        self.uses, self.sums = named(state, "uses", np.int64, 1), named(state, "sums", np.float64, 1)
        self._done = [(named(state, "plays", np.int64, 2), named(state, "play_rewards", np.float64, 1))]
        self._step = step


class TraceKeeper:
    """Takes in the rounds of a run and keeps a row for each.

    `room` and `put` take the coming rounds, `advance` says how many were written. Whenever a step of time ends with
    them, `put_uses` takes what the edges were used for in it.
    """

    size = 1
    """How many rounds a row has."""

    def __init__(self, rounds: int) -> None:
        self.rounds, self.now = rounds, 0
        self._step_ends = equal_ends(rounds, STEPS)
        self._step = 0
        self._edge_uses: list[StepUses] = []
        self._rows = Trace.empty(-(-rounds // self.size))

    @classmethod
    def keeping(cls, rounds: int, keep: int | None) -> "TraceKeeper":
        """Return a keeper of at most `keep` rows of equal numbers of rounds; of every round where that is None."""
        size = 1 if keep is None else -(-rounds // keep)
        return TraceKeeper(rounds) if size == 1 else RowKeeper(rounds, size)

    def room(self) -> Trace:
        """Return where the coming rounds are to be written: at least one, not beyond the end of the step."""
        return self._rows.part(self.now, self.now + min(self._left(), _STRETCH))

    def put(self, action: int, expected: float, paid: float) -> None:
        """Write the coming round."""
        actions, expected_rewards, rewards = self._rows
        actions[self.now], expected_rewards[self.now], rewards[self.now] = action, expected, paid

    def advance(self, played: int) -> bool:
        """Go on by `played` rounds that were written; say whether a step ended with them."""
        self.now += played
        if self._left() > 0:
            return False
        self._end_step()
        return True

    def put_uses(self, uses: EdgeUses) -> None:
        """Keep what the edges were used for in the step that ended."""
        self._edge_uses.append(StepUses(np.full(len(uses.edges), self._step - 1), *uses))

    def _left(self) -> int:
        """Return how many rounds the step under way still has."""
        return int(self._step_ends[self._step]) - self.now

    def _end_step(self) -> None:
        self._step += 1

    def kept(self) -> KeptTrace | KeptRows:
        """Return the trace of all rounds."""
        return KeptTrace(*self._rows, StepUses.join(self._edge_uses))

    def rows(self, first: int) -> NDArray[Any]:
        """Return the complete rows from row `first` on, as they are stored."""
        part = self._rows.part(first, self._complete())
        rows = np.empty(len(part.actions), dtype=ROW)
        rows["action"], rows["expected_reward"], rows["reward"] = part
        return rows

    def _complete(self) -> int:
        return len(self._rows.actions) if self.now == self.rounds else self.now // self.size

    def state(self) -> State:
        """Return all but the complete rows: the row and the step under way, the plays and uses so far."""
        return collect(self, "now") | join(edge_uses=StepUses.join(self._edge_uses)._asdict())

    def restore(self, state: State, rows: NDArray[Any]) -> None:
        """Take up a state and the complete rows."""
        self.now = whole_from(state, "now", 0, self.rounds)
        self._step = int(np.searchsorted(self._step_ends, self.now, side="right"))
        if len(rows) != self._complete():
            raise ResultsError(f"the state does not fit: {len(rows)} rows, expected {self._complete()}")
        uses = part(state, "edge_uses")
        steps, edges, counts = (named(uses, name, np.int64, 1) for name in ("steps", "edges", "uses"))
        self._edge_uses = [StepUses(steps, edges, counts, named(uses, "ratios", np.float64, 1))]
        self._rows.actions[: len(rows)] = rows["action"]
        self._rows.expected_rewards[: len(rows)] = rows["expected_reward"]
        self._rows.rewards[: len(rows)] = rows["reward"]


class RowKeeper(TraceKeeper):
    """Keeps rows of `size` rounds each, in memory that does not grow with the rounds."""

    def __init__(self, rounds: int, size: int) -> None:
        self.size = size
        super().__init__(rounds)
        for column in self._rows:
            column[:] = 0
        self._scratch = Trace.empty(min(rounds, _SCRATCH))
        self._taken = 0  # rounds that are in rows already; those after them up to `now` are in the scratch
        self._plays = _Plays()
        # Every so many rounds, a number that no cycle of actions is likely to be a multiple of.
        self._stride = 1 if rounds <= _SAMPLE else next(p for p in (*_PRIMES, rounds) if p * _SAMPLE >= rounds)
        self._sample = np.empty(-(-rounds // self._stride))
        self._extremes = np.array([np.inf, -np.inf])

    def room(self) -> Trace:
        """Return where the coming rounds are to be written: at least one, not beyond the end of the step."""
        place = self._place()
        return self._scratch.part(place, min(len(self._scratch.actions), place + self._left()))

    def put(self, action: int, expected: float, paid: float) -> None:
        """Write the coming round."""
        place = self._place()
        actions, expected_rewards, rewards = self._scratch
        actions[place], expected_rewards[place], rewards[place] = action, expected, paid

    def _place(self) -> int:
        if self.now - self._taken == len(self._scratch.actions):
            self._take_in()
        return self.now - self._taken

    def _end_step(self) -> None:
        self._take_in()
        self._plays.end_step()
        super()._end_step()

    def _take_in(self) -> None:
        """Move the rounds of the scratch, all of one step, into rows, and count their actions."""
        if self._taken == self.now:
            return
        first, written = self._taken, self._scratch.part(0, self.now - self._taken)
        rows = np.arange(first // self.size, -(-self.now // self.size))
        self._rows.actions[rows] = written.actions[np.minimum((rows + 1) * self.size, self.now) - 1 - first]
        add_rows(written.expected_rewards, self.size, first, self._rows.expected_rewards)
        add_rows(written.rewards, self.size, first, self._rows.rewards)
        self._plays.add(written.actions, written.expected_rewards)
        self._sample[self._sampled(first) : self._sampled(self.now)] = written.expected_rewards[
            -first % self._stride :: self._stride
        ]
        expected = written.expected_rewards
        self._extremes = np.array([min(self._extremes[0], expected.min()), max(self._extremes[1], expected.max())])
        self._taken = self.now

    def _sampled(self, now: int) -> int:
        return -(-now // self._stride)

    def kept(self) -> KeptRows:
        """Return the rows of all rounds."""
        ends = np.minimum(np.arange(1, len(self._rows.actions) + 1) * self.size, self.rounds)
        widths = np.diff(ends, prepend=0)
        means = (self._rows.expected_rewards / widths, self._rows.rewards / widths)
        quantiles = np.percentile(self._sample, PERCENTILES)
        quantiles[[0, -1]] = self._extremes
        uses = StepUses.join(self._edge_uses)
        return KeptRows(self._rows.actions, *means, ends, *self._plays.rows(), quantiles, uses)

    def rows(self, first: int) -> NDArray[Any]:
        """Return the complete rows from row `first` on, as they are stored."""
        self._take_in()
        return super().rows(first)

    def _under_way(self) -> int:
        """Return the row that the coming round belongs to."""
        return min(self.now // self.size, len(self._rows.actions) - 1)

    def state(self) -> State:
        """Return all but the complete rows: the row and the step under way, the plays and uses so far."""
        self._take_in()
        row = self._under_way()
        under_way = np.array([self._rows.expected_rewards[row], self._rows.rewards[row]])
        sample = self._sample[: self._sampled(self.now)].copy()
        state = super().state() | collect(self, "_extremes") | {"under_way": under_way, "sample": sample}
        return state | join(plays=self._plays.state())

    def restore(self, state: State, rows: NDArray[Any]) -> None:
        """Take up a state and the complete rows."""
        super().restore(state, rows)
        self._taken = self.now
        self._plays.restore(part(state, "plays"), self._step)
        sampled = self._sampled(self.now)
        self._sample[:sampled] = taken(state, "sample", self._sample[:sampled])
        self._extremes = taken(state, "extremes", self._extremes)
        row = self._under_way()
        self._rows.expected_rewards[row], self._rows.rewards[row] = taken(state, "under_way", np.empty(2))
