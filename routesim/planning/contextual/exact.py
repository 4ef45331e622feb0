"""The contextual planner: values of joint histories where base rewards change from round to round.

Known contexts: the dynamic programme over (round, history) of the paper's appendix, backwards from the last round.
Stochastic contexts: relative value iteration on the history graph, with each backup averaged over a context sample.
Histories are numbered as in `exact`. A history of an early round is shorter than the window and has its own count.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats
from routesim.errors import TooManyStatesError
from routesim.planning.contextual.backups import Histories, backward, iterate
from routesim.planning.contextual.groups import EdgeGroups
from routesim.planning.exact.planner import MAX_ARCS, check_size
from routesim.rounds.actions import ActionSet

Bases: TypeAlias = Callable[[int, int], Floats]
"""The base reward of each edge in rounds `first` up to `last`, shape (rounds, edges)."""

STORED_BYTES = 1 << 25
"""How much memory one block of actions, or one level of checkpoints, may take."""


class TableBlock(NamedTuple):
    """For each of the rounds `first` .. `last` - 1, the best action after each history."""

    first: int
    last: int
    table: NDArray[np.integer]


class Stationary(NamedTuple):
    """Values of histories for contexts of one distribution, and what they prove about the average reward.

    The best average over the sample lies between `low` and `high`, and the policy by `values` earns at least `low`.
    """

    values: Floats
    low: float
    high: float
    sweeps: int


@dataclass(frozen=True, eq=False)
class ContextualPlanner:
    """Plans on one action set and window with `multipliers` by (edge, count), for any base rewards.

    `stored` bounds the bytes of actions or values held at one time: a longer stretch of rounds is cut into blocks that
    are computed anew from checkpoints, level by level, so that memory grows with the logarithm of the rounds only.
    """

    actions: ActionSet
    window: int
    multipliers: Floats
    stored: int = STORED_BYTES
    groups: EdgeGroups = field(init=False, repr=False)
    _tables: tuple[Floats, ...] = field(init=False, repr=False)
    _recent: NDArray[np.uint8] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n_actions = self.actions.n_listed
        check_size(n_actions, self.window)
        groups = EdgeGroups(self.actions, self.multipliers)
        n_groups = len(groups)
        if n_groups * n_actions**self.window > MAX_ARCS:
            raise TooManyStatesError(
                f"{n_actions} actions and window {self.window} make {n_actions**self.window:,} joint histories, and "
                f"with {n_groups} groups of edges more multipliers than the contextual planner holds ({MAX_ARCS:,}); "
                f'use fewer actions, a shorter window, or planner="edgewise"'
            )
        put = object.__setattr__
        put(self, "groups", groups)
        # Where no two actions share an edge, a history's oldest action concerns no action but itself.
        disjoint = self.window > 0 and bool((groups.used.sum(axis=0) == 1).all())
        put(self, "_recent", _action_counts(n_actions, self.window - 1 if disjoint else -1))
        lengths = range(self.window + 1)
        put(self, "_tables", tuple(_history_table(groups.used, groups.curves, length) for length in lengths))

    @property
    def n_histories(self) -> int:
        """The number of full histories."""
        return int(self.actions.n_listed**self.window)

    def blocks(self, bases: Bases, first: int, last: int, *, reads: int = 1 << 12) -> Iterator[TableBlock]:
        """Yield the best actions of rounds `first` up to `last`, in order; what comes after `last` is worth nothing.

        `bases` is asked for at most `reads` rounds at a time, and for each round once or a few times.
        """
        yield from self._blocks(bases, first, last, np.zeros(self.n_histories), reads)

    def best(self, bases: Bases, first: int, last: int, bonus: Bases | None = None, *, reads: int = 1 << 12) -> float:
        """Return the largest sum of rewards over the rounds, from empty roads at round 0 or else from history 0.

        `bonus` adds a reward to each action in each round, shape (rounds, actions), whatever the history.
        """
        return float(self._before(bases, first, last, np.zeros(self.n_histories), reads, bonus=bonus)[0])

    def _blocks(self, bases: Bases, first: int, last: int, after: Floats, reads: int) -> Iterator[TableBlock]:
        kind = np.dtype(np.uint8 if self.actions.n_listed <= 256 else np.int32)
        held = max(1, self.stored // (self.n_histories * kind.itemsize))
        if last - first <= held:
            table = np.zeros((last - first, self.n_histories), dtype=kind)
            self._before(bases, first, last, after, reads, table=table)
            yield TableBlock(first, last, table)
            return
        # As many checkpoints as fit; each stretch between two of them is cut again if need be.
        marks = max(2, self.stored // (8 * self.n_histories))
        stretches = _cut(first, last, held * -(-(last - first) // (held * marks)))
        ends = [after]
        for start, end in reversed(stretches[1:]):
            ends.append(self._before(bases, start, end, ends[-1], reads))
        for start, end in stretches:
            yield from self._blocks(bases, start, end, ends.pop(), reads)

    def _before(
        self,
        bases: Bases,
        first: int,
        last: int,
        after: Floats,
        reads: int,
        bonus: Bases | None = None,
        table: NDArray[np.integer] | None = None,
    ) -> Floats:
        """Return the values before round `first` from those before round `last`; fill `table` with the best actions."""
        nothing = np.zeros((1, self.actions.n_listed))
        unkept = np.empty((0, 0), dtype=np.uint8)
        for start, end in reversed(_cut(first, last, reads)):
            grouped = self.groups.sums(bases(start, end))
            extra = nothing if bonus is None else np.ascontiguousarray(bonus(start, end))
            # Early rounds have shorter histories, a number of their own each.
            steady = min(max(self.window, start), end)
            for one, stop in ((steady, end), *((early, early + 1) for early in range(steady - 1, start - 1, -1))):
                if one < stop:
                    rows = slice(one - start, stop - start)
                    kept = unkept if table is None else table[one - first : stop - first]
                    here = extra[rows] if bonus is not None else extra
                    after = backward(grouped[rows], here, self._histories(min(one, self.window)), after, kept)
        return after

    def stationary(
        self,
        bases: Floats,
        weights: Floats | None = None,
        *,
        start: Floats | None = None,
        tolerance: float = 1e-6,
        max_sweeps: int = 10_000,
    ) -> Stationary:
        """Return values for contexts drawn from the rows of `bases` with the chances `weights` (equal by default).

        Ends when the average reward is known to within `tolerance` times the largest base, or after `max_sweeps`.
        """
        if weights is None:
            weights = np.full(len(bases), 1 / len(bases))
        values = np.zeros(self.n_histories) if start is None else start.copy()
        width = tolerance * float(np.abs(bases).max(initial=0.0))
        full = self._histories(self.window)
        return Stationary(values, *iterate(self.groups.sums(bases), weights, full, values, width, max_sweeps))

    def _histories(self, length: int) -> Histories:
        """Return the histories of `length` actions as kernels read them."""
        recent = self._recent if length == self.window else self._recent[:0]
        return Histories(self._tables[length], self.groups.curves, recent, self.groups.paths)


def _cut(first: int, last: int, size: int) -> list[tuple[int, int]]:
    return [(start, min(start + size, last)) for start in range(first, last, size)]


def _history_table(used: NDArray[np.bool_], multipliers: Floats, length: int) -> Floats:
    """Return the multiplier of each group after each history of `length` actions, shape (groups, histories)."""
    n_actions, n_groups = used.shape
    states = np.arange(n_actions**length)
    table = np.empty((n_groups, len(states)))
    for group in range(n_groups):
        counts = np.zeros(len(states), dtype=np.int64)
        for place in range(length):
            counts += used[states // n_actions**place % n_actions, group]
        table[group] = multipliers[group, counts]
    return table


def _action_counts(n_actions: int, length: int) -> NDArray[np.uint8]:
    """Return how often each action occurs in each history of `length` actions; nothing for a negative length."""
    if length < 0:
        return np.zeros((0, n_actions), dtype=np.uint8)
    states = np.arange(n_actions**length)
    counts = np.zeros((len(states), n_actions), dtype=np.uint8)
    for place in range(length):
        counts[states, states // n_actions**place % n_actions] += 1
    return counts
