"""One edge where each round serves a random kind of traveller, and every kind has a price of its own.

Kinds are origin-destination pairs. The use histories are those of `single_edge`; what a round will serve is not known
before it comes, so the value of a history is a mean over the kinds. A price of minus infinity marks a kind that has to
use the edge, and pays nothing; one of infinity a kind that cannot.
"""

from collections.abc import Sequence
from math import fsum, ulp

import numpy as np

from routesim.arrays import Bools, Floats, Ints
from routesim.errors import InputError
from routesim.kernels import kernel, lean_kernel
from routesim.planning.edgewise.choices import PathSet, RoadGraph
from routesim.planning.edgewise.single_edge import plain_window


def bound_of_kinds(
    choices: PathSet | RoadGraph, rewards: Floats, prices: Floats, edges: Ints, gains: Sequence[float] | Floats
) -> float:
    """Return an upper bound on the long-run average reward of every policy that does not see the future.

    `prices[e, k]` is paid for a use of edge e by pair k, and `gains` bound what each of `edges` alone can keep of its
    rewards above the prices. Any prices give a bound at which no use of another edge gains anything. Write each reward
    as price + (reward - price). Each round the prices collected are at most those of the best action of the pair it
    serves, and whoever decides, no edge keeps more on average than it could alone.
    """
    forced, barred = bound_uses(choices)
    if np.any((prices == -np.inf) & ~forced) or np.any((prices == np.inf) & ~barred) or np.isnan(prices).any():
        raise InputError("a price is infinite only where every action of the pair uses the edge, or none")
    idle = np.ones(len(rewards), np.bool_)
    idle[edges] = False
    if np.any(prices[idle] < rewards[idle].max(axis=1, keepdims=True)):
        raise InputError("edges that are left out must not gain from any use at their prices")
    finite = np.where(np.isfinite(prices), prices, 0.0)
    collected = [rate * choices.best(finite[:, pair], pair)[0] for pair, rate in enumerate(choices.rates)]
    total = fsum([*collected, *gains])
    return total + 2 * len(collected) * ulp(max(map(abs, collected))) + ulp(total)


def gains_of_histories(rewards: Floats, prices: Floats, rates: Floats, values: Floats) -> Floats:
    """Return what each edge alone can keep at most, as any `values` of its use histories prove it.

    The values cancel over time, so nobody keeps more on average than the most that any history gains in a round.
    """
    gains = np.empty(len(rewards))
    labels = plain_window(int(values.shape[1]).bit_length() - 1).labels
    _gains(rewards, prices, rates, labels, values, gains)
    return gains


def bound_uses(choices: PathSet | RoadGraph) -> tuple[Bools, Bools]:
    """Return which pairs have to use which edge whatever they do, and which cannot, as far as it is known."""
    shape = choices.n_edges, choices.rates.size
    if isinstance(choices, RoadGraph):
        return np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    uses = np.zeros(shape, np.int64)
    pair_of = np.repeat(np.arange(shape[1]), np.diff(choices.first_action))
    np.add.at(uses, (choices.indices, np.repeat(pair_of, np.diff(choices.indptr))), 1)
    return uses == np.diff(choices.first_action), uses == 0


@lean_kernel
def _kept(gain: float, prices: Floats, rates: Floats) -> float:
    """Return what a use that brings `gain` keeps on average over the kinds, each free to leave it."""
    total = 0.0
    for kind in range(rates.size):
        if prices[kind] == -np.inf:
            total += rates[kind] * gain
        elif gain > prices[kind]:
            total += rates[kind] * (gain - prices[kind])
    return total


@kernel
def _gains(rewards: Floats, prices: Floats, rates: Floats, labels: Ints, values: Floats, gains: Floats) -> None:
    """Fill in the most that any history of each edge gains in a round, rounded up."""
    mask = labels.size - 1
    for edge in range(rewards.shape[0]):
        value = values[edge]
        most = -np.inf
        for state in range(labels.size):
            unused = (state << 1) & mask
            use = rewards[edge, labels[state]] + value[unused | 1] - value[unused]
            most = max(most, _kept(use, prices[edge], rates) + value[unused] - value[state])
        size = np.abs(rewards[edge]).max() + 4 * np.abs(value).max()
        for kind in range(rates.size):
            if np.isfinite(prices[edge, kind]):
                size += rates[kind] * abs(prices[edge, kind])
        gains[edge] = most + (rates.size + 8) * 2.220446049250313e-16 * size


@kernel
def improve_values(
    rewards: Floats,
    prices: Floats,
    rates: Floats,
    labels: Ints,
    sweeps: int,
    precision: float,
    values: Floats,
) -> None:
    """Improve the values by lazy value iteration, from what they are; the empty history stays at 0."""
    n_states = labels.size
    half = n_states >> 1
    new = np.empty(n_states)
    for edge in range(rewards.shape[0]):
        value = values[edge]
        scale = abs(rewards[edge, 0])
        for kind in range(rates.size):
            if np.isfinite(prices[edge, kind]):
                scale = max(scale, abs(prices[edge, kind]))
        for _ in range(sweeps):
            low, high = np.inf, -np.inf
            for state in range(half):
                rest = value[2 * state]
                ahead = value[2 * state + 1] - rest
                for at in (state, state + half):  # both forget their oldest round, and have the same successors
                    kept = _kept(rewards[edge, labels[at]] + ahead, prices[edge], rates)
                    change = kept + rest - value[at]
                    new[at] = value[at] + 0.6 * change
                    low, high = min(low, change), max(high, change)
            origin = new[0]
            for state in range(n_states):
                value[state] = new[state] - origin
            if high - low < precision * scale:
                break


@kernel
def uses_at(
    rewards: Floats, prices: Floats, rates: Floats, labels: Ints, values: Floats, chances: Floats, uses: Floats
) -> None:
    """Fill in how often each kind uses each edge, and in the last column the mean reward, where values decide.

    `chances` are those of the histories, improved from what they are.
    """
    n_states, n_kinds = labels.size, rates.size
    half = n_states >> 1
    used = np.empty(n_states)
    new = np.empty(n_states)
    for edge in range(rewards.shape[0]):
        value, chance = values[edge], chances[edge]
        for state in range(n_states):
            unused = (state << 1) & (n_states - 1)
            gain = rewards[edge, labels[state]] + value[unused | 1] - value[unused]
            used[state] = 0.0
            for kind in range(n_kinds):
                if prices[edge, kind] == -np.inf or gain > prices[edge, kind]:
                    used[state] += rates[kind]
        for _ in range(400):
            moved = 0.0
            for state in range(half):
                together = chance[state] + chance[state + half]
                taken = chance[state] * used[state] + chance[state + half] * used[state + half]
                new[2 * state], new[2 * state + 1] = together - taken, taken
            total = 0.0
            for state in range(n_states):
                step = 0.6 * (new[state] - chance[state])
                moved += abs(step)
                chance[state] += step
                total += chance[state]
            for state in range(n_states):
                chance[state] /= total
            if moved < 1e-8:
                break
        uses[edge] = 0.0
        for state in range(n_states):
            unused = (state << 1) & (n_states - 1)
            gain = rewards[edge, labels[state]] + value[unused | 1] - value[unused]
            for kind in range(n_kinds):
                if prices[edge, kind] == -np.inf or gain > prices[edge, kind]:
                    uses[edge, kind] += chance[state] * rates[kind]
                    uses[edge, n_kinds] += chance[state] * rates[kind] * rewards[edge, labels[state]]
