"""Which origin-destination pair a round serves: the only one, or one drawn by the rates."""

import numpy as np

from routesim.arrays import Floats
from routesim.storage.state import State, join, part, restore_rng, rng_state


class OnePair:
    """There is one pair, and every round serves it."""

    def draw(self) -> int:
        """Return the pair of the coming round."""
        return 0

    def state(self) -> State:
        """Return nothing; nothing is drawn."""
        return {}

    def restore(self, state: State) -> None:
        """Take up nothing."""


class DrawnPairs:
    """Each round serves one of several pairs, drawn in proportion to the rates."""

    def __init__(self, rng: np.random.Generator, rates: Floats) -> None:
        self._rng, self._bounds = rng, np.cumsum(rates)[:-1]

    def draw(self) -> int:
        """Return the pair of the coming round."""
        return int(np.searchsorted(self._bounds, self._rng.random(), "right"))

    def state(self) -> State:
        """Return where chance stands."""
        return join(pair_rng=rng_state(self._rng))

    def restore(self, state: State) -> None:
        """Go on from there."""
        restore_rng(self._rng, part(state, "pair_rng"))
