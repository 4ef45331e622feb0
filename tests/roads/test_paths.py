"""Paths on arrays agree with networkx, keep their limits, and refuse what they cannot do."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from path_cases import (
    BRAESS,
    DIAMOND,
    Case,
    assert_simple,
    cases,
    cost_of,
    diamonds,
    grid_case,
    listed,
    random_case,
    twin_costs,
)

import routesim.roads.candidates
from routesim.arrays import Ints32
from routesim.errors import InputError, NoPathError
from routesim.roads.candidates import (
    Graph,
    all_paths,
    k_shortest,
    penalty_paths,
    shortest_path,
    shortest_tree,
)

# Hand-computed answers


def test_braess_has_its_three_paths_the_bridge_first() -> None:
    assert shortest_path(*BRAESS).tolist() == [0, 2, 4]
    assert listed(k_shortest(*BRAESS, k=5)) == [[0, 2, 4], [0, 3], [1, 4]]
    assert listed(all_paths(BRAESS.graph, 0, 3)) == [[0, 3], [1, 4], [0, 2, 4]]


def test_braess_sides_are_too_long_a_detour_until_that_is_allowed() -> None:
    assert listed(penalty_paths(*BRAESS, k=3)) == [[0, 2, 4]]
    assert listed(penalty_paths(*BRAESS, k=3, max_detour=1.0)) == [[0, 2, 4], [0, 3], [1, 4]]
    # Each side shares 10 of the bridge path's 30.
    assert listed(penalty_paths(*BRAESS, k=3, max_detour=1.0, max_overlap=0.32)) == [[0, 2, 4]]
    assert len(penalty_paths(*BRAESS, k=3, max_detour=1.0, max_overlap=0.34)) == 3


def test_nothing_passes_through_a_barred_node_but_it_may_be_an_end() -> None:
    barred = Graph.build([0, 0, 1, 2], [1, 2, 3, 3], 4, no_through=[True, True, False, True])
    assert shortest_path(barred, DIAMOND.costs, 0, 3).tolist() == [1, 3]
    assert shortest_path(barred, DIAMOND.costs, 1, 3).tolist() == [2]
    assert shortest_path(barred, DIAMOND.costs, 0, 1).tolist() == [0]
    assert listed(all_paths(barred, 0, 3)) == [[1, 3]]
    assert listed(penalty_paths(barred, DIAMOND.costs, 0, 3, 2)) == [[1, 3]]


def test_each_parallel_edge_is_a_path_and_equal_ones_come_in_edge_order() -> None:
    parallel = Graph.build([0, 0, 0], [1, 1, 1], 2)
    assert shortest_path(parallel, [2.0, 2.0, 2.0], 0, 1).tolist() == [0]
    assert listed(k_shortest(parallel, [2.0, 1.0, 2.0], 0, 1, 9)) == [[1], [0], [2]]


def test_a_closed_edge_opens_no_way_round() -> None:
    # From 1, node 3 leads on only over a closed edge or back to 1.
    graph = Graph.build([0, 1, 1, 3, 3], [1, 2, 3, 1, 2], 4)
    assert listed(k_shortest(graph, [1, 1, 1, 1, np.inf], 0, 2, 5)) == [[0, 1]]


# Against networkx


@given(cases(), st.integers(1, 12))
@settings(deadline=None, max_examples=500)
def test_k_shortest_cost_what_networkx_says(case: Case, k: int) -> None:
    expected = twin_costs(case, k)
    if not expected:
        with pytest.raises(NoPathError):
            k_shortest(*case, k=k)
        return
    paths = k_shortest(*case, k=k)
    for path in paths:
        assert_simple(case, path)
    assert len({tuple(path) for path in paths}) == len(paths)
    assert [cost_of(case, path) for path in paths] == expected
    assert cost_of(case, shortest_path(*case)) == expected[0]


@pytest.mark.parametrize("seed", range(30))
def test_k_shortest_on_larger_graphs_of_real_costs(seed: int) -> None:
    case = random_case(seed, n_nodes=30, n_edges=110)
    expected = twin_costs(case, 40)
    assert len(expected) == 40
    paths = k_shortest(*case, k=40)
    for path in paths:
        assert_simple(case, path)
    assert [cost_of(case, path) for path in paths] == pytest.approx(expected, rel=1e-12)


@given(cases())
@settings(deadline=None, max_examples=300)
def test_all_paths_are_those_of_networkx(case: Case) -> None:
    graph = nx.MultiDiGraph()
    graph.add_nodes_from([case.origin, case.destination])
    for edge, (tail, head) in enumerate(zip(case.graph.tails.tolist(), case.graph.heads.tolist(), strict=True)):
        barred = {node for node in (tail, head) if case.graph.no_through[node]}
        if barred <= {case.origin, case.destination}:
            graph.add_edge(tail, head, key=edge)
    expected = {
        tuple(key for _, _, key in path) for path in nx.all_simple_edge_paths(graph, case.origin, case.destination)
    }
    if not expected:
        with pytest.raises(NoPathError):
            all_paths(case.graph, case.origin, case.destination)
        return
    paths = [tuple(path.tolist()) for path in all_paths(case.graph, case.origin, case.destination, len(expected))]
    assert len(paths) == len(expected)
    assert set(paths) == expected
    assert [len(path) for path in paths] == sorted(len(path) for path in paths)
    if len(expected) > 1:
        with pytest.raises(InputError, match=f"at most {len(expected) - 1} of them"):
            all_paths(case.graph, case.origin, case.destination, len(expected) - 1)


# All paths in bounded time


def test_more_paths_than_the_limit_are_refused_however_many_there_are() -> None:
    assert len(all_paths(diamonds(10), 0, 10, 1024)) == 1024
    with pytest.raises(InputError, match="at most 1023 of them, but more lead from node 0 to node 10"):
        all_paths(diamonds(10), 0, 10, 1023)
    with pytest.raises(InputError, match="raise the limit"):
        all_paths(diamonds(2000), 0, 2000)


def test_dead_ends_behind_the_path_itself_take_no_time() -> None:
    # 0 -> 1 -> 2, and thirty nodes, all joined to each other, that are entered from 1 and left only to 1.
    others = range(3, 33)
    edges = [(0, 1), (1, 2), *[(1, v) for v in others], *[(v, 1) for v in others]]
    edges += [(u, v) for u in others for v in others if u != v]
    tails, heads = zip(*edges, strict=True)
    assert listed(all_paths(Graph.build(tails, heads, 33), 0, 2)) == [[0, 1]]


# Penalty paths


def overlap(case: Case, one: Ints32, other: Ints32) -> float:
    shared = set(one.tolist()) & set(other.tolist())
    return float(sum(case.costs[sorted(shared)])) / min(cost_of(case, one), cost_of(case, other))


@given(
    cases(max_edges=30),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    st.sampled_from([0.0, 0.4, 3.0]),
)
@settings(deadline=None, max_examples=300)
def test_penalty_paths_keep_their_limits(case: Case, k: int, max_overlap: float, max_detour: float) -> None:
    try:
        shortest = cost_of(case, shortest_path(*case))
    except NoPathError:
        with pytest.raises(NoPathError):
            penalty_paths(*case, k=k)
        return
    paths = penalty_paths(*case, k=k, max_overlap=max_overlap, max_detour=max_detour)
    costs = [cost_of(case, path) for path in paths]
    assert 1 <= len(paths) <= k
    assert costs[0] == shortest
    assert costs == sorted(costs)
    assert costs[-1] <= (1 + max_detour) * shortest + 1e-6
    for place, path in enumerate(paths):
        assert_simple(case, path)
        for other in paths[:place]:
            assert path.tolist() != other.tolist()
            assert shortest == 0 or overlap(case, path, other) <= max_overlap + 1e-9


def test_a_city_grid_has_eight_routes_that_differ() -> None:
    case = grid_case(40, seed=1)
    paths = penalty_paths(*case, k=8)
    assert len(paths) == 8
    assert max(overlap(case, one, other) for one in paths for other in paths if one is not other) <= 0.75


def silly_parts(case: Case, path: Ints32, size: float) -> int:
    """How many parts of the path that cost at most `size` are not shortest paths."""
    silly, reached = 0, np.concatenate(([0.0], np.cumsum(case.costs[path])))
    for first, edge in enumerate(path):
        distances, _ = shortest_tree(case.graph, case.costs, int(case.graph.tails[edge]))
        for last in range(first, len(path)):
            cost = reached[last + 1] - reached[first]
            if cost <= size:
                silly += cost > distances[case.graph.heads[path[last]]] * (1 + 1e-6)
    return silly


def test_penalty_paths_make_no_silly_local_detours(monkeypatch: pytest.MonkeyPatch) -> None:
    case = grid_case(40, seed=2)
    small = 0.05 * cost_of(case, shortest_path(*case))
    assert [silly_parts(case, path, small) for path in penalty_paths(*case, k=6)] == [0] * 6
    monkeypatch.setattr(routesim.roads.candidates, "STRETCH", 0.0)
    assert sum(silly_parts(case, path, small) for path in penalty_paths(*case, k=6)) > 0


def test_a_long_road_of_parallel_edges_ends_with_what_differs() -> None:
    length = 3000
    case = Case(diamonds(length), np.tile([1.0, 1.2], length), 0, length)
    paths = penalty_paths(*case, k=8)
    assert paths[0].tolist() == list(range(0, 2 * length, 2))
    assert all(overlap(case, one, other) <= 0.75 for one, other in pairwise(paths))


def test_one_road_is_one_path_whatever_was_asked_for() -> None:
    line = Graph.build([0, 1], [1, 2], 3)
    assert listed(penalty_paths(line, [1.0, 1.0], 0, 2, 1000)) == [[0, 1]]
    assert listed(k_shortest(line, [1.0, 1.0], 0, 2, 1000)) == [[0, 1]]


# Rules


def test_rules_are_named_with_the_value_that_breaks_them() -> None:
    graph, costs = DIAMOND.graph, DIAMOND.costs
    with pytest.raises(InputError, match="must differ, got node 2 twice"):
        all_paths(graph, 2, 2)
    with pytest.raises(InputError, match="k must be a whole number of at least 1, got 0"):
        k_shortest(graph, costs, 0, 3, 0)
    with pytest.raises(InputError, match="limit must be a whole number of at least 1, got 0"):
        all_paths(graph, 0, 3, 0)
    with pytest.raises(InputError, match="penalty must be a finite factor above 1, got 1"):
        penalty_paths(graph, costs, 0, 3, 2, penalty=1)
    with pytest.raises(InputError, match="max_overlap must be a fraction between 0 and 1, got 2"):
        penalty_paths(graph, costs, 0, 3, 2, max_overlap=2)
    with pytest.raises(InputError, match="max_detour must be a finite fraction of at least 0, got -1"):
        penalty_paths(graph, costs, 0, 3, 2, max_detour=-1)


def test_no_path_names_both_ends() -> None:
    graph, costs = DIAMOND.graph, DIAMOND.costs
    for compute in (
        lambda: shortest_path(graph, costs, 3, 1),
        lambda: k_shortest(graph, costs, 3, 1, 2),
        lambda: penalty_paths(graph, costs, 3, 1, 2),
        lambda: all_paths(graph, 3, 1),
    ):
        with pytest.raises(NoPathError, match="no path leads from node 3 to node 1"):
            compute()
