"""Prices of roads at their flows: what an edge costs, and what a link of several edges does."""

from typing import NamedTuple

import numpy as np

from routesim.arrays import Floats, Ints, Ints32
from routesim.kernels import kernel


class Prices(NamedTuple):
    """The price of an edge at flow x: base * (1 + alpha * (x / capacity) ** beta), or straight lines between knots.

    Where there are knots, edge e costs `values[e, k]` at the flow `knots[k]`; the first knot is at 0, values do not
    fall, and beyond the last knot the last line goes on.
    """

    base: Floats
    alpha: Floats
    capacity: Floats
    beta: Floats
    knots: Floats
    values: Floats


class LinkPrices(NamedTuple):
    """The price of a link at flow x: fixed + the sum of its terms, or straight lines between knots, as in `Prices`.

    Link k has the terms first[k] … first[k + 1] - 1, and term i is scale * ((x + shift) / size) ** power. All edges of
    a link carry its flow, so those with the same exponent and the same background flow make one term.
    """

    fixed: Floats
    first: Ints
    scale: Floats
    size: Floats
    shift: Floats
    power: Floats
    knots: Floats
    values: Floats


def link_prices(prices: Prices, first: Ints, members: Ints32, background: Floats) -> LinkPrices:
    """Add up the prices of the edges members[first[k] : first[k + 1]] of every link k."""
    n_links, owner = len(first) - 1, np.repeat(np.arange(len(first) - 1), np.diff(first))
    none = np.empty(0)
    if len(prices.knots):
        values = np.zeros((n_links, len(prices.knots)))
        np.add.at(values, owner, prices.values[members])
        return LinkPrices(none, np.empty(0, dtype=np.int64), none, none, none, none, prices.knots, values)
    base, power, shift = prices.base[members], prices.beta[members], background[members]
    fixed = np.asarray(np.bincount(owner, base, n_links), dtype=np.float64)
    steep = base * prices.alpha[members]
    rising = np.flatnonzero((steep > 0) & (power > 0))
    fixed += np.bincount(owner, np.where(power > 0, 0.0, steep), n_links)
    rising = rising[np.lexsort((shift[rising], power[rising], owner[rising]))]
    keys = np.column_stack((owner[rising], power[rising], shift[rising]))
    new = np.concatenate(([True], (np.diff(keys, axis=0) != 0).any(axis=1)))[: len(rising)]
    starts = np.flatnonzero(new)
    # The smallest capacity of a term is its size: a ratio to it neither overflows nor vanishes before the price does.
    capacity = prices.capacity[members][rising]
    size = np.minimum.reduceat(capacity, starts) if len(starts) else none
    relative = np.repeat(size, np.diff(np.append(starts, len(rising)))) / capacity
    scale = np.add.reduceat(steep[rising] * relative ** power[rising], starts) if len(starts) else none
    leaders = rising[starts]
    ends = np.searchsorted(owner[leaders], np.arange(n_links + 1)).astype(np.int64)
    return LinkPrices(fixed, ends, scale, size, shift[leaders], power[leaders], none, np.empty((0, 0)))


@kernel
def _power(ratio: float, beta: float) -> float:
    if beta == 4.0:
        square = ratio * ratio
        return square * square
    if beta == 1.0:
        return ratio
    return float(ratio**beta)


@kernel
def _segment(knots: Floats, flow: float) -> int:
    """Return the number of the knot at the upper end of the line that holds at this flow."""
    low, high = 1, len(knots) - 1
    while low < high:
        middle = (low + high) // 2
        if knots[middle] < flow:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _price(prices: Prices, edge: int, flow: float) -> float:
    if len(prices.knots) == 0:
        rise = prices.alpha[edge] * _power(flow / prices.capacity[edge], prices.beta[edge])
        return float(prices.base[edge] * (1.0 + rise))
    knots, values = prices.knots, prices.values[edge]
    k = _segment(knots, flow)
    slope = (values[k] - values[k - 1]) / (knots[k] - knots[k - 1])
    return float(values[k - 1] + slope * (flow - knots[k - 1]))


@kernel
def _integral(prices: Prices, edge: int, flow: float) -> float:
    if len(prices.knots) == 0:
        beta = prices.beta[edge]
        rise = prices.alpha[edge] * _power(flow / prices.capacity[edge], beta) / (beta + 1.0)
        return float(prices.base[edge] * flow * (1.0 + rise))
    knots, values = prices.knots, prices.values[edge]
    total, k = 0.0, _segment(knots, flow)
    for below in range(1, k):
        total += (values[below] + values[below - 1]) / 2 * (knots[below] - knots[below - 1])
    return float(total + (values[k - 1] + _price(prices, edge, flow)) / 2 * (flow - knots[k - 1]))


@kernel
def prices_at(prices: Prices, flows: Floats, out: Floats) -> float:
    """Fill `out` with the price of every edge; return the price paid in all."""
    paid = 0.0
    for edge in range(len(flows)):
        out[edge] = _price(prices, edge, flows[edge])
        paid += out[edge] * flows[edge]
    return paid


@kernel
def objective_at(prices: Prices, flows: Floats) -> float:
    """Add up the integrals of the prices from no flow to these flows."""
    total = 0.0
    for edge in range(len(flows)):
        total += _integral(prices, edge, flows[edge])
    return total


@kernel
def link_price(prices: LinkPrices, link: int, flow: float) -> tuple[float, float]:
    """Return the price of a link at a flow, and how much it rises with each further vehicle."""
    if len(prices.knots) > 0:
        knots, k = prices.knots, _segment(prices.knots, flow)
        values = prices.values[link]
        slope = (values[k] - values[k - 1]) / (knots[k] - knots[k - 1])
        return values[k - 1] + slope * (flow - knots[k - 1]), slope
    price, slope = prices.fixed[link], 0.0
    for term in range(prices.first[link], prices.first[link + 1]):
        power = prices.power[term]
        ratio = (flow + prices.shift[term]) / prices.size[term]
        if ratio <= 0.0:
            slope += prices.scale[term] / prices.size[term] if power == 1.0 else 0.0
            continue
        if power == 4.0:
            cube = ratio * ratio * ratio
            price += prices.scale[term] * cube * ratio
            slope += prices.scale[term] * 4.0 * cube / prices.size[term]
        else:
            rise = prices.scale[term] * ratio**power
            price += rise
            slope += rise * power / (ratio * prices.size[term])
    return price, slope


@kernel
def price_links(prices: LinkPrices, flows: Floats, cost: Floats, slope: Floats) -> None:
    """Fill in the price of every link at its flow, and its slope."""
    for link in range(len(flows)):
        cost[link], slope[link] = link_price(prices, link, flows[link])
