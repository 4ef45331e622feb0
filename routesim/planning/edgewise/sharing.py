"""Linear programmes that share the rounds among paths so that edges, each on its own curve, earn the most.

Their dual is a price per edge. Two forms: over known paths, for path sets and for several origin-destination
pairs; and over edges, for one pair on a graph, where flows combine into more paths than could be listed.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from routesim.arrays import Floats, Ints, Ints32
from routesim.planning.edgewise.choices import Choices, PathSet, RoadGraph
from routesim.roads.shortest import Workspace, tree

_MAX_NEW_EDGES = 1500
_MARGIN = 2.0


class Sharing(Protocol):
    """A programme restricted to the edges it knows, which grows where prices show that more would help."""

    @property
    def edges(self) -> Ints:
        """The edges known so far, ascending; the others keep their highest sensible price."""

    def solve(self, grid: Floats, heights: Floats, ceiling: Floats) -> tuple[float, Floats] | None:
        """Return the best value and a price for every known edge; None if the solver gave up."""

    def extend(self, prices: Floats) -> bool:
        """Get to know what is worth more at these prices than all that is known; say whether anything was."""


class PathSharing:
    """Rounds shared among known paths of each pair."""

    def __init__(self, choices: Choices, start_paths: list[tuple[int, Ints32]]) -> None:
        self._choices = choices
        self.shares: Floats = np.empty(0)
        self.paths: list[Ints32] = []
        self.pairs: list[int] = []
        self._known: set[tuple[int, bytes]] = set()
        for pair, path in start_paths:
            self._add(pair, path)
        if isinstance(choices, PathSet):
            for pair in range(choices.rates.size):
                for action in range(choices.first_action[pair], choices.first_action[pair + 1]):
                    self._add(pair, choices.edges_of(action))

    @property
    def edges(self) -> Ints:
        """The edges of the known paths."""
        return np.unique(np.concatenate(self.paths)).astype(np.int64)

    def extend(self, prices: Floats) -> bool:
        """Add the best path of each pair."""
        found = [self._add(pair, self._choices.best(prices, pair)[1]) for pair in range(self._choices.rates.size)]
        return any(found)

    def _add(self, pair: int, path: Ints32) -> bool:
        key = (pair, np.sort(path).tobytes())
        if key in self._known:
            return False
        self._known.add(key)
        self.paths.append(path)
        self.pairs.append(pair)
        return True

    def solve(self, grid: Floats, heights: Floats, ceiling: Floats) -> tuple[float, Floats] | None:
        """Solve over the known paths; edges on the same ones enter as one, with the sum of their curves."""
        rates = self._choices.rates
        edges = self.edges
        lengths = np.array([path.size for path in self.paths])
        path_of = np.repeat(np.arange(lengths.size), lengths)
        row_of = np.searchsorted(edges, np.concatenate(self.paths))
        tags = np.random.default_rng(0).integers(1, 2**62, size=lengths.size, dtype=np.int64)
        signature = np.zeros(edges.size, np.int64)
        np.add.at(signature, row_of, tags[path_of])
        _, first, group = np.unique(signature, return_index=True, return_inverse=True)
        n_groups = first.size
        summed = np.zeros((n_groups, grid.size))
        np.add.at(summed, group, heights)
        pieces = _pieces(grid, summed)
        n_pieces = pieces.row.size
        kept = np.isin(row_of, first)  # one representative edge a group
        group_of, path_of = group[row_of[kept]], path_of[kept]
        rows = np.concatenate([pieces.row, group_of, n_groups + np.array(self.pairs)])
        columns = np.concatenate([np.arange(n_pieces), n_pieces + path_of, n_pieces + np.arange(lengths.size)])
        entries = np.concatenate([-np.ones(n_pieces), np.ones(group_of.size + lengths.size)])
        matrix = coo_array((entries, (rows, columns)), shape=(n_groups + rates.size, n_pieces + lengths.size))
        result = solve_programme(
            np.concatenate([-pieces.slope, np.zeros(lengths.size)]),
            matrix,
            np.concatenate([np.zeros(n_groups), rates]),
            np.concatenate([pieces.width, np.ones(lengths.size)]),
        )
        if result is None:
            return None
        cost, solution, duals = result
        self.shares = solution[n_pieces:]
        share = _sums(group_of, solution[n_pieces + path_of], n_groups)
        # A group's price is split so that every edge sits at the same place between the slopes beside the
        # share.
        below, above = _slopes_beside(grid, heights, share[group], ceiling)
        sum_below = _sums(group, below, n_groups)
        spread = _sums(group, above, n_groups) - sum_below
        fraction = np.where(spread > 0, (duals[:n_groups] - sum_below) / np.where(spread > 0, spread, 1.0), 0.0)
        return -cost, below + np.clip(fraction, 0.0, 1.0)[group] * (above - below)


@dataclass(frozen=True)
class _Pieces:
    """The straight pieces of concave curves, row by row."""

    row: Ints
    slope: Floats
    width: Floats


class FlowSharing:
    """A flow of one unit from the origin to the destination of a graph, over known edges."""

    def __init__(
        self, graph: RoadGraph, start_edges: Ints, ceiling: Floats, start_prices: Floats | None = None
    ) -> None:
        self._choices, self._reverse = graph, graph.graph.reverse()
        self._edges = np.unique(start_edges).astype(np.int64)
        self.shared_arcs = self._edges
        self.shares: Floats = np.zeros(self._edges.size)
        self._path_cost = np.inf if start_prices is None else float(self._cheapest_through(start_prices).min())
        # What a path over each edge costs at the least, that edge itself left out.
        self._least_rest = self._cheapest_through(ceiling) + ceiling

    @property
    def edges(self) -> Ints:
        """The edges flows may use so far."""
        return self._edges

    def extend(self, prices: Floats) -> bool:
        """Add the edges of paths cheaper than what the flow pays at its own prices, the cheapest first."""
        through = self._cheapest_through(prices)
        through[self._edges] = np.inf
        better = np.flatnonzero(through < self._path_cost * (1 - 1e-6))
        if better.size > _MAX_NEW_EDGES:
            better = better[np.argsort(through[better], kind="stable")[:_MAX_NEW_EDGES]]
        self._edges = np.union1d(self._edges, better)
        return bool(better.size)

    def near(self, prices: Floats, slack: float) -> Ints:
        """Return the edges on paths within a relative slack of the cheapest: a start for the next search."""
        through = self._cheapest_through(prices)
        return np.flatnonzero(through <= (1 + slack) * through.min())

    def _cheapest_through(self, prices: Floats) -> Floats:
        """Return the cost of the cheapest walk through each edge from the origin to the destination."""
        graph, reverse, work = self._choices.graph, self._reverse, Workspace.build(self._reverse)
        costs, free = -prices, work.no_potential
        there, _ = tree(graph, costs, int(self._choices.origins[0]), free, np.inf, work)
        back, _ = tree(reverse, costs, int(self._choices.destinations[0]), free, np.inf, work)
        if not len(graph.roads):
            return np.asarray(there[graph.tails] - prices + back[graph.heads], np.float64)
        through = np.full(prices.size, np.inf)
        arcs, roads = graph.out_edges, graph.roads[graph.out_edges]
        np.minimum.at(through, roads, there[graph.tails[arcs]] - prices[roads] + back[graph.heads[arcs]])
        return through

    def solve(self, grid: Floats, heights: Floats, ceiling: Floats) -> tuple[float, Floats] | None:
        """Solve over the known edges; prices follow the differences of the node potentials."""
        graph, edges = self._choices.graph, self._edges
        pieces = _pieces(grid, heights)
        # No edge is used where a path over it would cost more than a path did before; the margin leaves room for
        # what that was off.
        cheap = self._least_rest[edges][pieces.row] - pieces.slope <= _MARGIN * self._path_cost
        row, slope, width = pieces.row[cheap], pieces.slope[cheap], pieces.width[cheap]
        if len(graph.roads):
            return self._solve_by_arc(grid, heights, ceiling, _Pieces(row, slope, width))
        ends = np.concatenate([graph.tails[edges], graph.heads[edges]])
        nodes, place = np.unique(ends, return_inverse=True)
        tail, head = place[: edges.size], place[edges.size :]
        columns = np.arange(row.size)
        matrix = coo_array(
            (
                np.concatenate([np.ones(row.size), -np.ones(row.size)]),
                (np.concatenate([tail[row], head[row]]), np.concatenate([columns, columns])),
            ),
            shape=(nodes.size, row.size),
        )
        supply = np.zeros(nodes.size)
        origin, destination = np.searchsorted(nodes, [self._choices.origins[0], self._choices.destinations[0]])
        supply[origin], supply[destination] = 1.0, -1.0
        result = solve_programme(-slope, matrix, supply, width)
        if result is None:
            return None
        cost, solution, potential = result
        self._path_cost = potential[origin] - potential[destination]
        share = _sums(row, solution, edges.size)
        self.shared_arcs, self.shares = edges, share
        below, above = _slopes_beside(grid, heights, share, ceiling)
        return -cost, np.clip(potential[head] - potential[tail], below, above)

    def _solve_by_arc(
        self, grid: Floats, heights: Floats, ceiling: Floats, pieces: _Pieces
    ) -> tuple[float, Floats] | None:
        """Solve where turns are banned: flows run on arcs, and those of an edge together are what it is used."""
        graph, edges = self._choices.graph, self._edges
        position = np.full(graph.n_edges, -1, dtype=np.int64)
        position[edges] = np.arange(edges.size)
        arcs = graph.out_edges[position[graph.roads[graph.out_edges]] >= 0].astype(np.int64)
        ends = np.concatenate([graph.tails[arcs], graph.heads[arcs]])
        places, number = np.unique(ends, return_inverse=True)
        columns, n_pieces = pieces.row.size + np.arange(arcs.size), pieces.row.size
        rows = [number[: arcs.size], number[arcs.size :], places.size + position[graph.roads[arcs]]]
        matrix = coo_array(
            (
                np.concatenate([np.ones(arcs.size), -np.ones(arcs.size), np.ones(arcs.size), -np.ones(n_pieces)]),
                (
                    np.concatenate([*rows, places.size + pieces.row]),
                    np.concatenate([columns, columns, columns, np.arange(n_pieces)]),
                ),
            ),
            shape=(places.size + edges.size, n_pieces + arcs.size),
        )
        right_side = np.zeros(places.size + edges.size)
        origin, destination = np.searchsorted(places, [self._choices.origins[0], self._choices.destinations[0]])
        right_side[origin], right_side[destination] = 1.0, -1.0
        costs = np.concatenate([-pieces.slope, np.zeros(arcs.size)])
        result = solve_programme(costs, matrix, right_side, np.concatenate([pieces.width, np.ones(arcs.size)]))
        if result is None:
            return None
        cost, solution, duals = result
        self._path_cost = duals[origin] - duals[destination]
        share = _sums(pieces.row, solution[:n_pieces], edges.size)
        self.shared_arcs, self.shares = arcs, solution[n_pieces:]
        below, above = _slopes_beside(grid, heights, share, ceiling)
        return -cost, np.clip(duals[places.size :], below, above)


def _sums(rows: Ints, weights: Floats, n_rows: int) -> Floats:
    return np.asarray(np.bincount(rows, weights=weights, minlength=n_rows), np.float64)


def _pieces(grid: Floats, heights: Floats) -> _Pieces:
    slopes = np.diff(heights, axis=1) / np.diff(grid)
    starts = np.ones(slopes.shape, np.bool_)
    size = np.abs(slopes).max(axis=1, keepdims=True)
    starts[:, 1:] = np.abs(np.diff(slopes, axis=1)) > 1e-11 * size
    row, start = np.nonzero(starts)
    end = np.append(start[1:], 0)
    end[np.append(row[1:] != row[:-1], True)] = grid.size - 1
    width = grid[end] - grid[start]
    return _Pieces(row, (heights[row, end] - heights[row, start]) / width, width)


def _slopes_beside(grid: Floats, heights: Floats, share: Floats, ceiling: Floats) -> tuple[Floats, Floats]:
    """Return the slopes right and left of each edge's share: the range in which its price may lie."""
    slopes = np.diff(heights, axis=1) / np.diff(grid)
    edges = np.arange(share.size)
    left = np.searchsorted(grid, share - 1e-9) - 1
    right = np.searchsorted(grid, share + 1e-9, side="right") - 1
    above = np.where(left >= 0, slopes[edges, np.maximum(left, 0)], ceiling)
    return slopes[edges, np.minimum(right, grid.size - 2)], above


def solve_programme(
    costs: Floats, matrix: coo_array, right_side: Floats, upper: Floats, *, by_interior_point: bool = False
) -> tuple[float, Floats, Floats] | None:
    """Minimise costs over matrix @ x = right_side, 0 <= x <= upper: the least cost, x and the duals."""
    scale = max(float(np.median(np.abs(costs[costs != 0]))) if np.any(costs) else 1.0, 1e-300)
    devex = {"simplex_dual_edge_weight_strategy": "devex"}  # half the time of the default on road graphs
    result = linprog(  # type: ignore[call-overload]  # the stubs do not know sparse matrices
        costs / scale,
        A_eq=matrix.tocsc(),
        b_eq=right_side,
        bounds=np.stack([np.zeros(upper.size), upper], axis=1),
        method="highs-ipm" if by_interior_point else "highs-ds",
        options={} if by_interior_point else devex,
    )
    if result.status != 0:
        return None
    return float(result.fun) * scale, np.asarray(result.x), np.asarray(result.eqlin.marginals) * scale
