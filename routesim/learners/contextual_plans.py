"""Plans for rounds with contexts under any theta, for CARCB and for the oracle."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from routesim.arrays import Floats
from routesim.errors import InputError
from routesim.planning.contextual.edgewise import EdgeTolls, EdgewiseContextualPlanner
from routesim.planning.contextual.exact import ContextualPlanner
from routesim.planning.exact.planner import fits
from routesim.rounds.contextual_policy import ContextualPolicy, StepPolicy
from routesim.rounds.environment import Task
from routesim.storage.state import State, collect, named, taken
from routesim.travellers.contexts import Contexts

ContextualMethod: TypeAlias = Literal["auto", "exact", "edgewise"]
AnyPolicy: TypeAlias = ContextualPolicy | StepPolicy


class Plans:
    """Plans for a task with contexts and any theta: CARCB plans with an estimate, the oracle with the truth."""

    def __init__(self, task: Task, rng: np.random.Generator, sample: int, method: ContextualMethod = "auto") -> None:
        if task.contexts is None or task.multipliers is None:
            raise InputError("this learner needs rounds with contexts; play it in a ContextualEnvironment")
        self.task = task
        self.contexts: Contexts = task.contexts
        self.multipliers = task.multipliers
        self.planner: ContextualPlanner | EdgewiseContextualPlanner
        exact = method == "exact" or (method == "auto" and fits(task.actions.n_listed, task.window))
        kind = ContextualPlanner if exact else EdgewiseContextualPlanner
        self.planner = kind(task.actions, task.window, task.multipliers)
        self.tolls: EdgeTolls | None = None
        self._values: Floats | None = None
        if not self.contexts.known:
            drawn = self.contexts.draw(rng, min(sample, max(2, 8 * self.contexts.block)))
            # Few kinds of travellers: each kind once, with its share.
            flat, counts = np.unique(drawn.reshape(len(drawn), -1), axis=0, return_counts=True)
            self._sample = flat.reshape(-1, *drawn.shape[1:])
            self._weights = counts / len(drawn)

    def state(self) -> State:
        """Return the tolls or values of the last plan; nothing for known contexts, whose plan follows from theta."""
        if isinstance(self.planner, EdgewiseContextualPlanner):
            return {} if self.tolls is None else collect(self.tolls, *_TOLLS)
        return {} if self._values is None else {"values": self._values.copy()}

    def policies(
        self,
        theta: Floats,
        first: int,
        last: int,
        weighs_from: int = 0,
        stored: State | None = None,
        *,
        ahead: int = 0,
    ) -> Iterator[AnyPolicy]:
        """Yield the best policies under `theta` from round `first` up to `last`, one after the other.

        Known contexts of `ahead` rounds after `last` count too, as far as there are so many. `stored` is what `state`
        returned after the same call; it is then taken up, not planned again.
        """
        if isinstance(self.planner, EdgewiseContextualPlanner):
            if stored is None:
                self.tolls = self.planner.tolls(*self._some(theta, first, last))
            else:
                self.tolls = _restored_tolls(stored, self.planner)
            yield StepPolicy(theta, partial(self.planner.choose, self.tolls), last)
            return
        if not self.contexts.known:
            if stored is None:
                sampled = self._sample @ theta
                found = self.planner.stationary(sampled, self._weights, start=self._values, tolerance=1e-4)
                self._values = found.values
            else:
                self._values = taken(stored, "values", np.empty(self.planner.n_histories))
            yield ContextualPolicy(theta, self._values, np.zeros((0, 1), dtype=np.uint8), first, last)
            return

        def bases(start: int, end: int) -> Floats:
            weights = np.arange(start, end) >= weighs_from
            return (self.contexts.read(start, end) @ theta) * weights[:, np.newaxis]

        counted = last + ahead if self.task.rounds is None else max(last, min(last + ahead, self.task.rounds))
        for block in self.planner.blocks(bases, first, counted, reads=self.contexts.block):
            yield ContextualPolicy(theta, np.empty(0), block.table, block.first, min(block.last, last))

    def _some(self, theta: Floats, first: int, last: int) -> tuple[Floats, Floats]:
        """Return bases of some rounds to come, with their chances."""
        if not self.contexts.known:
            return self._sample @ theta, self._weights
        features = self.contexts.read(first, min(last, first + self.contexts.block))
        return features @ theta, np.full(len(features), 1 / len(features))

    def bound(self, bases: Callable[[int, int], Floats], rounds: int) -> float:
        """Return a sum of rewards that no policy exceeds over rounds with these true bases."""
        if isinstance(self.planner, EdgewiseContextualPlanner):
            if self.tolls is None:
                raise InputError("a bound comes from prices, and nothing has been planned yet; take a policy first")
            return self.planner.bound(self.tolls, bases, rounds, self.contexts.block)
        return self.planner.best(bases, 0, rounds, reads=self.contexts.block)


_TOLLS = ("prices", "means", "share", "values")


def _restored_tolls(state: State, planner: EdgewiseContextualPlanner) -> EdgeTolls:
    groups = np.empty(len(planner.groups))
    prices, means = (taken(state, name, groups) for name in ("prices", "means"))
    share, values = float(named(state, "share", np.float64, 0)), np.empty((len(groups), planner.n_histories))
    return EdgeTolls(prices, means, share, taken(state, "values", values))
