"""Path sets on real roads: simple s-t paths of existing edges, found by label or by place, with clear errors."""

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose

import routesim as rs
from routesim.errors import FewerPathsWarning, InputError, NetworkError, NoPathError

HELSINKI = rs.load_city("helsinki")
ORIGIN, DESTINATION = (24.9367, 60.1642), (24.9522, 60.1784)


def seconds(network: rs.RoadNetwork, path: tuple[int, ...]) -> float:
    return float(network.free_flow_s[list(path)].sum())


def assert_simple_paths(network: rs.RoadNetwork, actions: rs.ActionSet, start: int, end: int) -> None:
    for path in actions.paths:
        nodes = [int(network.tails[path[0]]), *network.heads[list(path)].tolist()]
        assert (nodes[0], nodes[-1]) == (start, end)
        assert network.tails[list(path)].tolist() == nodes[:-1]
        assert len(set(nodes)) == len(nodes)


@pytest.mark.parametrize("city", rs.list_cities())
@pytest.mark.parametrize("method", ["penalty", "k-shortest"])
def test_every_city_has_routes(city: str, method: str) -> None:
    network = rs.load_city(city)  # as networkx sees it, without bans
    network = replace(network, banned_turns=network.banned_turns[:0], banned_ways=())
    graph = network.to_networkx()
    rng = np.random.default_rng(5)
    for _ in range(2):
        start, end = rng.choice(network.n_nodes, size=2, replace=False).tolist()
        ends = network.labels[start], network.labels[end]
        try:
            actions = rs.ActionSet.between(network, *ends, k=4, method=method)
        except FewerPathsWarning:
            with pytest.warns(FewerPathsWarning, match="of 4 paths"):
                actions = rs.ActionSet.between(network, *ends, k=4, method=method)
        assert_simple_paths(network, actions, start, end)
        shortest = nx.shortest_path_length(graph, *ends, weight="free_flow_s")
        times = [seconds(network, path) for path in actions.paths]
        assert_allclose(times[0], shortest)
        assert times == sorted(times), "the quickest first"


def test_ends_are_labels_or_places() -> None:
    by_place = rs.ActionSet.between(HELSINKI, ORIGIN, DESTINATION)
    labels = [HELSINKI.nearest_node(*place) for place in (ORIGIN, DESTINATION)]
    assert by_place.paths == rs.ActionSet.between(HELSINKI, *labels).paths
    assert by_place.n_actions == 8


def test_a_pair_that_is_a_label_is_the_node_itself() -> None:
    grid = nx.grid_2d_graph(3, 3, create_using=nx.DiGraph)
    nx.set_edge_attributes(grid, 10.0, "free_flow_s")
    network = rs.RoadNetwork.from_networkx(grid)
    actions = rs.ActionSet.between(network, (0, 0), (2, 2), method="all")
    assert actions.n_actions == 12, "the simple paths from corner to corner of a 3 x 3 grid"
    assert [seconds(network, path) for path in actions.paths].count(40.0) == 6


def test_penalty_routes_keep_their_limits() -> None:
    actions = rs.ActionSet.between(HELSINKI, ORIGIN, DESTINATION, max_overlap=0.6, max_detour=0.4, k=4)
    times = [seconds(HELSINKI, path) for path in actions.paths]
    assert max(times) <= 1.4 * times[0] * (1 + 1e-9)
    for one, other in itertools.combinations(actions.paths, 2):
        shared = seconds(HELSINKI, tuple(set(one) & set(other)))
        assert shared <= 0.6 * min(seconds(HELSINKI, one), seconds(HELSINKI, other)) + 1e-9


def test_parallel_edges_are_different_paths() -> None:
    graph = nx.MultiDiGraph()
    graph.add_edge("a", "b", free_flow_s=5.0)
    graph.add_edge("a", "b", free_flow_s=7.0)
    network = rs.RoadNetwork.from_networkx(graph)
    actions = rs.ActionSet.between(network, "a", "b", method="all")
    assert sorted(actions.paths) == [(0,), (1,)]


def test_fewer_than_k_is_reported_and_not_padded() -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", free_flow_s=5.0)
    network = rs.RoadNetwork.from_networkx(graph)
    with pytest.warns(FewerPathsWarning, match="1 of 3 paths were found from node 'a' to 'b'"):
        actions = rs.ActionSet.between(network, "a", "b", k=3, method="k-shortest")
    assert actions.paths == ((0,),)


def test_what_cannot_be_done_is_named() -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", free_flow_s=5.0)
    network = rs.RoadNetwork.from_networkx(graph)
    with pytest.raises(NoPathError, match="no path leads from node 'b' to 'a'"):
        rs.ActionSet.between(network, "b", "a")
    with pytest.raises(InputError, match="the same node 'a'"):
        rs.ActionSet.between(network, "a", "a")
    with pytest.raises(NetworkError, match="'c'"):
        rs.ActionSet.between(network, "a", "c")
    with pytest.raises(InputError, match="got 'quickest'"):
        rs.ActionSet.between(network, "a", "b", method="quickest")
    with pytest.raises(InputError, match="k must be"):
        rs.ActionSet.between(network, "a", "b", k=0)
    with pytest.raises(InputError, match="at most 5"):
        rs.ActionSet.between(HELSINKI, ORIGIN, DESTINATION, method="all", limit=5)


@pytest.mark.parametrize("place", [(0, 0), DESTINATION[::-1], (25.5, 60.16)])
def test_a_place_far_from_every_road_is_refused(place: tuple[float, float]) -> None:
    with pytest.raises(NetworkError, match="longitude comes first"):
        rs.ActionSet.between(HELSINKI, ORIGIN, place)


def test_own_paths_are_checked_against_the_roads() -> None:
    graph = nx.DiGraph()
    for tail, head in ("ab", "bd", "ac", "cd", "ba"):
        graph.add_edge(tail, head, free_flow_s=1.0)
    network = rs.RoadNetwork.from_networkx(graph)
    edge = {
        (network.labels[t], network.labels[h]): e
        for e, (t, h) in enumerate(zip(network.tails, network.heads, strict=True))
    }
    upper, lower = (edge["a", "b"], edge["b", "d"]), (edge["a", "c"], edge["c", "d"])
    assert rs.ActionSet.from_paths(network, [upper, lower]).paths == (upper, lower)
    for paths, message in (
        ([(edge["a", "b"], edge["c", "d"])], "path 0 is broken"),
        ([upper, (99,)], "edges run from 0 to 4"),
        ([(edge["a", "b"], edge["b", "a"], edge["a", "c"], edge["c", "d"])], "visits a node twice"),
        ([upper, (edge["a", "c"],)], "the same two nodes"),
    ):
        with pytest.raises(InputError, match=message):
            rs.ActionSet.from_paths(network, paths)


def test_carmab_st_learns_helsinki() -> None:
    actions = rs.ActionSet.between(HELSINKI, ORIGIN, DESTINATION)
    base = -HELSINKI.free_flow_s[actions.edges]
    world = rs.RoundEnvironment.from_congestion(actions, base, rs.congestion.Linear(0.5), 4, noise_std=-0.1 * base)
    ends = {
        type(learner).__name__: rs.run(world, learner, 5_000, seed=1).expected_rewards[-500:].mean()
        for learner in (rs.CARMAB(confidence=1), rs.UCB1(), rs.ShortestPath(), rs.GreedyCongestion())
    }
    best = rs.plan(actions, world.rewards, 4).value
    assert ends["CARMAB"] == pytest.approx(best, rel=0.01)
    assert ends["CARMAB"] > max(value for name, value in ends.items() if name != "CARMAB")
