"""The search for a good cycle of actions, from what policies play and from cycles built action by action."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints, Ints32
from routesim.planning.cycles import (
    ascend,
    change_use,
    cycle_value,
    find_period,
    reorder,
    search_cycles,
    shortcut,
    worth_of_use,
)
from routesim.planning.edgewise.choices import PathSet, RoadGraph, merge_edges, path_rows
from routesim.planning.edgewise.flow_cycles import exchanges, flow_cycle, share_cycle

Cycle = TypeVar("Cycle", NDArray[np.int64], list[NDArray[np.int32]])

_MAX_PERIOD = 4096
_MAX_TRIALS = 20_000  # orders of a cycle tried at a time
_MAX_EXCHANGED = 24  # rounds of a cycle among which parts of paths are exchanged again and again
_NEAR = 0.04  # a cycle this close to the bound, relatively, is near it
_MAX_EXCHANGES = 5_000  # of them tried at a time
_MAX_STEPS = 1 << 28  # elementary steps of the search over a path set: about a second


class PathCycles:
    """Cycles over the actions of a path set; `values` says how good each start was before it was improved."""

    def __init__(self, paths: PathSet, rewards: Floats, window: int) -> None:
        self._paths = paths
        self._game = (paths.rows, rewards, window)
        self._n_actions = paths.n_actions
        self._window = window
        self._found: list[tuple[float, Ints]] = []
        self.values: dict[str, float] = {}

    def add(self, name: str, cycle: Ints) -> None:
        """Add a cycle."""
        value = cycle_value(cycle, *self._game)
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
                ascend(cycle, *self._game, max(1, min(20, _MAX_STEPS // (8 * self._sweep_steps(period)))))
                self.add("built", cycle)

    def fill_by_flow(self, name: str, period: int, precision: float) -> None:
        """Add a cycle from the best whole numbers of plays within a period."""
        cycle = share_cycle(self._paths, *self._game[1:], period, precision)
        if cycle is not None:
            reorder(cycle, *self._game, self._trials(period))
            self.add(name, cycle)

    def add_run(self, name: str, actions: Ints, block: int = 1) -> None:
        """Add the cycle a run falls into, or its end closed to one; each of its rounds stands for a block."""
        for length in _periods(actions, max(1, -(-self._window // block))):
            self.add(name, np.repeat(actions[actions.size - length :], block))

    def best(self, *, kicks: int, seed: int, n_starts: int = 4) -> tuple[Ints, float]:
        """Improve the best cycles and return the best one found, with its exact value."""
        starts = _best_starts(self._found, n_starts)
        best_cycle, best_value = shortcut(starts[0][1], *self._game)
        for value, cycle in starts:
            trial = np.tile(cycle, -(-(self._window + 1) // cycle.size))
            if self._window == 0 or trial.size > _MAX_PERIOD:
                continue
            trials = self._trials(trial.size)
            steps = 4 * self._sweep_steps(trial.size) + trials * self._value_steps(trial.size)
            affordable = _MAX_STEPS // (n_starts * steps)
            found = search_cycles(trial, *self._game, 20, trials, min(kicks, affordable), seed)
            if found > max(value, best_value):
                trial, found = shortcut(trial, *self._game)
                if found > best_value:
                    best_cycle, best_value = trial, found
        return best_cycle, best_value

    def _sweep_steps(self, period: int) -> int:
        """Return about how many elementary steps it takes to look at every phase of a cycle once."""
        return period * int(self._paths.indices.size + self._paths.n_edges * self._window)

    def _value_steps(self, period: int) -> int:
        """Return about how many elementary steps the value of a cycle takes."""
        return (period + self._window) * int(1 + self._paths.indices.size // self._n_actions)

    def _trials(self, period: int) -> int:
        """Return how many orders to try: all neighbours twice, if that does not take too long."""
        return min(4 * period**2, _MAX_STEPS // (100 * self._value_steps(period)))


class GraphCycles:
    """Cycles over the paths of a graph; the best path given the others of a cycle is one shortest path."""

    def __init__(self, graph: RoadGraph, rewards: Floats, window: int) -> None:
        self._graph = graph
        self._rewards = rewards
        self._window = window
        self._found: list[tuple[float, list[Ints32]]] = []
        self._left = 0
        self._exchanging = True
        self.values: dict[str, float] = {}

    def add(self, name: str, cycle: list[Ints32]) -> None:
        """Add a cycle."""
        value = self._value(cycle)
        self._found.append((value, cycle))
        self.values[name] = max(value, self.values.get(name, -np.inf))

    def fill(self, name: str, period: int) -> None:
        """Add a cycle built one best path at a time."""
        self.add(name, self._ascend([None] * period, 2 * period))

    def fill_by_flow(self, name: str, period: int, precision: float) -> None:
        """Add a cycle from the best flow of `period` units."""
        known = np.concatenate(self.known_paths()).astype(np.int64)
        cycle = flow_cycle(self._graph, self._rewards, self._window, period, known, precision)
        if cycle is not None:
            self.add(name, self._exchange(self._reorder(cycle)))

    def known_paths(self) -> list[Ints32]:
        """Return the paths of all cycles so far."""
        return [path for _, cycle in self._found for path in cycle]

    def add_run(self, name: str, run: list[Ints32], block: int = 1) -> None:
        """Add the cycle a run falls into, or its end closed to one; each of its rounds stands for a block."""
        actions, _ = _number(run)
        for length in _periods(actions, max(1, -(-self._window // block))):
            self.add(name, [path for path in run[len(run) - length :] for _ in range(block)])

    def best(
        self, *, bound: float, max_paths: int, seed: int, n_starts: int = 3, thorough: bool = True
    ) -> tuple[list[Ints32], float]:
        """Improve the best cycles with about `max_paths` shortest paths.

        Return the best, with its exact value. Unless `thorough`, a cycle near the bound is not improved by
        exchanges.
        """
        starts = _best_starts(self._found, n_starts)
        value, cycle = starts[0]
        self._left = max_paths
        exchanging = self._exchanging = thorough or value < bound - _NEAR * abs(bound)
        if self._window > 0:
            climbed = []
            for _, start in starts:
                climbed.append(self._climb(start * -(-(self._window + 1) // len(start)), self._left // 2))
            # Exchanges take most of the time, so near the bound they are left to the end.
            self._exchanging = max(value for value, _ in climbed) < bound - _NEAR * abs(bound)
            rng = np.random.default_rng(seed)
            turn = 0
            while self._left >= 2 * len(climbed[turn][1]):
                present = climbed[turn][1]
                emptied = rng.random(len(present)) < 1 / 3
                kept = [None if empty else path for path, empty in zip(present, emptied, strict=True)]
                trial = self._climb(kept, self._left, rng)
                if trial[0] > climbed[turn][0]:
                    climbed[turn] = trial
                turn = (turn + 1) % len(climbed)
            value, cycle = max([*climbed, (value, cycle)], key=lambda entry: entry[0])
            self._exchanging = exchanging
            if len(cycle) > self._window and exchanging:
                value, cycle = max((value, cycle), self._climb(cycle, 0), key=lambda entry: entry[0])
        actions, paths = _number(cycle)
        actions, value = shortcut(actions, path_rows(paths), self._rewards, self._window)
        return [paths[action] for action in actions], value

    def _climb(
        self, start: Sequence[Ints32 | None], max_paths: int, rng: np.random.Generator | None = None
    ) -> tuple[float, list[Ints32]]:
        """Improve the paths of a cycle and their order in turn, until neither helps."""
        cycle = self._ascend(start, max_paths, rng)
        value = self._value(cycle)
        while True:
            cycle = self._reorder(cycle)
            if self._exchanging and len(cycle) <= _MAX_EXCHANGED:
                cycle = self._exchange(cycle)
            if self._left >= len(cycle):
                cycle = self._ascend(cycle, self._left)
            better = self._value(cycle)
            if better <= value + 1e-9 * abs(value):
                return better, cycle
            value = better

    def _reorder(self, cycle: list[Ints32]) -> list[Ints32]:
        actions, paths = _number(cycle)
        merged, tables = merge_edges(PathSet(*path_rows(paths), self._graph.n_edges), self._rewards)
        reorder(actions, merged.rows, tables, self._window, _MAX_TRIALS)
        return [paths[action] for action in actions]

    def _exchange(self, cycle: list[Ints32]) -> list[Ints32]:
        """Let two rounds exchange parts of their ways while that helps.

        Each edge is used as often, at other times.
        """
        used = np.unique(np.concatenate(cycle))
        tables = self._rewards[used]
        rounds = np.arange(len(cycle))
        value = self._value(cycle)
        left = _MAX_EXCHANGES
        for one in range(len(cycle)):
            for other in range(one):
                for pair in exchanges(self._graph.graph, cycle[one], cycle[other]):
                    left -= 1
                    if left < 0:
                        return cycle
                    trial = list(cycle)
                    trial[one], trial[other] = pair
                    rows = path_rows(trial)
                    places = rows._replace(indices=np.searchsorted(used, rows.indices).astype(np.int32))
                    better = cycle_value(rounds, places, tables, self._window)
                    if better > value + 1e-10 * abs(value):
                        value, cycle = better, trial
                        break
        return cycle

    def _value(self, cycle: list[Ints32]) -> float:
        actions, paths = _number(cycle)
        return cycle_value(actions, path_rows(paths), self._rewards, self._window)

    def _ascend(
        self, start: Sequence[Ints32 | None], max_paths: int, rng: np.random.Generator | None = None
    ) -> list[Ints32]:
        """Replace one path at a time by the best one given the others, until none can be improved.

        With a generator, empty phases are first filled with paths that are only roughly the best.
        """
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
            if rng is not None and present.size == 0:
                path = graph.best(worth * rng.uniform(0.7, 1.3, worth.size), 0)[1]
            else:
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
            abs(value - other) <= 1e-12 * abs(value) and len(cycle) % len(start) == 0 for other, start in starts
        )
        if len(starts) < n_starts and not known:
            starts.append((value, cycle))
    return starts


def _periods(actions: Ints, window: int) -> Iterable[int]:
    """Return the period a run ends with, or if there is none yet, some lengths at which to close its end."""
    period = find_period(actions, window)
    return [period] if period else range(window + 1, max(window + 2, actions.size // 2), 1 + actions.size // 100)


def _number(run: list[Ints32]) -> tuple[Ints, list[Ints32]]:
    """Number the distinct paths of a run in the order they appear."""
    numbers: dict[bytes, int] = {}
    paths: list[Ints32] = []
    actions = np.empty(len(run), np.int64)
    for now, path in enumerate(run):
        number = numbers.setdefault(path.tobytes(), len(paths))
        if number == len(paths):
            paths.append(path)
        actions[now] = number
    return actions, paths
