"""Numbers of actions: every action that can be played has one, and its edges are a row of two arrays.

A list of paths is numbered from the start. Of a graph's paths, too many to list, each gets its number when it is first
played. Kernels and records work with numbers; people and policies with actions.
"""

from collections.abc import Sequence
from operator import index
from typing import Protocol, TypeAlias

import numpy as np

from routesim.errors import InputError, ResultsError
from routesim.roads.drivable import banned_on, said
from routesim.roads.graph import Graph
from routesim.rounds.window import PathRows
from routesim.storage.state import State, named, pack_rows, unpack_rows

Action: TypeAlias = int | tuple[int, ...]
Path: TypeAlias = tuple[int, ...]


class Numbering(Protocol):
    """The numbered actions of one action set; `rows` are replaced when they grow."""

    rows: PathRows
    longest: int

    @property
    def paths(self) -> Sequence[Path]:
        """The paths by their numbers."""

    def number(self, action: Action, pair: int = 0) -> int:
        """Return the number of an action of this origin-destination pair, or say why there is no such action."""

    def action(self, number: int) -> Action:
        """Return the action with this number."""

    def history(self, numbers: Sequence[int]) -> tuple[Action, ...]:
        """Return the actions with these numbers."""

    def state(self) -> State:
        """Return what was numbered on the way."""

    def restore(self, state: State) -> None:
        """Number the same paths in the same order."""


class ListedNumbers:
    """The numbers of a list of paths; those of each pair are a range."""

    def __init__(self, paths: tuple[Path, ...], rows: PathRows, parts: tuple[range, ...]) -> None:
        self.paths = paths
        self.rows, self._parts = rows, parts
        self.longest = int(np.diff(rows.indptr).max())

    def number(self, action: Action, pair: int = 0) -> int:
        """Return the number, which the action is, if it is one of this pair."""
        try:
            chosen = index(action)  # type: ignore[arg-type]  # a tuple is refused right here
        except TypeError:
            raise InputError(f"an action is the number of a path, got {action!r}") from None
        part = self._parts[pair]
        if chosen not in part:
            raise InputError(f"actions run from {part.start} to {part.stop - 1}, got {chosen}")
        return chosen

    def action(self, number: int) -> int:
        """Return the number."""
        return number

    def history(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers."""
        return tuple(numbers)

    def state(self) -> State:
        """Return nothing; all numbers are known from the start."""
        return {}

    def restore(self, state: State) -> None:
        """Take up nothing."""


class PlayedNumbers:
    """The numbers of those paths of a graph that were played so far, between the two nodes of each pair."""

    def __init__(self, graph: Graph, pairs: tuple[tuple[int, int], ...]) -> None:
        self._graph, self._pairs = graph, pairs
        self.rows = PathRows(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32))
        self.longest = 0
        self._played: list[Path] = []
        self._numbers: dict[tuple[Path, int], int] = {}

    @property
    def paths(self) -> Sequence[Path]:
        """The paths by their numbers."""
        return self._played

    def number(self, action: Action, pair: int = 0) -> int:
        """Return the number of a path, the next one if it was never played."""
        if isinstance(action, int | np.integer):
            raise InputError(f"an action on a graph is a tuple of edge indices, got {action!r}")
        path = tuple(int(edge) for edge in action)
        if (path, pair) not in self._numbers:
            self._check(path, *self._pairs[pair])
            self._numbers[path, pair] = self._add(path)
        return self._numbers[path, pair]

    def action(self, number: int) -> Path:
        """Return the path with this number."""
        return self._played[number]

    def history(self, numbers: Sequence[int]) -> tuple[Path, ...]:
        """Return the paths with these numbers."""
        return tuple(self._played[number] for number in numbers)

    def state(self) -> State:
        """Return the paths numbered so far."""
        return pack_rows(self._played) | {"pairs": np.array([pair for _, pair in self._numbers], dtype=np.int64)}

    def restore(self, state: State) -> None:
        """Number the same paths in the same order."""
        paths, pairs = unpack_rows(state, self._graph.n_edges), named(state, "pairs", np.int64, 1).tolist()
        for place, (path, pair) in enumerate(zip(paths, pairs, strict=False)):
            if not 0 <= pair < len(self._pairs) or self.number(path, pair) != place:
                raise ResultsError(f"the state does not fit: path {place} is there twice, or of no pair of ends")
        if len(paths) != len(pairs):
            raise ResultsError(f"the state does not fit: {len(paths)} paths for {len(pairs)} pairs of ends")

    def _add(self, path: Path) -> int:
        number = len(self._played)
        indptr, indices = self.rows
        start = int(indptr[number])
        if number + 1 >= len(indptr):
            indptr = np.concatenate((indptr, np.zeros_like(indptr), [0]))
        while start + len(path) > len(indices):
            indices = np.concatenate((indices, np.zeros(len(indices) + len(path), dtype=np.int32)))
        indices[start : start + len(path)] = path
        indptr[number + 1] = start + len(path)
        self.rows = PathRows(indptr, indices)
        self.longest = max(self.longest, len(path))
        self._played.append(path)
        return number

    def _check(self, path: Path, origin: int, destination: int) -> None:
        graph, n_edges = self._graph, self._graph.n_edges
        if not path or min(path) < 0 or max(path) >= n_edges:
            raise InputError(f"an action on a graph is a path of edges 0 to {n_edges - 1}, got {path}")
        edges = np.array(path, dtype=np.int32)
        nodes = [int(graph.tails[edges[0]]), *graph.heads[edges].tolist()]
        if graph.tails[edges].tolist() != nodes[:-1] or (nodes[0], nodes[-1]) != (origin, destination):
            raise InputError(f"the path {path} does not lead from node {origin} to node {destination} edge by edge")
        way = banned_on(graph, edges)
        if way is not None:
            raise InputError(f"the path {path} takes {said(way)}")
        if len(set(path)) < len(path):
            raise InputError(f"the path {path} uses an edge twice; a path uses each edge at most once")
        if len(set(nodes)) < len(nodes) and not len(graph.roads):
            raise InputError(f"the path {path} visits a node twice; a path is simple")
