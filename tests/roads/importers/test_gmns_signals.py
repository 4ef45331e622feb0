"""Programmes of signals in GMNS tables: laid out by hand, incomplete, damaged, and kept by every file and edit."""

import json
import sqlite3
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gmns_crossroads import CYCLE_S, GREENS, PHASES, TABLES, newer_tables, write_tables
from road_files import bans_by_label, shared
from test_round_trips import TRIPS, Trip

from routesim.errors import IncompleteSignalsWarning, NetworkError
from routesim.roads.importers import gmns_signals
from routesim.roads.importers.simplify import Streets, network_from_streets
from routesim.roads.importers.tags import Road
from routesim.roads.network import RoadNetwork
from routesim.roads.signal_times import SignalTimes
from routesim.storage.checkpoint import fingerprint

Times = dict[tuple[object, object], list[tuple[float, float, float]]]


def read(folder: Path, tables: dict[str, str] = TABLES) -> RoadNetwork:
    return RoadNetwork.from_gmns(write_tables(folder, tables))


def table_of(network: RoadNetwork) -> Times:
    """Cycle, start and green of each movement, by the nodes it comes from and goes to."""
    found: Times = {}
    times = network.signal_times
    for edge, to, *row in zip(*(column.tolist() for column in times.columns().values()), strict=True):
        onward = network.labels[network.heads[to]] if to >= 0 else None
        found.setdefault((network.labels[network.tails[edge]], onward), []).append(tuple(row))  # type: ignore[arg-type]
    return found


def by_hand() -> Times:
    return {movement: [(CYCLE_S, *GREENS[phase])] for movement, phase in PHASES.items()}


@pytest.mark.parametrize("tables", [TABLES, newer_tables()])
def test_a_crossroads_by_hand(tables: dict[str, str], tmp_path: Path) -> None:
    network = read(tmp_path, tables)
    assert table_of(network) == by_hand()
    assert network.signals.tolist() == [False] * 4 + [True]


def with_phases(*rows: str, cycle: str = "", plan: str = "", after: str = "") -> dict[str, str]:
    """The crossroads with other phases; `cycle` and `plan` are those of the plan."""
    header = (
        "timing_plan_id,signal_phase_num,min_green,max_green,extension,clearance,walk_time,ped_clearance,ring,barrier"
    )
    plans = "timing_plan_id,controller_id,cycle_length,offset,coord_phase,coord_ref_to\n"
    plans += f"{plan}P,C,{cycle},{after or ',,'}\n"
    return TABLES | {
        "signal_timing_phase": "\n".join([f"{header},position", *(f"P,{row}" for row in rows), ""]),
        "signal_timing_plan": plans,
    }


def greens_of(network: RoadNetwork) -> dict[int, tuple[float, float, float]]:
    """What the movements of each phase have, which is the same."""
    found = table_of(network)
    for movement, phase in PHASES.items():
        assert found[movement] == found[next(m for m, p in PHASES.items() if p == phase)]
    return {phase: found[movement][0] for movement, phase in PHASES.items()}


FOUR = ("2,30,,,5,,,1,1,1", "1,10,,,5,,,1,1,2", "6,45,,,5,,,2,1,1", "4,25,,,5,,,1,2,1")


@pytest.mark.parametrize(
    ("tables", "greens"),
    [
        # Without a cycle, it is the sum of the phases.
        (with_phases(*FOUR), {2: (80, 0, 30), 1: (80, 35, 10), 6: (80, 0, 45), 4: (80, 50, 25)}),
        # A coordinated phase begins, or ends, at the offset.
        (
            with_phases(*FOUR, cycle="100", after="10,4,begin_of_green"),
            {2: (100, 60, 30), 1: (100, 95, 10), 6: (100, 60, 45), 4: (100, 10, 25)},
        ),
        (
            with_phases(*FOUR, cycle="100", after="10,4,begin_of_red"),
            {2: (100, 30, 30), 1: (100, 65, 10), 6: (100, 30, 45), 4: (100, 80, 25)},
        ),
        # Halfway from the least to the most green, the phases fill a cycle of 60 s.
        (
            with_phases(
                "2,10,30,,0,,,1,1,1", "1,10,10,,0,,,1,1,2", "6,1,2,,0,,,2,1,1", "4,20,40,,0,,,1,2,1", cycle="60"
            ),
            {2: (60, 0, 20), 1: (60, 20, 10), 6: (60, 0, 30), 4: (60, 30, 30)},
        ),
        # A phase for people on foot takes its time.
        (
            with_phases(*FOUR, "9,,,,,7,12,1,3,1"),
            {2: (99, 0, 30), 1: (99, 35, 10), 6: (99, 0, 45), 4: (99, 50, 25)},
        ),
        # Of a ring without a phase behind a barrier, nothing is green there.
        (
            with_phases("2,30,,,5,,,1,1,1", "1,10,,,5,,,1,1,2", "6,45,,,5,,,2,2,1", "4,25,,,5,,,1,3,1"),
            {2: (130, 0, 30), 1: (130, 35, 10), 6: (130, 50, 45), 4: (130, 100, 25)},
        ),
    ],
)
def test_plans_are_laid_out(tables: dict[str, str], greens: dict[int, Any], tmp_path: Path) -> None:
    found = greens_of(read(tmp_path, tables))
    assert found.keys() == greens.keys()
    for phase, row in greens.items():
        assert found[phase] == pytest.approx(row), phase


def test_a_movement_in_two_phases_has_two_greens(tmp_path: Path) -> None:
    both = TABLES | {"signal_phase_mvmt": TABLES["signal_phase_mvmt"] + "80,C,4,13,,permitted\n"}
    assert table_of(read(tmp_path, both))[1, 3] == [(CYCLE_S, 7.0, 30.0), (CYCLE_S, 57.0, 25.0)]


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        (
            TABLES | {"signal_timing_phase": TABLES["signal_timing_phase"].replace("104,P", "104,actuated")},
            "no green in",
        ),
        (with_phases(*FOUR[1:]), "has no green in a plan of controller 'C'"),
        (with_phases(*FOUR, cycle="79"), "the phases do not fit into the cycle of 79 s"),
        (with_phases(*FOUR, "9,,,,,,,1,3,1"), "phase 9 has no time"),
        (with_phases(*FOUR, "4,5,,,,,,1,3,1"), "a signal_phase_num is there twice"),
        (with_phases(*FOUR, "9,5,,,,,,1,2,1"), "two phases have the same ring, barrier and position"),
        (with_phases("2,1,,,,,,1,1,1"), "the phases take 1 s"),
        (with_phases(), "in plan 'P', there is no phase"),
        (with_phases(*FOUR, plan="P,D,,,,\n") | {"signal_controller": "controller_id\nC\nD\n"}, "its id is not unique"),
        (
            TABLES | {"signal_phase_mvmt": TABLES["signal_phase_mvmt"].replace("protected", "rtor", 1)},
            "movement '12' has no green",
        ),
        (
            TABLES | {"signal_phase_mvmt": "controller_id,signal_phase_num,mvmt_id\nC,2,12\n"},
            "movement '13' has no phase in signal_phase_mvmt.csv",
        ),
        (TABLES | {"signal_timing_plan": "timing_plan_id,controller_id\n", "signal_timing_phase": ""}, ""),
    ],
)
def test_nodes_without_a_whole_programme_keep_the_default_one(tables: dict[str, str], why: str, tmp_path: Path) -> None:
    if not tables["signal_timing_phase"]:
        tables = {name: text for name, text in tables.items() if name != "signal_timing_phase"}
        why = "no usable plan: its controller has none"
    with pytest.warns(IncompleteSignalsWarning, match="1 of 1 nodes .* keep the default one") as said:
        network = read(tmp_path, tables)
    assert why in str(said[0].message)
    assert said[0].filename == __file__
    assert network.signals.tolist() == [False] * 4 + [True]
    assert len(network.signal_times) == 0


@pytest.mark.parametrize("tables", [{"node", "link"}, {"node", "link", "movement"}])
def test_folders_without_signal_tables_have_the_default_programme_without_a_word(
    tables: set[str], tmp_path: Path
) -> None:
    network = read(tmp_path, {name: TABLES[name] for name in tables})
    assert network.signals.tolist() == [False] * 4 + [True]
    assert len(network.signal_times) == 0


def test_movements_alone_say_where_signals_are(tmp_path: Path) -> None:
    tables = {"node": TABLES["node"].replace("signal", ""), "link": TABLES["link"], "movement": TABLES["movement"]}
    assert read(tmp_path, tables).signals.tolist() == [False] * 4 + [True]


def test_tempe_has_signals_where_its_source_has() -> None:
    network = RoadNetwork.from_gmns(shared("gmns/tempe_asu"))
    assert network.signals.sum() == 61
    assert len(network.signal_times) == 0


def changed(table: str, old: str, new: str) -> dict[str, str]:
    assert old in TABLES[table]
    return TABLES | {table: TABLES[table].replace(old, new, 1)}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (changed("movement", "12,5,10", "12,5,77"), "movement.csv line 2: ib_link_id '77' is no link_id of link.csv"),
        (changed("movement", "12,5,10", "12,6,10"), "movement.csv line 2: node_id '6' is no node of node.csv"),
        (changed("movement", "12,5,10", "12,5,41"), "movement.csv line 2: ib_link_id '41' must lead to node '5'"),
        (changed("movement", "12,5,10,20", "12,5,10,40"), "line 2: ob_link_id '40' must start at node '5'"),
        (changed("movement", "13,5", "12,5"), "movement.csv line 3: mvmt_id '12' must be there, and once only"),
        (changed("movement", "ib_link_id", "ib"), "movement.csv line 1 needs a column ib_link_id"),
        (changed("link", "40,4,5", "30,4,5"), "ob_link_id '30' is the link_id of several links of link.csv"),
        (changed("signal_timing_plan", "P,C", "P,D"), "signal_timing_plan.csv line 3: controller_id 'D' is not in"),
        (changed("signal_timing_plan", "P,C,90", "P,C,3"), "line 3: cycle_length must lie between 5 and 3600 s, got 3"),
        (changed("signal_timing_plan", "P,C,90", "P,C,soon"), "line 3: cycle_length must be a number, got 'soon'"),
        (changed("signal_timing_plan", "P,C", ",C"), "signal_timing_plan.csv line 3: timing_plan_id is missing"),
        (
            changed("signal_timing_phase", "102,P", "102,Q"),
            "line 2: timing_plan_id 'Q' is not in signal_timing_plan.csv",
        ),
        (changed("signal_timing_phase", "3,5,1,1,1", "3,5,1,,1"), "line 2: barrier must be a whole number"),
        (changed("signal_timing_phase", "2,10,30", "2,10,-30"), "max_green must be a finite number, at least 0"),
        (changed("signal_timing_phase", "2,10,30", "2,10,9"), "max_green must be at least min_green, 10 s, got 9"),
        (changed("signal_timing_phase", "2,10,30", "2,10,1e300"), "line 2: a phase must last at most 3600 s"),
        (changed("signal_timing_phase", "2,10,30", "2.5,10,30"), "line 2: signal_phase_num must be a whole number"),
        (changed("signal_phase_mvmt", "0,C,2,12", "0,D,2,12"), "line 2: controller_id 'D' is not in signal_controller"),
        (changed("signal_phase_mvmt", "0,C,2,12", "0,C,2,55"), "line 2: mvmt_id '55' is not in movement.csv"),
        (changed("signal_phase_mvmt", "0,C,2,12", "0,C,,12"), "line 2: signal_phase_num must be a whole number"),
        (changed("signal_phase_mvmt", "signal_phase_num", "phase"), "line 2: signal_phase_num must be a whole number"),
        (changed("signal_phase_mvmt", ",protected", ""), "signal_phase_mvmt.csv line 2: 6 values expected, got 5"),
        (
            with_phases(*(f"{num},5,,,,,,1,1,{num}" for num in range(65))),
            "line 66: timing_plan_id 'P' has more than 64 phases",
        ),
        (with_phases(*FOUR, after="1,2,start"), "coord_ref_to must be one of begin_of_green"),
        (
            newer_tables() | {"signal_phase_mvmt": "timing_phase_id,mvmt_id\n555,12\n"},
            "line 2: timing_phase_id '555' is not in signal_timing_phase.csv",
        ),
        (
            changed("signal_timing_phase", "101,P", "102,P")
            | {"signal_phase_mvmt": "timing_phase_id,mvmt_id\n102,12\n"},
            "line 2: timing_phase_id '102' is there more than once in signal_timing_phase.csv",
        ),
    ],
)
def test_mistakes_are_named_with_file_line_and_column(tables: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(NetworkError) as error:
        read(tmp_path, tables)
    assert message in str(error.value)


def test_tables_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gmns_signals, "MOST_ROWS", 9)
    with pytest.raises(NetworkError, match=r"movement\.csv line 11: the table may hold at most 9 rows"):
        read(tmp_path)


# ---- kept -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trip", TRIPS)
def test_every_file_keeps_programmes(trip: Trip, tmp_path: Path) -> None:
    network = read(tmp_path)
    again = trip(network, tmp_path)
    assert again.equals(network)
    assert again.signal_times == network.signal_times
    assert not again.equals(replace(network, signal_times=SignalTimes()))
    assert fingerprint(network) == fingerprint(again) != fingerprint(replace(network, signal_times=SignalTimes()))


def test_edits_keep_what_is_left(tmp_path: Path) -> None:
    network = read(tmp_path)
    turned = network.subnetwork(np.arange(network.n_edges)[::-1])
    assert table_of(turned) == by_hand()
    ends = [(network.labels[t], network.labels[h]) for t, h in zip(network.tails, network.heads, strict=True)]
    part = network.subnetwork([e for e, pair in enumerate(ends) if pair not in {(2, 5), (5, 3)}])
    expected = {(a, b): rows for (a, b), rows in by_hand().items() if a != 2 and b != 3}  # type: ignore[misc]
    assert table_of(part) == expected
    graph = network.to_networkx()
    graph.remove_edge(2, 5, 0)
    assert {movement for movement, _ in table_of(RoadNetwork.from_networkx(graph)).items()} == {
        movement for movement in by_hand() if movement[0] != 2
    }
    one_way = network.subnetwork([e for e, pair in enumerate(ends) if pair != (5, 4)])
    assert table_of(one_way.largest_component()) == {m: r for m, r in by_hand().items() if 4 not in m}


def test_turns_without_a_movement_are_banned(tmp_path: Path) -> None:
    network = RoadNetwork.from_gmns(write_tables(tmp_path, TABLES))
    assert bans_by_label(network) == {(a, 5, b) for a in range(1, 5) for b in range(1, 5)} - {
        (a, 5, b) for a, b in PHASES
    }
    assert network.bans_known
    # Nothing is said of links that no movement comes from; and a movement may be for bicycles only.
    movements = TABLES["movement"].splitlines()
    few = [f"{movements[0]},allowed_uses", f"{movements[1]},bike", f"{movements[2]},auto", f"{movements[5]},"]
    some = write_tables(tmp_path, {"movement": "\n".join(few)})
    for file in tmp_path.glob("signal*"):
        file.unlink()
    network = RoadNetwork.from_gmns(some)
    assert bans_by_label(network) == {(1, 5, 1), (1, 5, 2), (1, 5, 4), (2, 5, 1), (2, 5, 2), (2, 5, 4)}
    (tmp_path / "movement.csv").unlink()
    network = RoadNetwork.from_gmns(tmp_path)
    assert (network.bans, network.bans_known) == ([], False)


def test_merged_junctions_keep_whole_programmes_only(tmp_path: Path) -> None:
    apart = changed("node", "5,0,0,signal\n", "5,0,0,signal\n6,0.0046,0,none\n")
    short = "60,2,6,false,10,1,50,primary,\n"
    network = read(tmp_path, apart | {"link": TABLES["link"] + short})
    assert table_of(network.consolidate(tolerance_m=20.0)) == by_hand()  # away from the junction
    marked = replace(network, signals=np.array([False, False, False, False, True, True]))
    assert table_of(marked.consolidate(tolerance_m=20.0)) == by_hand()
    all_one = replace(marked, length_m=np.where(network.length_m < 20, 10.0, network.length_m))
    inner = all_one.length_m.copy()
    inner[
        [e for e in range(network.n_edges) if 2 in (network.labels[network.tails[e]], network.labels[network.heads[e]])]
    ] = 5
    torn = replace(all_one, length_m=inner).consolidate(tolerance_m=20.0)
    assert torn.n_nodes == 4
    assert len(torn.signal_times) == 0
    assert torn.signals.sum() == 1


def test_simplified_roads_have_the_programme_of_their_last_and_first_pieces() -> None:
    """A cross of two-way streets with a point halfway along each, one of which has a programme."""
    lon = np.array([0.0, -1, -2, 1, 2, 0, 0]) / 1000
    lat = np.array([0.0, 0, 0, 0, 0, 1, 2]) / 1000
    there = [(2, 1), (1, 0), (4, 3), (3, 0), (6, 5), (5, 0)]
    ends = np.array(there + [(b, a) for a, b in there])
    piece = {(a, b): i for i, (a, b) in enumerate(ends.tolist())}
    times = SignalTimes(
        [piece[1, 0], piece[1, 0], piece[5, 0], piece[2, 1]],
        [piece[0, 3], piece[0, 5], piece[0, 1], piece[1, 0]],
        [60.0] * 4,
        [0.0, 1.0, 30.0, 9.0],
        [20.0, 9.0, 20.0, 3.0],
    )
    streets = Streets(
        node_ids=np.arange(7),
        lon=lon,
        lat=lat,
        tails=ends[:, 0],
        heads=ends[:, 1],
        road=np.zeros(12, dtype=np.int64),
        backward=np.arange(12) >= 6,
        roads=[Road("primary", "", True, True, (50.0, 50.0), (1.0, 1.0))],
        signals=np.array([True, True, False, False, False, False, False]),
        signal_times=times,
    )
    for simplify in (True, False):
        network = network_from_streets(streets, largest_component=True, simplify=simplify, name="", attribution="")
        kept = {(2, 4): [(60.0, 0.0, 20.0)], (2, 6): [(60.0, 1.0, 9.0)], (6, 2): [(60.0, 30.0, 20.0)]}
        pieces = {(1, 3): kept[2, 4], (1, 5): kept[2, 6], (5, 1): kept[6, 2], (2, 0): [(60.0, 9.0, 3.0)]}
        assert table_of(network) == (kept if simplify else pieces)


def test_files_from_before_have_no_programmes(tmp_path: Path) -> None:
    network = read(tmp_path)
    network.save(tmp_path / "now.npz")
    with np.load(tmp_path / "now.npz") as arrays:
        before = {name: arrays[name] for name in arrays.files if not name.startswith("signal_times")}
        assert len(before) == len(arrays.files) - 5
        np.savez(tmp_path / "before.npz", **before)
    network.to_geopackage(tmp_path / "roads.gpkg")
    with sqlite3.connect(tmp_path / "roads.gpkg") as base:
        base.execute("DROP TABLE signal_times")
    for file in (
        RoadNetwork.from_file(tmp_path / "before.npz"),
        RoadNetwork.from_geopackage(tmp_path / "roads.gpkg"),
    ):
        assert file.equals(replace(network, signal_times=SignalTimes()))


def good() -> dict[str, Any]:
    return {"edge": [0], "to": [-1], "cycle_s": [60.0], "start_s": [0.0], "green_s": [30.0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge": [-1]}, "edge must be the index of a road"),
        ({"edge": [99]}, "edge must be an edge from 0 to 7"),
        ({"edge": [4]}, "edge must lead to a node that `signals` marks"),
        ({"to": [-2]}, "to must be the index of a road, or -1"),
        ({"to": [99]}, "to must be an edge from 0 to 7, or -1"),
        ({"to": [0]}, "to must start at the node where `edge` ends"),
        ({"cycle_s": [4.0]}, "cycle_s must lie between 5 and 3600, got 4.0"),
        ({"cycle_s": [3601.0]}, "cycle_s must lie between 5 and 3600"),
        ({"cycle_s": [float("nan")]}, "cycle_s must lie between 5 and 3600"),
        ({"start_s": [60.0]}, "start_s must lie between 0 and the end of the cycle"),
        ({"start_s": [-0.5]}, "start_s must lie between 0"),
        ({"start_s": [float("inf")]}, "start_s must lie between 0"),
        ({"green_s": [0.0]}, "green_s must be above 0 and at most cycle_s"),
        ({"green_s": [61.0]}, "green_s must be above 0 and at most cycle_s"),
        ({"green_s": [1.0, 2.0]}, "signal_times.green_s must have 1 values"),
        ({"edge": ["a"]}, "signal_times.edge must hold"),
        ({"edge": [0.5]}, "signal_times.edge must hold whole numbers"),
        ({"edge": [2**40]}, "signal_times.edge must hold whole numbers within int32"),
        (
            {name: values * 2 for name, values in good().items()} | {"cycle_s": [60.0, 61.0]},
            "the same in all rows of a",
        ),
        (
            {name: values * 2 for name, values in good().items()} | {"to": [1, -1]},
            "-1 in all rows of a road or in none",
        ),
    ],
)
def test_programmes_that_cannot_be_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    network = read(tmp_path)
    assert network.heads.tolist()[:2] == [4, 0]
    rows = good() | change
    with pytest.raises(NetworkError) as error:
        replace(network, signal_times=SignalTimes(**rows))
    assert message in str(error.value)
    if message.startswith("edge must be an edge") or message.startswith("to must be an edge"):
        return  # in a graph, roads that are not there are those that were taken out
    graph = network.to_networkx()
    graph.graph["signal_times"] = json.dumps(rows)
    with pytest.raises(NetworkError, match=r"signal_times|edge"):
        RoadNetwork.from_networkx(graph)


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "{}", "[" * 100_000, "9" * 9999, "null", '{"edge": 1}', 5, json.dumps(good() | {"to": 1})]
)
def test_texts_that_are_no_programmes_are_refused(text: object, tmp_path: Path) -> None:
    graph = read(tmp_path).to_networkx()
    graph.graph["signal_times"] = text
    with pytest.raises(NetworkError, match="signal_times"):
        RoadNetwork.from_networkx(graph)
    with pytest.raises(NetworkError, match="signal_times"):
        SignalTimes.from_json(text, {})


def test_programmes_need_edges_that_can_be_told_apart(tmp_path: Path) -> None:
    graph = read(tmp_path).to_networkx()
    graph.add_edge(1, 5, free_flow_s=3.0)
    with pytest.raises(NetworkError, match="needs an edge_index"):
        RoadNetwork.from_networkx(graph)


def test_a_view_in_place_of_the_table_is_refused(tmp_path: Path) -> None:
    read(tmp_path).to_geopackage(tmp_path / "roads.gpkg")
    with sqlite3.connect(tmp_path / "roads.gpkg") as base:
        base.execute("ALTER TABLE signal_times RENAME TO others")
        base.execute("CREATE VIEW signal_times AS SELECT * FROM others")
    with pytest.raises(NetworkError, match="no view in its place"):
        RoadNetwork.from_geopackage(tmp_path / "roads.gpkg")


def test_a_network_takes_no_other_table(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="signal_times must be SignalTimes, got list"):
        replace(read(tmp_path), signal_times=[])  # type: ignore[arg-type]


def test_whole_tables_are_read_without_a_warning(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read(tmp_path).signal_times) == len(PHASES)
