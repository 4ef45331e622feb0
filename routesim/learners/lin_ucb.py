"""LinUCB: upper confidence bounds on linear rewards."""

from dataclasses import dataclass

import numpy as np

from routesim.arrays import Floats
from routesim.checks import number
from routesim.learners.linear_model import LinearModel


@dataclass
class LinUCB(LinearModel):
    """Upper confidence bounds: estimate + alpha * noise * length of the regressor in the inverse of the fit's squares.

    It knows the congestion at the present counts, and does not plan; `blind` leaves congestion out altogether.
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        number("alpha", self.alpha, 0.0, 1e9)

    def _scores(self, regressors: Floats) -> Floats:
        squares = np.einsum("ij,ij->i", regressors @ self._inverse, regressors)
        width: Floats = np.sqrt(np.maximum(0.0, squares))
        return regressors @ self.theta + self.alpha * self._noise_std * width
