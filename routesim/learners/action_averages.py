"""ActionAverages: what learners that take each action as a whole have in common."""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from routesim.arrays import Floats
from routesim.kernels import kernel
from routesim.rounds.environment import Feedback, Knowledge, Observation, Task
from routesim.rounds.kernels import RoundArrays, Trace, more_rounds, play_round
from routesim.storage.state import State, collect, join, part, put_back, restore_rng, rng_state


class Rule(NamedTuple):
    """How actions are scored by what is known of them: average + optimism x scale x sqrt(2 log t / plays) + a draw.

    The draw is from N(0, (spread x noise)² / plays). With probability `epsilon` every score is drawn from (0, 1).
    """

    optimism: float = 0.0
    spread: float = 0.0
    epsilon: float = 0.0


class Averages(NamedTuple):
    """What is known of each action: how often it was played, its average reward, its scale and its noise."""

    plays: Floats
    means: Floats
    scale: Floats
    noise_std: Floats


class ActionAverages:
    """Average reward of each action as a whole, whatever the congestion was; every action is tried once first."""

    knows: ClassVar[Knowledge] = "nothing"
    plays_several_pairs: ClassVar[bool] = True

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
        return int(best_action(self._averages, self._rule(), first, last, observation.round, self._rng))

    def update(self, feedback: Feedback) -> None:
        """Take the reward into the action's average."""
        action = feedback.action
        self._plays[action] += 1
        self._means[action] += (feedback.reward - self._means[action]) / self._plays[action]

    def play(self, rounds: RoundArrays, features: Floats, trace: Trace) -> int:  # noqa: ARG002 - it looks at none
        """Play rounds in one compiled call, and learn from them; return their number."""
        played: int = _play(self._averages, self._rule(), rounds, trace, self._rng)
        return played

    def state(self) -> State:
        """Return the averages and where chance stands."""
        return collect(self, "_plays", "_means") | join(rng=rng_state(self._rng))

    def restore(self, state: State) -> None:
        """Take up a state, right after `start` with the same arguments as when it was made."""
        put_back(self, state, "_plays", "_means")
        restore_rng(self._rng, part(state, "rng"))

    @property
    def _averages(self) -> Averages:
        return Averages(self._plays, self._means, self._scale, self._noise_std)

    def _rule(self) -> Rule:
        return Rule()


def _action_sums(task: Task, by_edge: Floats) -> Floats:
    return np.add.reduceat(by_edge[task.actions.indices], task.actions.indptr[:-1])


@kernel
def best_action(averages: Averages, rule: Rule, first: int, last: int, now: int, rng: Any) -> int:
    """Return the first action from `first` up to `last` that was not tried yet, or else that with the largest score."""
    for action in range(first, last):
        if averages.plays[action] == 0.0:
            return action
    by_chance = rule.epsilon > 0.0 and rng.random() < rule.epsilon
    best, choice = -np.inf, first
    for action in range(first, last):
        plays = averages.plays[action]
        score = rng.random() if by_chance else averages.means[action]
        if rule.optimism > 0.0:
            score += rule.optimism * averages.scale[action] * np.sqrt(2.0 * np.log(now + 1.0) / plays)
        if rule.spread > 0.0:
            score += rule.spread * averages.noise_std[action] / np.sqrt(plays) * rng.standard_normal()
        if score > best:
            best, choice = score, action
    return choice


@kernel
def _play(averages: Averages, rule: Rule, rounds: RoundArrays, trace: Trace, rng: Any) -> int:
    """Play until the trace is full, or noise or contexts run out, and average what is paid; return the rounds."""
    played, n_actions = 0, len(averages.plays)
    while played < len(trace.actions) and more_rounds(rounds):
        action = best_action(averages, rule, 0, n_actions, rounds.clock[0], rng)
        expected, paid = play_round(action, rounds)
        trace.actions[played], trace.expected_rewards[played], trace.rewards[played] = action, expected, paid
        averages.plays[action] += 1.0
        averages.means[action] += (paid - averages.means[action]) / averages.plays[action]
        played += 1
    return played
