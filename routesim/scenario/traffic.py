"""Scenarios in continuous time: vehicles that depart, drive and congest some roads."""

from collections.abc import Sequence
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, ValidationInfo, field_validator, model_validator

from routesim.checks import whole
from routesim.errors import InputError
from routesim.results.counts import read_counts
from routesim.results.link_tables import MOST_SELECTED
from routesim.roads.network import RoadNetwork
from routesim.scenario.base import LEARNERS, Scenario
from routesim.scenario.choices import CongestionChoice, PhysicsChoice, RouterChoice, TravellersChoice
from routesim.scenario.demands import DemandChoice
from routesim.scenario.incidents import IncidentChoice
from routesim.scenario.sources import Label, RoadSource, beside_scenario
from routesim.traffic.simulator import TrafficSimulator
from routesim.traffic.tables import edge_between
from routesim.travellers.features import RoadFeatures
from routesim.travellers.trip_costs import TripCosts


class TrafficRoads(RoadSource):
    """Vehicles on some roads in continuous time."""

    window_s: float = Field(
        300.0, ge=1e-3, le=1e6, description="how many seconds a road remembers those who entered it"
    )
    congestion: CongestionChoice | None = Field(
        None, description="what a count multiplies a travel time by; BPR with each road's own capacity unless given"
    )
    noise: float = Field(0.0, ge=0, le=3, description="standard deviation of the logarithm of a travel time")
    physics: PhysicsChoice = Field(
        default_factory=lambda: PhysicsChoice(name="window"),
        description="what traffic does to travel times: the window count, or roads with queues",
    )
    overtaking: bool | None = Field(None, description="false: vehicles leave a road in the order they entered it")
    reroute_share: float = Field(0.0, ge=0, le=1, description="share of the vehicles that look again on their way")
    reroute_s: float = Field(60.0, ge=1e-3, le=1e6, description="seconds after which they look again")
    demand: DemandChoice = Field(
        default_factory=DemandChoice.model_construct, description="who wants to go where, and when"
    )
    travellers: TravellersChoice | None = Field(None, description="who travels, where trips differ")
    counts: str | None = Field(
        None, description="a .csv or .parquet table of counts as `rs.compare_counts` reads it, to set volumes beside"
    )
    select_links: tuple[int | tuple[Label, Label], ...] = Field(
        (), max_length=MOST_SELECTED, description="edges, or pairs of nodes, whose users are written to select_link.csv"
    )
    measure_from_s: float = Field(0.0, ge=0, le=1e9, description="trips that depart before this are not measured")
    measure_to_s: float | None = Field(None, gt=0, le=1e9, description="nor those that depart later than this")

    @field_validator("counts")
    @classmethod
    def _counts_are_there(cls, file: str | None, info: ValidationInfo) -> str | None:
        if file is None:
            return None
        path = beside_scenario(file, info)
        if not path.is_file():
            raise InputError(f"there is no file {str(path)!r}")
        return str(path.resolve())

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.measure_to_s is not None and self.measure_to_s <= self.measure_from_s:
            raise InputError(
                f"measure_to_s must be later than measure_from_s, got {self.measure_to_s} and {self.measure_from_s}"
            )
        return self

    def selected(self, network: RoadNetwork) -> list[int]:
        """Return the edges whose users are to be told."""
        edges = [one if isinstance(one, int) else edge_between(network, *one) for one in self.select_links]
        for edge in edges:
            whole("an edge of select_links", edge, least=0, most=network.n_edges - 1)
        return edges

    def simulator(self, vehicles: int | None, incidents: Sequence[IncidentChoice] = ()) -> TrafficSimulator:
        """Return the simulator, with so many vehicles expected in all if given."""
        network = self.network()
        self.selected(network)  # mistakes show before anything runs
        if self.counts is not None:
            read_counts(self.counts, network)
        costs = None
        if self.travellers is not None:
            features = RoadFeatures(network, np.arange(network.n_edges), list(self.travellers.costs))
            costs = TripCosts(self.travellers.people(), features, features.theta(self.travellers.costs))
        return TrafficSimulator(
            network,
            self.demand.make(network, self.name, vehicles),
            self.window_s,
            None if self.congestion is None else self.congestion.make(),
            physics=self.physics.make(),
            noise=self.noise,
            overtaking=self.overtaking,
            reroute_share=self.reroute_share,
            reroute_s=self.reroute_s,
            trip_costs=costs,
            incidents=[one.make(network) for one in incidents],
        )


class TrafficScenario(Scenario):
    """A named experiment in continuous time: vehicles that depart, drive and congest."""

    kind: Literal["traffic"]
    rounds: int | None = Field(
        None, ge=1, le=10**7, description="vehicles expected in each run; unless given, as many as the demand says"
    )
    learners: tuple[RouterChoice, ...] = LEARNERS
    traffic: TrafficRoads = Field(description="the roads and the demand")
    incidents: tuple[IncidentChoice, ...] = Field(
        (), max_length=1000, description="roads that lose capacity or are closed for some time"
    )
    section: ClassVar[str] = "traffic"
    fix: ClassVar[str] = "add [traffic.travellers]"

    @property
    def has_contexts(self) -> bool:
        """Whether trips differ."""
        return self.traffic.travellers is not None
