"""Planners: rewards by (edge, count) -> a policy with the value it achieves and a bound on the best possible."""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from routesim.errors import InputError
from routesim.planning.base import Plan, Policy
from routesim.planning.edgewise.choices import PathSet, RoadGraph, merge_edges
from routesim.planning.edgewise.planner import WarmStart, plan_graph, plan_paths
from routesim.planning.effort import check_effort
from routesim.planning.exact.planner import ExactPlanner, fits
from routesim.planning.stored import edgewise_state, restored_edgewise, restored_exact, table_state
from routesim.rounds.actions import ActionSet, PathList
from routesim.rounds.checks import checked_rewards, checked_window
from routesim.storage.state import State

Method: TypeAlias = Literal["auto", "exact", "karp", "edgewise"]
METHODS: tuple[Method, ...] = ("auto", "exact", "karp", "edgewise")


def plan(actions: ActionSet, rewards: ArrayLike, window: int, method: Method = "auto") -> Plan[Policy]:
    """Return the best policy for mean `rewards` of shape (len(actions.edges), window + 1).

    `"exact"` is Howard's policy iteration over all joint histories, `"karp"` the slower algorithm of the paper
    with the same answer, `"edgewise"` plans edge by edge, for any number of actions and windows of up to 5,000, and
    proves how far from the best its policy can be; a plan that may take minutes is warned of before it starts, and one
    of hours refused. `"auto"` is exact where the joint histories fit, and edge by edge beyond.

    Two roads that pay 1 when empty and nothing when just used are best taken in turn:

    >>> turns = plan(ActionSet.arms(2), [[1.0, 0.0], [1.0, 0.0]], window=1)
    >>> turns.value, sorted(turns.cycle), turns.policy([0]), turns.policy([1])
    (1.0, [0, 1], 1, 0)
    """
    planner = Planner(actions, window, method)
    return planner.plan(checked_rewards(rewards, actions.n_edges, planner.window))


@dataclass(eq=False)
class Planner:
    """Plans on one action set and window, for one table of rewards after the other."""

    actions: ActionSet
    window: int
    method: Method = "auto"
    _exact: ExactPlanner | None = field(init=False, repr=False, default=None)
    _choices: PathSet | RoadGraph | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        checked_method(self.method)
        self.window = checked_window(self.window)
        listed_pair = isinstance(self.actions, PathList)
        if self.method in ("exact", "karp") and not listed_pair:
            raise InputError(
                f"method {self.method!r} needs a list of paths between one pair of ends; "
                'use method="edgewise" for a whole graph or several pairs'
            )
        if self.method == "auto":
            exact = listed_pair and fits(self.actions.n_listed, self.window)
            self.method = "exact" if exact else "edgewise"
        if self.method == "edgewise":
            self._choices = _choices(self.actions)
            _check_edgewise(self._choices, self.window)
        else:
            self._exact = ExactPlanner(self.actions, self.window)

    def plan(
        self, rewards: NDArray[np.float64], start: Plan[Any] | None = None, *, tight_bound: bool = True
    ) -> Plan[Policy]:
        """Return the plan for checked rewards; `start` is an earlier plan of this planner, to save time.

        Who needs the policy alone says `tight_bound=False`, and no time goes into a closer bound on the best.
        """
        if self._exact is not None:
            return self._exact.plan(rewards, method="karp" if self.method == "karp" else "exact", start=start)
        warm = start.warm if start is not None and isinstance(start.warm, WarmStart) else None
        if isinstance(self._choices, RoadGraph):
            found = plan_graph(self._choices, rewards, self.window, warm=warm)
        else:
            assert self._choices is not None  # noqa: S101 - set above for this method
            found = plan_paths(
                self._choices,
                rewards,
                self.window,
                warm=warm,
                kicks=50 if warm is None else 0,
                tight_bound=tight_bound,
            )
        return Plan(
            "edgewise",
            found.value,
            found.bound,
            found.policy,
            found.cycle,
            value_error=found.value_error,
            warm=found.warm,
        )

    def state_of(self, plan: Plan[Any]) -> State:
        """Return a plan of this planner as plain arrays."""
        return table_state(plan) if self._exact is not None else edgewise_state(plan)

    def restored(self, state: State) -> Plan[Policy]:
        """Return the plan that `state_of` told, as it was made."""
        if self._exact is not None:
            return restored_exact(state, self._exact, self.method)
        assert self._choices is not None  # noqa: S101 - set above for this method
        return restored_edgewise(state, self._choices, self.window)


def check_plan(actions: ActionSet, window: int) -> None:
    """Say what a plan on these actions would cost, before anything starts: a warning, or a refusal."""
    if not (isinstance(actions, PathList) and fits(actions.n_listed, window)):
        _check_edgewise(_choices(actions), window)


def _check_edgewise(choices: PathSet | RoadGraph, window: int) -> None:
    if isinstance(choices, RoadGraph):
        check_effort(choices.n_edges, window, whole_graph=True)
    else:
        check_effort(merge_edges(choices, np.empty((choices.n_edges, 0)))[0].n_edges, window)


def checked_method(method: str) -> None:
    """Refuse a planning method that does not exist."""
    if method not in METHODS:
        raise InputError(f"the planning method is one of {', '.join(METHODS)}; got {method!r}")


def _choices(actions: ActionSet) -> PathSet | RoadGraph:
    if isinstance(actions.together, PathList):
        return PathSet(actions.indptr, actions.indices, actions.n_edges, actions.first_action, actions.rates)
    graph = actions.together.graph
    origins, destinations = (np.array(nodes) for nodes in zip(*actions.parts, strict=True))
    if actions.n_pairs > 1 and graph.zones.any():
        raise InputError(
            "several pairs on a whole graph cannot be planned where some nodes carry no through traffic; "
            "list the paths of each pair with ActionSet.between"
        )
    if actions.n_pairs == 1 and graph.no_through.any():
        # With one pair an arc into a closed node, or out of it, is of use only at the ends.
        usable = (~graph.no_through[graph.heads] | (graph.heads == destinations[0])) & (
            ~graph.no_through[graph.tails] | (graph.tails == origins[0])
        )
        graph = graph.with_arcs(usable)
    return RoadGraph(graph, origins, destinations, actions.rates)
