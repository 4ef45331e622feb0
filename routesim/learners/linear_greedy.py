"""LinearGreedy: the fitted theta, without any exploration."""

from dataclasses import dataclass

from routesim.learners.linear_model import LinearModel


@dataclass
class LinearGreedy(LinearModel):
    """The best action at the present counts under the fitted theta, without any exploration."""
