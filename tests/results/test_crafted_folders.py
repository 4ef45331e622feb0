"""Result folders that were crafted or damaged: one line that names the folder, and exit code 2."""

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import routesim as rs
from routesim.cli import exit_code
from routesim.errors import ResultsError
from routesim.results.from_results import record
from routesim.results.record import Record
from routesim.results.thinned_traffic import TrafficRun
from routesim.runner.execution import run_scenario
from routesim.scenario.files import parse_scenario

ARMS = """
kind = "bandit"
title = "Two arms"
rounds = 60
replications = 2
seed = 0
[bandit]
arms = 2
congestion = "inverse"
noise_variance = 0.1
windows = [2]
[[learners]]
name = "UCB1"
[[learners]]
name = "RandomPath"
"""

DEEP = "[" * 200_000
ANYTHING = [DEEP, '{"a":' * 200_000, "", "{", "[]", "3", "null", '"text"', "\ufeff{}", "9" * 5000, "NaN", "\x00"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A result folder, a record on roads, a run of rounds and one of rows, and the traffic of a unit."""
    folder = tmp_path_factory.mktemp("results")
    run_scenario(parse_scenario(ARMS), folder / "arms", workers=1)
    city = rs.load_city("helsinki")
    roads = rs.ActionSet.between(city, (24.9367, 60.1642), (24.9522, 60.1784), k=3)
    base = -city.free_flow_s[roads.edges]
    world = rs.RoundEnvironment.from_congestion(roads, base, rs.congestion.Linear(0.5), window=3, noise_std=1.0)
    run = rs.run(world, rs.UCB1(), 300, comparator=rs.Comparator(0.0, 0.0))
    run.save(folder / "run")
    run.save(folder / "rows", keep=100)
    (folder / "record").mkdir()
    record(run).write(folder / "record")
    simulator = rs.TrafficSimulator(city, rs.load_demand("helsinki", end_s=120), window_s=60)
    TrafficRun.of(simulator.run(rs.ShortestPath(), 0), 0.0, 120.0).save(folder / "traffic")
    return {path.name: path for path in folder.iterdir() if path.is_dir()}


@pytest.fixture
def copy_of(results: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    def copy(name: str) -> Path:
        target = tmp_path / name
        target.mkdir()
        for path in results[name].iterdir():
            (target / path.name).write_bytes(path.read_bytes())
        return target

    return copy


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[Path], str]:
    """Run `routesim map` on a folder and return its one line of complaint."""

    def complaint(folder: Path) -> str:
        monkeypatch.setattr("sys.argv", ["routesim", "map", str(folder)])
        code = exit_code()
        said = capsys.readouterr()
        assert (code, said.out, said.err.count("\n")) == (2, "", 1), said
        return said.err

    return complaint


def changed(folder: Path, name: str, change: Callable[[Any], object]) -> None:
    """Change the content of a JSON file."""
    content = json.loads((folder / name).read_text())
    change(content)
    (folder / name).write_text(json.dumps(content))


CRAFTED: dict[str, Callable[[Any], object]] = {
    "edge 2^40": lambda record: record["edges"].append(2**40),
    "edge 2^31 - 1 of arms": lambda record: record["edges"].append(2**31 - 1),
    "negative edge": lambda record: record["edges"].__setitem__(0, -1),
    "edges out of order": lambda record: record["edges"].reverse(),
    "edge twice": lambda record: record["edges"].__setitem__(1, record["edges"][0]),
    "edge of a fraction": lambda record: record["edges"].__setitem__(0, 0.5),
    "edge as text": lambda record: record["edges"].__setitem__(0, "0"),
    "empty route": lambda record: record["routes"].__setitem__(0, []),
    "route of 2^40": lambda record: record["routes"].__setitem__(0, [2**40]),
    "route of -1": lambda record: record["routes"].__setitem__(0, [-1]),
    "route of a text": lambda record: record["routes"].__setitem__(0, "00"),
    "no step": lambda record: record["step_ends"].clear(),
    "NaN step": lambda record: record["step_ends"].__setitem__(-1, float("nan")),
    "endless step": lambda record: record["step_ends"].__setitem__(-1, float("inf")),
    "null step": lambda record: record["step_ends"].__setitem__(-1, None),
    "steps backwards": lambda record: record["step_ends"].reverse(),
    "start after the end": lambda record: record.update(start=1e12),
    "NaN start": lambda record: record.update(start=float("nan")),
    "window NaN": lambda record: record.update(window=float("nan")),
    "window -1": lambda record: record.update(window=-1),
    "window 1e400": lambda record: record.update(window=10**400),
    "title of a list": lambda record: record.update(title=[1]),
    "unknown clock": lambda record: record.update(clock="weeks"),
    "no learner": lambda record: record["learners"].clear(),
    "learner is a text": lambda record: record["learners"].__setitem__(0, "UCB1"),
    "label is a list": lambda record: record["learners"][0].update(label=[]),
    "a label twice": lambda record: record["learners"].append(record["learners"][0]),
    "informed is a text": lambda record: record["learners"][0].update(informed="no"),
    "a short curve": lambda record: record["learners"][0]["curve"].pop(),
    "a nested curve": lambda record: record["learners"][0].update(curve=[[1.0]]),
    "a curve of texts": lambda record: record["learners"][0]["curve"].__setitem__(0, "1"),
    "two parts of regret": lambda record: record["learners"][0]["regret"].pop(),
    "regret a number": lambda record: record["learners"][0].update(regret=3),
    "short quantiles": lambda record: record["learners"][0]["quantiles"].pop(),
    "references a list": lambda record: record.update(references=[1]),
    "no routes": lambda record: record.pop("routes"),
}


@pytest.mark.parametrize("kind", ["arms", "record"])
@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_record_is_one_line(
    name: str, kind: str, copy_of: Callable[[str], Path], mapped: Callable[[Path], str]
) -> None:
    folder = copy_of(kind)
    changed(folder, "record.json", CRAFTED[name])
    assert str(folder) in mapped(folder)
    with pytest.raises(ResultsError, match=kind) as refusal:
        Record.read(folder)
    assert "\n" not in str(refusal.value)


def test_a_record_of_far_too_many_cells_is_one_line(
    copy_of: Callable[[str], Path], mapped: Callable[[Path], str]
) -> None:
    folder = copy_of("arms")

    def widen(record: Any) -> None:
        record["edges"] = list(range(300_000))
        record["step_ends"] = list(range(1, 300_001))

    changed(folder, "record.json", widen)
    assert "cells" in mapped(folder)


def readers(folder: Path) -> Iterator[Callable[[Path], object]]:
    if folder.name in ("arms", "record"):
        yield Record.read
    elif folder.name == "traffic":
        yield TrafficRun.load
    else:
        yield rs.Run.load


@pytest.mark.parametrize("text", ANYTHING, ids=range(len(ANYTHING)))
@pytest.mark.parametrize(
    ("kind", "name"),
    [("arms", "record.json"), ("run", "summary.json"), ("rows", "summary.json"), ("traffic", "summary.json")],
)
def test_json_of_any_kind_is_one_line(
    kind: str, name: str, text: str, copy_of: Callable[[str], Path], mapped: Callable[[Path], str]
) -> None:
    folder = copy_of(kind)
    (folder / name).write_text(text)
    for read in readers(folder):
        with pytest.raises(ResultsError, match=f"{kind} holds no") as refusal:
            read(folder)
        assert "\n" not in str(refusal.value)
        assert len(str(refusal.value)) < 1000
    if kind != "traffic":
        assert str(folder) in mapped(folder)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("arms", "edges.parquet"),
        ("arms", "routes.parquet"),
        ("run", "rounds.parquet"),
        ("run", "uses.parquet"),
        ("rows", "plays.parquet"),
    ],
)
def test_damaged_parquet_is_one_line(
    kind: str, name: str, copy_of: Callable[[str], Path], mapped: Callable[[Path], str]
) -> None:
    folder = copy_of(kind)
    good = (folder / name).read_bytes()
    table = parquet.read_table(folder / name)
    texts = pa.table({column: ["x"] * len(table) for column in table.column_names})
    empty = pa.table({column: pa.array([None] * len(table), pa.float64()) for column in table.column_names})
    for other in (texts, empty, table.slice(0, 0), table.drop_columns(table.column_names[-1])):
        parquet.write_table(other, folder / name)
        if len(other) or name != "edges.parquet":
            mapped(folder) if len(other) or name not in ("routes.parquet", "uses.parquet") else None
    for bad in (b"", b"PAR1", good[:-8], good[: len(good) // 2], b"PAR1" + b"\xff" * 100 + b"PAR1", good[::-1]):
        (folder / name).write_bytes(bad)
        assert str(folder) in mapped(folder)


def npz(folder: Path, change: Callable[[dict[str, bytes]], object]) -> None:
    """Change the members of the .npz file of a folder."""
    path = folder / "traffic.npz"
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def array(values: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(values), allow_pickle=True)
    return stream.getvalue()


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


ARRAYS: dict[str, bytes] = {
    "no header": b"",
    "half a header": b"\x93NUMPY\x01\x00\xff\xff{",
    "a header that does not parse": header("{'descr': '<i8', 'fortran_order': False, 'shape': (3,"),
    "a deep header": header("(" * 9000),
    "a header that is no table": header("3"),
    "an unknown kind": header("{'descr': '<q99', 'fortran_order': False, 'shape': (3,), }"),
    "a size beyond all memory": header("{'descr': '<i8', 'fortran_order': False, 'shape': (1099511627776,), }"),
    "a negative size": header("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }"),
    "objects": array(np.array([{}], dtype=object)),
    "texts": array(["a"]),
    "one number": array(3),
    "nothing": array([]),
    "negative numbers": array([-1, -1]),
    "too large numbers": array([[2**62, 2**62, 2**62]]),
    "NaN": array([float("nan")] * 101),
}


@pytest.mark.parametrize("bad", ARRAYS)
@pytest.mark.parametrize(
    "name", ["departures", "arrived", "totals", "loads", "load_seconds", "route_ends", "route_edges", "plays"]
)
def test_arrays_of_any_kind_are_one_line(name: str, bad: str, copy_of: Callable[[str], Path]) -> None:
    folder = copy_of("traffic")
    npz(folder, lambda members: members.update({f"{name}.npy": ARRAYS[bad]}))
    with pytest.raises(ResultsError, match="traffic holds no traffic that can be read") as refusal:
        TrafficRun.load(folder)
    assert "\n" not in str(refusal.value)


def test_what_was_not_changed_is_read(copy_of: Callable[[str], Path]) -> None:
    for kind in ("arms", "record"):
        assert Record.read(copy_of(kind)).learners
    for kind in ("run", "rows"):
        assert rs.Run.load(copy_of(kind)).rounds == 300
    assert TrafficRun.load(copy_of("traffic")).departures.sum() > 0


CRAFTED_RUNS: dict[str, Callable[[Any], object]] = {
    "a path of 2^40": lambda run: run["paths"].__setitem__(0, [2**40]),
    "a negative path": lambda run: run["paths"].__setitem__(0, [-1]),
    "an empty path": lambda run: run["paths"].__setitem__(0, []),
    "a path of texts": lambda run: run["paths"].__setitem__(0, ["1"]),
    "a window of 400 digits": lambda run: run.update(window=10**400),
    "a window of -1": lambda run: run.update(window=-1),
    "a window of a half": lambda run: run.update(window=0.5),
    "rounds of a text": lambda run: run.update(rounds="300"),
    "rounds of 1e400": lambda run: run.update(rounds=10**400),
    "a seed of a list": lambda run: run.update(seed=[]),
    "a learner of a list": lambda run: run.update(learner=[]),
    "a NaN comparator": lambda run: run.update(comparator_value=float("nan")),
    "details of a table": lambda run: run.update(informed={"a": {}}),
    "quantiles of texts": lambda run: run.update(quantiles=["a"]),
}


@pytest.mark.parametrize("kind", ["run", "rows"])
@pytest.mark.parametrize("name", CRAFTED_RUNS)
def test_a_crafted_run_is_one_line(
    name: str, kind: str, copy_of: Callable[[str], Path], mapped: Callable[[Path], str]
) -> None:
    folder = copy_of(kind)
    changed(folder, "summary.json", CRAFTED_RUNS[name])
    assert str(folder) in mapped(folder)


@pytest.mark.parametrize("missing", ["network.npz", "uses.parquet"])
def test_a_run_that_cannot_be_drawn_is_named(
    missing: str, copy_of: Callable[[str], Path], mapped: Callable[[Path], str]
) -> None:
    folder = copy_of("run")
    (folder / missing).unlink()
    assert str(folder) in mapped(folder)
