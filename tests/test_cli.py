"""The command line, in a process of its own: results in a folder, mistakes in one line with exit code 2."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from browser import Browser
from command_line import SEVEN, command, environment, everything, routesim, small, summary_of
from driving import work_through
from sumo_nets import needs_libsumo

import routesim as rs
from routesim.scenario.bundled import scenario_names


def test_help_and_version(tmp_path: Path) -> None:
    assert "scenarios" in routesim("--help", cwd=tmp_path).stdout
    assert routesim("--version", cwd=tmp_path).stdout.strip() == "0.1.0"


def test_a_shell_completes_names_and_options() -> None:
    code = "import sys; sys.argv = ['routesim']; from routesim.__main__ import main; main()"

    def completed(words: str) -> list[str]:
        asked = {"_ROUTESIM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        out = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env={**environment(), **asked}, check=False
        )
        return out.stdout.split()

    assert completed("routesim run hel") == [name for name in scenario_names() if name.startswith("hel")]
    assert completed("routesim run --res") == ["--resume"]


def test_scenarios_are_listed(tmp_path: Path) -> None:
    out = routesim("scenarios", cwd=tmp_path)
    assert [line.split()[0] for line in out.stdout.splitlines()] == scenario_names()
    listed = json.loads(routesim("scenarios", "--json", cwd=tmp_path).stdout)
    assert [one["name"] for one in listed] == scenario_names()
    assert all(one["title"] and one["kind"] for one in listed)


# Of each kind of scenario some run always; the rest have to wait for the slow tests.
LATER = (
    "cologne-compliance",
    "cologne-judged",
    "coquimbo",
    "coquimbo-morning",
    "gothenburg-whole",
    "helsinki-windows",
    "nauru",
    "paper-contextual",
)
# These run in SUMO, where it is installed.
IN_SUMO = ("cologne-judged", "helsinki-closed")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, marks=[pytest.mark.slow] * (one in LATER) + [needs_libsumo] * (one in IN_SUMO))
        for one in scenario_names()
    ],
)
def test_every_scenario_runs_at_a_short_horizon_and_its_page_is_drawn(
    name: str, tmp_path: Path, chromium_if_any: Browser | str
) -> None:
    out = routesim("run", name, "--rounds", "400", "--replications", "1", "--workers", "1", cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    folder = tmp_path / "runs" / name
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["name"], summary["rounds"], summary["replications"]) == (name, 400, 1)
    assert sorted(path.name for path in folder.iterdir()) == summary["files"]
    results = sorted((folder / "points").iterdir()) if "points" in summary else [folder]
    for one in results:
        assert {path.name for path in one.iterdir()} >= SEVEN
    assert all("learner" in row for row in summary["table"])
    assert summary["verdict"] in out.stdout
    assert str(Path("runs") / name) in out.stdout
    assert "map.html" in out.stdout
    if isinstance(chromium_if_any, Browser):  # without one, the tests of pages say why they are skipped
        chromium_if_any.look()
        chromium_if_any.open(results[0] / "map.html")
        assert chromium_if_any.js("return Page.views.length") == (1 if len(summary["table"]) == 1 else 2)
        work_through(chromium_if_any)
        assert (chromium_if_any.requests(), chromium_if_any.complaints()) == ([], [])


def test_cities_are_listed(tmp_path: Path) -> None:
    out = routesim("cities", cwd=tmp_path)
    assert [line.split()[0] for line in out.stdout.splitlines()] == rs.list_cities()
    assert "OpenStreetMap" in out.stdout
    listed = json.loads(routesim("cities", "--json", cwd=tmp_path).stdout)
    assert [one["name"] for one in listed] == rs.list_cities()
    assert all(one["nodes"] > 0 and one["edges"] > 0 for one in listed)


def test_the_schema_is_one_of_scenarios(tmp_path: Path) -> None:
    schema = json.loads(routesim("schema", cwd=tmp_path).stdout)
    assert "CityScenario" in schema["$defs"]


def test_the_same_seed_writes_the_same_bytes_on_any_number_of_workers(tmp_path: Path) -> None:
    small(tmp_path, rounds=2000, more='[sweep]\n"bandit.arms" = [2, 3]\n')
    for workers in ("1", "2"):
        out = routesim("run", "small.toml", "--quiet", "--workers", workers, "--out", workers, cwd=tmp_path)
        assert (out.returncode, out.stdout, out.stderr) == (0, "", "")
    one, two = everything(tmp_path / "1"), everything(tmp_path / "2")
    assert sorted(one) == sorted(two)
    assert [name for name in one if one[name] != two[name]] == []
    times = json.loads((tmp_path / "2" / "summary.json").read_text())["times"]
    assert times["workers"] == 2
    assert times["runs_found_done"] == 0


def test_a_sweep_leaves_a_tidy_table_a_figure_and_a_result_at_each_point(tmp_path: Path) -> None:
    from pyarrow import parquet

    small(tmp_path, rounds=500, replications=2, more='[sweep]\nrounds = [500, 1200]\n"bandit.arms" = [2, 3]\n')
    out = routesim("run", "small.toml", "--json", "--workers", "1", cwd=tmp_path)
    summary = json.loads(out.stdout)
    assert (out.returncode, out.stderr) == (0, "")
    folder = tmp_path / "runs" / "small"
    assert sorted(path.name for path in folder.iterdir()) == [
        "points",
        "scenario.toml",
        "summary.json",
        "sweep.png",
        "table.csv",
        "table.parquet",
    ]
    table = parquet.read_table(folder / "table.parquet").to_pylist()
    assert table == summary["table"]
    assert [(row["rounds"], row["bandit.arms"], row["learner"]) for row in table[:4]] == [
        (500, 2, "CARMAB(confidence=1.0)"),
        (500, 2, "UCB1"),
        (500, 2, "RandomPath"),
        (500, 3, "CARMAB(confidence=1.0)"),
    ]
    assert len(table) == 12
    assert (folder / "table.csv").read_text().splitlines()[0].startswith("rounds,bandit.arms,window,learner,")
    assert len((folder / "table.csv").read_text().splitlines()) == 13
    for row, point in zip(table[::3], summary["points"], strict=True):
        there = summary_of(folder / "points" / point["point"])
        assert there["table"][0].items() <= row.items()
        assert {path.name for path in (folder / "points" / point["point"]).iterdir()} >= SEVEN
    # A point is a scenario like any other, and gives the same when it is run by itself.
    last = folder / "points" / summary["points"][-1]["point"]
    words = ("--quiet", "--workers", "1", "--out", "again")
    assert routesim("run", str(last / "scenario.toml"), *words, cwd=tmp_path).returncode == 0
    assert summary_of(tmp_path / "again")["table"] == summary_of(last)["table"]


def test_json_is_the_summary_and_nothing_else(tmp_path: Path) -> None:
    small(tmp_path, rounds=500)
    out = routesim("run", "small.toml", "--json", "--seed", "7", "--workers", "1", cwd=tmp_path)
    summary = json.loads(out.stdout)
    assert summary == json.loads((tmp_path / "runs" / "small" / "summary.json").read_text())
    assert (summary["seed"], summary["rounds"], summary["replications"]) == (7, 500, 4)
    assert set(summary["versions"]) == {"routesim", "python", "numpy", "scipy", "numba", "pyarrow"}
    assert len(summary["scenario_sha256"]) == 64
    assert out.stderr == ""


def test_piped_output_has_no_escape_codes_and_a_terminal_shows_a_bar(tmp_path: Path) -> None:
    small(tmp_path, rounds=2000)
    out = routesim("run", "small.toml", "--workers", "1", cwd=tmp_path)
    assert "\x1b" not in out.stdout + out.stderr
    assert "open the map: runs/small/map.html" in out.stdout
    ours, theirs = pty.openpty()
    words = command("run", "small.toml", "--workers", "1", "--out", "again")
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=theirs, cwd=tmp_path, env={**environment(), "TERM": "xterm"}
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            block = os.read(ours, 1 << 16)
        except OSError:  # that is how a terminal ends
            break
        if not block:
            break
        shown += block
    os.close(ours)
    assert process.stdout is not None
    said = process.stdout.read()
    process.stdout.close()
    assert process.wait() == 0
    assert b"of 12 runs" in shown
    assert b"\x1b[" in shown
    assert b"\x1b" not in said


def test_a_page_is_drawn_again_from_the_folder_alone(tmp_path: Path) -> None:
    small(tmp_path, rounds=500, replications=1)
    assert routesim("run", "small.toml", "--quiet", "--workers", "1", cwd=tmp_path).returncode == 0
    folder = tmp_path / "runs" / "small"
    page = (folder / "map.html").read_bytes()
    (folder / "map.html").unlink()
    assert routesim("map", "runs/small", cwd=tmp_path).stdout.strip() == "runs/small/map.html"
    assert (folder / "map.html").read_bytes() == page
    out = routesim("map", "runs/small", "--learner", "UCB1", "--out", "ucb.html", cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    assert (tmp_path / "ucb.html").read_bytes() != page


def test_a_saved_run_is_drawn_too(tmp_path: Path) -> None:
    two = rs.RoundEnvironment.from_congestion(rs.ActionSet.arms(2), [0.9, 0.6], rs.congestion.Inverse(), 2, 0.1)
    rs.run(two, rs.UCB1(), 100, seed=0).save(tmp_path / "run")
    assert routesim("map", "run", cwd=tmp_path).stdout.strip() == "run/map.html"
    page = (tmp_path / "run" / "map.html").read_text(encoding="utf-8")
    assert "What UCB1 recommended" in page
    # 100 rounds are 34 steps of three, the last of one; people count them from 1.
    assert routesim("map", "run", "--step", "34", cwd=tmp_path).returncode == 0
    assert (tmp_path / "run" / "map.html").read_text(encoding="utf-8") == page, "the last step is shown unless told"
    out = routesim("map", "run", "--step", "35", cwd=tmp_path)
    assert (out.returncode, out.stdout) == (2, "")
    assert "--step runs from 1 to 34 here, got 35" in out.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "paper-bandit"), "did you mean 'paper-bandits'"),
        (("run", "paper-bandits", "--rounds", "0"), "rounds"),
        (("run", "nowhere.toml"), "cannot read scenario"),
        (("run", "paper-bandits", "--rounds", "10", "--out", "taken"), "holds no earlier result"),
        (("run", "paper-bandits", "--rounds", "10", "--out", "taken/inside"), "cannot write results to taken/inside"),
        (("run", "paper-bandits", "--rounds", "10", "--workers", "0"), "--workers"),
        (("run", "paper-bandits", "--rounds", "abc"), "--rounds"),
        (("run", "paper-bandits", "--rounds", "10", "--scheduler", "tcp://127.0.0.1:1"), "no Dask scheduler answers"),
        (("run",), "Missing argument"),
        (("drive", "helsinki"), "drive"),
        (("map", "nowhere"), "nowhere holds no record"),
        (("map", "."), "holds no record"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    out = routesim(*words, cwd=tmp_path)
    assert out.returncode == 2, out.stderr
    assert message in out.stderr
    assert out.stderr.count("\n") == 1, out.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_nobody_reads_or_that_finds_no_room_is_no_traceback(unbuffered: str, tmp_path: Path) -> None:
    words = " ".join(command("cities"))
    out = subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", f"{words} | true; {words} > /dev/full"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment() | {"PYTHONUNBUFFERED": unbuffered},
    )
    assert out.returncode == 2
    assert out.stderr == "routesim: [Errno 28] No space left on device\n"


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
        (("import", "town.graphml", "--time-unit", "h"), "has no time_unit; leave it out"),
        (("import", "Gridtown", "--length-unit", "km"), "leave out the units"),
    ],
)
def test_an_import_that_cannot_be_is_one_line(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    rs.load_city("cologne").to_graphml(tmp_path / "town.graphml")
    (tmp_path / "broken.osm").write_text("<osm><node")
    out = routesim(*words, cwd=tmp_path)
    assert (out.returncode, out.stderr.count("\n")) == (2, 1), out.stderr
    assert message in out.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.osm", "town.graphml"]
