"""Slow, obvious versions of what the package computes with compiled kernels, straight from the definitions."""

import itertools
from collections.abc import Sequence

import networkx as nx
import numpy as np
from numpy.typing import NDArray

import routesim as rs

Floats = NDArray[np.float64]


def path_reward(actions: rs.ActionSet, rewards: Floats, history: Sequence[int], action: int) -> float:
    """The mean reward of an action after a history, by counting."""
    position = {edge: place for place, edge in enumerate(actions.edges.tolist())}
    total = 0.0
    for edge in actions.paths[action]:
        count = sum(edge in actions.paths[past] for past in history)
        total += rewards[position[edge], count]
    return total


def history_graph(actions: rs.ActionSet, rewards: Floats, window: int) -> "nx.MultiDiGraph":
    """The graph whose nodes are histories (tuples) and whose arcs are actions."""
    graph = nx.MultiDiGraph()
    for history in itertools.product(range(actions.n_actions), repeat=window):
        for action in range(actions.n_actions):
            weight = path_reward(actions, rewards, history, action)
            graph.add_edge(history, (*history, action)[1:] if window else (), weight=weight)
    return graph


def best_cycle_by_enumeration(actions: rs.ActionSet, rewards: Floats, window: int) -> float:
    """The largest mean over every simple cycle of the history graph."""
    graph = history_graph(actions, rewards, window)
    simple = nx.DiGraph()
    for tail, head, weight in graph.edges(data="weight"):
        if not simple.has_edge(tail, head) or simple[tail][head]["weight"] < weight:
            simple.add_edge(tail, head, weight=weight)
    best = -np.inf
    for cycle in nx.simple_cycles(simple):
        arcs = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
        best = max(best, float(np.mean([simple[tail][head]["weight"] for tail, head in arcs])))
    return best


def best_average_by_value_iteration(actions: rs.ActionSet, rewards: Floats, window: int) -> tuple[float, float]:
    """Proven lower and upper bounds on the best average reward, from lazy value iteration on the history graph.

    For any values v the best average lies between the least and the largest of T v - v. The lazy step makes the
    iteration settle although the best cycle is periodic.
    """
    histories = list(itertools.product(range(actions.n_actions), repeat=window))
    number = {history: place for place, history in enumerate(histories)}
    arcs = np.array([[path_reward(actions, rewards, h, a) for a in range(actions.n_actions)] for h in histories])
    heads = np.array([[number[((*h, a)[1:]) if window else ()] for a in range(actions.n_actions)] for h in histories])
    values = np.zeros(len(histories))
    low, high = -np.inf, np.inf
    for _ in range(200_000):
        change = (arcs + values[heads]).max(axis=1) - values
        low, high = change.min(), change.max()
        if high - low < 1e-10:
            break
        values = values + change / 2
        values -= values.min()
    return float(low), float(high)


def play_by_hand(
    actions: rs.ActionSet, rewards: Floats, window: int, played: Sequence[int]
) -> tuple[list[list[int]], list[float]]:
    """The counts met and the expected reward of each round of a given sequence of actions."""
    counts, expected = [], []
    for now, action in enumerate(played):
        history = played[max(0, now - window) : now]
        counts.append([sum(e in actions.paths[past] for past in history) for e in actions.paths[action]])
        expected.append(path_reward(actions, rewards, history, action))
    return counts, expected


def average_of_policy(plan: "rs.Plan", actions: rs.ActionSet, rewards: Floats, window: int) -> float:
    """The long-run average of a policy, found by playing it until its history repeats."""
    history: tuple[int, ...] = (0,) * window
    seen: dict[tuple[int, ...], int] = {}
    paid: list[float] = []
    while history not in seen:
        seen[history] = len(paid)
        action = plan.policy(history)
        paid.append(path_reward(actions, rewards, history, action))
        history = (*history, action)[1:] if window else ()
    return float(np.mean(paid[seen[history] :]))


def contextual_reward(
    actions: rs.ActionSet, multipliers: Floats, bases: Floats, history: Sequence[int], action: int
) -> float:
    """The mean reward of an action after a history where `bases` are the edges' base rewards of the round."""
    return path_reward(actions, bases[:, None] * multipliers, history, action)


def best_sequence(
    actions: rs.ActionSet, multipliers: Floats, bases: Floats, window: int, history: Sequence[int] = ()
) -> float:
    """The largest sum of rewards over all sequences of actions, one row of `bases` a round, by trying every one."""
    best = -np.inf
    for played in itertools.product(range(actions.n_actions), repeat=len(bases)):
        past, total = list(history), 0.0
        for now, action in enumerate(played):
            recent = past[max(0, len(past) - window) :] if window else []
            total += contextual_reward(actions, multipliers, bases[now], recent, action)
            past.append(action)
        best = max(best, total)
    return best


def best_average_with_contexts(
    actions: rs.ActionSet, multipliers: Floats, bases: Floats, weights: Floats, window: int
) -> float:
    """The best long-run average where row x of `bases` comes with chance `weights[x]`, as a linear programme.

    Its unknowns are how often each action is played after each history in each context.
    """
    from scipy.optimize import linprog

    histories = list(itertools.product(range(actions.n_actions), repeat=window))
    number = {history: place for place, history in enumerate(histories)}
    cells = list(itertools.product(histories, range(len(bases)), range(actions.n_actions)))
    rewards = [contextual_reward(actions, multipliers, bases[x], h, a) for h, x, a in cells]
    balance = np.zeros((len(histories) * len(bases), len(cells)))
    for column, (h, x, a) in enumerate(cells):
        balance[number[h] * len(bases) + x, column] += 1
        after = number[(*h, a)[1:] if window else ()]
        for other in range(len(bases)):
            balance[after * len(bases) + other, column] -= weights[other]
    equations = np.vstack((balance, np.ones(len(cells))))
    found = linprog(-np.array(rewards), A_eq=equations, b_eq=[0.0] * len(balance) + [1.0])
    assert found.success
    return float(-found.fun)
