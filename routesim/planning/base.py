"""Plan: a policy, the average reward it really achieves, and a proven bound on the best possible."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

Policy: TypeAlias = Callable[..., Any]
PolicyT_co = TypeVar("PolicyT_co", bound=Policy, covariant=True)


@dataclass(frozen=True)
class Plan(Generic[PolicyT_co]):
    """What every planner returns.

    `value` is the long-run average reward per round of `policy`, `bound` a proven upper bound on that of any
    policy. `policy` maps the last `window` actions, oldest first, to the next action; a shorter history is one
    of the first rounds. With several OD pairs it is told the pair too: `policy(history, pair)`. `cycle` lists
    the actions that are played for ever in the end, where they are known; then `value` is exact, and otherwise
    `value_error` is the standard error of the run that measured it. `warm` serves later plans as a start.
    """

    method: str
    value: float
    bound: float
    policy: PolicyT_co
    cycle: tuple[Any, ...] | None = None
    value_error: float = 0.0
    warm: Any = field(default=None, repr=False)

    @property
    def gap(self) -> float:
        """How much better than `policy` anything could be, at most."""
        return self.bound - self.value
