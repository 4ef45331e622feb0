"""User equilibrium and system optimum beside a run: the mean trips of the same demand as a steady flow.

Both are static and serve as references, not as bounds: traffic that starts on empty roads can be below either.
"""

import math
from typing import NamedTuple

from routesim.assignment.assignment import assign
from routesim.demand.demand import Demand
from routesim.roads.network import RoadNetwork


class References(NamedTuple):
    """Mean trips in seconds of the static user equilibrium and system optimum; NaN where they are not known."""

    user_s: float = math.nan
    system_s: float = math.nan

    def beside(self, mean_s: float) -> dict[str, float]:
        """Return both, and how far a mean trip lies above each, as fractions."""
        return {
            "user_equilibrium_s": self.user_s,
            "system_optimum_s": self.system_s,
            "excess_over_system_optimum": mean_s / self.system_s - 1,
            "distance_to_user_equilibrium": mean_s / self.user_s - 1,
        }


def references(network: RoadNetwork, demand: Demand, relative_gap: float = 1e-4) -> References:
    """Assign the mean rates of the demand to the roads, and return the mean trips."""
    return References(*(assign(network, demand, kind, relative_gap).mean_travel_time_s for kind in ("user", "system")))
