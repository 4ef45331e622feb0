"""The compiled sweeps of the contextual planner: what each history is worth, from what those after it are worth."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats
from routesim.kernels import kernel
from routesim.rounds.window import PathRows

# A step that stays put with this chance, so that value iteration settles although the best cycle is periodic.
_LAZINESS = 0.25


class Histories(NamedTuple):
    """All histories of one length.

    `table` holds the multiplier of each group of edges after each history, and `curves` those of each group by count.
    Where no two actions share an edge, `recent` counts how often each action occurs in the histories without their
    oldest action; else it is empty. `paths` lists the groups of each action.
    """

    table: Floats
    curves: Floats
    recent: NDArray[np.uint8]
    paths: PathRows


@kernel
def _backup(
    bases: Floats,
    bonus: Floats,
    histories: Histories,
    after: Floats,
    ahead: Floats,
    values: Floats,
    kept: NDArray[np.integer],
) -> None:
    """Fill `values` with the largest reward now plus value afterwards, for each history.

    The best action of each goes into `kept`, unless that is empty.
    """
    table, indptr, indices = histories.table, histories.paths.indptr, histories.paths.indices
    n_actions, n_states = len(indptr) - 1, table.shape[1]
    if len(histories.recent) > 0:
        _backup_disjoint(bases, bonus, histories, after, ahead, values, kept)
        return
    # Histories that differ in their oldest action only lead to the same ones; a short history has no oldest to lose.
    rests = max(1, n_states // n_actions) if n_states == len(after) else n_states
    for action in range(n_actions):
        extra = bonus[action]
        if len(after) == 1:
            ahead[:n_states] = after[0] + extra
        else:
            for rest in range(rests):
                ahead[rest] = after[rest * n_actions + action] + extra
            for start in range(rests, n_states, rests):
                for rest in range(rests):
                    ahead[start + rest] = ahead[rest]
        # One edge group after the other over all histories, without branches: the compiler makes vectors of it.
        for place in range(indptr[action], indptr[action + 1]):
            multipliers = table[indices[place]]
            base = bases[indices[place]]
            for state in range(n_states):
                ahead[state] += base * multipliers[state]
        if action == 0:
            values[:n_states] = ahead[:n_states]
            kept[:n_states] = 0
        elif len(kept) > 0:
            for state in range(n_states):
                if ahead[state] > values[state]:
                    values[state] = ahead[state]
                    kept[state] = action
        else:
            for state in range(n_states):
                values[state] = ahead[state] if ahead[state] > values[state] else values[state]


@kernel
def _backup_disjoint(
    bases: Floats,
    bonus: Floats,
    histories: Histories,
    after: Floats,
    worth: Floats,
    values: Floats,
    kept: NDArray[np.integer],
) -> None:
    """Do what `_backup` does where no two actions share an edge, with the work of one history for K of them.

    Of the K histories that differ in their oldest action only, each sees all rewards alike but that of this action.
    """
    curves, recent, indptr, indices = (
        histories.curves,
        histories.recent,
        histories.paths.indptr,
        histories.paths.indices,
    )
    rests, n_actions = recent.shape
    counts = curves.shape[1]
    for action in range(n_actions):
        for count in range(counts):
            total = bonus[action]
            for place in range(indptr[action], indptr[action + 1]):
                total += bases[indices[place]] * curves[indices[place], count]
            worth[action * counts + count] = total
    for rest in range(rests):
        best, second, choice, next_choice = -np.inf, -np.inf, 0, 0
        for action in range(n_actions):
            total = worth[action * counts + recent[rest, action]] + after[rest * n_actions + action]
            # Without branches, which random contexts would make a processor guess wrong.
            first, other = total > best, total > second
            second = best if first else (total if other else second)
            next_choice = choice if first else (action if other else next_choice)
            best = total if first else best
            choice = action if first else choice
        for oldest in range(n_actions):
            own = worth[oldest * counts + recent[rest, oldest] + 1] + after[rest * n_actions + oldest]
            others = second if oldest == choice else best
            state = oldest * rests + rest
            values[state] = own if own > others else others
            if len(kept) > 0:
                rival = next_choice if oldest == choice else choice
                kept[state] = oldest if own > others else rival


@kernel
def backward(bases: Floats, bonus: Floats, histories: Histories, after: Floats, kept: NDArray[np.integer]) -> Floats:
    """Return the values before the first round of `bases` from those after the last; best actions go into `kept`."""
    ahead = np.empty(_scratch(histories))
    lines = np.zeros((2, len(after)))
    nothing = kept[:1].reshape(-1)[:0]
    following = after
    for place in range(len(bases) - 1, -1, -1):
        line, extra = lines[place % 2], bonus[place if len(bonus) > 1 else 0]
        best = kept[place] if len(kept) > 0 else nothing
        _backup(bases[place], extra, histories, following, ahead, line, best)
        following = line
    return following


@kernel
def _scratch(histories: Histories) -> int:
    """Return the room `_backup` needs beside its result."""
    return int(max(histories.table.shape[1], histories.curves.size))


@kernel
def iterate(
    bases: Floats, weights: Floats, histories: Histories, values: Floats, width: float, max_sweeps: int
) -> tuple[float, float, int]:
    """Improve `values` in place until the best average is known to within `width`; return its bounds and sweeps."""
    n_states, n_actions = histories.table.shape[1], len(histories.paths.indptr) - 1
    ahead, line, mean = np.empty(_scratch(histories)), np.empty(n_states), np.empty(n_states)
    nothing_kept = np.zeros(0, dtype=np.uint8)
    nothing = np.zeros(n_actions)
    sweep = 0
    while True:
        sweep += 1
        mean[:] = -values
        for sample in range(len(bases)):
            _backup(bases[sample], nothing, histories, values, ahead, line, nothing_kept)
            for state in range(n_states):
                mean[state] += weights[sample] * line[state]
        low, high = mean.min(), mean.max()
        if high - low <= width or sweep >= max_sweeps:
            return low, high, sweep
        for state in range(n_states):
            values[state] += (1.0 - _LAZINESS) * (mean[state] - low)
