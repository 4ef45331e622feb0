"""The policy that looks at present counts only: greedy, or greedy with a fixed toll on every edge.

It serves windows of any length. With no tolls it is what drivers do who see the roads as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from routesim.arrays import Floats, Ints, Ints32
from routesim.kernels import kernel
from routesim.planning.edgewise.choices import PathSet, RoadGraph, add_path, best_of_paths
from routesim.planning.hull import raise_to_hull
from routesim.roads.graph import Graph
from routesim.roads.shortest import Workspace, find
from routesim.rounds.window import PathRows, enter, leave


class _Tables(NamedTuple):
    """What the index of an edge at its count is read from."""

    rewards: Floats
    tolls: Floats
    window: int


@kernel
def _play_paths(
    paths: PathRows, first_action: Ints, tables: _Tables, pairs: Ints, actions: Ints, earned: Floats
) -> None:
    """Fill in the action and the reward of every round."""
    rewards, tolls, window = tables
    indptr, indices = paths.indptr, paths.indices
    counts = np.zeros(rewards.shape[0], np.int64)
    index = np.empty(rewards.shape[0])
    for now in range(pairs.size):
        for edge in range(index.size):
            index[edge] = rewards[edge, counts[edge]] + tolls[edge]
        pair = pairs[now]
        best = best_of_paths(index, paths, first_action[pair], first_action[pair + 1])
        actions[now] = best
        edges = indices[indptr[best] : indptr[best + 1]]
        earned[now] = 0.0
        for edge in edges:
            earned[now] += rewards[edge, counts[edge]]
        enter(counts, edges)
        if now >= window:
            gone = actions[now - window]
            leave(counts, indices[indptr[gone] : indptr[gone + 1]])


@kernel
def _play_graph(graph: Graph, work: Workspace, trips: Ints, tables: _Tables, ends: Ints, earned: Floats) -> Ints32:
    """Return the paths of all rounds one after the other; that of round t is `ends[t]` to `ends[t + 1]`.

    `trips` holds the origin and the destination of every round.
    """
    rewards, tolls, window = tables
    counts = np.zeros(rewards.shape[0], np.int64)
    costs = np.empty(rewards.shape[0])
    played = np.empty(64 * len(trips) + 64, np.int32)
    for now in range(len(trips)):
        for edge in range(costs.size):
            costs[edge] = max(0.0, -rewards[edge, counts[edge]] - tolls[edge])
        path = find(graph, costs, trips[now, 0], trips[now, 1], work.no_potential, work.nodes[:0], work)
        played = add_path(played, ends, now, path)
        earned[now] = 0.0
        for edge in path:
            earned[now] += rewards[edge, counts[edge]]
        enter(counts, path)
        if now >= window:
            leave(counts, played[ends[now - window] : ends[now - window + 1]])
    return played[: ends[-1]]


@dataclass(frozen=True)
class CountPolicy:
    """Every round the action with the largest sum of present rewards and tolls (which are at most 0)."""

    choices: PathSet | RoadGraph
    rewards: Floats
    tolls: Floats
    window: int

    def __call__(self, history: Sequence[int] | Sequence[Sequence[int]], pair: int = 0) -> int | tuple[int, ...]:
        """Return the action after `history`, for an origin-destination pair."""
        counts = np.zeros(self.choices.n_edges, np.int64)
        for action in history[max(0, len(history) - self.window) :]:
            enter(counts, self.choices.edges_of(action))
        index = self.rewards[np.arange(counts.size), counts] + self.tolls
        return self.choices.choose(index, pair)

    def play(self, pairs: Ints) -> tuple[Ints | list[Ints32], Floats]:
        """Play a round for each entry of `pairs` from empty roads; return the actions and their rewards."""
        earned = np.empty(pairs.size)
        tables, choices = _Tables(self.rewards, self.tolls, self.window), self.choices
        if isinstance(choices, PathSet):
            actions = np.empty(pairs.size, np.int64)
            _play_paths(choices.rows, choices.first_action, tables, pairs, actions, earned)
            return actions, earned
        ends = np.zeros(pairs.size + 1, np.int64)
        roads, work = choices.graph, Workspace.build(choices.graph)
        played = _play_graph(roads, work, choices.trips(pairs), tables, ends, earned)
        return [played[ends[now] : ends[now + 1]] for now in range(pairs.size)], earned


def even_use_curves(rewards: Floats) -> tuple[Floats, Floats]:
    """Return what edges earn at each share of rounds if their uses are spread as evenly as can be.

    With m uses in every window + 1 rounds, each use finds the m - 1 others. The curve is the concave hull of
    these points.
    """
    counts = rewards.shape[1]
    grid = np.arange(counts + 1) / counts
    heights = np.zeros((rewards.shape[0], counts + 1))
    heights[:, 1:] = grid[1:] * rewards
    raise_to_hull(grid, heights)
    return grid, heights


class EvenUseModel:
    """Edges used evenly: a guess from below, good for tolls and no proof of anything."""

    n_patterns = 0

    def curves(self, rewards: Floats) -> tuple[Floats, Floats]:
        """Return the curves of even use."""
        return even_use_curves(rewards)

    def best_averages(self, rewards: Floats, prices: Floats) -> Floats:
        """Return the best averages of even use."""
        grid, heights = even_use_curves(rewards)
        return np.asarray((heights - prices[:, None] * grid).max(axis=1), np.float64)


def tolls_at(rewards: Floats, prices: Floats) -> Floats:
    """Return what a use takes from the others where an edge is used as its price says.

    Price less mean reward.
    """
    grid, heights = even_use_curves(rewards)
    share = (heights - prices[:, None] * grid).argmax(axis=1)
    edges = np.arange(share.size)
    mean_reward = np.where(share > 0, heights[edges, share] / np.where(share > 0, grid[share], 1.0), prices)
    return np.minimum(0.0, prices - mean_reward)
