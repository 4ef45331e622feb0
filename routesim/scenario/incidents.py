"""Roads named in a scenario, by name, ends or index: those with incidents, and those that cost something."""

from typing import ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from routesim.errors import InputError
from routesim.registry import nearest
from routesim.roads.incidents import LEAST_CAPACITY, Incident
from routesim.roads.network import RoadNetwork
from routesim.scenario.choices import Frozen
from routesim.scenario.sources import Label


class NamedRoads(Frozen):
    """Roads by exactly one of `road`, `between` and `edges`."""

    road: str | None = Field(None, min_length=1, max_length=200, description="the name of the road, in both directions")
    between: tuple[Label, Label] | None = Field(None, description="the road from one node to another, by their labels")
    edges: tuple[int, ...] | None = Field(None, min_length=1, description="indices of edges")

    what: ClassVar[tuple[str, str]]  # one of them, and many

    @model_validator(mode="after")
    def _one_way_to_name_them(self) -> Self:
        given = [name for name in ("road", "between", "edges") if getattr(self, name) is not None]
        if len(given) != 1:
            raise InputError(
                f"{self.what[0]} is on one of road, between and edges; got {' and '.join(given) or 'none'}"
            )
        return self

    def numbers(self, network: RoadNetwork) -> list[int]:
        """Return the edges that are meant."""
        if self.edges is not None:
            return list(self.edges)
        if self.between is None:
            found = [edge for edge, name in enumerate(network.names) if name == self.road]
            if not found:
                names = sorted(set(network.names) - {""})
                raise InputError(f"{self.what[1]}: no road is called {self.road!r}{nearest(str(self.road), names)}")
            return found
        tail, head = (network.node_index(label) for label in self.between)
        joins = np.flatnonzero((network.tails == tail) & (network.heads == head))
        if not len(joins):
            raise InputError(f"{self.what[1]}: no road leads from {self.between[0]!r} to {self.between[1]!r}")
        return [int(edge) for edge in joins]


class CostChoice(NamedRoads):
    """What roads cost beside their travel time, in seconds: exactly one of `road`, `between` and `edges`."""

    cost_s: float = Field(ge=0, le=1e7, description="for each use: a toll or another fixed cost, in seconds")

    what: ClassVar[tuple[str, str]] = ("a cost", "costs")


class IncidentChoice(NamedRoads):
    """Roads that keep a share of their capacity for some time: exactly one of `road`, `between` and `edges`."""

    start_s: float = Field(ge=0, le=1e9, description="when it begins")
    end_s: float | None = Field(None, gt=0, le=1e9, description="when it is over; never unless given")
    capacity: float = Field(0.0, ge=0, le=1, description="the share of the capacity that is left; 0 closes the road")

    what: ClassVar[tuple[str, str]] = ("an incident", "incidents")

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.end_s is not None and self.end_s <= self.start_s:
            raise InputError(f"end_s must be later than start_s, got {self.end_s} and {self.start_s}")
        if 0 < self.capacity < LEAST_CAPACITY:
            raise InputError(f"capacity is 0 or at least {LEAST_CAPACITY}, got {self.capacity}")
        return self

    def make(self, network: RoadNetwork) -> Incident:
        """Return the incident on these roads."""
        end_s = np.inf if self.end_s is None else self.end_s
        incident = Incident(self.numbers(network), self.start_s, end_s, self.capacity)
        incident.check(network.n_edges)
        return incident
