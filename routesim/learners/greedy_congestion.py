"""GreedyCongestion: the true rewards at the present counts, without planning ahead."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from routesim.learners.base import required
from routesim.rounds.environment import Feedback, Knowledge, Observation, Task
from routesim.rounds.numbering import Action
from routesim.storage.state import State


@dataclass
class GreedyCongestion:
    """Informed: knows the true rewards and takes what pays most at the present counts, without planning ahead."""

    knows: ClassVar[Knowledge] = "rewards"
    learns: ClassVar[bool] = False
    plays_whole_graph: ClassVar[bool] = True
    plays_several_pairs: ClassVar[bool] = True

    def start(self, task: Task, rng: np.random.Generator) -> None:  # noqa: ARG002 - no chance involved
        """Begin a task."""
        self._actions = task.actions
        self._rewards = required(task.rewards if task.theta is None else task.multipliers)
        self._theta = task.theta
        self._edges = np.arange(task.actions.n_edges)

    def choose(self, observation: Observation) -> Action:
        """Return the action that pays most now."""
        now = self._rewards[self._edges, observation.counts]
        if observation.features is not None and self._theta is not None:
            now = (observation.features @ self._theta) * now
        return self._actions.best(now, observation.pair)

    def update(self, feedback: Feedback) -> None:
        """Learn nothing; everything is known."""

    def state(self) -> State:
        """Return nothing; nothing changes."""
        return {}

    def restore(self, state: State) -> None:
        """Take up nothing."""
