"""CARMAB and CARMAB-st: optimism about every (edge, count), and the best policy for it (Algorithms 1 and 3)."""

from dataclasses import dataclass

import numpy as np

from routesim.arrays import Floats
from routesim.checks import check_confidence
from routesim.learners.tabular import TabularLearner


@dataclass
class CARMAB(TabularLearner):
    """Congestion-aware routing by multi-armed bandits; arms and paths alike.

    Rewards are estimated per edge and count. An epoch keeps one policy, the best under the highest rewards that
    the estimates allow, and ends when the uses of some (edge, count) have doubled.

    With probability 1 - `delta` all mean rewards lie within the confidence radius at all times: unless `confidence` is
    given, the radius follows from the noise, which learners know. A number is the constant of the paper's radius,
    10 there, which grows with the rounds and the width of the range of rewards instead. `monotone` also uses that
    rewards do not rise with the count: an upper bound at a count bounds every larger count. `planner` is a method of
    `routesim.plan`.

    `CARMAB(confidence=10, monotone=False)` is the paper's. Where rounds have contexts, at which CARMAB does not look,
    rewards vary more than by the noise, and the radius promises nothing.

    >>> import routesim as rs
    >>> two_roads = rs.RoundEnvironment.from_congestion(
    ...     rs.ActionSet.arms(2), [0.9, 0.6], rs.congestion.Inverse(), window=2, noise_std=0.1
    ... )
    >>> run = rs.run(two_roads, rs.CARMAB(), rounds=2_000, seed=0)
    >>> bool(run.average_regret[-1] < 0.01), round(run.comparator_value, 3)
    (True, 0.8)
    """

    confidence: float | None = None
    delta: float = 0.1
    monotone: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_confidence(1.0 if self.confidence is None else self.confidence, self.delta)

    def confidence_set(self, now: int) -> tuple[Floats, Floats]:
        """Return the lowest and highest mean reward of each (edge, count) believed possible at round `now`."""
        task, visits = self._task, self.tally.visits
        low, high = task.low[:, np.newaxis], task.high[:, np.newaxis]
        seen = np.maximum(1, visits)
        if self.confidence is None:
            radius = task.noise_std[:, np.newaxis] * mixture_radius(seen, self.delta / visits.size)
        else:
            # Algorithm 3's union bound over L edges a path, E edges and the counts; rounds are numbered from 1 there.
            pairs = task.actions.longest * task.actions.n_edges * max(task.window, 1)
            radius = np.sqrt(np.log(pairs * (now + 1) / self.delta) / seen)
            radius *= self.confidence * task.scale[:, np.newaxis]
        mean = self.tally.sums / seen
        lower = np.where(visits > 0, np.clip(mean - radius, low, high), low)
        upper = np.where(visits > 0, np.clip(mean + radius, low, high), high)
        return lower, upper

    def _believed(self, now: int) -> Floats:
        """Return the highest rewards that are believed possible."""
        _, optimistic = self.confidence_set(now)
        return np.minimum.accumulate(optimistic, axis=1) if self.monotone else optimistic


def mixture_radius(seen: Floats, delta: float) -> Floats:
    """Return how far the mean of n observations with unit noise is from the truth, at all n at once, but for `delta`.

    Robbins' bound: a mixture over N(0, 1) of likelihood ratios is a martingale, which by Ville's inequality ever
    exceeds 1 / delta with probability delta at most. So it holds whenever one looks, and there is no union over rounds.
    """
    more = np.asarray(seen + 1.0)
    radius: Floats = np.sqrt(more * (np.log(more) - 2 * np.log(delta))) / seen
    return radius
