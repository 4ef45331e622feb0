"""The search for a good cycle of actions, from what policies play and from cycles built action by action."""

import numpy as np
from numpy.typing import NDArray

from routesim.planning.choices import PathSet, RoadGraph
from routesim.planning.cycles import ascend, change_use, cycle_value, find_period, search_cycles, shortcut, worth_of_use

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Edges = NDArray[np.int32]

_MAX_PERIOD = 4096


class PathCycles:
    """Cycles over the actions of a path set; `values` remembers how good each start was before it was improved."""

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
        """Add every action played for ever, all actions in turn, and cycles built one best action at a time."""
        for action in range(self._n_actions):
            self.add("fixed", np.array([action], np.int64))
        self.add("in turn", np.arange(self._n_actions, dtype=np.int64))
        if self._window > 0:
            step = max(1, self._window // 8)
            for period in range(self._window + 1, 3 * self._window + 3, step):
                cycle = np.full(period, -1, np.int64)
                ascend(cycle, *self._csr, 20)
                self.add("built", cycle)

    def add_run(self, name: str, actions: Ints, block: int) -> None:
        """Add the cycle a run falls into, or its end closed to a cycle; each of its rounds stands for a block of them."""
        window = max(1, -(-self._window // block))
        period = find_period(actions, window)
        ends = [period] if period else range(window + 1, actions.size // 2, 1 + actions.size // 100)
        for length in ends:
            self.add(name, np.repeat(actions[actions.size - length :], block))

    def best(self, *, kicks: int, seed: int, n_starts: int = 4) -> tuple[Ints, float]:
        """Improve the best cycles and return the best one found, with its exact value."""
        self._found.sort(key=lambda entry: -entry[0])
        starts: list[tuple[float, Ints]] = []
        for value, cycle in self._found:
            if len(starts) < n_starts and not any(abs(value - other) <= 1e-12 * abs(value) for other, _ in starts):
                starts.append((value, cycle))
        best_cycle, best_value = shortcut(self._found[0][1], *self._csr)
        for value, cycle in starts:
            repeats = -(-(self._window + 1) // cycle.size)
            trial = np.tile(cycle, repeats)
            if self._window == 0 or trial.size > _MAX_PERIOD:
                continue
            found = search_cycles(trial, *self._csr, 20, kicks, seed)
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
        self.values: dict[str, float] = {}

    def add(self, name: str, cycle: list[Edges]) -> None:
        """Add a cycle."""
        value = self._value(cycle)
        self._found.append((value, cycle))
        self.values[name] = max(value, self.values.get(name, -np.inf))

    def fill(self, name: str, period: int) -> None:
        """Add a cycle built one best path at a time."""
        self.add(name, self._ascend([None] * period, sweeps=2))

    def known_paths(self) -> list[Edges]:
        """Return the paths of all cycles so far."""
        return [path for _, cycle in self._found for path in cycle]

    def add_run(self, name: str, run: list[Edges]) -> None:
        """Add the cycle a run falls into, or its end closed to a cycle."""
        actions, _ = _number(run)
        window = max(1, self._window)
        period = find_period(actions, window)
        ends = [period] if period else range(window + 1, actions.size // 2, 1 + actions.size // 40)
        for length in ends:
            self.add(name, run[len(run) - length :])

    def best(self, sweeps: int) -> tuple[list[Edges], float]:
        """Improve the best cycle and return it, with its exact value."""
        self._found.sort(key=lambda entry: -entry[0])
        value, cycle = self._found[0]
        if self._window > 0:
            repeats = -(-(self._window + 1) // len(cycle))
            better = self._ascend(list(cycle * repeats), sweeps)
            if self._value(better) > value:
                cycle = better
        actions, paths = _number(cycle)
        actions, value = shortcut(actions, *_csr(paths), self._rewards, self._window)
        return [paths[action] for action in actions], value

    def _value(self, cycle: list[Edges]) -> float:
        actions, paths = _number(cycle)
        return cycle_value(actions, *_csr(paths), self._rewards, self._window)

    def _ascend(self, start: list[Edges | None] | list[Edges], sweeps: int) -> list[Edges]:
        """Replace one path at a time by the best one given the others, until none can be improved."""
        rewards, window, graph = self._rewards, self._window, self._graph
        use = np.zeros((graph.n_edges, len(start)), np.int8)
        counts = np.zeros((graph.n_edges, len(start)), np.int16)
        busy = np.zeros(graph.n_edges, np.int64)
        cycle = [np.empty(0, np.int32) if path is None else path for path in start]
        for phase, path in enumerate(cycle):
            change_use(use, counts, path, phase, window, 1)
            busy[path] += 1
        for _ in range(sweeps):
            changed = False
            for phase, present in enumerate(cycle):
                change_use(use, counts, present, phase, window, -1)
                busy[present] -= 1
                worth = rewards[:, 0].copy()
                worth_of_use(rewards, use, counts, np.flatnonzero(busy), phase, window, worth)
                np.minimum(worth, 0.0, out=worth)
                path = graph.best(worth, 0)[1]
                if present.size == 0 or worth[path].sum() > worth[present].sum() * (1 - 1e-10):
                    cycle[phase] = path
                    changed = True
                change_use(use, counts, cycle[phase], phase, window, 1)
                busy[cycle[phase]] += 1
            if not changed:
                break
        return cycle


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
