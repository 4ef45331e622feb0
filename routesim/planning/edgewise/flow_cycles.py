"""Cycles of a given period from whole flows: how often each road is used first, and then in which rounds.

Over a period, each edge earns by how many of the rounds use it and how these are spread. If every edge could
have its uses where they suit it best, in one burst or evenly, the best cycle would be a cheapest flow of
`period` units, which is whole by itself. Cutting the flow into paths and ordering them then comes as near to
that as the network lets edges agree.
"""

from itertools import pairwise

import numpy as np

from routesim.arrays import Floats, Ints, Ints32
from routesim.planning.edgewise.choices import PathSet, RoadGraph
from routesim.planning.edgewise.prices import find_prices
from routesim.planning.edgewise.sharing import FlowSharing, PathSharing
from routesim.planning.hull import raise_to_hull
from routesim.roads.drivable import banned_on
from routesim.roads.graph import Graph


class PeriodModel:
    """Edges that repeat with a period, their uses in one burst or spread evenly.

    A guess, and no proof of anything.
    """

    n_patterns = 0

    def __init__(self, period: int, window: int) -> None:
        self.period = period
        now, rows = np.arange(period), []
        for uses in range(period + 1):
            even = (now + 1) * uses // period - now * uses // period
            rows.append([_pattern((now < uses).astype(np.int64), window), _pattern(even, window)])
        self._patterns = np.array(rows)

    def curves(self, rewards: Floats) -> tuple[Floats, Floats]:
        """Return the curves over whole numbers of uses."""
        grid = np.arange(self.period + 1) / self.period
        heights = np.einsum("ec,upc->eup", rewards, self._patterns).max(axis=2)
        raise_to_hull(grid, heights)
        return grid, heights

    def best_averages(self, rewards: Floats, prices: Floats) -> Floats:
        """Return the best averages over whole numbers of uses."""
        grid, heights = self.curves(rewards)
        return np.asarray((heights - prices[:, None] * grid).max(axis=1, initial=0.0), np.float64)


def _pattern(cycle: Ints, window: int) -> Floats:
    """Return the share of rounds in which a cycle of uses is used at each count."""
    period = len(cycle)
    whole, rest = divmod(window, period)
    until = np.concatenate([[0], np.cumsum(np.concatenate([cycle, cycle]))])  # uses before each round
    used = np.flatnonzero(cycle)
    counts = whole * until[period] + until[used + period] - until[used + period - rest]
    pattern = np.zeros(window + 1)
    np.add.at(pattern, counts, 1 / period)
    return pattern


def flow_cycle(
    graph: RoadGraph, rewards: Floats, window: int, period: int, start_edges: Ints, precision: float
) -> list[Ints32] | None:
    """Return the paths of the best flow of `period` units, in no particular order.

    None if it is not whole.
    """
    sharing = FlowSharing(graph, start_edges, rewards.max(axis=1))
    find_prices(graph, rewards, PeriodModel(period, window), sharing, precision=precision)
    uses = np.rint(sharing.shares * period).astype(np.int64)
    return _cut_into_paths(graph, sharing.shared_arcs, uses, period)


def share_cycle(paths: PathSet, rewards: Floats, window: int, period: int, precision: float) -> Ints | None:
    """Return a period of actions by their best shares of it, rounded to whole rounds, equal ones together."""
    sharing = PathSharing(paths, [])
    find_prices(paths, rewards, PeriodModel(period, window), sharing, precision=precision)
    if sharing.shares.size == 0:
        return None
    first_of = dict[bytes, int]()  # actions with the same edges are one to the programme
    for action in range(paths.n_actions):
        first_of.setdefault(np.sort(paths.edges_of(action)).tobytes(), action)
    rounds = sharing.shares * period
    whole = np.floor(rounds + 1e-9).astype(np.int64)
    missing = period - int(whole.sum())
    whole[np.argsort(whole - rounds, kind="stable")[:missing]] += 1
    return np.repeat(np.array(list(first_of.values()), np.int64), whole)


def _cut_into_paths(graph: RoadGraph, arcs: Ints, uses: Ints, n_paths: int) -> list[Ints32] | None:
    """Return the paths that together use each arc so often; None if the numbers are not a flow of simple paths."""
    leaving: dict[int, list[int]] = {}
    for arc, count in zip(arcs.tolist(), uses.tolist(), strict=True):
        leaving.setdefault(int(graph.graph.tails[arc]), []).extend([arc] * count)
    paths = []
    for _ in range(n_paths):
        node, path = int(graph.origins[0]), list[int]()
        visited = {node: 0}
        while node != graph.destinations[0]:
            if not leaving.get(node):
                return None
            path.append(leaving[node].pop())
            node = int(graph.graph.heads[path[-1]])
            if node in visited:  # a circle: leave it out
                path = path[: visited[node]]
                visited = {seen: at for seen, at in visited.items() if at <= visited[node]}
            visited[node] = len(path)
        paths.append(np.array(path, np.int32))
        if len(graph.graph.roads):
            paths[-1] = graph.graph.roads[paths[-1]]
            if not _is_simple(graph.graph, paths[-1]):
                return None
    return paths


def exchanges(graph: Graph, one: Ints32, other: Ints32) -> list[tuple[Ints32, Ints32]]:
    """Return the pairs of paths that use the same edges as two paths, but part them differently.

    Between two nodes they share, the paths can exchange their ways; or, from a node on, all of the rest.
    """
    place = {int(node): at + 1 for at, node in enumerate(graph.heads[other])}
    cuts = [(0, 0)]
    for at, node in enumerate(graph.heads[one]):
        there = place.get(int(node), 0)
        if there > cuts[-1][1]:
            cuts.append((at + 1, there))
    pairs = []
    for (a, b), (c, d) in pairwise(cuts):
        if c - a == d - b and np.array_equal(one[a:c], other[b:d]):
            continue
        swapped = (
            np.concatenate([one[:a], other[b:d], one[c:]]),
            np.concatenate([other[:b], one[a:c], other[d:]]),
        )
        crossed = np.concatenate([one[:a], other[b:]]), np.concatenate([other[:b], one[a:]])
        pairs += [pair for pair in (swapped, crossed) if a + b > 0 or pair is swapped]
    return [pair for pair in pairs if _is_simple(graph, pair[0]) and _is_simple(graph, pair[1])]


def _is_simple(graph: Graph, path: Ints32) -> bool:
    if len(graph.roads):
        return np.unique(path).size == path.size and banned_on(graph, path) is None
    return bool(np.unique(graph.heads[path]).size == path.size and graph.tails[path[0]] not in graph.heads[path])
