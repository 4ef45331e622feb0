"""LinearModel: what learners of theta that take the best action at the present counts have in common; none plans."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from routesim.arrays import Floats
from routesim.checks import RIDGES, number
from routesim.errors import InputError
from routesim.rounds.environment import Feedback, Knowledge, Observation, Task
from routesim.storage.state import State, collect, join, part, put_back, restore_rng, rng_state

_FIT = ("_gram", "_inverse", "_moment", "theta")


@dataclass
class LinearModel(ABC):
    """Ridge regression of each edge's reward on its features times its multiplier, or, `blind`, on its features."""

    ridge: float = 1.0
    blind: bool = False

    knows: ClassVar[Knowledge] = "congestion"
    needs_contexts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        number("ridge", self.ridge, *RIDGES)

    def start(self, task: Task, rng: np.random.Generator) -> None:
        """Begin a task from nothing."""
        if task.contexts is None or task.multipliers is None:
            raise InputError("this learner needs rounds with contexts; play it in a ContextualEnvironment")
        self._rng = rng
        self._actions = task.actions
        self._noise_std = float(np.sqrt(np.mean(task.noise_std**2)))
        self._multipliers = np.ones_like(task.multipliers) if self.blind else task.multipliers
        dimension = task.contexts.dimension
        self._gram = self.ridge * np.eye(dimension)
        self._inverse = np.eye(dimension) / self.ridge
        self._moment = np.zeros(dimension)
        self.theta = np.zeros(dimension)
        self._edges = np.arange(task.actions.n_edges)

    def choose(self, observation: Observation) -> int:
        """Return the action with the largest score at the present counts."""
        if observation.features is None:
            raise InputError("this learner needs the features of each round; play it in a ContextualEnvironment")
        regressors = observation.features * self._multipliers[self._edges, observation.counts][:, np.newaxis]
        by_edge = self._scores(regressors)
        return int(np.argmax(np.add.reduceat(by_edge[self._actions.indices], self._actions.indptr[:-1])))

    def update(self, feedback: Feedback) -> None:
        """Add the rewards seen to the fit."""
        if feedback.features is None:
            raise InputError("this learner needs feedback with features; play it in a ContextualEnvironment")
        regressors = feedback.features * self._multipliers[feedback.edges, feedback.counts][:, np.newaxis]
        self._moment += feedback.rewards @ regressors
        self._gram += regressors.T @ regressors
        if len(regressors) == 1:  # Sherman and Morrison
            shift = self._inverse @ regressors[0]
            self._inverse -= np.outer(shift, shift) / (1 + regressors[0] @ shift)
        else:
            self._inverse = np.asarray(np.linalg.inv(self._gram), dtype=np.float64)
        self.theta = self._inverse @ self._moment

    def state(self) -> State:
        """Return the fit and where chance stands."""
        return collect(self, *_FIT) | join(rng=rng_state(self._rng))

    def restore(self, state: State) -> None:
        """Take up a state, right after `start` with the same arguments as when it was made."""
        put_back(self, state, *_FIT)
        restore_rng(self._rng, part(state, "rng"))

    @abstractmethod
    def _scores(self, regressors: Floats) -> Floats: ...
