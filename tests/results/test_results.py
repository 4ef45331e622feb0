"""Runs: regret by hand, bands by hand, and folders that are written whole or not at all."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from runs import made_up

import routesim as rs
from routesim.errors import InputError, ResultsError
from routesim.storage.folders import write_folder


def test_regret_by_hand() -> None:
    run = made_up([0.5, 1.0, 0.0, 2.0])
    assert_allclose(run.regret, [0.5, 0.5, 1.5, 0.5])
    assert_allclose(run.average_regret, [0.5, 0.25, 0.5, 0.125])
    assert_allclose(run.average_regret_upper, [0.75, 0.5, 0.75, 0.375])
    assert_allclose(run.average_realised_regret, [0.4, 0.15, 0.4, 0.025])
    summary = run.summary()
    assert summary["average_regret"] == run.average_regret[-1] == 0.125
    assert summary["mean_reward"] == 0.875
    assert (summary["comparator_value"], summary["comparator_bound"]) == (1.0, 1.25)
    assert_allclose(summary["average_realised_regret"], 0.025)


def test_a_band_by_hand() -> None:
    runs = [made_up([value]) for value in (0.0, 0.2, 0.4)]
    band = rs.regret_band(runs, level=0.9)
    # mean 0.8, standard error 0.2 / sqrt(3), Student's t quantile at 2 degrees of freedom 2.919986
    assert_allclose(band.mean, [0.8])
    assert_allclose(band.upper - band.mean, [2.919986 * 0.2 / np.sqrt(3)], rtol=1e-6)
    assert_allclose(band.mean - band.lower, band.upper - band.mean)
    assert band.rounds.tolist() == [1]


def test_a_band_of_one_run_is_its_curve() -> None:
    band = rs.regret_band([made_up([0.5, 1.0])], at=[2])
    assert (band.mean.tolist(), band.lower.tolist(), band.upper.tolist()) == ([0.25], [0.25], [0.25])


@pytest.mark.parametrize(
    ("runs", "options", "message"),
    [
        ([], {}, "at least one run"),
        ([made_up([1.0])], {"level": 1.0}, "between 0 and 1, got 1.0"),
        ([made_up([1.0])], {"at": [2]}, "between 1 and 1, got 2"),
        ([made_up([1.0])], {"at": [0]}, "got 0"),
        ([made_up([1.0])], {"at": []}, "at least one round"),
    ],
)
def test_a_band_of_nonsense_is_refused(runs: list[rs.Run], options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rs.regret_band(runs, **options)


def test_a_run_survives_the_disk(tmp_path: Path) -> None:
    run = made_up([0.5, 1 / 3, 0.1])
    run.save(tmp_path / "deep" / "run")
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["run"], "nothing else is left behind"
    back = rs.Run.load(tmp_path / "deep" / "run")
    assert back.summary() == run.summary()
    assert dict(back.details) == dict(run.details)
    for column in ("actions", "expected_rewards", "rewards"):
        assert_array_equal(getattr(back, column), getattr(run, column))


def test_saving_again_replaces_the_earlier_result(tmp_path: Path) -> None:
    made_up([0.5]).save(tmp_path / "run")
    made_up([0.5, 0.7]).save(tmp_path / "run")
    assert rs.Run.load(tmp_path / "run").rounds == 2


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ResultsError, match="holds no earlier result"):
        made_up([0.5]).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_failure_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    made_up([0.5]).save(tmp_path / "run")

    def fails(target: Path) -> None:
        (target / "summary.json").write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(ResultsError, match="No space left on device"):
        write_folder(tmp_path / "run", fails)
    assert rs.Run.load(tmp_path / "run").rounds == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="cannot write results"):
        made_up([0.5]).save(tmp_path / "file" / "run")


@pytest.mark.parametrize("damage", ["missing", "not json", "no table", "wrong keys", "wrong values"])
def test_a_damaged_folder_is_an_error_of_ours(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "run"
    made_up([0.5]).save(folder)
    if damage == "missing":
        (folder / "summary.json").unlink()
    elif damage == "not json":
        (folder / "summary.json").write_text("{")
    elif damage == "no table":
        (folder / "rounds.parquet").write_bytes(b"PAR1 nonsense")
    elif damage == "wrong values":
        summary = json.loads((folder / "summary.json").read_text())
        (folder / "summary.json").write_text(json.dumps({**summary, "comparator_value": "abc"}))
    else:
        (folder / "summary.json").write_text(json.dumps({"learner": "x"}))
    with pytest.raises(ResultsError, match="holds no run"):
        rs.Run.load(folder)
