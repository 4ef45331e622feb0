"""EpsilonGreedy: the best average so far, and now and then any action."""

from dataclasses import dataclass

from routesim.checks import number
from routesim.learners.action_averages import ActionAverages, Rule


@dataclass
class EpsilonGreedy(ActionAverages):
    """The best average so far, but any action with probability `epsilon`."""

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        number("epsilon", self.epsilon, least=0, most=1)

    def _rule(self) -> Rule:
        return Rule(epsilon=float(self.epsilon))
