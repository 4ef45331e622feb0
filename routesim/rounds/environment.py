"""The paper's protocol: rounds, a window of past actions, and noisy rewards of the edges an action uses.

Each round one action is played. An edge that was used n times in the last `window` rounds pays its mean reward
at count n plus noise, and an action pays the sum over its edges. Before round 0 the roads are empty.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats, Ints, Ints32
from routesim.checks import numbers
from routesim.errors import InputError
from routesim.rounds.actions import ActionSet
from routesim.rounds.bases import NEVER, ContextBases, SameBases
from routesim.rounds.checks import (
    check_non_increasing,
    checked_noise,
    checked_rewards,
    checked_window,
    congestion_table,
    reward_range_of,
)
from routesim.rounds.kernels import Payment, RoundArrays, Seen, Tallied, Trace, play_table
from routesim.rounds.numbering import Action
from routesim.rounds.paths import edge_costs
from routesim.rounds.window import WindowState, enter
from routesim.storage.state import (
    State,
    check_numbers,
    collect,
    join,
    named,
    part,
    put_back,
    restore_rng,
    rng_state,
    taken,
    whole_from,
)
from routesim.travellers.contexts import Contexts

Knowledge: TypeAlias = Literal["nothing", "free_flow", "congestion", "rewards"]

_NOISE_BLOCK = 1 << 15


class Observation(NamedTuple):
    """What anyone can see before a round: its number, the last `window` actions (oldest first), the counts, the pair.

    `counts` is a read-only view that changes with the next step; copy it to keep it. `pair` says which OD pair
    the round serves, and is 0 where there is only one. `features` has one row per edge where rounds have contexts.
    """

    round: int
    history: tuple[Action, ...]
    counts: Ints32
    pair: int = 0
    features: Floats | None = None


class Feedback(NamedTuple):
    """What a round taught: the reward in all, and for each edge position of the action its count and noisy reward.

    Where rounds have contexts, `features` has one row per edge of the action too.
    """

    action: Action
    reward: float
    edges: Ints32
    counts: Ints32
    rewards: Floats
    features: Floats | None = None


@dataclass(frozen=True)
class Task:
    """What a learner is told at the start; what it is not entitled to stays None.

    `rounds` is the number of rounds to come, if it is known. Where rounds have contexts, `contexts` is their source,
    `multipliers` is the congestion by (edge, count), and `theta` the true parameter, for the informed.
    """

    actions: ActionSet
    window: int
    low: Floats
    high: Floats
    noise_std: Floats
    free_flow_rewards: Floats | None = None
    rewards: Floats | None = None
    rounds: int | None = None
    contexts: Contexts | None = None
    multipliers: Floats | None = None
    theta: Floats | None = None

    @property
    def scale(self) -> Floats:
        """The size of an edge's deviations: the width of its range where finite, else its noise."""
        return np.where(np.isfinite(self.low), self.high - self.low, self.noise_std)


@dataclass
class Tally:
    """Feedback added up by (edge, count): uses and summed rewards; `full` once a pair's uses reach its limit."""

    visits: Ints
    sums: Floats
    limits: Ints
    full: bool = False

    @classmethod
    def empty(cls, n_edges: int, window: int) -> Self:
        """Return a tally of nothing, without limits."""
        shape = (n_edges, window + 1)
        unlimited = np.full(shape, np.iinfo(np.int64).max)
        return cls(np.zeros(shape, dtype=np.int64), np.zeros(shape), unlimited)

    @property
    def arrays(self) -> Tallied:
        """The arrays, for kernels to add to."""
        return Tallied(self.visits, self.sums, self.limits)

    def add(self, feedback: Feedback) -> None:
        """Add one round."""
        pairs = feedback.edges, feedback.counts
        self.visits[pairs] += 1
        self.sums[pairs] += feedback.rewards
        self.full |= bool((self.visits[pairs] >= self.limits[pairs]).any())

    def state(self) -> State:
        """Return the sums, the limits and whether one is reached."""
        return collect(self, "visits", "sums", "limits", "full")

    def restore(self, state: State) -> None:
        """Take them up again."""
        put_back(self, state, "visits", "sums", "limits", "full")


class EdgeUses(NamedTuple):
    """Edges by their index in the network, how often each was used, and how many times dearer than empty it was then.

    `ratios` are those of the mean reward that the uses met: 1 for an edge nobody had used inside the window.
    """

    edges: Ints
    uses: Ints
    ratios: Floats


class RoundEnvironment:
    """Rounds on a fixed action set with mean rewards given as a table of edge x count.

    `rewards[j, n]` is the mean reward of edge position j at count n, for n = 0 .. window; it must not rise with
    the count. `noise_std` is the standard deviation of the Gaussian noise, one number or one per edge.
    `reward_range` is the range every learner is told; by default (0, 1), and where all rewards are negative
    (travel times) from minus infinity to the reward of the empty road.

    Created ready for round 0; `reset` starts over with another noise generator.

    An environment of another kind says what differs by `_reward_range`, `_paid_by` and `_bases_of`; see
    `ContextualEnvironment`.

    >>> import routesim as rs
    >>> two_roads = rs.RoundEnvironment.from_congestion(
    ...     rs.ActionSet.arms(2), [0.9, 0.6], rs.congestion.Inverse(), window=2, noise_std=0.1
    ... )
    >>> two_roads.rewards.tolist()
    [[0.9, 0.9, 0.45], [0.6, 0.6, 0.3]]
    """

    def __init__(
        self,
        actions: ActionSet,
        rewards: ArrayLike,
        window: int,
        noise_std: ArrayLike,
        *,
        reward_range: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        self.actions = actions
        self.window = checked_window(window)
        self.rewards = checked_rewards(rewards, actions.n_edges, self.window)
        self.noise_std = checked_noise(noise_std, actions.n_edges)
        self.low, self.high = self._reward_range(reward_range)
        self.free_flow_rewards = self.rewards[:, 0]
        self.rewards.setflags(write=False)
        self.reset(np.random.default_rng(0))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.actions!r}, window {self.window}>"

    @classmethod
    def from_congestion(
        cls,
        actions: ActionSet,
        base: ArrayLike,
        congestion: Callable[[Ints], Floats],
        window: int,
        noise_std: ArrayLike,
        *,
        reward_range: tuple[ArrayLike, ArrayLike] | None = None,
        edge_cost_s: ArrayLike | None = None,
    ) -> Self:
        """Return the environment with mean rewards base x congestion(count); `base` has one value per edge.

        `edge_cost_s`, one value per edge too, is what a use costs beside, whatever the count.
        """
        window = checked_window(window)
        bases = numbers("base", base)
        if bases.shape != (actions.n_edges,):
            raise InputError(f"base needs one value per edge, shape ({actions.n_edges},), got shape {bases.shape}")
        multipliers = congestion_table(congestion, actions.n_edges, window)
        costs = edge_costs(actions.n_edges, edge_cost_s)[:, np.newaxis]
        return cls(actions, bases[:, np.newaxis] * multipliers - costs, window, noise_std, reward_range=reward_range)

    def task(self, knows: Knowledge = "nothing", rounds: int | None = None) -> Task:
        """Return what a learner that `knows` this much is told, if `rounds` rounds are to come."""
        return Task(
            self.actions,
            self.window,
            self.low,
            self.high,
            self.noise_std,
            free_flow_rewards=self.free_flow_rewards if knows == "free_flow" else None,
            rewards=self.rewards if knows == "rewards" else None,
            rounds=rounds,
        )

    def _reward_range(self, given: tuple[ArrayLike, ArrayLike] | None) -> tuple[Floats, Floats]:
        """Return the lowest and highest mean reward a learner is told of each edge; refuse rewards that rise."""
        check_non_increasing(self.rewards)
        return reward_range_of(self.rewards, given)

    def _paid_by(self) -> Payment:
        """Return what is paid on top of the bases, and for which edges noise is drawn."""
        return Payment(self.rewards, self.noise_std, every_edge=False)

    def _bases_of(self, rng: np.random.Generator, rounds: int | None) -> SameBases | ContextBases:  # noqa: ARG002
        """Return the bases of the coming rounds, of which there are `rounds` if that is known."""
        return SameBases(self.actions.n_edges)

    def reset(self, rng: np.random.Generator, rounds: int | None = None) -> None:
        """Empty the roads, go back to round 0, and draw from `rng` from now on, for `rounds` rounds if known."""
        self._bases = self._bases_of(rng, rounds)
        self._payment = self._paid_by()
        self._rng = rng
        self._pairs = self.actions.draw_pairs(rng)
        self._numbering = self.actions.numbering()
        self._recent = WindowState.empty(self.window, self.actions.n_edges)
        self._clock = np.zeros(2, dtype=np.int64)  # the round, and how much of the noise block is used up
        self._noise = np.empty(0)
        self._seen = Seen.empty(self._numbering.longest, self.actions.n_edges)
        self._pair = self._pairs.draw()
        self.expected_reward = 0.0

    def state(self) -> State:
        """Return all that changes from round to round: the clock, the last actions, and the chance to come."""
        state = collect(self, "_pair", "expected_reward")
        state |= collect(self._recent, "ring") | collect(self._seen, "met")
        state |= {"round": np.array(self._clock[0]), "noise": self._noise[int(self._clock[1]) :].copy()}
        state |= join(rng=rng_state(self._rng), routes=self._numbering.state())
        return state | self._pairs.state() | self._bases.state()

    def restore(self, state: State) -> None:
        """Take up a state, right after `reset` with the same arguments as when it was made."""
        now = whole_from(state, "round", 0, NEVER)
        self._pair = whole_from(state, "pair", 0, self.actions.n_pairs - 1)
        put_back(self, state, "expected_reward")
        self._seen.met[:] = taken(state, "met", self._seen.met)
        self._numbering.restore(part(state, "routes"))
        self._recent.ring[:] = taken(state, "ring", self._recent.ring)
        self._clock[:] = now, 0
        self._noise = named(state, "noise", np.float64, 1)
        restore_rng(self._rng, part(state, "rng"))
        self._pairs.restore(state)
        self._bases.restore(state, now)
        recent = self._recent.last(now)
        check_numbers("the last actions", np.array(recent, dtype=np.int64), len(self._numbering.paths))
        self._recent.counts[:] = 0
        for number in recent:
            enter(self._recent.counts, self._numbering.rows.of(number))

    def take_uses(self) -> EdgeUses:
        """Return the edges used since this was last asked, how often, and how dear they were to those who used them."""
        met = self._seen.met
        used = np.flatnonzero(met[:, 0])
        uses, sums = met[used].T.copy()
        met[used] = 0.0
        ratios = _dearness(sums / uses, self._payment.by_count[used, 0])
        return EdgeUses(self.actions.edges[used], uses.astype(np.int64), ratios)

    @property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """The path of each action number in a trace: all of a list, or those played so far on a graph."""
        return tuple(self._numbering.paths)

    def number(self, action: Action) -> int:
        """Return the number by which a trace records `action`."""
        return self._numbering.number(action, self._pair)

    def observe(self) -> Observation:
        """Return what can be seen before the coming round, its features among it where rounds have contexts."""
        now = int(self._clock[0])
        return self._observed(now, self._bases.features(now))

    def observe_roads(self) -> Observation:
        """Return what `observe` does without the features, of which there are none once known contexts have ended."""
        return self._observed(int(self._clock[0]), None)

    def _observed(self, now: int, features: Floats | None) -> Observation:
        history = self._numbering.history(self._recent.last(now))
        counts = self._recent.counts.view()
        counts.setflags(write=False)
        return Observation(now, history, counts, self._pair, features)

    def step(self, action: Action) -> Feedback:
        """Play `action` for one round; its expected reward is then in `expected_reward`, for the record only."""
        number = self.number(action)
        now = int(self._clock[0])
        features = self._bases.features(now)
        self._make_room()
        self.expected_reward, paid = self._arrays(now).play(number)
        edges = self._numbering.rows.of(number)
        counts, rewards = self._seen.counts[: len(edges)].copy(), self._seen.rewards[: len(edges)].copy()
        self._pair = self._pairs.draw()
        shown = None if features is None else features[edges]
        return Feedback(self._numbering.action(number), paid, edges, counts, rewards, shown)

    def play(self, policy: Ints32, tally: Tally, trace: Trace) -> int:
        """Play a table of actions by history until `tally` or `trace` is full; return the number of rounds.

        The same numbers as `step` gives, from one compiled loop. The table is indexed as in `planning.exact`.
        """
        return self._play_all(policy, self.actions.n_listed, tally, trace)

    def follow(self, cycle: Sequence[Action], tally: Tally, trace: Trace) -> int:
        """Play the actions of `cycle` over and over until `tally` or `trace` is full; return the number of rounds."""
        numbers = np.array([self.number(action) for action in cycle], dtype=np.int32)
        return self._play_all(numbers, 0, tally, trace)

    def play_by(self, play: Callable[[RoundArrays, Floats, Trace], int], trace: Trace) -> int:
        """Let a compiled loop play until `trace` is full; return the number of rounds. See `CompiledLearner`."""
        self._check_one_pair()
        played, rounds = 0, len(trace.actions)
        while played < rounds:
            self._make_room()
            arrays = self._arrays(int(self._clock[0]))
            played += play(arrays, self._bases.block, trace.part(played, rounds))
        return played

    def _check_one_pair(self) -> None:
        if self.actions.n_pairs > 1:
            raise InputError("rounds that serve several pairs of ends are played step by step")

    def _play_all(self, policy: Ints32, n_actions: int, tally: Tally, trace: Trace) -> int:
        self._check_one_pair()
        played, rounds = 0, len(trace.actions)
        while played < rounds and not tally.full:
            self._make_room()
            stretch, tally.full = play_table(
                policy, n_actions, played, self._arrays(int(self._clock[0])), tally.arrays, trace.part(played, rounds)
            )
            played += stretch
        return played

    def _arrays(self, now: int) -> RoundArrays:
        """Return what kernels play rounds on, from round `now` on."""
        bases = self._bases.at(now)
        return RoundArrays(
            self._numbering.rows, self._recent, self._payment, bases, self._noise, self._clock, self._seen
        )

    def _make_room(self) -> None:
        """Keep room for the longest route, and enough noise for one round; blocks of any size give the same stream."""
        longest = self._numbering.longest
        if len(self._seen.counts) < longest:
            self._seen = Seen.empty(longest, self.actions.n_edges)._replace(met=self._seen.met)
        used = int(self._clock[1])
        needed = self.actions.n_edges if self._payment.every_edge else longest
        if len(self._noise) - used < needed:
            fresh = self._rng.standard_normal(max(_NOISE_BLOCK, 8 * needed))
            self._noise = np.concatenate((self._noise[used:], fresh))
            self._clock[1] = 0


def _dearness(mean: Floats, empty: Floats) -> Floats:
    """Return how many times dearer a mean reward is than that of the empty edge: as a cost, or as a gain that shrank.

    Where a gain turned into a cost, or nothing into a cost, no number would be large enough: that is infinite.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(np.abs(mean) > np.abs(empty), mean / empty, empty / mean)
    return np.where(mean == empty, 1.0, np.where(ratio > 0, ratio, np.inf))
