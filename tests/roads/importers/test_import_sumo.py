"""SUMO nets are read as they are: lanes for cars, lines in degrees, programmes of signals; mistakes are named."""

import dataclasses
import gzip
import re
import subprocess
import warnings
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyproj
import pytest
from road_files import osm_grid
from sumo_nets import CROSSROADS, UTM, needs_sumo

import routesim as rs
from routesim.errors import IncompleteSignalsWarning, NetworkError
from routesim.roads.edits import largest_component_nodes
from routesim.roads.importers import read_network
from routesim.roads.importers.bans import missing_connections
from routesim.roads.importers.sumo import read_sumo
from routesim.roads.importers.sumo_export import find_netconvert
from routesim.roads.shortest import shortest_tree, trace


def written(folder: Path, text: str = CROSSROADS) -> Path:
    file = folder / "cross.net.xml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_net_by_hand(tmp_path: Path) -> None:
    net = read_sumo(written(tmp_path))
    network = net.network
    assert net.ids == ("in", "out", "left", "side")
    assert network.labels == ("W", "C", "E", "N")
    assert network.name == "cross"
    assert network.crs == "planar"
    assert [(network.labels[t], network.labels[h]) for t, h in zip(network.tails, network.heads, strict=True)] == [
        ("W", "C"),
        ("C", "E"),
        ("C", "N"),
        ("N", "C"),
    ]
    assert network.lanes.tolist() == [2, 2, 1, 1]
    assert network.speed_kph.tolist() == [54, 36, 36, 36]
    assert network.length_m.tolist() == [95.5, 100, 100, 100]
    np.testing.assert_allclose(network.free_flow_s, [95.5 / 15, 10, 10, 10])
    assert network.names == ("High Street", "", "", "")
    assert network.highways == ("primary", "a street", "", "")
    assert network.x.tolist() == [-100, 0, 100, 0]
    assert network.y.tolist() == [200, 200, 200, 300]
    assert network.shape(0).tolist() == [[-100, 200], [-50, 210], [-5, 200], [0, 200]]
    assert np.diff(network.shape_offsets).tolist() == [4, 0, 0, 0]
    assert network.capacity_vph.tolist() == [2400, 1200, 600, 600]
    assert network.imputed("capacity").all()
    assert not (network.imputed("speed") | network.imputed("lanes")).any()


def test_programmes_by_hand(tmp_path: Path) -> None:
    network = rs.RoadNetwork.from_sumo(written(tmp_path))
    assert network.signals.tolist() == [False, True, False, False]
    times = network.signal_times
    rows = zip(
        *(times.columns()[name].tolist() for name in ("edge", "to", "cycle_s", "start_s", "green_s")), strict=True
    )
    assert list(rows) == [(0, 1, 90, 0, 40), (0, 2, 90, 45, 10), (0, 2, 90, 60, 30), (3, 1, 90, 60, 30)]


@pytest.mark.parametrize(
    ("old", "new", "straight"),
    [
        ('offset="10"', 'offset="-85"', (90, 85, 40)),  # 80 - 85, one cycle later
        ('offset="10"', 'offset="100"', (90, 0, 40)),
        ('offset="10"', 'offset="10.25"', (90, 0.25, 40)),
        ('duration="10" state="Grrr"', 'duration="10" state="yyrr"', (90, 10, 30)),
        ('duration="5" state="yyrr"', 'duration="5" state="rGrr"', (90, 0, 45)),
        ('duration="10" state="Grrr"', 'duration="10" state="OOoo"', (90, 0, 40)),
        ('type="static" programID="0" offset="10"', 'programID="0"', (90, 80, 40)),
        ('duration="30" state="GGrr"', 'duration="0.1" state="GGrr"', (60.1, 0, 10.1)),  # from 50.1 + 10 on
    ],
)
def test_changed_programmes_by_hand(old: str, new: str, straight: tuple[float, ...], tmp_path: Path) -> None:
    times = rs.RoadNetwork.from_sumo(written(tmp_path, CROSSROADS.replace(old, new, 1))).signal_times
    found = [(times.cycle_s[i], times.start_s[i], times.green_s[i]) for i in range(len(times)) if times.to[i] == 1]
    np.testing.assert_allclose(found[0], straight)


def test_a_programme_that_is_always_green(tmp_path: Path) -> None:
    text = re.sub(r'state="[a-zA-Z]{4}"', 'state="GGGG"', CROSSROADS)
    times = rs.RoadNetwork.from_sumo(written(tmp_path, text)).signal_times
    assert times.green_s.tolist() == [90, 90, 90]
    assert times.start_s.tolist() == [0, 0, 0]


def test_programmes_that_depend_on_traffic_are_fixed_ones_and_counted(tmp_path: Path) -> None:
    text = CROSSROADS.replace('type="static" programID="0"', 'type="actuated" programID="0"')
    with pytest.warns(IncompleteSignalsWarning, match="1 programmes that depend on traffic are read as fixed"):
        net = read_sumo(written(tmp_path, text))
    assert net.actuated == 1
    assert net.network.signal_times == read_sumo(written(tmp_path)).network.signal_times


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('id="T" type="static"', 'id="U" type="static"', "no programme for it"),
        ('state="rryr"', 'state="rryr" next="1"', "do not follow each other"),
        ('duration="30" state="srgG"', 'duration="3600" state="srgG"', "its cycle of 3660 s is not between 5 and 3600"),
        ('state="srgG"', 'state="srgr"', "a movement has no green"),
        ('linkIndex="3"', 'linkIndex="4"', "a linkIndex that its programme does not have"),
        ('tl="T" linkIndex="1"', 'tl="S" linkIndex="1"', "no programme for it"),
    ],
)
def test_signals_without_a_usable_programme_keep_the_default_one(old: str, new: str, why: str, tmp_path: Path) -> None:
    with pytest.warns(IncompleteSignalsWarning, match=f"1 of 1 junctions with signals .*'C': .*{why}"):
        network = rs.RoadNetwork.from_sumo(written(tmp_path, CROSSROADS.replace(old, new)))
    assert network.signals.sum() == 1
    assert len(network.signal_times) == 0


def test_turns_that_are_not_connected_for_cars(tmp_path: Path) -> None:
    net = read_sumo(written(tmp_path))
    assert net.connections.tolist() == [[0, 1], [0, 2], [3, 1]]
    assert net.missing_connections().tolist() == net.network.banned_turns.tolist() == [[2, 3], [3, 2]]
    assert net.network.bans_known
    rng = np.random.default_rng(5)
    for _ in range(50):
        tails, heads = rng.integers(0, 6, (2, 20))
        meets = [(e, f) for e in range(20) for f in range(20) if heads[e] == tails[f]]
        joined = [pair for pair in meets if rng.random() < 0.5]
        missing = missing_connections(tails, heads, np.array(joined, dtype=np.int64).reshape(-1, 2))
        assert [tuple(pair) for pair in missing.tolist()] == [pair for pair in meets if pair not in joined]


def test_lines_and_places_in_degrees(tmp_path: Path) -> None:
    shift = 'netOffset="-691000.00,-5335000.00"'
    text = CROSSROADS.replace('netOffset="100.00,-200.00"', shift).replace(
        'projParameter="!"', f'projParameter="{UTM}"'
    )
    network = rs.RoadNetwork.from_sumo(written(tmp_path, text))
    assert network.is_geographic
    there = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:32632", always_xy=True)
    x, y = there.transform(network.lon, network.lat)
    np.testing.assert_allclose(x, [691000, 691100, 691200, 691100], atol=1e-4)
    np.testing.assert_allclose(y, [5335000, 5335000, 5335000, 5335100], atol=1e-4)
    np.testing.assert_allclose(there.transform(*network.shape(0)[1]), (691050, 5335010), atol=1e-4)


def test_order_and_labels_of_whole_numbers_and_the_largest_component(tmp_path: Path) -> None:
    text = CROSSROADS
    for old, new in (("in", "12"), ("out", "3"), ("left", "-1"), ("side", "20")):
        text = re.sub(rf'(id|from|to)="{old}"', rf'\1="{new}"', text)
    for old, new in (("W", "7"), ("C", "5"), ("E", "9"), ("N", "11")):
        text = re.sub(rf'(id|from|to)="{old}"', rf'\1="{new}"', text)
    net = read_sumo(written(tmp_path, text))
    assert net.ids == ("-1", "3", "12", "20")
    assert net.network.labels == (7, 5, 9, 11)
    assert net.connections.tolist() == [[2, 0], [2, 1], [3, 1]]
    # Without a way to turn round at its ends a street there and back is no component.
    with pytest.raises(NetworkError, match=r"cross\.net\.xml: no road leads from any junction to another and back"):
        read_sumo(written(tmp_path, text), largest_component=True)
    turns = '<connection from="{}" to="{}" fromLane="0" toLane="0" dir="t" state="M"/>'
    both = turns.format("20", "-1") + turns.format("-1", "20")
    part = read_sumo(written(tmp_path, text.replace("</net>", both + "</net>")), largest_component=True)
    assert (part.ids, part.network.labels) == (("-1", "20"), (5, 11))
    assert part.connections.tolist() == [[0, 1], [1, 0]]
    assert part.missing_connections().tolist() == []
    one_way = re.sub(r'from="11" to="5"', 'from="5" to="11"', text).replace('from="20" to="3"', 'from="12" to="3"')
    with pytest.raises(NetworkError, match=r"cross\.net\.xml: no road leads from any junction to another and back"):
        read_sumo(written(tmp_path, one_way), largest_component=True)


def test_packed_nets_and_endings(tmp_path: Path) -> None:
    packed = tmp_path / "cross.net.xml.gz"
    packed.write_bytes(gzip.compress(CROSSROADS.encode()))
    assert read_network(packed).equals(read_network(written(tmp_path)))
    packed.write_bytes(gzip.compress(CROSSROADS.encode().replace(b"<type ", b"<e/>\n" * 2**24 + b"<type ")))
    with pytest.raises(NetworkError, match=r"cross\.net\.xml\.gz holds more than 67108864 bytes"):
        read_network(packed)
    with pytest.raises(NetworkError, match="holds more than 100 bytes"):
        rs.RoadNetwork.from_sumo(written(tmp_path), max_bytes=100)
    with pytest.raises(NetworkError, match="more than 2 edges; raise max_edges"):
        rs.RoadNetwork.from_sumo(written(tmp_path), max_edges=2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<net version", "<osm version", "line 3: the file must hold <net>, got <osm>"),
        ("</net>", "", "is not XML"),
        ("<!-- made by hand -->", '<!DOCTYPE net [<!ENTITY a "b">]>', "a document type or entity declaration"),
        ('<edge id="out"', '<edge id="in"', "edge 'in' a second time"),
        ('<edge id="out"', "<edge", "edge has no id"),
        ('id="out" from="C"', 'id="out"', "edge 'out' has no from"),
        ('id="out" from="C"', 'id="out" from="X"', "edge 'out' needs junction 'X', which is not in the net"),
        ('speed="12.50"', 'speed="fast"', "a lane of edge 'in' needs a number as its speed, got 'fast'"),
        ('speed="12.50"', 'speed="-1"', "a lane of edge 'in' needs a speed above 0, got -1"),
        ('length="95.50"', 'length="nan"', "a lane of edge 'in' needs a number as its length, got 'nan'"),
        ('length="95.50"', "", "a lane of edge 'in' needs a number as its length, got ''"),
        ('id="in_1" index="1"', 'id="in_1" index="2"', "must be numbered 0, 1, 2 …, got '2'"),
        ('shape="0.00,0.00 50.00,10.00', 'shape="0.00 50.00,10.00', "edge 'in' needs points"),
        ('<junction id="E"', '<junction id="W"', "junction 'W' a second time"),
        ('x="200.00"', 'x="east"', "junction 'E' needs a number as its x, got 'east'"),
        ('to="left" fromLane="2"', 'to="left" fromLane="9"', "names lane 9 of edge 'in', which has 3 lanes"),
        ('to="left" fromLane="2"', 'to="left" fromLane="-1"', "needs a whole number, at least 0, as its fromLane"),
        ('from="side" to="out"', 'from="side" to="away"', "a connection names edge 'away'"),
        ('from="side" to="out"', 'from="left" to="out"', "'left' is connected to 'out', which starts at another"),
        ('linkIndex="3"', 'linkIndex="x"', "needs a whole number, at least 0, as its linkIndex, got 'x'"),
        ('netOffset="100.00,-200.00"', 'netOffset="100.00"', "needs two numbers 'x,y' as netOffset, got '100.00'"),
        ('projParameter="!"', 'projParameter="+init=/etc/passwd:x"', "which is no plain PROJ parameter"),
        ('projParameter="!"', 'projParameter="+proj=pipeline +step +grids=x"', "which is no plain PROJ parameter"),
        ('projParameter="!"', 'projParameter="+proj=nowhere"', "is no projection"),
        ('duration="30" state="GGrr"', 'duration="long" state="GGrr"', "must be a number of seconds, got 'long'"),
        ('duration="30" state="GGrr"', 'duration="-3" state="GGrr"', "must be at least 0 seconds, got -3"),
        ('state="GGrr"', 'state="GGxr"', "must be made of letters GgOoyYrRus, got 'GGxr'"),
        ('state="yyrr"', 'state="yyr"', "has 3 letters, that of the first has 4"),
        ('<tlLogic id="T" type="static" programID="0"', "<tlLogic", "tlLogic has no id"),
        (
            'programID="0" offset="10"',
            'programID="0" offset="ten"',
            "offset of tlLogic 'T' must be a number of seconds",
        ),
    ],
)
def test_mistakes_are_named_with_their_place(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in CROSSROADS
    with pytest.raises(NetworkError, match=re.escape(message)) as caught:
        rs.RoadNetwork.from_sumo(written(tmp_path, CROSSROADS.replace(old, new, 1)))
    assert "cross.net.xml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_net_without_roads_for_cars_and_points_off_the_earth(tmp_path: Path) -> None:
    closed = re.sub(
        r'<lane id="(\w+)" index="(\d)"[^>]*?speed', r'<lane id="\1" index="\2" allow="bus" speed', CROSSROADS
    )
    with pytest.raises(NetworkError, match="no edge for cars"):
        rs.RoadNetwork.from_sumo(written(tmp_path, closed))
    far = CROSSROADS.replace('projParameter="!"', f'projParameter="{UTM}"').replace(
        'netOffset="100.00,', 'netOffset="9e9,'
    )
    with pytest.raises(NetworkError, match="lies nowhere on Earth by netOffset and projParameter"):
        rs.RoadNetwork.from_sumo(written(tmp_path, far))


def test_a_simulation_with_the_signals_of_a_net(tmp_path: Path) -> None:
    """Green from 60 to 90 of 90 seconds: who comes from the side at second 10 waits for second 60."""
    network = rs.RoadNetwork.from_sumo(written(tmp_path))
    demand = rs.Demand.from_trips({"origin": ["N"], "destination": ["E"], "departure_s": [0.0]})
    traffic = rs.TrafficSimulator(network, demand, physics="queue").run(rs.GreedyRouter())
    assert traffic.arrival_s.tolist() == [pytest.approx(60 + 10, abs=3)]


@needs_sumo
def test_a_net_that_netconvert_makes_of_an_extract(tmp_path: Path) -> None:
    """The same drivable streets as our own reading, within what netconvert cuts off at junctions."""
    grid = tmp_path / "grid.osm"
    grid.write_text(osm_grid(), encoding="utf-8")
    netconvert, environment = find_netconvert()
    made = tmp_path / "grid.net.xml"
    command = [netconvert, "--osm-files", grid, "-o", made, "--geometry.remove", "--proj.utm", "--output.street-names"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteSignalsWarning)
        net = read_sumo(made)
    ours = rs.RoadNetwork.from_osm(grid, largest_component=False)
    assert net.network.is_geographic
    assert set(net.network.highways) == set(ours.highways) == {"primary", "residential"}
    assert {name for name in net.network.names if name} == {name for name in ours.names if name}
    found = {label: i for i, label in enumerate(net.network.labels)}
    both = [label for label in ours.labels if label in found]
    assert len(both) > 0.9 * ours.n_nodes
    for label in both:
        i, j = ours.node_index(label), found[label]
        assert net.network.x[j] == pytest.approx(ours.x[i], abs=1e-5)
        assert net.network.y[j] == pytest.approx(ours.y[i], abs=1e-5)


def sumo_rl_net(name: str) -> Path:
    """Return a net of the package from which two bundled cities were made, or skip the test."""
    package = find_spec("sumo_rl")  # not imported: it starts SUMO
    if package is None or package.origin is None:
        pytest.skip("needs the nets of sumo-rl==1.4.5")
    return Path(package.origin).parent / "nets" / "RESCO" / name / f"{name}.net.xml"


@pytest.mark.parametrize(
    ("city", "name", "missing", "movements"), [("cologne", "cologne8", 1, 99), ("ingolstadt", "ingolstadt21", 53, 156)]
)
def test_real_nets_beside_the_cities_that_were_made_of_them(city: str, name: str, missing: int, movements: int) -> None:
    whole = read_sumo(sumo_rl_net(name))
    # Of the bundled place all roads are kept, also those that nobody gets to without a banned turn.
    kept = largest_component_nodes(whole.network.n_nodes, whole.network.tails, whole.network.heads)
    edges = kept[whole.network.tails] & kept[whole.network.heads]
    network, bundled = whole.network.subnetwork(edges, nodes=kept), rs.load_city(city)
    assert (network.n_nodes, network.n_edges) == (bundled.n_nodes, bundled.n_edges)
    for column in ("tails", "heads", "lanes", "signals"):
        np.testing.assert_array_equal(getattr(network, column), getattr(bundled, column))
    np.testing.assert_allclose(network.speed_kph, bundled.speed_kph, atol=0.0051)
    np.testing.assert_allclose(network.x, bundled.x, atol=1e-6)
    np.testing.assert_allclose(network.y, bundled.y, atol=1e-6)
    assert (network.length_m <= bundled.length_m + 1).mean() > 0.9, "SUMO's lanes end at the rim of junctions"
    assert (network.bans, network.bans_known) == (bundled.bans, bundled.bans_known)
    turns = whole.missing_connections()
    assert (whole.network.heads[turns[:, 1]] != whole.network.tails[turns[:, 0]]).sum() == missing
    times = whole.network.signal_times
    assert len(set(zip(times.edge.tolist(), times.to.tolist(), strict=True))) == movements
    known = np.unique(whole.network.heads[times.edge])
    assert whole.network.signals[known].all()


def test_routes_of_a_real_net_take_no_turn_that_sumo_does_not_connect() -> None:
    net = read_sumo(sumo_rl_net("ingolstadt21"))
    network, joined = net.network, set(map(tuple, net.connections.tolist()))
    free = dataclasses.replace(network, banned_turns=np.empty((0, 2), dtype=np.int32))
    illegal = {}
    for name, roads in (("with bans", network), ("without", free)):
        rng, turns = np.random.default_rng(0), []
        for origin, destination in rng.integers(0, network.n_nodes, (200, 2)).tolist():
            times, parents = shortest_tree(roads.graph, roads.free_flow_s, origin)
            if np.isfinite(times[destination]):
                path = trace(roads.graph, parents, destination)
                turns += list(pairwise(path.tolist()))
        assert len(turns) > 3000
        illegal[name] = sum(turn not in joined for turn in turns)
    assert illegal["with bans"] == 0
    assert illegal["without"] > 10
