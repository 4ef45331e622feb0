"""Random small instances: arms and overlapping paths, with and without exact ties."""

import numpy as np
from numpy.typing import NDArray

import routesim as rs


def random_actions(rng: np.random.Generator, n_actions: int) -> rs.ActionSet:
    """Arms, or paths over a few edges that overlap; every action differs."""
    if rng.random() < 0.5:
        return rs.ActionSet.arms(n_actions)
    paths: set[tuple[int, ...]] = set()
    while len(paths) < n_actions:
        size = int(rng.integers(1, 5))
        paths.add(tuple(sorted(rng.choice(6, size=size, replace=False).tolist())))
    return rs.ActionSet(sorted(paths))


def random_rewards(rng: np.random.Generator, actions: rs.ActionSet, window: int) -> NDArray[np.float64]:
    """Rewards in [0, 1] or negative travel times; every third table has few distinct values, so many ties."""
    shape = (actions.n_edges, window + 1)
    kind = rng.integers(3)
    if kind == 0:
        return rng.integers(0, 3, size=shape) / 2.0
    if kind == 1:
        return np.sort(rng.random(shape), axis=1)[:, ::-1].copy()
    return -np.cumsum(rng.random(shape) * 100, axis=1)
