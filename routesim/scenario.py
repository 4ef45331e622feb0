"""Scenarios: a TOML file, or the name of a bundled one -> typed frozen values -> environments and learners."""

import tomllib
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from routesim import congestion
from routesim.actions import ActionSet
from routesim.environment import RoundEnvironment
from routesim.errors import InputError, ScenarioError
from routesim.experiment import EnvironmentMaker
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
from routesim.learners.carmab import CARMAB

LEARNERS: dict[str, Any] = {
    maker.__name__: maker
    for maker in (
        CARMAB,
        UCB1,
        ThompsonSampling,
        EpsilonGreedy,
        GreedyCongestion,
        ShortestPath,
        RandomPath,
        Oracle,
    )
}


CURVES: dict[str, congestion.CongestionFunction] = {
    "constant": congestion.Constant(),
    "inverse": congestion.Inverse(),
    "reciprocal": congestion.Reciprocal(),
}


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Bandit(_Frozen):
    """Plain arms whose base rewards are drawn uniformly from (0, 1), anew for each replication."""

    arms: int = Field(ge=1, description="the number of arms")
    congestion: Literal["constant", "inverse", "reciprocal"] = Field(description="how a count lowers a reward")
    noise_variance: float = Field(ge=0, description="the variance of the Gaussian noise of a reward")
    windows: tuple[int, ...] = Field(min_length=1, description="windows in rounds, each an experiment of its own")

    def environments(self, window: int) -> EnvironmentMaker:
        """Return the maker of random environments with this window."""
        return partial(_draw_bandit, self, window)


class LearnerChoice(BaseModel):
    """A learner by name, with its parameters beside it."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str = Field(description=f"one of {', '.join(LEARNERS)}")

    def make(self) -> Learner:
        """Return the learner."""
        if self.name not in LEARNERS:
            raise InputError(f"there is no learner {self.name!r}{_nearest(self.name, LEARNERS)}")
        parameters = self.model_extra or {}
        try:
            learner: Learner = LEARNERS[self.name](**parameters)
        except TypeError:
            allowed = [name for name, item in LEARNERS[self.name].__dataclass_fields__.items() if item.init]
            wrong = next(name for name in parameters if name not in allowed)
            raise InputError(f"{self.name} has no parameter {wrong!r}; it has {', '.join(allowed) or 'none'}") from None
        return learner

    @property
    def label(self) -> str:
        """The learner as people read it: its name and what was set."""
        settings = ", ".join(f"{name}={value}" for name, value in (self.model_extra or {}).items())
        return f"{self.name}({settings})" if settings else self.name


class Scenario(_Frozen):
    """One named experiment."""

    kind: Literal["bandit"] = Field(description="what is simulated")
    title: str = Field(description="the story in one line")
    rounds: int = Field(ge=1, description="rounds of each run")
    replications: int = Field(ge=1, description="independent runs of each learner")
    seed: int = Field(ge=0, description="where all chance comes from")
    bandit: Bandit
    learners: tuple[LearnerChoice, ...] = Field(min_length=1, description="learners to compare")


def scenario_names() -> list[str]:
    """Return the names of the bundled scenarios."""
    return sorted(path.stem for path in _bundled().glob("*.toml"))


def load_scenario(name_or_file: str | Path, **overrides: int | None) -> Scenario:
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
        scenario = Scenario.model_validate(content)
        for choice in scenario.learners:
            choice.make()
    except OSError as problem:
        raise ScenarioError(f"cannot read scenario {path}: {problem.strerror or problem}") from problem
    except ValidationError as problem:
        raise ScenarioError(f"{path}: {_first_mistake(problem)}") from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, InputError) as problem:
        raise ScenarioError(f"{path}: {problem}") from problem
    return scenario


def _draw_bandit(bandit: Bandit, window: int, rng: np.random.Generator) -> RoundEnvironment:
    curve = CURVES[bandit.congestion]
    base = rng.uniform(size=bandit.arms)
    noise_std = float(np.sqrt(bandit.noise_variance))
    return RoundEnvironment.from_congestion(ActionSet.arms(bandit.arms), base, curve, window, noise_std)


def _bundled() -> Path:
    """Return the folder of bundled scenarios: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).parent
    return package / "scenarios" if (package / "scenarios").is_dir() else package.parent / "scenarios"


def _nearest(wrong: str, right: Any) -> str:
    close = get_close_matches(wrong, list(right), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _first_mistake(problem: ValidationError) -> str:
    mistake = problem.errors()[0]
    place = ".".join(str(part) for part in mistake["loc"])
    given = "" if mistake["type"] == "missing" else f", got {mistake['input']!r}"
    near = _nearest(str(mistake["loc"][-1]), Scenario.model_fields | Bandit.model_fields)
    hint = near if mistake["type"] == "extra_forbidden" else ""
    return f"{place}: {mistake['msg']}{given}{hint}"
