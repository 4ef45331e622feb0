"""Scenarios: a TOML file, or the name of a bundled one -> typed frozen values -> environments and learners."""

import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from routesim import congestion
from routesim.actions import ActionSet, PathMethod
from routesim.cities import list_cities, load_city
from routesim.contexts import DrawnContexts, UniformContexts, unit_vectors
from routesim.contextual import ContextualEnvironment
from routesim.environment import RoundEnvironment
from routesim.errors import InputError, RoutesimError, ScenarioError
from routesim.experiment import EnvironmentMaker
from routesim.features import RoadFeatures, Travellers
from routesim.learners.base import Learner
from routesim.learners.baselines import (
    UCB1,
    EpsilonGreedy,
    GreedyCongestion,
    Oracle,
    RandomPath,
    ShortestPath,
    ThompsonSampling,
)
from routesim.learners.carcb import CARCB
from routesim.learners.carmab import CARMAB
from routesim.learners.linear import LinearGreedy, LinearThompsonSampling, LinUCB
from routesim.network import RoadNetwork

Setting: TypeAlias = tuple[dict[str, str | int], EnvironmentMaker]
"""What sets one experiment of a scenario apart from the others, and the maker of its environments."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Choice(BaseModel):
    """Something by name, with its parameters beside it; the name alone may stand for it."""

    model_config = ConfigDict(frozen=True, extra="allow")
    makers: ClassVar[dict[str, Any]] = {}

    name: str

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _can_be_made(self) -> "_Choice":
        self.make()
        return self

    def make(self) -> Any:
        """Return the object."""
        if self.name not in self.makers:
            raise InputError(f"there is no {self.name!r}{_nearest(self.name, self.makers)}")
        maker, parameters = self.makers[self.name], self.model_extra or {}
        allowed = [name for name, item in maker.__dataclass_fields__.items() if item.init]
        for name in parameters:
            if name not in allowed:
                raise InputError(f"{self.name} has no parameter {name!r}; it has {', '.join(allowed) or 'none'}")
        try:
            return maker(**parameters)
        except TypeError as problem:
            raise InputError(f"{self.name} cannot be made from {parameters}: {problem}") from None

    @property
    def label(self) -> str:
        """The choice as people read it: its name and what was set."""
        settings = ", ".join(f"{name}={value}" for name, value in (self.model_extra or {}).items())
        return f"{self.name}({settings})" if settings else self.name


class LearnerChoice(_Choice):
    """A learner by name, with its parameters beside it."""

    makers: ClassVar[dict[str, Any]] = {
        maker.__name__: maker
        for maker in (
            CARMAB,
            CARCB,
            LinUCB,
            LinearThompsonSampling,
            LinearGreedy,
            UCB1,
            ThompsonSampling,
            EpsilonGreedy,
            GreedyCongestion,
            ShortestPath,
            RandomPath,
            Oracle,
        )
    }

    def make(self) -> Learner:
        """Return the learner."""
        learner: Learner = super().make()
        return learner

    @property
    def label(self) -> str:
        """The learner as people read it, called informed where it knows the true rewards."""
        informed = " (informed)" if self.makers[self.name].knows == "rewards" else ""
        return super().label + informed


class CongestionChoice(_Choice):
    """A congestion function by name, with its parameters beside it."""

    makers: ClassVar[dict[str, Any]] = {
        "constant": congestion.Constant,
        "inverse": congestion.Inverse,
        "reciprocal": congestion.Reciprocal,
        "linear": congestion.Linear,
        "threshold": congestion.Threshold,
        "bpr": congestion.BPR,
        "table": congestion.Table,
    }

    def make(self) -> congestion.CongestionFunction:
        """Return the congestion function."""
        curve: congestion.CongestionFunction = super().make()
        return curve


class Bandit(_Frozen):
    """Plain arms whose base rewards are drawn uniformly from (0, 1), anew for each replication."""

    arms: int = Field(ge=1, description="the number of arms")
    congestion: CongestionChoice = Field(description="how a count lowers a reward")
    noise_variance: float = Field(ge=0, description="the variance of the Gaussian noise of a reward")
    windows: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        min_length=1, description="windows in rounds, each an experiment of its own"
    )

    def settings(self) -> list[Setting]:
        """Return each setting with the maker of its random environments."""
        return [({"window": window}, partial(_draw_bandit, self, window)) for window in self.windows]


class ContextualSetting(_Frozen):
    """How many arms, and how long a round is remembered."""

    arms: int = Field(ge=1, description="the number of arms")
    window: int = Field(ge=0, description="the window in rounds")


class ContextualBandit(_Frozen):
    """Arms with features, uniform and normalised, drawn anew for each replication as is theta."""

    settings_of: tuple[ContextualSetting, ...] = Field(
        alias="settings", min_length=1, description="pairs of arms and window, each an experiment of its own"
    )
    features: int = Field(ge=1, description="the length of a feature vector")
    contexts: tuple[Literal["known", "stochastic"], ...] = Field(
        min_length=1, description="known beforehand, stochastic, or both, each an experiment of its own"
    )
    congestion: CongestionChoice = Field(description="how a count lowers a reward")
    noise_variance: float = Field(ge=0, description="the variance of the Gaussian noise of a reward")

    def settings(self) -> list[Setting]:
        """Return each setting with the maker of its random environments."""
        return [
            (
                {"arms": one.arms, "window": one.window, "contexts": contexts},
                partial(_draw_contextual, self, one, contexts == "known"),
            )
            for one in self.settings_of
            for contexts in self.contexts
        ]


class TravellersChoice(_Frozen):
    """Who travels, and what bothers them: cost terms as in `routesim.features`, in seconds a unit."""

    classes: dict[str, float] = Field(min_length=1, description="classes of travellers with their shares")
    conditions: dict[str, float] = Field({}, description="conditions of a trip with their chances")
    costs: dict[str, float] = Field(min_length=1, description="what one unit of each term costs, in seconds")
    contexts: Literal["known", "stochastic"] = Field("stochastic", description="is every trip known beforehand?")


class City(_Frozen):
    """Routes between two places of a bundled city; a round is a trip, its reward minus its seconds."""

    name: str = Field(description=f"one of {', '.join(list_cities())}")
    origin: tuple[float, float] | int | str = Field(description="a node label, or longitude and latitude")
    destination: tuple[float, float] | int | str = Field(description="a node label, or longitude and latitude")
    routes: int = Field(8, ge=1, description="how many routes to choose from")
    method: PathMethod = Field("penalty", description="how the routes are found")
    congestion: CongestionChoice = Field(description="what a count multiplies a road's travel time by")
    window: int = Field(ge=0, description="how many trips a road remembers")
    noise: float = Field(ge=0, description="standard deviation of a road's travel time, as a share of its free flow")
    travellers: TravellersChoice | None = Field(None, description="who travels, where trips differ")

    def network(self) -> RoadNetwork:
        """Return the roads."""
        return load_city(self.name)

    def actions(self, network: RoadNetwork) -> ActionSet:
        """Return the routes to choose from."""
        return ActionSet.between(network, self.origin, self.destination, self.routes, self.method)

    def environment(self, network: RoadNetwork, actions: ActionSet) -> RoundEnvironment:
        """Return the rounds on these routes."""
        seconds = network.free_flow_s[actions.edges]
        curve = self.congestion.make()
        if self.travellers is not None:
            return self._contextual(network, actions, self.travellers)
        return RoundEnvironment.from_congestion(actions, -seconds, curve, self.window, self.noise * seconds)

    def _contextual(self, network: RoadNetwork, actions: ActionSet, who: TravellersChoice) -> ContextualEnvironment:
        seconds = network.free_flow_s[actions.edges]
        features = RoadFeatures(network, actions.edges, list(who.costs))
        people = Travellers(who.classes, who.conditions)
        known = who.contexts == "known"
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


class _Scenario(_Frozen):
    title: str = Field(description="the story in one line")
    rounds: int = Field(ge=1, description="rounds of each run")
    replications: int = Field(ge=1, description="independent runs of each learner")
    seed: int = Field(ge=0, description="where all chance comes from")
    learners: tuple[LearnerChoice, ...] = Field(min_length=1, description="learners to compare")

    @model_validator(mode="after")
    def _learners_differ(self) -> Self:
        labels = [choice.label for choice in self.learners]
        if len(set(labels)) < len(labels):
            twice = next(label for label in labels if labels.count(label) > 1)
            raise InputError(f"learners: {twice} is listed twice; give it other parameters or leave it out")
        return self


class BanditScenario(_Scenario):
    """A named experiment on plain arms."""

    kind: Literal["bandit"]
    bandit: Bandit


class ContextualScenario(_Scenario):
    """A named experiment on arms with contexts."""

    kind: Literal["contextual"]
    contextual: ContextualBandit


class CityScenario(_Scenario):
    """A named experiment on the roads of a city, in rounds."""

    kind: Literal["city"]
    city: City


AnyScenario: TypeAlias = BanditScenario | ContextualScenario | CityScenario
Scenario: TypeAlias = Annotated[AnyScenario, Field(discriminator="kind")]
_SCENARIO: TypeAdapter[AnyScenario] = TypeAdapter(Scenario)


def scenario_names() -> list[str]:
    """Return the names of the bundled scenarios."""
    return sorted(path.stem for path in _bundled().glob("*.toml"))


def load_scenario(name_or_file: str | Path, **overrides: int | None) -> AnyScenario:
    """Return a bundled scenario by name, or one from a TOML file; overrides that are not None replace its fields."""
    path = Path(name_or_file)
    if path.suffix != ".toml":
        path = _bundled() / f"{name_or_file}.toml"
        if str(name_or_file) not in scenario_names():
            near = _nearest(str(name_or_file), scenario_names())
            raise ScenarioError(f"there is no scenario {str(name_or_file)!r}{near}; `routesim scenarios` lists them")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        content.update({key: value for key, value in overrides.items() if value is not None})
        return _SCENARIO.validate_python(content)
    except OSError as problem:
        raise ScenarioError(f"cannot read scenario {path}: {problem.strerror or problem}") from problem
    except ValidationError as problem:
        raise ScenarioError(f"{path}: {_first_mistake(problem)}") from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RoutesimError) as problem:
        raise ScenarioError(f"{path}: {problem}") from problem


def _draw_bandit(bandit: Bandit, window: int, rng: np.random.Generator) -> RoundEnvironment:
    base = rng.uniform(size=bandit.arms)
    noise_std = float(np.sqrt(bandit.noise_variance))
    arms, curve = ActionSet.arms(bandit.arms), bandit.congestion.make()
    return RoundEnvironment.from_congestion(arms, base, curve, window, noise_std)


def _draw_contextual(
    bandit: ContextualBandit, setting: ContextualSetting, known: bool, rng: np.random.Generator
) -> ContextualEnvironment:
    theta = unit_vectors(rng, (bandit.features,))
    sampler = UniformContexts(setting.arms, bandit.features)
    contexts = DrawnContexts(sampler, int(rng.integers(1 << 32))) if known else sampler
    noise_std = float(np.sqrt(bandit.noise_variance))
    arms, curve = ActionSet.arms(setting.arms), bandit.congestion.make()
    return ContextualEnvironment(arms, theta, contexts, curve, setting.window, noise_std, known=known)


def _bundled() -> Path:
    """Return the folder of bundled scenarios: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).parent
    return package / "scenarios" if (package / "scenarios").is_dir() else package.parent / "scenarios"


def _nearest(wrong: str, right: Iterable[str]) -> str:
    close = get_close_matches(wrong, list(right), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


_MODELS = (BanditScenario, ContextualScenario, CityScenario, Bandit, ContextualBandit, City, TravellersChoice)


def _first_mistake(problem: ValidationError) -> str:
    mistake = problem.errors()[0]
    where = mistake["loc"][1:] or ("kind",)  # the first part only repeats the kind of scenario
    place = ".".join(str(part) for part in where)
    said = mistake["type"] in ("missing", "value_error", "union_tag_invalid")
    given = "" if said else f", got {mistake['input']!r:.80}"
    fields = [name for model in _MODELS for name in model.model_fields]
    hint = _nearest(place.rpartition(".")[2], fields) if mistake["type"] == "extra_forbidden" else ""
    return f"{place}: {mistake['msg'].removeprefix('Value error, ')}{given}{hint}"
