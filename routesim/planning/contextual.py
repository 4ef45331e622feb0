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

from routesim.actions import ActionSet
from routesim.compiled import kernel
from routesim.errors import InputError, TooManyStatesError
from routesim.planning.exact import MAX_ARCS, check_size

Floats: TypeAlias = NDArray[np.float64]
Bases: TypeAlias = Callable[[int, int], Floats]
"""The base reward of each edge in rounds `first` up to `last`, shape (rounds, edges)."""

STORED_NUMBERS = 1 << 22
"""How many values of histories one level of blocks or checkpoints may hold, eight bytes each."""

# A step that stays put with this chance, so that value iteration settles although the best cycle is periodic.
_LAZINESS = 0.25


class ValueBlock(NamedTuple):
    """For each of the rounds `first` .. `last` - 1, the values of the histories after it."""

    first: int
    last: int
    values: Floats


class Stationary(NamedTuple):
    """Values of histories for contexts of one distribution, and what they prove about the average reward.

    The best average over the sample lies between `low` and `high`, and the policy by `values` earns at least `low`.
    """

    values: Floats
    low: float
    high: float
    sweeps: int


class Certificate(NamedTuple):
    """An interval for the best average reward under the true distribution, from contexts the plan has not seen.

    The policy by values earns at least `low`, and no stationary policy more than `high`, with confidence `level`
    (normal approximation, all histories at once).
    """

    low: float
    high: float
    level: float


@dataclass(frozen=True, eq=False)
class ContextualPlanner:
    """Plans on one action set and window with `multipliers` by (edge, count), for any base rewards.

    `stored` bounds the values held at one time: a longer stretch of rounds is cut into blocks that are computed anew
    from checkpoints, level by level, so that memory grows with the logarithm of the rounds only.
    """

    actions: ActionSet
    window: int
    multipliers: Floats
    stored: int = STORED_NUMBERS
    _order: NDArray[np.intp] = field(init=False, repr=False)
    _starts: NDArray[np.intp] = field(init=False, repr=False)
    _indptr: NDArray[np.int64] = field(init=False, repr=False)
    _indices: NDArray[np.int32] = field(init=False, repr=False)
    _tables: tuple[Floats, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n_actions = self.actions.n_listed
        check_size(n_actions, self.window)
        # Edges used by the same actions with the same multipliers always have the same multiplier: one group.
        used = self.actions.incidence.toarray().astype(bool)
        _, row_of_edge = np.unique(self.multipliers, axis=0, return_inverse=True)
        members = np.column_stack((row_of_edge.reshape(-1), np.packbits(used.T, axis=1)))
        _, chosen, group_of_edge = np.unique(members, axis=0, return_index=True, return_inverse=True)
        group_of_edge = group_of_edge.reshape(-1)
        n_groups = len(chosen)
        if n_groups * n_actions**self.window > MAX_ARCS:
            raise TooManyStatesError(
                f"{n_actions} actions and window {self.window} make {n_actions**self.window:,} joint histories, and with "
                f"{n_groups} groups of edges more multipliers than the contextual planner can hold ({MAX_ARCS:,}); "
                f"use fewer actions or a shorter window"
            )
        by_group = used[:, chosen]
        order = np.argsort(group_of_edge, kind="stable")
        put = object.__setattr__
        put(self, "_order", order)
        put(self, "_starts", np.searchsorted(group_of_edge[order], np.arange(n_groups)))
        put(self, "_indptr", np.concatenate(([0], np.cumsum(by_group.sum(axis=1)))))
        put(self, "_indices", np.nonzero(by_group)[1].astype(np.int32))
        lengths = range(self.window + 1)
        put(self, "_tables", tuple(_history_table(by_group, self.multipliers[chosen], length) for length in lengths))

    @property
    def n_histories(self) -> int:
        """The number of full histories."""
        return self.actions.n_listed**self.window

    def blocks(self, bases: Bases, first: int, last: int, *, reads: int = 1 << 12) -> Iterator[ValueBlock]:
        """Yield the values of rounds `first` up to `last`, in order; what comes after `last` is worth nothing.

        `bases` is asked for at most `reads` rounds at a time, and for each round twice or a few times.
        """
        yield from self._blocks(bases, first, last, np.zeros(self.n_histories), reads)

    def best(self, bases: Bases, first: int, last: int, bonus: Bases | None = None, *, reads: int = 1 << 12) -> float:
        """Return the largest sum of rewards over the rounds, from empty roads at round 0 or else from history 0.

        `bonus` adds a reward to each action in each round, shape (rounds, actions), whatever the history.
        """
        values = np.zeros(self.n_histories)
        for start, end in reversed(_cut(first, last, reads)):
            extra = None if bonus is None else bonus(start, end)
            values = self._sweep(bases(start, end), start, values, 2, extra)[0]
        return float(values[0])

    def _blocks(self, bases: Bases, first: int, last: int, after: Floats, reads: int) -> Iterator[ValueBlock]:
        held = max(1, self.stored // self.n_histories)
        size = min(held, reads)
        if last - first <= size:
            values = np.zeros((last - first, self.n_histories))
            if last - first > 1:
                values[:-1] = self._sweep(bases(first + 1, last), first + 1, after, last - first - 1)
            values[-1] = after
            yield ValueBlock(first, last, values)
            return
        # At most as many checkpoints as values of a block; each stretch between two of them is cut again if need be.
        pieces = -(-(last - first) // size)
        stretches = _cut(first, last, size * -(-pieces // max(2, held)))
        ends = [after]
        for start, end in reversed(stretches[1:]):
            values = ends[-1]
            for chunk, stop in reversed(_cut(start, end, reads)):
                values = self._sweep(bases(chunk, stop), chunk, values, 2)[0].copy()
            ends.append(values)
        for start, end in stretches:
            yield from self._blocks(bases, start, end, ends.pop(), reads)

    def _sweep(self, bases: Floats, first: int, after: Floats, rows: int, bonus: Floats | None = None) -> Floats:
        """Return the values before each round of `bases`, the first of which is `first`; a few rows are reused."""
        grouped = self._grouped(bases)
        values = np.zeros((max(rows, 1), self.n_histories))
        bonus = np.zeros((1, self.actions.n_listed)) if bonus is None else bonus
        early = min(max(0, self.window - first), len(bases))
        steady = slice(early, None) if len(bonus) > 1 or early == 0 else slice(None)
        _backward(grouped[early:], bonus[steady], early, self._tables[-1], self._indptr, self._indices, after, values)
        for place in range(early - 1, -1, -1):
            following = values[(place + 1) % rows] if place + 1 < len(bases) else after
            one = grouped[place : place + 1]
            extra = bonus[place : place + 1] if len(bonus) > 1 else bonus
            line = values[place % rows : place % rows + 1]
            _backward(one, extra, 0, self._tables[first + place], self._indptr, self._indices, following.copy(), line)
        return values

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
        tables = self._tables[-1], self._indptr, self._indices
        return Stationary(values, *_iterate(self._grouped(bases), weights, *tables, values, width, max_sweeps))

    def certify(self, values: Floats, bases: Floats, level: float = 0.99) -> Certificate:
        """Return what `values` prove about the average reward, from fresh contexts with these `bases`."""
        if len(bases) < 2:
            raise InputError(f"a certificate needs at least 2 contexts, got {len(bases)}")
        from scipy.special import ndtri

        mean, spread = np.zeros(self.n_histories), np.zeros(self.n_histories)
        _gains(self._grouped(bases), self._tables[-1], self._indptr, self._indices, values, mean, spread)
        half = -ndtri((1 - level) / (2 * self.n_histories)) * spread / np.sqrt(len(bases))
        return Certificate(float((mean - half).min()), float((mean + half).max()), level)

    def _grouped(self, bases: Floats) -> Floats:
        """Add up the bases of each group of edges."""
        return np.ascontiguousarray(np.add.reduceat(bases[:, self._order], self._starts, axis=1))


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


@kernel
def _backup(
    bases: Floats,
    bonus: Floats,
    table: Floats,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    after: Floats,
    ahead: Floats,
    worth: Floats,
    values: Floats,
) -> None:
    """Fill `values` with the largest reward now plus value afterwards, for each history of `table`."""
    n_actions, n_states = len(indptr) - 1, table.shape[1]
    # Histories that differ in their oldest action only lead to the same ones; a short history has no oldest to lose.
    rests = max(1, n_states // n_actions) if n_states == len(after) else n_states
    for action in range(n_actions):
        for rest in range(rests):
            ahead[rest] = (
                after[rest * n_actions + action] + bonus[action] if len(after) > 1 else after[0] + bonus[action]
            )
        group = indices[indptr[action]]
        base = bases[group]
        for state in range(n_states):
            worth[state] = base * table[group, state]
        for place in range(indptr[action] + 1, indptr[action + 1]):
            group = indices[place]
            base = bases[group]
            for state in range(n_states):
                worth[state] += base * table[group, state]
        for start in range(0, n_states, rests):
            for rest in range(rests):
                total = worth[start + rest] + ahead[rest]
                if action == 0 or total > values[start + rest]:
                    values[start + rest] = total


@kernel
def _backward(
    bases: Floats,
    bonus: Floats,
    offset: int,
    table: Floats,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    after: Floats,
    values: Floats,
) -> None:
    """Fill the rows of `values` from the last round of `bases` to the first; fewer rows than rounds are reused."""
    rows = len(values)
    ahead, worth = np.empty(table.shape[1]), np.empty(table.shape[1])
    following = after
    for place in range(len(bases) - 1, -1, -1):
        line = values[(offset + place) % rows]
        extra = bonus[place if len(bonus) > 1 else 0]
        _backup(bases[place], extra, table, indptr, indices, following, ahead, worth, line)
        following = line


@kernel
def _iterate(
    bases: Floats,
    weights: Floats,
    table: Floats,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: Floats,
    width: float,
    max_sweeps: int,
) -> tuple[float, float, int]:
    """Improve `values` in place until the best average is known to within `width`; return its bounds and sweeps."""
    n_states, n_actions = table.shape[1], len(indptr) - 1
    ahead, worth, line, mean = np.empty(n_states), np.empty(n_states), np.empty(n_states), np.empty(n_states)
    nothing = np.zeros(n_actions)
    sweep = 0
    while True:
        sweep += 1
        mean[:] = -values
        for sample in range(len(bases)):
            _backup(bases[sample], nothing, table, indptr, indices, values, ahead, worth, line)
            for state in range(n_states):
                mean[state] += weights[sample] * line[state]
        low, high = mean.min(), mean.max()
        if high - low <= width or sweep >= max_sweeps:
            return low, high, sweep
        for state in range(n_states):
            values[state] += (1.0 - _LAZINESS) * (mean[state] - low)


@kernel
def _gains(
    bases: Floats,
    table: Floats,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: Floats,
    mean: Floats,
    spread: Floats,
) -> None:
    """Fill in the mean and the standard deviation, over contexts, of one backup minus the value, for each history."""
    n_states, n_actions = table.shape[1], len(indptr) - 1
    ahead, worth, line = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    nothing = np.zeros(n_actions)
    for sample in range(len(bases)):
        _backup(bases[sample], nothing, table, indptr, indices, values, ahead, worth, line)
        for state in range(n_states):
            gain = line[state] - values[state]
            step = gain - mean[state]
            mean[state] += step / (sample + 1)
            spread[state] += step * (gain - mean[state])
    for state in range(n_states):
        spread[state] = np.sqrt(spread[state] / (len(bases) - 1))
