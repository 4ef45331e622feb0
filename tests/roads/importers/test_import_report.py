"""The report of an import: extent, what was filled in and left out, signals, and trips to start with."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from command_line import routesim
from road_files import OSM_GRID_SIGNALS, osm_grid, shared

from routesim.roads.importers.report import ImportReport, example_trips
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import shortest_tree


def closed_grid(folder: Path) -> Path:
    """Write the grid with its first street closed to cars by one tag."""
    file = folder / "grid.osm"
    file.write_text(osm_grid().replace('<tag k="name" v="Straße 0"/>', '<tag k="access" v="no"/>'), encoding="utf-8")
    return file


def test_the_command_prints_it_and_writes_only_if_asked(tmp_path: Path) -> None:
    closed_grid(tmp_path)
    out = routesim("import", "grid.osm", cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    lines = out.stdout.splitlines()
    network = RoadNetwork.from_osm(tmp_path / "grid.osm")
    assert lines[0].startswith(f"grid.osm: {network.n_nodes} nodes, {network.n_edges} edges, ")
    assert lines[1] == "Bounding box (longitude and latitude): 7.00000, 50.00000 to 7.01000, 50.01000"
    share = network.imputed("speed").mean()
    assert lines[2].startswith(f"Filled in by rule, share of edges: speed {share:.0%}, lanes ")
    assert lines[2].endswith("capacity 100%, bpr 100%")
    assert "Traffic signals: 1 nodes, 0 with a known programme" in lines
    assert "Banned turns: 0 pairs of edges, 0 longer ways" in lines
    assert any(line.startswith("Left out: 1 ways closed to cars") for line in lines)
    assert len(lines[lines.index("Trips to start with, quickest paths on empty roads:") + 1 :]) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["grid.osm"]
    assert network.signals[network.node_index(OSM_GRID_SIGNALS)]


def test_bans_are_reported(tmp_path: Path) -> None:
    (tmp_path / "grid.osm").write_text(osm_grid(bans=True), encoding="utf-8")
    lines = ImportReport.of(RoadNetwork.from_osm(tmp_path / "grid.osm")).lines
    assert "Banned turns: 4 pairs of edges, 1 longer ways" in lines
    ignored = "Left out: 1 turn restrictions that depend on conditions, 1 turn restrictions for other vehicles"
    assert ignored in lines
    lines = ImportReport.of(RoadNetwork.from_tntp(shared("tntp/Anaheim/Anaheim_net.tntp"))).lines
    assert "Banned turns: unknown, as the source does not say" in lines


def test_example_trips_are_far_apart_and_each_end_is_used_once(tmp_path: Path) -> None:
    network = RoadNetwork.from_osm(closed_grid(tmp_path))
    trips = example_trips(network)
    assert trips == example_trips(network)
    ends = [end for trip in trips for end in (trip.origin, trip.destination)]
    assert len(set(ends)) == 6
    for trip in trips:
        times, _ = shortest_tree(network.graph, network.free_flow_s, network.node_index(trip.origin))
        assert trip.free_flow_s == times[network.node_index(trip.destination)]
        assert trip.free_flow_s >= np.median(times)
        assert trip.length_m > 0


def test_the_ends_of_a_line_are_the_first_example() -> None:
    graph = nx.DiGraph()
    for a, b in ((1, 2), (2, 3), (3, 4)):
        graph.add_edge(a, b, free_flow_s=60.0)
        graph.add_edge(b, a, free_flow_s=60.0)
    graph.add_edge(4, 5, free_flow_s=1e6)  # from where nobody comes back
    trips = example_trips(RoadNetwork.from_networkx(graph))
    assert [(trip.origin, trip.destination, trip.free_flow_s) for trip in trips] == [(4, 1, 180.0), (2, 3, 60.0)]
    assert np.isnan(trips[0].length_m)
    report = ImportReport.of(RoadNetwork.from_networkx(graph))
    assert report.bounds is None
    assert report.lines[-2:] == ["  node 4 to node 1: 3.0 min", "  node 2 to node 3: 1.0 min"]


def test_roads_that_lead_nowhere_and_back_have_no_examples() -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", free_flow_s=60.0)
    report = ImportReport.of(RoadNetwork.from_networkx(graph))
    assert report.examples == ()
    assert report.lines[-1] == "Trips to start with: none, as no two nodes reach each other"


@pytest.mark.parametrize("name", ["osm/andorra.osm.pbf", "tntp/Anaheim/Anaheim_net.tntp"])
def test_real_files(name: str, tmp_path: Path) -> None:
    out = routesim("import", str(shared(name)), "--out", "roads.npz", cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    assert out.stdout.startswith("roads.npz: ")
    report = ImportReport.of(RoadNetwork.from_file(tmp_path / "roads.npz"))
    assert out.stdout.splitlines()[1:] == report.lines[1:]
    assert len(report.examples) == 3


def test_units_are_given_on_the_command_line(tmp_path: Path) -> None:
    file = shared("tntp/SiouxFalls/SiouxFalls_net.tntp")
    out = routesim("import", str(file), "--time-unit", "h", cwd=tmp_path)
    assert "time_unit='min' would make the median 96.6 km/h" in out.stderr
    assert "Implausible: the median free-flow speed is 1.61 km/h; check the units" in out.stdout
    out = routesim("import", str(file), "--time-unit", "h/100", "--length-unit", "km", cwd=tmp_path)
    assert (out.returncode, out.stderr) == (0, "")
