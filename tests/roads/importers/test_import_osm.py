"""OpenStreetMap files: the same roads from every format, merged as osmnx merges them, with osmnx's times."""

import bz2
import gzip
from collections import Counter
from collections.abc import Hashable
from itertools import pairwise
from pathlib import Path

import numpy as np
import osmium
import osmnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from road_files import OSM_GRID_SIDE, OSM_GRID_SIGNALS, osm_grid, shared

from routesim.errors import NetworkError
from routesim.roads.importers import pbf
from routesim.roads.importers.simplify import merge_pieces
from routesim.roads.importers.tags import is_drivable
from routesim.roads.network import RoadNetwork
from routesim.roads.places import haversine_m

REAL = ["andorra.osm.pbf", "liechtenstein.osm.pbf", "krems.osm.gz", "west-oakland.osm.bz2"]
# Nodes and edges: all roads as they are joined, and the largest part within which all reach all.
COUNTS = {
    "andorra.osm.pbf": ((1178, 2385), (1149, 2356)),
    "liechtenstein.osm.pbf": ((1771, 4200), (1757, 4184)),
    "krems.osm.gz": ((353, 721), (274, 573)),
    "west-oakland.osm.bz2": ((28, 57), (22, 51)),
}


def write_osm(folder: Path, text: str, name: str = "small.osm") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def as_pbf(source: Path, target: Path, options: str = "") -> Path:
    with osmium.SimpleWriter(osmium.io.File(str(target), f"pbf{options}")) as writer:
        for item in osmium.FileProcessor(str(source), osmium.osm.NODE | osmium.osm.WAY):
            writer.add(item)
    return target


def test_a_grid_of_streets_by_hand(tmp_path: Path) -> None:
    network = RoadNetwork.from_osm(write_osm(tmp_path, osm_grid()))
    side = OSM_GRID_SIDE
    # Nodes are the crossings of rows and columns; a corner of two two-way streets is merged away.
    blocks = side - 1
    row_edges = 2 * side * blocks
    column_edges = sum(blocks * (1, 1, 2)[i % 3] for i in range(side))
    merged_corners = 2 if (side - 1) % 3 == 2 else 0
    assert network.n_nodes == side * side - merged_corners
    assert network.n_edges == row_edges + column_edges - 2 * merged_corners
    primary = sum(highway == "primary" for highway in network.highways)
    assert network.names.count("") == primary - 2 * merged_corners  # a corner's edges take the row's name
    residential = np.array([h == "residential" for h in network.highways])
    assert (network.speed_kph[residential] == 30).all()
    assert network.imputed("speed").tolist() == [h == "primary" for h in network.highways]
    columns = np.array([h == "primary" for h in network.highways])
    assert set(network.lanes[columns].tolist()) <= {1.0, 3.0}
    assert network.attribution.startswith("Road data © OpenStreetMap contributors")
    assert [network.labels[i] for i in np.flatnonzero(network.signals)] == [OSM_GRID_SIGNALS]


def test_every_format_gives_the_same_network(tmp_path: Path) -> None:
    plain = write_osm(tmp_path, osm_grid())
    (tmp_path / "small.osm.gz").write_bytes(gzip.compress(plain.read_bytes()))
    (tmp_path / "small.osm.bz2").write_bytes(bz2.compress(plain.read_bytes()))
    utf16 = plain.read_text(encoding="utf-8").replace("UTF-8", "UTF-16").encode("utf-16")
    (tmp_path / "small.utf16.osm").write_bytes(utf16)
    files = [tmp_path / "small.osm.gz", tmp_path / "small.osm.bz2", tmp_path / "small.utf16.osm"]
    for i, options in enumerate(["", ",pbf_compression=none", ",pbf_dense_nodes=false", ",pbf_compression=lz4"]):
        files.append(as_pbf(plain, tmp_path / f"small{i}.osm.pbf", options))
    first = RoadNetwork.from_osm(plain, name="n")
    for file in files[:-1]:
        assert RoadNetwork.from_osm(file, name="n").equals(first), file
    with pytest.raises(ValueError, match="packed in a way other than zlib or lzma"):
        RoadNetwork.from_osm(files[-1])


def test_order_of_elements_does_not_matter_and_deleted_ones_do_not_count(tmp_path: Path) -> None:
    lines = osm_grid().splitlines()
    turned = [*lines[:2], *lines[-2:1:-1], "</osm>"]
    deleted = '<node id="1" lat="0" lon="0" action="delete"/><way id="9" visible="false"><nd ref="1"/></way>'
    a = RoadNetwork.from_osm(write_osm(tmp_path, "\n".join(lines), "n.osm"))
    b = RoadNetwork.from_osm(write_osm(tmp_path, "\n".join([*turned[:-1], deleted, "</osm>"]), "n.osm"))
    assert sorted(zip(a.tails, a.heads, a.length_m, strict=True)) == sorted(
        zip(b.tails, b.heads, b.length_m, strict=True)
    )


SHAPES = """<osm version="0.6">
<node id="1" lat="50.000" lon="7.000"/><node id="2" lat="50.000" lon="7.001"/>
<node id="3" lat="50.001" lon="7.001"/><node id="4" lat="50.001" lon="7.000"/>
<node id="5" lat="50.000" lon="7.002"/><node id="6" lat="50.001" lon="7.002"/>
<way id="1"><nd ref="1"/><nd ref="2"/><tag k="highway" v="residential"/></way>
{ways}
</osm>"""


def from_ways(folder: Path, ways: str, **options: bool) -> RoadNetwork:
    return RoadNetwork.from_osm(write_osm(folder, SHAPES.format(ways=ways)), **options)


def ends(network: RoadNetwork) -> list[tuple[object, object, int]]:
    return sorted(
        (network.labels[t], network.labels[h], int(k))
        for t, h, k in zip(network.tails, network.heads, network.keys, strict=True)
    )


def test_a_loop_at_a_junction_stays_a_loop(tmp_path: Path) -> None:
    loop = '<way id="2"><nd ref="2"/><nd ref="5"/><nd ref="6"/><nd ref="2"/><tag k="highway" v="road"/></way>'
    network = from_ways(tmp_path, loop)
    assert ends(network) == [(1, 2, 0), (2, 1, 0), (2, 2, 0), (2, 2, 1)]


def test_two_streets_between_the_same_junctions_stay_two(tmp_path: Path) -> None:
    streets = (
        '<way id="2"><nd ref="1"/><nd ref="4"/><nd ref="3"/><nd ref="2"/><tag k="highway" v="primary"/></way>'
        '<way id="3"><nd ref="2"/><nd ref="5"/><tag k="highway" v="primary"/></way>'
        '<way id="4"><nd ref="1"/><nd ref="6"/><tag k="highway" v="primary"/></way>'
    )
    network = from_ways(tmp_path, streets)
    assert ends(network).count((1, 2, 0)) == 1
    assert ends(network).count((1, 2, 1)) == 1


def test_the_same_way_drawn_twice_gives_parallel_edges(tmp_path: Path) -> None:
    network = from_ways(tmp_path, '<way id="2"><nd ref="1"/><nd ref="2"/><tag k="highway" v="primary"/></way>')
    assert ends(network) == [(1, 2, 0), (1, 2, 1), (2, 1, 0), (2, 1, 1)]


def test_where_one_way_becomes_two_way_a_node_remains(tmp_path: Path) -> None:
    oneway = '<tag k="highway" v="primary"/><tag k="oneway" v="yes"/>'
    ways = f'<way id="2"><nd ref="2"/><nd ref="3"/>{oneway}</way>'
    network = from_ways(tmp_path, ways, largest_component=False)
    assert ends(network) == [(1, 2, 0), (2, 1, 0), (2, 3, 0)]
    assert ends(from_ways(tmp_path, ways)) == [(1, 2, 0), (2, 1, 0)]


def test_a_ring_road_keeps_one_node(tmp_path: Path) -> None:
    ring = '<osm><node id="1" lat="1" lon="1"/><node id="2" lat="1" lon="2"/><node id="3" lat="2" lon="2"/>'
    ring += '<way id="1"><nd ref="1"/><nd ref="2"/><nd ref="3"/><nd ref="1"/><tag k="highway" v="primary"/></way>'
    ring += "</osm>"
    network = RoadNetwork.from_osm(write_osm(tmp_path, ring))
    assert ends(network) == [(1, 1, 0), (1, 1, 1)]
    assert network.length_m[0] == pytest.approx(network.length_m[1])


def test_a_merged_edge_adds_times_and_takes_the_narrowest_lanes_and_the_longest_name(tmp_path: Path) -> None:
    ways = (
        '<way id="2"><nd ref="2"/><nd ref="3"/><tag k="highway" v="primary"/><tag k="name" v="Long"/>'
        '<tag k="maxspeed" v="36"/><tag k="lanes" v="4"/></way>'
    )
    network = from_ways(tmp_path, ways)
    assert ends(network) == [(1, 3, 0), (3, 1, 0)]
    first, second = (float(haversine_m(*map(np.array, p))) for p in ((7.0, 50, 7.001, 50), (7.0, 50, 7.0, 50.001)))
    seconds = first / 30 * 3.6 + second / 10
    assert network.free_flow_s.tolist() == pytest.approx([seconds, seconds])
    assert network.lanes.tolist() == [1.0, 1.0]
    assert network.capacity_vph.tolist() == [600.0, 600.0]
    assert network.names == ("Long", "Long")
    assert network.imputed("speed").all()
    assert len(network.shape(0)) == 3


def test_a_way_that_leaves_the_extract_is_cut_there(tmp_path: Path) -> None:
    ways = '<way id="2"><nd ref="2"/><nd ref="3"/><nd ref="99"/><nd ref="4"/><tag k="highway" v="road"/></way>'
    assert ends(from_ways(tmp_path, ways)) == [(1, 3, 0), (3, 1, 0)]


def test_unsimplified_streets_keep_every_point(tmp_path: Path) -> None:
    ways = '<way id="2"><nd ref="2"/><nd ref="3"/><tag k="highway" v="primary"/></way>'
    assert from_ways(tmp_path, ways, simplify=False).labels == (1, 2, 3)


pieces_of_streets = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=20)


@settings(max_examples=200, deadline=None)
@given(pieces_of_streets)
def test_merging_uses_every_piece_once_in_unbroken_lines(pieces: list[tuple[int, int]]) -> None:
    tails, heads = (np.array(column, dtype=np.int64) for column in zip(*pieces, strict=True))
    order, offsets = merge_pieces(8, tails, heads)
    assert sorted(order.tolist()) == list(range(len(pieces)))
    degree = Counter(tails.tolist()) + Counter(heads.tolist())
    for start, end in pairwise(offsets.tolist()):
        line = order[start:end]
        assert (heads[line[:-1]] == tails[line[1:]]).all()
        inner = heads[line[:-1]].tolist()
        assert all(degree[point] in (2, 4) for point in inner)
        assert len(set(inner)) == len(inner)


def drivable_only(source: Path, target: Path) -> Path:
    """Write the drivable part of a file for osmnx, which does not choose itself."""
    kinds = osmium.osm.NODE | osmium.osm.WAY
    ways = {
        item.id: [node.ref for node in item.nodes]
        for item in osmium.FileProcessor(str(source), osmium.osm.WAY)
        if isinstance(item, osmium.osm.Way) and is_drivable(dict(item.tags))
    }
    needed = {ref for refs in ways.values() for ref in refs}
    with osmium.SimpleWriter(str(target)) as writer:
        for item in osmium.FileProcessor(str(source), kinds):
            if item.id in (needed if isinstance(item, osmium.osm.Node) else ways):
                writer.add(item)
    return target


@pytest.mark.parametrize("name", REAL)
def test_real_files_give_the_graph_osmnx_gives(name: str, tmp_path: Path) -> None:
    file = shared(f"osm/{name}")
    raw = osmnx.graph_from_xml(drivable_only(file, tmp_path / "d.osm"), simplify=False, retain_all=True)
    graph = osmnx.simplify_graph(raw, remove_rings=False)
    network = RoadNetwork.from_osm(file, largest_component=False)
    assert (network.n_nodes, network.n_edges) == COUNTS[name][0]
    theirs = Counter(graph.edges())
    ours = Counter((u, v) for u, v, _ in ends(network))
    assert ours == theirs
    # Free-flow times where a single speed limit is tagged.
    graph = osmnx.add_edge_travel_times(osmnx.add_edge_speeds(graph, fallback=50))
    where = {(u, v): e for e, (u, v) in enumerate(zip(network.edges.u, network.edges.v, strict=True))}
    assumed = network.imputed("speed")
    compared = 0
    for u, v, data in graph.edges(data=True):
        if theirs[u, v] == 1 and isinstance(data.get("maxspeed"), str) and not assumed[where[u, v]]:
            assert network.free_flow_s[where[u, v]] == pytest.approx(data["travel_time"], rel=1e-4)
            compared += 1
    assert compared > 50 or name == "west-oakland.osm.bz2"


@pytest.mark.parametrize("name", REAL)
def test_real_files_have_these_counts_and_their_lengths_are_right(name: str) -> None:
    network = RoadNetwork.from_osm(shared(f"osm/{name}"))
    assert (network.n_nodes, network.n_edges) == COUNTS[name][1]
    assert network.largest_component() is network
    x, y = network.shape_xy[:, 0], network.shape_xy[:, 1]
    step = haversine_m(x[:-1], y[:-1], x[1:], y[1:])
    inside = np.ones(len(step), dtype=np.bool_)
    inside[network.shape_offsets[1:-1] - 1] = False
    assert network.length_m.sum() == pytest.approx(step[inside].sum(), rel=1e-9)
    starts = network.shape_xy[network.shape_offsets[:-1]]
    assert np.array_equal(starts, np.column_stack((network.lon, network.lat))[network.tails])


def test_osmium_reads_the_same_places_from_a_pbf(tmp_path: Path) -> None:
    """An independent reader agrees on every coordinate, bit for bit."""
    file = as_pbf(write_osm(tmp_path, osm_grid()), tmp_path / "grid.osm.pbf")
    network = RoadNetwork.from_osm(file, simplify=False)
    places: dict[Hashable, tuple[float, float]] = {
        item.id: (item.lon, item.lat)
        for item in osmium.FileProcessor(str(file), osmium.osm.NODE)
        if isinstance(item, osmium.osm.Node)
    }
    for label, lon, lat in zip(network.labels, network.lon, network.lat, strict=True):
        assert places[label] == (lon, lat)


@pytest.mark.parametrize("name", ["andorra.osm.pbf", "liechtenstein.osm.pbf"])
def test_threads_read_the_same_network(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = shared(f"osm/{name}")
    by_threads = RoadNetwork.from_osm(file, largest_component=False)
    assert len(pbf.PbfFile(file, None).blobs) > 2 * pbf._MOST_THREADS
    monkeypatch.setattr(pbf, "_FEW_BLOBS", 10**9)
    one_by_one = RoadNetwork.from_osm(file, largest_component=False)
    assert one_by_one.equals(by_threads)
    assert one_by_one.left_out == by_threads.left_out
    # No blob is taken for one of nodes only by its beginning.
    monkeypatch.setattr(pbf, "holds_only_nodes", lambda _: False)
    assert RoadNetwork.from_osm(file, largest_component=False).equals(by_threads)


@pytest.mark.parametrize("at", [0, 3, 5])
def test_of_several_damaged_blobs_the_first_is_named(at: int, tmp_path: Path) -> None:
    source = shared("osm/andorra.osm.pbf")
    blobs = pbf.PbfFile(source, None).blobs
    content = bytearray(source.read_bytes())
    for begin, size in (blobs[at], blobs[-1]):
        content[begin + 12 : begin + size] = bytes(size - 12)
    (tmp_path / "n.osm.pbf").write_bytes(content)
    with pytest.raises(NetworkError, match=f"n.osm.pbf byte {blobs[at][0]}: the blob there is damaged"):
        RoadNetwork.from_osm(tmp_path / "n.osm.pbf")
