"""ThompsonSampling: draws from what is believed of whole actions."""

from dataclasses import dataclass

from routesim.learners.action_averages import ActionAverages, Rule


@dataclass
class ThompsonSampling(ActionAverages):
    """Gaussian Thompson sampling on whole actions with the noise known: a draw from N(average, noise² / plays)."""

    def _rule(self) -> Rule:
        return Rule(spread=1.0)
