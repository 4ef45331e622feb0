"""UCB1: upper confidence bounds on whole actions."""

from dataclasses import dataclass

from routesim.learners.action_averages import ActionAverages, Rule


@dataclass
class UCB1(ActionAverages):
    """Upper confidence bounds on whole actions: average + scale * sqrt(2 log t / plays)."""

    def _rule(self) -> Rule:
        return Rule(optimism=1.0)
