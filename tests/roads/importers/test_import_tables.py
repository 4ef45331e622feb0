"""GraphML, TNTP and GMNS: small files by hand, and the field's own."""

from pathlib import Path

import networkx as nx
import numpy as np
import osmnx
import pytest
from road_files import GMNS_LINKS, GMNS_NODES, TNTP_NET, shared

from routesim.errors import ImplausibleSpeedsWarning, NetworkError
from routesim.roads.network import RoadNetwork


def test_delft_as_osmnx_saved_it() -> None:
    file = shared("osm/delft.graphml")
    network = RoadNetwork.from_graphml(file)
    assert (network.n_nodes, network.n_edges) == (2156, 5036)
    kept = RoadNetwork.from_graphml(file, largest_component=True)
    assert (kept.n_nodes, kept.n_edges) == (2130, 5005)
    assert network.name == "Delft, Netherlands"
    assert "OpenStreetMap" in network.attribution
    assert sum(map(bool, network.names)) / network.n_edges == pytest.approx(0.97, abs=0.005)
    assert 1 - network.imputed("speed").mean() == pytest.approx(0.98, abs=0.005)
    graph = osmnx.load_graphml(file)
    assert list(network.labels) == list(graph.nodes)
    assert sorted(network.length_m) == pytest.approx(sorted(d for _, _, d in graph.edges(data="length")))
    # osmnx's own times, wherever the file tags one speed.
    graph = osmnx.add_edge_travel_times(osmnx.add_edge_speeds(graph))
    for e, (u, v, k) in enumerate(zip(network.edges.u, network.edges.v, network.keys, strict=True)):
        data = graph.edges[u, v, k]
        if isinstance(data.get("maxspeed"), str):
            assert network.free_flow_s[e] == pytest.approx(data["travel_time"], rel=1e-4), data


def test_lists_written_by_osmnx_are_read_as_lists(tmp_path: Path) -> None:
    graph = nx.MultiDiGraph(crs="epsg:4326")
    graph.add_node(1, x=7.0, y=50.0)
    graph.add_node(2, x=7.1, y=50.0)
    graph.add_edge(
        1, 2, osmid=[5, 6], length=100.0, name=["L'Allée", 'The "A"'], maxspeed=["30", "50"], lanes=["2", "3"]
    )
    graph.add_edge(2, 1, osmid=5, length=100.0, highway="primary", oneway=True)
    osmnx.save_graphml(graph, tmp_path / "g.graphml")
    network = RoadNetwork.from_graphml(tmp_path / "g.graphml")
    assert network.names == ('L\'Allée; The "A"', "")
    assert network.speed_kph.tolist() == [40.0, 60.0]
    assert network.labels == (1, 2)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_graphml_of_networkx(kind: type[nx.Graph], tmp_path: Path) -> None:
    graph = kind()
    graph.add_edge("a", "b", free_flow_s=3.5, lanes=2)
    graph.add_edge("b", "c", free_flow_s=4)
    nx.write_graphml(graph, tmp_path / "g.graphml")
    network = RoadNetwork.from_graphml(tmp_path / "g.graphml")
    assert network.labels == ("a", "b", "c")
    assert network.n_edges == (2 if graph.is_directed() else 4)
    assert set(network.free_flow_s.tolist()) == {3.5, 4.0}


def test_tntp_by_hand(tmp_path: Path) -> None:
    (tmp_path / "t_net.tntp").write_text(TNTP_NET)
    (tmp_path / "t_node.tntp").write_text("Node\tX\tY\t;\n1\t7.0\t50.0\t;\n2\t7.1\t50.0\t;\n3\t7.2\t50.0\t;\n")
    network = RoadNetwork.from_tntp(tmp_path / "t_net.tntp", tmp_path / "t_node.tntp")
    assert network.labels == (1, 2, 3)
    assert network.no_through.tolist() == [True, False, False]
    assert network.free_flow_s.tolist() == [120.0, 90.0, 90.0, 120.0]
    assert network.capacity_vph.tolist() == [1000.0, 1500.0, 1500.0, 1000.0]
    assert network.bpr_alpha.tolist() == [0.15, 0.2, 0.2, 0.15]
    assert network.bpr_beta.tolist() == [4.0, 5.0, 5.0, 4.0]
    assert network.length_m[1] == pytest.approx(2.5 * 1609.344)
    assert network.nearest_node(7.19, 50) == 3
    in_hours = RoadNetwork.from_tntp(tmp_path / "t_net.tntp", time_unit="h/100", length_unit="km")
    assert in_hours.free_flow_s.tolist() == [72.0, 54.0, 54.0, 72.0]
    assert in_hours.length_m[1] == 2500.0
    with pytest.raises(NetworkError, match="time_unit must be one of"):
        RoadNetwork.from_tntp(tmp_path / "t_net.tntp", time_unit="weeks")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<END OF METADATA>", "", "no line <END OF METADATA>"),
        ("<NUMBER OF NODES> 3", "", "does not state <NUMBER OF NODES>"),
        ("<NUMBER OF NODES> 3", "<NUMBER OF NODES> many", "must be a whole number, got 'many'"),
        ("<NUMBER OF NODES> 3", "<NUMBER OF NODES> 2000000000", "cannot be joined by"),
        ("<NUMBER OF LINKS> 4", "<NUMBER OF LINKS> 5", "announces 5 links and holds 4"),
        ("2 3 1500", "2 9 1500", "line 8: nodes must be numbers from 1 to 3"),
        ("2 3 1500", "2 2.5 1500", "line 8: nodes must be numbers"),
        ("2 3 1500 2.5", "2 3 1500 -2.5", "line 8: length must be a number, at least 0"),
        ("2 3 1500 2.5", "2 3 nan 2.5", "line 8: capacity must be"),
        ("2 3 1500 2.5", "2 3 0 2.5", "capacity_vph must be a finite number between 1e-06 and"),
        ("2 3 1500 2.5 1.5 0.2 5 0 0 1 ;", "2 3 1500", "line 8 needs init_node"),
        ("2 3 1500", "two 3 1500", "line 8 must hold numbers"),
    ],
)
def test_mistakes_in_tntp_are_named_with_their_line(old: str, new: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t_net.tntp").write_text(TNTP_NET.replace(old, new, 1))
    with pytest.raises(NetworkError, match=message) as caught:
        RoadNetwork.from_tntp(tmp_path / "t_net.tntp")
    assert "t_net.tntp" in str(caught.value)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("1 7.0\n", "line 1 must hold node, x and y"),
        ("9 7.0 50.0\n", "node must be a number from 1 to 3, got 9"),
        ("1 nan 50.0\n", "coordinates must be finite"),
        ('{"features": [{"properties": {"id": 1}}]}', "must be GeoJSON points"),
        ('{"features": 3}', "must be GeoJSON points"),
        ("{" * 100_000, "must be GeoJSON points"),
        ('{"features":' + "[" * 100_000, "must be GeoJSON points"),
    ],
)
def test_mistakes_in_tntp_nodes(nodes: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t_net.tntp").write_text(TNTP_NET)
    (tmp_path / "nodes").write_text(nodes)
    with pytest.raises(NetworkError, match=message):
        RoadNetwork.from_tntp(tmp_path / "t_net.tntp", tmp_path / "nodes")


def test_sioux_falls_and_anaheim() -> None:
    folder = shared("tntp/SiouxFalls")
    sioux = RoadNetwork.from_tntp(folder / "SiouxFalls_net.tntp", folder / "SiouxFalls_node.tntp")
    assert (sioux.n_nodes, sioux.n_edges, int(sioux.no_through.sum())) == (24, 76, 0)
    assert sioux.free_flow_s[:3].tolist() == [360.0, 240.0, 360.0]
    assert sioux.nearest_node(-96.77, 43.61) == 1
    folder = shared("tntp/Anaheim")
    anaheim = RoadNetwork.from_tntp(folder / "Anaheim_net.tntp", folder / "anaheim_nodes.geojson")
    assert (anaheim.n_nodes, anaheim.n_edges, int(anaheim.no_through.sum())) == (416, 914, 38)
    # The header says feet and minutes: the first link is a mile of 4842 feet a minute.
    assert anaheim.length_m[0] == pytest.approx(1609.344)
    assert anaheim.speed_kph[0] == pytest.approx(4842 * 0.3048 * 60 / 1000, rel=1e-3)
    with pytest.warns(ImplausibleSpeedsWarning, match="median free-flow speed is 966 km/h"):
        braess = RoadNetwork.from_tntp(shared("tntp/Braess-Example/Braess_net.tntp"))
    assert (braess.n_nodes, braess.n_edges) == (4, 5)


def write_gmns(folder: Path, nodes: str = GMNS_NODES, links: str = GMNS_LINKS) -> Path:
    (folder / "node.csv").write_text(nodes, encoding="utf-8")
    (folder / "link.csv").write_text(links, encoding="utf-8")
    return folder


def test_gmns_by_hand(tmp_path: Path) -> None:
    network = RoadNetwork.from_gmns(write_gmns(tmp_path))
    ends = [(network.labels[t], network.labels[h]) for t, h in zip(network.tails, network.heads, strict=True)]
    assert ends == [(1, 2), (2, 1), (2, 3), (3, 2)]  # the undirected link both ways, the footway not at all
    assert network.length_m.tolist() == [71.5] * 4  # metres fit the distance between the nodes
    assert network.speed_kph.tolist() == [50.0, 50.0, 30.0, 30.0]
    assert network.imputed("speed").tolist() == [False, False, True, False]
    assert network.capacity_vph.tolist() == [1800.0, 1800.0, 1200.0, 900.0]
    assert network.names[:2] == ("Main Street", "Main Street")


def test_gmns_units_from_the_lines_from_config_and_by_name(tmp_path: Path) -> None:
    miles = GMNS_LINKS.replace("71.5", repr(71.5 / 1609.344)).replace("143", repr(143 / 1609.344))
    network = RoadNetwork.from_gmns(write_gmns(tmp_path, links=miles))
    assert network.length_m.tolist() == pytest.approx([71.5] * 4)
    assert network.speed_kph[0] == pytest.approx(50 * 1.609344)
    with pytest.warns(ImplausibleSpeedsWarning, match="speed is 180 km/h, with speeds in m/s"):
        by_name = RoadNetwork.from_gmns(tmp_path, length_unit="km", speed_unit="m/s")
    assert by_name.length_m[0] == pytest.approx(71.5 / 1.609344)
    assert by_name.speed_kph[0] == 180.0
    (tmp_path / "config.csv").write_text("dataset_name,long_length,speed\nx,Kilometers,kmh\n")
    assert RoadNetwork.from_gmns(tmp_path).speed_kph[0] == 50.0


@pytest.mark.parametrize(
    ("nodes", "links", "message"),
    [
        (
            GMNS_NODES,
            GMNS_LINKS.replace("1,1,2", "1,1,8"),
            "link.csv line 2: there is no node '8' for to_node_id",
        ),
        (GMNS_NODES, GMNS_LINKS.replace(",length", ",len"), "needs a column length"),
        (
            GMNS_NODES,
            GMNS_LINKS.replace("71.5", "-71.5"),
            "line 2: length must be a finite number, at least 0",
        ),
        (GMNS_NODES, GMNS_LINKS.replace("71.5", "far"), "line 2: length must be a number, got 'far'"),
        (GMNS_NODES, GMNS_LINKS.replace("71.5", ""), "line 2: length is missing"),
        (GMNS_NODES, GMNS_LINKS.replace("71.5", "9"), "pass length_unit"),
        (GMNS_NODES, GMNS_LINKS + "5,1\n", "line 6: 11 values expected, got 2"),
        (GMNS_NODES, GMNS_LINKS + '5,"1\n', "is not CSV"),
        (GMNS_NODES, GMNS_LINKS.splitlines()[0], "no link for cars"),
        (GMNS_NODES.replace("7.001", "nan"), GMNS_LINKS, "node.csv line 3: x_coord must be a finite number"),
        (GMNS_NODES.replace("2,7.001", "1,7.001"), GMNS_LINKS, "node.csv line 3: node '1' a second time"),
        (GMNS_NODES.replace("2,7.001", ",7.001"), GMNS_LINKS, "node.csv line 3: node_id is missing"),
        ("node_id,x_coord,y_coord\n", GMNS_LINKS, "holds no node"),
    ],
)
def test_mistakes_in_gmns_are_named_with_their_line(nodes: str, links: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=message):
        RoadNetwork.from_gmns(write_gmns(tmp_path, nodes, links))


def test_gmns_needs_a_folder_with_both_tables(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="is no folder"):
        RoadNetwork.from_gmns(tmp_path / "nothing")
    with pytest.raises(NetworkError, match=r"no file .*node.csv"):
        RoadNetwork.from_gmns(tmp_path)


def test_tempe() -> None:
    network = RoadNetwork.from_gmns(shared("gmns/tempe_asu"))
    assert (network.n_nodes, network.n_edges) == (998, 1836)
    straight = network.edges.to_crs(32612).length.to_numpy()
    known = ~np.isnan(straight)
    assert network.length_m[known].sum() == pytest.approx(straight[known].sum(), rel=0.01)
    assert network.name == "tempe_asu"
