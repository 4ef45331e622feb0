"""Scenarios on arms: plain ones, and ones with features."""

from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from pydantic import Field, model_validator

from routesim.errors import InputError
from routesim.experiment import EnvironmentMaker
from routesim.results.run import Scalar
from routesim.rounds.actions import ActionSet
from routesim.rounds.contextual import ContextualEnvironment
from routesim.rounds.environment import RoundEnvironment
from routesim.scenario.base import LEARNERS, ROUNDS, WINDOW, Scenario, check_cells
from routesim.scenario.choices import CongestionChoice, Frozen, LearnerChoice
from routesim.travellers.contexts import DrawnContexts, UniformContexts, unit_vectors

Setting: TypeAlias = tuple[dict[str, Scalar], EnvironmentMaker | RoundEnvironment]
"""What sets one experiment of a scenario apart from the others, and its environment or the maker of it."""

NOISE_VARIANCE = Field(ge=0, le=1e6, description="the variance of the Gaussian noise of a reward")


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
        check_cells(self.arms, max(self.windows))
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
            check_cells(one.arms, one.window)
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


def _check_apart(name: str, values: Any) -> None:
    if len(set(values)) < len(values):
        raise InputError(f"{name} lists an experiment twice: {list(values)}")
