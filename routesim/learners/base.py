"""What every learner is: told its task once, then asked to choose and shown what came of it, round by round."""

from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from routesim.planning.cycles import CyclePolicy
from routesim.planning.exact.planner import TablePolicy
from routesim.rounds.contextual_policy import ContextualPolicy, Fit
from routesim.rounds.environment import Feedback, Knowledge, Observation, Tally, Task
from routesim.rounds.numbering import Action


@runtime_checkable
class Learner(Protocol):
    """A stateful chooser of actions; its constructor takes parameters, `start` makes the state.

    `knows` says what it is told beyond its task: "rewards" makes it informed, which no real learner is.
    """

    knows: ClassVar[Knowledge]

    def start(self, task: Task, rng: np.random.Generator) -> None:
        """Begin a task from nothing; all random choices come from `rng`."""

    def choose(self, observation: Observation) -> Action:
        """Return the action of the coming round."""

    def update(self, feedback: Feedback) -> None:
        """Take in what the round showed."""


class Epoch(NamedTuple):
    """A policy that is kept: a table of actions by history or a cycle of actions until the tally is full, or a policy
    that looks at contexts to its last round.
    """

    policy: TablePolicy | CyclePolicy[Any] | ContextualPolicy
    tally: Tally | Fit


@runtime_checkable
class EpochLearner(Learner, Protocol):
    """A learner whose policy is fixed for a while, so that a whole epoch can be played in one compiled call."""

    def epoch(self, now: int) -> Epoch | None:
        """Return the epoch in force at round `now`, or None if it must be played step by step.

        Feedback of a played epoch goes straight into its tally.
        """
