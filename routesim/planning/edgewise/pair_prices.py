"""A price of each edge for each origin-destination pair: a close bound where several pairs share the roads.

With one price an edge, an edge may place its uses as if it knew which pair comes next. With a price for each pair it
has to agree with the paths on how often each of them uses it. The search is a linear programme over known paths and
over the ways of use that the edges chose at earlier prices; its duals are the next prices, kept in a box around the
best so far, which grows where the programme can be believed and shrinks where it cannot.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import coo_array

from routesim.arrays import Bools, Floats, Ints, Ints32
from routesim.planning.edgewise.choices import PathSet, RoadGraph, merge_edges, merged_places, path_rows
from routesim.planning.edgewise.count_policy import CountPolicy
from routesim.planning.edgewise.index_policy import EdgeValues, IndexPolicy
from routesim.planning.edgewise.kinds import bound_of_kinds, bound_uses, gains_of_histories, improve_values, uses_at
from routesim.planning.edgewise.long_windows import LONGEST_WINDOW
from routesim.planning.edgewise.potential_search import best_potential
from routesim.planning.edgewise.potentials import most_gained, moves_of
from routesim.planning.edgewise.sharing import solve_programme
from routesim.planning.edgewise.single_edge import plain_window

_ROUNDS = 40
_GRAPH_ROUNDS = 12
_LONGEST_WINDOW = 12
_MOST_HISTORIES = 1 << 21
_DRIVEN, _DRIVEN_KEPT = 60, 24  # rounds driven a pair to begin with, and the paths kept of them
_ROUNDS_A_GRAPH_ROUND = 12
_MOST_COLUMNS = 30  # ways of use that are kept of each edge
_CLOSE = 5e-4  # of the bound: what the programme still hopes for when the search ends
_SWEEPS, _PRECISION = 400, 1e-5
_POTENTIAL_PRECISION = 1e-5
_MOST_POTENTIALS = 300_000  # edges times squared rounds of one price, and of all prices tried: a minute
_FINAL_SWEEPS, _FINAL_PRECISION = 4_000, 1e-7


@dataclass(frozen=True)
class PairPrices:
    """Prices of edges by pair, the values of use histories of the edges in `edges`, and the bound they prove."""

    prices: Floats
    edges: Ints
    values: Floats
    bound: float


def fits_pairs(n_edges: int, window: int) -> bool:
    """Whether prices by pair are sought over use histories: where those of all edges are not too many."""
    return window <= _LONGEST_WINDOW and n_edges << max(1, window) <= _MOST_HISTORIES


def fits_potentials(n_edges: int, window: int) -> bool:
    """Whether they are sought over potentials, which cost some milliseconds an edge, price and squared round."""
    return window <= LONGEST_WINDOW and n_edges * window**2 <= _MOST_POTENTIALS


def known_edges(known: list[tuple[int, Ints32]]) -> int:
    """Return how many edges known paths use."""
    return int(np.unique(np.concatenate([path for _, path in known])).size)


def driven_paths(policy: IndexPolicy | CountPolicy, rates: Floats, seed: int) -> list[tuple[int, Ints32]]:
    """Return the paths of each pair that a policy on a graph uses most, with the pair."""
    pairs = np.random.default_rng(seed).choice(rates.size, size=_DRIVEN * rates.size, p=rates).astype(np.int64)
    uses = Counter((int(pair), path.tobytes()) for pair, path in zip(pairs, policy.play(pairs)[0], strict=True))
    most: dict[int, list[Ints32]] = {}
    for (pair, path), _ in uses.most_common():
        most.setdefault(pair, []).append(np.frombuffer(path, np.int32))
    return [(pair, path) for pair, paths in sorted(most.items()) for path in paths[:_DRIVEN_KEPT]]


def values_at(rewards: Floats, prices: Floats, rates: Floats, window: int) -> Floats:
    """Return the values of use histories at prices by pair: value iteration from zero, the same for the same prices."""
    values = np.zeros((len(rewards), 1 << window))
    improve_values(rewards, prices, rates, plain_window(window).labels, _FINAL_SWEEPS, _FINAL_PRECISION, values)
    return values


def edge_values(n_edges: int, edges: Ints, values: Floats) -> EdgeValues:
    """Return the values of some edges out of all as tolls are read from them."""
    row = np.full(n_edges, -1, np.int64)
    row[edges] = np.arange(edges.size)
    return EdgeValues(plain_window(int(values.shape[1]).bit_length() - 1), row, values, by_pair=True)


def values_by_pair(rewards: Floats, prices: Floats, rates: Floats) -> EdgeValues:
    """Return the values that follow from prices by pair, as they were when the prices were found."""
    edges = tolled_by_pair(rewards, prices)
    return edge_values(len(rewards), edges, values_at(rewards[edges], prices[edges], rates, rewards.shape[1] - 1))


def find_pair_prices(paths: PathSet, rewards: Floats, window: int, start: Floats) -> PairPrices:
    """Lower the bound of the prices `start` (one an edge, or one for each pair) over a path set."""
    every, begin = np.arange(len(rewards)), _by_pair(start, paths.rates.size)
    if fits_pairs(len(rewards), window):
        edges = _HistoryEdges(rewards, paths.rates, window)
        prices, _ = _PairSearch(paths, rewards, edges, *bound_uses(paths)).improve(begin)
        return _proven(paths, rewards, prices, window)
    rounds = min(_ROUNDS, int(_MOST_POTENTIALS / (len(rewards) * window**2)))
    search = _PairSearch(paths, rewards, PotentialEdges(rewards, paths.rates), *bound_uses(paths))
    prices, bound = search.improve(begin, rounds)
    return PairPrices(prices, every, np.empty((0, 0)), bound)


def find_pair_prices_on_graph(
    graph: RoadGraph, rewards: Floats, window: int, start: Floats, known: list[tuple[int, Ints32]]
) -> tuple[PairPrices, list[tuple[int, Ints32]]]:
    """Do the same over every path of a graph, beginning with some known paths; return those found, too.

    Prices are sought over the known paths, with edges that the same ones use merged. Each edge gets the part of a
    merged price that stands where the whole does between no congestion and the most, or the price of a use of the empty
    edge where no known path of the pair goes. A shortest path a pair at these prices is new, or all is done.
    """
    n_pairs, ceiling = graph.rates.size, rewards.max(axis=1)
    fall = rewards[:, 0] - rewards[:, -1]
    best: PairPrices | None = None
    prices = _by_pair(start, n_pairs)
    found = {(pair, path.tobytes()): path for pair, path in known}
    for _ in range(_GRAPH_ROUNDS):
        ordered = sorted(found, key=lambda key: key[0])
        listed = path_rows([found[key] for key in ordered])
        first = np.searchsorted([pair for pair, _ in ordered], np.arange(n_pairs + 1))
        paths = PathSet(listed.indptr, listed.indices, graph.n_edges, first.astype(np.int64), graph.rates)
        place = merged_places(paths)
        used = np.flatnonzero(place >= 0)
        merged, tables = merge_edges(paths, rewards)
        begin = np.zeros((merged.n_edges, n_pairs))
        np.add.at(begin, place[used], prices[used])
        barred = bound_uses(merged)[1]
        search = _PairSearch(merged, tables, _HistoryEdges(tables, graph.rates, window), np.zeros_like(barred), barred)
        together, _ = search.improve(begin, _ROUNDS_A_GRAPH_ROUND)
        falls = tables[:, 0] - tables[:, -1]
        part = np.divide(fall[used], falls[place[used]], out=np.zeros(used.size), where=falls[place[used]] > 0)
        below = np.where(barred, 0.0, tables[:, :1] - together)[place[used]]
        prices = np.repeat(ceiling[:, None], n_pairs, axis=1)
        prices[used] = np.minimum(prices[used], rewards[used, :1] - part[:, None] * below)
        proven = _proven(graph, rewards, prices, window)
        if best is None or proven.bound < best.bound:
            best = proven
        hoped = 0.0
        for pair, rate in enumerate(graph.rates):
            worth, path = graph.best(prices[:, pair], pair)
            rows = range(merged.first_action[pair], merged.first_action[pair + 1])
            most = max(float(prices[paths.edges_of(row), pair].sum()) for row in rows)
            if (pair, path.tobytes()) not in found:
                hoped += rate * (worth - most)
                found[pair, path.tobytes()] = path
        if hoped <= _CLOSE * abs(best.bound):
            break
    assert best is not None  # noqa: S101 - there is at least one round
    return best, [(pair, path) for (pair, _), path in found.items()]


def _by_pair(start: Floats, n_pairs: int) -> Floats:
    return start if start.ndim == 2 else np.repeat(start[:, None], n_pairs, axis=1)


def _proven(choices: PathSet | RoadGraph, rewards: Floats, prices: Floats, window: int) -> PairPrices:
    edges = tolled_by_pair(rewards, prices)
    values = values_at(rewards[edges], prices[edges], choices.rates, window)
    gains = gains_of_histories(rewards[edges], prices[edges], choices.rates, values)
    return PairPrices(prices, edges, values, bound_of_kinds(choices, rewards, prices, edges, gains))


def tolled_by_pair(rewards: Floats, prices: Floats) -> Ints:
    """Return the edges of which some use gains something at its price."""
    return np.flatnonzero((prices < rewards.max(axis=1, keepdims=True)).any(axis=1))


class _Edges(Protocol):
    """What edges make of prices by pair."""

    def at(self, prices: Floats) -> tuple[Floats, Floats]:
        """Return what each edge alone can keep at most, and how often each pair uses it, with its mean reward."""


class _HistoryEdges:
    """Edges over all their use histories, whose values are improved from one price to the next."""

    def __init__(self, rewards: Floats, rates: Floats, window: int) -> None:
        self._rewards, self._rates = rewards, rates
        self._labels = plain_window(window).labels
        self._values = np.zeros((len(rewards), self._labels.size))
        self._chances = np.zeros_like(self._values)
        self._chances[:, 0] = 1.0

    def at(self, prices: Floats) -> tuple[Floats, Floats]:
        """Return what each edge alone can keep at most, and how often each pair uses it, with its mean reward."""
        rewards, rates, values = self._rewards, self._rates, self._values
        improve_values(rewards, prices, rates, self._labels, _SWEEPS, _PRECISION, values)
        uses = np.empty((len(prices), rates.size + 1))
        uses_at(rewards, prices, rates, self._labels, values, self._chances, uses)
        return gains_of_histories(rewards, prices, rates, values), uses


class PotentialEdges:
    """Edges of any window, by the best potential of each."""

    def __init__(self, rewards: Floats, rates: Floats) -> None:
        self._rewards, self._rates = rewards, rates

    def at(self, prices: Floats) -> tuple[Floats, Floats]:
        """Return what each edge alone can keep at most, and how often each pair uses it, with its mean reward."""
        gains, uses = np.zeros(len(prices)), np.zeros((len(prices), self._rates.size + 1))
        for edge, (table, price) in enumerate(zip(self._rewards, prices, strict=True)):
            if price.min() < table.max():
                gains[edge], uses[edge] = self._one(table, price)
        return gains, uses

    def _one(self, table: Floats, price: Floats) -> tuple[float, Floats]:
        rates, window = self._rates, table.size - 1
        finite, forced = price[np.isfinite(price)], bool(np.any(price == -np.inf))
        most, eased = window, table
        if np.all(table[1:] <= table[:-1]):
            # Counts that nobody would drive up to on purpose decide nothing, but their scale would decide all.
            usual = int(np.ceil(window * rates[price < np.inf].sum())) if forced else 0
            size = 8 * float(max(abs(table[0]), abs(table[usual]), np.abs(finite).max(initial=0.0)))
            eased = np.maximum(table, -size)
            if not forced:
                most = min(window, int(np.count_nonzero(table > finite.min())))
        size = float(max(np.abs(eased).max(), np.abs(finite).max(initial=0.0)))
        values, often = best_potential(moves_of(eased / size, price / size, rates, most), window, _POTENTIAL_PRECISION)
        moves = moves_of(table, price, rates, most)
        kinds = np.array([moves.used >= share - 1e-12 for share in _shares_in_order(price, rates)])
        uses = np.empty(rates.size + 1)
        uses[:-1] = rates * (kinds * often).sum(axis=1)
        paid = float(uses[:-1] @ np.where(np.isfinite(price), price, 0.0))
        uses[-1] = often @ moves.reward + paid
        return most_gained(values * size, moves), uses


def _shares_in_order(price: Floats, rates: Floats) -> Floats:
    """Return for each kind the share of rounds in which a use comes if the kinds up to it, the cheapest first, do."""
    order = np.argsort(price, kind="stable")
    shares = np.full(price.size, np.inf)
    shares[order] = np.cumsum(rates[order])
    shares[price == np.inf] = np.inf
    return shares


class _PairSearch:
    """The programme over paths and ways of use; `forced` and `barred` say what needs no price."""

    def __init__(self, paths: PathSet, rewards: Floats, edges: _Edges, forced: Bools, barred: Bools) -> None:
        self._paths, self._rewards, self._rates, self._edges = paths, rewards, paths.rates, edges
        self._fixed = np.where(forced, -np.inf, np.where(barred, np.inf, 0.0))
        self._free = np.isfinite(self._fixed)
        self._size = np.maximum(np.abs(rewards[:, :1]), np.abs(rewards).max(axis=1, keepdims=True) / 4)
        self._columns: list[Floats] = []  # a row an edge: how often each pair uses it, and what it earns
        pair_of = np.repeat(np.arange(self._rates.size), np.diff(paths.first_action))
        self._action = np.repeat(np.arange(paths.n_actions), np.diff(paths.indptr))
        self._pair_of, self._pair = pair_of, pair_of[self._action]

    def improve(self, start: Floats, rounds: int = _ROUNDS) -> tuple[Floats, float]:
        """Return the best prices found from these, and their bound."""
        best = np.where(self._free, start, self._fixed)
        bound = self._try(best)
        box = 0.5
        for _ in range(rounds):
            solution = self._solve(best, box)
            if solution is None:
                break
            believed, trial = solution
            hoped = bound - believed
            if hoped <= _CLOSE * abs(bound):
                break
            reached = self._try(trial)
            gained = bound - reached
            if gained > 0.0:
                best, bound = trial, reached
                box *= 1.5 if gained > 0.3 * hoped else 1.0
            else:
                box *= 0.5
            if box < 1e-4:
                break
        return best, bound

    def _try(self, prices: Floats) -> float:
        """Return the bound of prices; keep how the edges are used at them."""
        gains, uses = self._edges.at(prices)
        self._columns = [*self._columns[-_MOST_COLUMNS:], uses]
        return bound_of_kinds(self._paths, self._rewards, prices, np.arange(len(prices)), gains)

    def _solve(self, best: Floats, box: float) -> tuple[float, Floats] | None:
        """Return what the programme believes the bound of its prices to be, and these prices."""
        edges, kinds = np.nonzero(self._free)
        n_rows, n_edges = edges.size, len(best)
        row = np.full(best.shape, -1)
        row[edges, kinds] = np.arange(n_rows)
        uses = np.concatenate(self._columns)
        edge_of = np.tile(np.arange(n_edges), len(self._columns))
        column, kind = np.nonzero((uses[:, :-1] > 0) & self._free[edge_of])
        n_uses = edge_of.size
        first_path = n_uses
        first_more = first_path + self._pair_of.size
        priced = row[self._paths.indices, self._pair] >= 0
        size = self._size[edges, 0]
        around = best[edges, kinds]
        prices_at = np.arange(n_rows)
        blocks = [
            (row[edge_of[column], kind], column, -uses[column, kind]),
            (n_rows + edge_of, np.arange(n_uses), np.ones(n_uses)),
            (row[self._paths.indices, self._pair][priced], first_path + self._action[priced], np.ones(priced.sum())),
            (n_rows + n_edges + self._pair_of, first_path + np.arange(self._pair_of.size), np.ones(self._pair_of.size)),
            (prices_at, first_more + prices_at, np.ones(n_rows)),
            (prices_at, first_more + n_rows + prices_at, -np.ones(n_rows)),
        ]
        rows, columns, entries = (np.concatenate([block[side] for block in blocks]) for side in range(3))
        n_columns = first_more + 2 * n_rows
        result = solve_programme(
            np.concatenate([-uses[:, -1], np.zeros(self._pair_of.size), around + box * size, -(around - box * size)]),
            coo_array((entries, (rows, columns)), shape=(n_rows + n_edges + self._rates.size, n_columns)),
            np.concatenate([np.zeros(n_rows), np.ones(n_edges), self._rates]),
            np.full(n_columns, np.inf),
        )
        if result is None:
            return None
        cost, _, duals = result
        prices = self._fixed.copy()
        prices[edges, kinds] = duals[:n_rows]
        return -cost, prices
