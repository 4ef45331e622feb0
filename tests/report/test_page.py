"""What goes into a page: everything inside one file, the same record the same page, numbers as they were."""

import base64
import json
import re
import zlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import records

import routesim as rs
from routesim.errors import InputError, ResultsError
from routesim.report.drawing import draw, draw_network, ends
from routesim.report.packing import PRECISION, pack_lines, quantise, safe_json
from routesim.report.page import UNUSED, page_text, write_page
from routesim.report.palette import load_classes
from routesim.report.plots import class_shares
from routesim.report.routes_table import route_rows
from routesim.results.record import Record


def parts(text: str) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    """The page's JSON and its arrays, read as its script does."""
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    raw = zlib.decompress(base64.b64decode(text.split('id="bulk">')[1].split("</script>")[0]))
    kinds = {"u1": np.uint8, "i4": np.dtype("<i4"), "f4": np.dtype("<f4")}
    arrays = {
        name: np.frombuffer(raw[start : start + size], dtype=kinds[kind])
        for name, (start, size, kind) in data["sections"].items()
    }
    return data, arrays


def unpack_lines(content: np.ndarray) -> list[np.ndarray]:
    """The slow, obvious twin of `pack_lines` and of the page's own reader."""
    numbers, value, shift = [], 0, 0
    for byte in content.tolist():
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value = shift = 0
    lines, at, place = [], np.zeros(2, dtype=np.int64), 0
    while place < len(numbers):
        count = numbers[place]
        turned = np.array(numbers[place + 1 : place + 1 + 2 * count]).reshape(count, 2)
        steps = np.where(turned % 2, -(turned + 1) // 2, turned // 2)
        points = at + np.cumsum(steps, axis=0)
        lines.append(points / PRECISION)
        at, place = points[-1], place + 1 + 2 * count
    return lines


def test_lines_come_back_to_a_metre() -> None:
    rng = np.random.default_rng(3)
    lines = [rng.uniform((-180, -90), (180, 90), size=(count, 2)) for count in (2, 5, 1, 300)]
    lines.append(np.array([[0.0, 0.0], [0.0, 0.0], [-1e-5, 1e-5]]))
    again = unpack_lines(pack_lines(lines))
    assert len(again) == len(lines)
    for line, back in zip(lines, again, strict=True):
        np.testing.assert_allclose(back, line, atol=0.51 / PRECISION)
    assert len(pack_lines([])) == 0


def test_small_loads_keep_their_digits() -> None:
    loads = np.array([0.0, 1e-9, 0.01, 1.0, 4.0])
    packed = quantise(loads, 4.0)
    assert packed[0] == 0
    assert (packed[1:] > 0).all()
    np.testing.assert_allclose(4.0 * (packed / 255.0) ** 2, loads, atol=4.0 * 2 / 255)
    assert quantise(np.zeros(3), 0.0).tolist() == [0, 0, 0]


def test_json_ends_no_script() -> None:
    text = safe_json({"a": "</script><!-- \u2028 \u2029 é"})
    assert "<" not in text
    assert text.isascii()
    assert json.loads(text) == {"a": "</script><!-- \u2028 \u2029 é"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        safe_json(float("nan"))


@pytest.mark.parametrize("name", records.MAKERS)
def test_a_page_holds_what_the_record_says(name: str) -> None:
    record = records.MAKERS[name]()
    data, arrays = parts(page_text(record))
    edges = len(arrays["edgeName"])
    lines = unpack_lines(arrays["edgeLines"])
    assert edges == len(lines) >= len(record.edges)
    shown = np.searchsorted(np.union1d(record.edges, [e for route in record.routes for e in route]), record.edges)
    for number, played in enumerate(record.learners):
        classes = arrays[f"classes{number}"].reshape(-1, edges)
        np.testing.assert_array_equal(
            classes[:, shown], np.where(played.loads > 0, load_classes(played.ratios), UNUSED)
        )
        ratios = data["mostRatio"] ** (arrays[f"ratios{number}"].reshape(-1, edges) / 255.0)
        np.testing.assert_allclose(ratios[:, shown], played.ratios, rtol=0.05)
        np.testing.assert_allclose(arrays[f"shares{number}"], played.shares.ravel(), atol=1e-6)
        assert data["learners"][number]["label"] == played.label
    drawing = draw(record)
    for edge, line in zip(record.edges.tolist(), [lines[place] for place in shown], strict=True):
        np.testing.assert_allclose(line, drawing.lines[edge], atol=1e-5)


def test_nothing_is_fetched_from_anywhere() -> None:
    text = page_text(records.small_city())
    assert not re.findall(r"<(?:script|img|iframe)[^>]+(?:src|href)\s*=", text)
    assert re.findall(r"<link[^>]*>", text) == ['<link rel="icon" href="data:,">']
    assert not re.findall(r"url\((?!data:|#)", text)
    assert "default-src 'none'" in text
    assert "OpenStreetMap" in text
    assert "BSD-2-Clause" in text
    assert "user-scalable" not in text
    assert len(text) < 300_000


def test_the_same_record_gives_the_same_page(tmp_path: Path) -> None:
    record = records.small_city()
    record.write(tmp_path)
    assert page_text(record) == page_text(record)
    assert page_text(Record.read(tmp_path)) == page_text(record)


def test_two_learners_are_chosen_by_their_labels() -> None:
    record = records.small_city()
    assert parts(page_text(record))[0]["shown"] == [0, 1]
    assert parts(page_text(record, learners=["UCB1"], step=-1))[0]["shown"] == [2]
    assert parts(page_text(record, learners=["UCB1", "CARMAB-st"]))[0]["shown"] == [2, 0]
    with pytest.raises(InputError, match="no learner 'UCB2' in this record; it has 'CARMAB-st'"):
        page_text(record, learners=["UCB2"])
    with pytest.raises(InputError, match="one learner or two"):
        page_text(record, learners=["UCB1", "UCB1"])
    with pytest.raises(InputError, match="steps run from 0 to 47"):
        page_text(record, step=48)


def test_traffic_opens_at_its_busiest_step() -> None:
    record = records.traffic()
    busiest = np.argmax(sum(played.loads.sum(axis=1) for played in record.learners))
    assert parts(page_text(record))[0]["step"] == busiest
    assert parts(page_text(records.small_city()))[0]["step"] == 47


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "map.html"
    path.write_text("earlier")
    with pytest.raises(InputError, match="no learner"):
        write_page(path, records.arms(), learners=["nobody"])
    assert path.read_text() == "earlier"
    with pytest.raises(ResultsError, match="cannot write"):
        write_page(tmp_path / "nowhere" / "map.html", records.arms())
    with pytest.raises(ResultsError, match="cannot write"):
        write_page(tmp_path, records.arms())
    assert [file.name for file in tmp_path.iterdir()] == ["map.html"]


def test_the_backdrop_draws_a_street_with_two_directions_once() -> None:
    graph = nx.DiGraph()
    graph.add_node("a", x=24.0, y=60.0)
    graph.add_node("b", x=24.01, y=60.0)
    for tail, head in (("a", "b"), ("b", "a")):
        graph.add_edge(tail, head, free_flow_s=60.0)
    record = records.small_city()
    learner = replace(
        record.learners[0],
        loads=np.ones((48, 1)),
        ratios=np.ones((48, 1)),
        shares=np.ones((48, 1)),
        route_values=np.ones(1),
    )
    network = rs.RoadNetwork.from_networkx(graph)
    one = replace(record, network=network, edges=np.array([0], dtype=np.int32), routes=((0,),), learners=(learner,))
    _, arrays = parts(page_text(one))
    assert len(unpack_lines(arrays["roads0"])) == 1


def test_a_route_has_a_street_and_shares_over_all_time() -> None:
    record = records.small_city()
    assert record.network is not None
    rows = route_rows(record)
    for row, route in zip(rows, record.routes, strict=True):
        assert row.via in {record.network.names[edge] for edge in route}
        assert row.free_flow_s == pytest.approx(sum(record.network.free_flow_s[edge] for edge in route))
    np.testing.assert_allclose([row.shares[0] for row in rows], record.learners[0].shares.mean(axis=0), atol=1e-9)
    long_last = replace(record, step_ends=np.r_[np.arange(1.0, 48.0), 95.0])
    half = route_rows(long_last)[0].shares[0]
    shares = record.learners[0].shares[:, 0]
    assert half == pytest.approx((shares[:47].sum() + 48 * shares[47]) / 95)
    assert next(row.via for row in route_rows(records.own_graph())) in ("bridge", "ferry")
    assert [row.via for row in route_rows(records.arms())] == ["arm 1", "arm 2", "arm 3", "arm 4"]


def test_traffic_met_adds_up() -> None:
    played = records.small_city().learners[0]
    one = replace(
        played, loads=np.array([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0]]), ratios=np.array([[1.0, 2.0, 1.0], [1.0, 1.0, 1.0]])
    )
    np.testing.assert_allclose(class_shares(one), [[0.75, 0, 0, 0.25, 0], [0, 0, 0, 0, 0]])


def test_arms_lie_side_by_side() -> None:
    record = records.arms()
    drawing = draw(record)
    assert drawing.schematic
    assert ends(record) == [(0, 1)]
    heights = [drawing.lines[arm][24, 1] for arm in range(4)]
    assert all(above - below > 0.01 for above, below in pairwise(heights))
    for line in drawing.lines.values():
        np.testing.assert_allclose(line[[0, -1]], drawing.lines[0][[0, -1]], atol=1e-12)


def test_a_graph_without_places_is_laid_out_from_its_origin() -> None:
    record = records.own_graph()
    assert record.network is not None
    drawing = draw(record)
    places = {name: (x, y) for x, y, name in drawing.nodes}
    assert places["home"][0] < places["bridge"][0] == places["ferry"][0] < places["work"][0]
    assert places["bridge"][1] != places["ferry"][1]
    tail, head = ends(record)[0]
    assert (record.network.labels[tail], record.network.labels[head]) == ("home", "work")
    middle = {edge: line[len(line) // 2] for edge, line in drawing.lines.items()}
    apart = [np.hypot(*(middle[a] - middle[b])) for a in middle for b in middle if a < b]
    assert min(apart) > 0.005, "the two directions of the bridge lie apart"


def test_what_cannot_be_reached_is_laid_out_too() -> None:
    graph = nx.MultiDiGraph()
    graph.add_edge("a", "b", free_flow_s=1.0)
    graph.add_edge("a", "b", free_flow_s=2.0)
    graph.add_edge("c", "c", free_flow_s=1.0)
    graph.add_edge("d", "a", free_flow_s=1.0)
    drawing = draw_network(rs.RoadNetwork.from_networkx(graph))
    assert len(drawing.lines) == 4
    assert len({(x, y) for x, y, _ in drawing.nodes}) == 4
    assert not np.allclose(drawing.lines[0], drawing.lines[1])
    assert np.ptp(drawing.lines[2]) > 0


def test_planar_roads_are_drawn_to_scale() -> None:
    graph = nx.DiGraph(crs="")
    for name, x in (("a", 5_000.0), ("b", 6_112.0), ("c", 8_336.0)):
        graph.add_node(name, x=x, y=0.0)
    graph.add_edge("a", "b", free_flow_s=1.0)
    graph.add_edge("b", "c", free_flow_s=1.0)
    planar = replace(rs.RoadNetwork.from_networkx(nx.DiGraph(graph.edges(data=True))), crs="")
    planar = replace(planar, x=np.array([5_000.0, 6_112.0, 8_336.0]), y=np.zeros(3))
    drawing = draw_network(planar)
    assert not drawing.located
    assert not drawing.schematic
    lengths = [np.hypot(*np.diff(drawing.lines[edge], axis=0)[0]) for edge in (0, 1)]
    assert lengths == pytest.approx([0.01, 0.02], rel=1e-3)
    projected = draw_network(replace(planar, crs="EPSG:3857"))
    assert projected.located
    assert projected.lines[0][0, 0] == pytest.approx(5_000 / 111_319.49, rel=1e-6)
