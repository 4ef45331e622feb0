"""Shortest paths and trees agree with networkx, and bad graphs and costs are refused."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from path_cases import DIAMOND, Case, cases, diamonds, grid_case, split_twin

from routesim.errors import InputError, NoPathError
from routesim.roads.graph import Graph
from routesim.roads.shortest import Workspace, find, shortest_path, shortest_tree
from routesim.roads.straight import straighten, without_loops


def test_diamond_tree_and_closing_a_side() -> None:
    distances, parents = shortest_tree(DIAMOND.graph, DIAMOND.costs, 0)
    assert distances.tolist() == [0.0, 1.0, 2.0, 2.0]
    assert parents.tolist() == [-1, 0, 1, 2]
    assert shortest_path(DIAMOND.graph, [np.inf, 2, 1, 2], 0, 3).tolist() == [1, 3]
    with pytest.raises(NoPathError, match="no path leads from node 0 to node 3"):
        shortest_path(DIAMOND.graph, [np.inf, 2, 1, np.inf], 0, 3)


@given(cases())
@settings(deadline=None, max_examples=300)
def test_trees_equal_those_of_the_split_twin(case: Case) -> None:
    expected = nx.single_source_dijkstra_path_length(split_twin(case), ("out", case.origin))
    distances, parents = shortest_tree(case.graph, case.costs, case.origin)
    for node in range(case.graph.n_nodes):
        if node == case.origin:
            assert (distances[node], parents[node]) == (0.0, -1)
            continue
        assert distances[node] == expected.get(("in", node), np.inf)
        if np.isinf(distances[node]):
            assert parents[node] == -1
        else:
            assert case.graph.heads[parents[node]] == node
            assert distances[node] == distances[case.graph.tails[parents[node]]] + case.costs[parents[node]]


def test_a_reused_workspace_changes_no_answer() -> None:
    case = grid_case(12, seed=3)
    work = Workspace.build(case.graph)
    rng = np.random.default_rng(4)
    for origin, destination in rng.permuted(np.tile(np.arange(144), (200, 1)), axis=1)[:, :2].tolist():
        costs = rng.permutation(case.costs)
        fresh = shortest_path(case.graph, costs, origin, destination)
        assert shortest_path(case.graph, costs, origin, destination, workspace=work).tolist() == fresh.tolist()
        distances, _ = shortest_tree(case.graph, costs, origin, workspace=work)
        assert distances[destination] == pytest.approx(costs[fresh].sum(), rel=1e-12)


def test_a_blocked_node_is_avoided_even_where_an_earlier_search_left_a_higher_cost() -> None:
    graph, costs = Graph.build([0, 1, 0, 3], [1, 2, 2, 1], 4), np.array([1.0, 1.0, 5.0, 99.0])
    work = Workspace.build(graph)
    shortest_tree(graph, costs, 3, workspace=work)
    blocked = np.array([1], dtype=np.int32)
    assert find(graph, costs, 0, 2, work.no_potential, blocked, work).tolist() == [2]
    assert work.distance[1] == 99.0


def test_straightening_over_a_later_node_of_the_path_leaves_no_loop() -> None:
    # On the path 0, 1, 2, 3, 4 the shortest way from 1 to 2 is over 3.
    graph = Graph.build([0, 1, 2, 3, 1, 3], [1, 2, 3, 4, 3, 2], 5)
    costs, path = np.array([10, 5, 10, 10, 0.5, 0.5]), np.arange(4, dtype=np.int32)
    work = Workspace.build(graph)
    to_go, _ = shortest_tree(graph.reverse(), costs, 4)
    assert straighten(graph, costs, path, 3.0, to_go, work).tolist() == [0, 4, 3]
    assert straighten(graph, costs, path, 2.0, to_go, work).tolist() == [0, 1, 2, 3]


def test_a_node_on_a_loop_that_was_cut_out_may_come_again() -> None:
    # The walk 0, 1, 2, 1, 3, 2, 4.
    graph = Graph.build([0, 1, 2, 1, 3, 2], [1, 2, 1, 3, 2, 4], 5)
    walk = np.arange(6, dtype=np.int32)
    assert without_loops(graph, walk, Workspace.build(graph)).tolist() == [0, 3, 4, 5]


def test_graphs_are_the_same_from_frozen_or_other_integer_arrays() -> None:
    tails = np.array([1, 0, 1, 0])
    tails.flags.writeable = False
    graph = Graph.build(tails, np.array([0, 1, 1, 1], dtype=np.uint8), 2)
    assert graph.indptr.tolist() == [0, 2, 4]
    assert graph.out_edges.tolist() == [1, 3, 0, 2]
    assert graph.reverse().out_edges.tolist() == [0, 1, 2, 3]
    frozen_costs = np.ones(4)
    frozen_costs.flags.writeable = False
    assert shortest_path(graph, frozen_costs, 0, 1).tolist() == [1]


@pytest.mark.parametrize(
    ("tails", "heads", "n_nodes", "message"),
    [
        ([0, 2], [1, 1], 2, "tails must be in 0 … 1, got 2 at edge 1"),
        ([0, 1], [1, -1], 2, "heads must be in 0 … 1, got -1 at edge 1"),
        ([0], [1, 1], 2, "equally long, got 1 and 2"),
        ([0.5], [1], 2, "list of node indices"),
    ],
)
def test_edges_between_nodes_that_do_not_exist_are_refused(
    tails: list[int], heads: list[int], n_nodes: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Graph.build(tails, heads, n_nodes)


@pytest.mark.parametrize("bad", [-1.0, -np.inf, np.nan])
def test_a_bad_cost_is_refused_by_its_edge(bad: float) -> None:
    with pytest.raises(InputError, match=f"costs must be at least 0.*got {bad} at edge 2"):
        shortest_path(DIAMOND.graph, [1.0, 1.0, bad, 1.0], 0, 3)


def test_rules_are_named_with_the_value_that_breaks_them() -> None:
    graph, costs = DIAMOND.graph, DIAMOND.costs
    with pytest.raises(InputError, match=r"one entry an edge \(4\), got shape \(3,\)"):
        shortest_path(graph, costs[:3], 0, 3)
    with pytest.raises(InputError, match="destination must be a node index in 0 … 3, got 4"):
        shortest_path(graph, costs, 0, 4)
    with pytest.raises(InputError, match="origin must be a node index in 0 … 3, got -1"):
        shortest_tree(graph, costs, -1)
    with pytest.raises(InputError, match=r"no_through must have one entry a node \(4\), got shape \(1,\)"):
        Graph.build(graph.tails, graph.heads, 4, no_through=[True])
    with pytest.raises(InputError, match="for this graph of 4 nodes, got one for 11"):
        shortest_path(graph, costs, 0, 3, workspace=Workspace.build(diamonds(10)))
