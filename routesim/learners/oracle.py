"""Oracle: the best policy known under the true rewards."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from routesim.checks import MOST_CONTEXTS, whole
from routesim.errors import InputError
from routesim.learners.base import Epoch, required
from routesim.learners.contextual_plans import AnyPolicy, Plans
from routesim.learners.fixed_policy import FixedPolicy
from routesim.planning import Planner
from routesim.rounds.contextual_policy import ContextualPolicy, Fit
from routesim.rounds.environment import Knowledge, Observation, Task
from routesim.rounds.numbering import Action
from routesim.storage.state import State


@dataclass
class Oracle(FixedPolicy):
    """Informed: knows the true rewards and plays the best policy known; nobody beats an exact one for long.

    With known contexts that is the best sequence of actions over all rounds; with stochastic ones the best stationary
    policy for a sample of `sample` contexts; edge by edge where the joint histories are too many.
    """

    sample: int = 8192

    knows: ClassVar[Knowledge] = "rewards"
    learns: ClassVar[bool] = False
    plays_whole_graph: ClassVar[bool] = True
    plays_several_pairs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole("sample", self.sample, 1, MOST_CONTEXTS)

    def start(self, task: Task, rng: np.random.Generator) -> None:
        """Plan once."""
        self._plans: Plans | None = None
        if task.theta is None:
            self._planner = Planner(task.actions, task.window)
            self._plan = self._planner.plan(required(task.rewards), tight_bound=False)
            self._keep(self._plan.policy, task)
            return
        self._plans = Plans(task, rng, self.sample)
        if task.rounds is None and self._plans.contexts.known:
            raise InputError("the oracle plans all rounds at once; give their number to environment.task(...)")
        self._nothing = Fit.empty(self._plans.multipliers, 0)
        self._begin(self._plans)

    def _begin(self, plans: Plans, stored: State | None = None) -> None:
        last = int(np.iinfo(np.int64).max) if plans.task.rounds is None else plans.task.rounds
        self._policies = plans.policies(required(plans.task.theta).copy(), 0, last, stored=stored)
        self._part = next(self._policies)

    def state(self) -> State:
        """Return the plan."""
        return self._planner.state_of(self._plan) if self._plans is None else self._plans.state()

    def restore(self, state: State) -> None:
        """Take up a state, right after `start` with the same arguments as when it was made."""
        if self._plans is None:
            self._plan = self._planner.restored(state)
            self._policy = self._plan.policy
        elif state:
            self._begin(self._plans, state)

    def __getstate__(self) -> dict[str, Any]:
        """Copies start afresh: a plan under way is not copied."""
        return {"sample": self.sample}

    def choose(self, observation: Observation) -> Action:
        """Return the action of the policy."""
        if self._plans is None:
            return super().choose(observation)
        return self._part_at(observation.round)(self._plans.task, observation)

    def epoch(self, now: int) -> Epoch | None:
        """Return the policy in force at round `now`, with a tally that is never full."""
        if self._plans is None:
            return super().epoch(now)
        part = self._part_at(now)
        return Epoch(part, self._nothing) if isinstance(part, ContextualPolicy) else None

    def bound(self, bases: Callable[[int, int], NDArray[np.float64]], rounds: int) -> float:
        """Return a sum of rewards that no policy exceeds over rounds with these true bases."""
        if self._plans is None:
            raise InputError("bases change from round to round only where rounds have contexts")
        return self._plans.bound(bases, rounds)

    def _part_at(self, now: int) -> AnyPolicy:
        while now >= self._part.last:
            self._part = next(self._policies)
        return self._part
