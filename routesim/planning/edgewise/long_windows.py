"""Edges over windows too long for all their use histories: proven by potentials, at the prices that matter.

Edges whose rewards are multiples of one table (a congestion function they share) are one *shape*. At a price of a
shape the best potential bounds what its edges earn; since the best average is convex in the price, a chord between two
prices bounds every price between them. How edges are used at those prices gives points of the curve that shares are
planned on. Prices are looked at only where the bound is still loose, the loosest first.
"""

from dataclasses import dataclass, field

import numpy as np

from routesim.arrays import Floats, Ints
from routesim.planning.edgewise.count_policy import even_use_curves
from routesim.planning.edgewise.edge_models import MajorantModel
from routesim.planning.edgewise.potential_search import best_potential
from routesim.planning.edgewise.potentials import most_gained, moves_of
from routesim.planning.hull import raise_to_hull

LONGEST_WINDOW = 128
"""Beyond it a potential takes too long, and edges are bounded by the majorant alone."""

_CLOSE = 5e-4  # of what all edges earn: a looser bound than this is worth another potential
_PRECISION = 3e-5
_WORK = 4.3e6  # potentials at a window of 40: 67
_FEWEST_POTENTIALS = 6
_MOST_POTENTIALS = 150
_EPS = float(np.finfo(np.float64).eps)


@dataclass
class _Shape:
    """One table, at most 1 in size, with what is known of it."""

    table: Floats
    prices: list[float] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    shares: Floats = field(default_factory=lambda: np.empty(0))
    earned: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        grid, heights = even_use_curves(self.table[None])
        self.shares, self.earned = grid, heights[0]
        self.prices, self.gains = [float(self.table.max())], [0.0]  # where no use gains anything

    def upper(self, prices: Floats) -> Floats:
        """Return upper bounds on the best average at these prices."""
        chords = np.interp(prices, self.prices, self.gains)
        # Each round has one use at most, so the best average falls by no more than the price rises.
        chords += np.maximum(0.0, self.prices[0] - prices)
        chords += 8 * _EPS * (1.0 + np.abs(prices))
        majorant = MajorantModel().best_averages(np.repeat(self.table[None], prices.size, axis=0), prices)
        return np.minimum(chords, majorant)

    def lower(self, prices: Floats) -> tuple[Floats, Floats]:
        """Return what the known points earn at these prices, and their rewards alone."""
        worth = self.earned - prices[:, None] * self.shares
        best = worth.argmax(axis=1)
        return worth[np.arange(prices.size), best], self.earned[best]

    def look_at(self, price: float) -> None:
        """Find the best potential at a price, and keep the bound and the way of use that belong to it."""
        table, window = self.table, self.table.size - 1
        falling = bool(np.all(table[1:] <= table[:-1]))
        most = min(window, int(np.count_nonzero(table > price))) if falling else window
        one_kind = np.array([price]), np.ones(1)
        size = float(np.abs(table - price).max())
        eased = table
        if falling:  # what loses more than all there is to gain is never used, however much it loses
            size = float(table[0] - price)
            eased = np.maximum(table, price - size)
        moves = moves_of((eased - price) / size, np.zeros(1), np.ones(1), most)
        values, frequency = best_potential(moves, window, _PRECISION)
        gain = max(0.0, most_gained(values * size, moves_of(table, *one_kind, most)))
        place = int(np.searchsorted(self.prices, price))
        self.prices.insert(place, price)
        self.gains.insert(place, gain)
        share = float(frequency @ moves.used)
        self.shares = np.append(self.shares, share)
        self.earned = np.append(self.earned, float(frequency @ moves.reward) * size + price * share)


class LongWindowModel:
    """Edges of a window of up to `LONGEST_WINDOW` rounds, as the price problem sees them."""

    def __init__(self, rewards: Floats) -> None:
        window = rewards.shape[1] - 1
        self._left = min(_MOST_POTENTIALS, max(_FEWEST_POTENTIALS, int(_WORK / max(1, window) ** 3)))
        self._mix = np.random.default_rng(0).uniform(1, 2, size=(rewards.shape[1], 2))
        sizes, keys = self._keys(rewards)
        self._found, place = np.unique(keys, return_inverse=True, axis=0)
        tables = np.full((len(self._found), window + 1), -np.inf)
        np.maximum.at(tables, place.reshape(-1), rewards / sizes[:, None])
        tables += _EPS * np.abs(tables)
        self._shapes = [_Shape(table) for table in tables]
        self._n_looks = 0

    @property
    def n_patterns(self) -> int:
        """How many potentials were found."""
        return self._n_looks

    def _keys(self, rewards: Floats) -> tuple[Floats, Floats]:
        sizes = np.abs(rewards).max(axis=1)
        sizes[sizes == 0] = 1.0
        return sizes, ((rewards / sizes[:, None]) @ self._mix).round(7)

    def _sorted(self, rewards: Floats) -> tuple[Floats, Ints]:
        """Return the size and the shape of every row, which has to be a row that the model was made with."""
        sizes, keys = self._keys(rewards)
        both, place = np.unique(np.concatenate([self._found, keys]), return_inverse=True, axis=0)
        assert len(both) == len(self._found)  # noqa: S101 - rows of other tables are no use of this model
        return sizes, place.reshape(-1)[len(self._found) :]

    def curves(self, rewards: Floats) -> tuple[Floats, Floats]:
        """Return the curves over the ways of use known so far."""
        sizes, shapes = self._sorted(rewards)
        grid = np.unique(np.concatenate([shape.shares for shape in self._shapes]).round(9))
        rows = np.full((len(self._shapes), grid.size), -np.inf)
        for row, shape in zip(rows, self._shapes, strict=True):
            np.maximum.at(row, np.searchsorted(grid, shape.shares.round(9)), shape.earned)
        raise_to_hull(grid, rows)
        return grid, rows[shapes] * sizes[:, None]

    def best_averages(self, rewards: Floats, prices: Floats) -> Floats:
        """Return an upper bound for each edge, after a look at the prices where bounds are the loosest."""
        sizes, shapes = self._sorted(rewards)
        relative = prices / sizes
        rows = [np.flatnonzero(shapes == shape) for shape in range(len(self._shapes))]
        upper, loose, earned = np.zeros(sizes.size), np.zeros(sizes.size), np.zeros(sizes.size)
        changed = [shape for shape, members in enumerate(rows) if members.size]
        while True:
            for shape in changed:
                members = rows[shape]
                upper[members] = self._shapes[shape].upper(relative[members])
                lower, earned[members] = self._shapes[shape].lower(relative[members])
                loose[members] = upper[members] - lower
            lost = np.bincount(shapes, weights=loose * sizes, minlength=len(rows))
            if self._left == 0 or lost.sum() <= _CLOSE * float(np.abs(earned * sizes).sum()):
                break
            worst = int(lost.argmax())
            members = rows[worst]
            self._shapes[worst].look_at(float(relative[members[int((loose * sizes)[members].argmax())]]))
            changed = [worst]
            self._left -= 1
            self._n_looks += 1
        return upper * sizes * (1 + 4 * _EPS)
