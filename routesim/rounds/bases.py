"""The bases of rounds, what an edge pays when it is empty: the same in every round, or by features of round and edge.

`SameBases` and `ContextBases` keep one contract, by which `RoundEnvironment` plays rounds with and without contexts.
"""

from typing import Any

import numpy as np

from routesim.arrays import Floats
from routesim.errors import InputError
from routesim.rounds.kernels import Bases
from routesim.storage.state import State, join, part, restore_rng, rng_state, whole_from
from routesim.travellers.contexts import Contexts

NEVER = int(np.iinfo(np.int64).max)
"""A round that is never played."""


class SameBases:
    """Every round has the bases 1, so that edges pay by their count alone."""

    def __init__(self, n_edges: int) -> None:
        self._ones = Bases(np.ones((1, n_edges)), 0, NEVER)
        self.block = np.empty((0, n_edges, 0))

    def at(self, now: int) -> Bases:  # noqa: ARG002 - the same in every round
        """Return a block of bases that has those of round `now`."""
        return self._ones

    def features(self, now: int) -> Floats | None:  # noqa: ARG002 - there are none
        """Return the features of round `now`, one row per edge; None where rounds have no contexts."""
        return None

    def state(self) -> State:
        """Return nothing; nothing changes."""
        return {}

    def restore(self, state: State, now: int) -> None:
        """Take up nothing."""


class ContextBases:
    """The base of an edge is <theta, features of round and edge>; features are read or drawn block by block.

    The blocks are the same whatever is played, so that all learners with one seed are paid for the same contexts.
    """

    def __init__(self, contexts: Contexts, theta: Floats, rng: np.random.Generator, rounds: int | None) -> None:
        if rounds is not None:
            contexts.check_rounds(rounds)
        self._contexts, self._theta = contexts, theta
        self._horizon = contexts.rounds if rounds is None else rounds
        self._rng = rng
        self._before_block = rng_state(rng)
        self.block = np.empty((0, contexts.n_edges, len(theta)))  # the features of the rounds that are at hand
        self._bases = Bases(np.empty((0, contexts.n_edges)), 0, 0)

    def at(self, now: int) -> Bases:
        """Return a block of bases that has those of round `now`; `block` has the features to it."""
        if now >= self._bases.last:
            self._go_on(now)
        return self._bases

    def features(self, now: int) -> Floats:
        """Return the features of round `now`, one row per edge."""
        first = self.at(now).first
        features: Floats = self.block[now - first]
        return features

    def state(self) -> State:
        """Return where the block at hand comes from."""
        block = {"bases_first": np.array(self._bases.first), "bases_last": np.array(self._bases.last)}
        return block | join(contexts=self._before_block)

    def restore(self, state: State, now: int) -> None:
        """Take up a state before round `now`."""
        # The same block is read again, not the rounds that are left of it: products over other blocks round otherwise.
        first = whole_from(state, "bases_first", max(0, now - self._contexts.block), now)
        last = whole_from(state, "bases_last", now, first + self._contexts.block)
        restore_rng(self._rng, part(state, "contexts"))
        self._before_block = rng_state(self._rng)
        if first < last:
            self._take(first, last)

    def _go_on(self, now: int) -> None:
        """Take the block that begins with round `now`."""
        last = now + self._contexts.block
        if not self._contexts.known:
            self._before_block = rng_state(self._rng)
        elif self._horizon is None:
            last = now + 1  # a function may not know more than one round
        elif now >= self._horizon:
            raise InputError(f"the contexts of all {self._horizon:,} rounds are used up; reset to start over")
        else:
            last = min(last, self._horizon)
        self._take(now, last)

    def _take(self, first: int, last: int) -> None:
        contexts = self._contexts
        features = contexts.read(first, last) if contexts.known else contexts.draw(self._rng, last - first)
        self.block = features.view()
        self.block.flags.writeable = False
        self._bases = Bases(self.block @ self._theta, first, last)


class ReplayedBases:
    """The bases under contexts that were drawn one block after the other, for any rounds within a block."""

    def __init__(self, contexts: Contexts, theta: Floats, rng: np.random.Generator) -> None:
        self._contexts, self._theta, self._rng = contexts, theta, rng
        self._states: list[Any] = [rng.bit_generator.state]

    def __call__(self, first: int, last: int) -> Floats:
        """Return the bases of rounds `first` up to `last`."""
        size = self._contexts.block
        number = first // size
        if last > (number + 1) * size:
            raise InputError(f"rounds {first} to {last} lie in more than one block of {size} contexts")
        while len(self._states) <= number:
            self._rng.bit_generator.state = self._states[-1]
            self._contexts.draw(self._rng, size)
            self._states.append(self._rng.bit_generator.state)
        self._rng.bit_generator.state = self._states[number]
        drawn = self._contexts.draw(self._rng, size)
        return drawn[first - number * size : last - number * size] @ self._theta
