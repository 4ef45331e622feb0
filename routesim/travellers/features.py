"""Road features: what a trip is (who travels, does it rain) joined with what an edge is (its time, length, class).

A term is a column of the edges, "time", or a column of the edges times one of the trip, "motorway*calm". Each term is
one feature and has one weight in theta, shared by all edges. Columns are scaled by their largest value and by the
number of terms, so that no feature vector is longer than one while trip columns lie between 0 and 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats
from routesim.errors import InputError
from routesim.roads.network import RoadNetwork
from routesim.travellers.contexts import DrawnContexts

_MOTORWAYS = ("motorway", "trunk")
_MAIN_ROADS = (*_MOTORWAYS, "primary", "secondary")
_SIDE_STREETS = ("residential", "living_street", "service", "unclassified")
EDGE_COLUMNS = ("time", "length", "slowness", "motorway", "main_road", "side_street")
"""Seconds, metres, seconds beyond those at 100 km/h, and the seconds on roads of a class (0 on others)."""


class RoadFeatures:
    """The function phi(x, e) of trip columns and edges, for some edges of a network.

    `edges` are edge indices, as in `ActionSet.edges`. `extra` adds columns of the edges by name, one value for each of
    `edges`, such as the toll in euros.

    >>> import routesim as rs
    >>> roads = rs.load_city("helsinki")
    >>> phi = RoadFeatures(roads, [0, 1, 2], ["time", "time*rain"])
    >>> phi.trip_columns, phi.block(np.array([[0.0], [1.0]])).shape
    (('rain',), (2, 3, 2))
    """

    def __init__(
        self,
        network: RoadNetwork,
        edges: ArrayLike,
        terms: Sequence[str],
        *,
        extra: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        self.terms = tuple(terms)
        if not self.terms or len(set(self.terms)) < len(self.terms):
            raise InputError(f"features need at least one term, each of them once, got {list(terms)}")
        chosen = np.asarray(edges, dtype=np.int64)
        own = {name: np.asarray(values, dtype=np.float64) for name, values in (extra or {}).items()}
        for name, values in own.items():
            if values.shape != chosen.shape or not np.isfinite(values).all():
                raise InputError(
                    f"the column {name!r} needs one finite value for each of {len(chosen)} edges, got {values.shape}"
                )
        pairs = [term.split("*") for term in self.terms]
        columns = []
        for term, pair in zip(self.terms, pairs, strict=True):
            name = pair[0].strip()
            if len(pair) > 2 or not all(part.strip() for part in pair):
                raise InputError(f"a term is an edge column, or edge column * trip column, got {term!r}")
            if name not in own and name not in EDGE_COLUMNS:
                known = ", ".join((*EDGE_COLUMNS, *own))
                raise InputError(f"there is no edge column {name!r} for the term {term!r}; there are {known}")
            columns.append(own[name] if name in own else _edge_column(network, name)[chosen])
        by_edge = np.stack(columns, axis=1)
        unknown = np.argwhere(~np.isfinite(by_edge))
        if len(unknown):
            edge, place = unknown[0]
            raise InputError(f"edge {chosen[edge]} has no known value for the term {self.terms[place]!r}; leave it out")
        self._with = [pair[1].strip() if len(pair) == 2 else None for pair in pairs]
        self.trip_columns = tuple(dict.fromkeys(name for name in self._with if name is not None))
        largest = np.abs(by_edge).max(axis=0)
        if not largest.all():
            empty = self.terms[int(np.argmin(largest))]
            raise InputError(f"the term {empty!r} is 0 on every edge, so its weight could not be learned; leave it out")
        self.units = largest * np.sqrt(len(self.terms))
        """What a feature of 1 stands for, in the units of its term."""
        self._by_edge = by_edge / self.units

    @property
    def n_edges(self) -> int:
        """The number of edges that these are the features of."""
        return len(self._by_edge)

    @property
    def dimension(self) -> int:
        """The number of features."""
        return len(self.terms)

    def block(self, trips: ArrayLike) -> Floats:
        """Return the features of trips, given as rows of `trip_columns`: shape (trips, edges, terms)."""
        rows = np.asarray(trips, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.trip_columns):
            raise InputError(f"trips need the columns {', '.join(self.trip_columns) or '(none)'}, got {rows.shape}")
        joined = np.ones((len(rows), self.dimension))
        for place, name in enumerate(self._with):
            if name is not None:
                joined[:, place] = rows[:, self.trip_columns.index(name)]
        features: Floats = joined[:, np.newaxis, :] * self._by_edge
        return features

    def theta(self, costs: Mapping[str, float]) -> Floats:
        """Return the theta under which one unit of each term costs this much; a cost is a negative reward.

        >>> import routesim as rs
        >>> phi = RoadFeatures(rs.load_city("helsinki"), [0, 1], ["time", "length"])
        >>> bool(np.isclose(phi.block(np.empty((1, 0)))[0] @ phi.theta({"time": 1, "length": 0.5}),
        ...     -rs.load_city("helsinki").free_flow_s[:2] - 0.5 * rs.load_city("helsinki").length_m[:2]).all())
        True
        """
        if set(costs) != set(self.terms):
            raise InputError(f"theta needs a cost for each of {', '.join(self.terms)}; got {', '.join(costs)}")
        theta: Floats = -np.array([costs[term] for term in self.terms], dtype=np.float64) * self.units
        return theta


@dataclass(frozen=True)
class Travellers:
    """Who travels, and when: each trip is of one class, drawn by its share, and meets each condition by chance.

    The columns of a trip are 1 for its class and for the conditions it meets, and 0 otherwise.

    >>> people = Travellers({"hurried": 3, "calm": 1}, {"rain": 0.2})
    >>> people.columns
    ('hurried', 'calm', 'rain')
    """

    classes: Mapping[str, float]
    conditions: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shares = np.array(list(self.classes.values()), dtype=np.float64)
        if not len(shares) or not np.isfinite(shares).all() or (shares < 0).any() or shares.sum() <= 0:
            raise InputError(f"travellers need classes with shares of at least 0, not all 0, got {dict(self.classes)}")
        for name, chance in self.conditions.items():
            if not 0 <= chance <= 1:
                raise InputError(f"the chance of {name!r} lies between 0 and 1, got {chance}")
            if name in self.classes:
                raise InputError(f"{name!r} is a class and a condition; choose two names")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the trip columns, classes first."""
        return (*self.classes, *self.conditions)

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Return `n` trips as rows of `columns`."""
        shares = np.array(list(self.classes.values()), dtype=np.float64)
        trips = np.zeros((n, len(self.columns)))
        trips[np.arange(n), rng.choice(len(shares), size=n, p=shares / shares.sum())] = 1.0
        for place, chance in enumerate(self.conditions.values(), start=len(shares)):
            trips[:, place] = rng.random(n) < chance
        return trips

    def sampler(self, features: RoadFeatures) -> "TripSampler":
        """Return the sampler of contexts, for an environment with stochastic contexts."""
        return TripSampler(self, features)

    def known(self, features: RoadFeatures, seed: int) -> DrawnContexts:
        """Return the same distribution drawn beforehand, as a function of (first, last) round for known contexts."""
        return DrawnContexts(TripSampler(self, features), seed)


class TripSampler:
    """Contexts of independent trips: features of `n` of them drawn at a time."""

    def __init__(self, travellers: Travellers, features: RoadFeatures) -> None:
        missing = [name for name in features.trip_columns if name not in travellers.columns]
        if missing:
            raise InputError(
                f"the features look at {missing[0]!r}, which is no class or condition; there are "
                f"{', '.join(travellers.columns)}"
            )
        self.travellers, self.features = travellers, features
        self._places = [travellers.columns.index(name) for name in features.trip_columns]

    def __call__(self, rng: np.random.Generator, n: int) -> Floats:
        """Return the features of `n` trips."""
        return self.features.block(self.travellers.draw(rng, n)[:, self._places])


def _edge_column(network: RoadNetwork, name: str) -> Floats:
    seconds = network.free_flow_s
    if name == "time":
        return seconds
    if name == "length":
        return network.length_m
    if name == "slowness":
        return np.maximum(0.0, seconds - network.length_m * 3.6 / 100.0)
    classes = {"motorway": _MOTORWAYS, "main_road": _MAIN_ROADS, "side_street": _SIDE_STREETS}[name]
    of_class = np.array([highway.removesuffix("_link") in classes for highway in network.highways], dtype=bool)
    return np.where(of_class, seconds, 0.0)
