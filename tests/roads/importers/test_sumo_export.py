"""Networks written for SUMO: the same roads come back, and a simulation of SUMO drives on them."""

import dataclasses
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from road_files import tricky_network
from sumo_nets import CROSSROADS, has_netconvert, needs_sumo
from test_round_trips import random_bans

import routesim as rs
from routesim.errors import InputError, LeftOutWarning, NetworkError
from routesim.roads.importers.sumo import read_sumo
from routesim.roads.importers.sumo_export import find_netconvert
from routesim.roads.signal_times import SignalTimes

Movements = dict[tuple[int, int], set[tuple[float, float, float]]]


def greens(network: rs.RoadNetwork) -> Movements:
    """Return the green intervals of each movement."""
    found: Movements = defaultdict(set)
    times = network.signal_times
    for edge, to, *green in zip(*(column.tolist() for column in times.columns().values()), strict=True):
        found[edge, to].add((green[0], round(green[1], 3), round(green[2], 3)))
    return dict(found)


def without_loops(network: rs.RoadNetwork) -> rs.RoadNetwork:
    return network.subnetwork(network.tails != network.heads)


def assert_same_roads(again: rs.RoadNetwork, network: rs.RoadNetwork) -> None:
    assert again.n_edges == network.n_edges
    for ends in ("tails", "heads"):
        labels = [[one.labels[i] for i in getattr(one, ends)] for one in (again, network)]
        assert labels[0] == labels[1]
    np.testing.assert_allclose(again.length_m, network.length_m, atol=1e-6)
    np.testing.assert_allclose(again.free_flow_s, network.free_flow_s, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(again.lanes, np.maximum(np.round(network.lanes), 1))
    for column in ("capacity_vph", "bpr_alpha", "bpr_beta", "imputed_bits"):
        np.testing.assert_array_equal(getattr(again, column), getattr(network, column))
    assert again.names == network.names
    assert again.highways == network.highways
    order = [again.node_index(label) for label in network.labels if again.has_node(label)]
    kept = [again.has_node(label) for label in network.labels]
    np.testing.assert_allclose(again.x[order], network.x[kept], atol=1e-9 if network.is_geographic else 1e-5)
    np.testing.assert_allclose(again.y[order], network.y[kept], atol=1e-9 if network.is_geographic else 1e-5)
    np.testing.assert_array_equal(again.signals[order], network.signals[kept])
    np.testing.assert_array_equal(again.no_through[order], network.no_through[kept])


@needs_sumo
@pytest.mark.parametrize("city", ["cologne", "helsinki", "ingolstadt", "monaco"])
def test_a_bundled_city_comes_back_from_sumo(city: str, tmp_path: Path) -> None:
    network = without_loops(rs.load_city(city))
    path = network.to_sumo(tmp_path / "out")
    assert path == tmp_path / "out" / "network.net.xml"
    assert sorted(file.name for file in path.parent.iterdir()) == [
        f"network.{kind}.xml" for kind in ("con", "edg", "net", "nod", "typ")
    ]
    net = read_sumo(path)
    assert net.ids == tuple(str(e) for e in range(network.n_edges))
    assert_same_roads(net.network, network)
    for e in range(network.n_edges):
        np.testing.assert_allclose(net.network.shape(e)[[0, -1]], network.shape(e)[[0, -1]], atol=1e-6)
    assert (net.network.bans, net.network.bans_known) == (network.bans, network.bans_known)
    banned = set(map(tuple, network.banned_turns.tolist()))
    missing = np.array([pair for pair in map(tuple, net.missing_connections().tolist()) if pair not in banned])
    assert (net.network.heads[missing[:, 1]] == net.network.tails[missing[:, 0]]).all(), "only U-turns may be missing"
    out = np.bincount(net.network.tails, minlength=net.network.n_nodes)
    assert (out[net.network.heads[missing[:, 0]]] > 1).all(), "at dead ends one can turn round"


@needs_sumo
def test_bans_come_back(tmp_path: Path) -> None:
    network = without_loops(random_bans(seed=4))
    # An edge from which there is nowhere to go on, and a U-turn that is banned.
    edge = int(network.banned_turns[0, 0])
    onward = np.flatnonzero(network.tails == network.heads[edge])
    shut = np.column_stack((np.full(len(onward), edge), onward))
    network = dataclasses.replace(network, banned_turns=np.concatenate((network.banned_turns, shut)))
    path = network.to_sumo(tmp_path / "out")
    net = read_sumo(path)
    assert net.network.bans == network.bans
    assert not net.network.bans_known
    joined = set(map(tuple, net.connections.tolist()))
    assert not joined & set(map(tuple, network.banned_turns.tolist()))
    turns = {(e, f) for e, f in joined if network.heads[f] != network.tails[e]}
    ends = {(e, f) for e in range(network.n_edges) for f in np.flatnonzero(network.tails == network.heads[e]).tolist()}
    straight = {(e, f) for e, f in ends if network.heads[f] != network.tails[e]}
    assert turns == straight - set(map(tuple, network.banned_turns.tolist()))


@needs_sumo
def test_known_programmes_come_back(tmp_path: Path) -> None:
    (tmp_path / "cross.net.xml").write_text(CROSSROADS, encoding="utf-8")
    network = rs.RoadNetwork.from_sumo(tmp_path / "cross.net.xml")
    again = rs.RoadNetwork.from_sumo(network.to_sumo(tmp_path / "out"))
    assert_same_roads(again, network)
    assert again.signal_times == network.signal_times
    # One of all ways at the end of a road, and a second road of which nothing is said.
    times = SignalTimes([0], [-1], [60.0], [50.0], [25.5])
    part = dataclasses.replace(network, signal_times=times)
    assert greens(rs.RoadNetwork.from_sumo(part.to_sumo(tmp_path / "part"))) == {
        (0, 1): {(60.0, 50.0, 25.5)},
        (0, 2): {(60.0, 50.0, 25.5)},
        (3, 1): {(60.0, 0.0, 60.0)},
    }
    assert "y" in (tmp_path / "part" / "network.tll.xml").read_text()
    # SUMO has one cycle a signal.
    two = SignalTimes([0, 3], [-1, -1], [60.0, 90.0], [0.0, 0.0], [20.0, 20.0])
    with pytest.warns(LeftOutWarning, match="1 signals whose roads have different cycles have netconvert's programme"):
        path = dataclasses.replace(network, signal_times=two).to_sumo(tmp_path / "two")
    assert not (path.parent / "network.tll.xml").exists()


@needs_sumo
def test_labels_of_any_kind_odd_names_loops_and_zones(tmp_path: Path) -> None:
    network = tricky_network()
    placed = dataclasses.replace(
        network,
        x=np.where(np.isnan(network.x), 7.0, network.x),
        y=np.where(np.isnan(network.y), 50.0, network.y),
        no_through=np.arange(network.n_nodes) == 0,
    )
    loops = int((network.tails == network.heads).sum())
    assert loops
    with pytest.warns(LeftOutWarning, match=f"{loops} edges that lead back to their own node are left out"):
        net = read_sumo(placed.to_sumo(tmp_path / "out"))
    assert net.ids == tuple(str(e) for e in np.flatnonzero(network.tails != network.heads))
    for e, own in zip(net.ids, range(net.network.n_edges), strict=True):
        assert net.network.names[own] == re.sub(r"[\r\n\t]+", " ", placed.names[int(e)])
        for ends in ("tails", "heads"):
            here, there = (one.labels[getattr(one, ends)[i]] for one, i in ((net.network, own), (placed, int(e))))
            assert here == there
            assert type(here) is type(there)
    closed = net.network.no_through[net.network.heads[net.connections[:, 0]]]
    assert not closed.any(), "nothing passes through a zone"


@needs_sumo
def test_planar_networks_and_lengths_that_are_not_known(tmp_path: Path) -> None:
    (tmp_path / "cross.net.xml").write_text(CROSSROADS, encoding="utf-8")
    network = rs.RoadNetwork.from_sumo(tmp_path / "cross.net.xml")
    unknown = dataclasses.replace(network, length_m=np.full(4, np.nan), signal_times=SignalTimes())
    again = rs.RoadNetwork.from_sumo(unknown.to_sumo(tmp_path / "out"))
    assert again.crs == "planar"
    drawn = np.hypot(50, 10) + np.hypot(45, 10) + 5
    np.testing.assert_allclose(again.length_m, [drawn, 100, 100, 100], atol=1e-5)
    np.testing.assert_allclose(again.free_flow_s, network.free_flow_s, rtol=1e-6)
    nowhere = dataclasses.replace(network, x=np.full(4, np.nan), y=np.full(4, np.nan))
    with pytest.raises(NetworkError, match="SUMO needs the place of every node, and node 'W' has no coordinates"):
        nowhere.to_sumo(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


@needs_sumo
def test_a_folder_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    network = rs.load_city("cologne")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("kept")
    (tmp_path / "file").write_text("kept")
    for name in ("full", "file"):
        with pytest.raises(InputError, match=f"needs a new or an empty folder, and .*{name} is there; give another"):
            network.to_sumo(tmp_path / name)
    with pytest.raises(InputError, match="cannot write"):
        network.to_sumo(tmp_path / "none" / "there")
    with pytest.raises(InputError, match="cannot write"):
        network.to_sumo("a\x00b")
    only_loops = network.subnetwork([0])
    only_loops = dataclasses.replace(
        only_loops, heads=only_loops.tails.copy(), signals=np.zeros(2, dtype=np.bool_), signal_times=SignalTimes()
    )
    with pytest.raises(NetworkError, match="netconvert made no net: Error"):
        only_loops.to_sumo(tmp_path / "loops")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "full"]
    (tmp_path / "empty").mkdir()
    assert network.to_sumo(tmp_path / "empty").is_file()


def test_without_sumo_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "sumo", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not has_netconvert()
    with pytest.raises(InputError, match=r"extra: pip install 'routesim\[sumo\]'"):
        rs.load_city("cologne").to_sumo(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@needs_sumo
def test_finding_netconvert_leaves_the_projections_of_this_process_alone() -> None:
    find_netconvert()
    assert "sumo" not in sys.modules


@needs_sumo
def test_sumo_drives_the_paths_of_a_network(tmp_path: Path) -> None:
    """Paths are lists of edge ids in SUMO, through known programmes of signals and through netconvert's own."""
    (tmp_path / "cross.net.xml").write_text(CROSSROADS, encoding="utf-8")
    crossroads = rs.RoadNetwork.from_sumo(tmp_path / "cross.net.xml")
    helsinki = rs.load_city("helsinki")
    for name, network, ends in (
        ("crossroads", crossroads, [("W", "E"), ("W", "N"), ("N", "E")]),
        ("helsinki", helsinki, [(helsinki.labels[i], helsinki.labels[-1 - i]) for i in range(10)]),
    ):
        net = network.to_sumo(tmp_path / name)
        paths = [path for pair in ends for path in rs.ActionSet.between(network, *pair, k=1).paths]
        vehicles = [
            f'<vehicle id="{i}" depart="{i}"><route edges="{" ".join(str(e) for e in path)}"/></vehicle>'
            for i, path in enumerate(paths)
        ]
        (tmp_path / "routes.xml").write_text(f"<routes>{''.join(vehicles)}</routes>")
        program, environment = find_netconvert()
        sumo = shutil.which("sumo", path=str(Path(program).parent))
        assert sumo is not None
        command = [sumo, "-n", net, "-r", tmp_path / "routes.xml", "--tripinfo-output", tmp_path / "trips.xml"]
        done = subprocess.run([*command, "--no-step-log"], env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        arrived = re.findall(r'<tripinfo id="(\d+)"[^>]*routeLength="([\d.]+)"', (tmp_path / "trips.xml").read_text())
        assert sorted(int(vehicle) for vehicle, _ in arrived) == list(range(len(paths)))
        if name == "helsinki":
            driven = {int(vehicle): float(metres) for vehicle, metres in arrived}
            ours = [float(network.length_m[list(path)].sum()) for path in paths]
            # SUMO's cars start one vehicle length into the first lane, and drive through the inside of junctions.
            assert all(0.9 * ours[i] < driven[i] < 1.4 * ours[i] + 50 for i in range(len(paths)))
