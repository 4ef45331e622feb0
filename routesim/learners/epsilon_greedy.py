"""EpsilonGreedy: the best average so far, and now and then any action."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routesim.checks import number
from routesim.learners.action_averages import ActionAverages


@dataclass
class EpsilonGreedy(ActionAverages):
    """The best average so far, but any action with probability `epsilon`."""

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        number("epsilon", self.epsilon, least=0, most=1)

    def _scores(self, now: int, of: slice) -> NDArray[np.float64]:  # noqa: ARG002 - epsilon does not change with time
        scores: NDArray[np.float64] = self._means[of]
        return self._rng.random(len(scores)) if self._rng.random() < self.epsilon else scores
