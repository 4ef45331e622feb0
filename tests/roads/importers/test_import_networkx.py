"""from_networkx: what counts as a free-flow time, and what is said when there is none."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
from shapely import LineString, Point

from routesim.errors import NetworkError
from routesim.roads.network import RoadNetwork


def one_edge(**data: Any) -> RoadNetwork:
    graph = nx.MultiDiGraph()
    graph.add_edge("a", "b", key=4, **data)
    return RoadNetwork.from_networkx(graph)


@pytest.mark.parametrize(
    ("data", "seconds"),
    [
        ({"free_flow_s": 12}, 12.0),
        ({"free_flow_s": 12, "travel_time": 99, "length": 5}, 12.0),
        ({"travel_time": "7.5"}, 7.5),
        ({"length": 100, "speed_kph": 36}, 10.0),
        ({"length_m": 100, "maxspeed": "36"}, 10.0),
        ({"length": 100, "maxspeed": ["30", "42"]}, 10.0),
        ({"length": 1000, "highway": "residential"}, 120.0),
        ({"length": 1000, "highway": ["residential", "primary"], "maxspeed": None}, 120.0),
        ({"length": 1000, "highway": "unheard_of"}, 90.0),
        ({"free_flow_s": 0}, 0.0),
    ],
)
def test_the_free_flow_time_comes_from_the_first_thing_that_says_it(data: dict[str, Any], seconds: float) -> None:
    assert one_edge(**data).free_flow_s.tolist() == pytest.approx([seconds])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, r"edge 'a' to 'b' \(key 4\) has no free_flow_s.*'length' is missing"),
        ({"speed_kph": 50}, "'length' is missing"),
        ({"length": 50}, "'speed_kph' is missing"),
        ({"length": 50, "maxspeed": "signals"}, "'speed_kph' is missing"),
        ({"free_flow_s": "soon"}, "free_flow_s must be a number, got 'soon' on edge 'a' to 'b'"),
        ({"free_flow_s": float("nan")}, "free_flow_s must be a finite number, got nan on edge 'a'"),
        ({"free_flow_s": -1}, "free_flow_s must be a finite number between 0 and 1e\\+09, got -1.0"),
        ({"length": -3, "speed_kph": 5}, "length_m must be a finite number between 0 and 1e\\+09, got -3.0"),
        ({"length": 3, "speed_kph": 0}, "speed_kph must be a finite number between 1e-30 and|free_flow_s must be"),
        ({"free_flow_s": 1, "capacity": 0}, "capacity_vph must be"),
        ({"free_flow_s": 1, "lanes_one_way": -1}, "lanes must be"),
        ({"free_flow_s": 1, "geometry": "POINT (1 2)"}, "geometry must be a LINESTRING"),
        ({"free_flow_s": 1, "geometry": "LINESTRING (1 2, 3)"}, "geometry must be a LINESTRING"),
        ({"free_flow_s": 1, "geometry": 17}, "geometry must be a line"),
        ({"free_flow_s": 1, "geometry": Point(1, 2)}, "none or at least two"),
    ],
)
def test_what_is_missing_or_wrong_is_named_with_its_edge(data: dict[str, Any], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        one_edge(**data)


def test_an_undirected_graph_leads_both_ways_and_a_loop_only_once() -> None:
    graph = nx.Graph(crs="EPSG:4326")
    graph.add_node("a", x=0.0, y=0.0)
    graph.add_node("b", x=1.0, y=0.0)
    graph.add_edge("a", "b", free_flow_s=1, geometry=LineString([(1, 0), (0.5, 1), (0, 0)]))
    graph.add_edge("a", "a", free_flow_s=2)
    network = RoadNetwork.from_networkx(graph)
    ends = [(network.labels[t], network.labels[h]) for t, h in zip(network.tails, network.heads, strict=True)]
    assert sorted(ends) == [("a", "a"), ("a", "b"), ("b", "a")]
    for e, (tail, _) in enumerate(ends):
        assert network.shape(e)[0, 0] == (0.0 if tail == "a" else 1.0)


def test_an_undirected_multigraph_keeps_parallel_streets() -> None:
    graph = nx.MultiGraph()
    graph.add_edge(1, 2, free_flow_s=1)
    graph.add_edge(1, 2, free_flow_s=2)
    network = RoadNetwork.from_networkx(graph)
    assert sorted(network.free_flow_s.tolist()) == [1.0, 1.0, 2.0, 2.0]
    assert network.n_edges == 4


def test_keys_that_are_no_numbers_are_numbered() -> None:
    graph = nx.MultiDiGraph()
    graph.add_edge(1, 2, key="upper", free_flow_s=1)
    graph.add_edge(1, 2, key="lower", free_flow_s=2)
    assert RoadNetwork.from_networkx(graph).keys.tolist() == [0, 1]


def test_labels_of_any_kind_are_kept() -> None:
    graph = nx.grid_2d_graph(2, 2)
    nx.set_edge_attributes(graph, 1.0, "free_flow_s")
    assert RoadNetwork.from_networkx(graph).labels == ((0, 0), (0, 1), (1, 0), (1, 1))


def test_coordinates_outside_degrees_are_taken_as_planar() -> None:
    graph = nx.DiGraph()
    graph.add_node(1, x=500.0, y=0.0)
    assert RoadNetwork.from_networkx(graph).crs == "planar"
    graph.graph["crs"] = "epsg:4326"
    with pytest.raises(NetworkError, match="within ±180"):
        RoadNetwork.from_networkx(graph)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "east"])
def test_a_coordinate_must_be_a_number(bad: Any) -> None:
    graph = nx.DiGraph()
    graph.add_node("n", x=bad, y=0.0)
    with pytest.raises(NetworkError, match=r"x must be a finite number.* at node 'n'"):
        RoadNetwork.from_networkx(graph)


def test_something_else_than_a_graph_is_refused() -> None:
    with pytest.raises(NetworkError, match="needs a networkx graph, got dict"):
        RoadNetwork.from_networkx({"a": "b"})
    with pytest.raises(NetworkError, match="at least one node"):
        RoadNetwork.from_networkx(nx.DiGraph())


def test_lanes_of_a_two_way_street_of_osmnx_are_shared() -> None:
    assert one_edge(free_flow_s=1, lanes="4", oneway=False).lanes.tolist() == [2.0]
    assert one_edge(free_flow_s=1, lanes="4", oneway=True).lanes.tolist() == [4.0]
    assert one_edge(free_flow_s=1, lanes=["3", "1"], oneway="False").lanes.tolist() == [1.0]


def test_the_network_can_be_walked_in_networkx() -> None:
    graph = nx.DiGraph()
    nx.add_path(graph, "abcd", free_flow_s=2.0)
    graph.add_edge("a", "d", free_flow_s=10.0)
    back = RoadNetwork.from_networkx(graph).to_networkx()
    assert nx.shortest_path_length(back, "a", "d", weight="travel_time") == 6.0


def test_an_attribute_that_is_an_array_is_named() -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", free_flow_s=np.array([1.0, 2.0]))
    with pytest.raises(NetworkError, match="free_flow_s must be a number"):
        RoadNetwork.from_networkx(graph)
