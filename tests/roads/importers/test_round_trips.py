"""A network survives networkx, GraphML, GeoPackage and its own file with every array and label the same."""

import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from road_files import GMNS_LINKS, GMNS_NODES, TNTP_NET, osm_grid, tricky_network
from sumo_nets import CROSSROADS

from routesim.errors import NetworkError
from routesim.roads.cities import load_city
from routesim.roads.importers import FORMATS, read_network, write_network
from routesim.roads.importers.bans import Bans
from routesim.roads.network import RoadNetwork

Trip = Callable[[RoadNetwork, Path], RoadNetwork]


def through_networkx(network: RoadNetwork, _: Path) -> RoadNetwork:
    return RoadNetwork.from_networkx(network.to_networkx())


def through_graphml(network: RoadNetwork, folder: Path) -> RoadNetwork:
    network.to_graphml(folder / "n.graphml")
    return RoadNetwork.from_graphml(folder / "n.graphml")


def through_geopackage(network: RoadNetwork, folder: Path) -> RoadNetwork:
    network.to_geopackage(folder / "n.gpkg")
    return RoadNetwork.from_geopackage(folder / "n.gpkg")


def through_own_file(network: RoadNetwork, folder: Path) -> RoadNetwork:
    network.save(folder / "n.npz")
    return RoadNetwork.from_file(folder / "n.npz")


TRIPS = [through_networkx, through_graphml, through_geopackage, through_own_file]


@pytest.mark.parametrize("trip", TRIPS)
def test_nothing_is_lost(trip: Trip, tmp_path: Path) -> None:
    network = tricky_network()
    again = trip(network, tmp_path)
    assert again.labels == network.labels
    assert again.equals(network)
    assert not again.equals(network.subnetwork(np.arange(5), nodes=np.arange(4)))


@pytest.mark.parametrize("trip", TRIPS)
def test_bans_and_whether_they_are_known_come_back(trip: Trip, tmp_path: Path) -> None:
    network = random_bans(seed=3)
    assert len(network.banned_turns) > 20
    assert len(network.banned_ways) > 20
    assert not network.bans_known
    again = trip(network, tmp_path)
    assert (again.bans, again.bans_known) == (network.bans, False)
    assert again.equals(network)
    known = replace(network, bans_known=True)
    assert trip(known, tmp_path).equals(known)
    assert not trip(known, tmp_path).equals(network)
    free = replace(known, banned_turns=np.empty((0, 2), dtype=np.int32), banned_ways=())
    assert trip(free, tmp_path).equals(free)


def random_bans(seed: int) -> RoadNetwork:
    """Return a city in which turns and ways of three and four edges are banned at random."""
    network, rng = load_city("monaco"), np.random.default_rng(seed)
    ways: list[list[int]] = []
    for _ in range(90):
        way = [int(rng.integers(network.n_edges))]
        for _ in range(int(rng.integers(1, 4))):
            way.append(int(rng.choice(np.flatnonzero(network.tails == network.heads[way[-1]]))))
        ways.append(way)
    bans = Bans.of([tuple(way) for way in ways], known=False)
    return replace(network, **bans.columns)


def test_bans_of_edges_that_are_gone_go_with_them() -> None:
    network = tricky_network()
    graph = network.to_networkx()
    graph.remove_edge("5", "ä")  # edge 4, of which a turn and a way are banned
    again = RoadNetwork.from_networkx(graph)
    assert again.bans == [(3, 3)]
    for stated, why in (("[[3", "must be JSON"), ("{}", "a list of edges each"), ("[[1.5, 2]]", "by whole numbers")):
        graph.graph["banned_turns"] = stated
        with pytest.raises(NetworkError, match=f"banned_turns .*{why}"):
            RoadNetwork.from_networkx(graph)
    for stated, why in (("[[3]]", "two edges or more"), ("[[0, 1]]", "edges that follow each other")):
        graph.graph["banned_turns"] = stated
        with pytest.raises(NetworkError, match=why):
            RoadNetwork.from_networkx(graph)
    plain = nx.MultiDiGraph(banned_turns="[[0, 1]]")
    plain.add_edge(1, 2, free_flow_s=1.0)
    with pytest.raises(NetworkError, match="banned_turns needs an edge_index"):
        RoadNetwork.from_networkx(plain)


def test_graphs_of_openstreetmap_without_bans_do_not_know_them() -> None:
    graph = nx.MultiDiGraph(created_with="OSMnx 2.1.1")
    graph.add_edge(1, 2, length=10.0, highway="primary")
    assert not RoadNetwork.from_networkx(graph).bans_known
    graph.graph.clear()
    assert RoadNetwork.from_networkx(graph).bans_known


@pytest.mark.parametrize(
    ("sizes", "edges", "why"),
    [
        ([2.0], [0, 1], "must be whole numbers"),
        ([2], [0.0, 1.0], "must be whole numbers"),
        ([1], [0], "two edges or more"),
        ([-2, 4], [0, 1], "two edges or more"),
        ([2], [0, 1, 2], "as many edges as their sizes say"),
        ([2, 2], [0, 1], "as many edges as their sizes say"),
        ([2**62, 2**62], [0, 1], "two edges or more"),
        ([[2]], [0, 1], "must be whole numbers"),
    ],
)
def test_rows_of_bans_may_be_anything(sizes: list[float], edges: list[float], why: str) -> None:
    with pytest.raises(NetworkError, match=why):
        Bans.of_rows(np.array(sizes), np.array(edges), known=True)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("UPDATE banned_turns SET ban = 'x' WHERE rowid = 1", "whole numbers in ascending order"),
        ("UPDATE banned_turns SET ban = 99 WHERE rowid = 1", "whole numbers in ascending order"),
        ("UPDATE banned_turns SET edge = 5.5 WHERE rowid = 1", "must be whole numbers"),
        ("UPDATE banned_turns SET edge = NULL WHERE rowid = 1", "must be whole numbers"),
        ("UPDATE banned_turns SET edge = 10000 WHERE rowid = 1", "banned_turns must name edges from 0"),
        ("DELETE FROM banned_turns WHERE rowid = 1", "two edges or more"),
        ("ALTER TABLE banned_turns RENAME COLUMN edge TO e", "needs a plain column edge"),
    ],
)
def test_a_geopackage_with_other_bans_is_refused(change: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "n.gpkg"
    tricky_network().to_geopackage(file)
    with closing(sqlite3.connect(file)) as base:
        base.execute(change)
        base.commit()
    with pytest.raises(NetworkError, match=rf"n\.gpkg.*{why}"):
        RoadNetwork.from_geopackage(file)


@pytest.mark.parametrize("trip", TRIPS)
def test_nothing_of_a_city_is_lost(trip: Trip, tmp_path: Path) -> None:
    network = load_city("monaco")
    assert trip(network, tmp_path).equals(network)


@pytest.mark.parametrize("trip", TRIPS)
def test_edges_in_any_order_and_no_edges_at_all(trip: Trip, tmp_path: Path) -> None:
    network = tricky_network()
    turned = network.subnetwork(np.arange(network.n_edges)[::-1])
    assert trip(turned, tmp_path).equals(turned)
    lonely = network.subnetwork([], nodes=[1])
    assert trip(lonely, tmp_path).equals(lonely)


# Every text but those XML has no way to write, whose refusal has a test of its own.
texts = st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"), max_size=6)


@st.composite
def networks(draw: st.DrawFn) -> RoadNetwork:
    label = st.one_of(st.integers(), texts, st.tuples(st.integers(), texts))
    labels = draw(st.lists(label, min_size=1, max_size=6, unique_by=lambda value: (type(value), value)))
    graph = nx.MultiDiGraph(crs=draw(st.sampled_from(["EPSG:4326", "planar", "EPSG:3879"])))
    graph.graph["name"] = draw(texts)
    degrees = st.floats(-90, 90)
    for node in labels:
        graph.add_node(node, **({"x": draw(degrees), "y": draw(degrees)} if draw(st.booleans()) else {}))
    positive = st.floats(1e-6, 1e9)
    for _ in range(draw(st.integers(0, 6))):
        data = {"free_flow_s": draw(positive), "name": draw(texts)}
        for attribute in ("length_m", "capacity_vph", "bpr_alpha", "speed_kph"):
            if draw(st.booleans()):
                data[attribute] = draw(positive)
        if draw(st.booleans()):
            points = draw(st.lists(st.tuples(degrees, degrees), min_size=2, max_size=4))
            data["geometry"] = f"LINESTRING ({', '.join(f'{x!r} {y!r}' for x, y in points)})"
        graph.add_edge(draw(st.sampled_from(labels)), draw(st.sampled_from(labels)), **data)
    return RoadNetwork.from_networkx(graph)


@pytest.mark.parametrize("trip", [through_networkx, through_graphml, through_own_file])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(network=networks())
def test_any_network_survives(trip: Trip, tmp_path: Path, network: RoadNetwork) -> None:
    assert trip(network, tmp_path).equals(network)


def test_a_label_no_file_can_hold_is_named(tmp_path: Path) -> None:
    graph = nx.DiGraph()
    graph.add_node(frozenset({1}))
    network = RoadNetwork.from_networkx(graph)
    for write in (network.save, network.to_graphml, network.to_geopackage):
        with pytest.raises(NetworkError, match="frozenset"):
            write(tmp_path / "n.out")
    assert list(tmp_path.iterdir()) == []


def test_osmnx_and_networkx_read_our_graphml(tmp_path: Path) -> None:
    import osmnx

    network = load_city("helsinki")
    network.to_graphml(tmp_path / "helsinki.graphml")
    graph = osmnx.load_graphml(tmp_path / "helsinki.graphml")
    assert set(graph.nodes) == set(network.labels)
    assert graph.number_of_edges() == network.n_edges
    lengths = sum(length for _, _, length in graph.edges(data="length"))
    assert lengths == pytest.approx(float(network.length_m.sum()))
    assert nx.read_graphml(tmp_path / "helsinki.graphml").number_of_edges() == network.n_edges


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "n.graphml"
    tricky_network().to_graphml(target)
    before = target.read_bytes()
    graph = nx.DiGraph()
    graph.add_edge(1, 2, free_flow_s=1, name="bell \x07")
    with pytest.raises(NetworkError, match="XML cannot hold"):
        RoadNetwork.from_networkx(graph).to_graphml(target)
    assert target.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["n.graphml"]


def test_writing_where_nothing_can_be_written(tmp_path: Path) -> None:
    network = tricky_network()
    for write in (network.save, network.to_graphml, network.to_geopackage):
        with pytest.raises(NetworkError, match="cannot write"):
            write(tmp_path / "no" / "such" / "folder.x")
        with pytest.raises(NetworkError, match="is a folder"):
            write(tmp_path)


def test_the_own_file_is_an_npz_of_plain_arrays(tmp_path: Path) -> None:
    load_city("helsinki").save(tmp_path / "h.npz")
    with np.load(tmp_path / "h.npz", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype.kind in "biuf" for name in arrays.files)
    load_city("helsinki").save(tmp_path / "again.npz")
    assert (tmp_path / "h.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "h.npz") as archive:
        assert archive.testzip() is None


def test_files_are_read_and_written_by_their_endings(tmp_path: Path) -> None:
    network = tricky_network()
    for ending in (".npz", ".graphml", ".gpkg"):
        write_network(network, tmp_path / f"N{ending.upper()}")
        assert read_network(tmp_path / f"N{ending.upper()}").equals(network)
    (tmp_path / "grid.osm").write_text(osm_grid(), encoding="utf-8")
    assert read_network(tmp_path / "grid.osm").n_nodes == 34
    (tmp_path / "t_net.tntp").write_text(TNTP_NET)
    assert read_network(tmp_path / "t_net.tntp").n_nodes == 3
    (tmp_path / "C.NET.XML").write_text(CROSSROADS, encoding="utf-8")
    assert read_network(tmp_path / "C.NET.XML").n_nodes == 4
    (tmp_path / "node.csv").write_text(GMNS_NODES)
    (tmp_path / "link.csv").write_text(GMNS_LINKS)
    assert read_network(tmp_path).n_nodes == 3
    for path in (tmp_path / "roads.shp", "Piedmont, California, USA"):
        with pytest.raises(NetworkError, match="no format of roads is known by the ending"):
            read_network(path)
    with pytest.raises(NetworkError, match=r"written as \.npz, \.graphml, \.gpkg, not as 'n\.osm\.pbf'"):
        write_network(network, tmp_path / "n.osm.pbf")


def test_the_table_of_formats_names_functions_that_exist() -> None:
    for reader, writer in FORMATS.values():
        for function in filter(None, (reader, writer)):
            module, name = function.split(".")
            assert callable(getattr(import_module(f"routesim.roads.importers.{module}"), name))
