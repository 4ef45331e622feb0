"""Queues in results: where they stand by hand computation, stored and read again, and a damaged one is refused."""

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import records

import routesim as rs
from routesim.assignment.references import References
from routesim.errors import CapacityWarning, InputError, ResultsError
from routesim.report.summary import Group
from routesim.report.summary_traffic import RoadsDriven, report_traffic
from routesim.results.from_results import record
from routesim.results.record import Record
from routesim.results.standing import RoadQueues
from routesim.results.thinned_traffic import TrafficRun


def standing(told: Record, learner: int = 0) -> RoadQueues:
    found = told.learners[learner].standing
    assert found is not None
    return found


def test_the_queue_of_a_bottleneck_is_where_the_shock_wave_has_it() -> None:
    told = record(records.through_the_bottleneck())
    found = standing(told)
    assert told.edges.tolist() == [0, 1]
    assert told.step_ends[:7].tolist() == [60.0, 120.0, 180.0, 240.0, 300.0, 360.0, 420.0]
    # Vehicle i would leave the second road at 121 + 2 i and leaves at 121 + 4 i: 15 more in the queue every minute.
    assert found.queued[:6, 1].tolist() == [0, 0, 15, 30, 45, 60]
    # It enters the second road at 61 + 2 i: 30 a minute in, 15 out.
    assert found.on[:6, 1].tolist() == [0, 30, 45, 60, 75, 90]
    # (1800 - 900) / (density in the queue, 140 - 900 / 18 a km, - density before it, 1800 / 60) = 15 km/h, or 250 m a
    # minute, so the road has filled up at the end of the sixth.
    assert found.reach_m[:6, 1] == pytest.approx([0, 0, 250, 500, 750, 1000])
    # Then the queue spills back into the first road, and only when that is full vehicles wait to enter.
    assert found.queued[:6, 0].tolist() == [0] * 6
    assert found.reach_m[6:10, 0] == pytest.approx([250, 500, 750, 1000], abs=20)
    assert found.outside[:10].sum() == 0
    assert found.outside[10, 0] == pytest.approx(15, abs=1)
    assert found.outside[:, 1].sum() == 0
    # The queue dissolves from the front: nobody is left in the end.
    assert (found.on[-1] + found.outside[-1]).tolist() == [0, 0]
    assert found.jam_density_per_km == 140.0


def test_every_vehicle_is_somewhere_at_the_end_of_every_step() -> None:
    traffic = records.through_the_bottleneck()
    told = record(traffic)
    found = standing(told)
    for place, end in enumerate(told.step_ends):
        started = (traffic.departure_s < end).sum() - (traffic.arrival_s < end).sum()
        assert (found.on + found.outside)[place].sum() == started


def test_steps_of_several_bins_have_means_and_a_run_that_was_stopped_has_its_last_queue() -> None:
    traffic = records.through_the_bottleneck(until_s=330.0)
    whole = TrafficRun.of(traffic, 0.0, np.inf)
    by_step = record(traffic)
    # The last bin is cut at 330 s: it has the 75 vehicles that were on the second road when it began.
    assert by_step.step_ends.tolist() == [60.0, 120.0, 180.0, 240.0, 300.0, 330.0]
    assert standing(by_step).on[:, 1].tolist() == [0, 30, 45, 60, 75, 75]
    twos = TrafficRun.of(traffic, 0.0, np.inf, bins=2)
    assert twos.standing_at is not None
    assert twos.standing is not None
    second = twos.standing_at[:, 1] == 1
    # Of the third step only the first bin ended: 75; before it the means of 0 and 30, and of 45 and 60.
    assert twos.standing_at[second, 0].tolist() == [0, 1, 2]
    assert twos.standing[second, 0].tolist() == [15.0, 52.5, 75.0]
    assert whole.summary["waiting_to_enter"] == 0


def test_replications_are_averaged() -> None:
    twice = [TrafficRun.of(records.through_the_bottleneck(n), 0.0, np.inf) for n in (400, 90)]
    groups: list[Any] = [Group({}, "all", False, False, True, twice)]
    told = report_traffic("two", groups, RoadsDriven(records.bottleneck(), 60.0, False, References())).record
    # The 90 vehicles of the second run enter the second road up to 239 s; by then 30 of them have left.
    assert standing(told).on[3, 1] == (60 + 60) / 2
    assert standing(told).on[5, 1] == (90 + 30) / 2


def test_a_record_with_queues_comes_back_as_it_was(tmp_path: Path) -> None:
    window = records.through_the_bottleneck(physics="window")
    before = record({"queues": records.through_the_bottleneck(), "window": window})
    before.write(tmp_path)
    after = Record.read(tmp_path)
    for name in ("on", "queued", "outside", "reach_m"):
        assert np.array_equal(getattr(standing(after), name), getattr(standing(before), name))
    assert [one.physics for one in after.learners] == ["queue (plain: no lanes, no signals)", "window count"]
    assert [one.notices for one in after.learners] == [one.notices for one in before.learners]
    assert after.learners[1].standing is None


def test_a_record_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    record(records.through_the_bottleneck(physics="window")).write(tmp_path)
    assert not (tmp_path / "queues.parquet").exists()
    content = json.loads((tmp_path / "record.json").read_text())
    for name in ("physics", "notices", "jam_density_per_km"):
        del content["learners"][0][name]
    (tmp_path / "record.json").write_text(json.dumps(content))
    read = Record.read(tmp_path).learners[0]
    assert (read.physics, read.notices, read.standing) == ("", (), None)


def changed(name: str, value: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        table = pq.read_table(folder / "queues.parquet")
        column = [value, *table[name].to_pylist()[1:]]
        place = table.column_names.index(name)
        pq.write_table(table.set_column(place, name, pa.array(column)), folder / "queues.parquet")

    return change


def said(name: str, value: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content = json.loads((folder / "record.json").read_text())
        content["learners"][0][name] = value
        (folder / "record.json").write_text(json.dumps(content))

    return change


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "more in the queue than on the road": (changed("in_queue", 1e6), "more vehicles in the queue of a road than on it"),
    "fewer than none": (changed("on_road", -1.0), "between 0 and 1e"),
    "more than there are": (changed("waiting", 1e12), "between 0 and 1e"),
    "a queue of minus a metre": (changed("queue_m", -1.0), "between 0 and 1e"),
    "a number that is none": (changed("waiting", float("nan")), "must be finite"),
    "an endless number": (changed("on_road", float("inf")), "must be finite"),
    "a lack": (changed("waiting", None), "lacks 1 of its values"),
    "a step after the last": (changed("step", 10**6), "column step must lie between"),
    "a step before the first": (changed("step", -1), "column step must lie between"),
    "an edge of other roads": (changed("edge", 7), "edges that the record does not list"),
    "no table": (lambda folder: (folder / "queues.parquet").unlink(), "queues.parquet"),
    "a table of letters": (lambda folder: (folder / "queues.parquet").write_text("PAR1"), "queues.parquet"),
    "a jam of nothing": (said("jam_density_per_km", 0.0), "jam_density_per_km"),
    "a jam in words": (said("jam_density_per_km", "140"), "jam_density_per_km"),
    "a physics of numbers": (said("physics", 3), "physics must be a text"),
    "notices of numbers": (said("notices", [3]), "notices must be a text"),
    "notices that are none": (said("notices", "beware"), "notices must be a list"),
    "a book of notices": (said("notices", ["beware"] * 1000), "notices must be a list of at most 100"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_record_is_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    record(records.through_the_bottleneck(60)).write(tmp_path)
    damage, message = DAMAGE[kind]
    damage(tmp_path)
    with pytest.raises(ResultsError, match=message) as refusal:
        Record.read(tmp_path)
    assert "\n" not in str(refusal.value)


def test_queues_of_another_shape_are_refused() -> None:
    told = record(records.through_the_bottleneck(60))
    few = RoadQueues(*(values[:, :1] for values in standing(told)[:4]))  # type: ignore[arg-type]  # arrays
    with pytest.raises(InputError, match="needs shape"):
        Record(**{**vars(told), "learners": (replace(told.learners[0], standing=few),)})


def test_stored_traffic_keeps_its_queues_and_a_changed_file_is_refused(tmp_path: Path) -> None:
    run = TrafficRun.of(records.through_the_bottleneck(60), 0.0, np.inf)
    run.save(tmp_path)
    again = TrafficRun.load(tmp_path)
    assert np.array_equal(again.standing_at, run.standing_at)  # type: ignore[arg-type]  # there are some
    assert np.array_equal(again.standing, run.standing)  # type: ignore[arg-type]
    arrays = dict(np.load(tmp_path / "traffic.npz"))
    many = arrays["standing"].copy()
    many[0, 1] = many[0, 0] + 1
    far = arrays["standing_at"].copy()
    far[0, 0] = 1000
    damages: list[tuple[dict[str, Any], str]] = [
        ({"standing": many}, "no more vehicles are in a queue than on its road"),
        ({"standing": -arrays["standing"] - 1}, "roads hold 0 vehicles or more"),
        ({"standing": arrays["standing"][:-1]}, "queues must be of steps that there are"),
        ({"standing": arrays["standing"][:, :3]}, "standing must have shape"),
        ({"standing_at": far}, "queues must be of steps that there are"),
        ({"standing_at": arrays["standing_at"] * 1.0}, "standing_at must be"),
    ]
    for damage, message in damages:
        np.savez(tmp_path / "traffic.npz", **(arrays | damage))
        with pytest.raises(ResultsError, match=message):
            TrafficRun.load(tmp_path)
    np.savez(tmp_path / "traffic.npz", **{name: array for name, array in arrays.items() if name != "standing"})
    with pytest.raises(ResultsError, match="'standing' is missing"):
        TrafficRun.load(tmp_path)


def test_stored_traffic_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    TrafficRun.of(records.through_the_bottleneck(60, physics="window"), 0.0, np.inf).save(tmp_path)
    assert "standing" not in np.load(tmp_path / "traffic.npz")
    summary = json.loads((tmp_path / "summary.json").read_text())
    for name in ("physics", "forced_moves", "roads_above_capacity", "worst_edge_above_capacity"):
        del summary[name]
    del summary["worst_ratio_above_capacity"]
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    read = TrafficRun.load(tmp_path)
    assert read.summary["physics"] == "window count"
    assert read.standing is None


def test_traffic_saves_its_queues(tmp_path: Path) -> None:
    traffic = records.through_the_bottleneck()
    traffic.save(tmp_path / "saved")
    table = pq.read_table(tmp_path / "saved" / "queues.parquet")
    assert table.column_names == ["end_s", "edge", "on_road", "in_queue", "waiting"]
    assert table.slice(2, 1).to_pylist() == [{"end_s": 120.0, "edge": 1, "on_road": 30, "in_queue": 0, "waiting": 0}]


def test_the_window_count_says_where_it_was_out_of_its_depth() -> None:
    (notice,) = record(records.through_the_bottleneck(physics="window")).learners[0].notices
    # 30 vehicles a minute enter the second road, which passes 15.
    assert notice.startswith(
        "1 of 2 roads were entered above capacity, the worst, Second (edge 1), 2 times its capacity."
    )


def test_a_queue_within_its_depth_says_nothing() -> None:
    assert record(records.through_the_bottleneck()).learners[0].notices == ()


def test_a_run_that_was_stopped_says_who_never_arrived_and_who_never_got_in() -> None:
    traffic = records.through_the_bottleneck(until_s=720.0)
    (notice,) = record(traffic).learners[0].notices
    waiting = int(((traffic.departure_s < 720) & ~traffic.departed).sum())
    missing = int(((traffic.departure_s < 720) & ~traffic.arrived).sum())
    assert 0 < waiting == traffic.summary()["waiting_to_enter"] < missing
    assert notice.startswith(
        f"{missing} of 400 vehicles had not arrived when the run ended; {waiting} of them were still"
    )


def test_gridlock_says_how_many_moves_were_forced() -> None:
    graph = nx.MultiDiGraph()
    ring = "abcd"
    for k in range(4):  # a ring whose roads all wait for the next one
        options = {"length_m": 50.0, "free_flow_s": 4.0, "capacity_vph": 1800.0, "lanes": 1}
        graph.add_edge(ring[k], ring[(k + 1) % 4], **options)
    network = rs.RoadNetwork.from_networkx(graph)
    pairs = [(ring[k % 4], ring[(k + 3) % 4]) for k in range(400)]
    table = {"origin": [a for a, _ in pairs], "destination": [b for _, b in pairs], "departure_s": np.arange(400) * 0.1}
    simulator = rs.TrafficSimulator(network, rs.Demand.from_trips(table), physics=rs.physics.PlainQueue(stuck_s=60.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapacityWarning)
        traffic = simulator.run(rs.FreeFlowRouter())
    assert traffic.forced_moves > 0
    notices = record(traffic).learners[0].notices
    assert notices[0].startswith(f"Gridlock: {traffic.forced_moves:,} moves were forced after vehicles had been stuck.")


def test_the_table_says_which_physics_and_how_long_queues_were() -> None:
    runs = [TrafficRun.of(records.through_the_bottleneck(n, until_s=720.0), 0.0, np.inf) for n in (400, 400)]
    groups: list[Any] = [Group({}, "Free", False, False, True, runs)]
    told = report_traffic("drive", groups, RoadsDriven(records.bottleneck(), 60.0, False, References()))
    assert told.physics == told.table[0]["physics"] == "queue (plain: no lanes, no signals)"
    assert told.heading == "400 vehicles, 2 replications; physics: queue (plain: no lanes, no signals)"
    found = standing(told.record)
    assert told.table[0]["most_in_queues"] == found.queued.sum(axis=1).max()
    assert told.table[0]["most_waiting"] == found.outside.sum(axis=1).max() > 0
    assert told.table[0]["never_entered"] > 0
    assert len(told.notices) == 1
    assert told.notices[0].startswith("Free: ")
