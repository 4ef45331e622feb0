"""RandomPath: any action, with equal chances."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from routesim.arrays import Floats
from routesim.kernels import kernel
from routesim.rounds.environment import Feedback, Knowledge, Observation, Task
from routesim.rounds.kernels import RoundArrays, Trace, more_rounds, play_round
from routesim.storage.state import State, join, part, restore_rng, rng_state


@dataclass
class RandomPath:
    """Any action, with equal chances."""

    knows: ClassVar[Knowledge] = "nothing"
    learns: ClassVar[bool] = False
    plays_several_pairs: ClassVar[bool] = True

    def start(self, task: Task, rng: np.random.Generator) -> None:
        """Begin a task."""
        self._rng = rng
        task.actions.n_listed  # noqa: B018 - refuses a whole graph
        self._first: list[int] = task.actions.first_action.tolist()

    def choose(self, observation: Observation) -> int:
        """Return a random action of the pair."""
        first, last = self._first[observation.pair : observation.pair + 2]
        return int(self._rng.integers(first, last))

    def update(self, feedback: Feedback) -> None:
        """Learn nothing."""

    def play(self, rounds: RoundArrays, features: Floats, trace: Trace) -> int:  # noqa: ARG002 - it looks at none
        """Play rounds in one compiled call; return their number."""
        played: int = _play(self._first[1], rounds, trace, self._rng)
        return played

    def state(self) -> State:
        """Return where chance stands."""
        return join(rng=rng_state(self._rng))

    def restore(self, state: State) -> None:
        """Take up a state, right after `start` with the same arguments as when it was made."""
        restore_rng(self._rng, part(state, "rng"))


@kernel
def _play(n_actions: int, rounds: RoundArrays, trace: Trace, rng: Any) -> int:
    """Play until the trace is full, or noise or contexts run out; return the rounds."""
    played = 0
    while played < len(trace.actions) and more_rounds(rounds):
        action = rng.integers(0, n_actions)
        expected, paid = play_round(action, rounds)
        trace.actions[played], trace.expected_rewards[played], trace.rewards[played] = action, expected, paid
        played += 1
    return played
