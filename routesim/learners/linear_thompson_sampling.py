"""LinearThompsonSampling: draws from what is believed of theta."""

from dataclasses import dataclass

from routesim.learners.linear_model import LinearModel


@dataclass
class LinearThompsonSampling(LinearModel):
    """Thompson sampling for linear rewards: one theta drawn from its posterior each round, the noise known."""

    def _exploration(self) -> tuple[float, float]:
        return 0.0, 1.0
