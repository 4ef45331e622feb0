"""The kinds of scenarios: plain arms, arms with features, roads in rounds, and traffic in continuous time."""

import warnings
from functools import partial
from itertools import product
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from pydantic import Field, field_validator, model_validator

from routesim.errors import FewerPathsWarning, InputError
from routesim.experiment import EnvironmentMaker
from routesim.learners.base import Traits
from routesim.results.run import Scalar
from routesim.roads.network import RoadNetwork
from routesim.rounds.actions import ActionSet
from routesim.rounds.contextual import ContextualEnvironment
from routesim.rounds.environment import RoundEnvironment
from routesim.rounds.paths import PathMethod
from routesim.scenario.choices import CongestionChoice, Frozen, LearnerChoice, RouterChoice
from routesim.scenario.demands import DemandChoice
from routesim.scenario.sources import Place, RoadSource
from routesim.traffic.simulator import TrafficSimulator
from routesim.travellers.contexts import DrawnContexts, UniformContexts, unit_vectors
from routesim.travellers.features import RoadFeatures, Travellers
from routesim.travellers.trip_costs import TripCosts

Setting: TypeAlias = tuple[dict[str, Scalar], EnvironmentMaker | RoundEnvironment]
"""What sets one experiment of a scenario apart from the others, and its environment or the maker of it."""

MOST_POINTS = 10_000
MOST_CELLS = 1 << 24  # arms or edges x counts
WINDOW = Field(ge=0, le=100_000, description="how many rounds an edge remembers")
NOISE_VARIANCE = Field(ge=0, le=1e6, description="the variance of the Gaussian noise of a reward")

LONGEST_TITLE = 200


class Bandit(Frozen):
    """Plain arms; unless given, their base rewards are drawn uniformly from (0, 1), anew for each replication."""

    arms: int = Field(ge=1, le=10_000, description="the number of arms")
    base: tuple[float, ...] | None = Field(None, description="base rewards in [0, 1], one an arm; drawn unless given")
    congestion: CongestionChoice = Field(description="how a count lowers a reward")
    noise_variance: float = NOISE_VARIANCE
    windows: tuple[Annotated[int, WINDOW], ...] = Field(
        min_length=1, max_length=100, description="windows in rounds, each an experiment of its own"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.base is not None and (len(self.base) != self.arms or not all(0 <= one <= 1 for one in self.base)):
            raise InputError(f"base needs {self.arms} rewards in [0, 1], one an arm, got {list(self.base)}")
        _check_cells(self.arms, max(self.windows))
        _check_apart("windows", self.windows)
        for window in self.windows:
            self.draw(window, np.random.default_rng(0))
        return self

    def settings(self) -> list[Setting]:
        """Return each setting with the maker of its random environments."""
        return [({"window": window}, partial(self.draw, window)) for window in self.windows]

    def draw(self, window: int, rng: np.random.Generator) -> RoundEnvironment:
        """Return the arms of one replication."""
        base = rng.uniform(size=self.arms) if self.base is None else np.array(self.base)
        noise_std = float(np.sqrt(self.noise_variance))
        arms, curve = ActionSet.arms(self.arms), self.congestion.make()
        return RoundEnvironment.from_congestion(arms, base, curve, window, noise_std)


class ContextualSetting(Frozen):
    """How many arms, and how long a round is remembered."""

    arms: int = Field(ge=1, le=10_000, description="the number of arms")
    window: int = WINDOW


class ContextualBandit(Frozen):
    """Arms with features, uniform and normalised, drawn anew for each replication as is theta."""

    settings_of: tuple[ContextualSetting, ...] = Field(
        alias="settings",
        min_length=1,
        max_length=100,
        description="pairs of arms and window, each an experiment of its own",
    )
    features: int = Field(ge=1, le=1000, description="the length of a feature vector")
    contexts: tuple[Literal["known", "stochastic"], ...] = Field(
        min_length=1, description="known beforehand, stochastic, or both, each an experiment of its own"
    )
    congestion: CongestionChoice = Field(description="how a count lowers a reward")
    noise_variance: float = NOISE_VARIANCE

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for one in self.settings_of:
            _check_cells(one.arms, one.window)
            self.draw(one, self.contexts[0] == "known", np.random.default_rng(0))
        _check_apart("settings", [(one.arms, one.window) for one in self.settings_of])
        _check_apart("contexts", self.contexts)
        return self

    def settings(self) -> list[Setting]:
        """Return each setting with the maker of its random environments."""
        return [
            (
                {"arms": one.arms, "window": one.window, "contexts": contexts},
                partial(self.draw, one, contexts == "known"),
            )
            for one in self.settings_of
            for contexts in self.contexts
        ]

    def draw(self, setting: ContextualSetting, known: bool, rng: np.random.Generator) -> ContextualEnvironment:
        """Return the arms of one replication."""
        theta = unit_vectors(rng, (self.features,))
        sampler = UniformContexts(setting.arms, self.features)
        contexts = DrawnContexts(sampler, int(rng.integers(1 << 32))) if known else sampler
        noise_std = float(np.sqrt(self.noise_variance))
        arms, curve = ActionSet.arms(setting.arms), self.congestion.make()
        return ContextualEnvironment(arms, theta, contexts, curve, setting.window, noise_std, known=known)


class TravellersChoice(Frozen):
    """Who travels, and what bothers them: cost terms as in `routesim.travellers.features`, in seconds a unit."""

    classes: dict[str, float] = Field(min_length=1, description="classes of travellers with their shares")
    conditions: dict[str, float] = Field({}, description="conditions of a trip with their chances")
    costs: dict[str, float] = Field(min_length=1, description="what one unit of each term costs, in seconds")
    contexts: Literal["known", "stochastic"] = Field("stochastic", description="is every trip known beforehand?")

    @model_validator(mode="after")
    def _can_be_made(self) -> Self:
        self.people()
        return self

    def people(self) -> Travellers:
        """Return who travels."""
        return Travellers(self.classes, self.conditions)


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
        _check_cells(actions.n_edges, self.window)
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


class TrafficRoads(RoadSource):
    """Vehicles on some roads in continuous time."""

    window_s: float = Field(300.0, gt=0, le=1e6, description="how many seconds a road remembers those who entered it")
    congestion: CongestionChoice | None = Field(
        None, description="what a count multiplies a travel time by; BPR with each road's own capacity unless given"
    )
    noise: float = Field(0.0, ge=0, le=10, description="standard deviation of the logarithm of a travel time")
    overtaking: bool = Field(True, description="false: vehicles leave a road in the order they entered it")
    reroute_share: float = Field(0.0, ge=0, le=1, description="share of the vehicles that look again on their way")
    reroute_s: float = Field(60.0, gt=0, le=1e6, description="seconds after which they look again")
    demand: DemandChoice = Field(
        default_factory=DemandChoice.model_construct, description="who wants to go where, and when"
    )
    travellers: TravellersChoice | None = Field(None, description="who travels, where trips differ")
    measure_from_s: float = Field(0.0, ge=0, description="trips that depart before this are not measured")
    measure_to_s: float | None = Field(None, gt=0, description="nor those that depart later than this")

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.measure_to_s is not None and self.measure_to_s <= self.measure_from_s:
            raise InputError(
                f"measure_to_s must be later than measure_from_s, got {self.measure_to_s} and {self.measure_from_s}"
            )
        return self

    def simulator(self, vehicles: int | None, *, bin_s: float | None = None) -> TrafficSimulator:
        """Return the simulator, with so many vehicles expected in all if given."""
        network = self.network()
        costs = None
        if self.travellers is not None:
            features = RoadFeatures(network, np.arange(network.n_edges), list(self.travellers.costs))
            costs = TripCosts(self.travellers.people(), features, features.theta(self.travellers.costs))
        return TrafficSimulator(
            network,
            self.demand.make(network, self.name, vehicles),
            self.window_s,
            None if self.congestion is None else self.congestion.make(),
            noise=self.noise,
            overtaking=self.overtaking,
            reroute_share=self.reroute_share,
            reroute_s=self.reroute_s,
            bin_s=bin_s,
            trip_costs=costs,
        )


class Scenario(Frozen):
    """What all kinds of scenarios have in common."""

    title: str = Field(min_length=1, max_length=LONGEST_TITLE, description="the story in one line")
    replications: int = Field(ge=1, le=100_000, description="independent runs of each learner")
    seed: int = Field(ge=0, le=2**63 - 1, description="where all chance comes from")
    sweep: dict[str, tuple[Any, ...]] = Field(
        {}, description="fields by their dotted names, each with the values it takes; several make a grid"
    )

    learners: Any  # given by each kind, as are the two below
    section: ClassVar[str]
    fix: ClassVar[str] = 'use kind = "contextual"'

    @field_validator("title")
    @classmethod
    def _one_line(cls, title: str) -> str:
        if not title.isprintable() or not title.strip():
            raise InputError(f"a title is one line of text, got {title!r}")
        return title

    @field_validator("sweep", mode="before")
    @classmethod
    def _flat(cls, sweep: Any) -> Any:
        return _flattened(sweep) if isinstance(sweep, dict) else sweep

    @field_validator("sweep")
    @classmethod
    def _grid_is_small(cls, sweep: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
        points = 1
        for name, values in sweep.items():
            if not values:
                raise InputError(f"{name} has no values to take")
            if len({repr(value) for value in values}) < len(values):
                raise InputError(f"{name} takes a value twice: {list(values)}")
            if name.split(".")[0] in ("sweep", "kind", "title"):
                raise InputError(f"{name} cannot be swept")
            points *= len(values)
        if points > MOST_POINTS:
            raise InputError(f"the grid has {points} points, at most {MOST_POINTS} are run; leave values out")
        return sweep

    @model_validator(mode="after")
    def _learners_fit(self) -> Self:
        labels = [choice.label for choice in self.learners]
        if len(set(labels)) < len(labels):
            twice = next(label for label in labels if labels.count(label) > 1)
            raise InputError(f"learners: {twice} is listed twice; give it other parameters or leave it out")
        for choice in self.learners:
            if choice.traits.needs_contexts and not self.has_contexts:
                raise InputError(f"learners: {choice.name} learns from contexts, and there are none here; {self.fix}")
            self._check_learner(choice)
        return self

    @property
    def has_contexts(self) -> bool:
        """Whether rounds, or trips, differ by features."""
        return False

    def _check_learner(self, choice: Any) -> None:
        """Refuse a learner that this kind of scenario has no use for."""

    def grid(self) -> list[dict[str, Any]]:
        """Return the values of the swept fields at each point of the grid; one empty dict without a sweep."""
        return [dict(zip(self.sweep, values, strict=True)) for values in product(*self.sweep.values())]


LEARNERS = Field(min_length=1, max_length=100, description="learners to compare")
ROUNDS = Field(ge=1, le=10**9, description="rounds of each run")


class BanditScenario(Scenario):
    """A named experiment on plain arms."""

    kind: Literal["bandit"]
    rounds: int = ROUNDS
    learners: tuple[LearnerChoice, ...] = LEARNERS
    bandit: Bandit = Field(description="the arms")
    section: ClassVar[str] = "bandit"


class ContextualScenario(Scenario):
    """A named experiment on arms with contexts."""

    kind: Literal["contextual"]
    rounds: int = ROUNDS
    learners: tuple[LearnerChoice, ...] = LEARNERS
    contextual: ContextualBandit = Field(description="the arms and their features")
    section: ClassVar[str] = "contextual"

    @property
    def has_contexts(self) -> bool:
        """Whether arms have features: they do."""
        return True


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


class TrafficScenario(Scenario):
    """A named experiment in continuous time: vehicles that depart, drive and congest."""

    kind: Literal["traffic"]
    rounds: int | None = Field(
        None, ge=1, le=10**7, description="vehicles expected in each run; unless given, as many as the demand says"
    )
    learners: tuple[RouterChoice, ...] = LEARNERS
    traffic: TrafficRoads = Field(description="the roads and the demand")
    section: ClassVar[str] = "traffic"
    fix: ClassVar[str] = "add [traffic.travellers]"

    @property
    def has_contexts(self) -> bool:
        """Whether trips differ."""
        return self.traffic.travellers is not None


AnyScenario: TypeAlias = BanditScenario | ContextualScenario | CityScenario | TrafficScenario
KINDS = (BanditScenario, ContextualScenario, CityScenario, TrafficScenario)


def _check_cells(edges: int, window: int) -> None:
    if edges * (window + 1) > MOST_CELLS:
        raise InputError(
            f"{edges} edges with a window of {window} are more than {MOST_CELLS:,} pairs of edge and count; "
            "use a shorter window or fewer"
        )


def _check_apart(name: str, values: Any) -> None:
    if len(set(values)) < len(values):
        raise InputError(f"{name} lists an experiment twice: {list(values)}")


def _flattened(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat |= _flattened(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
