"""Incidents: roads that lose capacity, or are closed, for some time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from routesim.arrays import Floats
from routesim.checks import LATEST_S
from routesim.errors import InputError

LEAST_CAPACITY = 0.001
"""The least share of its capacity that an open road keeps."""


@dataclass(frozen=True)
class Incident:
    """Roads that keep a share of their capacity from `start_s` up to `end_s`; with a `capacity` of 0 they are closed.

    `edges` are indices of edges. Nobody enters a closed road, and those who are on it drive on. Whoever would enter it
    is routed anew from where he is, and waits where there is no other way. Every router knows of a closure
    from its start; of lost capacity only informed routers do. Where incidents overlap, the least share counts.

    >>> Incident([3, 4], start_s=600, end_s=2400, capacity=0.3)
    Incident(edges=(3, 4), start_s=600.0, end_s=2400.0, capacity=0.3)
    """

    edges: Sequence[int]
    start_s: float
    end_s: float = np.inf
    capacity: float = 0.0

    def __post_init__(self) -> None:
        given = np.atleast_1d(np.asarray(self.edges))
        if given.ndim != 1 or not len(given) or given.dtype.kind not in "iu" or (given < 0).any():
            raise InputError(f"an incident needs the indices of one or more edges, got {self.edges!r}")
        object.__setattr__(self, "edges", tuple(dict.fromkeys(given.tolist())))
        for name in ("start_s", "end_s", "capacity"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if not 0 <= self.start_s <= LATEST_S or not self.end_s > self.start_s:
            raise InputError(
                f"an incident starts at 0 s or later, at {LATEST_S:g} s at the latest, and ends after that; "
                f"got start_s = {self.start_s:g}, end_s = {self.end_s:g}"
            )
        if not (self.capacity == 0 or LEAST_CAPACITY <= self.capacity <= 1):
            raise InputError(
                f"capacity is the share that is left, 0 (closed) or from {LEAST_CAPACITY} to 1, got {self.capacity:g}"
            )

    def check(self, n_edges: int) -> None:
        """Refuse edges that there are not."""
        if max(self.edges) >= n_edges:
            raise InputError(f"an incident is on edge {max(self.edges)}; the network has edges 0 … {n_edges - 1}")


def change_times(incidents: Sequence[Incident]) -> list[float]:
    """Return the times at which roads change, in order."""
    return sorted({time for one in incidents for time in (one.start_s, one.end_s) if np.isfinite(time)})


def shares_at(incidents: Sequence[Incident], time_s: float, n_edges: int) -> Floats:
    """Return the share of its capacity that every edge has from a time on."""
    shares = np.ones(n_edges)
    for one in incidents:
        if one.start_s <= time_s < one.end_s:
            edges = list(one.edges)
            shares[edges] = np.minimum(shares[edges], one.capacity)
    return shares
