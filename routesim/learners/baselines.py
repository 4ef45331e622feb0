"""Baselines: what people would use otherwise. The first three ignore congestion; the informed ones know it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from routesim.checks import number
from routesim.errors import InputError
from routesim.learners.base import Epoch
from routesim.learners.carcb import AnyPolicy, Plans
from routesim.planning import Planner
from routesim.planning.base import Policy
from routesim.planning.cycles import CyclePolicy
from routesim.planning.exact.planner import TablePolicy
from routesim.rounds.contextual_policy import ContextualPolicy, Fit
from routesim.rounds.environment import Feedback, Knowledge, Observation, Tally, Task
from routesim.rounds.numbering import Action
from routesim.storage.state import State, collect, join, part, put_back, restore_rng, rng_state


class _ActionAverages(ABC):
    """Average reward of each action as a whole, whatever the congestion was; every action is tried once first."""

    knows: ClassVar[Knowledge] = "nothing"

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


@dataclass
class UCB1(_ActionAverages):
    """Upper confidence bounds on whole actions: average + scale * sqrt(2 log t / plays)."""

    def _scores(self, now: int, of: slice) -> NDArray[np.float64]:
        width: NDArray[np.float64] = np.sqrt(2 * np.log(now + 1) / self._plays[of])
        scores: NDArray[np.float64] = self._means[of] + self._scale[of] * width
        return scores


@dataclass
class ThompsonSampling(_ActionAverages):
    """Gaussian Thompson sampling on whole actions with the noise known: a draw from N(average, noise² / plays)."""

    def _scores(self, now: int, of: slice) -> NDArray[np.float64]:  # noqa: ARG002 - it shrinks with plays, not with time
        return self._rng.normal(self._means[of], self._noise_std[of] / np.sqrt(self._plays[of]))


@dataclass
class EpsilonGreedy(_ActionAverages):
    """The best average so far, but any action with probability `epsilon`."""

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        number("epsilon", self.epsilon, least=0, most=1)

    def _scores(self, now: int, of: slice) -> NDArray[np.float64]:  # noqa: ARG002 - epsilon does not change with time
        scores: NDArray[np.float64] = self._means[of]
        return self._rng.random(len(scores)) if self._rng.random() < self.epsilon else scores


@dataclass
class RandomPath:
    """Any action, with equal chances."""

    knows: ClassVar[Knowledge] = "nothing"

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

    def state(self) -> State:
        """Return where chance stands."""
        return join(rng=rng_state(self._rng))

    def restore(self, state: State) -> None:
        """Take up a state, right after `start` with the same arguments as when it was made."""
        restore_rng(self._rng, part(state, "rng"))


@dataclass
class GreedyCongestion:
    """Informed: knows the true rewards and takes what pays most at the present counts, without planning ahead."""

    knows: ClassVar[Knowledge] = "rewards"

    def start(self, task: Task, rng: np.random.Generator) -> None:  # noqa: ARG002 - no chance involved
        """Begin a task."""
        self._actions = task.actions
        self._rewards = _told(task.rewards if task.theta is None else task.multipliers)
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


class _FixedPolicy:
    """A policy decided at the start and kept for ever."""

    def choose(self, observation: Observation) -> Action:
        """Return the action of the policy."""
        pair = (observation.pair,) if self._several else ()
        action: Action = self._policy(observation.history, *pair)
        return action

    def update(self, feedback: Feedback) -> None:
        """Learn nothing."""

    def epoch(self, now: int) -> Epoch | None:  # noqa: ARG002 - the one epoch never ends
        """Return the policy, with a tally that is never full."""
        policy = self._policy
        return Epoch(policy, self._tally) if isinstance(policy, TablePolicy | CyclePolicy) else None

    def _keep(self, policy: Policy, task: Task) -> None:
        self._policy = policy
        self._several = len(task.actions.rates) > 1
        self._tally = Tally.empty(task.actions.n_edges, task.window)


@dataclass
class ShortestPath(_FixedPolicy):
    """The action that is best on empty roads, always."""

    knows: ClassVar[Knowledge] = "free_flow"

    def start(self, task: Task, rng: np.random.Generator) -> None:  # noqa: ARG002 - no chance involved
        """Find the action of each pair."""
        rewards = _told(task.free_flow_rewards)
        best = [task.actions.best(rewards, pair) for pair in range(len(task.actions.rates))]
        policy = CyclePolicy(best, 0) if len(best) == 1 else partial(_always, best)
        self._keep(policy, task)

    def state(self) -> State:
        """Return nothing; nothing changes."""
        return {}

    def restore(self, state: State) -> None:
        """Take up nothing."""


@dataclass
class Oracle(_FixedPolicy):
    """Informed: knows the true rewards and plays the best policy known; nobody beats an exact one for long.

    With known contexts that is the best sequence of actions over all rounds; with stochastic ones the best stationary
    policy for a sample of `sample` contexts; edge by edge where the joint histories are too many.
    """

    sample: int = 8192

    knows: ClassVar[Knowledge] = "rewards"

    def start(self, task: Task, rng: np.random.Generator) -> None:
        """Plan once."""
        self._plans: Plans | None = None
        if task.theta is None:
            self._planner = Planner(task.actions, task.window)
            self._plan = self._planner.plan(_told(task.rewards), tight_bound=False)
            self._keep(self._plan.policy, task)
            return
        self._plans = Plans(task, rng, self.sample)
        if task.rounds is None and self._plans.contexts.known:
            raise InputError("the oracle plans all rounds at once; give their number to environment.task(...)")
        self._nothing = Fit.empty(self._plans.multipliers, 0)
        self._begin(self._plans)

    def _begin(self, plans: Plans, stored: State | None = None) -> None:
        last = int(np.iinfo(np.int64).max) if plans.task.rounds is None else plans.task.rounds
        self._policies = plans.policies(_told(plans.task.theta).copy(), 0, last, stored=stored)
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


def _always(best: list[Action], history: Sequence[Action], pair: int) -> Action:  # noqa: ARG001 - whatever happened
    return best[pair]


def _action_sums(task: Task, by_edge: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.add.reduceat(by_edge[task.actions.indices], task.actions.indptr[:-1])


def _told(knowledge: NDArray[np.float64] | None) -> NDArray[np.float64]:
    if knowledge is None:
        raise InputError(
            "this learner needs a task that tells it the rewards; make it with environment.task(knows=...)"
        )
    return knowledge
