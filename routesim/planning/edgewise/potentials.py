"""What an edge can earn alone at any window, proven by a value of each count and of each use in the window.

A *potential* gives every use history of an edge the value phi(n) + sum of w(n, age) over its n uses, where `age` is how
many rounds ago a use was. Over time these values cancel, so no way of using the edge averages more than the most that
any move from any history gains: what it earns plus the change of the value. At a count n the history that gains the
most has its uses where the changes are largest, which sorting finds; so a bound needs no trust in whoever found the
potential.

Each round serves a kind of traveller, drawn with its rate; a use for kind k pays the price k. The kinds that use the
edge in a history are those with the lowest prices, so a *move* is a number of kinds.
"""

from typing import NamedTuple

import numpy as np

from routesim.arrays import Floats, Ints
from routesim.kernels import kernel

_CHUNK = 1 << 22


class Moves(NamedTuple):
    """From a history of `uses`, the `oldest` leaves if it is 1, a use comes with chance `used` and earns `reward`."""

    uses: Ints
    oldest: Ints
    used: Floats
    reward: Floats


def moves_of(rewards: Floats, prices: Floats, rates: Floats, most: int) -> Moves:
    """Return every move of an edge with at most `most` uses in its window.

    `prices` is minus infinity for a kind that has to use the edge and infinite for one that cannot; a kind that has to
    pays nothing. `most` may be less than the window where nobody has to, rewards never rise with the count, and a use
    at a count of `most` gains nothing at any price: such a use can be left out, as no later one finds a higher count.
    """
    window = rewards.size - 1
    order = np.argsort(prices, kind="stable")
    allowed = order[prices[order] < np.inf]
    forced = int(np.count_nonzero(prices[allowed] == -np.inf))
    paid = np.where(np.isfinite(prices[allowed]), prices[allowed], 0.0)
    shares = np.concatenate([[0.0], np.cumsum(rates[allowed])])
    if allowed.size == rates.size:
        shares[-1] = 1.0
    costs = np.concatenate([[0.0], np.cumsum(rates[allowed] * paid)])
    kinds = np.arange(forced, allowed.size + 1)
    count, oldest, number = (each.ravel() for each in np.meshgrid(np.arange(most + 1), [0, 1], kinds, indexing="ij"))
    kept = count - oldest
    possible = (kept >= 0) & (kept < window) & ((kept < most) | (shares[number] == 0.0))
    count, oldest, number = count[possible], oldest[possible], number[possible]
    used = shares[number]
    return Moves(count, oldest, used, used * rewards[count] - costs[number])


@kernel
def differences(values: Floats, moves: Moves, changes: Floats, fixed: Floats) -> None:
    """Fill in how the value of the use of every age changes in each move, and what changes whatever the history.

    `values[n]` is phi(n) and then w(n, 1), ..., w(n, window).
    """
    window = values.shape[1] - 1
    for row in range(moves.uses.size):
        count, used = moves.uses[row], moves.used[row]
        rest, more = count - moves.oldest[row], count - moves.oldest[row] + 1
        fixed[row] = -values[count, 0]
        if moves.oldest[row]:
            fixed[row] -= values[count, window]
        if used < 1.0:
            fixed[row] += (1 - used) * values[rest, 0]
        if used > 0.0:
            fixed[row] += used * (values[more, 0] + values[more, 1])
        for age in range(1, window):
            total = -values[count, age]
            if used < 1.0:
                total += (1 - used) * values[rest, age + 1]
            if used > 0.0:
                total += used * values[more, age + 1]
            changes[row, age - 1] = total


def most_gained(values: Floats, moves: Moves) -> float:
    """Return the most that any move from any history gains, rounded up: a bound on the best average."""
    ages = values.shape[1] - 2
    most = -np.inf
    size = float(np.abs(values).max()) * (ages + 4) + float(np.abs(moves.reward).max())
    step = max(1, _CHUNK // max(1, ages))
    for start in range(0, moves.uses.size, step):
        rows = slice(start, start + step)
        part = Moves(moves.uses[rows], moves.oldest[rows], moves.used[rows], moves.reward[rows])
        changes, fixed = np.empty((part.uses.size, ages)), np.empty(part.uses.size)
        differences(values, part, changes, fixed)
        sums = np.zeros((part.uses.size, ages + 1))
        np.cumsum(-np.sort(-changes, axis=1), axis=1, out=sums[:, 1:])
        largest = sums[np.arange(part.uses.size), part.uses - part.oldest]
        most = max(most, float((part.reward + fixed + largest).max()))
    rounding = (ages + 8) * float(np.finfo(np.float64).eps) * size
    return float(most + rounding)
