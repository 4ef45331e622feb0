"""Scenarios on roads in rounds: routes between two places, a round being a trip."""

import warnings
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from routesim.errors import FewerPathsWarning, InputError
from routesim.learners.base import Traits
from routesim.roads.network import RoadNetwork
from routesim.rounds.actions import ActionSet
from routesim.rounds.contextual import ContextualEnvironment
from routesim.rounds.environment import RoundEnvironment
from routesim.rounds.paths import PathMethod
from routesim.scenario.base import LEARNERS, ROUNDS, WINDOW, Scenario, check_cells
from routesim.scenario.choices import CongestionChoice, LearnerChoice, TravellersChoice
from routesim.scenario.sources import Place, RoadSource
from routesim.travellers.features import RoadFeatures


class City(RoadSource):
    """Routes between two places of some roads; a round is a trip, its reward minus its seconds."""

    origin: Place = Field(description="a node label, or longitude and latitude")
    destination: Place = Field(description="a node label, or longitude and latitude")
    routes: int = Field(8, ge=1, le=1000, description="how many routes to choose from")
    method: PathMethod | Literal["graph"] = Field(
        "penalty", description="how the routes are found; graph allows every path of the whole graph"
    )
    congestion: CongestionChoice = Field(description="what a count multiplies a road's travel time by")
    window: int = WINDOW
    noise: float = Field(
        ge=0, le=100, description="standard deviation of a road's travel time, as a share of its free flow"
    )
    travellers: TravellersChoice | None = Field(None, description="who travels, where trips differ")

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.origin == self.destination:
            raise InputError(f"origin and destination are the same, {self.origin!r}; a trip needs two places")
        if self.method == "graph" and self.travellers is not None:
            raise InputError('travellers need a list of routes; use method="penalty"')
        return self

    def actions(self, network: RoadNetwork) -> ActionSet:
        """Return the routes to choose from."""
        if self.method == "graph":
            return ActionSet.on_graph(network, self.origin, self.destination)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewerPathsWarning)  # the report says how many routes there are
            return ActionSet.between(network, self.origin, self.destination, self.routes, self.method)

    def environment(self, network: RoadNetwork, actions: ActionSet) -> RoundEnvironment:
        """Return the rounds on these routes."""
        check_cells(actions.n_edges, self.window)
        seconds = network.free_flow_s[actions.edges]
        curve = self.congestion.make()
        if self.travellers is not None:
            return self._contextual(network, actions, self.travellers)
        return RoundEnvironment.from_congestion(actions, -seconds, curve, self.window, self.noise * seconds)

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
