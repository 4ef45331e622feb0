"""Moving vehicles between two ways with the same ends until both cost the same, and doing so again."""

from typing import NamedTuple

import numpy as np

from routesim.arrays import Bools, Floats, Ints, Ints32
from routesim.assignment.prices import LinkPrices, link_price
from routesim.kernels import kernel

_GOOD_STEP = 0.1  # the share of a difference between two ways that may be left after a shift
_ROUNDING = 1e-14  # the difference between two ways, relative to their price, that is put down to rounding
_TRIES = 30  # steps of Newton's method in one shift


class Ways(NamedTuple):
    """Links by their heads; no path passes a `barred` node, but one may start or end there.

    Where turns are banned, several links may be the same road: link k is of road roads[k]. Otherwise that is k.
    """

    first: Ints
    tails: Ints32
    barred: Bools
    roads: Ints32
    n_roads: int


class Swaps(NamedTuple):
    """Two ways between the same nodes that an origin has moved vehicles between, from the first to the second.

    Those of swap k are links[begin[k] : middle[k]] and links[middle[k] : begin[k + 1]]; `used` has the numbers of
    swaps and of links in use.
    """

    owner: Ints32
    begin: Ints
    middle: Ints
    links: Ints32
    used: Ints

    @classmethod
    def none_yet(cls) -> "Swaps":
        """Return room for a few; there is more when it is needed."""
        room = 1024
        numbers = [np.zeros(size, dtype=np.int64) for size in (room + 1, room, 2)]
        owner, links = (np.empty(size, dtype=np.int32) for size in (room, 16 * room))
        return cls(owner, numbers[0], numbers[1], links, numbers[2])


class State(NamedTuple):
    """The flow of every road in all, its price and slope there, and what the passes over one origin write to.

    `least` and `most` are the prices of the cheapest way to each node and of the dearest in use, `by_least` and
    `by_most` the links these arrive by, and `onward` is `least` where a way may go on; `rank` is the place of each node
    in the order.
    """

    total: Floats
    cost: Floats
    slope: Floats
    least: Floats
    onward: Floats
    most: Floats
    amount: Floats
    by_least: Ints32
    by_most: Ints32
    rank: Ints32
    down: Ints32
    up: Ints32

    @classmethod
    def build(cls, n_roads: int, n_nodes: int) -> "State":
        """Allocate it."""
        by_road = [np.zeros(n_roads) for _ in range(3)]
        by_node = [np.zeros(n_nodes) for _ in range(4)]
        numbers = [np.zeros(n_nodes, dtype=np.int32) for _ in range(5)]
        return cls(*by_road, *by_node, *numbers)  # type: ignore[arg-type]  # the order of the fields


@kernel
def price_difference(
    prices: LinkPrices, total: Floats, cost: Floats, slope: Floats, down: Ints32, up: Ints32, step: float
) -> tuple[float, float]:
    """Price both ways as if `step` vehicles had moved; return how much more the first still costs, and the slope."""
    difference = curve = 0.0
    for road in down:
        price, rise = link_price(prices, road, max(0.0, total[road] - step))
        cost[road], slope[road] = price, rise
        difference += price
        curve += rise
    for road in up:
        price, rise = link_price(prices, road, total[road] + step)
        cost[road], slope[road] = price, rise
        difference -= price
        curve += rise
    return difference, curve


@kernel
def balance(
    prices: LinkPrices, total: Floats, cost: Floats, slope: Floats, down: Ints32, up: Ints32, room: float
) -> float:
    """Find how many vehicles, at most `room`, move from one way to another so that both cost the same.

    Leaves the prices of the roads as they are after the move; the flows are for the caller to change.
    """
    excess = paid = curve = 0.0
    for road in down:
        excess += cost[road]
        paid += cost[road]
        curve += slope[road]
    for road in up:
        excess -= cost[road]
        curve += slope[road]
    if excess <= _ROUNDING * paid or room <= 0.0:
        return 0.0
    least, most = 0.0, room
    step = min(room, excess / curve) if curve > 0.0 else room
    for _ in range(_TRIES):
        left, curve = price_difference(prices, total, cost, slope, down, up, step)
        if (step == room and left >= 0.0) or abs(left) <= _GOOD_STEP * excess:
            break
        if left > 0.0:
            least = step
        else:
            most = step
        step = min(room, step + left / curve) if curve > 0.0 else -1.0
        if not least < step <= most:
            step = (least + most) / 2
    return step


@kernel
def _roads_apart(ways: Ways, down: Ints32, up: Ints32) -> tuple[Ints32, Ints32]:
    """Return the roads of both ways, without those that are on both by different links."""
    ours, theirs = ways.roads[down], ways.roads[up]
    n_ours, n_theirs = len(ours), len(theirs)
    one = 0
    while one < n_ours:
        other = 0
        while other < n_theirs and theirs[other] != ours[one]:
            other += 1
        if other < n_theirs:
            n_ours, n_theirs = n_ours - 1, n_theirs - 1
            ours[one], theirs[other] = ours[n_ours], theirs[n_theirs]
        else:
            one += 1
    return ours[:n_ours], theirs[:n_theirs]


@kernel
def shift(ways: Ways, prices: LinkPrices, flows: Floats, state: State, down: Ints32, up: Ints32) -> float:
    """Move vehicles from one way to the other if that is cheaper; return what that saves at the price before."""
    total, cost = state.total, state.cost
    from_roads, to_roads = down, up
    if ways.n_roads < len(ways.roads):
        from_roads, to_roads = _roads_apart(ways, down, up)
    excess = 0.0
    for road in from_roads:
        excess += cost[road]
    for road in to_roads:
        excess -= cost[road]
    if excess <= 0.0:
        return 0.0
    room = np.inf
    for link in down:
        room = min(room, flows[link])
    step = balance(prices, total, cost, state.slope, from_roads, to_roads, room)
    if step > 0.0:
        for link in down:
            flows[link] -= step
        for link in up:
            flows[link] += step
        for road in from_roads:
            total[road] = max(0.0, total[road] - step)
        for road in to_roads:
            total[road] += step
    return step * excess


@kernel
def longer(values: Ints32, size: int) -> Ints32:
    """Return the same values with room for more behind them."""
    more = np.empty(size, dtype=values.dtype)
    more[: len(values)] = values
    return more


@kernel
def with_swap(swaps: Swaps, owner: int, down: Ints32, up: Ints32) -> Swaps:
    """Add two ways of an origin."""
    n, at = swaps.used[0], swaps.used[1]
    after = at + len(down) + len(up)
    if n == len(swaps.owner):
        begin, middle = np.empty(2 * n + 1, dtype=np.int64), np.empty(2 * n, dtype=np.int64)
        begin[: n + 1], middle[:n] = swaps.begin, swaps.middle
        swaps = Swaps(longer(swaps.owner, 2 * n), begin, middle, swaps.links, swaps.used)
    if after > len(swaps.links):
        swaps = Swaps(swaps.owner, swaps.begin, swaps.middle, longer(swaps.links, 2 * after), swaps.used)
    swaps.owner[n], swaps.begin[n], swaps.middle[n], swaps.begin[n + 1] = owner, at, at + len(down), after
    swaps.links[at : at + len(down)] = down
    swaps.links[at + len(down) : after] = up
    swaps.used[0], swaps.used[1] = n + 1, after
    return swaps


@kernel
def repeat_swaps(
    ways: Ways, prices: LinkPrices, by_origin: Floats, state: State, swaps: Swaps, most_rounds: int, enough: float
) -> None:
    """Move vehicles between the same ways again, there or back, until a round saves little."""
    first = 0.0
    for attempt in range(most_rounds):
        saved = 0.0
        for k in range(swaps.used[0]):
            swap = k if attempt % 2 == 0 else swaps.used[0] - 1 - k
            flows = by_origin[swaps.owner[swap]]
            down = swaps.links[swaps.begin[swap] : swaps.middle[swap]]
            up = swaps.links[swaps.middle[swap] : swaps.begin[swap + 1]]
            saved += shift(ways, prices, flows, state, down, up) + shift(ways, prices, flows, state, up, down)
        if attempt == 0:
            first = saved
        elif saved <= enough * first:
            break
