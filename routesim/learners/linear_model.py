"""LinearModel: what learners of theta that take the best action at the present counts have in common; none plans."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from routesim.arrays import Floats
from routesim.checks import RIDGES, number
from routesim.errors import InputError
from routesim.kernels import kernel
from routesim.rounds.environment import Feedback, Knowledge, Observation, Task
from routesim.rounds.kernels import RoundArrays, Trace, more_rounds, play_round
from routesim.rounds.window import PathRows
from routesim.storage.state import State, collect, join, part, put_back, restore_rng, rng_state

_FIT = ("_gram", "_inverse", "_moment", "theta")


class Believed(NamedTuple):
    """What is believed of theta: the sums of the fit, the inverse of its squares, and theta, by known multipliers.

    `bonus` is what each length of a regressor in the inverse adds to a score, and `spread` the standard deviation, in
    the same measure, of a theta that is drawn for each round.
    """

    multipliers: Floats
    gram: Floats
    inverse: Floats
    moment: Floats
    theta: Floats
    bonus: float
    spread: float


@dataclass
class LinearModel:
    """Ridge regression of each edge's reward on its features times its multiplier, or, `blind`, on its features."""

    ridge: float = 1.0
    blind: bool = False

    knows: ClassVar[Knowledge] = "congestion"
    needs_contexts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        number("ridge", self.ridge, *RIDGES)

    def start(self, task: Task, rng: np.random.Generator) -> None:
        """Begin a task from nothing."""
        if task.contexts is None or task.multipliers is None:
            raise InputError("this learner needs rounds with contexts; play it in a ContextualEnvironment")
        self._rng = rng
        self._rows = task.actions.listed.rows
        self._noise_std = float(np.sqrt(np.mean(task.noise_std**2)))
        self._multipliers = np.ones(task.multipliers.shape) if self.blind else np.array(task.multipliers)
        dimension = task.contexts.dimension
        self._gram = self.ridge * np.eye(dimension)
        self._inverse = np.eye(dimension) / self.ridge
        self._moment = np.zeros(dimension)
        self.theta = np.zeros(dimension)

    def choose(self, observation: Observation) -> int:
        """Return the action with the largest score at the present counts."""
        if observation.features is None:
            raise InputError("this learner needs the features of each round; play it in a ContextualEnvironment")
        return int(
            best_action(self._believed, np.array(observation.features), observation.counts, self._rows, self._rng)
        )

    def update(self, feedback: Feedback) -> None:
        """Add the rewards seen to the fit."""
        if feedback.features is None:
            raise InputError("this learner needs feedback with features; play it in a ContextualEnvironment")
        places = np.arange(len(feedback.edges))
        multipliers = self._multipliers[feedback.edges, feedback.counts]
        _learn(self._believed, np.array(feedback.features), places, multipliers, feedback.rewards)

    def play(self, rounds: RoundArrays, features: Floats, trace: Trace) -> int:
        """Play rounds in one compiled call, and learn from them; return their number."""
        played: int = _play(self._believed, features, rounds, trace, self._rng)
        return played

    @property
    def _believed(self) -> Believed:
        fit = self._gram, self._inverse, self._moment, self.theta
        return Believed(self._multipliers, *fit, *(self._noise_std * weight for weight in self._exploration()))

    def _exploration(self) -> tuple[float, float]:
        """Return `bonus` and `spread` of `Believed`, in units of the noise."""
        return 0.0, 0.0

    def state(self) -> State:
        """Return the fit and where chance stands."""
        return collect(self, *_FIT) | join(rng=rng_state(self._rng))

    def restore(self, state: State) -> None:
        """Take up a state, right after `start` with the same arguments as when it was made."""
        put_back(self, state, *_FIT)
        restore_rng(self._rng, part(state, "rng"))


@kernel
def theta_of_round(believed: Believed, rng: Any) -> Floats:
    """Return the theta to go by: the fitted one, or a draw from what is believed of it."""
    theta, dimension = believed.theta.copy(), len(believed.theta)
    if believed.spread > 0.0:
        jitter = 1e-15 * np.trace(believed.inverse) * np.eye(dimension)
        root = np.linalg.cholesky(believed.inverse + jitter)
        drawn = np.empty(dimension)
        for place in range(dimension):
            drawn[place] = rng.standard_normal()
        for place in range(dimension):
            for other in range(place + 1):
                theta[place] += believed.spread * root[place, other] * drawn[other]
    return theta


@kernel
def best_action(believed: Believed, features: Floats, counts: Any, paths: PathRows, rng: Any) -> int:
    """Return the action with the largest score at these counts."""
    dimension, theta = len(believed.theta), theta_of_round(believed, rng)
    scores = np.empty(len(features))
    for edge in range(len(features)):
        multiplier = believed.multipliers[edge, counts[edge]]
        score = square = 0.0
        for place in range(dimension):
            score += features[edge, place] * theta[place]
            if believed.bonus > 0.0:
                across = 0.0
                for other in range(dimension):
                    across += believed.inverse[place, other] * features[edge, other]
                square += features[edge, place] * across
        scores[edge] = multiplier * score + believed.bonus * abs(multiplier) * np.sqrt(max(0.0, square))
    best, choice = -np.inf, 0
    for action in range(len(paths.indptr) - 1):
        total = 0.0
        for place in range(paths.indptr[action], paths.indptr[action + 1]):
            total += scores[paths.indices[place]]
        if total > best:
            best, choice = total, action
    return choice


@kernel
def _learn(believed: Believed, features: Floats, edges: Any, multipliers: Floats, rewards: Floats) -> None:
    """Add the edges of a round to the fit, by the rows of features and the multipliers that they met."""
    gram, inverse, moment, theta = believed.gram, believed.inverse, believed.moment, believed.theta
    dimension = len(theta)
    for place in range(len(edges)):
        regressor = features[edges[place]] * multipliers[place]
        for line in range(dimension):
            moment[line] += regressor[line] * rewards[place]
            for column in range(dimension):
                gram[line, column] += regressor[line] * regressor[column]
    if len(edges) == 1:  # Sherman and Morrison
        shift = np.zeros(dimension)
        length = 1.0
        for line in range(dimension):
            for column in range(dimension):
                shift[line] += inverse[line, column] * regressor[column]
            length += regressor[line] * shift[line]
        for line in range(dimension):
            for column in range(dimension):
                inverse[line, column] -= shift[line] * shift[column] / length
    else:
        inverse[:] = np.linalg.inv(gram)
    for line in range(dimension):
        total = 0.0
        for column in range(dimension):
            total += inverse[line, column] * moment[column]
        theta[line] = total


@kernel
def _play(believed: Believed, features: Floats, rounds: RoundArrays, trace: Trace, rng: Any) -> int:
    """Play until the trace is full, or noise or contexts run out, and fit what is seen; return the rounds."""
    paths, counts, seen = rounds.paths, rounds.window.counts, rounds.seen
    met = np.empty(len(seen.counts))
    played = 0
    while played < len(trace.actions) and more_rounds(rounds):
        of_round = features[rounds.clock[0] - rounds.bases.first]
        action = best_action(believed, of_round, counts, paths, rng)
        expected, paid = play_round(action, rounds)
        trace.actions[played], trace.expected_rewards[played], trace.rewards[played] = action, expected, paid
        edges = paths.indices[paths.indptr[action] : paths.indptr[action + 1]]
        for place in range(len(edges)):
            met[place] = believed.multipliers[edges[place], seen.counts[place]]
        _learn(believed, of_round, edges, met, seen.rewards)
        played += 1
    return played
