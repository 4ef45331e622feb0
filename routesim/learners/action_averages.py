"""ActionAverages: what learners that take each action as a whole have in common."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from routesim.rounds.environment import Feedback, Knowledge, Observation, Task
from routesim.storage.state import State, collect, join, part, put_back, restore_rng, rng_state


class ActionAverages(ABC):
    """Average reward of each action as a whole, whatever the congestion was; every action is tried once first."""

    knows: ClassVar[Knowledge] = "nothing"
    plays_several_pairs: ClassVar[bool] = True

    def start(self, task: Task, rng: np.random.Generator) -> None:
        """Begin a task from nothing."""
        self._rng = rng
        self._plays = np.zeros(task.actions.n_listed)
        self._means = np.zeros(task.actions.n_listed)
        self._scale = _action_sums(task, task.scale)
        self._noise_std = np.sqrt(_action_sums(task, task.noise_std**2))
        self._first: list[int] = task.actions.first_action.tolist()

    def choose(self, observation: Observation) -> int:
        """Return the first action of the pair not tried yet, or else the one with the largest score."""
        first, last = self._first[observation.pair : observation.pair + 2]
        if self._plays[first:last].min() == 0:
            return first + int(np.argmin(self._plays[first:last]))
        return first + int(np.argmax(self._scores(observation.round, slice(first, last))))

    def update(self, feedback: Feedback) -> None:
        """Take the reward into the action's average."""
        action = feedback.action
        self._plays[action] += 1
        self._means[action] += (feedback.reward - self._means[action]) / self._plays[action]

    def state(self) -> State:
        """Return the averages and where chance stands."""
        return collect(self, "_plays", "_means") | join(rng=rng_state(self._rng))

    def restore(self, state: State) -> None:
        """Take up a state, right after `start` with the same arguments as when it was made."""
        put_back(self, state, "_plays", "_means")
        restore_rng(self._rng, part(state, "rng"))

    @abstractmethod
    def _scores(self, now: int, of: slice) -> NDArray[np.float64]: ...


def _action_sums(task: Task, by_edge: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.add.reduceat(by_edge[task.actions.indices], task.actions.indptr[:-1])
