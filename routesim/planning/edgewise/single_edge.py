"""One edge on its own: when to use it if every use pays a price, for every use history.

Between prices, edges do not know of each other. What is left of an edge is a tiny deterministic control
problem: its state is its own use history (one bit a round, the newest lowest), its moves are used and unused,
and a use earns `reward - price`. Rewards are looked up by the *label* of a history: its count for a plain
window, a little more for a window in blocks.

What an edge can do does not depend on its rewards. A *use pattern* is the share of rounds a cycle of
histories spends being used at each label, so a pattern found for one edge serves all: its reward on any edge
is a scalar product. That is how edges that share a congestion curve, and edges whose tables change while they
are being learned, share work.
"""

from dataclasses import dataclass

import numpy as np

from routesim.arrays import Floats, Ints
from routesim.kernels import kernel
from routesim.planning.howard import RELATIVE_TOLERANCE, Evaluation, HistoryGraph, improve
from routesim.planning.hull import raise_to_hull

MAX_EXACT_WINDOW = 16


@dataclass(frozen=True)
class UseHistories:
    """The use histories of an edge: `labels[history]` is the column of the reward table a use would earn."""

    length: int
    labels: Ints
    is_plain: bool = True

    @property
    def n_labels(self) -> int:
        """How many columns a reward table has."""
        return int(self.labels.max()) + 1


def plain_window(length: int) -> UseHistories:
    """Every history of `length` rounds (at least 1), labelled by its count."""
    histories = np.arange(1 << length, dtype=np.int64)
    labels = np.zeros_like(histories)
    for bit in range(length):
        labels += (histories >> bit) & 1
    return UseHistories(length, labels)


def block_window(n_blocks: int) -> UseHistories:
    """Histories of whole blocks, labelled by their uses and by whether the oldest, now leaving, was one."""
    plain = plain_window(n_blocks)
    oldest = np.arange(1 << n_blocks, dtype=np.int64) >> (n_blocks - 1)
    return UseHistories(n_blocks, plain.labels + (n_blocks + 1) * oldest, is_plain=False)


def block_rewards(rewards: Floats, window: int, n_blocks: int) -> Floats:
    """Mean reward over one block of use, for each label of `block_window(n_blocks)`."""
    block = -(-window // n_blocks)
    counts = block * np.arange(n_blocks + 1)
    fresh = counts[:, None] + np.arange(block)  # the oldest block was unused: the count grows as this block runs
    level = np.minimum(counts, window)  # it was used: every round one use leaves and one enters
    return np.concatenate([rewards[:, np.minimum(fresh, window)].mean(axis=2), rewards[:, level]], axis=1)


def _histories_within(window: UseHistories, most_uses: int) -> tuple[Ints, HistoryGraph]:
    """Return the histories of a window with at most `most_uses` uses, and where being unused and used leads.

    An unused round earns nothing; what a use earns is left to be filled in.
    """
    counts = plain_window(window.length).labels
    histories = np.flatnonzero(counts <= most_uses)
    place = np.full(counts.size + 1, -1, np.int64)
    place[histories] = np.arange(histories.size)
    unused = (histories << 1) & (counts.size - 1)
    earlier = histories >> 1
    graph = HistoryGraph(
        rewards=np.zeros((histories.size, 2)),
        after=np.stack([place[unused], place[unused | 1]], axis=1),
        before=np.stack([place[earlier], place[earlier | (counts.size >> 1)]], axis=1),
        newest=(histories & 1).astype(np.int8),
    )
    return histories, graph


@kernel
def _best_averages(
    rewards: Floats, prices: Floats, labels: Ints, graph: HistoryGraph, averages: Floats, patterns: Floats
) -> None:
    """Fill in the bounds and the use patterns of `best_averages`, on one set of histories."""
    n_states = labels.size
    policy = np.zeros(n_states, np.int8)
    values = np.zeros(n_states)
    found = Evaluation(policy, values, np.empty(n_states, np.int32), np.empty(n_states, np.int32))
    earned, after = graph.rewards, graph.after
    for edge in range(rewards.shape[0]):
        scale = abs(prices[edge])
        for label in range(rewards.shape[1]):
            scale = max(scale, abs(rewards[edge, label]))
        for state in range(n_states):
            earned[state, 1] = rewards[edge, labels[state]] - prices[edge]
        _, root = improve(graph, found, RELATIVE_TOLERANCE * scale)

        largest = -np.inf
        size = scale
        for state in range(n_states):
            size = max(size, abs(values[state]))
            for used in range(2):
                if after[state, used] >= 0:
                    largest = max(largest, earned[state, used] + values[after[state, used]] - values[state])
        averages[edge] = largest + 8 * 2.220446049250313e-16 * size  # three roundings of numbers of at most 4 * size

        patterns[edge, :] = 0.0
        length = 0
        state = root
        while length == 0 or state != root:
            length += 1
            if policy[state]:
                patterns[edge, labels[state]] += 1.0
            state = after[state, policy[state]]
        for label in range(patterns.shape[1]):
            patterns[edge, label] /= length


def best_averages(rewards: Floats, prices: Floats, window: UseHistories) -> tuple[Floats, Floats]:
    """Return for each edge at its price an upper bound on its best average, and its best cycle's use pattern.

    Whatever the values are, no cycle can average more than the largest `earned + value[next] - value[state]`,
    because the differences cancel around a cycle. So the bound stands even where policy iteration stopped
    early or rounding misled it.

    Where rewards never rise with the count, a use that gains nothing can be left out: no later use finds a
    higher count for it. So only histories with as many uses as there are counts with a gain need to be looked
    at.
    """
    averages = np.empty(rewards.shape[0])
    patterns = np.empty(rewards.shape)
    most_uses = np.full(rewards.shape[0], window.length)
    if window.is_plain:
        falling = np.all(rewards[:, 1:] <= rewards[:, :-1], axis=1)
        gaining = np.count_nonzero(rewards > prices[:, None], axis=1)
        most_uses[falling] = np.minimum(gaining[falling], window.length)
    for most in np.unique(most_uses):
        histories, graph = _histories_within(window, int(most))
        rows = np.flatnonzero(most_uses == most)
        found_averages = np.empty(rows.size)
        found_patterns = np.empty((rows.size, rewards.shape[1]))
        _best_averages(rewards[rows], prices[rows], window.labels[histories], graph, found_averages, found_patterns)
        averages[rows] = found_averages
        patterns[rows] = found_patterns
    return averages, patterns


@kernel
def toll_values(rewards: Floats, prices: Floats, labels: Ints, sweeps: int, precision: float, values: Floats) -> None:
    """Value of every history of every edge: lazy value iteration from zero, relative to the empty history.

    The best prices sit where two cycles tie, and there values are not unique. Lazy iteration from zero
    converges to one of them, which counts what the first uses earn; policy iteration would pick an arbitrary
    one.
    """
    n_states = labels.size
    half = n_states >> 1
    use_reward = np.empty(n_states)
    new = np.empty(n_states)
    for edge in range(rewards.shape[0]):
        value = values[edge]
        value[:] = 0.0
        scale = abs(prices[edge])
        for state in range(n_states):
            use_reward[state] = rewards[edge, labels[state]] - prices[edge]
            scale = max(scale, abs(use_reward[state]))
        for _ in range(sweeps):
            low = np.inf
            high = -np.inf
            for state in range(half):
                rest = value[2 * state]
                used = value[2 * state + 1]
                for at in (
                    state,
                    state + half,
                ):  # both forget their oldest round, and have the same successors
                    change = 0.5 * (max(rest, used + use_reward[at]) - value[at])
                    new[at] = value[at] + change
                    low = min(low, change)
                    high = max(high, change)
            origin = new[0]
            for state in range(n_states):
                value[state] = new[state] - origin
            if high - low < precision * scale:
                break


@kernel
def curves(rewards: Floats, patterns: Floats, position: Ints, grid: Floats, heights: Floats) -> None:
    """Best average reward of each edge at each share of rounds in `grid`: the concave hull over `patterns`.

    `position` is the place of each pattern's share of use in the grid.
    """
    for edge in range(rewards.shape[0]):
        row = heights[edge]
        row[:] = -np.inf
        for pattern in range(patterns.shape[0]):
            earned = 0.0
            for label in range(rewards.shape[1]):
                earned += patterns[pattern, label] * rewards[edge, label]
            row[position[pattern]] = max(row[position[pattern]], earned)
    raise_to_hull(grid, heights)
