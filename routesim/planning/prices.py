"""The price of using each edge: a bound on every policy from any prices, and the search for prices that make it tight."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import fsum, ulp

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array

from routesim.planning.choices import Choices, PathSet
from routesim.planning.edge_models import EdgeModel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Edges = NDArray[np.int32]


def certified_bound(choices: Choices, rewards: Floats, prices: Floats, model: EdgeModel) -> float:
    """Return an upper bound on the long-run average reward of every policy; any prices give one.

    Write each reward as price + (reward - price). Each round the prices collected are at most those of the pair's best action,
    and over time no edge's use history, whoever chose it, earns more than its own best average of reward - price.
    """
    collected = [rate * choices.best(prices, pair)[0] for pair, rate in enumerate(choices.rates)]
    idle = prices >= rewards.max(axis=1)  # a use of these never gains, so their best average is 0
    averages = model.best_averages(rewards[~idle], prices[~idle])
    total = fsum(collected) + fsum(averages)
    return total + 2 * len(collected) * ulp(max(map(abs, collected))) + ulp(total)


@dataclass
class PathPool:
    """The paths the price problem knows, by pair."""

    n_edges: int
    paths: list[Edges] = field(default_factory=list)
    pairs: list[int] = field(default_factory=list)
    _known: set[tuple[int, bytes]] = field(default_factory=set)

    def add(self, pair: int, path: Edges) -> bool:
        """Add a path of a pair; say whether it is new."""
        key = (pair, np.sort(path).tobytes())
        if key in self._known:
            return False
        self._known.add(key)
        self.paths.append(path)
        self.pairs.append(pair)
        return True


@dataclass(frozen=True)
class PriceSearch:
    """Prices, the proven bound they give, and what the next search can start from."""

    prices: Floats
    bound: float
    paths: list[Edges]
    pairs: list[int]
    rounds: int


def find_prices(
    choices: Choices,
    rewards: Floats,
    model: EdgeModel,
    *,
    start_prices: Floats | None = None,
    start_paths: Iterable[tuple[int, Edges]] = (),
    max_rounds: int = 100,
    precision: float = 2e-4,
) -> PriceSearch:
    """Minimise the bound over prices by column generation; both paths and use patterns are found when prices call for them.

    The linear programme shares rounds among the known paths to earn the most on the edges' curves; its dual is a price per edge.
    New prices are also tried halfway to the best ones so far, which keeps early, wild duals from wasting rounds.
    """
    ceiling = rewards.max(axis=1)  # above it an edge is idle whatever its price
    pool = PathPool(choices.n_edges)
    for pair, path in start_paths:
        pool.add(pair, path)
    if isinstance(choices, PathSet):
        for pair in range(choices.rates.size):
            for action in range(choices.first_action[pair], choices.first_action[pair + 1]):
                pool.add(pair, choices.edges_of(action))
    best = np.minimum(ceiling if start_prices is None else start_prices, ceiling)
    for pair in range(choices.rates.size):
        pool.add(pair, choices.best(best, pair)[1])
    certified = best
    certified_value = believed = certified_bound(choices, rewards, best, model)

    rounds = 0
    for rounds in range(1, max_rounds + 1):  # noqa: B007 - reported
        touched = np.unique(np.concatenate(pool.paths))
        grid, heights = model.curves(rewards[touched])
        solution = _share_rounds(pool, touched, grid, heights, ceiling[touched], choices.rates)
        if solution is None:
            break
        value, duals = solution
        found = False
        for weight in (1.0, 0.5):
            trial = ceiling.copy()
            trial[touched] = np.minimum(weight * duals + (1 - weight) * best[touched], ceiling[touched])
            bound = float((heights - trial[touched, None] * grid).max(axis=1).sum())
            for pair, rate in enumerate(choices.rates):
                collected, path = choices.best(trial, pair)
                found |= pool.add(pair, path)
                bound += rate * collected
            if bound < believed:
                best, believed = trial, bound
            if not found:
                break
        if found and believed - value > precision * abs(value):
            continue
        # The curves may still miss use patterns, so what they promise is believed only once it is certified.
        n_patterns = model.n_patterns
        believed = certified_bound(choices, rewards, best, model)
        if believed < certified_value:
            certified, certified_value = best, believed
        if certified_value - value <= precision * abs(value) or model.n_patterns == n_patterns:
            break
        best, believed = certified, certified_value
    return PriceSearch(certified, certified_value, pool.paths, pool.pairs, rounds)


def _share_rounds(
    pool: PathPool, touched: Ints, grid: Floats, heights: Floats, ceiling: Floats, rates: Floats
) -> tuple[float, Floats] | None:
    """Solve the linear programme over the known paths; return its value and a price for every touched edge.

    Edges that lie on the same known paths carry the same share of rounds, so they enter as one, with the sum of their curves.
    """
    place = np.full(pool.n_edges, -1, np.int64)
    place[touched] = np.arange(touched.size)
    lengths = np.array([path.size for path in pool.paths])
    path_of = np.repeat(np.arange(lengths.size), lengths)
    row_of = place[np.concatenate(pool.paths)]
    tags = np.random.default_rng(0).integers(1, 2**62, size=lengths.size, dtype=np.int64)
    signature = np.zeros(touched.size, np.int64)
    np.add.at(signature, row_of, tags[path_of])
    _, first, group = np.unique(signature, return_index=True, return_inverse=True)
    n_groups = first.size
    summed = np.zeros((n_groups, grid.size))
    np.add.at(summed, group, heights)
    scale = max(float(np.abs(summed).max()), 1e-300)

    slopes = np.diff(summed, axis=1) / (np.diff(grid) * scale)
    bend = np.ones(slopes.shape, np.bool_)  # a piece starts where the slope changes
    bend[:, 1:] = np.abs(np.diff(slopes, axis=1)) > 1e-12 * np.maximum(1e-3, np.abs(slopes[:, 1:]))
    piece_row, piece_start = np.nonzero(bend)
    piece_end = np.append(piece_start[1:], 0)
    piece_end[np.append(piece_row[1:] != piece_row[:-1], True)] = grid.size - 1
    piece_slope = (summed[piece_row, piece_end] - summed[piece_row, piece_start]) / (
        (grid[piece_end] - grid[piece_start]) * scale
    )
    n_pieces = piece_row.size
    keep = np.isin(row_of, first)  # one representative edge a group
    rows = np.concatenate([piece_row, group[row_of[keep]], n_groups + np.array(pool.pairs)])
    columns = np.concatenate([np.arange(n_pieces), n_pieces + path_of[keep], n_pieces + np.arange(lengths.size)])
    entries = np.concatenate([-np.ones(n_pieces), np.ones(int(keep.sum())), np.ones(lengths.size)])
    matrix = coo_array((entries, (rows, columns)), shape=(n_groups + rates.size, n_pieces + lengths.size)).tocsc()
    upper = np.concatenate([grid[piece_end] - grid[piece_start], np.ones(lengths.size)])
    result = linprog(
        np.concatenate([-piece_slope, np.zeros(lengths.size)]),
        A_eq=matrix,
        b_eq=np.concatenate([np.zeros(n_groups), rates]),
        bounds=np.stack([np.zeros(upper.size), upper], axis=1),
        method="highs-ds",
    )
    if result.status != 0:
        return None
    at_rest = float(summed[:, 0].sum())
    group_price = np.asarray(result.eqlin.marginals)[:n_groups] * scale
    share = np.bincount(group[row_of[keep]], weights=result.x[n_pieces + path_of[keep]], minlength=n_groups)

    # A group's price is split so that every edge sits at the same place between the slopes left and right of the share.
    edge_slopes = np.diff(heights, axis=1) / np.diff(grid)
    left = np.searchsorted(grid, share - 1e-9)[group] - 1
    right = np.searchsorted(grid, share + 1e-9, side="right")[group] - 1
    edges = np.arange(touched.size)
    above = np.where(left >= 0, edge_slopes[edges, np.maximum(left, 0)], ceiling)
    below = np.where(right < grid.size - 1, edge_slopes[edges, np.minimum(right, grid.size - 2)], edge_slopes[:, -1])
    sum_above = np.bincount(group, weights=above, minlength=n_groups)
    sum_below = np.bincount(group, weights=below, minlength=n_groups)
    spread = sum_above - sum_below
    fraction = np.where(spread > 0, (group_price - sum_below) / np.where(spread > 0, spread, 1.0), 0.0)
    return -result.fun * scale + at_rest, below + np.clip(fraction, 0.0, 1.0)[group] * (above - below)
