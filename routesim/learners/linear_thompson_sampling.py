"""LinearThompsonSampling: draws from what is believed of theta."""

from dataclasses import dataclass

import numpy as np

from routesim.arrays import Floats
from routesim.learners.linear_model import LinearModel


@dataclass
class LinearThompsonSampling(LinearModel):
    """Thompson sampling for linear rewards: one theta drawn from its posterior each round, the noise known."""

    def _scores(self, regressors: Floats) -> Floats:
        root = np.linalg.cholesky(self._inverse + 1e-15 * np.trace(self._inverse) * np.eye(len(self.theta)))
        return regressors @ (self.theta + self._noise_std * (root @ self._rng.standard_normal(len(self.theta))))
