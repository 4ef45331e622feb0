"""The compiled loops of the rounds: one round, a table of actions by history, and policies that look at contexts.

They work on plain arrays, and all of them pay through `drive`, so that a round is written down once.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.kernels import kernel, lean_kernel
from routesim.rounds.window import Window, move

Floats: TypeAlias = NDArray[np.float64]
Roads: TypeAlias = tuple[
    NDArray[np.int64],
    NDArray[np.int32],
    Floats,
    Floats,
    Window,
    NDArray[np.int64],
    Floats,
    Floats,
    int,
    int,
    bool,
    Floats,
]
"""What `drive` works on, in the order of its parameters from `indptr` to `met`."""


@lean_kernel
def drive(
    action: int,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    rewards: Floats,
    noise_std: Floats,
    window: Window,
    clock: NDArray[np.int64],
    noise: Floats,
    bases: Floats,
    first: int,
    last: int,  # noqa: ARG001 - the loops below stop there
    every_edge: bool,
    met: Floats,
    seen_counts: NDArray[np.int32],
    seen_rewards: Floats,
) -> tuple[float, float]:
    """Play one round: read the counts, pay the noisy rewards, move the window; return expected and paid reward.

    The mean reward of an edge is its base in this round times `rewards` at its count. `bases` has a row for each of
    the rounds `first` .. `last` - 1, or one row for all. Noise is drawn for the edges of the action in turn, or for
    every edge of the round, used or not. `met` adds up by edge how often it was used, and `rewards` at the counts met.
    """
    now, cursor = clock[0], clock[1]
    row = now - first if len(bases) > 1 else 0
    expected = paid = 0.0
    start = indptr[action]
    for place in range(indptr[action + 1] - start):
        edge = indices[start + place]
        count = window.counts[edge]
        mean = bases[row, edge] * rewards[edge, count]
        expected += mean
        met[edge, 0] += 1.0
        met[edge, 1] += rewards[edge, count]
        seen_counts[place] = count
        seen_rewards[place] = mean + noise_std[edge] * noise[cursor + (edge if every_edge else place)]
        paid += seen_rewards[place]
    cursor += len(window.counts) if every_edge else indptr[action + 1] - start
    move(window, now, action, indptr, indices)
    clock[0] = now + 1
    clock[1] = cursor
    return expected, paid


@lean_kernel
def play_table(
    policy: NDArray[np.int32],
    n_actions: int,
    phase: int,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    rewards: Floats,
    noise_std: Floats,
    window: Window,
    clock: NDArray[np.int64],
    noise: Floats,
    bases: Floats,
    first: int,
    last: int,
    every_edge: bool,
    met: Floats,
    seen_counts: NDArray[np.int32],
    seen_rewards: Floats,
    visits: NDArray[np.int64],
    sums: Floats,
    limits: NDArray[np.int64],
    trace_actions: NDArray[np.int32],
    trace_expected: Floats,
    trace_rewards: Floats,
) -> tuple[int, bool]:
    """Drive by a policy until a limit is reached, the trace is full, or noise or bases run out.

    The policy is a table of actions by history; or, if `n_actions` is 0, a cycle of actions from place `phase` on.
    """
    n_states = len(policy)
    needed = len(window.counts) if every_edge else len(seen_counts)
    state = phase % n_states
    if n_actions > 0:
        state = 0
        for past in range(max(0, clock[0] - window.length), clock[0]):
            state = (state * n_actions + window.ring[past % window.length]) % n_states
    played = 0
    while played < len(trace_actions) and clock[0] < last and clock[1] + needed <= len(noise):
        action = policy[state]
        trace_actions[played] = action
        trace_expected[played], trace_rewards[played] = drive(
            action,
            indptr,
            indices,
            rewards,
            noise_std,
            window,
            clock,
            noise,
            bases,
            first,
            last,
            every_edge,
            met,
            seen_counts,
            seen_rewards,
        )
        reached = False
        for place in range(indptr[action + 1] - indptr[action]):
            edge, count = indices[indptr[action] + place], seen_counts[place]
            visits[edge, count] += 1
            sums[edge, count] += seen_rewards[place]
            reached |= visits[edge, count] >= limits[edge, count]
        state = (state * n_actions + action if n_actions > 0 else state + 1) % n_states
        played += 1
        if reached:
            return played, True
    return played, False


@kernel
def play_contextual(
    theta: Floats,
    values: Floats,
    table: NDArray[np.integer],
    table_first: int,
    policy_last: int,
    features: Floats,
    roads: Roads,
    seen_counts: NDArray[np.int32],
    seen_rewards: Floats,
    gram: Floats,
    moment: Floats,
    trace_actions: NDArray[np.int32],
    trace_expected: Floats,
    trace_rewards: Floats,
) -> int:
    """Drive up to `policy_last` and add every reward seen to the least-squares fit; return the rounds played.

    The policy is a table of actions by round, from `table_first` on, and history; or, if that is empty, what `choose`
    makes of `theta` and the values of histories. Stops early if the trace is full, or noise or contexts run out.
    """
    indptr, indices, multipliers, _, window, clock, noise, _, first, last, every_edge, _ = roads
    n_actions = len(indptr) - 1
    n_states = n_actions**window.length
    needed = len(window.counts) if every_edge else len(seen_counts)
    last = min(last, policy_last)
    estimates = np.empty(len(window.counts))
    state = 0
    for past in range(max(0, clock[0] - window.length), clock[0]):
        state = (state * n_actions + window.ring[past % window.length]) % n_states
    played = 0
    while played < len(trace_actions) and clock[0] < last and clock[1] + needed <= len(noise):
        now = clock[0]
        row = now - first
        if len(table) > 0:
            action = int(table[now - table_first, state])
        else:
            action = choose(theta, features[row], multipliers, window.counts, indptr, indices, values, state, estimates)
        trace_actions[played] = action
        trace_expected[played], trace_rewards[played] = drive(action, *roads, seen_counts, seen_rewards)
        start = indptr[action]
        add_to_fit(
            features[row], multipliers, indices[start : indptr[action + 1]], seen_counts, seen_rewards, gram, moment
        )
        state = (state * n_actions + action) % n_states
        played += 1
    return played


@kernel
def choose(
    theta: Floats,
    features: Floats,
    multipliers: Floats,
    counts: NDArray[np.int32],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    after: Floats,
    state: int,
    estimates: Floats,
) -> int:
    """Return the action with the largest reward now under `theta` plus value of the history it leads to."""
    n_actions, n_states = len(indptr) - 1, len(after)
    n_edges, dimension = features.shape
    for edge in range(n_edges):
        base = 0.0
        for place in range(dimension):
            base += features[edge, place] * theta[place]
        estimates[edge] = base * multipliers[edge, counts[edge]]
    successor = (state * n_actions) % n_states
    best, choice = -np.inf, 0
    for action in range(n_actions):
        worth = after[successor + action] if n_states > 1 else after[0]
        for place in range(indptr[action], indptr[action + 1]):
            worth += estimates[indices[place]]
        if worth > best:
            best, choice = worth, action
    return choice


@kernel
def add_to_fit(
    features: Floats,
    multipliers: Floats,
    edges: NDArray[np.int32],
    seen_counts: NDArray[np.int32],
    seen_rewards: Floats,
    gram: Floats,
    moment: Floats,
) -> None:
    """Add the edges of a round to the sums of least squares on features times multiplier; lower triangle only."""
    dimension = len(moment)
    for place in range(len(edges)):
        edge = edges[place]
        multiplier = multipliers[edge, seen_counts[place]]
        for line in range(dimension):
            regressor = features[edge, line] * multiplier
            moment[line] += regressor * seen_rewards[place]
            for column in range(line + 1):
                gram[line, column] += regressor * features[edge, column] * multiplier
