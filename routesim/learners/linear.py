"""Linear baselines: they learn theta as CARCB does, and take the best action at the present counts; none plans."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.errors import InputError
from routesim.rounds.environment import Feedback, Knowledge, Observation, Task
from routesim.storage.state import State, collect, join, part, put_back, restore_rng, rng_state

Floats: TypeAlias = NDArray[np.float64]

_FIT = ("_gram", "_inverse", "_moment", "theta")


@dataclass
class _Linear(ABC):
    """Ridge regression of each edge's reward on its features times its multiplier, or, `blind`, on its features."""

    ridge: float = 1.0
    blind: bool = False

    knows: ClassVar[Knowledge] = "congestion"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.ridge) and self.ridge > 0):
            raise InputError(f"ridge must be finite and above 0, got {self.ridge}")

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


@dataclass
class LinUCB(_Linear):
    """Upper confidence bounds: estimate + alpha * noise * length of the regressor in the inverse of the fit's squares.

    It knows the congestion at the present counts, and does not plan; `blind` leaves congestion out altogether.
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite(self.alpha) and self.alpha >= 0):
            raise InputError(f"alpha must be finite and at least 0, got {self.alpha}")

    def _scores(self, regressors: Floats) -> Floats:
        squares = np.einsum("ij,ij->i", regressors @ self._inverse, regressors)
        width: Floats = np.sqrt(np.maximum(0.0, squares))
        return regressors @ self.theta + self.alpha * self._noise_std * width


@dataclass
class LinearThompsonSampling(_Linear):
    """Thompson sampling for linear rewards: one theta drawn from its posterior each round, the noise known."""

    def _scores(self, regressors: Floats) -> Floats:
        root = np.linalg.cholesky(self._inverse + 1e-15 * np.trace(self._inverse) * np.eye(len(self.theta)))
        return regressors @ (self.theta + self._noise_std * (root @ self._rng.standard_normal(len(self.theta))))


@dataclass
class LinearGreedy(_Linear):
    """The best action at the present counts under the fitted theta, without any exploration."""

    def _scores(self, regressors: Floats) -> Floats:
        return regressors @ self.theta
