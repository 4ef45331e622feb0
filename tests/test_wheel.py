"""The wheel alone, in an empty environment and an empty folder: every named scenario runs at a short horizon."""

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = {"scenario.toml", "summary.json", "rounds.parquet", "edges.parquet", "routes.geojson", "regret.png", "map.html"}


def said(*words: str | Path, cwd: Path) -> str:
    out = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    return out.stdout


@pytest.mark.slow
def test_every_named_scenario_runs_from_the_wheel_alone(tmp_path: Path) -> None:
    said(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path / "dist", ROOT, cwd=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    programs = tmp_path / "env" / "bin"
    said(programs / "pip", "install", "-q", wheel, cwd=tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    names = [row["name"] for row in json.loads(said(programs / "routesim", "scenarios", "--json", cwd=empty))]
    assert len(names) >= 10
    for name in names:
        words = ("run", name, "--rounds", "200", "--replications", "1", "--json")
        summary = json.loads(said(programs / "routesim", *words, cwd=empty))
        folder = empty / "runs" / name
        folders = sorted((folder / "points").iterdir()) if summary.get("swept") else [folder]
        for one in folders:
            assert {path.name for path in one.iterdir()} >= FILES, f"{one}: files of the contract"
        assert summary["table"], name
    assert sorted(path.name for path in empty.iterdir()) == ["runs"]
