"""The least total time among paths within a limit: column generation, with a proven gap.

The limit is on the length of a path at given costs, those of the equilibrium, and every pair of nodes has its own. Each
pair has a list of paths, at first those of the equilibrium. In turn, vehicles move within the lists until all paths in
use cost the same at the margin, and a search for each pair looks for a path within its limit that costs less. What
the searches find at the least, or prove that nothing is below, bounds how far the flows are from the best.
"""

from typing import NamedTuple

import numpy as np

from routesim.arrays import Floats, Ints, Ints32
from routesim.assignment.paths import PathShares, RoadPaths
from routesim.assignment.prices import LinkPrices, Prices, price_links
from routesim.assignment.shifts import State, balance, longer
from routesim.assignment.solver import FlowSolver
from routesim.kernels import kernel
from routesim.roads.graph import Graph
from routesim.roads.heap import pop, push
from routesim.roads.shortest import ROUNDING, Workspace, tree

_MOST_LABELS = 1 << 17
_ROUNDS = 200  # of moving vehicles within the lists before the next search


class Columns(NamedTuple):
    """Paths in use or found, pair by pair: path p is roads[indptr[p] : indptr[p + 1]] with flow[p] vehicles an hour."""

    pair: Ints32
    flow: Floats
    indptr: Ints
    roads: Ints32


class DetourSolver:
    """The optimum among the paths of an equilibrium and those within a limit at its costs."""

    def __init__(
        self, equilibrium: FlowSolver, usual_s: Floats, max_detour: float, most_labels: int = _MOST_LABELS
    ) -> None:
        """Take up an equilibrium; one search gives up after so many labels, and proves less then."""
        self._inner, self._most_labels = equilibrium, most_labels
        self.network, self.labels, self.pairs = equilibrium.network, equilibrium.labels, equilibrium.pairs
        self.background, self.flows = equilibrium.background, equilibrium.flows
        self._usual = equilibrium.over_roads(usual_s)
        self._limits = (1.0 + max_detour) * equilibrium.cheapest(self._usual) * (1.0 + ROUNDING)
        paths = equilibrium.road_paths()
        pair = np.repeat(np.arange(len(self.labels), dtype=np.int32), np.diff(paths.first))
        self._columns = Columns(pair, paths.shares * self.pairs.demand[pair], paths.indptr, paths.roads)
        graph = equilibrium.links.graph
        self._back, self._work = graph.reverse(), Workspace.build(graph)
        self._state = State.build(equilibrium.ways.n_roads, graph.n_places)
        origin = np.repeat(self.pairs.origins, np.diff(self.pairs.first))
        self._ends = np.column_stack((origin, self.pairs.goals)).astype(np.int32)

    def solve(self, prices: Prices, relative_gap: float, max_iterations: int) -> tuple[float, int]:
        """Move the flows until the gap is small enough; return the gap and the number of searches for paths."""
        by_road, state, demand = self._inner.road_prices(prices), self._state, self.pairs.demand
        iterations, graph = 0, self._inner.links.graph
        while True:
            columns = self._columns
            state.total[:] = np.bincount(
                columns.roads, np.repeat(columns.flow, np.diff(columns.indptr)), len(state.total)
            )
            price_links(by_road, state.total, state.cost, state.slope)
            paid = float(state.cost @ state.total)
            first = np.searchsorted(columns.pair, np.arange(len(demand) + 1)).astype(np.int64)
            costs = np.add.reduceat(state.cost[columns.roads], columns.indptr[:-1])
            cheapest = np.minimum.reduceat(costs, first[:-1])
            owner, indptr, links = _search_all(
                graph,
                self._back,
                self._ends,
                self._usual,
                state.cost,
                self._limits,
                cheapest,
                self._work,
                self._most_labels,
            )
            # `cheapest` has become what is proven: no path within the limit costs less.
            gap = max(0.0, (paid - float(cheapest @ demand)) / paid) if paid > 0 else 0.0
            if gap <= relative_gap or iterations >= max_iterations:
                break
            iterations += 1
            self._add(owner, indptr, self._inner.ways.roads[links])
            columns = self._columns
            first = np.searchsorted(columns.pair, np.arange(len(demand) + 1)).astype(np.int64)
            _equalise(by_road, state, first, columns, relative_gap / 4, _ROUNDS)
        self.flows = self._inner.links.spread(state.total, self.network.n_edges) + self.background
        return gap, iterations

    def _add(self, owner: Ints32, indptr: Ints, roads: Ints32) -> None:
        """Put new paths behind the others of their pairs, and leave out those that nobody takes any more."""
        old = self._columns
        kept = old.flow > 0
        pair = np.concatenate((old.pair, owner))
        flow = np.concatenate((old.flow, np.zeros(len(owner))))
        starts = np.concatenate((old.indptr[:-1], old.indptr[-1] + indptr[:-1]))
        lengths = np.concatenate((np.diff(old.indptr), np.diff(indptr)))
        every = np.concatenate((old.roads, roads))
        rows = np.flatnonzero(np.concatenate((kept, np.ones(len(owner), dtype=np.bool_))))
        rows = rows[np.argsort(pair[rows], kind="stable")]
        ends = np.concatenate(([0], np.cumsum(lengths[rows])))
        place = np.arange(ends[-1]) + np.repeat(starts[rows] - ends[:-1], lengths[rows])
        self._columns = Columns(pair[rows], flow[rows], ends, every[place])

    def cheapest_by_edge(self, cost: Floats) -> Floats:
        """Return the price of the cheapest path of every pair at these prices of edges, whatever its detour."""
        return self._inner.cheapest_by_edge(cost)

    def path_shares(self, least: float = 1e-6) -> PathShares:
        """Return the paths of every pair; shares below `least` are given to the others."""
        columns = self._columns
        first = np.searchsorted(columns.pair, np.arange(len(self.labels) + 1)).astype(np.int64)
        shares = columns.flow / self.pairs.demand[columns.pair]
        return RoadPaths(first, shares, columns.indptr, columns.roads).over_edges(self._inner.links, least)


@kernel
def _equalise(prices: LinkPrices, state: State, first: Ints, columns: Columns, enough: float, most_rounds: int) -> None:
    """Move vehicles within each pair from paths that cost more to the cheapest, until there is little left to save."""
    cost, total, roads, indptr = state.cost, state.total, columns.roads, columns.indptr
    mark, stamp = np.zeros(len(total), dtype=np.int64), 0
    down, up = np.empty(len(total), dtype=np.int32), np.empty(len(total), dtype=np.int32)
    for _ in range(most_rounds):
        paid = saved = 0.0
        for pair in range(len(first) - 1):
            best, least = first[pair], np.inf
            for path in range(first[pair], first[pair + 1]):
                price = 0.0
                for road in roads[indptr[path] : indptr[path + 1]]:
                    price += cost[road]
                paid += price * columns.flow[path]
                if price < least:
                    best, least = path, price
            for path in range(first[pair], first[pair + 1]):
                if path == best or columns.flow[path] <= 0.0:
                    continue
                stamp += 2
                for road in roads[indptr[best] : indptr[best + 1]]:
                    mark[road] = stamp
                n_down = n_up = 0
                excess = 0.0
                for road in roads[indptr[path] : indptr[path + 1]]:
                    if mark[road] != stamp:
                        down[n_down] = road
                        n_down += 1
                        excess += cost[road]
                    mark[road] = stamp + 1
                for road in roads[indptr[best] : indptr[best + 1]]:
                    if mark[road] == stamp:
                        up[n_up] = road
                        n_up += 1
                        excess -= cost[road]
                if excess <= 0.0:
                    continue
                saved += excess * columns.flow[path]
                step = balance(prices, total, cost, state.slope, down[:n_down], up[:n_up], columns.flow[path])
                columns.flow[path] -= step
                columns.flow[best] += step
                for road in down[:n_down]:
                    total[road] = max(0.0, total[road] - step)
                for road in up[:n_up]:
                    total[road] += step
        if saved <= enough * paid:
            break


class Labels(NamedTuple):
    """Partial paths of one search: where each is, what it costs and takes, the one before, and the link between."""

    place: Ints32
    cost: Floats
    usual: Floats
    before: Ints32
    link: Ints32
    keys: Floats
    queue: Ints32


@kernel
def _search(
    graph: Graph,
    origin: int,
    goal: int,
    usual: Floats,
    cost: Floats,
    limit: float,
    below: float,
    usual_to_go: Floats,
    cost_to_go: Floats,
    quickest: Floats,
    labels: Labels,
) -> tuple[int, float]:
    """Find the cheapest path to the goal within a limit, if one costs less than `below`.

    Labels leave the heap in the order of what they cost at the least. So at each place they do in the order of their
    cost, and one that does not take less than those before is dominated. Returns the label at the goal or -1, and what
    no path within the limit costs less than.
    """
    quickest[:] = np.inf
    labels.place[0], labels.cost[0], labels.usual[0], labels.before[0] = origin, 0.0, 0.0, -1
    size, n = push(labels.keys, labels.queue, 0, cost_to_go[origin], 0), 1
    while size > 0:
        key, label = labels.keys[0], labels.queue[0]
        size = pop(labels.keys, labels.queue, size)
        if key >= below:
            return -1, below
        here = labels.place[label]
        if labels.usual[label] >= quickest[here]:
            continue
        quickest[here] = labels.usual[label]
        if here == goal:
            return label, key
        if graph.no_through[here] and here != origin:
            continue
        for slot in range(graph.indptr[here], graph.indptr[here + 1]):
            link = graph.out_edges[slot]
            road = graph.roads[link] if len(graph.roads) > 0 else link
            head = graph.heads[link]
            taken = labels.usual[label] + usual[road]
            if taken >= quickest[head] or taken + usual_to_go[head] > limit:
                continue
            if n == len(labels.place):
                return -1, key
            labels.place[n], labels.before[n], labels.link[n] = head, label, link
            labels.cost[n], labels.usual[n] = labels.cost[label] + cost[road], taken
            size = push(labels.keys, labels.queue, size, labels.cost[n] + cost_to_go[head], n)
            n += 1
    return -1, below


@kernel
def _search_all(
    graph: Graph,
    back: Graph,
    ends: Ints32,
    usual: Floats,
    cost: Floats,
    limits: Floats,
    cheapest: Floats,
    work: Workspace,
    room: int,
) -> tuple[Ints32, Ints, Ints32]:
    """Look for a path of every pair within its limit that costs less than its cheapest; lower that to what is proven.

    Returns the pairs for which one was found, where each path begins, and its links.
    """
    labels = Labels(
        np.empty(room, dtype=np.int32),
        np.empty(room),
        np.empty(room),
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int32),
        np.empty(room),
        np.empty(room, dtype=np.int32),
    )
    quickest = np.empty(len(graph.indptr) - 1)
    owner, indptr = np.empty(len(ends), dtype=np.int32), np.zeros(len(ends) + 1, dtype=np.int64)
    links, n_links, found = np.empty(64 * len(ends) + 64, dtype=np.int32), 0, 0
    path = np.empty(max(room, len(graph.indptr)), dtype=np.int32)
    goal = -1
    usual_to_go, cost_to_go, onto = np.empty(0), np.empty(0), np.empty(0, dtype=np.int32)
    for pair in np.argsort(ends[:, 1], kind="mergesort"):
        origin = ends[pair, 0]
        if ends[pair, 1] != goal:
            goal = ends[pair, 1]
            usual_to_go = tree(back, usual, goal, work.no_potential, np.inf, work)[0]
            cost_to_go, onto = tree(back, cost, goal, work.no_potential, np.inf, work)
        below = cheapest[pair] * (1.0 - ROUNDING)
        if cost_to_go[origin] >= below:
            cheapest[pair] = min(cheapest[pair], cost_to_go[origin])
            continue
        length, taken, node = 0, 0.0, origin
        while node != goal:
            link = onto[node]
            path[length] = link
            length += 1
            taken += usual[graph.roads[link] if len(graph.roads) > 0 else link]
            node = graph.heads[link]
        if taken <= limits[pair]:
            cheapest[pair] = cost_to_go[origin]
        else:
            label, proven = _search(
                graph, origin, goal, usual, cost, limits[pair], below, usual_to_go, cost_to_go, quickest, labels
            )
            cheapest[pair] = min(cheapest[pair], proven)
            if label < 0:
                continue
            length, at = 0, label
            while labels.before[at] >= 0:
                length, at = length + 1, labels.before[at]
            place, at = length, label
            while labels.before[at] >= 0:
                place -= 1
                path[place], at = labels.link[at], labels.before[at]
        if n_links + length > len(links):
            links = longer(links, 2 * (n_links + length))
        links[n_links : n_links + length] = path[:length]
        n_links += length
        owner[found] = pair
        found += 1
        indptr[found] = n_links
    return owner[:found].copy(), indptr[: found + 1].copy(), links[:n_links].copy()
