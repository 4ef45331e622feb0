"""The price of using each edge: a bound on every policy from any prices, and the search for good ones."""

from dataclasses import dataclass
from math import fsum, ulp

import numpy as np

from routesim.arrays import Floats
from routesim.planning.edgewise.choices import Choices
from routesim.planning.edgewise.edge_models import EdgeModel
from routesim.planning.edgewise.sharing import Sharing


def certified_bound(choices: Choices, rewards: Floats, prices: Floats, model: EdgeModel) -> float:
    """Return an upper bound on the long-run average reward of every policy; any prices give one.

    Write each reward as price + (reward - price). Each round the prices collected are at most those of the
    pair's best action, and over time no edge's use history, whoever chose it, earns more than its own best
    average of reward - price.
    """
    collected = [rate * choices.best(prices, pair)[0] for pair, rate in enumerate(choices.rates)]
    idle = prices >= rewards.max(axis=1)  # a use of these never gains, so their best average is 0
    averages = model.best_averages(rewards[~idle], prices[~idle])
    total = fsum(collected) + fsum(averages)
    return total + 2 * len(collected) * ulp(max(map(abs, collected))) + ulp(total)


@dataclass(frozen=True)
class PriceSearch:
    """Prices and the proven bound they give."""

    prices: Floats
    bound: float
    rounds: int


def find_prices(
    choices: Choices,
    rewards: Floats,
    model: EdgeModel,
    sharing: Sharing,
    *,
    start_prices: Floats | None = None,
    max_rounds: int = 60,
    precision: float = 2e-4,
    enough: float = -np.inf,
) -> PriceSearch:
    """Minimise the bound over prices; paths (or edges) and use patterns are found when prices call for them.

    Start prices whose bound is already `enough` are kept as they are.

    A linear programme shares the rounds among what is known to earn the most on the edges' curves; its dual
    is a price per edge. New prices are also tried halfway to the best ones so far, which keeps early, wild
    duals from wasting rounds.
    """
    ceiling = rewards.max(axis=1)  # above it an edge is idle whatever its price
    best = np.minimum(ceiling if start_prices is None else start_prices, ceiling)
    sharing.extend(best)
    certified = best
    certified_value = believed = certified_bound(choices, rewards, best, model)
    if certified_value <= enough:
        return PriceSearch(certified, certified_value, 0)

    rounds = 0
    for rounds in range(1, max_rounds + 1):
        known = sharing.edges
        grid, heights = model.curves(rewards[known])
        solution = sharing.solve(grid, heights, ceiling[known])
        if solution is None:
            break
        value, duals = solution
        found = False
        for weight in (1.0, 0.5):
            trial = ceiling.copy()
            trial[known] = np.minimum(weight * duals + (1 - weight) * best[known], ceiling[known])
            bound = float((heights - trial[known, None] * grid).max(axis=1).sum())
            bound += sum(rate * choices.best(trial, pair)[0] for pair, rate in enumerate(choices.rates))
            found |= sharing.extend(trial)
            if bound < believed:
                best, believed = trial, bound
            if not found:
                break
        if found and believed - value > precision * abs(value) and rounds < max_rounds:
            continue
        # The curves may still miss use patterns, so what they promise is believed only once it is certified.
        n_patterns = model.n_patterns
        believed = certified_bound(choices, rewards, best, model)
        if believed < certified_value:
            certified, certified_value = best, believed
        if certified_value - value <= precision * abs(value) or model.n_patterns == n_patterns:
            break
        best, believed = certified, certified_value
    return PriceSearch(certified, certified_value, rounds)
