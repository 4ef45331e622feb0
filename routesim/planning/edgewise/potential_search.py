"""The best potential of an edge's use histories, by an interior point method that knows the shape of the programme.

What `potentials.py` evaluates is minimised here: a linear programme in the value phi(n) of every count and the value
w(n, age) of every use in the window. A row says that no history gains more than `gain` a round by a move from count n,
with the oldest round o leaving and the next one used with probability q; the worst history of a row is a sum of the k
largest of some differences d, which is the least k * level + sum(above) with above >= d - level and above >= 0.

Every row touches the counts n and n + 1, or n - 1 and n. With the row's own unknowns eliminated, each step is a
system of one block of unknowns a count, where only neighbours are coupled: window ** 4 operations a step, some ten
steps. Nothing here needs to be trusted, since the bound is evaluated afresh from the potential that was found.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from routesim.arrays import Floats
from routesim.kernels import kernel
from routesim.planning.edgewise.potentials import Moves, differences

_MAX_STEPS = 60
_PROXIMAL = 1e-9


@kernel
def _add_transposed(vector: Floats, moves: Moves, differences: Floats, fixed: Floats) -> None:
    """Add to `vector`, shaped as the values, the transposed of `differences`."""
    window = vector.shape[1] - 1
    for row in range(moves.uses.size):
        count, used = moves.uses[row], moves.used[row]
        rest, more = count - moves.oldest[row], count - moves.oldest[row] + 1
        weight = fixed[row]
        vector[count, 0] -= weight
        if moves.oldest[row]:
            vector[count, window] -= weight
        if used < 1.0:
            vector[rest, 0] += (1 - used) * weight
        if used > 0.0:
            vector[more, 0] += used * weight
            vector[more, 1] += used * weight
        for age in range(1, window):
            weight = differences[row, age - 1]
            vector[count, age] -= weight
            if used < 1.0:
                vector[rest, age + 1] += (1 - used) * weight
            if used > 0.0:
                vector[more, age + 1] += used * weight


@kernel
def _assemble(
    moves: Moves,
    bend: Floats,
    share: Floats,
    weight: Floats,
    lines: Floats,
    ties: Floats,
    own: Floats,
    diagonal: Floats,
    upper: Floats,
) -> None:
    """Add up the blocks of the system, each row's own unknowns eliminated.

    `lines` and `ties` say how each row as a whole, and its level, hang on the values of the lower of its two counts
    and then of the higher; `own` is what is left of the level itself.
    """
    n_counts, size = diagonal.shape[0], diagonal.shape[1]
    window = size - 1
    local = np.empty((2 * size, 2 * size))
    for row in range(moves.uses.size):
        oldest, used = moves.oldest[row], moves.used[row]
        low = moves.uses[row] - oldest
        line, tie = lines[row], ties[row]
        local[:] = 0.0
        line[:] = 0.0
        tie[:] = 0.0
        here = size * oldest
        line[here] -= 1.0
        if oldest:
            line[here + window] -= 1.0
        line[0] += 1 - used
        line[size] += used
        line[size + 1] += used
        total_bend, total_share = 0.0, 0.0
        for age in range(1, window):
            b, s = bend[row, age - 1], share[row, age - 1]
            total_bend += b
            total_share += s
            now, rest, more = here + age, age + 1, size + age + 1
            line[now] -= s
            line[rest] += s * (1 - used)
            line[more] += s * used
            tie[now] += b
            tie[rest] -= b * (1 - used)
            tie[more] -= b * used
            local[now, now] += b
            local[rest, rest] += b * (1 - used) ** 2
            local[more, more] += b * used**2
            local[now, rest] -= b * (1 - used)
            local[rest, now] -= b * (1 - used)
            local[now, more] -= b * used
            local[more, now] -= b * used
            local[rest, more] += b * used * (1 - used)
            local[more, rest] += b * used * (1 - used)
        along = low - total_share
        w = weight[row]
        own[row] = total_bend + w * along**2
        if total_bend > 0.0:
            tie += w * along * line
        else:
            own[row] = 1.0
        for place in range(2 * size):
            if line[place] != 0.0 or tie[place] != 0.0:
                for other in range(2 * size):
                    local[place, other] += w * line[place] * line[other] - tie[place] * tie[other] / own[row]
        for place in range(size):
            for other in range(size):
                diagonal[low, place, other] += local[place, other]
                if low + 1 < n_counts:
                    upper[low, place, other] += local[place, size + other]
                    diagonal[low + 1, place, other] += local[size + place, size + other]


class _Blocks:
    """A symmetric system of blocks where only neighbours are coupled, factorised."""

    def __init__(self, diagonal: Floats, upper: Floats) -> None:
        self._factors: list[Floats] = []
        self._sides: list[Floats] = []
        for place, block in enumerate(diagonal):
            if place:
                side = solve_triangular(self._factors[-1], upper[place - 1], lower=True, check_finite=False)
                self._sides.append(side)
                block = block - side.T @ side
            self._factors.append(cholesky(block, lower=True, check_finite=False))

    def solve(self, right: Floats) -> Floats:
        """Return the solution for a right side of shape (blocks, size)."""
        ahead: list[Floats] = []
        for place, factor in enumerate(self._factors):
            side = right[place] - self._sides[place - 1].T @ ahead[-1] if place else right[place]
            ahead.append(solve_triangular(factor, side, lower=True, check_finite=False))
        found = np.empty_like(right)
        for place in range(len(right) - 1, -1, -1):
            side = ahead[place]
            if place + 1 < len(right):
                side = side - self._sides[place] @ found[place + 1]
            found[place] = solve_triangular(self._factors[place], side, lower=True, trans=1, check_finite=False)
        return found


class _Iterate(NamedTuple):
    """Unknowns and duals, or a change of them; what goes by rows and ages is 0 where a row has no worst history."""

    values: Floats
    level: Floats
    above: Floats
    gain: float
    dual: Floats
    dual_above: Floats
    dual_low: Floats

    def moved(self, change: "_Iterate", primal: float, dual: float) -> "_Iterate":
        """Return the point some way along a change."""
        return _Iterate(
            self.values + primal * change.values,
            self.level + primal * change.level,
            self.above + primal * change.above,
            self.gain + primal * change.gain,
            self.dual + dual * change.dual,
            self.dual_above + dual * change.dual_above,
            self.dual_low + dual * change.dual_low,
        )


class _Slacks(NamedTuple):
    """By how much the rows hold, and the rows of each age."""

    row: Floats
    above: Floats


class _Programme:
    """The programme of one edge: where its rows lie, and how they hold at a point."""

    def __init__(self, moves: Moves, window: int) -> None:
        self.moves, self.window = moves, window
        self.n_counts = int(moves.uses.max()) + 1
        self.low = moves.uses - moves.oldest
        # A history of no uses or of all has no choice of ages, and needs no unknowns to find the worst.
        self.free = (self.low > 0) & (self.low < window - 1)
        self.mask = np.repeat(self.free[:, None], window - 1, axis=1)
        self.every = ((self.low == window - 1) & (self.low > 0))[:, None]
        self.uses = np.where(self.free, self.low, 0)

    def start(self) -> _Iterate:
        """Return a point where every row holds."""
        n_rows, ages = self.mask.shape
        dual = np.full(n_rows, 1.0 / n_rows)
        dual_above = np.where(self.mask, (dual * self.uses / max(1, ages))[:, None], 0.0)
        return _Iterate(
            values=np.zeros((self.n_counts, self.window + 1)),
            level=np.zeros(n_rows),
            above=np.where(self.mask, 1.0 / self.window, 0.0),
            gain=float(self.moves.reward.max()) + 2.0,
            dual=dual,
            dual_above=dual_above,
            dual_low=np.where(self.mask, dual[:, None] - dual_above, 0.0),
        )

    def changes(self, values: Floats) -> tuple[Floats, Floats]:
        """Return what `differences` fills in."""
        changes, fixed = np.empty(self.mask.shape), np.empty(len(self.mask))
        differences(values, self.moves, changes, fixed)
        return changes, fixed

    def slacks(self, point: _Iterate) -> _Slacks:
        """Return by how much every row holds."""
        changes, fixed = self.changes(point.values)
        worst = self.uses * point.level + point.above.sum(axis=1) + np.where(self.every, changes, 0.0).sum(axis=1)
        row = point.gain - self.moves.reward - fixed - worst
        return _Slacks(row, np.where(self.mask, point.level[:, None] + point.above - changes, 1.0))

    def gathered(self, vector: Floats) -> Floats:
        """Return for each row the entries of both its counts."""
        padded = np.concatenate([vector, np.zeros((1, self.window + 1))])
        return np.concatenate([padded[self.low], padded[self.low + 1]], axis=1)

    def scattered(self, rows: Floats) -> Floats:
        """Return the transposed of `gathered`."""
        total = np.zeros((self.n_counts + 1, self.window + 1))
        np.add.at(total, self.low, rows[:, : self.window + 1])
        np.add.at(total, self.low + 1, rows[:, self.window + 1 :])
        return total[:-1]


class _Newton:
    """The linear system of a step, factorised, and its solutions."""

    def __init__(self, programme: _Programme, point: _Iterate, slacks: _Slacks) -> None:
        self._programme, self._point, self._slacks = programme, point, slacks
        mask, (n_rows, _), size = programme.mask, programme.mask.shape, programme.window + 1
        above, low = point.dual_above / slacks.above, point.dual_low / np.where(mask, point.above, 1.0)
        both = np.where(mask, above + low, 1.0)
        self._loose = np.where(mask, 1.0 / both, 0.0)
        self._share = np.where(mask, above / both, np.where(programme.every, 1.0, 0.0))
        self._stiff = point.dual / slacks.row
        self._weight = 1.0 / (1.0 / self._stiff + self._loose.sum(axis=1))
        self._above, self._low = above, low
        self._along = np.where(programme.free, programme.low - self._share.sum(axis=1), 0.0)
        self._lines, self._ties = np.empty((n_rows, 2 * size)), np.empty((n_rows, 2 * size))
        self._own = np.empty(n_rows)
        diagonal = np.zeros((programme.n_counts, size, size))
        upper = np.zeros((programme.n_counts - 1, size, size))
        bend = np.where(mask, low * self._share, 0.0)
        rows = (self._lines, self._ties, self._own)
        _assemble(programme.moves, bend, self._share, self._weight, *rows, diagonal, upper)
        # Potentials are not unique; a touch of stiffness picks the one nearest to the last.
        trace = np.einsum("nii->n", diagonal)
        diagonal[:, np.arange(size), np.arange(size)] += _PROXIMAL * float(trace.max()) / size
        self._blocks = _Blocks(diagonal, upper)
        self._pull = self._weight * self._along / self._own
        self._border = programme.scattered(self._ties * self._pull[:, None] - self._weight[:, None] * self._lines)
        self._through = self._blocks.solve(self._border)
        self._corner = float(
            (self._weight * (1 - self._along * self._pull)).sum() - (self._border * self._through).sum()
        )

    def change(self, row: Floats, above: Floats, low: Floats) -> tuple[_Iterate, _Slacks]:
        """Return the change that brings the duals, to first order, to these targets at the changed slacks."""
        programme, point, share, weight = self._programme, self._point, self._share, self._weight
        mask = programme.mask
        rest = np.where(mask, above + low - row[:, None], 0.0)
        shift = weight * (rest * self._loose).sum(axis=1)
        of_level = np.where(mask, above - share * rest, 0.0).sum(axis=1) - programme.uses * row - self._along * shift
        of_level = np.where(programme.free, of_level / self._own, 0.0)
        right = -programme.scattered(self._lines * shift[:, None] + self._ties * of_level[:, None])
        back = np.where(mask, above - share * rest, np.where(programme.every, row[:, None], 0.0))
        _add_transposed(right, programme.moves, -back, -row)
        of_gain = float(row.sum() - 1.0 + shift.sum() + (weight * self._along * of_level).sum())
        direct = self._blocks.solve(right)
        gain = (of_gain - float((self._border * direct).sum())) / self._corner
        values = direct - gain * self._through
        there = programme.gathered(values)
        level = of_level + self._pull * gain - (self._ties * there).sum(axis=1) / self._own
        level = np.where(programme.free, level, 0.0)
        pushed = weight * ((self._lines * there).sum(axis=1) + self._along * level - gain) + shift
        changes, _ = programme.changes(values)
        rise = np.where(mask, share * (changes - level[:, None]) + (rest - pushed[:, None]) * self._loose, 0.0)
        slack_above = np.where(mask, level[:, None] + rise - changes, 0.0)
        found = _Iterate(
            values,
            level,
            rise,
            gain,
            row - point.dual + pushed,
            np.where(mask, above - point.dual_above - self._above * slack_above, 0.0),
            np.where(mask, low - point.dual_low - self._low * rise, 0.0),
        )
        return found, _Slacks(-pushed / self._stiff, slack_above)


def _room(*pairs: tuple[Floats, Floats]) -> float:
    """Return how far, up to 1, one can go until some of these reach 0."""
    least = 1.0
    for at, change in pairs:
        falling = change < 0
        if falling.any():
            least = min(least, float((at[falling] / -change[falling]).min()))
    return least


def best_potential(moves: Moves, window: int, precision: float) -> tuple[Floats, Floats]:
    """Return the values of counts and uses that bound the best average most closely, and how often each move is made.

    Rewards should be of the order of 1. The frequencies belong to the best way of using the edge, as far as the
    potentials tell one from another. A step is predicted first and corrected by what the prediction missed (Mehrotra).
    """
    programme = _Programme(moves, window)
    point = programme.start()
    slacks = programme.slacks(point)
    for _ in range(_MAX_STEPS):
        duals = (point.dual, point.dual_above, point.dual_low)
        held = (slacks.row, slacks.above, point.above)
        gap = _products(held, duals)
        if gap < precision and abs(1 - point.dual.sum()) < 1e-6:
            break
        mean = gap / (moves.uses.size + 2 * int(programme.mask.sum()))
        try:
            newton = _Newton(programme, point, slacks)
        except np.linalg.LinAlgError:  # as close as rounding allows
            break
        nothing = np.zeros_like(point.above)
        aim, eased = newton.change(np.zeros_like(point.dual), nothing, nothing)
        eased_all, aimed = (eased.row, eased.above, aim.above), (aim.dual, aim.dual_above, aim.dual_low)
        primal, dual = (_room(*zip(*of, strict=True)) for of in ((held, eased_all), (duals, aimed)))
        ahead = _products(
            [at + primal * change for at, change in zip(held, eased_all, strict=True)],
            [at + dual * change for at, change in zip(duals, aimed, strict=True)],
        )
        centre = mean * min(1.0, max(1e-4, (ahead / gap) ** 3))
        low = np.where(programme.mask, point.above, 1.0)
        targets = [
            (centre - one * other) / at
            for one, other, at in zip(eased_all, aimed, (slacks.row, slacks.above, low), strict=True)
        ]
        step, eased = newton.change(targets[0], *(np.where(programme.mask, target, 0.0) for target in targets[1:]))
        primal = 0.98 * _room((slacks.row, eased.row), (slacks.above, eased.above), (point.above, step.above))
        dual = 0.98 * _room(*zip(duals, (step.dual, step.dual_above, step.dual_low), strict=True))
        moved = point.moved(step, primal, dual)
        after = programme.slacks(moved)
        if not (after.row.min() > 0 and after.above.min(initial=1.0) > 0):
            break
        point, slacks = moved, after
    return point.values, point.dual / point.dual.sum()


def _products(one: Sequence[Floats], other: Sequence[Floats]) -> float:
    return float(sum((a * b).sum() for a, b in zip(one, other, strict=True)))
