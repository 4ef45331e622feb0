"""Howard's policy iteration: the cycle of largest mean reward in a graph of histories, and the way there from each.

Two kinds of graphs are solved. *Joint* histories are all sequences of the last actions out of K, as base-K numbers with
the oldest action as leading digit: action a leads from history h to (h * K + a) mod n, so the K histories after h lie
side by side. *Listed* histories are some of all sequences, with tables of where actions lead and where they come from.

Where several policies are the best, which one it ends with depends on the order in which histories are valued and
changed. Each kind of graph has an order of its own, and what learners play depends on it: to change an order changes
the results of runs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints
from routesim.kernels import lean_kernel

RELATIVE_TOLERANCE = 1e-12
"""Far above rounding noise, so that ties cannot make it turn in circles, and far below any real difference."""

_IMPATIENCE = 64


class HistoryGraph(NamedTuple):
    """What each action earns in each history, of shape (histories, actions), and where it leads.

    Listed histories have three tables: the history after each action (-1: the action is not allowed), the histories
    before (-1: not listed), and the action that leads from these here. For joint histories the tables are empty.
    """

    rewards: Floats
    after: Ints
    before: Ints
    newest: NDArray[np.int8]


class Evaluation(NamedTuple):
    """A policy, the values of histories under it, and room for marks and for an order of histories."""

    policy: NDArray[np.signedinteger]
    values: Floats
    mark: NDArray[np.int32]
    order: NDArray[np.int32]

    @classmethod
    def of(cls, policy: NDArray[np.signedinteger]) -> "Evaluation":
        """Return the policy with room for the rest."""
        mark, order = np.empty((2, len(policy)), dtype=np.int32)
        return cls(policy, np.zeros(len(policy)), mark, order)


def joint_histories(rewards: Floats) -> HistoryGraph:
    """Return the graph of all joint histories, from the rewards of shape (K ** length, K)."""
    nowhere = np.empty((0, rewards.shape[1]), dtype=np.int64)
    return HistoryGraph(rewards, nowhere, nowhere, np.empty(0, dtype=np.int8))


@lean_kernel
def improve(graph: HistoryGraph, found: Evaluation, tolerance: float) -> tuple[float, int]:
    """Improve the policy in place until no action anywhere gains more than `tolerance`.

    Return the mean reward of its best cycle and a history on that cycle. Each turn finds the best cycle of the policy,
    values every history by what it earns above that mean on its way to the cycle, and then takes better actions. The
    values only ever rise, so it ends; should rounding on a huge graph still feign improvements, the tolerance grows
    with the number of turns until they are ignored.
    """
    turn = 0
    while True:
        mean, anchor = best_cycle(graph, found.policy, found.mark)
        value_histories(graph, found, mean, anchor)
        if not _take_better(graph, found, mean, tolerance):
            return mean, anchor
        turn += 1
        if turn % _IMPATIENCE == 0:
            tolerance *= 10.0


@lean_kernel
def _take_better(graph: HistoryGraph, found: Evaluation, mean: float, tolerance: float) -> bool:
    """Take the best action where it gains more than `tolerance`, joint histories at once with its value."""
    n_histories, n_actions = graph.rewards.shape
    policy, values = found.policy, found.values
    listed = len(graph.after) > 0
    step = 1 if n_histories > 1 else 0  # every action leads from the only history of length 0 to itself
    improved = False
    following = 0
    for history in range(n_histories):
        best, choice = values[history] + tolerance, -1
        for action in range(n_actions):
            after = graph.after[history, action] if listed else following + action * step
            if after >= 0:
                worth = graph.rewards[history, action] - mean + values[after]
                if worth > best:
                    best, choice = worth, action
        if choice >= 0:
            policy[history] = choice
            improved = True
            if not listed:
                values[history] = best
        following += n_actions
        if following >= n_histories:
            following = 0
    return improved


@lean_kernel
def joint_after(history: int, action: int, n_actions: int, n_histories: int) -> int:
    """Return the joint history that an action leads to."""
    return (history * n_actions + action) % n_histories


@lean_kernel
def _after(graph: HistoryGraph, history: int, action: int) -> int:
    """Return the history that an action leads to."""
    n_histories, n_actions = graph.rewards.shape
    if len(graph.after) > 0:
        return int(graph.after[history, action])
    return joint_after(history, action, n_actions, n_histories)


@lean_kernel
def best_cycle(graph: HistoryGraph, policy: NDArray[np.signedinteger], mark: NDArray[np.int32]) -> tuple[float, int]:
    """Return the largest mean of the cycles that `policy` runs into, and a history on that cycle."""
    best, anchor = -np.inf, -1
    mark[:] = -1
    for first in range(len(policy)):
        history = first
        while mark[history] < 0:
            mark[history] = first
            history = _after(graph, history, policy[history])
        if mark[history] == first:
            mean = cycle_mean(graph, policy, history)
            if mean > best:
                best, anchor = mean, history
    return best, anchor


@lean_kernel
def cycle_mean(graph: HistoryGraph, policy: NDArray[np.signedinteger], anchor: int) -> float:
    """Return the mean reward of the cycle through `anchor`."""
    total, length, history = 0.0, 0, anchor
    while length == 0 or history != anchor:
        total += graph.rewards[history, policy[history]]
        length += 1
        history = _after(graph, history, policy[history])
    return total / length


@lean_kernel
def value_histories(graph: HistoryGraph, found: Evaluation, mean: float, anchor: int) -> None:
    """Value each history by its rewards above `mean` on the way to `anchor`; lead those that miss it there."""
    if len(graph.after) > 0:
        _value_listed(graph, found, mean, anchor)
    else:
        _value_joint(graph, found, mean, anchor)


@lean_kernel
def _value_joint(graph: HistoryGraph, found: Evaluation, mean: float, anchor: int) -> None:
    """Follow the policy forwards from each history; lead those that miss the anchor by their best action."""
    n_histories, n_actions = graph.rewards.shape
    policy, values, mark, order = found
    unknown, pending, valued, lost = 0, 1, 2, 3
    mark[:] = unknown
    mark[anchor] = valued
    values[anchor] = 0.0
    n_lost = 0
    for first in range(n_histories):
        depth, history = 0, first
        while mark[history] == unknown:
            mark[history] = pending
            order[depth] = history
            depth += 1
            history = _after(graph, history, policy[history])
        reaches = mark[history] == valued
        value = values[history]
        if not reaches:
            n_lost += depth
        for level in range(depth - 1, -1, -1):
            history = order[level]
            if reaches:
                value += graph.rewards[history, policy[history]] - mean
                values[history] = value
                mark[history] = valued
            else:
                mark[history] = lost
    # Any history leads to any other in as many actions as it is long, so this takes at most as many sweeps.
    while n_lost > 0:
        for history in range(n_histories):
            if mark[history] != lost:
                continue
            following = joint_after(history, 0, n_actions, n_histories)
            best, choice = -np.inf, -1
            for action in range(n_actions):
                after = following + action
                if mark[after] == valued:
                    worth = graph.rewards[history, action] - mean + values[after]
                    if worth > best:
                        best, choice = worth, action
            if choice >= 0:
                policy[history] = choice
                values[history] = best
                mark[history] = valued
                n_lost -= 1


@lean_kernel
def _value_listed(graph: HistoryGraph, found: Evaluation, mean: float, anchor: int) -> None:
    """Go backwards from the anchor, along the policy first, and then turn the other histories towards it."""
    policy, values, mark, order = found
    mark[:] = 0
    mark[anchor] = 1
    values[anchor] = 0.0
    order[0] = anchor
    size = 1
    for turn in range(2):
        place = 0
        while place < size:
            history = order[place]
            place += 1
            action = graph.newest[history]
            for side in range(graph.before.shape[1]):
                before = graph.before[history, side]
                if before >= 0 and mark[before] == 0 and (turn == 1 or policy[before] == action):
                    policy[before] = action
                    values[before] = graph.rewards[before, action] - mean + values[history]
                    mark[before] = 1
                    order[size] = before
                    size += 1
        if size == len(policy):
            break
