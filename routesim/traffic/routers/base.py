"""What routers say of themselves beyond their protocol, and what those that learn nothing have in common."""

from dataclasses import fields
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np

from routesim.arrays import Floats
from routesim.errors import InputError
from routesim.traffic.protocol import Driven, TrafficTask

Feedback: TypeAlias = Literal["none", "lessons", "all"]


class RouterTraits(NamedTuple):
    """What a router says of itself by attributes; where it says nothing, these defaults are true of it.

    `informed`: it goes by the true congestion, which no real router knows. `needs_contexts`: it sends only travellers
    who differ (`TrafficSimulator(trip_costs=...)`). `learns`: what was driven changes where it sends the next.
    `takes_shortest_path`: everybody takes the path that is quickest on empty roads, with which reports compare.
    `stands_for` is the class of learners whose counterpart in traffic it is: `as_router` makes it from one of them.
    """

    informed: bool = False
    needs_contexts: bool = False
    learns: bool = True
    takes_shortest_path: bool = False
    stands_for: type | None = None

    @classmethod
    def of(cls, router: object) -> Self:
        """Return what a router, or a class of routers, says of itself."""
        return cls._make(getattr(router, name, default) for name, default in cls._field_defaults.items())


class Foreseen(Protocol):
    """How others drive: the task, their share and the flows planned for the rest -> their flows."""

    def __call__(self, task: TrafficTask, share: float, others: Floats) -> Floats:
        """Return vehicles an hour for each edge."""


@runtime_checkable
class Foreseeable(Protocol):
    """A router of which it can be foreseen how it sends a share of the vehicles."""

    def flows_among(self, task: TrafficTask, share: float, others: Floats) -> Floats:
        """Return the flows of a share of the vehicles in vehicles an hour, given those planned for the others."""


@runtime_checkable
class PlansAround(Protocol):
    """A router that can plan for a share of the vehicles around the flows of the others."""

    def start_among(self, task: TrafficTask, rng: np.random.Generator, share: float, others: Foreseen) -> None:
        """Begin a run in which only a share of the vehicles follows."""


class Unteachable:
    """What routers without any use for feedback have in common."""

    interval_s: float | None = None
    feedback: Feedback = "none"
    learns: ClassVar[bool] = False

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:
        """Begin a run."""
        self._task, self._rng = task, rng

    def learn(self, driven: Driven) -> None:
        """Learn nothing."""


def settings_for(router: Any, learner: Any) -> dict[str, Any]:
    """Return the settings of a learner that a class of routers has too; refuse others that were changed."""
    own = {one.name for one in fields(router) if one.init}
    shared: dict[str, Any] = {}
    for one in fields(learner):
        if not one.init:
            continue
        value = getattr(learner, one.name)
        if one.name in own:
            shared[one.name] = value
        elif value not in (one.default, getattr(router, one.name, one.default)):
            raise InputError(
                f"{type(learner).__name__}'s {one.name} = {value!r} has no meaning in traffic, where {router.__name__} "
                f"stands for it; leave {one.name} out (it is {one.default!r} then), or play rounds"
            )
    return shared
