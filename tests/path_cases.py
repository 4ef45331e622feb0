"""Graphs for the tests of paths, and their slow twins in networkx."""

from itertools import islice
from typing import NamedTuple

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from routesim.arrays import Ints32
from routesim.roads.graph import Graph
from routesim.roads.shortest import Floats


class Case(NamedTuple):
    """A graph, its costs and two different nodes."""

    graph: Graph
    costs: Floats
    origin: int
    destination: int


@st.composite
def cases(draw: st.DrawFn, max_nodes: int = 7, max_edges: int = 18) -> Case:
    """Small multigraphs with loops, parallel, free and closed edges, many ties and some barred nodes."""
    n_nodes = draw(st.integers(2, max_nodes))
    node = st.integers(0, n_nodes - 1)
    cost = st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.0, 5.0, np.inf])
    edges = draw(st.lists(st.tuples(node, node, cost), min_size=1, max_size=max_edges))
    barred = draw(st.lists(st.sampled_from([False, False, False, True]), min_size=n_nodes, max_size=n_nodes))
    origin, destination = draw(st.lists(node, min_size=2, max_size=2, unique=True))
    tails, heads, costs = zip(*edges, strict=True)
    return Case(Graph.build(tails, heads, n_nodes, no_through=barred), np.array(costs), origin, destination)


def random_case(seed: int, n_nodes: int, n_edges: int) -> Case:
    """Random edges, besides a dear one from each node to the next so that there is always a path."""
    rng = np.random.default_rng(seed)
    tails = np.concatenate([rng.integers(n_nodes, size=n_edges), np.arange(n_nodes - 1)])
    heads = np.concatenate([rng.integers(n_nodes, size=n_edges), np.arange(1, n_nodes)])
    costs = np.concatenate([rng.exponential(size=n_edges), rng.exponential(10, size=n_nodes - 1)])
    return Case(Graph.build(tails, heads, n_nodes), costs, 0, n_nodes - 1)


def grid_case(side: int, seed: int) -> Case:
    """Two-way streets of random costs, from one corner of a square to the other."""
    nodes = np.arange(side * side).reshape(side, side)
    ends = np.vstack([np.c_[nodes[:, :-1].ravel(), nodes[:, 1:].ravel()], np.c_[nodes[:-1].ravel(), nodes[1:].ravel()]])
    tails, heads = np.vstack([ends, ends[:, ::-1]]).T
    costs = np.random.default_rng(seed).uniform(1, 3, size=len(tails))
    return Case(Graph.build(tails, heads, side * side), costs, 0, side * side - 1)


def diamonds(count: int) -> Graph:
    """A chain of nodes 0 … count, two parallel edges between each and the next: 2 ** count paths."""
    tails = np.repeat(np.arange(count), 2)
    return Graph.build(tails, tails + 1, count + 1)


def split_twin(case: Case) -> nx.DiGraph:
    """The open edges as nodes of their own, and each node split in two, joined unless it is barred."""
    twin = nx.DiGraph()
    for node, barred in enumerate(case.graph.no_through):
        twin.add_nodes_from([("in", node), ("out", node)])
        if not barred:
            twin.add_edge(("in", node), ("out", node), weight=0.0)
    for edge, (tail, head) in enumerate(zip(case.graph.tails, case.graph.heads, strict=True)):
        if case.costs[edge] < np.inf:
            twin.add_edge(("out", int(tail)), ("edge", edge), weight=case.costs[edge])
            twin.add_edge(("edge", edge), ("in", int(head)), weight=0.0)
    return twin


def twin_costs(case: Case, k: int) -> list[float]:
    """Costs of the k shortest simple paths according to networkx.

    Through its own two halves a path could visit the origin or the destination twice, so these keep one each.
    """
    twin = split_twin(case)
    twin.remove_nodes_from([("in", case.origin), ("out", case.destination)])
    try:
        paths = list(
            islice(nx.shortest_simple_paths(twin, ("out", case.origin), ("in", case.destination), "weight"), k)
        )
    except nx.NetworkXNoPath:
        return []
    return [nx.path_weight(twin, path, "weight") for path in paths]


def cost_of(case: Case, path: Ints32) -> float:
    return float(sum(case.costs[path]))


def assert_simple(case: Case, path: Ints32) -> None:
    assert path.dtype == np.int32
    nodes = [int(case.graph.tails[path[0]]), *case.graph.heads[path].tolist()]
    assert nodes[:-1] == case.graph.tails[path].tolist()
    assert (nodes[0], nodes[-1]) == (case.origin, case.destination)
    assert len(set(nodes)) == len(nodes)
    assert not case.graph.no_through[nodes[1:-1]].any()
    assert np.isfinite(case.costs[path]).all()


def listed(paths: list[Ints32]) -> list[list[int]]:
    return [path.tolist() for path in paths]


BRAESS = Case(Graph.build([0, 0, 1, 1, 2], [1, 2, 2, 3, 3], 4), np.array([10.0, 50.0, 10.0, 50.0, 10.0]), 0, 3)
DIAMOND = Case(Graph.build([0, 0, 1, 2], [1, 2, 3, 3], 4), np.array([1.0, 2.0, 1.0, 2.0]), 0, 3)
