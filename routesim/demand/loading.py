"""What happened to demand while it was loaded: what was left out, and how far places were moved to reach a road."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from routesim.arrays import Floats

FAR_M = 200.0
"""Places farther than this from the node that stands for them are warned of."""


@dataclass(frozen=True)
class Loading:
    """Rows read, trips within one zone or place (left out), and the distances from places in degrees to their nodes.

    >>> print(Loading(rows=10, within_rows=1, within_vehicles=4.0, snapped=18, mean_snap_m=31.0, largest_snap_m=95.0))
    10 rows; 1 of them (4 vehicles) stays within one zone and was left out; 18 places lie 31 m on average and 95 m at \
most from the node that stands for them
    """

    rows: int = 0
    within_rows: int = 0
    within_vehicles: float = 0.0
    snapped: int = 0
    mean_snap_m: float = 0.0
    largest_snap_m: float = 0.0

    @classmethod
    def of_rows(cls, rows: int, within: Floats) -> Self:
        """Return what was loaded of a table without places in degrees; `within` are the vehicles of rows left out."""
        return cls(rows, len(within), float(within.sum()))

    def with_snaps(self, distance_m: Floats) -> Self:
        """Return the same with the distances of places from their nodes."""
        if not len(distance_m):
            return self
        mean, most = float(np.mean(distance_m)), float(np.max(distance_m))
        return type(self)(self.rows, self.within_rows, self.within_vehicles, len(distance_m), mean, most)

    def figures(self) -> dict[str, Any]:
        """Return the figures by name; those of places only where places were given in degrees."""
        figures: dict[str, Any] = {
            "rows": self.rows,
            "within_one_zone_rows": self.within_rows,
            "within_one_zone_vehicles": round(self.within_vehicles, 6),
        }
        if self.snapped:
            figures |= {
                "snapped_places": self.snapped,
                "mean_snap_m": round(self.mean_snap_m, 1),
                "largest_snap_m": round(self.largest_snap_m, 1),
            }
        return figures

    def __str__(self) -> str:
        parts = [f"{self.rows:,} rows"]
        if self.within_rows:
            stay = "stays within one zone and was" if self.within_rows == 1 else "stay within one zone and were"
            parts.append(f"{self.within_rows:,} of them ({self.within_vehicles:,.6g} vehicles) {stay} left out")
        if self.snapped:
            parts.append(
                f"{self.snapped:,} places lie {self.mean_snap_m:.0f} m on average and {self.largest_snap_m:.0f} m at "
                "most from the node that stands for them"
            )
        return "; ".join(parts)
