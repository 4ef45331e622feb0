"""TabularLearner: what learners of rewards by (edge, count) that keep one plan for an epoch have in common."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from routesim.arrays import Floats
from routesim.learners.base import Epoch
from routesim.planning import Method, Planner, checked_method
from routesim.planning.base import Plan, Policy
from routesim.planning.cycles import CyclePolicy
from routesim.planning.exact.planner import TablePolicy
from routesim.rounds.environment import Feedback, Knowledge, Observation, Tally, Task
from routesim.rounds.numbering import Action
from routesim.storage.state import State, collect, join, part, put_back


@dataclass
class TabularLearner(ABC):
    """Plans the best policy for a table of believed rewards, and keeps it until the uses of some (edge, count) double.

    Arms, paths and whole graphs alike. What differs is the table (`_believed`), and how long an epoch may last
    (`_last`). `planner` is a method of `routesim.plan`.
    """

    knows: ClassVar[Knowledge] = "nothing"
    plays_whole_graph: ClassVar[bool] = True
    plays_several_pairs: ClassVar[bool] = True

    planner: Method = field(default="auto", kw_only=True)

    tally: Tally = field(init=False, repr=False, compare=False)
    plan: Plan[Policy] | None = field(init=False, repr=False, compare=False, default=None)
    epochs: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        checked_method(self.planner)

    def start(self, task: Task, rng: np.random.Generator) -> None:
        """Begin a task from nothing."""
        self._task, self._rng = task, rng
        self._planner = Planner(task.actions, task.window, self.planner)
        self.tally = Tally.empty(task.actions.n_edges, task.window)
        self.plan = None
        self.epochs = 0
        self._first = self._end = 0

    def choose(self, observation: Observation) -> Action:
        """Return the action of the epoch's policy."""
        policy = self._plan_at(observation.round).policy
        pair = (observation.pair,) if len(self._task.actions.rates) > 1 else ()
        action: Action = policy(observation.history, *pair)
        return action

    def update(self, feedback: Feedback) -> None:
        """Add the rewards seen to the estimates."""
        self.tally.add(feedback)

    def epoch(self, now: int) -> Epoch | None:
        """Return the policy in force at round `now`, the tally that ends it, and the round it lasts to at most."""
        policy = self._plan_at(now).policy
        return Epoch(policy, self.tally, self._end) if isinstance(policy, TablePolicy | CyclePolicy) else None

    def state(self) -> State:
        """Return the estimates and the plan in force."""
        plan = {} if self.plan is None else self._planner.state_of(self.plan)
        return collect(self, "epochs", "_first", "_end") | join(tally=self.tally.state(), plan=plan)

    def restore(self, state: State) -> None:
        """Take up a state, right after `start` with the same arguments as when it was made."""
        put_back(self, state, "epochs", "_first", "_end")
        self.tally.restore(part(state, "tally"))
        plan = part(state, "plan")
        self.plan = self._planner.restored(plan) if plan else None

    def _plan_at(self, now: int) -> Plan[Policy]:
        """Return the plan in force, made anew if an (edge, count) has doubled or the epoch has lasted long enough."""
        if self.plan is None or self.tally.full or now >= self._end:
            self._end = self._last(now, now - self._first)
            self._first = now
            self.plan = self._planner.plan(self._believed(now), start=self.plan, tight_bound=False)
            visits = self.tally.visits
            self.tally.limits = visits + np.maximum(1, visits)
            self.tally.full = False
            self.epochs += 1
        return self.plan

    @abstractmethod
    def _believed(self, now: int) -> Floats:
        """Return the rewards by (edge, count) to plan on from round `now` on."""

    def _last(self, now: int, before: int) -> int:  # noqa: ARG002 - for those whose epochs have a length
        """Return the round before which an epoch that begins now is over, if the one before had so many rounds."""
        return int(np.iinfo(np.int64).max)
