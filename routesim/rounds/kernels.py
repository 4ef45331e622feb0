"""The compiled loops of the rounds: one round, and many rounds by a table of actions or by a cycle of them.

Whoever plays rounds pays through `play_round`, so that a round is written down once.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from routesim.arrays import Floats, Ints, Ints32
from routesim.kernels import lean_kernel
from routesim.rounds.window import PathRows, WindowState, history_number, move


class Payment(NamedTuple):
    """What edges pay: the base of the round times `by_count` at the edge's count, plus noise.

    Noise is drawn for the edges of the action in turn, or for `every_edge` of the round, used or not.
    """

    by_count: Floats
    noise_std: Floats
    every_edge: bool


class Bases(NamedTuple):
    """The bases of the edges in the rounds `first` to `last` - 1: a row for each, or one row for all."""

    rows: Floats
    first: int
    last: int


class Seen(NamedTuple):
    """What the edges of the last action showed, and all uses by edge.

    `counts` and `rewards` have room for the edges of the longest action. `met` adds up by edge how often it was used,
    and the `by_count` of the counts that its users met.
    """

    counts: Ints32
    rewards: Floats
    met: Floats

    @classmethod
    def empty(cls, longest: int, n_edges: int) -> Self:
        """Return room for actions of at most `longest` edges, and no uses."""
        return cls(np.empty(longest, dtype=np.int32), np.empty(longest), np.zeros((n_edges, 2)))


class RoundArrays(NamedTuple):
    """All that a round reads and changes; `clock` holds the round, and how much of the `noise` is used up."""

    paths: PathRows
    window: WindowState
    payment: Payment
    bases: Bases
    noise: Floats
    clock: Ints
    seen: Seen

    def play(self, action: int) -> tuple[float, float]:
        """Play one round from Python; return expected and paid reward.

        numba finds the type of a plain tuple at once, and takes 2 µs longer for these nested ones: half a round's time.
        """
        paths, window, payment, bases, noise, clock, seen = self
        plain = tuple(paths), tuple(window), tuple(payment), tuple(bases), noise, clock, tuple(seen)
        return _play_plain(action, plain)


class Tallied(NamedTuple):
    """Feedback added up by (edge, count): uses and summed rewards, and the uses at which to stop."""

    visits: Ints
    sums: Floats
    limits: Ints


class Trace(NamedTuple):
    """One row a round: the action, its expected reward, and the reward that was paid."""

    actions: Ints32
    expected_rewards: Floats
    rewards: Floats

    @classmethod
    def empty(cls, rounds: int) -> Self:
        """Return room for `rounds` rounds."""
        return cls(np.empty(rounds, dtype=np.int32), np.empty(rounds), np.empty(rounds))

    def part(self, first: int, last: int) -> Self:
        """Return the rows from `first` up to `last` as a view."""
        return self._replace(
            actions=self.actions[first:last],
            expected_rewards=self.expected_rewards[first:last],
            rewards=self.rewards[first:last],
        )


@lean_kernel
def play_round(action: int, rounds: RoundArrays) -> tuple[float, float]:
    """Play one round: read the counts, pay the noisy rewards, move the window; return expected and paid reward."""
    payment, bases, seen = rounds.payment, rounds.bases, rounds.seen
    counts, indices = rounds.window.counts, rounds.paths.indices
    now, cursor = rounds.clock[0], rounds.clock[1]
    row = now - bases.first if len(bases.rows) > 1 else 0
    expected = paid = 0.0
    start = rounds.paths.indptr[action]
    length = rounds.paths.indptr[action + 1] - start
    for place in range(length):
        edge = indices[start + place]
        count = counts[edge]
        mean = bases.rows[row, edge] * payment.by_count[edge, count]
        expected += mean
        seen.met[edge, 0] += 1.0
        seen.met[edge, 1] += payment.by_count[edge, count]
        seen.counts[place] = count
        drawn = rounds.noise[cursor + (edge if payment.every_edge else place)]
        seen.rewards[place] = mean + payment.noise_std[edge] * drawn
        paid += seen.rewards[place]
    move(rounds.window, rounds.paths, now, action)
    rounds.clock[0] = now + 1
    rounds.clock[1] = cursor + (len(counts) if payment.every_edge else length)
    return expected, paid


@lean_kernel
def _play_plain(action: int, plain: Any) -> tuple[float, float]:
    """Play one round with the arrays in plain tuples."""
    paths, window, payment, bases, noise, clock, seen = plain
    nested = PathRows(*paths), WindowState(*window), Payment(*payment), Bases(*bases), noise, clock, Seen(*seen)
    return play_round(action, RoundArrays(*nested))


@lean_kernel
def more_rounds(rounds: RoundArrays) -> bool:
    """Say whether bases and noise last for another round."""
    needed = len(rounds.window.counts) if rounds.payment.every_edge else len(rounds.seen.counts)
    return bool(rounds.clock[0] < rounds.bases.last and rounds.clock[1] + needed <= len(rounds.noise))


@lean_kernel
def play_table(
    policy: Ints32, n_actions: int, phase: int, rounds: RoundArrays, tallied: Tallied, trace: Trace
) -> tuple[int, bool]:
    """Play by a policy until a limit is reached, the trace is full, or noise or bases run out.

    The policy is a table of actions by history; or, if `n_actions` is 0, a cycle of actions from place `phase` on.
    Return how many rounds were played, and whether a limit is reached.
    """
    n_states = len(policy)
    state = phase % n_states
    if n_actions > 0:
        state = history_number(rounds.window, rounds.clock[0], n_actions, n_states)
    indptr, indices, seen = rounds.paths.indptr, rounds.paths.indices, rounds.seen
    played = 0
    while played < len(trace.actions) and more_rounds(rounds):
        action = policy[state]
        trace.actions[played] = action
        trace.expected_rewards[played], trace.rewards[played] = play_round(action, rounds)
        reached = False
        for place in range(indptr[action + 1] - indptr[action]):
            edge, count = indices[indptr[action] + place], seen.counts[place]
            tallied.visits[edge, count] += 1
            tallied.sums[edge, count] += seen.rewards[place]
            reached |= tallied.visits[edge, count] >= tallied.limits[edge, count]
        state = (state * n_actions + action if n_actions > 0 else state + 1) % n_states
        played += 1
        if reached:
            return played, True
    return played, False
