"""Cycles of actions: their exact average reward, how to improve them, and how to fall into one."""

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints, Ints32
from routesim.kernels import kernel
from routesim.rounds.window import PathRows, enter, leave

Action = TypeVar("Action", bound=Hashable)


class CyclePolicy(Generic[Action]):
    """Play a cycle of actions for ever, as a stationary map from the history to the next action.

    The rule is to continue the longest stretch of the cycle that the history ends with. Each round makes that
    stretch at least one longer, so after at most `window` rounds the whole history lies on the cycle. Windows
    of the cycle are distinct (`shortcut` sees to it), so from then on the place on it is known, and the cycle
    is played exactly.
    """

    def __init__(self, cycle: Sequence[Action], window: int) -> None:
        self.cycle = tuple(cycle)
        self.window = window
        unrolled = self.cycle * (2 + window // len(self.cycle))
        self._phase_after = {
            unrolled[phase : phase + window]: (phase + window) % len(self.cycle) for phase in range(len(self.cycle))
        }

    def __call__(self, history: Sequence[Action]) -> Action:
        """Return the action after `history`, the last `window` actions or fewer, oldest first."""
        return self.cycle[self.phase_after(history)]

    def phase_after(self, history: Sequence[Action]) -> int:
        """Return the place on the cycle that continues the longest stretch of it at the end of `history`."""
        recent = tuple(history[len(history) - min(self.window, len(history)) :])
        if recent in self._phase_after:
            return self._phase_after[recent]
        best_length = -1
        best_phase = 0
        for phase in range(len(self.cycle)):
            length = 0
            while length < len(recent) and recent[-1 - length] == self.cycle[(phase - 1 - length) % len(self.cycle)]:
                length += 1
            if length > best_length:
                best_length, best_phase = length, phase
        return best_phase

    def place(self, history: Sequence[Action]) -> int | None:
        """Return the place on the cycle after `history`, or None while the history does not lie on the cycle."""
        return self._phase_after.get(tuple(history[len(history) - min(self.window, len(history)) :]))


@kernel
def cycle_value(sequence: Ints, paths: PathRows, rewards: Floats, window: int) -> float:
    """Average reward of playing `sequence` over and over."""
    period = sequence.size
    indptr, indices = paths.indptr, paths.indices
    counts = np.zeros(rewards.shape[0], np.int64)
    for back in range(1, window + 1):
        action = sequence[-back % period]
        enter(counts, indices[indptr[action] : indptr[action + 1]])
    total = 0.0
    for now in range(period):
        action, gone = sequence[now], sequence[(now - window) % period]
        edges = indices[indptr[action] : indptr[action + 1]]
        for edge in edges:
            total += rewards[edge, counts[edge]]
        enter(counts, edges)
        leave(counts, indices[indptr[gone] : indptr[gone + 1]])
    return total / period


def shortcut(sequence: Ints, paths: PathRows, rewards: Floats, window: int) -> tuple[Ints, float]:
    """Return the best simple cycle within a cycle, and its value: no window of actions occurs in it twice.

    Where a window occurs twice, the cycle is two cycles through one history, and one of them is at least as
    good as both.
    """
    cycle = sequence
    while True:
        value = cycle_value(cycle, paths, rewards, window)
        phases: dict[tuple[int, ...], int] = {}
        twice = None
        unrolled = np.tile(cycle, 1 + -(-window // cycle.size)) if window else cycle
        for phase in range(cycle.size):
            key = tuple(unrolled[phase : phase + window].tolist())
            if key in phases:
                twice = (phases[key], phase)
                break
            phases[key] = phase
        if twice is None:
            return cycle, value
        # Rotating by the window turns "window before" into "window from": both parts then close on the
        # repeated history.
        start = (twice[0] + window) % cycle.size
        turned = np.roll(cycle, -start)
        parts = turned[: twice[1] - twice[0]], turned[twice[1] - twice[0] :]
        values = [cycle_value(part, paths, rewards, window) for part in parts]
        cycle = parts[int(values[1] > values[0])]


@kernel
def find_period(actions: Ints, window: int) -> int:
    """Rounds since the last `window` actions were played before, in the same order; 0 if they never were."""
    n_rounds = actions.size
    for end in range(n_rounds - 1, window - 1, -1):
        same = True
        for back in range(1, window + 1):
            if actions[end - back] != actions[n_rounds - back]:
                same = False
                break
        if same:
            return n_rounds - end
    return 0


@kernel
def change_use(
    use: NDArray[np.int8], counts: NDArray[np.int16], edges: Ints32, phase: int, window: int, change: int
) -> None:
    """Use the edges at a phase of the cycle (`change` 1) or no longer (-1); the period exceeds the window."""
    period = use.shape[1]
    for edge in edges:
        use[edge, phase] += change
        for ahead in range(1, window + 1):
            counts[edge, (phase + ahead) % period] += change


@kernel
def worth_of_use(
    rewards: Floats,
    use: NDArray[np.int8],
    counts: NDArray[np.int16],
    edges: Ints,
    phase: int,
    window: int,
    worth: Floats,
) -> None:
    """What one more use at `phase` would add to the cycle.

    Its reward, and its effect on those that follow.
    """
    period = use.shape[1]
    for edge in edges:
        total = rewards[edge, counts[edge, phase]]
        for ahead in range(phase + 1, phase + window + 1):
            at = ahead if ahead < period else ahead - period
            if use[edge, at]:
                count = counts[edge, at]
                total += rewards[edge, count + 1] - rewards[edge, count]
        worth[edge] = total


@kernel
def ascend(sequence: Ints, paths: PathRows, rewards: Floats, window: int, max_sweeps: int) -> None:
    """Replace one action of the cycle at a time by the best one given the others, until none can be improved.

    A phase may hold -1, no action yet. The period must exceed the window, so that a use never meets itself.
    """
    period = sequence.size
    indptr, indices = paths.indptr, paths.indices
    n_edges = rewards.shape[0]
    use = np.zeros((n_edges, period), np.int8)
    counts = np.zeros((n_edges, period), np.int16)
    worth = np.empty(n_edges)
    every_edge = np.arange(n_edges)
    tolerance = 1e-10 * np.abs(rewards).max()
    for phase in range(period):
        if sequence[phase] >= 0:
            change_use(use, counts, indices[indptr[sequence[phase]] : indptr[sequence[phase] + 1]], phase, window, 1)
    for _ in range(max_sweeps):
        changed = False
        for phase in range(period):
            present = sequence[phase]
            if present >= 0:
                change_use(use, counts, indices[indptr[present] : indptr[present + 1]], phase, window, -1)
            worth_of_use(rewards, use, counts, every_edge, phase, window, worth)
            best = -1
            best_worth = -np.inf
            present_worth = -np.inf
            for action in range(indptr.size - 1):
                total = 0.0
                for slot in range(indptr[action], indptr[action + 1]):
                    total += worth[indices[slot]]
                if action == present:
                    present_worth = total
                if total > best_worth:
                    best_worth = total
                    best = action
            if best_worth > present_worth + tolerance:
                sequence[phase] = best
                changed = True
            change_use(use, counts, indices[indptr[sequence[phase]] : indptr[sequence[phase] + 1]], phase, window, 1)
        if not changed:
            break


@kernel
def reorder(sequence: Ints, paths: PathRows, rewards: Floats, window: int, max_trials: int) -> float:
    """Play the same actions in a better order: move one, or turn a stretch round, while that helps.

    Rewards that fall ever faster ask for bursts: uses of an edge in a row, then rest. For all edges of a road
    network at once that is a matter of order, which replacing one action at a time does not find.
    """
    period = sequence.size
    best = cycle_value(sequence, paths, rewards, window)
    tolerance = 1e-10 * abs(best)
    trial = sequence.copy()
    left = max_trials
    since = 0  # trials since the last gain; a full round of them without one ends the search
    while left > 0:
        for first in range(period):
            for last in range(period):
                if first == last:
                    continue
                for kind in range(2):
                    trial[:] = sequence
                    if kind == 0:
                        step = 1 if last > first else -1
                        at = first
                        while at != last:
                            trial[at] = sequence[at + step]
                            at += step
                        trial[last] = sequence[first]
                    elif first < last:
                        for at in range(first, last + 1):
                            trial[at] = sequence[first + last - at]
                    else:
                        trial[first] = sequence[last]
                        trial[last] = sequence[first]
                    value = cycle_value(trial, paths, rewards, window)
                    left -= 1
                    since += 1
                    if value > best + tolerance:
                        best = value
                        sequence[:] = trial
                        since = 0
                    if left <= 0 or since > 2 * period * period:
                        return best
        if period == 1:
            break
    return best


@kernel
def search_cycles(
    sequence: Ints,
    paths: PathRows,
    rewards: Floats,
    window: int,
    max_sweeps: int,
    max_trials: int,
    kicks: int,
    seed: int,
) -> float:
    """Improve a cycle in place: climb, change a few random phases, climb again, keep what is better."""
    n_actions = paths.indptr.size - 1
    ascend(sequence, paths, rewards, window, max_sweeps)
    best = reorder(sequence, paths, rewards, window, max_trials)
    state = np.uint64(seed * 2 + 1)
    for _ in range(kicks):
        trial = sequence.copy()
        for _ in range(2):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            phase = int((state >> np.uint64(33)) % np.uint64(sequence.size))
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            trial[phase] = int((state >> np.uint64(33)) % np.uint64(n_actions))
        ascend(trial, paths, rewards, window, max_sweeps)
        value = reorder(trial, paths, rewards, window, max_trials)
        if value > best:
            best = value
            sequence[:] = trial
    return best
