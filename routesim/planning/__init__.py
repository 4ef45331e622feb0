"""Planners: rewards by (edge, count) -> a policy with the value it achieves and a bound on the best possible."""

from typing import Literal, TypeAlias

from numpy.typing import ArrayLike

from routesim.actions import ActionSet
from routesim.environment import checked_rewards, checked_window
from routesim.errors import InputError
from routesim.planning.base import Plan, Policy
from routesim.planning.exact import ExactMethod, ExactPlanner

Method: TypeAlias = Literal["auto", "exact", "karp"]
METHODS: tuple[Method, ...] = ("auto", "exact", "karp")


def plan(actions: ActionSet, rewards: ArrayLike, window: int, method: Method = "auto") -> Plan[Policy]:
    """Return the best policy for mean `rewards` of shape (len(actions.edges), window + 1).

    `"exact"` is Howard's policy iteration over all joint histories, `"karp"` the slower algorithm of the paper
    with the same answer, `"auto"` the best that fits.

    Two roads that pay 1 when empty and nothing when just used are best taken in turn:

    >>> turns = plan(ActionSet.arms(2), [[1.0, 0.0], [1.0, 0.0]], window=1)
    >>> turns.value, sorted(turns.cycle), turns.policy([0]), turns.policy([1])
    (1.0, [0, 1], 1, 0)
    """
    checked_method(method)
    window = checked_window(window)
    table = checked_rewards(rewards, actions.n_edges, window)
    return ExactPlanner(actions, window).plan(table, method=exact_method(method))


def checked_method(method: str) -> None:
    """Refuse a planning method that does not exist."""
    if method not in METHODS:
        raise InputError(f"the planning method is one of {', '.join(METHODS)}; got {method!r}")


def exact_method(method: Method) -> ExactMethod:
    """Return the exact algorithm that a planning method stands for."""
    return "karp" if method == "karp" else "exact"
