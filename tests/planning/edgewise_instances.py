"""Small random instances of every kind, and their exact optimum from joint histories."""

from dataclasses import dataclass
from itertools import pairwise

import numba
import numpy as np
from numpy.typing import NDArray

from routesim.planning.edgewise.choices import PathSet

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Edges = NDArray[np.int32]

FAMILIES = (
    "inverse",
    "reciprocal",
    "linear",
    "threshold",
    "constant",
    "random falling",
    "BPR time",
    "linear time",
)


@dataclass(frozen=True)
class Instance:
    paths: PathSet
    rewards: Floats
    window: int


def arms(n_arms: int) -> PathSet:
    return PathSet(np.arange(n_arms + 1, dtype=np.int64), np.arange(n_arms, dtype=np.int32), n_arms)


def grid_edges(side: int) -> list[tuple[int, int]]:
    """Two-way streets between the neighbours of a square grid."""
    return [
        (side * row + column, side * there[0] + there[1])
        for row in range(side)
        for column in range(side)
        for there in ((row, column + 1), (row + 1, column), (row, column - 1), (row - 1, column))
        if min(there) >= 0 and max(there) < side
    ]


def grid_paths(side: int) -> list[list[int]]:
    """Return every simple path from one corner of the grid to the opposite one, as edge numbers."""
    number = {ends: edge for edge, ends in enumerate(grid_edges(side))}
    found: list[list[int]] = []

    def extend(nodes: list[int]) -> None:
        if nodes[-1] == side * side - 1:
            found.append([number[step] for step in pairwise(nodes)])
            return
        for tail, head in number:
            if tail == nodes[-1] and head not in nodes:
                extend([*nodes, head])

    extend([0])
    return found


def path_set(paths: list[list[int]], n_edges: int) -> PathSet:
    indptr = np.concatenate([[0], np.cumsum([len(path) for path in paths])]).astype(np.int64)
    return PathSet(indptr, np.concatenate(paths).astype(np.int32), n_edges)


def reward_table(family: str, n_edges: int, window: int, rng: np.random.Generator) -> Floats:
    counts = np.arange(window + 1)
    base = rng.uniform(size=(n_edges, 1))
    time = rng.uniform(1.0, 5.0, size=(n_edges, 1))
    if family == "inverse":
        return base / np.maximum(1, counts)
    if family == "reciprocal":
        return base / (1 + counts)
    if family == "linear":
        return base * np.maximum(0.0, 1 - rng.uniform(0.5, 1.5) * counts / (window + 1))
    if family == "threshold":
        return base * np.where(counts <= rng.integers(0, max(1, window)), 1.0, rng.uniform(0.0, 0.5))
    if family == "constant":
        return np.repeat(base, window + 1, axis=1)
    if family == "random falling":
        return np.sort(rng.uniform(size=(n_edges, window + 1)), axis=1)[:, ::-1].copy()
    if family == "BPR time":
        capacity = rng.uniform(0.5, max(1.0, window / 2), size=(n_edges, 1))
        return np.asarray(-time * (1 + 0.15 * (counts / capacity) ** 4))
    if family == "linear time":
        return -time * (1 + rng.uniform(0.1, 1.0) * counts)
    if family == "any table":
        return rng.uniform(-1.0, 1.0, size=(n_edges, window + 1))
    raise ValueError(family)


def draw_instance(family: str, number: int, max_states: int, rng: np.random.Generator) -> Instance:
    """Windows go from 1 to 7 in turn; a third of the instances, and all times, are grids, the others arms."""
    window = 1 + number % 7
    n_actions = max(2, int(max_states ** (1 / window)))
    if family.endswith("time") or number % 3 == 2:
        routes = grid_paths(3)
        chosen = rng.permutation(len(routes))[: min(n_actions, len(routes))]
        paths = path_set([routes[route] for route in chosen], len(grid_edges(3)))
    else:
        paths = arms(min(n_actions, 10))
    return Instance(paths, reward_table(family, paths.n_edges, window, rng), window)


@numba.njit(cache=True)
def _exact(indptr: Ints, indices: Edges, rewards: Floats, window: int) -> tuple[float, float]:
    n_actions = indptr.size - 1
    n_states = n_actions**window
    older = n_states // n_actions
    reward = np.zeros((n_states, n_actions))
    counts = np.zeros(rewards.shape[0], np.int64)
    for state in range(n_states):
        counts[:] = 0
        rest = state
        for _ in range(window):
            action = rest % n_actions
            rest //= n_actions
            for slot in range(indptr[action], indptr[action + 1]):
                counts[indices[slot]] += 1
        for action in range(n_actions):
            for slot in range(indptr[action], indptr[action + 1]):
                reward[state, action] += rewards[indices[slot], counts[indices[slot]]]
    policy = np.zeros(n_states, np.int64)
    for state in range(n_states):
        policy[state] = np.argmax(reward[state])
    value = np.zeros(n_states)
    seen = np.empty(n_states, np.int64)
    queue = np.empty(n_states, np.int64)
    scale = np.abs(reward).max() + 1e-300
    lower = -np.inf
    upper = np.inf
    for _ in range(1000):
        seen[:] = 0
        best = -np.inf
        root = 0
        for start in range(n_states):
            state = start
            while seen[state] == 0:
                seen[state] = start + 1
                state = (state * n_actions + policy[state]) % n_states
            if seen[state] == start + 1:
                total = reward[state, policy[state]]
                length = 1
                step = (state * n_actions + policy[state]) % n_states
                while step != state:
                    total += reward[step, policy[step]]
                    length += 1
                    step = (step * n_actions + policy[step]) % n_states
                if total / length > best:
                    best = total / length
                    root = state
        lower = max(lower, best)
        seen[root] = -1
        value[root] = 0.0
        queue[0] = root
        size = 1
        for turn in range(2):
            head = 0
            while head < size:
                state = queue[head]
                head += 1
                action = state % n_actions
                for oldest in range(n_actions):
                    before = state // n_actions + oldest * older
                    if seen[before] != -1 and (turn == 1 or policy[before] == action):
                        policy[before] = action
                        value[before] = reward[before, action] - best + value[state]
                        seen[before] = -1
                        queue[size] = before
                        size += 1
        most = -np.inf
        changed = False
        for state in range(n_states):
            follow = (state * n_actions) % n_states
            for action in range(n_actions):
                gain = reward[state, action] + value[follow + action] - value[state]
                most = max(most, gain)
                if gain > best + 1e-11 * scale and gain > (
                    reward[state, policy[state]] + value[follow + policy[state]] - value[state] + 1e-12 * scale
                ):
                    policy[state] = action
                    changed = True
        upper = min(upper, most)
        if not changed:
            break
    return lower, upper


def exact_optimum(instance: Instance) -> tuple[float, float]:
    """Return the best average reward as an interval: what a cycle earns, and what no policy can exceed."""
    lower, upper = _exact(instance.paths.indptr, instance.paths.indices, instance.rewards, instance.window)
    return float(lower), float(upper)
