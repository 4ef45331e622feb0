"""Dealer: paths dealt out by their shares, so evenly that no path falls behind its share."""

import numpy as np
from numpy.typing import NDArray

from routesim.assignment.paths import PathShares
from routesim.errors import RouteError
from routesim.kernels import kernel
from routesim.traffic.protocol import Departures, Routes
from routesim.traffic.routers.od_pairs import pair_numbers


class Dealer:
    """Deals paths of pairs of nodes by their shares: each vehicle takes the path furthest behind its share."""

    def __init__(self, pairs: NDArray[np.int64], n_nodes: int) -> None:
        """Take the pairs that will be asked for, numbered as `pair_numbers` does."""
        self._n_nodes = n_nodes
        self._order = np.argsort(pairs)
        self._sorted = pairs[self._order]

    def use(self, shares: PathShares) -> None:
        """Deal these shares from now on, with nothing dealt yet."""
        self.shares = shares
        self._dealt = np.zeros(len(shares.shares))
        self._seen = np.zeros(len(shares.first) - 1)

    def deal(self, departures: Departures) -> Routes:
        """Return the paths of these vehicles."""
        asked = pair_numbers(departures, self._n_nodes)
        place = np.minimum(np.searchsorted(self._sorted, asked), len(self._sorted) - 1)
        unknown = np.flatnonzero(self._sorted[place] != asked)
        if len(unknown):
            raise RouteError(
                f"vehicle {departures.vehicles[unknown[0]]} goes between nodes for which nothing was planned; "
                "plan with the demand that is simulated"
            )
        shares = self.shares
        which = _deal(self._order[place], shares.first, shares.shares, self._dealt, self._seen)
        return Routes(shares.indptr, shares.edges, which)


@kernel
def _deal(
    pairs: NDArray[np.int64],
    first: NDArray[np.int64],
    shares: NDArray[np.float64],
    dealt: NDArray[np.float64],
    seen: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Give each vehicle, in order, the path of its pair that is furthest behind its share."""
    which = np.empty(len(pairs), dtype=np.int64)
    for vehicle, pair in enumerate(pairs):
        seen[pair] += 1.0
        best, behind = first[pair], -np.inf
        for path in range(first[pair], first[pair + 1]):
            lag = shares[path] * seen[pair] - dealt[path]
            if lag > behind:
                best, behind = path, lag
        dealt[best] += 1.0
        which[vehicle] = best
    return which
