"""Things a scenario names: learners, routers and congestion functions with their parameters, and who travels."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, TypeAdapter, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from routesim import registry
from routesim.congestion import CongestionFunction
from routesim.errors import InputError
from routesim.learners.base import Learner, Traits
from routesim.traffic.engines.base import Physics
from routesim.traffic.physics import KINDS
from routesim.traffic.protocol import Router
from routesim.traffic.routers import as_router, in_traffic
from routesim.traffic.routers.base import RouterTraits
from routesim.traffic.routers.compliant import CompliantRouter
from routesim.travellers.features import Travellers


class Frozen(BaseModel):
    """A part of a scenario: nothing unknown, nothing changed, no number that is not one."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Choice(BaseModel):
    """Something by name, with its parameters beside it; the name alone may stand for it."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)
    known: ClassVar[Mapping[str, Any]] = {}
    """The classes that can be named."""

    name: str

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _can_be_made(self) -> "Choice":
        self.make()
        return self

    @property
    def maker(self) -> Any:
        """The class that is named."""
        return registry.find(self.name, self.known)

    def make(self) -> Any:
        """Return the object."""
        maker, parameters = self.maker, self.model_extra or {}
        allowed = registry.settings(maker)
        for name in parameters:
            if name not in allowed:
                close = registry.nearest(name, allowed)
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
        alone = [name for name, maker in cls.known.items() if not registry.needed(maker)]
        return {"anyOf": [{"enum": alone}, *(cls._described(name, maker) for name, maker in cls.known.items())]}

    @classmethod
    def _described(cls, name: str, maker: Any) -> dict[str, Any]:
        hints = get_type_hints(maker)
        parameters = {one: _json_type(hints.get(one)) for one in registry.settings(maker)}
        shared = {one: {"description": item.description} for one, item in cls.model_fields.items() if one != "name"}
        return {
            "type": "object",
            "description": (maker.__doc__ or name).strip().splitlines()[0],
            "properties": {"name": {"const": name}, **parameters, **shared},
            "required": ["name", *registry.needed(maker)],
            "additionalProperties": False,
        }


class CongestionChoice(Choice):
    """A congestion function by name, with its parameters beside it."""

    known: ClassVar[Mapping[str, Any]] = registry.congestion_functions()

    def make(self) -> CongestionFunction:
        """Return the congestion function."""
        curve: CongestionFunction = super().make()
        return curve


class PhysicsChoice(Choice):
    """A physics by name, with its parameters beside it; the window count takes its own from the table around it."""

    known: ClassVar[Mapping[str, Any]] = KINDS

    def make(self) -> Physics:
        """Return the physics."""
        physics: Physics = super().make()
        return physics


class LearnerChoice(Choice):
    """A learner by name, with its parameters beside it."""

    known: ClassVar[Mapping[str, Any]] = registry.learners()

    def make(self) -> Learner:
        """Return the learner."""
        learner: Learner = super().make()
        return learner

    @property
    def traits(self) -> Traits:
        """What the learner says of itself."""
        return Traits.of(self.maker)

    @property
    def label(self) -> str:
        """The learner as people read it, called informed where it knows the true rewards."""
        return super().label + (" (informed)" if self.traits.informed else "")


class RouterChoice(Choice):
    """A router, or a learner put to work as one, by name, with its parameters beside it."""

    known: ClassVar[Mapping[str, Any]] = {
        **{name: router for name, router in registry.routers().items() if registry.in_files(router)},
        **{name: learner for name, learner in registry.learners().items() if in_traffic(learner)},
    }

    compliance: float = Field(
        1.0, gt=0, le=1, description="share of the drivers who follow; the others take the quickest way of the moment"
    )

    @property
    def maker(self) -> Any:
        """The class that is named; a learner that cannot be a router is refused by `as_router`, which says why."""
        return registry.learners().get(self.name) or super().maker

    def make(self) -> Router:
        """Return the router."""
        router = as_router(super().make())
        return router if self.compliance == 1 else CompliantRouter(router, share=self.compliance)

    @property
    def traits(self) -> RouterTraits:
        """What the router says of itself."""
        return RouterTraits.of(self.make())

    @property
    def label(self) -> str:
        """The router as people read it, called informed where it knows how roads congest."""
        follow = "" if self.compliance == 1 else f", {self.compliance:.0%} follow"
        return super().label + follow + (" (informed)" if self.traits.informed else "")


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


def _checked(maker: Any, name: str, value: Any) -> Any:
    """Return a parameter, or refuse a type that its maker does not state; arrays are left to the maker."""
    hint = get_type_hints(maker)[name]
    if hint not in (bool, int, float, str) and get_origin(hint) is not Literal and hint != float | None:
        return value
    try:
        return TypeAdapter(hint, config=ConfigDict(strict=True, allow_inf_nan=False)).validate_python(value)
    except ValidationError as problem:
        raise InputError(f"{maker.__name__}'s {name}: {problem.errors()[0]['msg']}, got {value!r:.80}") from None


def _json_type(hint: Any) -> dict[str, Any]:
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    names = {bool: "boolean", int: "integer", float: "number", float | None: "number", str: "string"}
    return {"type": names[hint]} if hint in names else {}
