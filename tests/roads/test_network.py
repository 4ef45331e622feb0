"""RoadNetwork: what it holds, what it refuses, how places and labels are found."""

import math
import pickle
from dataclasses import fields, replace
from typing import Any

import networkx as nx
import numpy as np
import pytest

from routesim.errors import NetworkError
from routesim.roads.network import RoadNetwork
from routesim.roads.places import haversine_m


def two_roads() -> RoadNetwork:
    graph = nx.MultiDiGraph(crs="EPSG:4326")
    for label, x in (("home", 7.0), ("bridge", 7.001), ("work", 7.002)):
        graph.add_node(label, x=x, y=50.0)
    graph.add_edge("bridge", "work", 0, free_flow_s=5.0)
    graph.add_edge("home", "bridge", 0, free_flow_s=10.0)
    graph.add_edge("home", "bridge", 1, free_flow_s=20.0)
    graph.add_edge("work", "home", 0, free_flow_s=40.0)
    return RoadNetwork.from_networkx(graph)


def test_edges_leaving_a_node_are_a_slice_of_out_edges() -> None:
    network = two_roads()
    graph = network.graph
    assert (network.n_nodes, network.n_edges) == (graph.n_nodes, graph.n_edges) == (3, 4)
    for node in range(network.n_nodes):
        leaving = graph.out_edges[graph.indptr[node] : graph.indptr[node + 1]]
        assert leaving.tolist() == [e for e in range(network.n_edges) if network.tails[e] == node]
    assert graph.indptr.dtype == np.int64
    assert {graph.out_edges.dtype, graph.tails.dtype, network.tails.dtype, network.heads.dtype} == {np.dtype(np.int32)}


def test_edges_keep_networkx_order_and_the_table_says_the_same() -> None:
    network = two_roads()
    table = network.edges
    assert table.u.tolist() == ["home", "home", "bridge", "work"]
    assert table.free_flow_s.tolist() == [10.0, 20.0, 5.0, 40.0]
    assert {
        "u",
        "v",
        "length_m",
        "capacity_vph",
        "bpr_alpha",
        "bpr_beta",
        "name",
        "highway",
        "geometry",
    } <= set(table.columns)
    assert table.geometry.iloc[0].coords[:] == [(7.0, 50.0), (7.001, 50.0)]
    assert network.to_geodataframe().crs.to_epsg() == 4326


def test_a_network_without_places_has_a_plain_table_and_no_nearest_node() -> None:
    graph = nx.DiGraph()
    graph.add_edge(1, 2, free_flow_s=1.0)
    network = RoadNetwork.from_networkx(graph)
    assert "geometry" not in network.edges.columns
    with pytest.raises(NetworkError, match="has no coordinates"):
        network.nearest_node(0, 0)
    assert len(network.shape(0)) == 0


def test_arrays_cannot_be_changed_not_even_after_pickling() -> None:
    for network in (two_roads(), pickle.loads(pickle.dumps(two_roads()))):  # noqa: S301
        assert network.equals(two_roads())
        assert network.node_index("work") == 2
        with pytest.raises(ValueError, match="read-only"):
            network.free_flow_s[0] = 1.0
        with pytest.raises(AttributeError):
            network.name = "other"  # type: ignore[misc]


def test_what_the_caller_does_to_his_arrays_later_does_not_matter() -> None:
    times = np.array([1.0, 2.0, 3.0, 4.0])
    network = replace_in(two_roads(), free_flow_s=times)
    times[0] = -1.0
    assert network.free_flow_s[0] == 1.0


def replace_in(network: RoadNetwork, **changes: Any) -> RoadNetwork:
    values = {f.name: getattr(network, f.name) for f in fields(network) if f.init}
    return RoadNetwork(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": ()}, "at least one node"),
        ({"labels": ("a", "b", "a")}, "labels must differ, got 'a' twice"),
        ({"labels": ("a", "b", ["c"])}, "labels must be hashable"),
        ({"labels": ("a", "b")}, "node indices from 0 to 1, got 2"),
        ({"tails": [0, 0, 1, -1]}, "node indices from 0 to 2, got -1 on edge 3"),
        ({"tails": [0, 0, 1]}, "equal length, got 3 and 4"),
        ({"tails": [[0, 0, 1, 1]]}, "one row"),
        ({"heads": ["x", 0, 0, 0]}, "heads must hold numbers"),
        ({"heads": [[0], 0, 0, 0]}, "heads must hold numbers"),
        ({"heads": [1, 1, 2, 0.5]}, "heads must hold whole numbers"),
        ({"heads": [1, 1, 2, math.nan]}, "heads must hold whole numbers"),
        ({"keys": [0, 1, 2, 2**70]}, "keys must hold"),
        ({"imputed_bits": [0, 0, 0, 256]}, "imputed_bits must hold whole numbers within uint8"),
        ({"imputed_bits": [0, 0, 0, 16]}, "imputed_bits must be sums of"),
        ({"no_through": [0, 1, 2]}, "no_through must hold truth values"),
        ({"lanes": ["1", "2", "3", "4"]}, "lanes must hold numbers"),
        ({"lanes": [1, 2, 3, None]}, "lanes must hold numbers"),
        (
            {"free_flow_s": [1, 2, -3, 4]},
            "free_flow_s must be a finite number between 0 and 1e\\+09, got -3.0 on edge 2",
        ),
        ({"free_flow_s": [1, 2, math.nan, 4]}, "got nan on edge 2 .*'bridge' to 'work'"),
        ({"free_flow_s": [1, 2, math.inf, 4]}, "got inf"),
        ({"free_flow_s": [1, 2, 3]}, "free_flow_s must have 4 values"),
        ({"length_m": [1, -2, 3, 4]}, "length_m must be a finite number between 0 and 1e\\+09, got -2.0"),
        ({"speed_kph": [1, 0, 3, 4]}, "speed_kph must be a finite number between 1e-30 and"),
        ({"capacity_vph": [1, 0, 3, 4]}, "capacity_vph must be a finite number between 1e-06 and"),
        ({"lanes": [1, math.nan, 3, 4]}, "lanes must be"),
        ({"bpr_alpha": [1, -1, 3, 4]}, "bpr_alpha"),
        ({"bpr_beta": [1, math.inf, 3, 4]}, "bpr_beta"),
        ({"keys": [0, 0, 0, 0]}, "different keys, got key 0 twice from 'home' to 'bridge'"),
        ({"names": ("a",)}, "names must have one text for each of 4 edges, got 1"),
        ({"names": ("a", "b", None, "d")}, "names must hold texts only"),
        ({"x": [7.0, 200.0, 7.0]}, "within ±180, ±90 .* got .200.0, 50.0. at node 'bridge'"),
        ({"x": [7.0, math.inf, 7.0]}, "got .inf"),
        ({"y": [50.0, math.nan, 50.0]}, "node 'bridge' has only one"),
        ({"no_through": [True]}, "no_through must have 3 values"),
        ({"signals": [True]}, "signals must have 3 values"),
        ({"signals": [0, 1, 2]}, "signals must hold truth values"),
        ({"shape_offsets": [0, 1, 1, 1, 1], "shape_xy": [[7, 50]]}, "none or at least two"),
        ({"shape_offsets": [0, 2, 0, 2, 2], "shape_xy": [[7, 50]] * 2}, "shape_offsets must rise"),
        ({"shape_offsets": [0, 2, 2, 2, 2], "shape_xy": [[7, 50], [7, math.nan]]}, "line of edge 0"),
        ({"shape_offsets": [0, 2, 2, 2, 2], "shape_xy": [[7, 50], [7, 91]]}, "edge 0"),
        ({"shape_xy": [7, 50]}, "two columns"),
        ({"crs": None}, "crs must be a text"),
    ],
)
def test_nothing_invalid_can_be_built(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        replace_in(two_roads(), **changes)


def test_nearest_node_is_nearest_on_the_sphere_also_across_the_date_line() -> None:
    rng = np.random.default_rng(1)
    lon, lat = rng.uniform(-180, 180, 300), rng.uniform(-90, 90, 300)
    graph = nx.DiGraph(crs="EPSG:4326")
    graph.add_nodes_from((i, {"x": float(lon[i]), "y": float(lat[i])}) for i in range(300))
    network = RoadNetwork.from_networkx(graph)
    for x, y in zip(rng.uniform(-180, 180, 50), rng.uniform(-90, 90, 50), strict=True):
        distance = haversine_m(np.full(300, x), np.full(300, y), lon, lat)
        assert network.nearest_node(x, y) == int(np.argmin(distance))


def test_nearest_node_in_planar_metres() -> None:
    graph = nx.DiGraph(crs="EPSG:3879")
    graph.add_node("a", x=25_000_000.0, y=6_000_000.0)
    graph.add_node("b", x=25_000_100.0, y=6_000_000.0)
    network = RoadNetwork.from_networkx(graph)
    assert network.nearest_node(25_000_060.0, 6_000_000.0) == "b"
    with pytest.raises(NetworkError, match="use x and y"):
        _ = network.lon


@pytest.mark.parametrize("place", [(math.nan, 50), (7, math.inf), (181, 0), (50.0, 97.0), ("a", 1), (None, 1)])
def test_a_place_off_the_map_is_refused(place: tuple[Any, Any]) -> None:
    with pytest.raises(NetworkError, match="a place"):
        two_roads().nearest_node(*place)


def test_an_unknown_label_is_answered_with_similar_ones() -> None:
    network = two_roads()
    with pytest.raises(NetworkError, match=r"no node 'brigde' .*did you mean 'bridge'"):
        network.node_index("brigde")
    with pytest.raises(NetworkError, match="labels look like 'home'"):
        network.node_index(12)
    with pytest.raises(NetworkError, match="no node"):
        network.node_index([1])  # type: ignore[arg-type]


def test_the_largest_component_is_where_every_node_reaches_every_other() -> None:
    graph = nx.MultiDiGraph()
    nx.add_cycle(graph, ["a", "b", "c"], free_flow_s=1.0)
    nx.add_cycle(graph, ["x", "y"], free_flow_s=1.0)
    graph.add_edge("c", "x", free_flow_s=1.0)
    graph.add_edge("b", "b", free_flow_s=1.0)
    graph.add_edge("b", "c", free_flow_s=2.0)
    kept = RoadNetwork.from_networkx(graph).largest_component()
    assert kept.labels == ("a", "b", "c")
    assert kept.n_edges == 5
    assert kept.largest_component() is kept


def test_a_subnetwork_keeps_edges_in_the_order_asked_for() -> None:
    part = two_roads().subnetwork([3, 1])
    assert part.labels == ("home", "bridge", "work")
    assert part.free_flow_s.tolist() == [40.0, 20.0]
    assert part.keys.tolist() == [0, 1]
    assert two_roads().subnetwork([], nodes=[1]).labels == ("bridge",)
    with pytest.raises(NetworkError, match="touches node 'home'"):
        two_roads().subnetwork([3], nodes=[2])
    with pytest.raises(NetworkError, match="indices from 0 to 3"):
        two_roads().subnetwork([4])


def test_consolidation_merges_the_four_corners_of_a_dual_carriageway_crossing() -> None:
    # A square of 8 m one-way links, with an arm of 100 m at each corner and a zone beside one of them.
    graph = nx.MultiDiGraph()
    corners = ["sw", "se", "ne", "nw"]
    places = [(0.0, 0.0), (8.0, 0.0), (8.0, 8.0), (0.0, 8.0)]
    graph.graph["crs"] = "planar"
    for label, (x, y) in zip(corners, places, strict=True):
        graph.add_node(label, x=x, y=y)
        graph.add_node(f"far {label}", x=x * 20 - 80, y=y * 20 - 80)
        graph.add_edge(label, f"far {label}", length=100.0, speed_kph=36.0)
        graph.add_edge(f"far {label}", label, length=100.0, speed_kph=36.0)
    for a, b in zip(corners, corners[1:] + corners[:1], strict=True):
        graph.add_edge(a, b, length=8.0, speed_kph=36.0)
    graph.add_edge("sw", "ne", length=30.0, speed_kph=36.0)
    graph.add_node("zone", x=0.0, y=1.0, no_through=True)
    graph.add_edge("zone", "sw", length=1.0, speed_kph=36.0)
    merged = RoadNetwork.from_networkx(graph).consolidate(tolerance_m=10.0)
    assert set(merged.labels) == {"sw", "zone", *(f"far {c}" for c in corners)}
    centre = merged.node_index("sw")
    assert (merged.x[centre], merged.y[centre]) == (4.0, 4.0)
    assert merged.n_edges == 8 + 1 + 1  # the arms, the long diagonal as a loop, the zone's link
    loop = np.flatnonzero(merged.tails == merged.heads)
    assert merged.length_m[loop].tolist() == [30.0]
    unchanged = RoadNetwork.from_networkx(graph)
    assert unchanged.consolidate(tolerance_m=0.0).equals(unchanged)
    with pytest.raises(NetworkError, match="tolerance_m must be"):
        unchanged.consolidate(tolerance_m=-1.0)


def test_consolidation_makes_parallel_roads_of_roads_between_merged_junctions() -> None:
    graph = nx.MultiDiGraph()
    graph.add_edge("a", "a2", length=3.0, speed_kph=36.0)
    graph.add_edge("a", "b", length=50.0, speed_kph=36.0)
    graph.add_edge("a2", "b", length=60.0, speed_kph=36.0)
    merged = RoadNetwork.from_networkx(graph).consolidate()
    assert merged.labels == ("a", "b")
    assert merged.length_m.tolist() == [50.0, 60.0]
    assert merged.keys.tolist() == [0, 1]


def test_haversine_of_a_degree_of_latitude() -> None:
    one = haversine_m(np.array([7.0]), np.array([50.0]), np.array([7.0]), np.array([51.0]))
    assert one[0] == pytest.approx(6_371_009 * math.pi / 180, rel=1e-12)


def test_imputed_values_are_marked() -> None:
    graph = nx.DiGraph()
    graph.add_edge(1, 2, length=100, highway="motorway")
    graph.add_edge(2, 1, length=100, maxspeed="50", lanes=2, capacity=3000, bpr_alpha=0.2, bpr_beta=5)
    network = RoadNetwork.from_networkx(graph)
    for what in ("speed", "lanes", "capacity", "bpr"):
        assert network.imputed(what).tolist() == [True, False]
        assert network.edges[f"{what}_imputed"].tolist() == [True, False]
    assert network.speed_kph.tolist() == [110.0, 50.0]
    assert network.capacity_vph.tolist() == [4000.0, 3000.0]
    with pytest.raises(NetworkError, match="imputed takes one of"):
        network.imputed("name")


def test_replace_checks_again() -> None:
    network = replace(two_roads(), name="named")
    assert network.name == "named"
    with pytest.raises(NetworkError):
        replace(two_roads(), lanes=np.zeros(4))
