"""Scenarios on roads in rounds: routes between two places, a round being a trip."""

import warnings
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from routesim.arrays import Floats
from routesim.checks import whole
from routesim.errors import FewerPathsWarning, InputError
from routesim.learners.base import Traits
from routesim.planning import check_plan
from routesim.roads.network import RoadNetwork
from routesim.rounds.actions import ActionSet
from routesim.rounds.contextual import ContextualEnvironment
from routesim.rounds.environment import RoundEnvironment
from routesim.rounds.paths import PathMethod
from routesim.scenario.base import LEARNERS, ROUNDS, WINDOW, Scenario, check_cells
from routesim.scenario.choices import CongestionChoice, Frozen, LearnerChoice, TravellersChoice
from routesim.scenario.incidents import CostChoice
from routesim.scenario.sources import Place, RoadSource
from routesim.travellers.features import RoadFeatures


class CityPair(Frozen):
    """Two places between which some of the trips go."""

    origin: Place = Field(description="a node label, or longitude and latitude")
    destination: Place = Field(description="a node label, or longitude and latitude")
    rate: float = Field(gt=0, le=1e9, description="how often a round serves it, relative to the other pairs")


class City(RoadSource):
    """Routes between two places of some roads, or several pairs; a round is a trip, its reward minus its seconds."""

    origin: Place | None = Field(None, description="a node label, or longitude and latitude; needed unless pairs are")
    destination: Place | None = Field(None, description="the same, where the trips go")
    pairs: tuple[CityPair, ...] | None = Field(
        None, min_length=1, max_length=100, description="several pairs in place of origin and destination, with rates"
    )
    routes: int = Field(8, ge=1, le=1000, description="how many routes of each pair to choose from")
    method: PathMethod | Literal["graph"] = Field(
        "penalty", description="how the routes are found; graph allows every path of the whole graph"
    )
    congestion: CongestionChoice = Field(description="what a count multiplies a road's travel time by")
    window: int = WINDOW
    noise: float = Field(
        ge=0, le=100, description="standard deviation of a road's travel time, as a share of its free flow"
    )
    costs: tuple[CostChoice, ...] = Field(
        (), max_length=1000, description="what roads cost beside their travel time, in seconds"
    )
    travellers: TravellersChoice | None = Field(None, description="who travels, where trips differ")

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        one = self.origin is not None and self.destination is not None
        if one == (self.pairs is not None) or (self.origin is None) != (self.destination is None):
            raise InputError("a trip needs origin and destination, or pairs that have them each, and not both")
        for origin, destination in self.ends:
            if origin == destination:
                raise InputError(f"origin and destination are the same, {origin!r}; a trip needs two places")
        if self.method == "graph" and self.travellers is not None:
            raise InputError('travellers need a list of routes; use method="penalty"')
        if self.costs and self.travellers is not None:
            raise InputError("travellers have costs of their own; leave the costs of roads out")
        if len(self.ends) > 1 and self.travellers is not None:
            raise InputError("travellers go between one origin and one destination; leave the other pairs out")
        return self

    @property
    def ends(self) -> list[tuple[Place, Place]]:
        """The origin and the destination of each pair."""
        if self.pairs is not None:
            return [(pair.origin, pair.destination) for pair in self.pairs]
        return [] if self.origin is None or self.destination is None else [(self.origin, self.destination)]

    def actions(self, network: RoadNetwork) -> ActionSet:
        """Return the routes to choose from."""
        sets = [self._between(network, *ends) for ends in self.ends]
        rates = [1.0] if self.pairs is None else [pair.rate for pair in self.pairs]
        return ActionSet.several(sets, rates)

    def _between(self, network: RoadNetwork, origin: Place, destination: Place) -> ActionSet:
        if self.method == "graph":
            return ActionSet.on_graph(network, origin, destination)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewerPathsWarning)  # the report says how many routes there are
            costs = self.edge_cost_s(network)
            return ActionSet.between(network, origin, destination, self.routes, self.method, edge_cost_s=costs)

    def edge_cost_s(self, network: RoadNetwork) -> Floats:
        """Return what each edge costs beside its travel time; costs of one edge are added up."""
        costs = np.zeros(network.n_edges)
        for one in self.costs:
            edges = one.numbers(network)
            for edge in edges:
                whole("an edge of costs", edge, least=0, most=network.n_edges - 1)
            costs[edges] += one.cost_s
        return costs

    def environment(self, network: RoadNetwork, actions: ActionSet) -> RoundEnvironment:
        """Return the rounds on these routes."""
        check_cells(actions.n_edges, self.window)
        seconds, costs = network.free_flow_s[actions.edges], self.edge_cost_s(network)[actions.edges]
        curve = self.congestion.make()
        if self.travellers is None:
            check_plan(actions, self.window)
        if self.travellers is not None:
            return self._contextual(network, actions, self.travellers)
        return RoundEnvironment.from_congestion(
            actions, -seconds, curve, self.window, self.noise * seconds, edge_cost_s=costs
        )

    def _contextual(self, network: RoadNetwork, actions: ActionSet, who: TravellersChoice) -> ContextualEnvironment:
        seconds = network.free_flow_s[actions.edges]
        features = RoadFeatures(network, actions.edges, list(who.costs))
        people, known = who.people(), who.contexts == "known"
        return ContextualEnvironment(
            actions,
            features.theta(who.costs),
            people.known(features, seed=0) if known else people.sampler(features),
            self.congestion.make(),
            self.window,
            self.noise * seconds,
            known=known,
            free_flow_rewards=-seconds,
        )


class CityScenario(Scenario):
    """A named experiment on roads, in rounds: a round is a trip."""

    kind: Literal["city"]
    rounds: int = ROUNDS
    learners: tuple[LearnerChoice, ...] = LEARNERS
    city: City = Field(description="the roads and the trip")
    section: ClassVar[str] = "city"
    fix: ClassVar[str] = "add [city.travellers]"

    @property
    def has_contexts(self) -> bool:
        """Whether trips differ."""
        return self.city.travellers is not None

    def _check_learner(self, choice: LearnerChoice) -> None:
        if self.city.method == "graph" and not choice.traits.plays_whole_graph:
            able = [name for name, learner in choice.known.items() if Traits.of(learner).plays_whole_graph]
            raise InputError(
                f'learners: {choice.name} needs a list of routes, and method = "graph" has none; '
                f"there can play {', '.join(able)}"
            )
        if len(self.city.ends) > 1 and not choice.traits.plays_several_pairs:
            able = [name for name, learner in choice.known.items() if Traits.of(learner).plays_several_pairs]
            raise InputError(
                f"learners: {choice.name} plays one pair, and there are {len(self.city.ends)}; there can play "
                f"{', '.join(able)}"
            )
