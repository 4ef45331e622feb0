"""CARCB: least squares on features times congestion, and the best plan for each episode (Algorithm 2)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.errors import InputError
from routesim.learners.base import Epoch
from routesim.planning.contextual.edgewise import EdgeTolls, EdgewiseContextualPlanner
from routesim.planning.contextual.exact import ContextualPlanner
from routesim.planning.exact.planner import fits
from routesim.rounds.contextual_policy import ContextualPolicy, Fit, StepPolicy
from routesim.rounds.environment import Feedback, Knowledge, Observation, Task
from routesim.storage.state import State, collect, join, named, part, put_back, taken
from routesim.travellers.contexts import Contexts

Floats: TypeAlias = NDArray[np.float64]
ContextualMethod: TypeAlias = Literal["auto", "exact", "edgewise"]
AnyPolicy: TypeAlias = ContextualPolicy | StepPolicy

# Sums of products square the condition of the features, so this is where their inverse has lost all its digits.
_SINGULAR = 1e-12
# Fewer observations than this per feature are early: then an undetermined theta is no mistake of the features.
_EARLY = 20


@dataclass
class CARCB:
    """Congestion-aware routing by contextual bandits, with known or stochastic contexts; arms and paths alike.

    Episode e has 2**e * max(window, 1) rounds. It is planned with the theta fitted to all rounds before it; the first
    theta is drawn from the unit ball. With known contexts the plan is the dynamic programme over the rounds of the
    episode; with stochastic ones it is the best stationary policy for a fixed sample of `sample` contexts. Where the
    joint histories are too many (`planner="auto"`), or on demand, it is planned edge by edge for contexts in general.

    `skip_first` gives the first `window` rewards of an episode no weight in the dynamic programme, as in the text of
    the algorithm; a stationary policy has no first rounds. `ridge` is added to the squares in the fit. At 0 the fit is
    ordinary least squares, of the smallest length while there are too few observations to determine theta; if theta
    stays undetermined, an error says so.

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

    knows: ClassVar[Knowledge] = "congestion"

    theta: Floats = field(init=False, repr=False, compare=False)
    epochs: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        if self.planner not in ("auto", "exact", "edgewise"):
            raise InputError(f"CARCB plans by auto, exact or edgewise, got {self.planner!r}")
        if not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise InputError(f"ridge must be finite and at least 0, got {self.ridge}")
        if self.sample < 1:
            raise InputError(f"sample must be at least 1 context, got {self.sample}")

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
        self._policies = self._plans.policies(self.theta, self._first, self._end, weighs_from, stored)
        self._policy = next(self._policies)

    def _policy_at(self, now: int) -> AnyPolicy:
        if now >= self._end:
            if self.epochs > 0:
                self.theta = self.fitted(now)
            self.epochs += 1
            task = self._plans.task
            self._first, self._end = now, now + 2**self.epochs * max(task.window, 1)
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
        sizes, directions = np.linalg.eigh(gram)
        determined = sizes > _SINGULAR * max(float(sizes[-1]), np.finfo(float).tiny)
        if not determined.all():
            if rounds > _EARLY * len(sizes):
                raise InputError(
                    f"after {rounds:,} rounds the features seen span only {int(determined.sum())} of {len(sizes)} "
                    f"dimensions, so theta cannot be fitted; drop features that depend on others, or give ridge > 0"
                )
            sizes = np.where(determined, sizes, np.inf)
        fitted: Floats = directions @ ((directions.T @ self.fit.moment) / sizes)
        return fitted


class Plans:
    """Plans for a task with contexts and any theta: CARCB plans with an estimate, the oracle with the truth."""

    def __init__(self, task: Task, rng: np.random.Generator, sample: int, method: ContextualMethod = "auto") -> None:
        if task.contexts is None or task.multipliers is None:
            raise InputError("this learner needs rounds with contexts; play it in a ContextualEnvironment")
        self.task = task
        self.contexts: Contexts = task.contexts
        self.multipliers = task.multipliers
        self.planner: ContextualPlanner | EdgewiseContextualPlanner
        exact = method == "exact" or (method == "auto" and fits(task.actions.n_listed, task.window))
        kind = ContextualPlanner if exact else EdgewiseContextualPlanner
        self.planner = kind(task.actions, task.window, task.multipliers)
        self.tolls: EdgeTolls | None = None
        self._values: Floats | None = None
        if not self.contexts.known:
            drawn = self.contexts.draw(rng, min(sample, max(2, 8 * self.contexts.block)))
            # Few kinds of travellers: each kind once, with its share.
            flat, counts = np.unique(drawn.reshape(len(drawn), -1), axis=0, return_counts=True)
            self._sample = flat.reshape(-1, *drawn.shape[1:])
            self._weights = counts / len(drawn)

    def state(self) -> State:
        """Return the tolls or values of the last plan; nothing for known contexts, whose plan follows from theta."""
        if isinstance(self.planner, EdgewiseContextualPlanner):
            return {} if self.tolls is None else collect(self.tolls, *_TOLLS)
        return {} if self._values is None else {"values": self._values.copy()}

    def policies(
        self, theta: Floats, first: int, last: int, weighs_from: int = 0, stored: State | None = None
    ) -> Iterator[AnyPolicy]:
        """Yield the best policies under `theta` from round `first` up to `last`, one after the other.

        `stored` is what `state` returned after the same call; it is then taken up, not planned again.
        """
        if isinstance(self.planner, EdgewiseContextualPlanner):
            if stored is None:
                self.tolls = self.planner.tolls(*self._some(theta, first, last))
            else:
                self.tolls = _restored_tolls(stored, self.planner)
            yield StepPolicy(theta, partial(self.planner.choose, self.tolls), last)
            return
        if not self.contexts.known:
            if stored is None:
                sampled = self._sample @ theta
                found = self.planner.stationary(sampled, self._weights, start=self._values, tolerance=1e-4)
                self._values = found.values
            else:
                self._values = taken(stored, "values", np.empty(self.planner.n_histories))
            yield ContextualPolicy(theta, self._values, np.zeros((0, 1), dtype=np.uint8), first, last)
            return

        def bases(start: int, end: int) -> Floats:
            weights = np.arange(start, end) >= weighs_from
            return (self.contexts.read(start, end) @ theta) * weights[:, np.newaxis]

        for block in self.planner.blocks(bases, first, last, reads=self.contexts.block):
            yield ContextualPolicy(theta, np.empty(0), block.table, block.first, block.last)

    def _some(self, theta: Floats, first: int, last: int) -> tuple[Floats, Floats]:
        """Return bases of some rounds to come, with their chances."""
        if not self.contexts.known:
            return self._sample @ theta, self._weights
        features = self.contexts.read(first, min(last, first + self.contexts.block))
        return features @ theta, np.full(len(features), 1 / len(features))

    def bound(self, bases: Callable[[int, int], Floats], rounds: int) -> float:
        """Return a sum of rewards that no policy exceeds over rounds with these true bases."""
        if isinstance(self.planner, EdgewiseContextualPlanner):
            if self.tolls is None:
                raise InputError("a bound comes from prices, and nothing has been planned yet; take a policy first")
            return self.planner.bound(self.tolls, bases, rounds, self.contexts.block)
        return self.planner.best(bases, 0, rounds, reads=self.contexts.block)


_TOLLS = ("prices", "means", "share", "values")


def _restored_tolls(state: State, planner: EdgewiseContextualPlanner) -> EdgeTolls:
    groups = np.empty(len(planner.groups))
    prices, means = (taken(state, name, groups) for name in ("prices", "means"))
    share, values = float(named(state, "share", np.float64, 0)), np.empty((len(groups), planner.n_histories))
    return EdgeTolls(prices, means, share, taken(state, "values", values))
