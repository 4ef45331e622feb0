"""The contextual environment: the base reward of an edge is <theta, features of round and edge>.

Everything else is as in `environment`: a window of past actions, a congestion multiplier by count, noise.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats, Ints
from routesim.errors import InputError
from routesim.rounds.actions import ActionSet
from routesim.rounds.checks import checked_noise, checked_range, checked_window, congestion_table
from routesim.rounds.contextual_policy import ContextualPolicy, Fit, play_contextual
from routesim.rounds.environment import Feedback, Knowledge, Observation, RoundEnvironment, Task
from routesim.rounds.kernels import Bases, Payment, Trace
from routesim.storage.state import State, join, part, restore_rng, rng_state, whole_from
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
        self.actions = actions
        self.window = checked_window(window)
        self.noise_std = checked_noise(noise_std, actions.n_edges)
        self.theta = np.array(theta, dtype=np.float64)
        if self.theta.ndim != 1 or not self.theta.size or not np.isfinite(self.theta).all():
            raise InputError(f"theta is one finite number per feature, got {theta!r}")
        self.contexts = Contexts(contexts, known, actions.n_edges, len(self.theta), lengths)
        self.multipliers = np.ascontiguousarray(congestion_table(congestion, actions.n_edges, self.window))
        if not np.isfinite(self.multipliers).all():
            raise InputError("the congestion function must return finite multipliers")
        bases = self.contexts.typical() @ self.theta
        _check_direction(bases, self.multipliers)
        self.rewards = bases.mean(axis=0)[:, np.newaxis] * self.multipliers
        self.free_flow_rewards = self.rewards[:, 0]
        if free_flow_rewards is not None:
            self.free_flow_rewards = np.array(free_flow_rewards, dtype=np.float64)
            if self.free_flow_rewards.shape != (actions.n_edges,):
                raise InputError(
                    f"free_flow_rewards need one value per edge, shape ({actions.n_edges},), got shape "
                    f"{self.free_flow_rewards.shape}"
                )
        if reward_range is not None:
            self.low, self.high = checked_range(reward_range, actions.n_edges)
        elif bases.max() <= 0 and bases.min() < 0:
            self.low = np.full(actions.n_edges, -np.inf)
            self.high = (bases * self.multipliers[:, 0]).max(axis=0)
        else:
            self.low, self.high = np.zeros(actions.n_edges), np.ones(actions.n_edges)
        for fixed in (self.theta, self.multipliers, self.rewards):
            fixed.setflags(write=False)
        self.reset(np.random.default_rng(0))

    def task(self, knows: Knowledge = "nothing", rounds: int | None = None) -> Task:
        """Return what a learner that `knows` this much is told, if `rounds` rounds are to come."""
        linear = knows in ("congestion", "rewards")
        return Task(
            self.actions,
            self.window,
            self.low,
            self.high,
            self.noise_std,
            free_flow_rewards=self.free_flow_rewards if knows == "free_flow" else None,
            rewards=self.rewards if knows == "rewards" else None,
            rounds=self.contexts.rounds if rounds is None else rounds,
            contexts=self.contexts if linear else None,
            multipliers=self.multipliers if linear else None,
            theta=self.theta if knows == "rewards" else None,
        )

    def reset(self, rng: np.random.Generator, rounds: int | None = None) -> None:
        """Empty the roads, go back to round 0, and draw noise and contexts from `rng` from now on."""
        if rounds is not None:
            self.contexts.check_rounds(rounds)
        self._horizon = self.contexts.rounds if rounds is None else rounds
        (self._context_rng,) = rng.spawn(1)
        self._before_block = rng_state(self._context_rng)
        super().reset(rng)
        self._payment = Payment(self.multipliers, self.noise_std, every_edge=True)
        self._features = np.empty((0, self.actions.n_edges, len(self.theta)))
        self._bases = Bases(np.empty((0, self.actions.n_edges)), 0, 0)

    def state(self) -> State:
        """Return all that changes from round to round; of the contexts, where the block at hand comes from."""
        block = {"bases_first": np.array(self._bases.first), "bases_last": np.array(self._bases.last)}
        return super().state() | block | join(contexts=self._before_block)

    def restore(self, state: State) -> None:
        """Take up a state, right after `reset` with the same arguments as when it was made."""
        super().restore(state)
        # The same block is read again, not the rounds that are left of it: products over other blocks round otherwise.
        now = int(self._clock[0])
        first = whole_from(state, "bases_first", max(0, now - self.contexts.block), now)
        last = whole_from(state, "bases_last", now, first + self.contexts.block)
        restore_rng(self._context_rng, part(state, "contexts"))
        self._before_block = rng_state(self._context_rng)
        if first < last:
            self._take_block(first, last)

    def observe(self) -> Observation:
        """Return what can be seen before the coming round, its features among it."""
        self._read_contexts()
        return super().observe()._replace(features=self._features[int(self._clock[0]) - self._bases.first])

    def step(self, action: Any) -> Feedback:
        """Play `action` for one round; its expected reward is then in `expected_reward`, for the record only."""
        self._read_contexts()
        features = self._features[int(self._clock[0]) - self._bases.first]
        feedback = super().step(action)
        return feedback._replace(features=features[feedback.edges])

    def play_contextual(self, policy: ContextualPolicy, fit: Fit, trace: Trace) -> int:
        """Play a policy up to its last round or until `trace` is full; return the number of rounds.

        The same numbers as `step` gives, from one compiled loop.
        """
        played, rounds = 0, min(len(trace.actions), policy.last - int(self._clock[0]))
        estimates = np.empty(self.actions.n_edges)
        while played < rounds:
            self._make_room()
            played += play_contextual(
                policy, self._features, self._arrays(), fit.sums, trace.part(played, rounds), estimates
            )
        return played

    def bases_of_rounds(self, rng: np.random.Generator) -> Callable[[int, int], Floats]:
        """Return the function of (first, last) that tells the true bases of the rounds played after `reset(rng)`."""
        if self.contexts.known:
            return lambda first, last: self.contexts.read(first, last) @ self.theta
        (context_rng,) = rng.spawn(1)
        return _Replay(self.contexts, self.theta, context_rng)

    def noise_of_rounds(self, rng: np.random.Generator, rounds: int) -> Floats:
        """Return the noise of every edge in the rounds played after `reset(rng)`, whichever edges are used."""
        return rng.standard_normal((rounds, self.actions.n_edges)) * self.noise_std

    def _make_room(self) -> None:
        self._read_contexts()
        super()._make_room()

    def _read_contexts(self) -> None:
        """Keep the context of the coming round at hand; the blocks are the same whatever is played."""
        now = int(self._clock[0])
        if now < self._bases.last:
            return
        contexts = self.contexts
        if contexts.known:
            if self._horizon is not None and now >= self._horizon:
                raise InputError(f"the contexts of all {self._horizon:,} rounds are used up; reset to start over")
            self._take_block(now, now + 1 if self._horizon is None else min(now + contexts.block, self._horizon))
        else:
            self._before_block = rng_state(self._context_rng)
            self._take_block(now, now + contexts.block)

    def _take_block(self, first: int, last: int) -> None:
        contexts = self.contexts
        features = contexts.read(first, last) if contexts.known else contexts.draw(self._context_rng, last - first)
        self._features = features.view()
        self._features.flags.writeable = False
        self._bases = Bases(self._features @ self.theta, first, last)


class _Replay:
    """Bases under contexts that were drawn one block after the other, for any rounds within a block."""

    def __init__(self, contexts: Contexts, theta: Floats, rng: np.random.Generator) -> None:
        self._contexts, self._theta, self._rng = contexts, theta, rng
        self._states: list[Any] = [rng.bit_generator.state]

    def __call__(self, first: int, last: int) -> Floats:
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
