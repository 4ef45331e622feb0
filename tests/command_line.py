"""The command line in a process of its own, for the tests."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SEVEN = {"scenario.toml", "summary.json", "rounds.parquet", "edges.parquet", "routes.geojson", "regret.png", "map.html"}

# Three learners on three arms: a second or so of work, in parts that are worth keeping.
SMALL = """
kind = "bandit"
title = "Three arms"
rounds = {rounds}
replications = {replications}
seed = 0
[bandit]
arms = 3
congestion = "inverse"
noise_variance = 0.1
windows = [3]
[[learners]]
name = "CARMAB"
confidence = 1.0
[[learners]]
name = "UCB1"
[[learners]]
name = "RandomPath"
"""


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "routesim", *words]


def environment() -> dict[str, str]:
    """Return the environment, with this checkout first wherever the process is started."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}


def routesim(*words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(*words), capture_output=True, text=True, cwd=cwd, check=False, timeout=300, env=environment()
    )


def start(*words: str, cwd: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, env=environment()
    )


def small(folder: Path, *, rounds: int = 20_000, replications: int = 4, more: str = "") -> Path:
    """Write the small scenario into a folder."""
    path = folder / "small.toml"
    path.write_text(SMALL.format(rounds=rounds, replications=replications) + more)
    return path


def summary_of(folder: Path) -> dict[str, Any]:
    """Return a summary without what varies between equal runs."""
    content: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    del content["times"]
    return content


def everything(folder: Path) -> dict[str, bytes]:
    """Return all files of a result, not of an unfinished one beside it.

    The summary comes without its times, and the GeoPackage, which has a date in it, not at all.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        if ".unfinished" in path.relative_to(folder).parts:
            continue
        if path.name == "summary.json":
            found[str(path.relative_to(folder))] = json.dumps(summary_of(path.parent)).encode()
        elif path.is_file() and path.suffix != ".gpkg":
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found
