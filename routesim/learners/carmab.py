"""CARMAB and CARMAB-st: optimism about every (edge, count), and the best policy for it (Algorithms 1 and 3)."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from routesim.checks import check_confidence
from routesim.learners.base import Epoch
from routesim.planning import Method, Planner, checked_method
from routesim.planning.base import Plan, Policy
from routesim.planning.cycles import CyclePolicy
from routesim.planning.exact.planner import TablePolicy
from routesim.rounds.environment import Feedback, Knowledge, Observation, Tally, Task
from routesim.rounds.numbering import Action
from routesim.storage.state import State, collect, join, part, put_back


@dataclass
class CARMAB:
    """Congestion-aware routing by multi-armed bandits; arms and paths alike.

    Rewards are estimated per edge and count. An epoch keeps one policy, the best under the highest rewards that
    the estimates allow, and ends when the uses of some (edge, count) have doubled.

    `confidence` is the constant of the confidence radius (10 in the paper; 1 learns much sooner), `delta` the
    probability with which it may fail. `monotone` also uses that rewards do not rise with the count: an upper
    bound at a count bounds every larger count. `planner` is a method of `routesim.plan`.

    >>> import routesim as rs
    >>> two_roads = rs.RoundEnvironment.from_congestion(
    ...     rs.ActionSet.arms(2), [0.9, 0.6], rs.congestion.Inverse(), window=2, noise_std=0.1
    ... )
    >>> run = rs.run(two_roads, rs.CARMAB(confidence=1), rounds=2_000, seed=0)
    >>> bool(run.average_regret[-1] < 0.05), round(run.comparator_value, 3)
    (True, 0.8)
    """

    confidence: float = 10.0
    delta: float = 0.1
    monotone: bool = False
    planner: Method = "auto"

    knows: ClassVar[Knowledge] = "nothing"
    plays_whole_graph: ClassVar[bool] = True
    plays_several_pairs: ClassVar[bool] = True

    tally: Tally = field(init=False, repr=False, compare=False)
    plan: Plan[Policy] | None = field(init=False, repr=False, compare=False, default=None)
    epochs: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        check_confidence(self.confidence, self.delta)
        checked_method(self.planner)

    def start(self, task: Task, rng: np.random.Generator) -> None:  # noqa: ARG002 - optimism needs no chance
        """Begin a task from nothing."""
        self._task = task
        self._planner = Planner(task.actions, task.window, self.planner)
        self.tally = Tally.empty(task.actions.n_edges, task.window)
        self.plan = None
        self.epochs = 0

    def choose(self, observation: Observation) -> Action:
        """Return the action of the optimistic policy."""
        policy = self._plan_at(observation.round).policy
        pair = (observation.pair,) if len(self._task.actions.rates) > 1 else ()
        action: Action = policy(observation.history, *pair)
        return action

    def update(self, feedback: Feedback) -> None:
        """Add the rewards seen to the estimates."""
        self.tally.add(feedback)

    def epoch(self, now: int) -> Epoch | None:
        """Return the policy in force at round `now` and the tally that ends it."""
        policy = self._plan_at(now).policy
        return Epoch(policy, self.tally) if isinstance(policy, TablePolicy | CyclePolicy) else None

    def state(self) -> State:
        """Return the estimates and the plan in force."""
        plan = {} if self.plan is None else self._planner.state_of(self.plan)
        return collect(self, "epochs") | join(tally=self.tally.state(), plan=plan)

    def restore(self, state: State) -> None:
        """Take up a state, right after `start` with the same arguments as when it was made."""
        put_back(self, state, "epochs")
        self.tally.restore(part(state, "tally"))
        plan = part(state, "plan")
        self.plan = self._planner.restored(plan) if plan else None

    def _plan_at(self, now: int) -> Plan[Policy]:
        """Return the plan in force, made anew if an (edge, count) has doubled."""
        if self.plan is None or self.tally.full:
            _, optimistic = self.confidence_set(now)
            if self.monotone:
                optimistic = np.minimum.accumulate(optimistic, axis=1)
            self.plan = self._planner.plan(optimistic, start=self.plan, tight_bound=False)
            visits = self.tally.visits
            self.tally.limits = visits + np.maximum(1, visits)
            self.tally.full = False
            self.epochs += 1
        return self.plan

    def confidence_set(self, now: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lowest and highest mean reward of each (edge, count) believed possible at round `now`."""
        task, visits = self._task, self.tally.visits
        low, high = task.low[:, np.newaxis], task.high[:, np.newaxis]
        seen = np.maximum(1, visits)
        # Algorithm 3's union bound over L edges a path, E edges and the counts; rounds are numbered from 1 there.
        pairs = task.actions.longest * task.actions.n_edges * max(task.window, 1)
        radius = np.sqrt(np.log(pairs * (now + 1) / self.delta) / seen)
        radius *= self.confidence * task.scale[:, np.newaxis]
        mean = self.tally.sums / seen
        lower = np.where(visits > 0, np.clip(mean - radius, low, high), low)
        upper = np.where(visits > 0, np.clip(mean + radius, low, high), high)
        return lower, upper
