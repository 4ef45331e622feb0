"""Things a scenario names: learners, routers and congestion functions, with their parameters beside the name."""

from collections.abc import Iterable
from dataclasses import MISSING, fields
from difflib import get_close_matches
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, TypeAdapter, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from routesim import congestion
from routesim.errors import InputError
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
from routesim.traffic.protocol import Router
from routesim.traffic.routers import as_router
from routesim.traffic.routers.basic import CompliantRouter, FreeFlowRouter, GreedyRouter, LogitRouter
from routesim.traffic.routers.contextual import CARCBRouter
from routesim.traffic.routers.learning import CARMABRouter
from routesim.traffic.routers.planned import PlannedRouter

CONTEXTUAL = ("CARCB", "CARCBRouter", "LinUCB", "LinearThompsonSampling", "LinearGreedy")
"""Learners that need travellers, or arms with features."""


class Frozen(BaseModel):
    """A part of a scenario: nothing unknown, nothing changed, no number that is not one."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class _Choice(BaseModel):
    """Something by name, with its parameters beside it; the name alone may stand for it."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)
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
            known = ", ".join(self.makers)
            raise InputError(f"there is no {self.name!r}{nearest(self.name, self.makers)}; there are {known}")
        maker, parameters = self.makers[self.name], self.model_extra or {}
        allowed = _parameters(maker)
        for name in parameters:
            if name not in allowed:
                close = nearest(name, allowed)
                raise InputError(f"{self.name} has no parameter {name!r}{close}; it has {', '.join(allowed) or 'none'}")
        try:
            made = maker(**{name: _checked(maker, name, value) for name, value in parameters.items()})
        except (TypeError, ValueError, OverflowError) as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError(f"{self.name} cannot be made from {parameters}: {problem}") from None
        return made

    @property
    def label(self) -> str:
        """The choice as people read it: its name and what was set."""
        settings = ", ".join(f"{name}={value}" for name, value in (self.model_extra or {}).items())
        return f"{self.name}({settings})" if settings else self.name

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe every name with its parameters, so that editors can complete them."""
        handler(core)
        alone = [name for name, maker in cls.makers.items() if not _needed(maker)]
        return {"anyOf": [{"enum": alone}, *(cls._described(name, maker) for name, maker in cls.makers.items())]}

    @classmethod
    def _described(cls, name: str, maker: Any) -> dict[str, Any]:
        hints = get_type_hints(maker)
        parameters = {one: _json_type(hints.get(one)) for one in _parameters(maker)}
        shared = {one: {"description": item.description} for one, item in cls.model_fields.items() if one != "name"}
        return {
            "type": "object",
            "description": (maker.__doc__ or name).strip().splitlines()[0],
            "properties": {"name": {"const": name}, **parameters, **shared},
            "required": ["name", *_needed(maker)],
            "additionalProperties": False,
        }


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
    def informed(self) -> bool:
        """Whether it is told how roads congest, or the true rewards, which no real learner is."""
        return bool(self.makers[self.name].knows == "rewards")

    @property
    def label(self) -> str:
        """The learner as people read it, called informed where it knows the true rewards."""
        return super().label + (" (informed)" if self.informed else "")


class RouterChoice(_Choice):
    """A router, or a learner put to work as one, by name, with its parameters beside it."""

    makers: ClassVar[dict[str, Any]] = {
        maker.__name__: maker
        for maker in (CARMABRouter, CARCBRouter, PlannedRouter, GreedyRouter, FreeFlowRouter, LogitRouter)
    } | {name: maker for name, maker in LearnerChoice.makers.items() if name != "Oracle"}

    compliance: float = Field(
        1.0, gt=0, le=1, description="share of the drivers who follow; the others take the quickest way of the moment"
    )

    def make(self) -> Router:
        """Return the router."""
        router = as_router(super().make())
        return router if self.compliance == 1 else CompliantRouter(router, share=self.compliance)

    @property
    def informed(self) -> bool:
        """Whether it is told how roads congest."""
        return bool(getattr(self.make(), "informed", False))

    @property
    def label(self) -> str:
        """The router as people read it, called informed where it knows how roads congest."""
        follow = "" if self.compliance == 1 else f", {self.compliance:.0%} follow"
        return super().label + follow + (" (informed)" if self.informed else "")


def nearest(wrong: str, right: Iterable[str]) -> str:
    """Return a hint at the name that was perhaps meant."""
    close = get_close_matches(wrong, list(right), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _parameters(maker: Any) -> list[str]:
    """Return the parameters that a file can give; a ready plan is given in Python only."""
    return [item.name for item in fields(maker) if item.init and item.name != "plan"]


def _checked(maker: Any, name: str, value: Any) -> Any:
    """Return a parameter, or refuse a type that its maker does not state; arrays are left to the maker."""
    hint = get_type_hints(maker)[name]
    if hint not in (bool, int, float, str) and get_origin(hint) is not Literal and hint != float | None:
        return value
    try:
        return TypeAdapter(hint, config=ConfigDict(strict=True, allow_inf_nan=False)).validate_python(value)
    except ValidationError as problem:
        raise InputError(f"{maker.__name__}'s {name}: {problem.errors()[0]['msg']}, got {value!r:.80}") from None


def _needed(maker: Any) -> list[str]:
    return [one.name for one in fields(maker) if one.init and one.default is one.default_factory is MISSING]


def _json_type(hint: Any) -> dict[str, Any]:
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return {"type": names[hint]} if hint in names else {}
