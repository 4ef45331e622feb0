"""How unequal a plan is: how much longer drivers are on the way than on the path that is best for them."""

from typing import NamedTuple

import numpy as np

from routesim.arrays import Floats
from routesim.assignment.paths import PathShares

_ROUNDING = 1e-9


class Inequality(NamedTuple):
    """Shares of the drivers whose path is more than 5, 10 and 20 % longer than their best, and by how much paths are.

    `mean` and `worst` are fractions: 0.1 is a path a tenth longer than the best one of the same pair.
    """

    above_5: float
    above_10: float
    above_20: float
    mean: float
    worst: float

    def named(self, what: str) -> dict[str, float]:
        """Return the numbers under names that begin with `what`, as summaries have them."""
        return {
            f"share_{what}_above_5_percent": self.above_5,
            f"share_{what}_above_10_percent": self.above_10,
            f"share_{what}_above_20_percent": self.above_20,
            f"mean_{what}": self.mean,
            f"worst_{what}": self.worst,
        }


def inequality_of(paths: PathShares, pair_vph: Floats, cost: Floats, best: Floats) -> Inequality:
    """Compare what every path costs with the best of its pair; pairs whose best costs nothing have no excess."""
    pair = paths.pair
    least = best[pair]
    excess = np.divide(paths.totals(cost), least, out=np.ones(len(pair)), where=least > 0) - 1.0
    return inequality(np.maximum(0.0, excess), paths.shares * pair_vph[pair])


def inequality(excess: Floats, vehicles: Floats) -> Inequality:
    """Return the report for so many vehicles with these excesses."""
    total = float(vehicles.sum())
    five, ten, twenty = (float(vehicles[excess > limit + _ROUNDING].sum()) / total for limit in (0.05, 0.1, 0.2))
    return Inequality(five, ten, twenty, float(excess @ vehicles) / total, float(excess.max(initial=0.0)))
