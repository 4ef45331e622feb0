"""Least-cost flows on roads whose prices rise with the flow: the steps of the bi-conjugate Frank-Wolfe method.

Mitradjieva and Lindberg, "The stiff is moving", Transportation Science 47 (2013). Every iteration sends all
demand down the cheapest paths (see `trees`), joins that flow with the last two directions so that the new one is
conjugate to both, and moves along it by a line search. The shares of the paths move with the flows.
"""

from typing import NamedTuple

from routesim.arrays import Floats
from routesim.assignment.trees import Paths
from routesim.kernels import kernel

STEP_ACCURACY = 1e-7  # the slope along the direction that ends a line search, relative to the slope at its start
ALMOST_ALL = 0.999  # the weight of old directions, and the step, beyond which the method starts over


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
def _slope(prices: Prices, edge: int, flow: float) -> float:
    if len(prices.knots) == 0:
        beta = prices.beta[edge]
        if beta == 0.0 or (flow <= 0.0 and beta < 1.0):
            return 0.0
        ratio = flow / prices.capacity[edge]
        steep = prices.alpha[edge] * beta / prices.capacity[edge]
        return float(prices.base[edge] * steep * (_power(ratio, beta) / ratio if ratio > 0.0 else (beta == 1.0) * 1.0))
    knots, values = prices.knots, prices.values[edge]
    k = _segment(knots, flow)
    return float((values[k] - values[k - 1]) / (knots[k] - knots[k - 1]))


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
def _conjugate(
    prices: Prices, flows: Floats, loaded: Floats, last: Floats, before: Floats, step: float
) -> tuple[float, float]:
    """Return the weights, relative to 1 for `loaded`, of the last two directions that make the next conjugate.

    They are nu and mu of the paper, and with one direction to be conjugate to (step = 0) only nu.
    """
    along_new = along_old = cross_new = cross_mid = cross_gap = 0.0
    for edge in range(len(flows)):
        curve = _slope(prices, edge, flows[edge])
        if curve == 0.0:
            continue
        new, old = loaded[edge] - flows[edge], last[edge] - flows[edge]
        cross_new += curve * old * new
        along_old += curve * old * old
        along_new += curve * new * new
        if step > 0.0:
            mid = step * last[edge] + (1.0 - step) * before[edge] - flows[edge]
            cross_mid += curve * mid * new
            cross_gap += curve * mid * (before[edge] - last[edge])
    tiny = 1e-14 * along_new
    if along_old <= tiny:
        return 0.0, 0.0
    mu = 0.0
    if step > 0.0 and abs(cross_gap) > tiny:
        mu = max(0.0, -cross_mid / cross_gap)
    nu = max(0.0, -cross_new / along_old + mu * step / (1.0 - step))
    if nu + mu > ALMOST_ALL / (1.0 - ALMOST_ALL):
        shrink = ALMOST_ALL / (1.0 - ALMOST_ALL) / (nu + mu)
        nu, mu = nu * shrink, mu * shrink
    return nu, mu


@kernel
def _gradient(prices: Prices, flows: Floats, target: Floats, step: float) -> tuple[float, float]:
    """Return slope and curvature of the objective at a step from `flows` towards `target`."""
    slope = curve = 0.0
    for edge in range(len(flows)):
        move = target[edge] - flows[edge]
        if move != 0.0:
            at = max(0.0, flows[edge] + step * move)
            slope += move * _price(prices, edge, at)
            curve += move * move * _slope(prices, edge, at)
    return slope, curve


@kernel
def best_step(prices: Prices, flows: Floats, target: Floats) -> float:
    """Find the step in [0, 1] from `flows` to `target` with the least objective, by Newton inside a bracket."""
    start, curve = _gradient(prices, flows, target, 0.0)
    if start >= 0.0:
        return 0.0
    if _gradient(prices, flows, target, 1.0)[0] <= 0.0:
        return 1.0
    low, high, step, slope = 0.0, 1.0, 0.0, start
    for _ in range(100):
        step = step - slope / curve if curve > 0.0 else -1.0
        if not low < step < high:
            step = (low + high) / 2
        slope, curve = _gradient(prices, flows, target, step)
        if abs(slope) <= -STEP_ACCURACY * start or high - low < 1e-15:
            break
        if slope < 0.0:
            low = step
        else:
            high = step
    return step


@kernel
def advance(
    prices: Prices,
    at_flows: Floats,
    flows: Floats,
    loaded: Floats,
    last: Floats,
    before: Floats,
    paths: Paths,
    memory: Floats,
) -> float:
    """Move `flows` by one step, and the shares of the paths with it; return the step.

    `memory` holds the step before and how many of the directions `last` and `before` are to be used.
    """
    nu = mu = 0.0
    if memory[1] >= 1.0:
        nu, mu = _conjugate(prices, flows, loaded, last, before, memory[0] if memory[1] >= 2.0 else 0.0)
    slope = 0.0
    for edge in range(len(flows)):
        target = (loaded[edge] + nu * last[edge] + mu * before[edge]) / (1.0 + nu + mu)
        slope += at_flows[edge] * (target - flows[edge])
    if slope >= 0.0:
        nu = mu = 0.0
    weight = 1.0 / (1.0 + nu + mu)
    for edge in range(len(flows)):
        target = weight * (loaded[edge] + nu * last[edge] + mu * before[edge])
        before[edge] = last[edge]
        last[edge] = target
    step = best_step(prices, flows, last)
    for edge in range(len(flows)):
        flows[edge] = max(0.0, flows[edge] + step * (last[edge] - flows[edge]))
    share, one, two = paths.shares[0], paths.shares[1], paths.shares[2]
    for path in range(paths.used[0]):
        target = weight * (nu * one[path] + mu * two[path])
        two[path] = one[path]
        one[path] = target
    for path in paths.cheapest:
        one[path] += weight
    for path in range(paths.used[0]):
        share[path] += step * (one[path] - share[path])
    memory[0] = step
    memory[1] = 0.0 if step >= ALMOST_ALL or step <= 0.0 else min(2.0, memory[1] + 1.0)
    return step
