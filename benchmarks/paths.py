"""Eight routes across a big city: routesim beside the same algorithms through networkx.

    python -m benchmarks.paths [--pairs 10] [--seed 0]

Roads of Coquimbo and La Serena where this version bundles them, else a grid of about their size with random
costs. Both sides get the same pairs of nodes in the same run. Compilation is left out; building the networkx
graph too. The peer is spared finding out which nodes lie within the detour limit, which would cost it two
more searches; so it now and then tries a route beyond the limit, and its set then differs from ours.
"""

import argparse
import time
from collections.abc import Callable
from itertools import islice, pairwise

import networkx as nx
import numpy as np

import routesim
from benchmarks.side_by_side import note
from routesim.arrays import Floats
from routesim.roads import candidates as rp
from routesim.roads.shortest import ROUNDING

K = 8
PEER = f"the same through networkx {nx.__version__}"
PENALTY, MAX_OVERLAP, MAX_DETOUR = 1.15, 0.75, 0.5
Route = list[int]
Solver = Callable[[int, int], list[float]]  # from origin and destination to the costs of the routes found


def city() -> tuple[str, rp.Graph, Floats]:
    load = getattr(routesim, "load_city", None)
    if load is None:
        return "generated grid", *grid(side=93, seed=0)
    roads = load("coquimbo")
    return "Coquimbo", rp.Graph.build(roads.tails, roads.heads, roads.n_nodes), np.array(roads.free_flow_s)


def grid(side: int, seed: int) -> tuple[rp.Graph, Floats]:
    nodes = np.arange(side * side).reshape(side, side)
    across = np.c_[nodes[:, :-1].ravel(), nodes[:, 1:].ravel()]
    down = np.c_[nodes[:-1].ravel(), nodes[1:].ravel()]
    ends = np.vstack([across, down])
    tails, heads = np.vstack([ends, ends[:, ::-1]]).T
    costs = np.random.default_rng(seed).lognormal(2, 0.5, size=len(tails))
    return rp.Graph.build(tails, heads, side * side), costs


class Peer:
    """The same algorithms through networkx, on a MultiDiGraph whose keys are the edge indices."""

    def __init__(self, graph: rp.Graph, costs: Floats) -> None:
        self.costs: list[float] = costs.tolist()
        self.tails: list[int] = graph.tails.tolist()
        self.heads: list[int] = graph.heads.tolist()
        self.graph = nx.MultiDiGraph()
        self.simple = nx.DiGraph()
        for edge, (tail, head, cost) in enumerate(zip(self.tails, self.heads, self.costs, strict=True)):
            if tail != head:
                self.graph.add_edge(tail, head, key=edge, true=cost, penalised=cost)
                if self.simple.has_edge(tail, head):  # networkx ranks no parallel edges: put a node into this one
                    self.simple.add_edge(tail, ("on", edge), true=cost)
                    self.simple.add_edge(("on", edge), head, true=0.0)
                else:
                    self.simple.add_edge(tail, head, true=cost)

    def cost(self, route: Route) -> float:
        return sum(self.costs[edge] for edge in route)

    def find(self, origin: int, destination: int, weight: str) -> Route:
        _, nodes = nx.bidirectional_dijkstra(self.graph, origin, destination, weight)
        route = []
        for tail, head in pairwise(nodes):
            parallel = self.graph[tail][head]
            route.append(min(parallel, key=lambda edge: parallel[edge][weight]))
        return route

    def penalty_costs(self, origin: int, destination: int) -> list[float]:
        routes: list[Route] = []
        shortest, touched = 0.0, set[int]()
        for _ in range(rp.ATTEMPTS * K):
            found = self.find(origin, destination, "penalised")
            shortest = shortest or self.cost(found)
            for edge in found:
                self.graph[self.tails[edge]][self.heads[edge]][edge]["penalised"] *= PENALTY
            touched |= set(found)
            route = self.straighten(found, rp.STRETCH * shortest)
            near = self.cost(route) <= (1 + MAX_DETOUR) * shortest * (1 + ROUNDING)
            if near and all(self.differ(route, kept) for kept in routes):
                routes.append(route)
                if len(routes) == K:
                    break
        for edge in touched:
            self.graph[self.tails[edge]][self.heads[edge]][edge]["penalised"] = self.costs[edge]
        return sorted(self.cost(route) for route in routes)

    def differ(self, one: Route, other: Route) -> bool:
        shared = self.cost(list(set(one) & set(other)))
        return shared <= MAX_OVERLAP * min(self.cost(one), self.cost(other)) and one != other

    def straighten(self, route: Route, stretch: float) -> Route:
        changed = True
        while changed:
            changed, first = False, 0
            while first < len(route):
                cost, last, following = 0.0, first, first + 1
                while last < len(route) and cost + self.costs[route[last]] <= 2 * stretch:
                    cost += self.costs[route[last]]
                    last += 1
                    if cost <= stretch:
                        following = last
                direct = route[first:last]
                if direct:
                    direct = self.find(self.tails[route[first]], self.heads[route[last - 1]], "true")
                if self.cost(direct) < cost * (1 - ROUNDING):
                    route = self.without_loops(route[:first] + direct + route[last:])
                    changed = True
                else:
                    first = following
        return route

    def without_loops(self, walk: Route) -> Route:
        route: Route = []
        visited = [self.tails[walk[0]]]
        for edge in walk:
            route.append(edge)
            if self.heads[edge] in visited:
                place = visited.index(self.heads[edge])
                route, visited = route[:place], visited[:place]
            visited.append(self.heads[edge])
        return route

    def k_shortest_costs(self, origin: int, destination: int) -> list[float]:
        routes = islice(nx.shortest_simple_paths(self.simple, origin, destination, "true"), K)
        return [nx.path_weight(self.simple, nodes, "true") for nodes in routes]


def far_pairs(graph: rp.Graph, costs: Floats, n_pairs: int, seed: int) -> list[tuple[int, int]]:
    """Pairs across the city: the cost between them is above the median from the same origin."""
    rng, pairs = np.random.default_rng(seed), list[tuple[int, int]]()
    while len(pairs) < n_pairs:
        origin = int(rng.integers(graph.n_nodes))
        distances, _ = rp.shortest_tree(graph, costs, origin)
        reached = np.flatnonzero(np.isfinite(distances))
        if reached.size > graph.n_nodes / 2:
            far = reached[distances[reached] > np.median(distances[reached])]
            pairs.append((origin, int(rng.choice(far))))
    return pairs


def timed(compute: Solver, pair: tuple[int, int]) -> tuple[float, list[float]]:
    start = time.perf_counter()
    costs = compute(*pair)
    return 1000 * (time.perf_counter() - start), costs


def compare(title: str, place: str, pairs: list[tuple[int, int]], ours: Solver, peer: Solver) -> None:
    first_ms, _ = timed(ours, pairs[0])
    times_ms = np.empty((2, len(pairs)))
    same, n_routes = 0, []
    for column, pair in enumerate(pairs):
        times_ms[0, column], mine = timed(ours, pair)
        times_ms[1, column], others = timed(peer, pair)
        same += len(mine) == len(others) and np.allclose(mine, others)
        n_routes.append(len(mine))
    print(f"{title}: {np.mean(n_routes):.1f} a pair, the same costs through networkx in {same} of {len(pairs)}")
    for name, row in zip(("routesim", "networkx"), times_ms, strict=True):
        print(f"  {name}  median {np.median(row):8.1f} ms   fastest {row.min():8.1f}   slowest {row.max():8.1f}")
    ratios = times_ms[1] / times_ms[0]
    print(f"  {np.median(ratios):.0f} times faster (median of pairs; {ratios.min():.0f} to {ratios.max():.0f})")
    note(f"{title} across {place}", f"{np.median(times_ms[0]):.1f} ms", f"{np.median(ratios):,.0f} x {PEER}")
    print(f"  first call, which compiles or loads what was compiled: {first_ms:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    name, graph, costs = city()
    print(f"{name}: {graph.n_nodes} nodes, {len(graph.tails)} edges, {options.pairs} pairs across it")
    pairs = far_pairs(graph, costs, options.pairs, options.seed)
    peer = Peer(graph, costs)

    def penalty(origin: int, destination: int) -> list[float]:
        limits = {"penalty": PENALTY, "max_overlap": MAX_OVERLAP, "max_detour": MAX_DETOUR}
        return [float(costs[path].sum()) for path in rp.penalty_paths(graph, costs, origin, destination, K, **limits)]

    def k_shortest(origin: int, destination: int) -> list[float]:
        return [float(costs[path].sum()) for path in rp.k_shortest(graph, costs, origin, destination, K)]

    compare(f"{K} penalty routes", name, pairs, penalty, peer.penalty_costs)
    compare(f"{K} shortest routes", name, pairs, k_shortest, peer.k_shortest_costs)


if __name__ == "__main__":
    main()
