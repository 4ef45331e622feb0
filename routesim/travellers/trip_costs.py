"""TripCosts: what travellers pay for a road beyond its seconds, by who they are and what they meet on the way.

A trip is of one kind: a class and a set of conditions of `Travellers`. To kind x the edge e costs
-<theta, phi(x, e)> on an empty road, and as much more on a full one as the edge takes longer: the cost of driving it
is -<theta, phi(x, e)> x travel time / free-flow time. So a second on an edge has a rate for each kind of traveller.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from routesim.arrays import Floats
from routesim.checks import numbers
from routesim.errors import InputError
from routesim.travellers.features import RoadFeatures, Travellers, TripSampler

MOST_CELLS = 1 << 27  # kinds x edges x features


@dataclass(frozen=True, eq=False)
class TripCosts:
    """Travellers, the features of all edges to them, and the true theta, which routers have to find out.

    `features` are those of all edges of the network in their order. Theta has the sign of rewards, as
    `RoadFeatures.theta` gives it: what costs the traveller something is negative.
    """

    travellers: Travellers
    features: RoadFeatures
    theta: ArrayLike

    def __post_init__(self) -> None:
        TripSampler(self.travellers, self.features)  # refuses features of columns that no trip has
        if numbers("theta", self.theta).shape != (self.features.dimension,):
            raise InputError(
                f"theta needs one number for each of the terms {', '.join(self.features.terms)}, "
                f"got shape {np.shape(self.theta)}; see RoadFeatures.theta"
            )
        n_kinds = len(self.travellers.classes) * 2 ** len(self.travellers.conditions)
        if n_kinds * self.features.n_edges * self.features.dimension > MOST_CELLS:
            raise InputError(
                f"{n_kinds} kinds of trips on {self.features.n_edges} edges are too many; use fewer conditions"
            )
        costs = self.costs
        if not (costs > 0).all():
            kind, edge = np.argwhere(~(costs > 0))[0]
            met = [name for name, on in zip(self.travellers.columns, self.kinds[kind], strict=True) if on]
            raise InputError(
                f"driving must cost something: edge {edge} costs {costs[kind, edge]:g} to a trip of {', '.join(met)}; "
                "give theta that makes every cost positive"
            )

    @cached_property
    def kinds(self) -> Floats:
        """Every kind of trip, as rows of `travellers.columns`."""
        classes = np.eye(len(self.travellers.classes))
        conditions = list(product((0.0, 1.0), repeat=len(self.travellers.conditions)))
        return np.array([[*one, *met] for one in classes for met in conditions])

    @cached_property
    def shares(self) -> Floats:
        """The chance of every kind."""
        weights = np.array(list(self.travellers.classes.values()), dtype=np.float64)
        chances = np.array([1.0])
        for chance in self.travellers.conditions.values():
            chances = np.outer(chances, (1 - chance, chance)).ravel()
        return np.outer(weights / weights.sum(), chances).ravel()

    @cached_property
    def block(self) -> Floats:
        """The features of every kind and edge: shape (kinds, edges, terms)."""
        places = [self.travellers.columns.index(name) for name in self.features.trip_columns]
        return self.features.block(self.kinds[:, places])

    @cached_property
    def costs(self) -> Floats:
        """What every edge costs every kind while it is empty."""
        return np.asarray(-(self.block @ np.asarray(self.theta, dtype=np.float64)), dtype=np.float64)

    def draw(self, rng: np.random.Generator, n: int) -> NDArray[np.int32]:
        """Draw the kinds of `n` trips, as rows of `kinds`."""
        return rng.choice(len(self.shares), size=n, p=self.shares).astype(np.int32)
