"""The exact planner: the cycle of largest mean reward in the graph of all joint histories.

Histories are numbered as in `planning/howard.py`. Howard's policy iteration is the default, Karp's algorithm (the one
in the paper) the reference for small graphs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats
from routesim.errors import InputError, TooManyStatesError
from routesim.kernels import kernel
from routesim.planning.base import Plan
from routesim.planning.howard import (
    RELATIVE_TOLERANCE,
    Evaluation,
    HistoryGraph,
    best_cycle,
    cycle_mean,
    improve,
    joint_after,
    joint_histories,
    value_histories,
)
from routesim.rounds.actions import ActionSet
from routesim.rounds.window import PathRows, enter, leave

ExactMethod: TypeAlias = Literal["exact", "karp"]

MAX_ARCS = 1 << 25
"""The largest graph that is solved: one arc is a history and an action, and takes eight bytes."""

MAX_KARP_STATES = 1 << 12
"""Karp keeps a number for every pair of histories."""


@dataclass(frozen=True, eq=False)
class TablePolicy:
    """A policy as a table of actions by encoded history; a short history counts as padded with action 0."""

    table: NDArray[np.int32]
    n_actions: int
    window: int

    def __call__(self, history: Sequence[int]) -> int:
        """Return the action after the last `window` actions, oldest first."""
        if len(history) > self.window:
            raise InputError(f"a history holds at most window={self.window} actions, got {len(history)}")
        state = 0
        for action in history:
            if not isinstance(action, int | np.integer) or not 0 <= action < self.n_actions:
                raise InputError(f"actions run from 0 to {self.n_actions - 1}, got {action} in the history")
            state = state * self.n_actions + action
        return int(self.table[state])


@dataclass(frozen=True, eq=False)
class ExactPlanner:
    """Plans on one action set and window, for any rewards; keeps what does not depend on the rewards."""

    actions: ActionSet
    window: int
    _group_of_edge: NDArray[np.intp] = field(init=False, repr=False)
    _paths: PathRows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_size(self.actions.n_listed, self.window)
        # Edges used by the same actions always have the same count: one group stands for all of them.
        members = self.actions.incidence.toarray().astype(bool).T
        groups, group_of_edge = np.unique(np.packbits(members, axis=1), axis=0, return_inverse=True)
        used = np.unpackbits(groups, axis=1, count=self.actions.n_listed).astype(bool).T
        object.__setattr__(self, "_group_of_edge", group_of_edge.reshape(-1))
        indptr = np.concatenate(([0], np.cumsum(used.sum(axis=1))))
        object.__setattr__(self, "_paths", PathRows(indptr, np.nonzero(used)[1].astype(np.int32)))

    def plan(
        self, rewards: Floats, *, method: ExactMethod = "exact", start: Plan[Any] | None = None
    ) -> Plan[TablePolicy]:
        """Return the optimal plan for `rewards` of shape (edges, window + 1).

        `start` is an earlier plan of this planner, best for similar rewards; it saves time and changes no value.
        """
        arcs = self.arc_rewards(rewards)
        n_states, n_actions = arcs.shape
        if self.window == 0:
            table = arcs.argmax(axis=1).astype(np.int32)
            value = float(arcs[0, table[0]])
        elif method == "karp":
            if n_states > MAX_KARP_STATES:
                raise TooManyStatesError(
                    f"Karp's algorithm is kept to {MAX_KARP_STATES:,} histories, got {n_actions} actions and window "
                    f'{self.window}: {n_states:,} histories; use method="exact", which gives the same answer'
                )
            table = np.zeros(n_states, dtype=np.int32)
            value = _karp(joint_histories(arcs), Evaluation.of(table))
        else:
            table = arcs.argmax(axis=1).astype(np.int32) if start is None else start.policy.table.copy()
            tolerance = RELATIVE_TOLERANCE * float(np.abs(arcs).max())
            value, _ = improve(joint_histories(arcs), Evaluation.of(table), tolerance)
        return self.with_table(table, value, method)

    def with_table(self, table: NDArray[np.int32], value: float, method: str) -> Plan[TablePolicy]:
        """Return the plan with this table of best actions."""
        n_actions = self.actions.n_listed
        cycle = _final_cycle(table, n_actions)
        return Plan(method, value, value, TablePolicy(table, n_actions, self.window), tuple(cycle.tolist()))

    def arc_rewards(self, rewards: Floats) -> Floats:
        """Return the mean reward of every action in every history, shape (K ** window, K)."""
        grouped = np.zeros((int(self._group_of_edge.max()) + 1, self.window + 1))
        np.add.at(grouped, self._group_of_edge, rewards)
        arcs = np.empty((self.actions.n_listed**self.window, self.actions.n_listed))
        _fill_arc_rewards(self._paths, grouped, self.window, arcs)
        return arcs


def best_arcs(arcs: Floats, policy: NDArray[np.int32]) -> tuple[Floats, NDArray[np.int64]]:
    """Improve `policy` in place to the best one of a history graph, of one action or more.

    Return a value for every history, with which no arc gains more than the best mean, and the best cycle's arcs,
    each numbered history * K + action.
    """
    n_states, n_actions = arcs.shape
    graph, found = joint_histories(arcs), Evaluation.of(policy)
    improve(graph, found, RELATIVE_TOLERANCE * float(np.abs(arcs).max()))
    mean, anchor = best_cycle(graph, policy, found.mark)
    value_histories(graph, found, mean, anchor)
    state, cycle = anchor, list[int]()
    while not cycle or state != anchor:
        cycle.append(state * n_actions + int(policy[state]))
        state = cycle[-1] % n_states
    return found.values, np.array(cycle, np.int64)


def fits(n_actions: int, window: int) -> bool:
    """Say whether the graph of joint histories fits."""
    return bool(n_actions ** (window + 1) <= MAX_ARCS)


def check_size(n_actions: int, window: int) -> None:
    """Refuse a graph of joint histories that does not fit."""
    if not fits(n_actions, window):
        longest = window
        while longest > 0 and not fits(n_actions, longest):
            longest -= 1
        raise TooManyStatesError(
            f"{n_actions} actions and window {window} make about 10**{window * np.log10(n_actions):.0f} "
            f"joint histories, more than the exact planner can hold ({MAX_ARCS:,} histories x actions); "
            f"with {n_actions} actions it reaches window {longest}: use fewer actions, a shorter window, "
            "or method='edgewise'"
        )


@kernel
def _fill_arc_rewards(paths: PathRows, rewards: Floats, window: int, arcs: Floats) -> None:
    """Count the uses of each edge group history by history, like the digits of a milometer."""
    indptr, indices = paths.indptr, paths.indices
    n_states, n_actions = arcs.shape
    counts = np.zeros(rewards.shape[0], dtype=np.int64)
    digits = np.zeros(window, dtype=np.int64)
    for _ in range(window):
        enter(counts, indices[indptr[0] : indptr[1]])
    for state in range(n_states):
        for action in range(n_actions):
            total = 0.0
            for place in range(indptr[action], indptr[action + 1]):
                group = indices[place]
                total += rewards[group, counts[group]]
            arcs[state, action] = total
        for digit in range(window - 1, -1, -1):
            action = digits[digit]
            leave(counts, indices[indptr[action] : indptr[action + 1]])
            action = (action + 1) % n_actions
            digits[digit] = action
            enter(counts, indices[indptr[action] : indptr[action + 1]])
            if action > 0:
                break


@kernel
def _final_cycle(policy: NDArray[np.int32], n_actions: int) -> NDArray[np.int32]:
    """Return the actions that `policy` repeats for ever in the end, coming from history 0."""
    n_states = len(policy)
    seen = np.zeros(n_states, dtype=np.bool_)
    state = 0
    while not seen[state]:
        seen[state] = True
        state = joint_after(state, policy[state], n_actions, n_states)
    anchor, length = state, 0
    actions = np.empty(n_states, dtype=np.int32)
    while length == 0 or state != anchor:
        actions[length] = policy[state]
        length += 1
        state = joint_after(state, policy[state], n_actions, n_states)
    return actions[:length].copy()


@kernel
def _karp(graph: HistoryGraph, found: Evaluation) -> float:
    """Karp's theorem over walks of 0 .. n steps from history 0; the cycle and the ways to it go into the policy."""
    arcs, policy = graph.rewards, found.policy
    n_states, n_actions = arcs.shape
    block = n_states // n_actions
    walks = np.full((n_states + 1, n_states), -np.inf)
    walks[0, 0] = 0.0
    for step in range(1, n_states + 1):
        for state in range(n_states):
            previous, action = state // n_actions, state % n_actions
            best = -np.inf
            for leading in range(n_actions):
                origin = leading * block + previous
                best = max(best, walks[step - 1, origin] + arcs[origin, action])
            walks[step, state] = best
    worst = np.full(n_states, np.inf)
    for step in range(n_states):
        for state in range(n_states):
            if walks[step, state] > -np.inf:
                slope = (walks[n_states, state] - walks[step, state]) / (n_states - step)
                worst[state] = min(worst[state], slope)
    # The best walk of n steps to that history repeats a history; what lies between is a cycle of the best mean.
    seen = np.full(n_states, -1, dtype=np.int64)
    state = int(np.argmax(worst))
    for step in range(n_states, -1, -1):
        if seen[state] >= 0:
            break
        seen[state] = step
        previous, action = state // n_actions, state % n_actions
        for leading in range(n_actions):
            origin = leading * block + previous
            if step > 0 and walks[step - 1, origin] + arcs[origin, action] == walks[step, state]:
                policy[origin] = action
                state = origin
                break
    mean = cycle_mean(graph, policy, state)
    value_histories(graph, found, mean, state)
    return mean
