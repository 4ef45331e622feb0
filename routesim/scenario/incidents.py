"""Incidents in a scenario: which roads, by name, ends or index, lose how much of their capacity, and when."""

from typing import Self

import numpy as np
from pydantic import Field, model_validator

from routesim.errors import InputError
from routesim.registry import nearest
from routesim.roads.incidents import LEAST_CAPACITY, Incident
from routesim.roads.network import RoadNetwork
from routesim.scenario.choices import Frozen
from routesim.scenario.sources import Label


class IncidentChoice(Frozen):
    """Roads that keep a share of their capacity for some time: exactly one of `road`, `between` and `edges`."""

    road: str | None = Field(None, min_length=1, max_length=200, description="the name of the road, in both directions")
    between: tuple[Label, Label] | None = Field(None, description="the road from one node to another, by their labels")
    edges: tuple[int, ...] | None = Field(None, min_length=1, description="indices of edges")
    start_s: float = Field(ge=0, le=1e9, description="when it begins")
    end_s: float | None = Field(None, gt=0, le=1e9, description="when it is over; never unless given")
    capacity: float = Field(0.0, ge=0, le=1, description="the share of the capacity that is left; 0 closes the road")

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        given = [name for name in ("road", "between", "edges") if getattr(self, name) is not None]
        if len(given) != 1:
            raise InputError(f"an incident is on one of road, between and edges; got {' and '.join(given) or 'none'}")
        if self.end_s is not None and self.end_s <= self.start_s:
            raise InputError(f"end_s must be later than start_s, got {self.end_s} and {self.start_s}")
        if 0 < self.capacity < LEAST_CAPACITY:
            raise InputError(f"capacity is 0 or at least {LEAST_CAPACITY}, got {self.capacity}")
        return self

    def make(self, network: RoadNetwork) -> Incident:
        """Return the incident on these roads."""
        end_s = np.inf if self.end_s is None else self.end_s
        incident = Incident(self._edges(network), self.start_s, end_s, self.capacity)
        incident.check(network.n_edges)
        return incident

    def _edges(self, network: RoadNetwork) -> list[int]:
        if self.edges is not None:
            return list(self.edges)
        if self.between is None:
            found = [edge for edge, name in enumerate(network.names) if name == self.road]
            if not found:
                names = sorted(set(network.names) - {""})
                raise InputError(f"incidents: no road is called {self.road!r}{nearest(str(self.road), names)}")
            return found
        tail, head = (network.node_index(label) for label in self.between)
        joins = np.flatnonzero((network.tails == tail) & (network.heads == head))
        if not len(joins):
            raise InputError(f"incidents: no road leads from {self.between[0]!r} to {self.between[1]!r}")
        return [int(edge) for edge in joins]
