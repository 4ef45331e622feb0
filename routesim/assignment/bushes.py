"""Flows by origin that run one way through an order of the nodes: Dial's Algorithm B with Newton shifts.

After R. B. Dial, "A path-based user-equilibrium traffic assignment algorithm that obviates path storage and
enumeration", Transportation Research B 40 (2006), and Y. Nie, "A class of bush-based algorithms for the traffic
assignment problem", Transportation Research B 44 (2010). The vehicles of an origin use links that lead upward in an
order of the nodes of its own. Along it, one pass finds the cheapest way to every node, and the dearest in use. A second
pass, backward, moves vehicles from the dearest to the cheapest between the node where the two part and the one where
they meet, by Newton's method. Sorting the nodes anew, by the dearest way there, lets cheaper links into the order.

Links are in order of their heads here: those into node j are first[j] … first[j + 1] - 1.
"""

from typing import NamedTuple

import numpy as np

from routesim.arrays import Bools, Floats, Ints, Ints32
from routesim.assignment.prices import LinkPrices, link_price, price_links
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


class Pairs(NamedTuple):
    """Demand by origin: pair k of origin i, for k in first[i] … first[i + 1] - 1, leads to goals[k]."""

    origins: Ints32
    first: Ints
    goals: Ints32
    demand: Floats


class Bushes(NamedTuple):
    """The order of the nodes and the flow of every link, a row for each origin."""

    order: Ints32
    flows: Floats


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
def _scan(ways: Ways, origin: int, order: Ints32, flows: Floats, state: State) -> float:
    """Find the cheapest way to every node along the order and the dearest in use; return the largest difference."""
    least, onward, most = state.least, state.onward, state.most
    for node in range(len(least)):
        onward[node], most[node] = np.inf, -np.inf
    least[origin] = onward[origin] = most[origin] = 0.0
    state.rank[origin] = 0
    worst = 0.0
    for place in range(1, len(order)):
        node = order[place]
        low, high, best, dearest = np.inf, -np.inf, -1, -1
        for link in range(ways.first[node], ways.first[node + 1]):
            tail, price = ways.tails[link], state.cost[ways.roads[link]]
            there = onward[tail] + price  # not yet known, and so infinite, where the link leads down the order
            if there < low:
                low, best = there, link
            if flows[link] > 0.0 and most[tail] + price > high:
                high, dearest = most[tail] + price, link
        least[node], most[node] = low, high
        if not ways.barred[node]:
            onward[node] = low
        state.by_least[node], state.by_most[node], state.rank[node] = best, dearest, place
        if high - low > worst:
            worst = high - low
    return worst


@kernel
def _segments(ways: Ways, node: int, state: State) -> tuple[int, int]:
    """Follow the dearest and the cheapest way back from a node to where they part; return how many links each has."""
    n_down, n_up = 1, 1
    state.down[0], state.up[0] = state.by_most[node], state.by_least[node]
    one, other = ways.tails[state.by_most[node]], ways.tails[state.by_least[node]]
    while one != other:
        if state.rank[one] > state.rank[other]:
            link = state.by_most[one]
            state.down[n_down] = link
            n_down += 1
            one = ways.tails[link]
        else:
            link = state.by_least[other]
            state.up[n_up] = link
            n_up += 1
            other = ways.tails[link]
    return n_down, n_up


@kernel
def price_difference(
    prices: LinkPrices, total: Floats, cost: Floats, slope: Floats, down: Ints32, up: Ints32, step: float
) -> tuple[float, float]:
    """Price both ways as if `step` vehicles had moved; return how much dearer the first still is, and the slope."""
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
    dearer = paid = curve = 0.0
    for road in down:
        dearer += cost[road]
        paid += cost[road]
        curve += slope[road]
    for road in up:
        dearer -= cost[road]
        curve += slope[road]
    if dearer <= _ROUNDING * paid or room <= 0.0:
        return 0.0
    least, most = 0.0, room
    step = min(room, dearer / curve) if curve > 0.0 else room
    for _ in range(_TRIES):
        left, curve = price_difference(prices, total, cost, slope, down, up, step)
        if (step == room and left >= 0.0) or abs(left) <= _GOOD_STEP * dearer:
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
def _shift(ways: Ways, prices: LinkPrices, flows: Floats, state: State, down: Ints32, up: Ints32) -> float:
    """Move vehicles from one way to the other if that is cheaper; return what that saves at the price before."""
    total, cost = state.total, state.cost
    from_roads, to_roads = down, up
    if ways.n_roads < len(ways.roads):
        from_roads, to_roads = _roads_apart(ways, down, up)
    dearer = 0.0
    for road in from_roads:
        dearer += cost[road]
    for road in to_roads:
        dearer -= cost[road]
    if dearer <= 0.0:
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
    return step * dearer


@kernel
def _shift_all(
    ways: Ways, prices: LinkPrices, order: Ints32, flows: Floats, state: State, swaps: Swaps, owner: int
) -> Swaps:
    """Move vehicles of one origin to cheaper ways, at every node where two ways meet, from the last in the order.

    Where the origin has an owner, these ways are added to the swaps in its name.
    """
    for place in range(len(order) - 1, 0, -1):
        node = order[place]
        if not state.most[node] > state.least[node] or state.by_least[node] == state.by_most[node]:
            continue
        n_down, n_up = _segments(ways, node, state)
        down, up = state.down[:n_down], state.up[:n_up]
        if _shift(ways, prices, flows, state, down, up) > 0.0 and owner >= 0:
            swaps = _with(swaps, owner, down, up)
    return swaps


@kernel
def _longer(values: Ints32, size: int) -> Ints32:
    more = np.empty(size, dtype=values.dtype)
    more[: len(values)] = values
    return more


@kernel
def _with(swaps: Swaps, owner: int, down: Ints32, up: Ints32) -> Swaps:
    """Add two ways of an origin."""
    n, at = swaps.used[0], swaps.used[1]
    after = at + len(down) + len(up)
    if n == len(swaps.owner):
        begin, middle = np.empty(2 * n + 1, dtype=np.int64), np.empty(2 * n, dtype=np.int64)
        begin[: n + 1], middle[:n] = swaps.begin, swaps.middle
        swaps = Swaps(_longer(swaps.owner, 2 * n), begin, middle, swaps.links, swaps.used)
    if after > len(swaps.links):
        swaps = Swaps(swaps.owner, swaps.begin, swaps.middle, _longer(swaps.links, 2 * after), swaps.used)
    swaps.owner[n], swaps.begin[n], swaps.middle[n], swaps.begin[n + 1] = owner, at, at + len(down), after
    swaps.links[at : at + len(down)] = down
    swaps.links[at + len(down) : after] = up
    swaps.used[0], swaps.used[1] = n + 1, after
    return swaps


@kernel
def repeat_swaps(
    ways: Ways, prices: LinkPrices, bushes: Bushes, state: State, swaps: Swaps, most_rounds: int, enough: float
) -> None:
    """Move vehicles between the same ways again, there or back, until a round saves little."""
    first = 0.0
    for attempt in range(most_rounds):
        saved = 0.0
        for k in range(swaps.used[0]):
            swap = k if attempt % 2 == 0 else swaps.used[0] - 1 - k
            flows = bushes.flows[swaps.owner[swap]]
            down = swaps.links[swaps.begin[swap] : swaps.middle[swap]]
            up = swaps.links[swaps.middle[swap] : swaps.begin[swap + 1]]
            saved += _shift(ways, prices, flows, state, down, up) + _shift(ways, prices, flows, state, up, down)
        if attempt == 0:
            first = saved
        elif saved <= enough * first:
            break


@kernel
def _sort_nodes(ways: Ways, origin: int, order: Ints32, flows: Floats, state: State) -> None:
    """Sort the nodes by the dearest way there on links in use, or the cheapest where none is, after a scan.

    Links in use never lead to a node with a smaller price, so those of equal price keep their places.
    """
    far = state.amount
    far[origin] = 0.0
    for place in range(1, len(order)):
        node = order[place]
        best = state.by_least[node]
        farthest = far[ways.tails[best]] + state.cost[ways.roads[best]] if best >= 0 else np.inf
        for link in range(ways.first[node], ways.first[node + 1]):
            if flows[link] > 0.0:
                farthest = max(farthest, far[ways.tails[link]] + state.cost[ways.roads[link]])
        far[node] = farthest
    order[:] = order[np.argsort(far[order], kind="mergesort")]


@kernel
def settle(ways: Ways, pairs: Pairs, i: int, order: Ints32, flows: Floats, state: State) -> None:
    """Make the flows of origin i add up to its demand, in the proportions in which they arrive at each node.

    Takes away what rounding has left, and takes up another demand. `state` has been filled in by a scan.
    """
    through = state.amount
    for node in range(len(through)):
        through[node] = 0.0
    for pair in range(pairs.first[i], pairs.first[i + 1]):
        through[pairs.goals[pair]] += pairs.demand[pair]
    for place in range(len(order) - 1, 0, -1):
        node = order[place]
        arriving = 0.0
        for link in range(ways.first[node], ways.first[node + 1]):
            if state.most[ways.tails[link]] >= 0.0:
                arriving += flows[link]
        for link in range(ways.first[node], ways.first[node + 1]):
            share = 0.0
            if arriving == 0.0:
                share = 1.0 if link == state.by_least[node] else 0.0
            elif state.most[ways.tails[link]] >= 0.0:
                share = flows[link] / arriving
            flows[link] = share * through[node]
            through[ways.tails[link]] += flows[link]


@kernel
def improve(
    ways: Ways, prices: LinkPrices, pairs: Pairs, bushes: Bushes, state: State, swaps: Swaps, passes: int
) -> tuple[float, Swaps]:
    """Move the vehicles of one origin after the other to cheaper ways; return what could be saved, and the swaps.

    That is the share of the price paid that each origin could save when its turn came, so it is an estimate.
    """
    paid = least = 0.0
    swaps.used[:] = 0
    for i in range(len(pairs.origins)):
        origin, order, flows = pairs.origins[i], bushes.order[i], bushes.flows[i]
        _scan(ways, origin, order, flows, state)
        _sort_nodes(ways, origin, order, flows, state)
        for attempt in range(passes):
            worst = _scan(ways, origin, order, flows, state)
            if attempt == 0:
                for link in range(len(flows)):
                    if flows[link] > 0.0:
                        paid += flows[link] * state.cost[ways.roads[link]]
                for pair in range(pairs.first[i], pairs.first[i + 1]):
                    least += pairs.demand[pair] * state.least[pairs.goals[pair]]
            if worst <= 0.0:
                break
            swaps = _shift_all(ways, prices, order, flows, state, swaps, i)
    return max(0.0, (paid - least) / paid) if paid > 0.0 else 0.0, swaps


@kernel
def tidy(ways: Ways, prices: LinkPrices, pairs: Pairs, bushes: Bushes, state: State) -> None:
    """Make the flows of every origin add up to its demand, and the total to them; price all links anew."""
    total = np.zeros(len(state.total))
    for i in range(len(pairs.origins)):
        order, flows = bushes.order[i], bushes.flows[i]
        _scan(ways, pairs.origins[i], order, flows, state)
        settle(ways, pairs, i, order, flows, state)
        for link in range(len(flows)):
            total[ways.roads[link]] += flows[link]
    state.total[:] = total
    price_links(prices, total, state.cost, state.slope)


@kernel
def start(ways: Ways, pairs: Pairs, i: int, distance: Floats, parents: Ints32, bushes: Bushes, state: State) -> int:
    """Send the demand of origin i down a tree of cheapest paths, whose nodes are its first order.

    `parents` has the link that leads to each node. Returns a pair that no path joins, or -1.
    """
    origin, order, flows = pairs.origins[i], bushes.order[i], bushes.flows[i]
    hops = state.rank
    for node in range(len(parents)):
        hops[node] = -1
    hops[origin] = 0
    for node in range(len(parents)):
        depth, at = 0, node
        while hops[at] < 0 and parents[at] >= 0:
            state.down[depth] = at
            depth += 1
            at = ways.tails[parents[at]]
        reached = max(0, hops[at])
        while depth > 0:
            depth -= 1
            reached += 1
            hops[state.down[depth]] = reached
    hops[origin] = -1
    # Of two nodes at the same price, the one that a path comes to first is first, and the origin before all.
    by_hops = np.argsort(hops, kind="mergesort")
    order[:] = by_hops[np.argsort(distance[by_hops], kind="mergesort")]
    through = state.amount
    through[:] = 0.0
    for pair in range(pairs.first[i], pairs.first[i + 1]):
        if distance[pairs.goals[pair]] == np.inf:
            return pair
        through[pairs.goals[pair]] += pairs.demand[pair]
    for place in range(len(order) - 1, 0, -1):
        node = order[place]
        if through[node] > 0.0:
            link = parents[node]
            flows[link] = through[node]
            through[ways.tails[link]] += through[node]
            state.total[ways.roads[link]] += through[node]
    return -1
