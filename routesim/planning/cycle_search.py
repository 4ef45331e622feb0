"""The search for a good cycle of actions, from what policies play and from cycles built action by action."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from routesim.planning.choices import PathSet, RoadGraph
from routesim.planning.cycles import (
    ascend,
    change_use,
    cycle_value,
    find_period,
    search_cycles,
    shortcut,
    worth_of_use,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Edges = NDArray[np.int32]

Cycle = TypeVar("Cycle", NDArray[np.int64], list[NDArray[np.int32]])

_MAX_PERIOD = 4096
_MAX_STEPS = 1 << 28  # elementary steps of the search over a path set: about a second


class PathCycles:
    """Cycles over the actions of a path set; `values` says how good each start was before it was improved."""

    def __init__(self, paths: PathSet, rewards: Floats, window: int) -> None:
        self._csr = (paths.indptr, paths.indices, rewards, window)
        self._n_actions = paths.n_actions
        self._window = window
        self._found: list[tuple[float, Ints]] = []
        self.values: dict[str, float] = {}

    def add(self, name: str, cycle: Ints) -> None:
        """Add a cycle."""
        value = cycle_value(cycle, *self._csr)
        self._found.append((value, cycle))
        self.values[name] = max(value, self.values.get(name, -np.inf))

    def add_simple(self) -> None:
        """Add every action for ever, all actions in turn, and cycles built one best action at a time."""
        for action in range(self._n_actions):
            self.add("fixed", np.array([action], np.int64))
        self.add("in turn", np.arange(self._n_actions, dtype=np.int64))
        if self._window > 0:
            step = max(1, self._window // 8)
            for period in range(self._window + 1, 3 * self._window + 3, step):
                cycle = np.full(period, -1, np.int64)
                ascend(cycle, *self._csr, 20)
                self.add("built", cycle)

    def add_run(self, name: str, actions: Ints, block: int = 1) -> None:
        """Add the cycle a run falls into, or its end closed to one; each of its rounds stands for a block."""
        for length in _periods(actions, max(1, -(-self._window // block))):
            self.add(name, np.repeat(actions[actions.size - length :], block))

    def best(self, *, kicks: int, seed: int, n_starts: int = 4) -> tuple[Ints, float]:
        """Improve the best cycles and return the best one found, with its exact value."""
        starts = _best_starts(self._found, n_starts)
        best_cycle, best_value = shortcut(starts[0][1], *self._csr)
        for value, cycle in starts:
            trial = np.tile(cycle, -(-(self._window + 1) // cycle.size))
            if self._window == 0 or trial.size > _MAX_PERIOD:
                continue
            paths = self._csr[1].size + self._csr[2].shape[0] * self._window
            affordable = 1 + _MAX_STEPS // (4 * n_starts * trial.size * paths)
            found = search_cycles(trial, *self._csr, 20, min(kicks, affordable), seed)
            if found > max(value, best_value):
                trial, found = shortcut(trial, *self._csr)
                if found > best_value:
                    best_cycle, best_value = trial, found
        return best_cycle, best_value


class GraphCycles:
    """Cycles over the paths of a graph; the best path given the others of a cycle is one shortest path."""

    def __init__(self, graph: RoadGraph, rewards: Floats, window: int) -> None:
        self._graph = graph
        self._rewards = rewards
        self._window = window
        self._found: list[tuple[float, list[Edges]]] = []
        self._left = 0
        self.values: dict[str, float] = {}

    def add(self, name: str, cycle: list[Edges]) -> None:
        """Add a cycle."""
        value = self._value(cycle)
        self._found.append((value, cycle))
        self.values[name] = max(value, self.values.get(name, -np.inf))

    def fill(self, name: str, period: int) -> None:
        """Add a cycle built one best path at a time."""
        self.add(name, self._ascend([None] * period, 2 * period))

    def known_paths(self) -> list[Edges]:
        """Return the paths of all cycles so far."""
        return [path for _, cycle in self._found for path in cycle]

    def add_run(self, name: str, run: list[Edges], block: int = 1) -> None:
        """Add the cycle a run falls into, or its end closed to one; each of its rounds stands for a block."""
        actions, _ = _number(run)
        for length in _periods(actions, max(1, -(-self._window // block))):
            self.add(name, [path for path in run[len(run) - length :] for _ in range(block)])

    def best(self, *, max_paths: int, seed: int, n_starts: int = 3) -> tuple[list[Edges], float]:
        """Improve the best cycles with about `max_paths` shortest paths.

        Return the best, with its exact value.
        """
        starts = _best_starts(self._found, n_starts)
        value, cycle = starts[0]
        self._left = max_paths
        if self._window > 0:
            climbed = []
            for _, start in starts:
                trial = self._ascend(start * -(-(self._window + 1) // len(start)), self._left // 2)
                climbed.append((self._value(trial), trial))
            rng = np.random.default_rng(seed)
            turn = 0
            while self._left >= 2 * len(climbed[turn][1]):
                present = climbed[turn][1]
                emptied = rng.random(len(present)) < 1 / 3
                kept = [None if empty else path for path, empty in zip(present, emptied, strict=True)]
                trial = self._ascend(kept, self._left)
                if self._value(trial) > climbed[turn][0]:
                    climbed[turn] = (self._value(trial), trial)
                turn = (turn + 1) % len(climbed)
            value, cycle = max([*climbed, (value, cycle)], key=lambda entry: entry[0])
        actions, paths = _number(cycle)
        actions, value = shortcut(actions, *_csr(paths), self._rewards, self._window)
        return [paths[action] for action in actions], value

    def _value(self, cycle: list[Edges]) -> float:
        actions, paths = _number(cycle)
        return cycle_value(actions, *_csr(paths), self._rewards, self._window)

    def _ascend(self, start: Sequence[Edges | None], max_paths: int) -> list[Edges]:
        """Replace one path at a time by the best one given the others, until none can be improved."""
        rewards, window, graph = self._rewards, self._window, self._graph
        use = np.zeros((graph.n_edges, len(start)), np.int8)
        counts = np.zeros((graph.n_edges, len(start)), np.int16)
        busy = np.zeros(graph.n_edges, np.int64)
        cycle = [np.empty(0, np.int32) if path is None else path for path in start]
        for phase, path in enumerate(cycle):
            change_use(use, counts, path, phase, window, 1)
            busy[path] += 1
        # Empty phases first: a cycle is only worth improving once it is one.
        order = sorted(range(len(cycle)), key=lambda phase: cycle[phase].size > 0)
        n_empty = sum(path.size == 0 for path in cycle)
        unchanged = 0
        for step in range(max(max_paths, n_empty)):
            phase = order[step % len(order)]
            present = cycle[phase]
            change_use(use, counts, present, phase, window, -1)
            busy[present] -= 1
            worth = rewards[:, 0].copy()
            worth_of_use(rewards, use, counts, np.flatnonzero(busy), phase, window, worth)
            np.minimum(worth, 0.0, out=worth)
            path = graph.best(worth, 0)[1]
            self._left -= 1
            unchanged += 1
            if present.size == 0 or worth[path].sum() > worth[present].sum() * (1 - 1e-10):
                cycle[phase] = path
                unchanged = 0
            change_use(use, counts, cycle[phase], phase, window, 1)
            busy[cycle[phase]] += 1
            if unchanged == len(cycle):
                break
        return cycle


def _best_starts(found: list[tuple[float, Cycle]], n_starts: int) -> list[tuple[float, Cycle]]:
    """Return the best cycles of different values or periods: those alike in both are most likely the same."""
    starts: list[tuple[float, Cycle]] = []
    for value, cycle in sorted(found, key=lambda entry: (-entry[0], len(entry[1]))):
        known = any(
            abs(value - other) <= 1e-12 * abs(value) and len(cycle) % len(start) == 0
            for other, start in starts
        )
        if len(starts) < n_starts and not known:
            starts.append((value, cycle))
    return starts


def _periods(actions: Ints, window: int) -> Iterable[int]:
    """Return the period a run ends with, or if there is none yet, some lengths at which to close its end."""
    period = find_period(actions, window)
    return (
        [period] if period else range(window + 1, max(window + 2, actions.size // 2), 1 + actions.size // 100)
    )


def _number(run: list[Edges]) -> tuple[Ints, list[Edges]]:
    """Number the distinct paths of a run in the order they appear."""
    numbers: dict[bytes, int] = {}
    paths: list[Edges] = []
    actions = np.empty(len(run), np.int64)
    for now, path in enumerate(run):
        number = numbers.setdefault(path.tobytes(), len(paths))
        if number == len(paths):
            paths.append(path)
        actions[now] = number
    return actions, paths


def _csr(paths: list[Edges]) -> tuple[Ints, Edges]:
    indptr = np.concatenate([[0], np.cumsum([path.size for path in paths])]).astype(np.int64)
    return indptr, np.concatenate(paths)
