"""Contextual planning edge by edge, where the joint histories are too many: prices, tolls and a bound.

A use of edge e in context x has the price prices[e], of which a share moves with base(x) over its mean. What is left
of each edge is a small problem over its own uses, solved for a sample of contexts. Its values make the toll of a use;
every round the action with the most reward now less tolls is taken. Any prices prove a bound on every policy: the
prices that the best actions collect, plus the most that each edge could earn beyond them if it were alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats
from routesim.errors import TooManyStatesError
from routesim.kernels import kernel
from routesim.planning.contextual.groups import EdgeGroups
from routesim.planning.edgewise.choices import PathSet
from routesim.planning.edgewise.edge_models import HistoryModel
from routesim.planning.edgewise.prices import find_prices
from routesim.planning.edgewise.sharing import PathSharing
from routesim.planning.edgewise.single_edge import plain_window
from routesim.rounds.actions import ActionSet
from routesim.rounds.window import WindowState, move

MAX_WINDOW = 12
"""The longest window: an edge has 2 ** window use histories."""

_SAMPLE = 128
_SWEEPS = 400
_SHARES = (0.0, 0.2, 0.4, 0.6, 1.0)
_PARTS = (0.0, 0.5, 1.0)
_TRIAL = 256


@dataclass(frozen=True, eq=False)
class EdgeTolls:
    """Prices by group, the mean bases they are relative to, and the values of use histories, which make the tolls.

    `share` of each price moves with the context.
    """

    prices: Floats
    means: Floats
    share: float
    values: Floats

    def priced(self, grouped: Floats) -> Floats:
        """Return the price of each group in each round, from its base there."""
        # A group whose base changes sign, or hardly differs from 0, has one price in all contexts.
        scalable = np.abs(self.means) > 1e-9 * max(1e-300, float(np.abs(self.means).max(initial=0.0)))
        ratio = np.where(scalable, grouped / np.where(scalable, self.means, 1.0), 1.0)
        return self.prices * (1.0 + self.share * (ratio - 1.0))


class EdgewiseContextualPlanner:
    """Plans on one action set and window with `multipliers` by (edge, count), whatever the number of actions."""

    def __init__(self, actions: ActionSet, window: int, multipliers: Floats) -> None:
        if window > MAX_WINDOW:
            raise TooManyStatesError(
                f"planning edge by edge with contexts reaches window {MAX_WINDOW}, got {window}; use a shorter window"
            )
        self.actions, self.window = actions, window
        self.groups = EdgeGroups(actions, multipliers)
        # A window of 0 is one of a single round whose count does not matter.
        self._curves = self.groups.curves if window else np.repeat(self.groups.curves, 2, axis=1)
        self._histories = plain_window(max(1, window))

    @property
    def n_histories(self) -> int:
        """The number of use histories of an edge."""
        return 1 << self._histories.length

    def tolls(self, bases: Floats, weights: Floats | None = None) -> EdgeTolls:
        """Return tolls for contexts drawn from the rows of `bases` with the chances `weights` (equal by default)."""
        if weights is None:
            weights = np.full(len(bases), 1 / len(bases))
        if len(bases) > _SAMPLE:
            bases, weights = bases[:_SAMPLE], weights[:_SAMPLE] / weights[:_SAMPLE].sum()
        grouped = self.groups.sums(bases)
        means = weights @ grouped
        choices = PathSet(*self.groups.paths, len(self.groups))
        tables = means[:, np.newaxis] * self._curves
        prices = find_prices(choices, tables, HistoryModel(self._histories), PathSharing(choices, [])).prices
        # The share that proves most, on a sequence of contexts drawn from the sample.
        drawn = bases[np.random.default_rng(0).choice(len(bases), size=_TRIAL, p=weights)]
        values = np.zeros((len(self.groups), self.n_histories))
        trials = [EdgeTolls(prices, means, share, values) for share in _SHARES]
        found = min(trials, key=lambda trial: self.bound(trial, lambda first, last: drawn[first:last], _TRIAL, _TRIAL))
        _edge_values(grouped, found.priced(grouped), weights, self._curves, self._histories.labels, values)
        # Tolls are a rule of thumb: none, half of them and all are tried on that sequence, and the best are kept.
        scaled = [replace(found, values=part * values) for part in _PARTS]
        return max(scaled, key=lambda trial: self._earned(trial, drawn))

    def _earned(self, tolls: EdgeTolls, bases: Floats) -> float:
        """Return what a policy earns over these rounds."""
        window, every, total = WindowState.empty(self.window, len(self.groups)), np.arange(len(self.groups)), 0.0
        for now, base in enumerate(bases):
            action = self.choose(tolls, base, window.last(now))
            rewards = self.groups.sums(base) * self._curves[every, window.counts]
            total += float(rewards[self.groups.used[action]].sum())
            move(window, self.groups.paths, now, action)
        return total

    def choose(self, tolls: EdgeTolls, bases: Floats, history: Sequence[int]) -> int:
        """Return the action with the most reward now less tolls, after `history`."""
        uses = np.zeros(len(self.groups), dtype=np.int64)
        mask = self.n_histories - 1
        for action in history:
            uses = ((uses << 1) & mask) | self.groups.used[action]
        every = np.arange(len(self.groups))
        now = self.groups.sums(bases) * self._curves[every, self._histories.labels[uses]]
        unused = (uses << 1) & mask
        now += tolls.values[every, unused | 1] - tolls.values[every, unused]
        return int(np.argmax(self.groups.used @ now))

    def bound(self, tolls: EdgeTolls, bases: Callable[[int, int], Floats], rounds: int, reads: int) -> float:
        """Return a sum of rewards that no policy exceeds over these rounds, whatever it knows in advance."""
        collected, left = 0.0, np.zeros((len(self.groups), self.n_histories))
        for start in reversed(range(0, rounds, reads)):
            grouped = self.groups.sums(bases(start, min(start + reads, rounds)))
            priced = tolls.priced(grouped)
            collected += float((priced @ self.groups.used.T.astype(np.float64)).max(axis=1).sum())
            _edge_programmes(grouped, priced, self._curves, self._histories.labels, left)
        total = collected + float(left[:, 0].sum())
        return total + 1e-12 * (abs(collected) + float(np.abs(left[:, 0]).sum()))  # rounding


@kernel
def _edge_values(
    bases: Floats, prices: Floats, weights: Floats, curves: Floats, labels: NDArray[np.int64], values: Floats
) -> None:
    """Fill in the values of every use history of every group: lazy value iteration from zero."""
    n_states = len(labels)
    mask = n_states - 1
    change = np.empty(n_states)
    for group in range(len(values)):
        value = values[group]
        scale = np.abs(bases[:, group]).max() * np.abs(curves[group]).max() + np.abs(prices[:, group]).max()
        for _ in range(_SWEEPS):
            for state in range(n_states):
                unused = (state << 1) & mask
                rest, used = value[unused], value[unused | 1]
                mean = 0.0
                for sample in range(len(weights)):
                    gain = bases[sample, group] * curves[group, labels[state]] - prices[sample, group] + used
                    mean += weights[sample] * (gain if gain > rest else rest)
                change[state] = 0.5 * (mean - value[state])
            start = value[0] + change[0]
            for state in range(n_states):
                value[state] += change[state] - start
            if change.max() - change.min() < 1e-7 * scale:
                break


@kernel
def _edge_programmes(bases: Floats, prices: Floats, curves: Floats, labels: NDArray[np.int64], values: Floats) -> None:
    """Move the values of every group from after the rounds to before them: what it could earn alone, above prices."""
    n_states = len(labels)
    mask = n_states - 1
    before = np.empty(n_states)
    for group in range(len(values)):
        value = values[group]
        for now in range(len(bases) - 1, -1, -1):
            for state in range(n_states):
                unused = (state << 1) & mask
                gain = bases[now, group] * curves[group, labels[state]] - prices[now, group] + value[unused | 1]
                before[state] = gain if gain > value[unused] else value[unused]
            value[:] = before
