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
from numpy.typing import NDArray

from routesim.kernels import kernel

MAX_EXACT_WINDOW = 16

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Window:
    """The use histories of an edge: `labels[history]` is the column of the reward table a use would earn."""

    length: int
    labels: Ints
    is_plain: bool = True

    @property
    def n_labels(self) -> int:
        """How many columns a reward table has."""
        return int(self.labels.max()) + 1


def plain_window(length: int) -> Window:
    """Every history of `length` rounds (at least 1), labelled by its count."""
    histories = np.arange(1 << length, dtype=np.int64)
    labels = np.zeros_like(histories)
    for bit in range(length):
        labels += (histories >> bit) & 1
    return Window(length, labels)


def block_window(n_blocks: int) -> Window:
    """Histories of whole blocks, labelled by their uses and by whether the oldest, now leaving, was one."""
    plain = plain_window(n_blocks)
    oldest = np.arange(1 << n_blocks, dtype=np.int64) >> (n_blocks - 1)
    return Window(n_blocks, plain.labels + (n_blocks + 1) * oldest, is_plain=False)


def block_rewards(rewards: Floats, window: int, n_blocks: int) -> Floats:
    """Mean reward over one block of use, for each label of `block_window(n_blocks)`."""
    block = -(-window // n_blocks)
    counts = block * np.arange(n_blocks + 1)
    fresh = counts[:, None] + np.arange(block)  # the oldest block was unused: the count grows as this block runs
    level = np.minimum(counts, window)  # it was used: every round one use leaves and one enters
    return np.concatenate([rewards[:, np.minimum(fresh, window)].mean(axis=2), rewards[:, level]], axis=1)


@dataclass(frozen=True)
class Moves:
    """The histories with at most some number of uses, and where moves lead (-1: out of the set)."""

    histories: Ints
    after: Ints  # place of the next history: column 0 unused, column 1 used
    before: Ints  # places of the two histories that lead here, by the move that is this history's newest round


def moves_within(window: Window, most_uses: int) -> Moves:
    """Return the moves among the histories of a window with at most `most_uses` uses."""
    counts = plain_window(window.length).labels
    histories = np.flatnonzero(counts <= most_uses)
    place = np.full(counts.size + 1, -1, np.int64)
    place[histories] = np.arange(histories.size)
    unused = (histories << 1) & (counts.size - 1)
    earlier = histories >> 1
    return Moves(
        histories,
        np.stack([place[unused], place[unused | 1]], axis=1),
        np.stack([place[earlier], place[earlier | (counts.size >> 1)]], axis=1),
    )


@kernel
def _improve_policy(
    use_reward: Floats,
    newest: NDArray[np.int8],
    after: Ints,
    before: Ints,
    policy: NDArray[np.int8],
    value: Floats,
    order: Ints,
    mark: Ints,
    tolerance: float,
) -> int:
    """Howard's policy iteration.

    Leaves its end in `policy` and `value`, returns a state of the best cycle.
    """
    n_states = use_reward.size
    root = 0
    for _ in range(500):
        mark[:] = 0
        best = -np.inf
        for start in range(n_states):
            state = start
            while mark[state] == 0:
                mark[state] = start + 1
                state = after[state, policy[state]]
            if mark[state] == start + 1:
                total = 0.0
                length = 0
                step = state
                while True:
                    if policy[step]:
                        total += use_reward[step]
                    length += 1
                    step = after[step, policy[step]]
                    if step == state:
                        break
                if total / length > best:
                    best = total / length
                    root = state
        # Values backwards from the best cycle: first along the policy, then turning the rest of the states
        # towards it.
        mark[root] = -1
        value[root] = 0.0
        order[0] = root
        size = 1
        for turn in range(2):
            head = 0
            while head < size:
                state = order[head]
                head += 1
                move = newest[state]
                for side in range(2):
                    earlier = before[state, side]
                    if earlier >= 0 and mark[earlier] != -1 and (turn == 1 or policy[earlier] == move):
                        policy[earlier] = move
                        value[earlier] = (use_reward[earlier] if move else 0.0) - best + value[state]
                        mark[earlier] = -1
                        order[size] = earlier
                        size += 1
            if size == n_states:
                break
        changed = False
        for state in range(n_states):
            if policy[state]:
                other = value[after[state, 0]] - best
            elif after[state, 1] >= 0:
                other = use_reward[state] + value[after[state, 1]] - best
            else:
                continue
            if other > value[state] + tolerance:
                policy[state] = 1 - policy[state]
                changed = True
        if not changed:
            break
    return root


@kernel
def _best_averages(
    rewards: Floats,
    prices: Floats,
    labels: Ints,
    newest: NDArray[np.int8],
    after: Ints,
    before: Ints,
    averages: Floats,
    patterns: Floats,
) -> None:
    n_states = labels.size
    policy = np.zeros(n_states, np.int8)
    value = np.zeros(n_states)
    use_reward = np.empty(n_states)
    order = np.empty(n_states, np.int64)
    mark = np.empty(n_states, np.int64)
    for edge in range(rewards.shape[0]):
        scale = abs(prices[edge])
        for label in range(rewards.shape[1]):
            scale = max(scale, abs(rewards[edge, label]))
        for state in range(n_states):
            use_reward[state] = rewards[edge, labels[state]] - prices[edge]
        root = _improve_policy(use_reward, newest, after, before, policy, value, order, mark, 1e-12 * scale)

        largest = -np.inf
        size = scale
        for state in range(n_states):
            size = max(size, abs(value[state]))
            largest = max(largest, value[after[state, 0]] - value[state])
            if after[state, 1] >= 0:
                largest = max(largest, use_reward[state] + value[after[state, 1]] - value[state])
        averages[edge] = largest + 8 * 2.220446049250313e-16 * size  # three roundings of numbers of at most 4 * size

        patterns[edge, :] = 0.0
        length = 0
        state = root
        while True:
            length += 1
            if policy[state]:
                patterns[edge, labels[state]] += 1.0
            state = after[state, policy[state]]
            if state == root:
                break
        for label in range(patterns.shape[1]):
            patterns[edge, label] /= length


def best_averages(rewards: Floats, prices: Floats, window: Window) -> tuple[Floats, Floats]:
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
        moves = moves_within(window, int(most))
        rows = np.flatnonzero(most_uses == most)
        found_averages = np.empty(rows.size)
        found_patterns = np.empty((rows.size, rewards.shape[1]))
        _best_averages(
            rewards[rows],
            prices[rows],
            window.labels[moves.histories],
            (moves.histories & 1).astype(np.int8),
            moves.after,
            moves.before,
            found_averages,
            found_patterns,
        )
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
    n_grid = grid.size
    hull = np.empty(n_grid, np.int64)
    for edge in range(rewards.shape[0]):
        row = heights[edge]
        row[:] = -np.inf
        for pattern in range(patterns.shape[0]):
            earned = 0.0
            for label in range(rewards.shape[1]):
                earned += patterns[pattern, label] * rewards[edge, label]
            row[position[pattern]] = max(row[position[pattern]], earned)
        size = 0
        for point in range(n_grid):
            while size >= 2:
                left = hull[size - 2]
                middle = hull[size - 1]
                if (row[middle] - row[left]) * (grid[point] - grid[left]) <= (row[point] - row[left]) * (
                    grid[middle] - grid[left]
                ):
                    size -= 1
                else:
                    break
            hull[size] = point
            size += 1
        for piece in range(size - 1):
            left = hull[piece]
            right = hull[piece + 1]
            slope = (row[right] - row[left]) / (grid[right] - grid[left])
            for point in range(left + 1, right):
                row[point] = row[left] + slope * (grid[point] - grid[left])
