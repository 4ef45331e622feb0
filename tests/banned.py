"""Streets with banned turns, and the obvious search that keeps to them: one node for each history of edges driven."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

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


@cache
def histories(network: rs.RoadNetwork) -> nx.DiGraph:
    """A node for the last edges driven, as many as a ban can be about, and one (-1 - v,) for each start at a node v.

    What leads from one to another is an edge that may follow.
    """
    bans = {*map(tuple, network.banned_turns.tolist()), *network.banned_ways}
    longest = max(map(len, bans), default=2)
    leaving = [np.flatnonzero(network.tails == node).tolist() for node in range(network.n_nodes)]
    graph, waiting = nx.DiGraph(), [(-1 - node,) for node in range(network.n_nodes)]
    graph.add_nodes_from(waiting)
    while waiting:
        now = waiting.pop()
        for edge in leaving[network.heads[now[-1]] if now[-1] >= 0 else -1 - now[-1]]:
            driven = (*now, edge)
            if not any(driven[-length:] in bans for length in range(2, longest + 1)):
                after = driven[-longest + 1 :] if now[-1] >= 0 else (edge,)
                if after not in graph:
                    waiting.append(after)
                graph.add_edge(now, after, edge=edge)
    return graph


def place_of(network: rs.RoadNetwork, origin: int, driven: Way) -> Way:
    """The history of those who have driven some edges from a node."""
    place = (-1 - origin,)
    for edge in driven:
        place = next(after for _, after, last in histories(network).out_edges(place, data="edge") if last == edge)
    return place


def walks(network: rs.RoadNetwork, costs: Floats, origin: int, destination: int) -> Iterator[tuple[float, Way]]:
    """The walks that visit no history twice, and the destination once, the cheapest first."""
    graph = histories(network).copy()
    for _, _, data in graph.edges(data=True):
        data["weight"] = float(costs[data["edge"]])
    for last in [node for node in graph if node[-1] >= 0 and network.heads[node[-1]] == destination]:
        graph.remove_edges_from(list(graph.out_edges(last)))
        graph.add_edge(last, "there", weight=0.0)
    try:
        for nodes in nx.shortest_simple_paths(graph, (-1 - origin,), "there", "weight"):
            yield nx.path_weight(graph, nodes, "weight"), tuple(node[-1] for node in nodes[1:-1])
    except nx.NetworkXNoPath:
        return


def quickest(network: rs.RoadNetwork, costs: Floats, origin: int, destination: int, driven: Way = ()) -> float:
    """The cost of the cheapest walk, from where one is who has driven some edges; inf where there is none."""

    def weight(_: Way, __: Way, data: dict[str, int]) -> float | None:
        cost = float(costs[data["edge"]])
        return cost if np.isfinite(cost) else None

    reached = nx.single_source_dijkstra_path_length(
        histories(network), place_of(network, origin, driven), weight=weight
    )
    return min(
        (cost for node, cost in reached.items() if node[-1] >= 0 and network.heads[node[-1]] == destination),
        default=np.inf,
    )
