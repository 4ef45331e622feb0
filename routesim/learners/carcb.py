"""CARCB: least squares on features times congestion, and the best plan for each episode (Algorithm 2)."""

import math
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from routesim.arrays import Floats
from routesim.checks import MOST_CONTEXTS, RIDGES, number, whole
from routesim.errors import InputError
from routesim.learners.base import Epoch
from routesim.learners.contextual_plans import AnyPolicy, ContextualMethod, Plans
from routesim.learners.least_squares import least_squares
from routesim.rounds.contextual_policy import ContextualPolicy, Fit
from routesim.rounds.environment import Feedback, Knowledge, Observation, Task
from routesim.storage.state import State, collect, join, part, put_back

# Fewer observations than this per feature are early: then an undetermined theta is no mistake of the features.
_EARLY = 20

_LEAST_GROWTH = 1.01  # so that a million rounds have at most a thousand episodes


@dataclass
class CARCB:
    """Congestion-aware routing by contextual bandits, with known or stochastic contexts; arms and paths alike.

    Episode e has growth**e * max(window, 1) rounds. It is planned with the theta fitted to all rounds before it; the
    first theta is drawn from the unit ball. With known contexts the plan is the dynamic programme over the rounds of
    the episode and the `lookahead` windows after it, so that its last rounds do not spoil the first of the next; with
    stochastic ones it is the best stationary policy for a fixed sample of `sample` contexts. Where the joint histories
    are too many (`planner="auto"`), or on demand, it is planned edge by edge for contexts in general.

    `skip_first` gives the first `window` rewards of an episode no weight in the dynamic programme, as in the text of
    the algorithm; a stationary policy has no first rounds. `ridge` is added to the squares in the fit. At 0 the fit is
    ordinary least squares, of the smallest length while there are too few observations to determine theta; if theta
    stays undetermined, an error says so.

    `CARCB(growth=2, lookahead=0)` is the paper's: its episodes double, and nothing after them counts.

    >>> import routesim as rs
    >>> rounds = rs.ContextualEnvironment(
    ...     rs.ActionSet.arms(3), [0.6, 0.8], rs.UniformContexts(3, 2), rs.congestion.Inverse(), 2, 0.1, known=False
    ... )
    >>> bool(rs.run(rounds, rs.CARCB(), rounds=1_000, seed=0).average_regret[-1] < 0.02)
    True
    """

    planner: ContextualMethod = "auto"
    ridge: float = 0.0
    skip_first: bool = False
    sample: int = 2048
    growth: float = 1.1
    lookahead: int = 8

    knows: ClassVar[Knowledge] = "congestion"
    needs_contexts: ClassVar[bool] = True

    theta: Floats = field(init=False, repr=False, compare=False)
    epochs: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        if self.planner not in ("auto", "exact", "edgewise"):
            raise InputError(f"CARCB plans by auto, exact or edgewise, got {self.planner!r}")
        if self.ridge:
            number("ridge, where it is not 0,", self.ridge, *RIDGES)
        whole("sample", self.sample, 1, MOST_CONTEXTS)
        number("growth", self.growth, _LEAST_GROWTH, 1e3)
        whole("lookahead", self.lookahead, 0, 1_000)

    def __getstate__(self) -> dict[str, Any]:
        """Copies start afresh: a plan under way is not copied."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.init}

    def start(self, task: Task, rng: np.random.Generator) -> None:
        """Begin a task from nothing."""
        self._plans = Plans(task, rng, self.sample, self.planner)
        direction = rng.standard_normal(self._plans.contexts.dimension)
        radius = rng.random() ** (1 / len(direction))
        self.theta = radius * direction / np.linalg.norm(direction)
        self.fit = Fit.empty(self._plans.multipliers, len(direction))
        self.epochs = 0
        self._first = self._end = 0

    def choose(self, observation: Observation) -> int:
        """Return the action of the episode's plan."""
        return self._policy_at(observation.round)(self._plans.task, observation)

    def update(self, feedback: Feedback) -> None:
        """Add the rewards seen to the fit."""
        self.fit.add(feedback)

    def epoch(self, now: int) -> Epoch | None:
        """Return the plan in force at round `now` and the fit that feedback goes into."""
        policy = self._policy_at(now)
        return Epoch(policy, self.fit) if isinstance(policy, ContextualPolicy) else None

    def state(self) -> State:
        """Return the fit, the theta of the episode and what its plan is made from."""
        state = collect(self, "theta", "epochs", "_first", "_end")
        return state | join(fit=self.fit.state(), plans=self._plans.state())

    def restore(self, state: State) -> None:
        """Take up a state, right after `start` with the same arguments as when it was made."""
        put_back(self, state, "theta", "epochs", "_first", "_end")
        self.fit.restore(part(state, "fit"))
        if self.epochs > 0:
            self._begin(part(state, "plans"))

    def _begin(self, stored: State | None = None) -> None:
        weighs_from = self._first + self._plans.task.window if self.skip_first else self._first
        ahead = self.lookahead * max(self._plans.task.window, 1)
        self._policies = self._plans.policies(self.theta, self._first, self._end, weighs_from, stored, ahead=ahead)
        self._policy = next(self._policies)

    def _policy_at(self, now: int) -> AnyPolicy:
        if now >= self._end:
            if self.epochs > 0:
                self.theta = self.fitted(now)
            self.epochs += 1
            task = self._plans.task
            # No longer than fits into the number of a round.
            length = min(self.growth**self.epochs * max(task.window, 1), 2.0**60)
            self._first, self._end = now, now + math.ceil(length)
            if task.rounds is not None:
                self._end = max(now + 1, min(self._end, task.rounds))
            self._begin()
        while now >= self._policy.last:
            self._policy = next(self._policies)
        return self._policy

    def fitted(self, rounds: int) -> Floats:
        """Return the least-squares theta after so many rounds."""
        lower = self.fit.gram
        gram = np.tril(lower) + np.tril(lower, -1).T
        gram[np.diag_indices_from(gram)] += self.ridge
        theta, determined = least_squares(gram, self.fit.moment)
        if determined < len(theta) and rounds > _EARLY * len(theta):
            raise InputError(
                f"after {rounds:,} rounds the features seen span only {determined} of {len(theta)} "
                f"dimensions, so theta cannot be fitted; drop features that depend on others, or give ridge > 0"
            )
        return theta
