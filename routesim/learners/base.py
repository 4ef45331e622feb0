"""What every learner is: told its task once, then asked to choose and shown what came of it, round by round."""

from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from routesim.contextual import ContextualPolicy, Fit
from routesim.environment import Feedback, Knowledge, Observation, Tally, Task


@runtime_checkable
class Learner(Protocol):
    """A stateful chooser of actions; its constructor takes parameters, `start` makes the state.

    `knows` says what it is told beyond its task: "rewards" makes it informed, which no real learner is.
    """

    knows: ClassVar[Knowledge]

    def start(self, task: Task, rng: np.random.Generator) -> None:
        """Begin a task from nothing; all random choices come from `rng`."""

    def choose(self, observation: Observation) -> int:
        """Return the action of the coming round."""

    def update(self, feedback: Feedback) -> None:
        """Take in what the round showed."""


class Epoch(NamedTuple):
    """A policy table that is kept until the tally is full, or a contextual policy that is kept to its last round."""

    policy: NDArray[np.int32] | ContextualPolicy
    tally: Tally | Fit


@runtime_checkable
class EpochLearner(Learner, Protocol):
    """A learner whose policy is fixed for a while, so that a whole epoch can be played in one compiled call."""

    def epoch(self, now: int) -> Epoch:
        """Return the epoch in force at round `now`; feedback goes straight into its tally."""
