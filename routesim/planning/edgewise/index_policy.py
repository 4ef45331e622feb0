"""The index policy: every round the action with the most reward now, less the tolls for those who follow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from routesim.arrays import Floats, Ints, Ints32
from routesim.kernels import kernel
from routesim.planning.edgewise.choices import PathSet, RoadGraph, add_path, best_of_paths
from routesim.planning.edgewise.single_edge import UseHistories, toll_values
from routesim.roads.graph import Graph
from routesim.roads.shortest import Workspace, find
from routesim.rounds.window import PathRows


@dataclass(frozen=True)
class EdgeValues:
    """Value of every use history of the edges that carry tolls; `row[edge]` is -1 for those that do not.

    They follow from one price an edge, or from prices by pair.
    """

    window: UseHistories
    row: Ints
    values: Floats
    by_pair: bool = False

    @classmethod
    def at_prices(cls, rewards: Floats, prices: Floats, window: UseHistories) -> "EdgeValues":
        """Solve the edges whose price is below some reward of theirs.

        The others are better idle, at no toll.
        """
        tolled = np.flatnonzero(prices < rewards.max(axis=1))
        row = np.full(rewards.shape[0], -1, np.int64)
        row[tolled] = np.arange(tolled.size)
        values = np.empty((tolled.size, window.labels.size))
        # Four thousand histories and more: fewer sweeps, since indices settle long before values do.
        sweeps, precision = (400, 1e-7) if window.length < 12 else (60, 1e-4)
        toll_values(rewards[tolled], prices[tolled], window.labels, sweeps, precision, values)
        return cls(window, row, values)


class _IndexTables(NamedTuple):
    """What the index of an edge in a use history is read from: rewards by label, and the values that make tolls."""

    rewards: Floats
    labels: Ints
    row: Ints
    values: Floats


@kernel
def _indices(tables: _IndexTables, histories: Ints, index: Floats) -> None:
    row, values, mask = tables.row, tables.values, tables.labels.size - 1
    for edge in range(index.size):
        history = histories[edge]
        index[edge] = tables.rewards[edge, tables.labels[history]]
        if row[edge] >= 0:
            unused = (history << 1) & mask
            index[edge] += values[row[edge], unused | 1] - values[row[edge], unused]


@kernel
def _advance(histories: Ints, tables: _IndexTables, used: Ints32) -> float:
    """Collect the rewards of the used edges and move every history on by a round."""
    mask = tables.labels.size - 1
    earned = 0.0
    for edge in used:
        earned += tables.rewards[edge, tables.labels[histories[edge]]]
    for edge in range(histories.size):
        histories[edge] = (histories[edge] << 1) & mask
    for edge in used:
        histories[edge] |= 1
    return earned


@kernel
def _play_paths(
    paths: PathRows,
    first_action: Ints,
    tables: _IndexTables,
    pairs: Ints,
    histories: Ints,
    actions: Ints,
    earned: Floats,
) -> None:
    """Fill in the action and the reward of every round; the use histories move on."""
    index = np.empty(histories.size)
    for now in range(pairs.size):
        _indices(tables, histories, index)
        pair = pairs[now]
        best = best_of_paths(index, paths, first_action[pair], first_action[pair + 1])
        actions[now] = best
        earned[now] = _advance(histories, tables, paths.indices[paths.indptr[best] : paths.indptr[best + 1]])


@kernel
def _play_graph(
    graph: Graph, work: Workspace, trips: Ints, tables: _IndexTables, histories: Ints, ends: Ints, earned: Floats
) -> Ints32:
    """Return the paths of all rounds one after the other; that of round t is `ends[t]` to `ends[t + 1]`.

    `trips` holds the origin and the destination of every round; the use histories move on.
    """
    index = np.empty(histories.size)
    played = np.empty(64 * len(trips) + 64, np.int32)
    for now in range(len(trips)):
        _indices(tables, histories, index)
        for edge in range(index.size):
            index[edge] = max(0.0, -index[edge])
        path = find(graph, index, trips[now, 0], trips[now, 1], work.no_potential, work.nodes[:0], work)
        played = add_path(played, ends, now, path)
        earned[now] = _advance(histories, tables, path)
    return played[: ends[-1]]


@dataclass(frozen=True)
class IndexPolicy:
    """A stationary policy over a path set (actions are numbers) or a graph (actions are tuples of edges)."""

    choices: PathSet | RoadGraph
    rewards: Floats
    edge_values: EdgeValues

    @property
    def _tables(self) -> _IndexTables:
        values = self.edge_values
        return _IndexTables(self.rewards, values.window.labels, values.row, values.values)

    def indices(self, histories: Ints) -> Floats:
        """Return the index of every edge in its use history."""
        index = np.empty(self.choices.n_edges)
        _indices(self._tables, histories, index)
        return index

    def use_histories(self, history: Sequence[int] | Sequence[Sequence[int]]) -> Ints:
        """Return the use history of every edge after the actions of `history`, oldest first."""
        histories = np.zeros(self.choices.n_edges, np.int64)
        mask = self.edge_values.window.labels.size - 1
        for action in history:
            histories = (histories << 1) & mask
            histories[self.choices.edges_of(action)] |= 1
        return histories

    def __call__(self, history: Sequence[int] | Sequence[Sequence[int]], pair: int = 0) -> int | tuple[int, ...]:
        """Return the action after `history`, for an origin-destination pair."""
        return self.choices.choose(self.indices(self.use_histories(history)), pair)

    def play(self, pairs: Ints, histories: Ints | None = None) -> tuple[Ints | list[Ints32], Floats]:
        """Play a round for each entry of `pairs`, from empty roads or given use histories, which move on.

        Returns the actions (numbers for a path set, edges for a graph) and the reward of each round.
        """
        state = np.zeros(self.choices.n_edges, np.int64) if histories is None else histories
        earned = np.empty(pairs.size)
        tables, choices = self._tables, self.choices
        if isinstance(choices, PathSet):
            actions = np.empty(pairs.size, np.int64)
            _play_paths(choices.rows, choices.first_action, tables, pairs, state, actions, earned)
            return actions, earned
        ends = np.zeros(pairs.size + 1, np.int64)
        roads, work = choices.graph, Workspace.build(choices.graph)
        played = _play_graph(roads, work, choices.trips(pairs), tables, state, ends, earned)
        return [played[ends[now] : ends[now + 1]] for now in range(pairs.size)], earned
