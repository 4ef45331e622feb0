"""UCB1: upper confidence bounds on whole actions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routesim.learners.action_averages import ActionAverages


@dataclass
class UCB1(ActionAverages):
    """Upper confidence bounds on whole actions: average + scale * sqrt(2 log t / plays)."""

    def _scores(self, now: int, of: slice) -> NDArray[np.float64]:
        width: NDArray[np.float64] = np.sqrt(2 * np.log(now + 1) / self._plays[of])
        scores: NDArray[np.float64] = self._means[of] + self._scale[of] * width
        return scores
