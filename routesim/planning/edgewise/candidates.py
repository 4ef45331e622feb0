"""Policies worth trying at the prices found, and what they earn where several pairs make the future random."""

from dataclasses import dataclass

import numpy as np

from routesim.arrays import Floats, Ints
from routesim.planning.edgewise.choices import PathSet, RoadGraph
from routesim.planning.edgewise.count_policy import CountPolicy, EvenUseModel, tolls_at
from routesim.planning.edgewise.edge_models import HistoryModel
from routesim.planning.edgewise.index_policy import EdgeValues, IndexPolicy
from routesim.planning.edgewise.pair_prices import PairPrices, edge_values
from routesim.planning.edgewise.prices import find_prices
from routesim.planning.edgewise.sharing import FlowSharing, PathSharing
from routesim.planning.edgewise.single_edge import (
    MAX_EXACT_WINDOW,
    block_rewards,
    block_window,
    plain_window,
)

_BLOCKS = 12
_BATCHES = 30
_MAX_VALUES = 1 << 27  # numbers in the tables of edge values: 1 GB
_PRECISE = 0.004  # standard error of a value, as a share of it, below which it is measured no longer
_SMALL_CHAIN = 1_024  # joint histories, few enough to look at each
_LONGEST = 8  # times the first run, at most


@dataclass(frozen=True)
class Candidate:
    """A policy to try, the window it sees, and how many rounds one round of its play stands for."""

    name: str
    policy: IndexPolicy | CountPolicy
    window: int
    block: int = 1


def policies(
    choices: PathSet | RoadGraph,
    rewards: Floats,
    window: int,
    prices: Floats,
    sharing: PathSharing | FlowSharing,
    precision: float,
) -> list[Candidate]:
    """Return greedy and the index policy.

    Where histories are too many, fixed tolls and the index in blocks.
    """
    greedy = CountPolicy(choices, rewards, np.zeros(choices.n_edges), window)
    found = [Candidate("greedy", greedy, window)]
    tolled = int(np.count_nonzero(prices < rewards.max(axis=1)))
    if window <= MAX_EXACT_WINDOW and tolled << window <= _MAX_VALUES:
        histories = plain_window(max(1, window))
        tables = np.repeat(rewards, 2, axis=1) if window == 0 else rewards
        index = IndexPolicy(choices, tables, EdgeValues.at_prices(tables, prices, histories))
        return [*found, Candidate("index", index, window)]
    even = find_prices(choices, rewards, EvenUseModel(), sharing, precision=precision)
    tolls = CountPolicy(choices, rewards, tolls_at(rewards, even.prices), window)
    found.append(Candidate("tolls", tolls, window))
    if choices.rates.size == 1:  # with several pairs nobody can be sent the same way for a whole block
        histories = block_window(_BLOCKS)
        tables = block_rewards(rewards, window, _BLOCKS)
        in_blocks = find_prices(choices, tables, HistoryModel(histories), sharing, precision=precision)
        index = IndexPolicy(choices, tables, EdgeValues.at_prices(tables, in_blocks.prices, histories))
        found.append(Candidate("index", index, _BLOCKS, -(-window // _BLOCKS)))
    return found


def index_by_pair(choices: PathSet | RoadGraph, rewards: Floats, window: int, found: PairPrices) -> Candidate:
    """Return the index policy whose tolls come from prices by pair."""
    tables = np.repeat(rewards, 2, axis=1) if window == 0 else rewards
    values = edge_values(len(rewards), found.edges, found.values)
    return Candidate("index by pair", IndexPolicy(choices, tables, values), window)


@dataclass(frozen=True)
class Measured:
    """The best of some policies, its mean reward with the standard error, and the means of all."""

    policy: IndexPolicy | CountPolicy
    value: float
    error: float
    means: dict[str, float]


def measured(tried: list[Candidate], rates: Floats, rounds: int, seed: int, *, thorough: bool) -> Measured:
    """Play every policy against the same random pairs, and measure the best.

    With `thorough`, a policy over few joint histories is measured on the chain of them, without an error. Another is
    played on, against other pairs, until the standard error is small; then the choice among policies, which favours the
    lucky, is no part of what is measured.
    """
    rng = np.random.default_rng(seed)
    pairs = rng.choice(rates.size, size=rounds, p=rates).astype(np.int64)
    runs = {entry.name: _mean(entry, entry.policy.play(pairs)[1], pairs, rates) for entry in tried}
    best = max(tried, key=lambda entry: runs[entry.name][0])
    value, error = runs[best.name]
    choices = best.policy.choices
    if thorough and isinstance(choices, PathSet) and choices.n_actions**best.window <= _SMALL_CHAIN:
        means = {name: mean for name, (mean, _) in runs.items()}
        return Measured(best.policy, chain_mean(best.policy, choices, best.window), 0.0, means)
    length = 2 * rounds
    while thorough and error > _PRECISE * abs(value) and length <= _LONGEST * rounds:
        pairs = np.random.default_rng([seed, length]).choice(rates.size, size=length, p=rates).astype(np.int64)
        value, error = _mean(best, best.policy.play(pairs)[1], pairs, rates)
        length *= 2
    return Measured(best.policy, value, error, {name: mean for name, (mean, _) in runs.items()})


def chain_mean(policy: IndexPolicy | CountPolicy, paths: PathSet, window: int) -> float:
    """Return what a policy earns on average in the long run from empty roads, over all joint histories."""
    n_actions, n_states = paths.n_actions, paths.n_actions**window
    histories = [[state // n_actions**back % n_actions for back in range(window)][::-1] for state in range(n_states)]
    kinds = np.flatnonzero(paths.rates > 0)
    chosen = np.array([[policy(history, int(pair)) for pair in kinds] for history in histories], np.int64)
    after = (np.arange(n_states)[:, None] * n_actions + chosen) % n_states
    rates = paths.rates[kinds]
    both = zip(histories, chosen, strict=True)
    earned = np.array([[_earned(policy, paths, past, int(each)) for each in row] for past, row in both])
    first: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(window):
        longer: dict[tuple[int, ...], float] = {}
        for past, chance in first.items():
            for pair, rate in zip(kinds, rates, strict=True):
                next_past = (*past, int(policy(past, int(pair))))  # type: ignore[arg-type]  # numbers in a path set
                longer[next_past] = longer.get(next_past, 0.0) + chance * rate
        first = longer
    chances = np.zeros(n_states)
    for past, chance in first.items():
        chances[sum(action * n_actions**back for back, action in enumerate(reversed(past)))] += chance
    for _ in range(100_000):
        moved = np.bincount(after.ravel(), weights=(chances[:, None] * rates).ravel(), minlength=n_states) - chances
        chances += 0.6 * moved
        if np.abs(moved).sum() < 1e-13:
            break
    return float((chances[:, None] * rates * earned).sum() / chances.sum())


def _earned(policy: IndexPolicy | CountPolicy, paths: PathSet, history: list[int], action: int) -> float:
    counts = np.zeros(paths.n_edges, np.int64)
    for before in history:
        counts[paths.edges_of(before)] += 1
    edges = paths.edges_of(action)
    return float(policy.rewards[edges, counts[edges]].sum())


def _mean(entry: Candidate, earned: Floats, pairs: Ints, rates: Floats) -> tuple[float, float]:
    """Return the mean reward and its standard error, the first window left out.

    The means of the pairs are weighed by their rates, so that it does not matter which pairs chance drew more often. A
    pair that was hardly drawn tells little of its own mean: all of its share counts as error.
    """
    start = min(entry.window, pairs.size // 2)
    earned, pairs = earned[start:], pairs[start:]
    counts = np.bincount(pairs, minlength=rates.size)
    rare = counts < _BATCHES
    seen = np.maximum(counts, 1)
    means = np.bincount(pairs, weights=earned, minlength=rates.size) / seen
    means[counts == 0] = earned.mean()
    rest = (rates * pairs.size / seen)[pairs] * (earned - means[pairs])
    batches = np.array([batch.mean() for batch in np.array_split(rest, _BATCHES)])
    unknown = float(rates[rare].sum() * np.abs(earned).max(initial=0.0))
    return float(rates @ means), float(batches.std(ddof=1)) / _BATCHES**0.5 + unknown
