"""What all kinds of scenarios have in common: title, seed, replications, learners and the grid of a sweep."""

from itertools import product
from typing import Any, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from routesim.errors import InputError
from routesim.scenario.choices import Frozen

LONGEST_TITLE = 200
MOST_POINTS = 10_000
MOST_CELLS = 1 << 24  # arms or edges x counts

WINDOW = Field(ge=0, le=100_000, description="how many rounds an edge remembers")
LEARNERS = Field(min_length=1, max_length=100, description="learners to compare")
ROUNDS = Field(ge=1, le=10**9, description="rounds of each run")


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


def check_cells(edges: int, window: int) -> None:
    """Refuse a table of rewards by edge and count that is too large to keep."""
    if edges * (window + 1) > MOST_CELLS:
        raise InputError(
            f"{edges} edges with a window of {window} are more than {MOST_CELLS:,} pairs of edge and count; "
            "use a shorter window or fewer"
        )


def _flattened(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat |= _flattened(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
