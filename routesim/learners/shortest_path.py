"""ShortestPath: the action that is best on empty roads, always."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from routesim.learners.base import required
from routesim.learners.fixed_policy import FixedPolicy
from routesim.planning.cycles import CyclePolicy
from routesim.rounds.environment import Knowledge, Task
from routesim.rounds.numbering import Action
from routesim.storage.state import State


@dataclass
class ShortestPath(FixedPolicy):
    """The action that is best on empty roads, always."""

    knows: ClassVar[Knowledge] = "free_flow"
    learns: ClassVar[bool] = False
    takes_shortest_path: ClassVar[bool] = True
    plays_whole_graph: ClassVar[bool] = True
    plays_several_pairs: ClassVar[bool] = True

    def start(self, task: Task, rng: np.random.Generator) -> None:  # noqa: ARG002 - no chance involved
        """Find the action of each pair."""
        rewards = required(task.free_flow_rewards)
        best = [task.actions.best(rewards, pair) for pair in range(len(task.actions.rates))]
        policy = CyclePolicy(best, 0) if len(best) == 1 else partial(_always, best)
        self._keep(policy, task)

    def state(self) -> State:
        """Return nothing; nothing changes."""
        return {}

    def restore(self, state: State) -> None:
        """Take up nothing."""


def _always(best: list[Action], history: Sequence[Action], pair: int) -> Action:  # noqa: ARG001 - whatever happened
    return best[pair]
