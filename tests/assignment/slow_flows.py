"""Slow twins of assignment: every path listed, and a convex programme over their flows."""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.optimize import LinearConstraint, minimize

import routesim as rs

Path = tuple[int, ...]


def all_paths(network: rs.RoadNetwork, origin: int, goal: int) -> Iterator[Path]:
    """Every path without a node twice that passes no zone and takes no banned turn."""
    banned = {tuple(turn) for turn in network.bans}

    def onward(node: int, path: Path, seen: frozenset[int]) -> Iterator[Path]:
        if node == goal:
            yield path
            return
        if path and network.no_through[node]:
            return
        for edge in np.flatnonzero(network.tails == node).tolist():
            head = int(network.heads[edge])
            if head not in seen and (not path or (path[-1], edge) not in banned):
                yield from onward(head, (*path, edge), seen | {head})

    return onward(origin, (), frozenset({origin}))


def least_total(network: rs.RoadNetwork, paths: Sequence[Sequence[Path]], vehicles: Sequence[float]) -> float:
    """The least total travel time with every pair on these paths of its own."""
    rows = [path for mine in paths for path in mine]
    uses = np.array([[edge in path for edge in range(network.n_edges)] for path in rows], dtype=float)
    owner = np.repeat(np.arange(len(paths)), [len(mine) for mine in paths])
    sums = np.array([owner == pair for pair in range(len(paths))], dtype=float)
    roads = network

    def total(shares: np.ndarray) -> tuple[float, np.ndarray]:
        flows = (shares * np.asarray(vehicles)[owner]) @ uses
        rise = roads.bpr_alpha * (flows / roads.capacity_vph) ** roads.bpr_beta
        marginal = roads.free_flow_s * (1 + (1 + roads.bpr_beta) * rise)
        scale = sum(vehicles)
        return float(flows @ (roads.free_flow_s * (1 + rise))) / scale, (uses @ marginal) * np.asarray(vehicles)[
            owner
        ] / scale

    start = 1.0 / sums.sum(axis=1)[owner]
    found = minimize(
        total, start, jac=True, bounds=[(0, 1)] * len(rows), constraints=LinearConstraint(sums, 1, 1), method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )  # fmt: skip
    return float(found.fun) * sum(vehicles)
