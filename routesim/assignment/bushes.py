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

from routesim.arrays import Floats, Ints, Ints32
from routesim.assignment.prices import LinkPrices, price_links
from routesim.assignment.shifts import State, Swaps, Ways, shift, with_swap
from routesim.kernels import kernel


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
        if shift(ways, prices, flows, state, down, up) > 0.0 and owner >= 0:
            swaps = with_swap(swaps, owner, down, up)
    return swaps


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
