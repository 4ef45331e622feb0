"""Traffic signals: read from OpenStreetMap at junctions and stop lines, kept by every file and every edit."""

import sqlite3
from pathlib import Path

import networkx as nx
import numpy as np
import osmium
import pytest
from road_files import shared, tricky_network

from routesim.errors import NetworkError
from routesim.roads.network import RoadNetwork
from routesim.roads.places import haversine_m

METRE = 1 / 111_194.93  # in degrees of latitude


def cross(signals: dict[int, float], *, oneway: bool = False, at_junction: bool = False) -> str:
    """OSM XML: a street of 300 m from node 1 to node 2, with dead ends and side streets at both ends.

    `signals` are points of the street, by id, so many metres from node 1.
    """
    tag = '<tag k="highway" v="traffic_signals"/>'
    rows = ['<osm version="0.6">', f'<node id="1" lat="0" lon="0">{tag if at_junction else ""}</node>']
    rows += [f'<node id="2" lat="{300 * METRE:.7f}" lon="0"><tag k="highway" v="stop"/></node>']
    for at, (first, second) in ((0, (11, 12)), (300, (21, 22))):
        rows += [f'<node id="{first}" lat="{at * METRE:.7f}" lon="-0.001"/>']
        rows += [f'<node id="{second}" lat="{at * METRE:.7f}" lon="0.001"/>']
    for point, metres in signals.items():
        rows.append(f'<node id="{point}" lat="{metres * METRE:.7f}" lon="0"><tag k="name" v="x"/>{tag}</node>')
    between = "".join(f'<nd ref="{point}"/>' for point in sorted(signals, key=signals.__getitem__))
    one_way = f'<tag k="oneway" v="{"yes" if oneway else "no"}"/>'
    rows.append(f'<way id="1"><nd ref="1"/>{between}<nd ref="2"/><tag k="highway" v="primary"/>{one_way}</way>')
    for way, side in ((2, (11, 1, 12)), (3, (21, 2, 22))):
        refs = "".join(f'<nd ref="{node}"/>' for node in side)
        rows.append(f'<way id="{way}">{refs}<tag k="highway" v="residential"/></way>')
    return "\n".join([*rows, "</osm>"])


def marked(network: RoadNetwork) -> list[object]:
    return [network.labels[i] for i in np.flatnonzero(network.signals)]


def read(folder: Path, text: str, *, simplify: bool = True) -> RoadNetwork:
    (folder / "roads.osm").write_text(text, encoding="utf-8")
    networks = [RoadNetwork.from_osm(folder / "roads.osm", largest_component=False, simplify=simplify)]
    for dense in ("true", "false"):
        packed = folder / "roads.osm.pbf"
        packed.unlink(missing_ok=True)
        with osmium.SimpleWriter(osmium.io.File(str(packed), f"pbf,pbf_dense_nodes={dense}")) as writer:
            for item in osmium.FileProcessor(str(folder / "roads.osm")):
                writer.add(item)
        networks.append(RoadNetwork.from_osm(packed, largest_component=False, simplify=simplify))
    assert networks[0].equals(networks[1])
    assert networks[0].equals(networks[2])
    return networks[0]


@pytest.mark.parametrize(
    ("signals", "oneway", "found"),
    [
        ({}, False, []),
        ({7: 20.0}, False, [1]),  # a stop line of those who drive towards node 1
        ({7: 280.0}, False, [2]),
        ({7: 20.0, 8: 270.0}, False, [1, 2]),
        ({7: 150.0}, False, []),  # a crossing on foot between two junctions
        ({7: 20.0}, True, []),  # nobody drives towards node 1
        ({7: 280.0}, True, [2]),
        ({7: 251.0, 8: 260.0}, True, [2]),
        ({7: 249.0}, True, []),
    ],
)
def test_signals_before_a_junction_belong_to_it(
    signals: dict[int, float], oneway: bool, found: list[int], tmp_path: Path
) -> None:
    network = read(tmp_path, cross(signals, oneway=oneway))
    assert marked(network) == found
    assert network.n_nodes == 6  # a point with signals is merged away like any other


def test_signals_at_a_junction_mark_it(tmp_path: Path) -> None:
    assert marked(read(tmp_path, cross({}, at_junction=True))) == [1]


def test_points_that_stay_nodes_keep_their_own_signals(tmp_path: Path) -> None:
    assert marked(read(tmp_path, cross({7: 20.0, 8: 150.0}), simplify=False)) == [7, 8]


def test_deleted_nodes_and_earlier_versions_have_no_say(tmp_path: Path) -> None:
    text = cross({}, at_junction=True)
    newer = text.replace('<way id="1">', '<node id="1" lat="0" lon="0"/><way id="1">', 1)
    (tmp_path / "newer.osm").write_text(newer, encoding="utf-8")
    assert marked(RoadNetwork.from_osm(tmp_path / "newer.osm")) == []
    gone = '<node id="2" action="delete"><tag k="highway" v="traffic_signals"/></node><way id="1">'
    (tmp_path / "gone.osm").write_text(text.replace('<way id="1">', gone, 1), encoding="utf-8")
    assert marked(RoadNetwork.from_osm(tmp_path / "gone.osm")) == [1]


@pytest.mark.parametrize("file", ["andorra.osm.pbf", "liechtenstein.osm.pbf", "krems.osm.gz", "west-oakland.osm.bz2"])
def test_real_signals_are_those_another_reader_finds(file: str) -> None:
    """Every signal on a junction marks it, and every mark has a signal within 50 m as the crow flies."""
    source = shared(f"osm/{file}")
    network = RoadNetwork.from_osm(source)
    signals = {
        node.id: (node.location.lon, node.location.lat)
        for node in osmium.FileProcessor(str(source), osmium.osm.NODE)
        if node.tags.get("highway") == "traffic_signals"
    }
    found = set(marked(network))
    assert found >= signals.keys() & set(network.labels)
    places = np.array(list(signals.values())).reshape(-1, 2)
    for node in np.flatnonzero(network.signals).tolist():
        assert haversine_m(network.x[node], network.y[node], places[:, 0], places[:, 1]).min() <= 50.0


def test_osmnx_graphs_say_it_at_their_nodes() -> None:
    graph = nx.MultiDiGraph()
    graph.add_node("a", highway="traffic_signals")
    graph.add_node("b", highway=["crossing", "traffic_signals"])
    graph.add_node("c", highway="crossing")
    graph.add_edge("a", "b", free_flow_s=1.0)
    network = RoadNetwork.from_networkx(graph)
    assert network.signals.tolist() == [True, True, False]
    assert [data for _, data in network.to_networkx().nodes(data="highway")] == ["traffic_signals"] * 2 + [None]


def test_a_network_has_none_unless_told() -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", free_flow_s=1.0)
    network = RoadNetwork.from_networkx(graph)
    assert network.signals.tolist() == [False, False]
    assert network.signals.dtype == np.bool_


def test_parts_keep_them_and_merged_junctions_have_those_of_any_node() -> None:
    graph = nx.DiGraph()
    for node, x in (("a", 0.0), ("b", 5.0), ("c", 105.0), ("d", 205.0)):
        graph.add_node(node, x=x + 1000, y=0.0)
    graph.nodes["b"]["highway"] = graph.nodes["d"]["highway"] = "traffic_signals"
    for one, other, length in (
        ("a", "b", 5.0),
        ("b", "c", 100.0),
        ("c", "b", 100.0),
        ("b", "a", 5.0),
        ("c", "d", 100.0),
    ):
        graph.add_edge(one, other, length=length, speed_kph=36.0)
    network = RoadNetwork.from_networkx(graph)
    assert marked(network.largest_component()) == ["b"]
    assert marked(network.subnetwork([4])) == ["d"]
    assert marked(network.consolidate(tolerance_m=10.0)) == ["a", "d"]


def test_networks_that_differ_in_signals_alone_are_not_equal() -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", free_flow_s=1.0)
    plain = RoadNetwork.from_networkx(graph)
    graph.nodes["b"]["highway"] = "traffic_signals"
    assert not RoadNetwork.from_networkx(graph).equals(plain)


def test_files_from_before_have_no_signals(tmp_path: Path) -> None:
    network = tricky_network()
    assert marked(network) == ["ä"]
    network.save(tmp_path / "now.npz")
    with np.load(tmp_path / "now.npz") as arrays:
        np.savez(tmp_path / "before.npz", **{name: arrays[name] for name in arrays.files if name != "signals"})
    network.to_geopackage(tmp_path / "roads.gpkg")
    with sqlite3.connect(tmp_path / "roads.gpkg") as base:
        base.execute("ALTER TABLE nodes DROP COLUMN signals")
    for before in (
        RoadNetwork.from_file(tmp_path / "before.npz"),
        RoadNetwork.from_geopackage(tmp_path / "roads.gpkg"),
    ):
        assert marked(before) == []
        assert before.labels == network.labels


@pytest.mark.parametrize("column", ["signals", "no_through"])
@pytest.mark.parametrize("n_bytes", [0, 2])
def test_a_row_of_signals_that_does_not_fit_is_refused(column: str, n_bytes: int, tmp_path: Path) -> None:
    network = tricky_network()
    network.save(tmp_path / "now.npz")
    with np.load(tmp_path / "now.npz") as arrays:
        np.savez(tmp_path / "bad.npz", **{**arrays, column: np.zeros(n_bytes, dtype=np.uint8)})
    with pytest.raises(NetworkError, match=f"4 truth values take 1 bytes, got {n_bytes}"):
        RoadNetwork.from_file(tmp_path / "bad.npz")
