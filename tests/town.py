"""Tiny towns for tests of traffic, built by hand."""

from collections.abc import Iterable

import networkx as nx

import routesim as rs

Road = tuple[str, str, float]


def town(roads: Iterable[Road], capacity_vph: float = 3600.0, alpha: float = 0.15, beta: float = 4.0) -> rs.RoadNetwork:
    """Roads (from, to, free-flow seconds) in this order, all with the same capacity and BPR curve."""
    graph = nx.MultiDiGraph()
    for tail, head, seconds in roads:
        graph.add_edge(tail, head, free_flow_s=seconds, capacity_vph=capacity_vph, bpr_alpha=alpha, bpr_beta=beta)
    return rs.RoadNetwork.from_networkx(graph)


def edge(network: rs.RoadNetwork, tail: str, head: str) -> int:
    """The first edge from one node to another."""
    start, end = network.node_index(tail), network.node_index(head)
    return next(e for e in range(network.n_edges) if (network.tails[e], network.heads[e]) == (start, end))


def braess(bridge: bool = True) -> rs.RoadNetwork:
    """Braess's roads: s-a and b-t take 10 s for each thousand vehicles an hour, a-t and s-b 50 s and one more.

    With 6,000 vehicles an hour from s to t, everybody takes 83 s without the bridge from a to b, and 92 s with it
    (10 s, and one more for each thousand); the optimum never uses the bridge.
    """
    graph = nx.DiGraph()
    steep = {"free_flow_s": 1e-8, "capacity_vph": 1000.0, "bpr_alpha": 1e9, "bpr_beta": 1.0}
    for tail, head in (("s", "a"), ("b", "t")):
        graph.add_edge(tail, head, **steep)
    for tail, head in (("a", "t"), ("s", "b")):
        graph.add_edge(tail, head, free_flow_s=50.0, capacity_vph=1000.0, bpr_alpha=0.02, bpr_beta=1.0)
    if bridge:
        graph.add_edge("a", "b", free_flow_s=10.0, capacity_vph=1000.0, bpr_alpha=0.1, bpr_beta=1.0)
    return rs.RoadNetwork.from_networkx(graph)
