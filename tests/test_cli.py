"""The command line, in a process of its own: results in a folder, mistakes in one line with exit code 2."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import routesim as rs
from routesim.scenario import scenario_names


def routesim(*words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "routesim.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, timeout=300)


def test_help_and_version(tmp_path: Path) -> None:
    assert "scenarios" in routesim("--help", cwd=tmp_path).stdout
    assert routesim("--version", cwd=tmp_path).stdout.strip() == "0.1.0"


def test_scenarios_are_listed(tmp_path: Path) -> None:
    out = routesim("scenarios", cwd=tmp_path)
    assert [line.split()[0] for line in out.stdout.splitlines()] == scenario_names()


@pytest.mark.parametrize("name", scenario_names())
def test_every_scenario_runs_at_a_short_horizon_from_any_folder(name: str, tmp_path: Path) -> None:
    out = routesim("run", name, "--rounds", "1500", "--replications", "2", cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    folder = tmp_path / "runs" / name
    names = sorted(path.name for path in folder.iterdir())
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["scenario"]["rounds"] == 1500
    if summary["scenario"]["kind"] == "city":
        assert names == ["map.html", "regret.png", "summary.json"]
        assert all(row["mean_trip_s"] > 0.99 * row["best_possible_s"] for row in summary["table"])
        assert "did best" in out.stdout
    else:
        assert names == ["regret.csv", "regret.png", "summary.json"]
        assert all("average_regret_1000" in row and "average_regret_1500" in row for row in summary["table"])
    assert str(Path("runs") / name) in out.stdout


def test_cities_are_listed(tmp_path: Path) -> None:
    out = routesim("cities", cwd=tmp_path)
    assert [line.split()[0] for line in out.stdout.splitlines()] == rs.list_cities()
    assert "OpenStreetMap" in out.stdout


def test_the_same_seed_writes_the_same_numbers_on_any_number_of_workers(tmp_path: Path) -> None:
    words = ("run", "paper-bandits", "--rounds", "300", "--replications", "3", "--quiet")
    routesim(*words, "--out", "one", cwd=tmp_path)
    out = routesim(*words, "--out", "two", "--workers", "2", cwd=tmp_path)
    assert (out.returncode, out.stdout) == (0, "")
    for name in ("regret.csv", "summary.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "paper-bandit"), "did you mean 'paper-bandits'"),
        (("run", "paper-bandits", "--rounds", "0"), "rounds"),
        (("run", "nowhere.toml"), "cannot read scenario"),
        (("run", "paper-bandits", "--rounds", "10", "--out", "taken"), "holds no earlier result"),
        (("run", "paper-bandits", "--rounds", "10", "--workers", "0"), "--workers"),
        (("run", "paper-bandits", "--rounds", "abc"), "--rounds"),
        (("run",), "Missing argument"),
        (("drive", "helsinki"), "drive"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    out = routesim(*words, cwd=tmp_path)
    assert out.returncode == 2
    assert message in out.stderr
    assert out.stderr.count("\n") == 1, out.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_file_becomes_a_network_file(tmp_path: Path) -> None:
    rs.load_city("cologne").to_graphml(tmp_path / "town.graphml")
    out = routesim("import", "town.graphml", "--out", "town.npz", cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    assert "69 nodes, 139 edges" in out.stdout
    assert rs.RoadNetwork.from_file(tmp_path / "town.npz").equals(
        rs.RoadNetwork.from_graphml(tmp_path / "town.graphml")
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("import", "nothing.graphml", "--out", "town.npz"), "nothing.graphml"),
        (("import", "broken.osm", "--out", "town.npz"), "broken.osm"),
        (("import", "town.graphml", "--out", "town.xyz"), "town.xyz"),
    ],
)
def test_an_import_that_cannot_be_is_one_line(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    rs.load_city("cologne").to_graphml(tmp_path / "town.graphml")
    (tmp_path / "broken.osm").write_text("<osm><node")
    out = routesim(*words, cwd=tmp_path)
    assert (out.returncode, out.stderr.count("\n")) == (2, 1), out.stderr
    assert message in out.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.osm", "town.graphml"]
