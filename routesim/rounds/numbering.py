"""Routes: every action that can be played has a number, and its edges are a row of two arrays.

A list of paths is numbered from the start. Of a graph's paths, too many to list, each gets its number when it is first
played. Kernels and records work with numbers; people and policies with actions.
"""

from collections.abc import Sequence
from operator import index
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.errors import InputError, ResultsError
from routesim.rounds.actions import ActionSet
from routesim.rounds.window import PathRows
from routesim.storage.state import State, named, pack_rows, unpack_rows

Action: TypeAlias = int | tuple[int, ...]


class Routes:
    """The numbered actions of one action set; `rows` are replaced when they grow."""

    def __init__(self, actions: ActionSet) -> None:
        self.actions = actions
        self.rows = PathRows(actions.indptr, actions.indices)
        self.longest = actions.longest if actions.graph is None else 0
        self.paths: list[tuple[int, ...]] = []
        self._numbers: dict[tuple[tuple[int, ...], int], int] = {}

    def number(self, action: Action, pair: int = 0) -> int:
        """Return the number of an action of this pair of ends, or say why there is no such action."""
        if self.actions.graph is None:
            first, last = (int(end) for end in self.actions.first_action[pair : pair + 2])
            try:
                chosen = index(action)  # type: ignore[arg-type]  # a tuple is refused right here
            except TypeError:
                raise InputError(f"an action is the number of a path, got {action!r}") from None
            if not first <= chosen < last:
                raise InputError(f"actions run from {first} to {last - 1}, got {chosen}")
            return chosen
        if isinstance(action, int | np.integer):
            raise InputError(f"an action on a graph is a tuple of edge indices, got {action!r}")
        path = tuple(int(edge) for edge in action)
        if (path, pair) not in self._numbers:
            self._check(path, pair)
            self._numbers[path, pair] = self._add(path)
        return self._numbers[path, pair]

    def action(self, number: int) -> Action:
        """Return the action with this number."""
        return number if self.actions.graph is None else self.paths[number]

    def edges(self, number: int) -> NDArray[np.int32]:
        """Return the edge positions of the action with this number."""
        return self.rows.indices[self.rows.indptr[number] : self.rows.indptr[number + 1]]

    @property
    def n_routes(self) -> int:
        """How many actions have a number."""
        return self.actions.n_listed if self.actions.graph is None else len(self.paths)

    def state(self) -> State:
        """Return the paths of a graph numbered so far; a list needs none."""
        if self.actions.graph is None:
            return {}
        return pack_rows(self.paths) | {"pairs": np.array([pair for _, pair in self._numbers], dtype=np.int64)}

    def restore(self, state: State) -> None:
        """Number the same paths in the same order."""
        if self.actions.graph is None:
            return
        paths, pairs = unpack_rows(state, self.actions.n_edges), named(state, "pairs", np.int64, 1).tolist()
        for place, (path, pair) in enumerate(zip(paths, pairs, strict=False)):
            if not 0 <= pair < len(self.actions.ends) or self.number(path, pair) != place:
                raise ResultsError(f"the state does not fit: path {place} is there twice, or of no pair of ends")
        if len(paths) != len(pairs):
            raise ResultsError(f"the state does not fit: {len(paths)} paths for {len(pairs)} pairs of ends")

    def _add(self, path: tuple[int, ...]) -> int:
        indptr, indices = self.rows
        start = int(indptr[len(self.paths)])
        if len(self.paths) + 1 >= len(indptr):
            indptr = np.concatenate((indptr, np.zeros_like(indptr), [0]))
        while start + len(path) > len(indices):
            indices = np.concatenate((indices, np.zeros(len(indices) + len(path), dtype=np.int32)))
        indices[start : start + len(path)] = path
        indptr[len(self.paths) + 1] = start + len(path)
        self.rows = PathRows(indptr, indices)
        self.longest = max(self.longest, len(path))
        self.paths.append(path)
        return len(self.paths) - 1

    def _check(self, path: Sequence[int], pair: int) -> None:
        graph = self.actions.graph
        origin, destination = self.actions.ends[pair]
        if graph is None or not path or min(path) < 0 or max(path) >= len(graph.heads):
            raise InputError(f"an action on a graph is a path of edges 0 to {self.actions.n_edges - 1}, got {path}")
        edges: NDArray[np.int64] = np.array(path)
        nodes = [int(graph.tails[edges[0]]), *graph.heads[edges].tolist()]
        if graph.tails[edges].tolist() != nodes[:-1] or (nodes[0], nodes[-1]) != (origin, destination):
            raise InputError(f"the path {path} does not lead from node {origin} to node {destination} edge by edge")
        if len(set(nodes)) < len(nodes):
            raise InputError(f"the path {path} visits a node twice; a path is simple")
