"""PosteriorSampling: rewards drawn from what is believed of every (edge, count), and the best policy for them."""

from dataclasses import dataclass

import numpy as np

from routesim.arrays import Floats
from routesim.checks import number
from routesim.kernels import kernel
from routesim.learners.tabular import TabularLearner
from routesim.rounds.environment import Task
from routesim.storage.state import State, join, part, restore_rng, rng_state

_LEAST_NOISE = 1e-6  # of the prior's standard deviation, so that without noise one observation tells all


@dataclass
class PosteriorSampling(TabularLearner):
    """Posterior sampling of rewards per edge and count; arms, paths and whole graphs alike.

    At the start of an epoch a table of rewards is drawn from the posterior, made non-increasing in the count, and the
    best policy for it is kept. An epoch ends when the uses of some (edge, count) have doubled, or when it is longer
    than the one before (the two rules of TSDE: Ouyang, Gagrani, Nayyar and Jain, 2017).

    The posterior is Gaussian, with the noise known. Before anything is seen, a mean reward inside a bounded range is
    believed to be anywhere in it (the moments of a uniform prior). On roads each use is believed to add `slope` of the
    time of the empty road, give or take as much, and `spread` of that time is uncertain whatever the count. The prior
    is soon forgotten; far too pessimistic a one keeps roads from being tried. `planner` is a method of `routesim.plan`.

    >>> import routesim as rs
    >>> two_roads = rs.RoundEnvironment.from_congestion(
    ...     rs.ActionSet.arms(2), [0.9, 0.6], rs.congestion.Inverse(), window=2, noise_std=0.1
    ... )
    >>> run = rs.run(two_roads, rs.PosteriorSampling(), rounds=2_000, seed=0)
    >>> bool(run.average_regret[-1] < 0.01)
    True
    """

    slope: float = 0.25
    spread: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        number("slope", self.slope, 0.0, 1e6)
        number("spread", self.spread, 1e-6, 1e6)

    def start(self, task: Task, rng: np.random.Generator) -> None:
        """Begin a task from nothing."""
        super().start(task, rng)
        self._mean, self._std = self._prior(task)

    def posterior(self) -> tuple[Floats, Floats]:
        """Return the mean and the standard deviation of what is believed of each (edge, count) by itself."""
        visits, sums = self.tally.visits, self.tally.sums
        noise = np.maximum(self._task.noise_std[:, np.newaxis], _LEAST_NOISE * self._std)
        precision = visits / noise**2 + 1 / self._std**2
        mean: Floats = (sums / noise**2 + self._mean / self._std**2) / precision
        return mean, 1 / np.sqrt(precision)

    def _prior(self, task: Task) -> tuple[Floats, Floats]:
        counts = np.arange(task.window + 1)
        low, high = task.low[:, np.newaxis], task.high[:, np.newaxis]
        bounded = np.isfinite(low)
        half = np.where(bounded, (high - low) / 2, 0.0)
        # A road without length may still have noise, and something must be uncertain of it.
        size = np.maximum(np.abs(high), np.maximum(task.noise_std, np.abs(task.high).mean() * 1e-6)[:, np.newaxis])
        mean = np.where(bounded, high - half, high - size * self.slope * counts)
        std = np.where(bounded, half / np.sqrt(3.0), size * (self.spread + self.slope * counts))
        return mean, np.maximum(std, 1e-300)

    def _believed(self, now: int) -> Floats:  # noqa: ARG002 - what is believed does not depend on the time
        """Draw a table from the posterior."""
        mean, std = self.posterior()
        drawn = non_increasing(mean + std * self._rng.standard_normal(mean.shape), 1 / std**2)
        inside: Floats = np.clip(drawn, self._task.low[:, np.newaxis], self._task.high[:, np.newaxis])
        return inside

    def _last(self, now: int, before: int) -> int:
        """Let an epoch be longer than the one before by one round at most."""
        return now + before + 1

    def state(self) -> State:
        """Return the estimates, the plan in force and where chance stands."""
        return super().state() | join(rng=rng_state(self._rng))

    def restore(self, state: State) -> None:
        """Take up a state, right after `start` with the same arguments as when it was made."""
        super().restore(state)
        restore_rng(self._rng, part(state, "rng"))


@kernel
def non_increasing(values: Floats, weights: Floats) -> Floats:
    """Return, row by row, the non-increasing values with the least weighted squared distance to these.

    Neighbours that rise are pooled to their weighted mean, until none rises.
    """
    out = np.empty_like(values)
    columns = values.shape[1]
    means, sums, ends = np.empty(columns), np.empty(columns), np.empty(columns, dtype=np.int64)
    for row in range(len(values)):
        size = 0
        for column in range(columns):
            means[size], sums[size], ends[size] = values[row, column], weights[row, column], column + 1
            size += 1
            while size > 1 and means[size - 2] < means[size - 1]:
                total = sums[size - 2] + sums[size - 1]
                means[size - 2] += (means[size - 1] - means[size - 2]) * (sums[size - 1] / total)
                sums[size - 2], ends[size - 2] = total, ends[size - 1]
                size -= 1
        first = 0
        for block in range(size):
            out[row, first : ends[block]] = means[block]
            first = ends[block]
    return out
