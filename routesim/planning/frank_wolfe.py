"""Least-cost flows on roads whose prices rise with the flow: bi-conjugate Frank-Wolfe on compiled trees.

Mitradjieva and Lindberg, "The stiff is moving", Transportation Science 47 (2013). Every iteration sends all
demand down the cheapest paths, joins that flow with the last two directions so that the new one is conjugate to
both, and moves along it by a line search. The cheapest paths of an origin change little from one iteration to the
next, so a tree is repaired, not searched anew. Paths are kept as they appear, with their shares of the flow.

Trees and paths run over links sorted by tail, so that those leaving a node lie side by side in memory. A link is one
edge or several, see `contraction`; flows and prices are by edge, except where links are meant.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routesim.compiled import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

STEP_ACCURACY = 1e-7  # the slope along the direction that ends a line search, relative to the slope at its start
ALMOST_ALL = 0.999  # the weight of old directions, and the step, beyond which the method starts over


class Roads(NamedTuple):
    """A graph of links sorted by tail: those out of node i are indptr[i] … indptr[i + 1] - 1."""

    indptr: Longs
    tails: Ints
    heads: Ints
    no_through: NDArray[np.bool_]


class Pairs(NamedTuple):
    """Demand by origin: pair k of origin i, for k in first[i] … first[i + 1] - 1, leads to goals[k]."""

    origins: Ints
    first: Longs
    goals: Ints
    demand: Floats


class Prices(NamedTuple):
    """The price of a link at flow x: base * (1 + alpha * (x / capacity) ** beta), or straight lines between knots.

    Where there are knots, link e costs `values[e, k]` at the flow `knots[e, k]`; the first knot is at 0, values
    do not fall, and beyond the last knot the last line goes on.
    """

    base: Floats
    alpha: Floats
    capacity: Floats
    beta: Floats
    knots: Floats
    values: Floats


class Paths(NamedTuple):
    """The paths found so far, a list for each pair: `newest[pair]`, then `older[path]` until -1.

    Path p is links[start[p] : start[p] + length[p]], from the goal back to the origin. `count` holds the number
    of paths and of links in use. `shares` has a row for the flow and one for each of the last two directions.
    """

    newest: Ints
    older: Ints
    key: NDArray[np.uint64]
    start: Longs
    length: Ints
    links: Ints
    shares: Floats
    cheapest: Ints
    count: Longs

    @classmethod
    def none_yet(cls, n_pairs: int) -> "Paths":
        """Return room for a few paths of each pair; there is more when it is needed."""
        room = 2 * n_pairs + 16
        return cls(
            np.full(n_pairs, -1, dtype=np.int32),
            np.empty(room, dtype=np.int32),
            np.empty(room, dtype=np.uint64),
            np.empty(room, dtype=np.int64),
            np.empty(room, dtype=np.int32),
            np.empty(8 * room, dtype=np.int32),
            np.zeros((3, room)),
            np.full(n_pairs, -1, dtype=np.int32),
            np.zeros(2, dtype=np.int64),
        )


class Heap(NamedTuple):
    """Work arrays of the repair of a tree."""

    distance: Floats
    position: Ints
    nodes: Ints

    @classmethod
    def build(cls, n_nodes: int) -> "Heap":
        """Allocate them."""
        return cls(np.empty(n_nodes), np.full(n_nodes, -1, dtype=np.int32), np.empty(n_nodes, dtype=np.int32))


@kernel
def _lift(heap: Heap, node: int, size: int) -> int:
    """Move a node up to its place in the heap, adding it where it is not there yet; return the heap's size."""
    distance, position, nodes = heap.distance, heap.position, heap.nodes
    link = position[node]
    if link < 0:
        link = size
        size += 1
    key = distance[node]
    while link > 0:
        above = nodes[(link - 1) // 2]
        if distance[above] <= key:
            break
        nodes[link] = above
        position[above] = link
        link = (link - 1) // 2
    nodes[link] = node
    position[node] = link
    return size


@kernel
def _take(heap: Heap, size: int) -> int:
    """Take the nearest node off a heap of `size` nodes."""
    distance, position, nodes = heap.distance, heap.position, heap.nodes
    nearest = nodes[0]
    position[nearest] = -1
    size -= 1
    if size > 0:
        node = nodes[size]
        key, link = distance[node], 0
        while True:
            below = 2 * link + 1
            if below >= size:
                break
            if below + 1 < size and distance[nodes[below + 1]] < distance[nodes[below]]:
                below += 1
            if distance[nodes[below]] >= key:
                break
            nodes[link] = nodes[below]
            position[nodes[link]] = link
            link = below
        nodes[link] = node
        position[node] = link
    return int(nearest)


@kernel
def _repair(roads: Roads, prices: Floats, origin: int, parents: Ints, heap: Heap) -> None:
    """Make `parents`, a tree at other prices or all -1, the tree of cheapest paths from `origin` at these.

    First the distances along the old tree: from each node climb to one whose distance is known, marking the way
    in `nodes`. They can only be too long; the nodes that an edge makes nearer then start a Dijkstra search.
    """
    distance, position, stack = heap.distance, heap.position, heap.nodes
    for node in range(len(parents)):
        distance[node] = -1.0
    distance[origin] = 0.0
    for node in range(len(parents)):
        depth, at = 0, node
        while distance[at] < 0.0 and parents[at] >= 0:
            stack[depth] = at
            depth += 1
            at = roads.tails[parents[at]]
        if distance[at] < 0.0:
            distance[at] = np.inf
        reached = distance[at]
        while depth > 0:
            depth -= 1
            at = stack[depth]
            reached = reached + prices[parents[at]]
            distance[at] = reached
    size = 0
    for node in range(len(parents)):
        here = distance[node]
        if here == np.inf or (roads.no_through[node] and node != origin):
            continue
        for link in range(roads.indptr[node], roads.indptr[node + 1]):
            head = roads.heads[link]
            there = here + prices[link]
            if there < distance[head]:
                distance[head] = there
                parents[head] = link
                size = _lift(heap, head, size)
    while size > 0:
        node = _take(heap, size)
        size -= 1
        if roads.no_through[node] and node != origin:
            continue
        here = distance[node]
        for link in range(roads.indptr[node], roads.indptr[node + 1]):
            head = roads.heads[link]
            there = here + prices[link]
            if there < distance[head]:
                distance[head] = there
                parents[head] = link
                size = _lift(heap, head, size)
    for node in range(len(position)):
        position[node] = -1


@kernel
def _longer(values: Ints, room: int) -> Ints:
    more = np.empty(room, dtype=values.dtype)
    more[: len(values)] = values
    return more


@kernel
def _with_room(paths: Paths, links_needed: int) -> Paths:
    """Return the paths with room for one more of this length."""
    used, used_links = paths.count[0], paths.count[1]
    older, key, start, length, links, shares = (
        paths.older,
        paths.key,
        paths.start,
        paths.length,
        paths.links,
        paths.shares,
    )
    if used == len(older):
        room = 2 * used
        older, length = _longer(older, room), _longer(length, room)
        more_keys, more_starts = np.empty(room, dtype=np.uint64), np.empty(room, dtype=np.int64)
        more_keys[:used], more_starts[:used] = key, start
        key, start = more_keys, more_starts
        more_shares = np.zeros((3, room))
        more_shares[:, :used] = shares
        shares = more_shares
    if used_links + links_needed > len(links):
        links = _longer(links, 2 * (used_links + links_needed))
    return Paths(paths.newest, older, key, start, length, links, shares, paths.cheapest, paths.count)


@kernel
def load_all(
    roads: Roads, pairs: Pairs, prices: Floats, trees: Ints, heap: Heap, paths: Paths, flows: Floats
) -> tuple[float, int, Paths]:
    """Send all demand down the cheapest paths: fill `flows`, and add the paths that are new.

    Returns the price paid in all, a pair that no path joins or -1, and the paths.
    """
    flows[:] = 0.0
    paid = 0.0
    for i in range(len(pairs.origins)):
        origin, parents = pairs.origins[i], trees[i]
        _repair(roads, prices, origin, parents, heap)
        for pair in range(pairs.first[i], pairs.first[i + 1]):
            goal = pairs.goals[pair]
            if heap.distance[goal] == np.inf:
                return np.inf, pair, paths
            paid += pairs.demand[pair] * heap.distance[goal]
            key, length, node = np.uint64(14695981039346656037), 0, goal
            while node != origin:
                link = parents[node]
                flows[link] += pairs.demand[pair]
                key = (key ^ np.uint64(link)) * np.uint64(1099511628211)
                length += 1
                node = roads.tails[link]
            path = paths.newest[pair]
            while path >= 0 and not (paths.key[path] == key and paths.length[path] == length):
                path = paths.older[path]
            if path < 0:
                paths = _with_room(paths, length)
                path, at = paths.count[0], paths.count[1]
                paths.older[path], paths.newest[pair] = paths.newest[pair], path
                paths.key[path], paths.start[path], paths.length[path] = key, at, length
                node = goal
                while node != origin:
                    paths.links[at] = parents[node]
                    node = roads.tails[parents[node]]
                    at += 1
                paths.count[0], paths.count[1] = path + 1, at
            paths.cheapest[pair] = path
    return paid, -1, paths


@kernel
def _power(ratio: float, beta: float) -> float:
    if beta == 4.0:
        square = ratio * ratio
        return square * square
    if beta == 1.0:
        return ratio
    return float(ratio**beta)


@kernel
def _price(prices: Prices, link: int, flow: float) -> float:
    if prices.knots.shape[1] == 0:
        rise = prices.alpha[link] * _power(flow / prices.capacity[link], prices.beta[link])
        return float(prices.base[link] * (1.0 + rise))
    knots, values = prices.knots[link], prices.values[link]
    k = 1
    while k < len(knots) - 1 and knots[k] < flow:
        k += 1
    slope = (values[k] - values[k - 1]) / (knots[k] - knots[k - 1])
    return float(values[k - 1] + slope * (flow - knots[k - 1]))


@kernel
def _slope(prices: Prices, link: int, flow: float) -> float:
    if prices.knots.shape[1] == 0:
        beta = prices.beta[link]
        if beta == 0.0 or (flow <= 0.0 and beta < 1.0):
            return 0.0
        ratio = flow / prices.capacity[link]
        steep = prices.alpha[link] * beta / prices.capacity[link]
        return float(prices.base[link] * steep * (_power(ratio, beta) / ratio if ratio > 0.0 else (beta == 1.0) * 1.0))
    knots, values = prices.knots[link], prices.values[link]
    k = 1
    while k < len(knots) - 1 and knots[k] < flow:
        k += 1
    return float((values[k] - values[k - 1]) / (knots[k] - knots[k - 1]))


@kernel
def _integral(prices: Prices, link: int, flow: float) -> float:
    if prices.knots.shape[1] == 0:
        beta = prices.beta[link]
        rise = prices.alpha[link] * _power(flow / prices.capacity[link], beta) / (beta + 1.0)
        return float(prices.base[link] * flow * (1.0 + rise))
    knots, values = prices.knots[link], prices.values[link]
    total, k = 0.0, 1
    while k < len(knots) - 1 and knots[k] < flow:
        total += (values[k] + values[k - 1]) / 2 * (knots[k] - knots[k - 1])
        k += 1
    return float(total + (values[k - 1] + _price(prices, link, flow)) / 2 * (flow - knots[k - 1]))


@kernel
def prices_at(prices: Prices, flows: Floats, out: Floats) -> float:
    """Fill `out` with the price of every link; return the price paid in all."""
    paid = 0.0
    for link in range(len(flows)):
        out[link] = _price(prices, link, flows[link])
        paid += out[link] * flows[link]
    return paid


@kernel
def objective_at(prices: Prices, flows: Floats) -> float:
    """Add up the integrals of the prices from no flow to these flows."""
    total = 0.0
    for link in range(len(flows)):
        total += _integral(prices, link, flows[link])
    return total


@kernel
def _conjugate(
    prices: Prices, flows: Floats, loaded: Floats, last: Floats, before: Floats, step: float
) -> tuple[float, float]:
    """Return the weights, relative to 1 for `loaded`, of the last two directions that make the next conjugate.

    They are nu and mu of the paper, and with one direction to be conjugate to (step = 0) only nu.
    """
    along_new = along_old = cross_new = cross_mid = cross_gap = 0.0
    for link in range(len(flows)):
        curve = _slope(prices, link, flows[link])
        if curve == 0.0:
            continue
        new, old = loaded[link] - flows[link], last[link] - flows[link]
        cross_new += curve * old * new
        along_old += curve * old * old
        along_new += curve * new * new
        if step > 0.0:
            mid = step * last[link] + (1.0 - step) * before[link] - flows[link]
            cross_mid += curve * mid * new
            cross_gap += curve * mid * (before[link] - last[link])
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
    for link in range(len(flows)):
        move = target[link] - flows[link]
        if move != 0.0:
            at = max(0.0, flows[link] + step * move)
            slope += move * _price(prices, link, at)
            curve += move * move * _slope(prices, link, at)
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
    for link in range(len(flows)):
        target = (loaded[link] + nu * last[link] + mu * before[link]) / (1.0 + nu + mu)
        slope += at_flows[link] * (target - flows[link])
    if slope >= 0.0:
        nu = mu = 0.0
    weight = 1.0 / (1.0 + nu + mu)
    for link in range(len(flows)):
        target = weight * (loaded[link] + nu * last[link] + mu * before[link])
        before[link] = last[link]
        last[link] = target
    step = best_step(prices, flows, last)
    for link in range(len(flows)):
        flows[link] = max(0.0, flows[link] + step * (last[link] - flows[link]))
    share, one, two = paths.shares[0], paths.shares[1], paths.shares[2]
    for path in range(paths.count[0]):
        target = weight * (nu * one[path] + mu * two[path])
        two[path] = one[path]
        one[path] = target
    for path in paths.cheapest:
        one[path] += weight
    for path in range(paths.count[0]):
        share[path] += step * (one[path] - share[path])
    memory[0] = step
    memory[1] = 0.0 if step >= ALMOST_ALL or step <= 0.0 else min(2.0, memory[1] + 1.0)
    return step
