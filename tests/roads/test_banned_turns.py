"""Banned turns and ways: what a network holds, and that searches and path sets keep to them."""

import pickle
from dataclasses import replace
from itertools import islice

import networkx as nx
import numpy as np
import pytest
from banned import driven_bans, quickest, random_bans, streets, walks, with_bans
from numpy.testing import assert_allclose, assert_array_equal

import routesim as rs
from routesim.errors import InputError, NetworkError, NoPathError
from routesim.roads.candidates import all_paths, k_shortest, penalty_paths
from routesim.roads.drivable import banned_on, drivable, has_needless_loop
from routesim.roads.edits import connected_nodes
from routesim.roads.graph import Graph
from routesim.roads.shortest import shortest_path, shortest_tree, trace
from routesim.roads.turns import allowed_turns

SEEDS = range(6)
LONGEST = 9


def block() -> rs.RoadNetwork:
    """a -> b -> c, with a block to drive round at b: b -> d -> e -> b. Edges 0 to 4 in this order."""
    graph = nx.MultiDiGraph()
    for tail, head in ("ab", "bc", "bd", "de", "eb"):
        graph.add_edge(tail, head, free_flow_s=10.0)
    return rs.RoadNetwork.from_networkx(graph)


def ends(network: rs.RoadNetwork) -> list[tuple[int, int]]:
    rng = np.random.default_rng(0)
    return [tuple(rng.choice(network.n_nodes, 2, replace=False).tolist()) for _ in range(6)]


# ---- what a network holds


def test_bans_are_kept_in_order_and_once() -> None:
    network = replace(block(), banned_turns=[[4, 1], [0, 2], [0, 2]], banned_ways=((2, 3, 4), (0, 2, 3), (2, 3, 4)))
    assert network.banned_turns.tolist() == [[0, 2], [4, 1]]
    assert network.banned_turns.dtype == np.int32
    assert network.banned_ways == ((0, 2, 3), (2, 3, 4))
    assert not network.banned_turns.flags.writeable
    assert not network.equals(block())
    assert not network.equals(replace(network, banned_ways=()))
    assert not network.equals(replace(network, bans_known=False))
    assert pickle.loads(pickle.dumps(network)).equals(network)  # noqa: S301 - made on the line
    assert block().banned_turns.shape == (0, 2)
    assert block().bans_known


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"banned_turns": [[0, 3]]}, r"follow each other.*edge 0 ends at node 'b', edge 3 starts at 'd'"),
        ({"banned_turns": [[0, 5]]}, r"edges from 0 to 4, got \(0, 5\)"),
        ({"banned_turns": [[-1, 1]]}, "edges from 0 to 4"),
        ({"banned_turns": [[0, 1, 2]]}, "two columns"),
        ({"banned_turns": [[0.5, 1]]}, "whole numbers"),
        ({"banned_ways": ((0, 1),)}, "three or more edges"),
        ({"banned_ways": ((0, 2, 1),)}, "follow each other"),
        ({"banned_ways": ((0, 2, "x"),)}, "tuples of edge indices"),
        ({"banned_ways": (7,)}, "tuples of edge indices"),
        ({"bans_known": 1}, "True or False"),
    ],
)
def test_bans_that_make_no_sense_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        replace(block(), **fields)


def test_a_part_of_a_network_keeps_the_bans_that_can_be_broken_in_it() -> None:
    network = replace(block(), banned_turns=[[0, 1], [4, 2]], banned_ways=((0, 2, 3), (2, 3, 4)))
    part = network.subnetwork([4, 3, 2])
    assert part.banned_turns.tolist() == [[0, 2]]
    assert part.banned_ways == ((2, 1, 0),)


def test_nodes_of_the_largest_component_reach_each_other_without_a_banned_turn() -> None:
    both_ways = nx.MultiDiGraph()
    for tail, head in ("ab", "ba", "bc", "cb", "ca", "ac"):
        both_ways.add_edge(tail, head, free_flow_s=1.0)
    network = rs.RoadNetwork.from_networkx(both_ways)
    for seed in SEEDS:
        town = streets(4, seed, 40, 10)
        part = town.largest_component()
        assert part.n_nodes >= 8, "most of a town is left"
        for origin in range(part.n_nodes):
            assert np.isfinite(shortest_tree(part.graph, part.free_flow_s, origin)[0]).all()
    assert network.largest_component() is network


def test_a_node_that_is_left_by_a_banned_turn_only_is_not_in_the_component() -> None:
    graph = nx.MultiDiGraph()
    for tail, head in ("ab", "ba", "bc", "cb"):  # a street with dead ends
        graph.add_edge(tail, head, free_flow_s=1.0)
    network = rs.RoadNetwork.from_networkx(graph)
    no_way_on = replace(network, banned_turns=[[0, 2], [0, 1]])  # who comes from a may neither go on nor turn back
    assert network.labels == ("a", "b", "c")
    assert connected_nodes(network).all()
    assert set(no_way_on.largest_component().labels) == {"b", "c"}


def test_drivers_turn_back_at_dead_ends_only() -> None:
    both = [("a", "b"), ("b", "c"), ("b", "d")]  # a street that forks at b; a, c and d are dead ends
    graph = nx.MultiDiGraph()
    for tail, head in both + [(head, tail) for tail, head in both]:
        graph.add_edge(tail, head, free_flow_s=1.0)
    network = rs.RoadNetwork.from_networkx(graph)
    strict = network.without_u_turns()
    label = network.labels
    turns = {(label[network.tails[a]], label[network.heads[b]]) for a, b in strict.banned_turns.tolist()}
    assert turns == {("a", "a"), ("c", "c"), ("d", "d")}, "at b, whichever way one came"
    assert strict.largest_component() is strict
    turns_at_b = list(zip(*allowed_turns(network), strict=True))
    ban = next((a, b) for a, b in turns_at_b if label[network.tails[a]] == label[network.heads[b]] == "a")
    only_back = with_bans(network, [(ban[0], other) for other in np.flatnonzero(network.tails == 1) if other != ban[1]])
    kept = only_back.without_u_turns()
    assert ban not in set(map(tuple, kept.banned_turns.tolist())), "where all other turns are banned one may turn back"


def test_merged_junctions_keep_the_bans_of_the_turns_that_they_are_made_of() -> None:
    # Two roads, in1 -> p -> out1 and in2 -> q -> out2, and short links p -> q and q -> p between them.
    rows = [("in1", "p", 90), ("p", "out1", 90), ("in2", "q", 90), ("q", "out2", 90), ("p", "q", 5), ("q", "p", 5)]
    graph = nx.MultiDiGraph()
    for tail, head, length in rows:
        graph.add_edge(tail, head, free_flow_s=float(length), length=float(length))
    network = rs.RoadNetwork.from_networkx(graph)
    labels = [network.labels[node] for node in (*network.tails, *network.heads)]
    edge = {f"{tail} {head}": e for e, (tail, head) in enumerate(zip(labels[:6], labels[6:], strict=True))}

    def merged(bans: list[tuple[str, ...]]) -> list[str]:
        banned = with_bans(network, [tuple(edge[name] for name in way) for way in bans])
        found = banned.consolidate(tolerance_m=10.0)
        assert found.n_edges == 4
        of = [found.labels[v] for v in found.tails], [found.labels[v] for v in found.heads]
        assert not found.banned_ways
        return [f"{of[0][a]} {of[1][b]}" for a, b in found.banned_turns.tolist()]

    assert merged([]) == []
    assert merged([("in1 p", "p out1")]) == ["in1 out1"]
    assert merged([("in1 p", "p q")]) == ["in1 out2"], "over the link p -> q there was no other way to out2"
    assert merged([("in1 p", "p q", "q out2")]) == ["in1 out2"]
    assert merged([("p q", "q out2")]) == ["in1 out2"]
    assert merged([("in1 p", "p q", "q p")]) == [], "who may not turn round has lost nothing that he could reach so"
    assert merged([("in2 q", "q out2")]) == ["in2 out2"]


# ---- searches


def test_a_driver_goes_round_the_block_where_the_turn_is_banned() -> None:
    network = replace(block(), banned_turns=[[0, 1]])
    graph, costs = network.graph, network.free_flow_s
    assert shortest_path(graph, costs, 0, 2).tolist() == [0, 2, 3, 4, 1]
    assert shortest_path(graph, costs, 1, 2).tolist() == [1], "a trip that starts at b made no turn"
    assert shortest_path(graph, costs, 0, 1).tolist() == [0], "a trip may end there"
    way = replace(block(), banned_turns=[[0, 1]], banned_ways=((0, 2, 3),))
    with pytest.raises(NoPathError):
        shortest_path(way.graph, costs, 0, 2)
    assert shortest_path(way.graph, costs, 1, 2).tolist() == [1]


def test_a_path_uses_no_edge_twice_even_where_that_would_be_quicker() -> None:
    # o -> a -> b -> d; driving o a b d as a whole is banned. Round the block at b one comes back over a -> b.
    graph = nx.MultiDiGraph()
    for tail, head, seconds in (("o", "a", 1), ("a", "b", 1), ("b", "d", 1), ("b", "a", 1), ("o", "d", 99)):
        graph.add_edge(tail, head, free_flow_s=float(seconds))
    network = rs.RoadNetwork.from_networkx(graph)
    labels = [network.labels[node] for node in (*network.tails, *network.heads)]
    edge = {tail + head: e for e, (tail, head) in enumerate(zip(labels[:5], labels[5:], strict=True))}
    network = replace(network, banned_ways=((edge["oa"], edge["ab"], edge["bd"]),))
    start, goal = network.node_index("o"), network.node_index("d")
    costs = network.free_flow_s
    assert quickest(network, costs, start, goal) == 5.0, "o a b a b d"
    assert shortest_path(network.graph, costs, start, goal).tolist() == [edge["od"]]
    assert [path.tolist() for path in k_shortest(network.graph, costs, start, goal, 5)] == [[edge["od"]]]
    assert [path.tolist() for path in penalty_paths(network.graph, costs, start, goal, 2)] == [[edge["od"]]]
    distances, parents = shortest_tree(network.graph, costs, start)
    assert distances[goal] == 5.0, "a vehicle may do what a path of a round may not"
    assert trace(network.graph, parents, goal).tolist() == [edge[way] for way in ("oa", "ab", "ba", "ab", "bd")]


@pytest.mark.parametrize("seed", SEEDS)
def test_searches_agree_with_a_search_over_histories(seed: int) -> None:
    network = streets(4, seed, 30, 15 * (seed % 2))
    for origin, destination in ends(network):
        found = list(islice(walks(network, network.free_flow_s, origin, destination), 20))
        distances, parents = shortest_tree(network.graph, network.free_flow_s, origin)
        assert_allclose(distances[destination], found[0][0] if found else np.inf)
        if not found:
            with pytest.raises(NoPathError):
                shortest_path(network.graph, network.free_flow_s, origin, destination)
            continue
        way_there = trace(network.graph, parents, destination)
        assert not driven_bans(network, way_there)
        assert_allclose(network.free_flow_s[way_there].sum(), distances[destination])
        path = shortest_path(network.graph, network.free_flow_s, origin, destination)
        assert not driven_bans(network, path)
        simple = [cost for cost, walk in found if len(set(walk)) == len(walk)]
        assert_allclose(network.free_flow_s[path].sum(), simple[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_path_sets_hold_the_paths_that_keep_to_the_bans(seed: int) -> None:
    network = streets(3, seed, 12, 6 * (seed % 2))
    graph, costs = network.graph, network.free_flow_s
    for origin, destination in ends(network)[:3]:
        trails = [walk for walk in _trails(network, origin, destination) if not _can_be_cut(network, walk)]
        allowed = sorted((float(costs[list(walk)].sum()), walk) for walk in trails)
        if not allowed:
            with pytest.raises(NoPathError):
                all_paths(graph, origin, destination)
            continue
        everything = {tuple(path.tolist()) for path in all_paths(graph, origin, destination)}
        assert {path for path in everything if len(path) <= LONGEST} == set(trails)
        ranked = [path for path in k_shortest(graph, costs, origin, destination, 8) if len(path) <= LONGEST]
        assert_allclose([costs[path].sum() for path in ranked], [cost for cost, _ in allowed][: len(ranked)])
        differing = {tuple(path.tolist()) for path in penalty_paths(graph, costs, origin, destination, 4)}
        assert differing <= everything
        assert allowed[0][1] in differing


def _trails(network: rs.RoadNetwork, origin: int, destination: int) -> list[tuple[int, ...]]:
    """Every way there over at most LONGEST edges that uses none twice and takes no banned turn."""
    found, waiting = [], [(origin, ())]
    while waiting:
        node, driven = waiting.pop()
        if driven and node == destination:
            found.append(driven)
        elif len(driven) < LONGEST:
            onward = [edge for edge in np.flatnonzero(network.tails == node).tolist() if edge not in driven]
            allowed = [(*driven, edge) for edge in onward if not driven_bans(network, (*driven, edge)[-4:])]
            waiting += [(network.heads[way[-1]], way) for way in allowed]
    return found


def _can_be_cut(network: rs.RoadNetwork, walk: tuple[int, ...]) -> bool:
    nodes = [network.tails[walk[0]], *network.heads[list(walk)]]
    return any(
        nodes[i] == nodes[j] and not driven_bans(network, walk[:i] + walk[j:])
        for j in range(len(nodes))
        for i in range(j)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ban_on_a_path_is_found_and_named(seed: int) -> None:
    network = streets(4, seed, 30, 15)
    rng = np.random.default_rng(seed)
    for walk in random_bans(network, rng, 60, 60):
        path = np.array(walk, dtype=np.int32)
        broken = driven_bans(network, walk)
        found = banned_on(network.graph, path)
        assert (found is None) == (not broken)
        assert found is None or found in broken
        n_allowed, _ = drivable(network.graph, path)
        assert not driven_bans(network, walk[:n_allowed])
        assert _can_be_cut(network, walk) == has_needless_loop(network.graph, path) or broken


def test_zones_keep_their_rule_and_need_no_bans() -> None:
    network = replace(block(), no_through=[False, True, False, False, False], banned_turns=[[0, 1]])
    assert network.graph.zones.tolist() == network.no_through.tolist()
    with pytest.raises(NoPathError):
        shortest_path(network.graph, network.free_flow_s, 0, 2)
    assert replace(block(), banned_turns=[[0, 1]]).graph.zones.tolist() == [False] * 5


def test_a_closed_edge_is_closed_in_all_its_copies() -> None:
    network = streets(4, 3, 30, 10)
    usable = np.ones(network.n_edges, dtype=np.bool_)
    usable[::7] = False
    costs = np.where(usable, network.free_flow_s, np.inf)
    for origin, destination in ends(network):
        expected = quickest(network, costs, origin, destination)
        assert_allclose(shortest_tree(network.graph, costs, origin)[0][destination], expected)
        part = network.graph.restricted(usable)
        assert_allclose(shortest_tree(part, network.free_flow_s, origin)[0][destination], expected)


def test_without_bans_a_graph_is_what_it_was() -> None:
    network = block()
    graph = network.graph
    assert (graph.n_places, graph.n_nodes, graph.n_edges) == (5, 5, 5)
    assert not len(graph.roads)
    assert not len(graph.copy_of)
    assert_array_equal(Graph.build(network.tails, network.heads, 5, banned=()).out_edges, graph.out_edges)


# ---- action sets


def test_own_paths_over_a_ban_are_refused_by_name() -> None:
    network = replace(block(), banned_turns=[[0, 1]])
    with pytest.raises(InputError, match="path 1 takes the banned turn from edge 0 onto edge 1"):
        rs.ActionSet.from_paths(network, [(0, 2, 3, 4, 1), (0, 1)])
    assert rs.ActionSet.from_paths(network, [(0, 2, 3, 4, 1)]).n_actions == 1
    with pytest.raises(InputError, match="visits a node twice"):
        rs.ActionSet.from_paths(with_bans(block(), [(0, 2, 3)]), [(2, 3, 4, 1)])
    over = with_bans(block(), [(2, 3, 4)])
    with pytest.raises(InputError, match="path 0 takes the banned way over the edges 2, 3, 4"):
        rs.ActionSet.from_paths(over, [(2, 3, 4, 1)])


# ---- turn penalties


def crossroads() -> rs.RoadNetwork:
    """Streets in a square of 3 x 3 junctions, 100 m apart, with places; every edge takes 10 s."""
    graph = nx.grid_2d_graph(3, 3).to_directed()
    for (x, y), data in graph.nodes(data=True):
        data.update(x=100.0 * x, y=100.0 * y)
    for _, _, data in graph.edges(data=True):
        data["free_flow_s"] = 10.0
    graph.graph["crs"] = "EPSG:32632"
    return rs.RoadNetwork.from_networkx(graph)


def turn_seconds(network: rs.RoadNetwork, path: list[int], left: float, right: float, back: float) -> float:
    """What the turns of a path cost, by the cross product of its directions."""
    step = np.column_stack(
        (
            network.x[network.heads[path]] - network.x[network.tails[path]],
            network.y[network.heads[path]] - network.y[network.tails[path]],
        )
    )
    cross = step[:-1, 0] * step[1:, 1] - step[:-1, 1] * step[1:, 0]
    return left * (cross > 0).sum() + right * (cross < 0).sum() + back * (step[:-1] == -step[1:]).all(axis=1).sum()


def test_penalties_guide_searches_and_path_sets_and_are_no_travel_time() -> None:
    plain = crossroads()
    network = plain.with_turn_penalties(left_s=7.0, right_s=3.0, back_s=50.0)
    rng = np.random.default_rng(0)
    bans = random_bans(plain, rng, 4, 2)
    for roads in (network, with_bans(network, bans)):
        everything = rs.ActionSet.between(roads, (0, 0), (2, 2), method="all").listed_paths
        costs = sorted(
            roads.free_flow_s[list(path)].sum() + turn_seconds(roads, list(path), 7.0, 3.0, 50.0) for path in everything
        )
        start, goal = roads.node_index((0, 0)), roads.node_index((2, 2))
        assert_allclose(shortest_tree(roads.graph, roads.free_flow_s, start)[0][goal], costs[0])
        ranked = k_shortest(roads.graph, roads.free_flow_s, start, goal, 6)
        found = [roads.free_flow_s[path].sum() + turn_seconds(roads, path.tolist(), 7.0, 3.0, 50.0) for path in ranked]
        assert_allclose(found, costs[:6])
        assert penalty_paths(roads.graph, roads.free_flow_s, start, goal, 3)[0].tolist() in [p.tolist() for p in ranked]
    demand = rs.Demand.from_trips({"origin": [(0, 0)], "destination": [(2, 2)], "departure_s": [0.0]})
    for physics in ("window", "queue"):
        traffic = rs.TrafficSimulator(network, demand, physics=physics).run(rs.GreedyRouter(), seed=0)
        assert_allclose(traffic.travel_time_s, 40.0, rtol=1e-3)
        assert_allclose(turn_seconds(network, traffic.path_edges[:4].tolist(), 7.0, 3.0, 50.0), 3.0)
    assert rs.ActionSet.on_graph(network, (0, 0), (2, 2)).best(-network.free_flow_s) is not None
    with pytest.raises(InputError, match="left_s must be"):
        plain.with_turn_penalties(left_s=-1.0)
    with pytest.raises(NetworkError, match="turn_penalties must be"):
        replace(plain, turn_penalties=3.0)
