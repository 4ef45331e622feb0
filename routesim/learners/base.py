"""What every learner is: told its task once, then asked to choose and shown what came of it, round by round."""

from typing import Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats
from routesim.errors import InputError
from routesim.planning.cycles import CyclePolicy
from routesim.planning.exact.planner import TablePolicy
from routesim.rounds.contextual_policy import ContextualPolicy, Fit
from routesim.rounds.environment import Feedback, Knowledge, Observation, Tally, Task
from routesim.rounds.kernels import RoundArrays, Trace
from routesim.rounds.numbering import Action


class Traits(NamedTuple):
    """What a learner says of itself by attributes of its class; where it says nothing, these defaults are true of it.

    Scenario files, runs, reports, the service and the documentation read this and ask for no class by name. A learner
    need not inherit from anything: its class states what differs.

    `knows` is what it is given beyond its task: "rewards" makes it informed, which no real learner is.
    `needs_contexts`: it plays only where rounds have features. `plays_whole_graph`: it plays where every path of a
    graph is an action. `plays_several_pairs`: it plays where rounds serve several OD pairs. `learns`: feedback changes
    what it does. `takes_shortest_path`: it always takes the path that is quickest on empty roads, with which reports
    compare.
    """

    knows: Knowledge = "nothing"
    needs_contexts: bool = False
    plays_whole_graph: bool = False
    plays_several_pairs: bool = False
    learns: bool = True
    takes_shortest_path: bool = False

    @classmethod
    def of(cls, learner: object) -> Self:
        """Return what a learner, or a class of learners, says of itself."""
        return cls._make(getattr(learner, name, default) for name, default in cls._field_defaults.items())

    @property
    def informed(self) -> bool:
        """Whether it knows the true rewards, which no real learner does."""
        return self.knows == "rewards"


@runtime_checkable
class Learner(Protocol):
    """A stateful chooser of actions; its constructor takes parameters, `start` makes the state.

    `knows` says what it is given beyond its task; `Traits` has what else a class may say of itself.
    """

    knows: ClassVar[Knowledge]

    def start(self, task: Task, rng: np.random.Generator) -> None:
        """Begin a task from nothing; all random choices come from `rng`."""

    def choose(self, observation: Observation) -> Action:
        """Return the action of the coming round."""

    def update(self, feedback: Feedback) -> None:
        """Take in what the round showed."""


class Epoch(NamedTuple):
    """A policy that is kept: a table of actions by history or a cycle of actions until the tally is full or round `end`
    has come, or a policy that looks at contexts to its last round.
    """

    policy: TablePolicy | CyclePolicy[Any] | ContextualPolicy
    tally: Tally | Fit
    end: int = np.iinfo(np.int64).max


@runtime_checkable
class EpochLearner(Learner, Protocol):
    """A learner whose policy is fixed for a while, so that a whole epoch can be played in one compiled call."""

    def epoch(self, now: int) -> Epoch | None:
        """Return the epoch in force at round `now`, or None if it must be played step by step.

        Feedback of a played epoch goes straight into its tally.
        """


@runtime_checkable
class CompiledLearner(Learner, Protocol):
    """A learner that decides anew each round, and can play many rounds of one OD pair in one compiled call."""

    def play(self, rounds: RoundArrays, features: Floats, trace: Trace) -> int:
        """Play rounds until the trace is full, or noise or contexts run out, and learn from them; return their number.

        `features` has a row for each round of the bases, or none where there are no contexts. The same numbers as
        `choose` and `update` give.
        """


@runtime_checkable
class CountsEpochs(Protocol):
    """A learner that counts the policies it has made; the summary of a run says how many."""

    epochs: int


def required(knowledge: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return what a task should tell the learner, or refuse a task that does not."""
    if knowledge is None:
        raise InputError(
            "this learner needs a task that tells it the rewards; make it with environment.task(knows=...)"
        )
    return knowledge
