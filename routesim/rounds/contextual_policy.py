"""Policies of rounds with contexts, the least-squares fit of what they see, and the compiled loop that plays them."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import index
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints32
from routesim.errors import InputError
from routesim.kernels import lean_kernel
from routesim.rounds.environment import Feedback, Observation, Task
from routesim.rounds.kernels import RoundArrays, Trace, more_rounds, play_round
from routesim.rounds.window import PathRows, history_number
from routesim.storage.state import State, collect, put_back


class ContextualPolicy(NamedTuple):
    """What to do up to round `last`, by history and context.

    Either a `table` of actions by round, from `first` on, and history, made for contexts that were known; or, where the
    table is empty, the action with the largest reward now under `theta` plus value of the history it leads to.
    """

    theta: Floats
    values: Floats
    table: NDArray[np.integer]
    first: int
    last: int

    def __call__(self, task: Task, observation: Observation) -> int:
        """Return the action of the coming round."""
        actions, state = task.actions, 0
        for action in observation.history:
            state = state * actions.n_listed + index(action)  # type: ignore[arg-type]  # actions here are listed
        if len(self.table):
            return int(self.table[observation.round - self.first, state])
        if observation.features is None or task.multipliers is None:
            raise InputError("this policy needs the features of the round and the congestion; neither may be None")
        return best_after(
            self,
            state,
            observation.features,
            task.multipliers,
            observation.counts,
            actions.listed.rows,
            np.empty(actions.n_edges),
        )


@dataclass(frozen=True, eq=False)
class StepPolicy:
    """What to do up to round `last`, asked step by step: a function of the bases under `theta` and the history."""

    theta: Floats
    choose: Callable[[Floats, tuple[Any, ...]], int]
    last: int

    def __call__(self, task: Task, observation: Observation) -> int:  # noqa: ARG002 - as the policy above is called
        """Return the action of the coming round."""
        if observation.features is None:
            raise InputError("this policy needs the features of the round; they may not be None")
        return self.choose(observation.features @ self.theta, observation.history)


@dataclass
class Fit:
    """The sums of a least-squares fit of rewards to features times multiplier; they do not grow with the rounds."""

    multipliers: Floats
    gram: Floats
    moment: Floats

    @classmethod
    def empty(cls, multipliers: Floats, dimension: int) -> Self:
        """Return the fit of nothing; with dimension 0 it stays empty."""
        return cls(multipliers, np.zeros((dimension, dimension)), np.zeros(dimension))

    @property
    def sums(self) -> "FitSums":
        """The sums, for kernels to add to."""
        return FitSums(self.gram, self.moment)

    def add(self, feedback: Feedback) -> None:
        """Add one round."""
        if feedback.features is None:
            raise InputError("a fit needs feedback with features; play in a ContextualEnvironment")
        places = np.arange(len(feedback.edges), dtype=np.int32)
        multipliers = self.multipliers[feedback.edges]
        add_to_fit(feedback.features, multipliers, places, feedback.counts, feedback.rewards, self.sums)

    def state(self) -> State:
        """Return the sums."""
        return collect(self, "gram", "moment")

    def restore(self, state: State) -> None:
        """Take them up again."""
        put_back(self, state, "gram", "moment")


class FitSums(NamedTuple):
    """The sums of squares, of which only the lower triangle is kept, and of products with rewards."""

    gram: Floats
    moment: Floats


@lean_kernel
def play_contextual(
    policy: ContextualPolicy, features: Floats, rounds: RoundArrays, fit: FitSums, trace: Trace, estimates: Floats
) -> int:
    """Play up to the policy's last round and add every reward seen to the fit; return the rounds played.

    `features` has a row for each round of the bases. Stops early if the trace is full, or noise or contexts run out.
    `estimates` is room for one number an edge.
    """
    window, paths, seen = rounds.window, rounds.paths, rounds.seen
    multipliers, clock = rounds.payment.by_count, rounds.clock
    n_actions = len(paths.indptr) - 1
    n_states = n_actions**window.length
    state = history_number(window, clock[0], n_actions, n_states)
    played = 0
    while played < len(trace.actions) and clock[0] < policy.last and more_rounds(rounds):
        now = clock[0]
        row = now - rounds.bases.first
        if len(policy.table) > 0:
            action = int(policy.table[now - policy.first, state])
        else:
            action = best_after(policy, state, features[row], multipliers, window.counts, paths, estimates)
        trace.actions[played] = action
        trace.expected_rewards[played], trace.rewards[played] = play_round(action, rounds)
        edges = paths.indices[paths.indptr[action] : paths.indptr[action + 1]]
        add_to_fit(features[row], multipliers, edges, seen.counts, seen.rewards, fit)
        state = (state * n_actions + action) % n_states
        played += 1
    return played


@lean_kernel
def best_after(
    policy: ContextualPolicy,
    state: int,
    features: Floats,
    multipliers: Floats,
    counts: Ints32,
    paths: PathRows,
    estimates: Floats,
) -> int:
    """Return the action with the largest reward now under `theta` plus value of the history it leads to."""
    theta, after = policy.theta, policy.values
    indptr, indices = paths.indptr, paths.indices
    n_actions, n_states = len(indptr) - 1, len(after)
    n_edges, dimension = features.shape
    for edge in range(n_edges):
        base = 0.0
        for place in range(dimension):
            base += features[edge, place] * theta[place]
        estimates[edge] = base * multipliers[edge, counts[edge]]
    successor = (state * n_actions) % n_states
    best, choice = -np.inf, 0
    for action in range(n_actions):
        worth = after[successor + action] if n_states > 1 else after[0]
        for place in range(indptr[action], indptr[action + 1]):
            worth += estimates[indices[place]]
        if worth > best:
            best, choice = worth, action
    return choice


@lean_kernel
def add_to_fit(
    features: Floats, multipliers: Floats, edges: Ints32, seen_counts: Ints32, seen_rewards: Floats, fit: FitSums
) -> None:
    """Add the edges of a round to the sums of least squares on features times multiplier."""
    dimension = len(fit.moment)
    for place in range(len(edges)):
        edge = edges[place]
        multiplier = multipliers[edge, seen_counts[place]]
        for line in range(dimension):
            regressor = features[edge, line] * multiplier
            fit.moment[line] += regressor * seen_rewards[place]
            for column in range(line + 1):
                fit.gram[line, column] += regressor * features[edge, column] * multiplier
