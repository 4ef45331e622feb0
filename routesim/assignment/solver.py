"""FlowSolver: the flows of one demand on one network, at one set of prices after the other."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats, Ints32
from routesim.assignment.bushes import Bushes, Pairs, State, Swaps, Ways, improve, repeat_swaps, start, tidy
from routesim.assignment.contraction import contract
from routesim.assignment.paths import PathShares, paths_of
from routesim.assignment.prices import LinkPrices, Prices, link_price, link_prices, price_links
from routesim.checks import numbers
from routesim.demand.demand import read_od, resolve
from routesim.errors import InputError, NoPathError
from routesim.kernels import kernel
from routesim.roads.graph import Graph
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import Workspace, repair

_PASSES = 2  # over one origin before it is the turn of the next
_ROUNDS = 50  # of repeating the swaps of all origins
_ENOUGH = 0.05  # what a round saves that ends them, relative to the first one


class FlowSolver:
    """The flows of one demand on one network; solved again at other prices, it starts from where it is."""

    def __init__(self, network: RoadNetwork, table: Any, background: ArrayLike | None = None) -> None:
        self.background = np.zeros(network.n_edges) if background is None else numbers("background", background)
        if self.background.shape != (network.n_edges,) or (self.background < 0).any():
            raise InputError(
                f"background must be vehicles an hour of at least 0, one number for each of {network.n_edges} edges; "
                f"got shape {self.background.shape}, the least {self.background.min(initial=0.0):g}"
            )
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
        into = np.searchsorted(graph.heads, np.arange(graph.n_nodes + 1)).astype(np.int64)
        self.ways = Ways(into, graph.tails, graph.heads, graph.no_through)
        self.flows = self.background.copy()
        self.bushes: Bushes | None = None
        self._trees = np.full((len(roots), graph.n_nodes), -1, dtype=np.int32)
        self._work = Workspace.build(graph)
        self._state = State.build(graph.n_edges, graph.n_nodes)
        self._swaps = Swaps.none_yet()

    def solve(self, prices: Prices, relative_gap: float, max_iterations: int) -> tuple[float, int]:
        """Move the flows until the gap is small enough; return the gap and the number of iterations.

        The gap is that of the flows left, by a search for the cheapest path of every pair at their prices.
        """
        links, state = self.links, self._state
        by_link = link_prices(prices, links.first, links.members, self.background)
        if self.bushes is None:
            self.bushes = self._first_flows(by_link)
        else:
            price_links(by_link, state.total, state.cost, state.slope)
        iterations = 0
        while True:
            tidy(self.ways, by_link, self.pairs, self.bushes, state)
            gap = self._gap()
            if gap <= relative_gap or iterations >= max_iterations:
                break
            while iterations < max_iterations:
                estimate, self._swaps = improve(
                    self.ways, by_link, self.pairs, self.bushes, state, self._swaps, _PASSES
                )
                iterations += 1
                repeat_swaps(by_link, self.bushes, state, self._swaps, _ROUNDS, _ENOUGH)
                if estimate <= relative_gap:
                    break
        self.flows = links.spread(state.total, self.network.n_edges) + self.background
        return gap, iterations

    def _first_flows(self, prices: LinkPrices) -> Bushes:
        """Send the vehicles of one origin after the other down the paths that are cheapest then."""
        n_origins, n_links = len(self.pairs.origins), len(self.ways.tails)
        bushes = Bushes(np.empty(self._trees.shape, dtype=np.int32), np.zeros((n_origins, n_links)))
        self._state.total[:] = 0.0
        price_links(prices, self._state.total, self._state.cost, self._state.slope)
        stuck = _start_all(
            self.links.graph, self.ways, prices, self.pairs, bushes, self._state, self._trees, self._work
        )
        self._refuse_stuck(stuck)
        return bushes

    def _refuse_stuck(self, stuck: int) -> None:
        if stuck >= 0:
            origin, destination = self.labels[stuck]
            raise NoPathError(
                f"no path leads from {origin!r} to {destination!r}, between which {self.pairs.demand[stuck]:g} "
                "vehicles an hour want to go; leave the pair out or connect it"
            )

    def _gap(self) -> float:
        """Return the share of the price paid that would be saved if everybody took the cheapest path now."""
        paid = float(self._state.cost @ self._state.total)
        least = _least_price(self.links.graph, self.pairs, self._state.cost, self._trees, self._work)
        # Rounding can leave the price paid a hair below the least possible.
        gap = max(0.0, (paid - least) / paid) if paid > 0 else 0.0
        if not np.isfinite(gap):
            raise InputError("travel times overflow at this demand; check the units of vehicles and capacity_vph")
        return gap

    def path_shares(self, least: float = 1e-6) -> PathShares:
        """Return the paths of every pair; shares below `least` are given to the others."""
        assert self.bushes is not None  # noqa: S101 - it was solved before
        return paths_of(self.links, self.ways, self.pairs, self.bushes, least)


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
        for link in range(len(state.total)):
            if bushes.flows[i, link] > 0.0:
                state.cost[link], state.slope[link] = link_price(prices, link, state.total[link])
    return -1


@kernel
def _least_price(graph: Graph, pairs: Pairs, cost: Floats, trees: Ints32, work: Workspace) -> float:
    """Return what all pairs would pay on their cheapest paths."""
    least = 0.0
    for i in range(len(pairs.origins)):
        repair(graph, cost, pairs.origins[i], trees[i], work)
        for pair in range(pairs.first[i], pairs.first[i + 1]):
            least += pairs.demand[pair] * work.distance[pairs.goals[pair]]
    return least
