"""FlowSolver: the flows of one demand on one network, at one set of prices after the other."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats, Ints32
from routesim.assignment.bushes import Bushes, Pairs, improve, start, tidy
from routesim.assignment.contraction import contract
from routesim.assignment.paths import PathShares, RoadPaths, paths_of
from routesim.assignment.prices import LinkPrices, Prices, link_price, link_prices, price_links
from routesim.assignment.shifts import State, Swaps, Ways, repeat_swaps
from routesim.checks import numbers
from routesim.demand.demand import read_od, resolve
from routesim.errors import InputError, NoPathError
from routesim.kernels import kernel
from routesim.roads.graph import Graph
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import Workspace, repair

_PASSES = 1  # over one origin before it is the turn of the next
_ROUNDS = 20  # at the most, of repeating the swaps of all origins
_ENOUGH = 0.1  # a round that saves less than this share of what the first one saved is the last


class FlowSolver:
    """The flows of one demand on one network; solved again at other prices, it starts from where it is."""

    def __init__(self, network: RoadNetwork, table: Any, background: ArrayLike | None = None) -> None:
        self.background = by_edge("background", background, network, "vehicles an hour")
        places, origins, destinations, vehicles = read_od(table)
        if not len(vehicles):
            raise InputError("an assignment needs demand, got a table without vehicles")
        nodes = resolve(network, places)
        order = np.lexsort((nodes[destinations], nodes[origins]))
        starts, goals = nodes[origins[order]], nodes[destinations[order]]
        new = np.concatenate(([True], (np.diff(starts) != 0) | (np.diff(goals) != 0)))
        demand = np.add.reduceat(vehicles[order], np.flatnonzero(new))  # rows of one pair are added up
        starts, goals = starts[new], goals[new]
        kept = order[new]
        self.labels = tuple((places[origins[row]], places[destinations[row]]) for row in kept)
        roots, first = np.unique(starts, return_index=True)
        self.network = network
        self.links = contract(network, np.union1d(starts, goals))
        graph, number = self.links.graph, self.links.number
        self.pairs = Pairs(number[roots], np.append(first, len(starts)).astype(np.int64), number[goals], demand)
        into = np.searchsorted(graph.heads, np.arange(graph.n_places + 1)).astype(np.int64)
        self.ways = Ways(into, graph.tails, graph.no_through, self.links.roads, len(self.links.leaders))
        self.flows = self.background.copy()
        self.bushes: Bushes | None = None
        self._trees = np.full((len(roots), graph.n_places), -1, dtype=np.int32)
        self._work = Workspace.build(graph)
        self.state = State.build(self.ways.n_roads, graph.n_places)
        self._swaps = Swaps.none_yet()

    def take_over(self, other: "FlowSolver") -> None:
        """Start from flows of the same places on the same roads, whatever the vehicles between them were."""
        same = self.network is other.network and np.array_equal(self.links.junctions, other.links.junctions)
        if not (same and np.array_equal(self.pairs.origins, other.pairs.origins)) or other.bushes is None:
            raise InputError(
                "an assignment can start from one of the same network and between the same places only; leave out start"
            )
        self.bushes = Bushes(other.bushes.order.copy(), other.bushes.flows.copy())
        self.state.total[:] = other.state.total
        self._trees[:] = other._trees

    def scale(self, factor: float) -> None:
        """Let so many times as many vehicles go between every pair, at first on the same paths."""
        self.pairs = self.pairs._replace(demand=self.pairs.demand * factor)
        if self.bushes is not None:
            self.bushes.flows[:] *= factor
            self.state.total[:] *= factor

    def road_prices(self, prices: Prices) -> LinkPrices:
        """Return the prices of the roads of the links."""
        return link_prices(prices, *self.links.by_road(), self.background)

    def solve(self, prices: Prices, relative_gap: float, max_iterations: int) -> tuple[float, int]:
        """Move the flows until the gap is small enough; return the gap and the number of iterations.

        The gap is that of the flows left, by a search for the cheapest path of every pair at their prices.
        """
        state, ways, pairs = self.state, self.ways, self.pairs
        by_road = self.road_prices(prices)
        if self.bushes is None:
            self.bushes = self._first_flows(by_road)
        price_links(by_road, state.total, state.cost, state.slope)
        iterations = 0
        while True:
            tidy(ways, by_road, pairs, self.bushes, state)
            gap = self._gap()
            if gap <= relative_gap or iterations >= max_iterations:
                break
            while iterations < max_iterations:
                estimate, self._swaps = improve(ways, by_road, pairs, self.bushes, state, self._swaps, _PASSES)
                repeat_swaps(ways, by_road, self.bushes.flows, state, self._swaps, _ROUNDS, _ENOUGH)
                iterations += 1
                if estimate <= relative_gap:
                    break
        self.flows = self.links.spread(state.total, self.network.n_edges) + self.background
        return gap, iterations

    def _first_flows(self, prices: LinkPrices) -> Bushes:
        """Send the vehicles of one origin after the other down the paths that are cheapest then."""
        state = self.state
        bushes = Bushes(np.empty(self._trees.shape, dtype=np.int32), np.zeros((len(self._trees), len(self.ways.tails))))
        state.total[:] = 0.0
        price_links(prices, state.total, state.cost, state.slope)
        stuck = _start_all(self.links.graph, self.ways, prices, self.pairs, bushes, state, self._trees, self._work)
        if stuck >= 0:
            origin, destination = self.labels[stuck]
            raise NoPathError(
                f"no path leads from {origin!r} to {destination!r}, between which {self.pairs.demand[stuck]:g} "
                "vehicles an hour want to go; leave the pair out or connect it"
            )
        return bushes

    def _gap(self) -> float:
        """Return the share of the price paid that would be saved if everybody took the cheapest path now."""
        paid = float(self.state.cost @ self.state.total)
        least = float(self.cheapest(self.state.cost) @ self.pairs.demand)
        # Rounding can leave the price paid a hair below the least possible.
        gap = max(0.0, (paid - least) / paid) if paid > 0 else 0.0
        if not np.isfinite(gap):
            raise InputError("travel times overflow at this demand; check the units of vehicles and capacity_vph")
        return gap

    def cheapest(self, by_road: Floats) -> Floats:
        """Return the price of the cheapest path of every pair, by a search from every origin."""
        found = np.empty(len(self.pairs.goals))
        _cheapest(self.links.graph, self.pairs, by_road, self._trees, self._work, found)
        return found

    def cheapest_by_edge(self, cost: Floats) -> Floats:
        """Return the price of the cheapest path of every pair at these prices of edges."""
        return self.cheapest(self.over_roads(cost))

    def over_roads(self, cost: Floats) -> Floats:
        """Add up the prices of edges over the roads of the links."""
        first, members = self.links.by_road()
        return np.add.reduceat(cost[members], first[:-1]) if len(members) else np.empty(0)

    def road_paths(self) -> RoadPaths:
        """Return the paths of every pair over the roads of the links."""
        assert self.bushes is not None  # noqa: S101 - it was solved before
        return paths_of(self.ways, self.pairs, self.bushes)

    def path_shares(self, least: float = 1e-6) -> PathShares:
        """Return the paths of every pair; shares below `least` are given to the others."""
        return self.road_paths().over_edges(self.links, least)


def by_edge(name: str, given: ArrayLike | None, network: RoadNetwork, unit: str) -> Floats:
    """Return one number of at least 0 for each edge: those given, or 0."""
    values = np.zeros(network.n_edges) if given is None else numbers(name, given)
    if values.shape != (network.n_edges,) or (values < 0).any():
        raise InputError(
            f"{name} must be {unit} of at least 0, one number for each of {network.n_edges} edges; "
            f"got shape {values.shape}, the least {values.min(initial=0.0):g}"
        )
    return values


@kernel
def _start_all(
    graph: Graph,
    ways: Ways,
    prices: LinkPrices,
    pairs: Pairs,
    bushes: Bushes,
    state: State,
    trees: Ints32,
    work: Workspace,
) -> int:
    """Send the demand of every origin down a tree of cheapest paths; return a pair that no path joins, or -1."""
    for i in range(len(pairs.origins)):
        repair(graph, state.cost, pairs.origins[i], trees[i], work)
        stuck = start(ways, pairs, i, work.distance, trees[i], bushes, state)
        if stuck >= 0:
            return stuck
        for link in range(len(ways.tails)):
            if bushes.flows[i, link] > 0.0:
                road = ways.roads[link]
                state.cost[road], state.slope[road] = link_price(prices, road, state.total[road])
    return -1


@kernel
def _cheapest(graph: Graph, pairs: Pairs, cost: Floats, trees: Ints32, work: Workspace, found: Floats) -> None:
    """Fill in the price of the cheapest path of every pair."""
    for i in range(len(pairs.origins)):
        repair(graph, cost, pairs.origins[i], trees[i], work)
        for pair in range(pairs.first[i], pairs.first[i + 1]):
            found[pair] = work.distance[pairs.goals[pair]]
