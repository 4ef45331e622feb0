"""The contextual environment: the base reward of an edge is <theta, features of round and edge>.

Everything else is as in `environment`: a window of past actions, a congestion multiplier by count, noise.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats, Ints
from routesim.errors import InputError
from routesim.rounds.actions import ActionSet
from routesim.rounds.bases import ContextBases, ReplayedBases
from routesim.rounds.checks import checked_range, checked_window, congestion_table
from routesim.rounds.contextual_policy import ContextualPolicy, Fit, play_contextual
from routesim.rounds.environment import Knowledge, RoundEnvironment, Task
from routesim.rounds.kernels import Payment, Trace
from routesim.travellers.contexts import Contexts, Lengths


class ContextualEnvironment(RoundEnvironment):
    """Rounds whose edges have features: the mean reward of an edge is <theta, features> x congestion(count).

    `contexts` is an array (rounds, edges, features) or a function of (first, last) round that returns such a block,
    for known contexts; or, with `known=False`, a sampler `contexts(rng, n)` that returns `n` rounds. A function must
    return the same features whenever it is asked for the same rounds. `lengths` says what becomes of features longer
    than one: "refuse" (the default), "rescale" or "keep".

    `rewards` are those of an average context, by edge and count, from the first rounds or a sample.
    `free_flow_rewards`, told to those who know nothing but empty roads, are its first column unless given.
    `reward_range` is told to learners that look at no context: by default (0, 1), or for negative rewards from minus
    infinity to the best base of each edge in those rounds.
    """

    _bases: ContextBases

    def __init__(
        self,
        actions: ActionSet,
        theta: ArrayLike,
        contexts: Any,
        congestion: Callable[[Ints], Floats],
        window: int,
        noise_std: ArrayLike,
        known: bool = True,
        *,
        lengths: Lengths = "refuse",
        free_flow_rewards: ArrayLike | None = None,
        reward_range: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        _ = actions.n_listed
        if actions.n_pairs > 1:
            raise InputError("rounds with contexts serve one pair of ends; make one environment for each pair")
        self.theta = np.array(theta, dtype=np.float64)
        if self.theta.ndim != 1 or not self.theta.size or not np.isfinite(self.theta).all():
            raise InputError(f"theta is one finite number per feature, got {theta!r}")
        self.contexts = Contexts(contexts, known, actions.n_edges, len(self.theta), lengths)
        self.multipliers = np.array(congestion_table(congestion, actions.n_edges, checked_window(window)), order="C")
        if not np.isfinite(self.multipliers).all():
            raise InputError("the congestion function must return finite multipliers")
        for fixed in (self.theta, self.multipliers):
            fixed.setflags(write=False)
        bases = self.contexts.typical() @ self.theta
        _check_direction(bases, self.multipliers)
        if reward_range is None and bases.max() <= 0 and bases.min() < 0:
            reward_range = -np.inf, (bases * self.multipliers[:, 0]).max(axis=0)
        rewards = bases.mean(axis=0)[:, np.newaxis] * self.multipliers
        super().__init__(actions, rewards, window, noise_std, reward_range=reward_range)
        if free_flow_rewards is not None:
            self.free_flow_rewards = np.array(free_flow_rewards, dtype=np.float64)
            if self.free_flow_rewards.shape != (actions.n_edges,):
                raise InputError(
                    f"free_flow_rewards need one value per edge, shape ({actions.n_edges},), got shape "
                    f"{self.free_flow_rewards.shape}"
                )

    def _reward_range(self, given: tuple[ArrayLike, ArrayLike] | None) -> tuple[Floats, Floats]:
        """Return the range that is given, else (0, 1): `rewards` are those of an average context, and bind no other."""
        return checked_range((0.0, 1.0) if given is None else given, self.actions.n_edges)

    def _paid_by(self) -> Payment:
        """Return the multipliers; noise is drawn for every edge, so that it is the same whatever is played."""
        return Payment(self.multipliers, self.noise_std, every_edge=True)

    def _bases_of(self, rng: np.random.Generator, rounds: int | None) -> ContextBases:
        """Return the bases of the contexts to come."""
        return ContextBases(self.contexts, self.theta, rng.spawn(1)[0], rounds)

    def task(self, knows: Knowledge = "nothing", rounds: int | None = None) -> Task:
        """Return what a learner that `knows` this much is told, if `rounds` rounds are to come."""
        task = super().task(knows, self.contexts.rounds if rounds is None else rounds)
        if knows not in ("congestion", "rewards"):
            return task
        theta = self.theta if knows == "rewards" else None
        return replace(task, contexts=self.contexts, multipliers=self.multipliers, theta=theta)

    def play_contextual(self, policy: ContextualPolicy, fit: Fit, trace: Trace) -> int:
        """Play a policy up to its last round or until `trace` is full; return the number of rounds.

        The same numbers as `step` gives, from one compiled loop.
        """
        played, rounds = 0, min(len(trace.actions), policy.last - int(self._clock[0]))
        estimates = np.empty(self.actions.n_edges)
        while played < rounds:
            self._make_room()
            arrays = self._arrays(int(self._clock[0]))
            features, rest = self._bases.block, trace.part(played, rounds)
            played += play_contextual(policy, features, arrays, fit.sums, rest, estimates)
        return played

    def bases_of_rounds(self, rng: np.random.Generator) -> Callable[[int, int], Floats]:
        """Return the function of (first, last) that tells the true bases of the rounds played after `reset(rng)`."""
        if self.contexts.known:
            return lambda first, last: self.contexts.read(first, last) @ self.theta
        (context_rng,) = rng.spawn(1)
        return ReplayedBases(self.contexts, self.theta, context_rng)

    def noise_of_rounds(self, rng: np.random.Generator, rounds: int) -> Floats:
        """Return the noise of every edge in the rounds played after `reset(rng)`, whichever edges are used."""
        return rng.standard_normal((rounds, self.actions.n_edges)) * self.noise_std


def _check_direction(bases: Floats, multipliers: Floats) -> None:
    change = np.diff(multipliers, axis=1)
    better = (bases.min() >= 0 and (change > 1e-12).any()) or (bases.max() <= 0 and (change < -1e-12).any())
    if better and bases.any():
        edge = int(np.argwhere(np.abs(change) > 1e-12)[0, 0])
        raise InputError(
            f"rewards must not rise with the count, but the multiplier of edge {edge} goes from "
            f"{multipliers[edge, 0]:g} at count 0 to {multipliers[edge, -1]:g} at the window while its base reward is "
            f"{'negative' if bases.min() < 0 else 'positive'}; congestion cannot make a road better"
        )
