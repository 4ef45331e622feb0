"""Modelled volumes beside counts: GEH by hand, and which roads a row of counts means."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import routesim as rs
from routesim.errors import InputError


def street() -> rs.RoadNetwork:
    """A two-way street eastwards from a to b and c; each piece is some 686 m long."""
    graph = nx.MultiDiGraph(crs="EPSG:4326")
    for label, x in (("a", 4.00), ("b", 4.01), ("c", 4.02)):
        graph.add_node(label, x=x, y=52.0)
    for one, other in (("a", "b"), ("b", "c")):
        for u, v in ((one, other), (other, one)):
            graph.add_edge(u, v, length=686.0, free_flow_s=50.0, capacity_vph=1000.0, name="Main Street")
    return rs.RoadNetwork.from_networkx(graph)


def assignment() -> rs.Assignment:
    """100 vehicles an hour from a to c, 40 from c to b."""
    od = {"origin": ["a", "c"], "destination": ["c", "b"], "vehicles": [100.0, 40.0]}
    return rs.assign(street(), od)


def test_geh_by_hand() -> None:
    """2 * 100^2 / 2100 is 9.524, its root 3.086; 2 * 50^2 / 150 is 33.3, its root 5.774."""
    assert rs.geh([1100.0, 50.0, 0.0], [1000.0, 100.0, 0.0]) == pytest.approx([3.0861, 5.7735, 0.0], abs=1e-4)
    with pytest.raises(InputError, match="negative"):
        rs.geh([-1.0], [5.0])


def test_counts_by_edge_nodes_and_place_are_of_the_same_roads(tmp_path: Path) -> None:
    found = assignment()
    by_nodes = rs.compare_counts(found, {"u": ["a", "c"], "v": ["b", "b"], "count": [90, 60]})
    assert by_nodes.table.modelled_vph.tolist() == [100.0, 40.0]
    assert by_nodes.table.geh.tolist() == pytest.approx([np.sqrt(200 / 190), np.sqrt(800 / 100)])
    assert by_nodes.table.name.tolist() == ["Main Street"] * 2
    edges = [place[0] for place in by_nodes.table.edges]
    by_edge = rs.compare_counts(found, {"edge": edges, "count": [90, 60]})
    assert by_edge.table.geh.tolist() == by_nodes.table.geh.tolist()
    file = tmp_path / "counts.csv"
    file.write_text("lon,lat,count,bearing\n4.015,52.0003,140,90\n4.015,52.0003,40,270\n")
    by_place = rs.compare_counts(found, file)
    assert by_place.table.modelled_vph.tolist() == [100.0, 40.0]
    both = rs.compare_counts(found, {"lon": [4.015], "lat": [52.0003], "count": [140]})
    assert (both.table.modelled_vph.tolist(), both.table.geh.tolist()) == ([140.0], [0.0])
    assert repr(by_place) == (
        "<CountComparison: 2 places, GEH below 5 at 100%, root mean square error 28.28 vehicles an hour>"
    )


def test_counts_of_traffic_are_those_of_their_times() -> None:
    trips = {"origin": ["a"] * 4, "destination": ["b"] * 4, "departure_s": [0.0, 10.0, 110.0, 210.0]}
    simulator = rs.TrafficSimulator(street(), rs.Demand.from_trips(trips), bin_s=100.0)
    traffic = simulator.run(rs.FreeFlowRouter())
    table = {"u": ["a"] * 3, "v": ["b"] * 3, "count": [2, 1, 3], "start_s": [0, 100, 50], "end_s": [100, 200, 200]}
    found = rs.compare_counts(traffic, table).table
    assert found.counted_vph.tolist() == pytest.approx([72.0, 36.0, 72.0])
    # Half of the first bin lies in the last time, so one of its two vehicles counts there.
    assert found.modelled_vph.tolist() == pytest.approx([72.0, 36.0, 48.0])
    whole = rs.compare_counts(traffic, {"u": ["a"], "v": ["b"], "count": [60]}).table
    assert whole.modelled_vph.tolist() == pytest.approx(
        [(3 + 0.1) * 3600 / 210]
    )  # from the first departure to the last


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("edge,count\n9,5\n", "row 2, column edge: the value is 9; edges run from 0 to 3"),
        ("edge,count\n1,5\n0,x\n", "row 3, column count: the value is 'x', which is no finite number"),
        ("edge,count\n1,-5\n", "row 2, column count: the value is -5; give a number of at least 0"),
        ("u,v,count\na,c,5\n", "row 2, column u, v: .*no edge leads from 'a' to 'c'; name two nodes"),
        ("u,v,count\na,x,5\n", "row 2, column u, v: .*no node 'x'"),
        ("lon,lat,count\n4.0,52.1,5\n", "row 2, column lon, lat: .* with no such road within 100 m"),
        ("place,count\n1,5\n", "row 1: a column 'edge' is needed .or u and v, or lon and lat."),
        ("edge,count,start_s\n1,5,0\n", "row 1 has one of start_s and end_s"),
        ("edge,count,start_s,end_s\n1,5,9,9\n", "row 2, column end_s: the value is 9, and start_s is 9"),
    ],
)
def test_mistakes_in_counts_are_named(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "counts.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=f"counts.csv {message}"):
        rs.compare_counts(assignment(), file)


def test_the_scatter_plot_has_a_point_for_each_place(tmp_path: Path) -> None:
    comparison = rs.compare_counts(assignment(), {"u": ["a", "b", "c"], "v": ["b", "c", "b"], "count": [90, 60, 0]})
    figure = rs.plot_counts(comparison, tmp_path / "counts.png")
    points = np.concatenate([dots.get_offsets() for dots in figure.axes[0].collections])
    assert sorted(map(tuple, points.tolist())) == [(0.0, 40.0), (60.0, 100.0), (90.0, 100.0)]
    # On the upper dashed line GEH is 5 everywhere.
    line = figure.axes[0].lines[1]
    assert rs.geh(line.get_ydata()[1:], line.get_xdata()[1:]) == pytest.approx(np.full(199, 5.0))
    assert (tmp_path / "counts.png").read_bytes()[:4] == b"\x89PNG"
