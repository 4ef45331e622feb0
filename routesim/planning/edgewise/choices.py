"""What may be played in a round: a set of paths, or every path of a road graph.

Both serve one or several origin-destination pairs, and answer one question: which action has the largest sum
of edge values?
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from routesim.arrays import Floats, Ints, Ints32
from routesim.errors import InputError
from routesim.kernels import kernel
from routesim.roads.graph import Graph
from routesim.roads.shortest import NOWHERE, Workspace, find, no_path
from routesim.rounds.window import PathRows


class Choices(Protocol):
    """What the planner needs to know of an action set."""

    @property
    def n_edges(self) -> int:
        """Edges are numbered 0 to n_edges - 1."""

    @property
    def rates(self) -> Floats:
        """The share of rounds that serve each origin-destination pair; they sum to 1."""

    def best(self, values: Floats, pair: int) -> tuple[float, Ints32]:
        """Return the largest sum of edge values of a pair's actions, rounded up, and that action's edges."""


def _checked_rates(rates: Sequence[float] | Floats | None, n_pairs: int) -> Floats:
    shares = np.ones(n_pairs) if rates is None else np.asarray(rates, dtype=np.float64)
    if shares.shape != (n_pairs,) or not np.all(np.isfinite(shares)) or np.any(shares < 0) or shares.sum() <= 0:
        raise InputError(f"rates must be {n_pairs} non-negative numbers, one a pair and not all 0, got {rates!r}")
    return np.asarray(shares / shares.sum(), np.float64)


@dataclass(frozen=True)
class PathSet:
    """Actions as rows of a CSR matrix.

    The actions of pair k are `first_action[k]` to `first_action[k + 1] - 1`.
    """

    indptr: Ints
    indices: Ints32
    n_edges: int
    first_action: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    rates: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        n_actions = self.indptr.size - 1
        if n_actions < 1 or np.any(np.diff(self.indptr) < 1):
            raise InputError(f"a path set needs at least one action and every action an edge, got indptr {self.indptr}")
        if self.indices.size and (self.indices.min() < 0 or self.indices.max() >= self.n_edges):
            raise InputError(f"edges must lie in 0..{self.n_edges - 1}, got {self.indices.min()}..{self.indices.max()}")
        if self.first_action.size == 0:
            object.__setattr__(self, "first_action", np.array([0, n_actions], np.int64))
        n_pairs = self.first_action.size - 1
        if self.first_action[0] != 0 or self.first_action[-1] != n_actions or np.any(np.diff(self.first_action) < 1):
            raise InputError(f"first_action must rise at every pair from 0 to {n_actions}, got {self.first_action}")
        object.__setattr__(self, "rates", _checked_rates(self.rates if self.rates.size else None, n_pairs))

    @property
    def n_actions(self) -> int:
        """The number of actions of all pairs together."""
        return self.indptr.size - 1

    @property
    def rows(self) -> PathRows:
        """The edges of the actions, as kernels read them."""
        return PathRows(self.indptr, self.indices)

    def edges_of(self, action: int | Sequence[int]) -> Ints32:
        """Return the edges of an action, which is a number here."""
        number = int(action)  # type: ignore[arg-type]  # never a sequence in a path set
        return self.indices[self.indptr[number] : self.indptr[number + 1]]

    def choose(self, index: Floats, pair: int) -> int:
        """Return the action of a pair with the largest sum of indices."""
        low, high = self.first_action[pair], self.first_action[pair + 1]
        return int(best_of_paths(index, self.rows, low, high))

    def best(self, values: Floats, pair: int) -> tuple[float, Ints32]:
        """Return the largest sum of edge values of a pair's actions, rounded up, and that action's edges."""
        low, high = self.first_action[pair], self.first_action[pair + 1]
        terms = values[self.indices[self.indptr[low] : self.indptr[high]]]
        starts = self.indptr[low:high] - self.indptr[low]
        sums = np.add.reduceat(terms, starts)
        sizes = np.add.reduceat(np.abs(terms), starts)
        longest = int(np.diff(self.indptr[low : high + 1]).max())
        action = int(low + sums.argmax())
        return float((sums + longest * np.finfo(np.float64).eps * sizes).max()), self.edges_of(action)


@dataclass(frozen=True)
class RoadGraph:
    """Every path of a graph from `origins[k]` to `destinations[k]`."""

    graph: Graph
    origins: Ints
    destinations: Ints
    rates: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        n_pairs = self.origins.size
        if n_pairs < 1 or self.destinations.size != n_pairs:
            raise InputError(
                f"origins and destinations must pair up, got {n_pairs} and {self.destinations.size} of them"
            )
        if np.any(self.origins == self.destinations):
            raise InputError(f"origin and destination must differ, got node {self.origins[0]} twice")
        object.__setattr__(self, "rates", _checked_rates(self.rates if self.rates.size else None, n_pairs))

    @property
    def n_edges(self) -> int:
        """The number of edges."""
        return self.graph.n_edges

    def edges_of(self, action: int | Sequence[int]) -> Ints32:
        """Return the edges of an action, which is a sequence of them here."""
        return np.asarray(action, np.int32)

    def trips(self, pairs: Ints) -> Ints:
        """Return the origin and the destination of each entry of `pairs`."""
        return np.stack([self.origins[pairs], self.destinations[pairs]], axis=1).astype(np.int64)

    def choose(self, index: Floats, pair: int) -> tuple[int, ...]:
        """Return the path of a pair with the largest sum of indices, counting positive ones as 0."""
        return tuple(self.best(np.minimum(index, 0.0), pair)[1].tolist())

    def best(self, values: Floats, pair: int) -> tuple[float, Ints32]:
        """Return the largest sum of edge values of a pair's paths, rounded up, and the edges of that path."""
        origin, destination = int(self.origins[pair]), int(self.destinations[pair])
        work = Workspace.build(self.graph)  # for each call: threads may share a plan
        path = find(self.graph, -values, origin, destination, work.no_potential, NOWHERE, work)
        if path.size == 0:
            raise no_path(origin, destination)
        cost = float(work.distance[destination]) if self.graph.memory == 1 else float(-values[path].sum())
        return -cost * (1 - self.graph.n_places * float(np.finfo(np.float64).eps)), path


def path_rows(paths: Sequence[Ints32]) -> PathRows:
    """Return the edges of paths by their place in the list."""
    return PathRows(np.cumsum([0, *(path.size for path in paths)], dtype=np.int64), np.concatenate(paths))


@kernel
def best_of_paths(index: Floats, paths: PathRows, low: int, high: int) -> int:
    """The action among low..high - 1 with the largest sum; of sums equal up to rounding the first."""
    indptr, indices = paths.indptr, paths.indices
    best = low
    best_total = -np.inf
    for action in range(low, high):
        total = 0.0
        for slot in range(indptr[action], indptr[action + 1]):
            total += index[indices[slot]]
        if total > best_total + 1e-12 * abs(total):
            best_total = total
            best = action
    return best


@kernel
def add_path(played: Ints32, ends: Ints, now: int, path: Ints32) -> Ints32:
    """Write the path of round `now` behind those before it, from `ends[now]` to `ends[now + 1]`; return all of them.

    What is returned is a larger array where the path does not fit into the one given.
    """
    size = ends[now]
    ends[now + 1] = size + path.size
    while ends[now + 1] > played.size:
        larger = np.empty(2 * played.size, np.int32)
        larger[:size] = played[:size]
        played = larger
    played[size : ends[now + 1]] = path
    return played


def merge_edges(paths: PathSet, rewards: Floats) -> tuple[PathSet, Floats]:
    """Replace edges that the same actions contain by one edge with the sum of their rewards.

    They always share one history, so nothing changes for any policy, while a bound that prices them together
    is tighter than one that lets each of them keep a history of its own. Unused edges are left out.
    """
    rng = np.random.default_rng(0)
    tags = rng.integers(1, 2**62, size=(paths.n_actions, 2), dtype=np.int64)
    action_of = np.repeat(np.arange(paths.n_actions), np.diff(paths.indptr))
    signature = np.zeros((paths.n_edges, 2), np.int64)
    with np.errstate(over="ignore"):
        np.add.at(signature, paths.indices, tags[action_of])
    used = np.zeros(paths.n_edges, np.bool_)
    used[paths.indices] = True
    place = np.full(paths.n_edges, -1, np.int64)
    _, place[used] = np.unique(signature[used], axis=0, return_inverse=True)
    n_merged = int(place.max()) + 1
    merged_rewards = np.zeros((n_merged, rewards.shape[1]))
    np.add.at(merged_rewards, place[used], rewards[used])
    pairs = np.unique(action_of * n_merged + place[paths.indices])
    indptr = np.searchsorted(pairs // n_merged, np.arange(paths.n_actions + 1)).astype(np.int64)
    indices = (pairs % n_merged).astype(np.int32)
    return PathSet(indptr, indices, n_merged, paths.first_action, paths.rates), merged_rewards
