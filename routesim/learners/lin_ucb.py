"""LinUCB: upper confidence bounds on linear rewards."""

from dataclasses import dataclass

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

    def _exploration(self) -> tuple[float, float]:
        return float(self.alpha), 0.0
