"""What each edge can earn on its own: exactly, for windows it can enumerate, or from above, for any window.

A model answers two questions about a table of edge rewards: how much an edge can earn at each share of rounds
in use (a concave curve, from which good prices are found), and a proven upper bound on what it can earn at a
price.
"""

from typing import Protocol

import numpy as np

from routesim.arrays import Floats
from routesim.planning.edgewise.single_edge import UseHistories, best_averages, curves


class EdgeModel(Protocol):
    """What the price problem needs to know of single edges."""

    @property
    def n_patterns(self) -> int:
        """How many use patterns the curves are made of; when it grows, so may the curves."""

    def curves(self, rewards: Floats) -> tuple[Floats, Floats]:
        """Return shares of rounds from 0 to 1, ascending, and for each edge the most it can earn at them."""

    def best_averages(self, rewards: Floats, prices: Floats) -> Floats:
        """Return, for each edge, an upper bound on the best average of `used * (reward - price)`."""


class HistoryModel:
    """Edges over all their use histories; the use patterns met so far are kept and serve every edge."""

    def __init__(self, window: UseHistories, patterns: Floats | None = None) -> None:
        self.window = window
        self.patterns = _simple_patterns(window) if patterns is None else patterns

    @property
    def n_patterns(self) -> int:
        """How many use patterns were met so far."""
        return len(self.patterns)

    def curves(self, rewards: Floats) -> tuple[Floats, Floats]:
        """Return the curves over the use patterns met so far."""
        shares = self.patterns.sum(axis=1).round(12)
        grid, position = np.unique(shares, return_inverse=True)
        heights = np.empty((rewards.shape[0], grid.size))
        curves(rewards, self.patterns, position, grid, heights)
        return grid, heights

    def best_averages(self, rewards: Floats, prices: Floats) -> Floats:
        """Solve every edge at its price; keep the use patterns that were not met before."""
        averages, found = best_averages(rewards, prices, self.window)
        self.patterns = _distinct(np.concatenate([self.patterns, found]))
        return averages

    def keep_useful(self, rewards: Floats, limit: int = 2000) -> None:
        """Forget patterns that no edge needs once there are more than `limit` of them."""
        if self.patterns.shape[0] <= limit:
            return
        grid, heights = self.curves(rewards)
        position = np.searchsorted(grid, self.patterns.sum(axis=1).round(12))
        earned = rewards @ self.patterns.T
        slack = 1e-9 * np.abs(rewards).max(axis=1, initial=1e-300)[:, None]
        self.patterns = self.patterns[np.any(earned >= heights[:, position] - slack, axis=0)]


class MajorantModel:
    """Edges of any window, from above: of window + 1 rounds the k-th use finds a count of at least k - 1.

    All window + 1 rounds lie in each other's windows, so the k-th use among them sees the k - 1 before it. It
    therefore earns at most the largest reward at a count of k - 1 or more, and the m uses of any window + 1
    rounds at most the first m of these.
    """

    n_patterns = 0

    def curves(self, rewards: Floats) -> tuple[Floats, Floats]:
        """Return the curves of the relaxed edges, with a point at every whole number of uses."""
        counts = rewards.shape[1]
        heights = np.zeros((rewards.shape[0], counts + 1))
        np.cumsum(_least_falling(rewards) / counts, axis=1, out=heights[:, 1:])
        return np.arange(counts + 1) / counts, heights

    def best_averages(self, rewards: Floats, prices: Floats) -> Floats:
        """Return the mean over k of what the k-th use can gain at most, rounded up."""
        gains = np.maximum(0.0, _least_falling(rewards) - prices[:, None]).mean(axis=1)
        size = np.abs(rewards).max(axis=1) + np.abs(prices)
        return np.asarray(gains + (rewards.shape[1] + 2) * np.finfo(np.float64).eps * size, np.float64)


def _least_falling(rewards: Floats) -> Floats:
    """Return the least table that is nowhere below `rewards` and never rises with the count."""
    return np.maximum.accumulate(rewards[:, ::-1], axis=1)[:, ::-1]


def _distinct(patterns: Floats) -> Floats:
    _, first = np.unique(patterns.round(12), axis=0, return_index=True)
    return np.ascontiguousarray(patterns[np.sort(first)])


def _simple_patterns(window: UseHistories) -> Floats:
    """Return the patterns of evenly spread uses and of bursts with rests: a start that needs no solving."""
    length = window.length
    spread = [
        [(now + 1) * uses // period - now * uses // period for now in range(period)]
        for period in range(2, length + 3)
        for uses in range(1, period)
    ]
    cycles = [[0], [1], *spread, *([1] * burst + [0] * length for burst in range(1, 2 * length + 1))]
    patterns = np.zeros((len(cycles), window.n_labels))
    mask = window.labels.size - 1
    for row, cycle in enumerate(cycles):
        state = 0
        for round_ in range(-(-length // len(cycle)) * len(cycle)):
            state = (state << 1 | cycle[round_ % len(cycle)]) & mask
        for used in cycle:
            patterns[row, window.labels[state]] += used / len(cycle)
            state = (state << 1 | used) & mask
    return _distinct(patterns)
