"""Streets with banned turns, and the obvious search that keeps to them: one node for each history of edges driven."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import networkx as nx
import numpy as np

import routesim as rs
from routesim.arrays import Floats

Way = tuple[int, ...]


def random_bans(network: rs.RoadNetwork, rng: np.random.Generator, n_turns: int, n_ways: int) -> list[Way]:
    """Ways of two edges, and of three or four, that somebody could drive."""

    def walk(length: int) -> Way:
        way = [int(rng.integers(network.n_edges))]
        while len(way) < length:
            way.append(int(rng.choice(np.flatnonzero(network.tails == network.heads[way[-1]]))))
        return tuple(way)

    return [walk(2) for _ in range(n_turns)] + [walk(int(rng.integers(3, 5))) for _ in range(n_ways)]


def with_bans(network: rs.RoadNetwork, bans: Sequence[Way]) -> rs.RoadNetwork:
    turns = np.array([way for way in bans if len(way) == 2], dtype=np.int32).reshape(-1, 2)
    return replace(network, banned_turns=turns, banned_ways=tuple(way for way in bans if len(way) > 2))


def streets(side: int, seed: int, n_turns: int, n_ways: int, **columns: float) -> rs.RoadNetwork:
    """Two-way streets in a square, of random times, with random bans."""
    rng = np.random.default_rng(seed)
    graph = nx.grid_2d_graph(side, side).to_directed()
    for _, _, data in graph.edges(data=True):
        data["free_flow_s"] = float(rng.uniform(20.0, 60.0))
        data.update(columns)
    network = rs.RoadNetwork.from_networkx(graph)
    return with_bans(network, random_bans(network, rng, n_turns, n_ways))


def driven_bans(network: rs.RoadNetwork, path: Sequence[int]) -> list[Way]:
    """The bans that a path breaks."""
    bans = [*map(tuple, network.banned_turns.tolist()), *network.banned_ways]
    edges = tuple(map(int, path))
    return [way for way in bans for at in range(len(edges)) if edges[at : at + len(way)] == way]


def histories(network: rs.RoadNetwork, costs: Floats, origin: int, start: Way = ()) -> nx.DiGraph:
    """A node for the last edges driven, as many as a ban can be about; from () or `start` to whatever is allowed."""
    memory = max([2, *map(len, network.banned_ways)]) - 1
    graph, waiting = nx.DiGraph(), [start[-memory:]]
    while waiting:
        now = waiting.pop()
        node = network.heads[now[-1]] if now else origin
        for edge in np.flatnonzero(network.tails == node).tolist():
            if np.isfinite(costs[edge]) and not driven_bans(network, (*now, edge)):
                after = (*now, edge)[-memory:]
                if after not in graph:
                    waiting.append(after)
                graph.add_edge(now, after, weight=float(costs[edge]))
    return graph


def walks(
    network: rs.RoadNetwork, costs: Floats, origin: int, destination: int, start: Way = ()
) -> Iterator[tuple[float, Way]]:
    """The walks that visit no history twice, and the destination once, the cheapest first."""
    graph = histories(network, costs, origin, start)
    begin = next(iter(graph))
    for last in [node for node in graph if node and node is not begin and network.heads[node[-1]] == destination]:
        graph.remove_edges_from(list(graph.out_edges(last)))
        graph.add_edge(last, "there", weight=0.0)
    if "there" in graph:
        for nodes in nx.shortest_simple_paths(graph, begin, "there", "weight"):
            yield nx.path_weight(graph, nodes, "weight"), tuple(node[-1] for node in nodes[1:-1])


def quickest(network: rs.RoadNetwork, costs: Floats, origin: int, destination: int, start: Way = ()) -> float:
    """The cost of the cheapest walk, inf where there is none."""
    return next(walks(network, costs, origin, destination, start), (np.inf, ()))[0]
