"""ThompsonSampling: draws from what is believed of whole actions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routesim.learners.action_averages import ActionAverages


@dataclass
class ThompsonSampling(ActionAverages):
    """Gaussian Thompson sampling on whole actions with the noise known: a draw from N(average, noise² / plays)."""

    def _scores(self, now: int, of: slice) -> NDArray[np.float64]:  # noqa: ARG002 - it shrinks with plays, not with time
        return self._rng.normal(self._means[of], self._noise_std[of] / np.sqrt(self._plays[of]))
