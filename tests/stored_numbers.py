"""Results of named scenarios, cut short, in a few stored numbers: a change of the code must not change them.

`python tests/stored_numbers.py FILE` runs the cases with the package that Python finds and writes the file.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow.parquet as pq
import tomli_w
from command_line import ROOT, command

STORED = Path(__file__).parent / "stored" / "numbers.json"

SHORT_TRAFFIC: dict[str, Any] = {
    "replications": 1,
    "traffic.measure_from_s": 300,
    "traffic.measure_to_s": 900,
    "traffic.demand.end_s": 1200,
}
# A bundled scenario, and what is changed in it: short enough for a test, long enough to pass through every planner,
# learner, router and engine.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "helsinki": ("helsinki", {"rounds": 600, "replications": 2}),
    "helsinki-travellers": ("helsinki-travellers", {"rounds": 300, "replications": 1}),
    "congested-bandit": ("congested-bandit", {"rounds": 700, "replications": 2}),
    "plain-bandit": ("plain-bandit", {"rounds": 400, "replications": 1}),
    "paper-contextual": ("paper-contextual", {"rounds": 150, "replications": 1}),
    "gothenburg-whole": ("gothenburg-whole", {"rounds": 60}),
    "monaco-long-window": ("monaco", {"rounds": 300, "replications": 1, "city.window": 9}),
    "braess": ("braess", {"replications": 1, "traffic.measure_from_s": 300, "traffic.measure_to_s": 900}),
    "cologne-compliance": (
        "cologne-compliance",
        SHORT_TRAFFIC | {"sweep": {"learners.0.compliance": [0.5, 1.0]}},
    ),
    "cologne-rerouting": (
        "cologne-traffic",
        SHORT_TRAFFIC
        | {
            "traffic.congestion": {"name": "linear", "slope": 0.02},
            "traffic.reroute_share": 0.3,
            "learners": [{"name": name} for name in ("CARMABRouter", "GreedyRouter", "LogitRouter")],
        },
    ),
    "cologne-pair-learners": (
        "cologne-traffic",
        SHORT_TRAFFIC
        | {
            "traffic.overtaking": False,
            "learners": [{"name": name} for name in ("UCB1", "ShortestPath", "LogitRouter")],
        },
    ),
}


def scenario_of(case: str) -> str:
    """Return the scenario of a case as TOML."""
    name, changes = CASES[case]
    content: dict[str, Any] = tomllib.loads((ROOT / "scenarios" / f"{name}.toml").read_text())
    for key, value in changes.items():
        *way, last = key.split(".") if key != "sweep" else ["sweep"]
        table = content
        for step in way:
            table = table[step]
        table[last] = value
    return tomli_w.dumps(content)


def numbers_of(folder: Path) -> dict[str, Any]:
    """Return the table of a result and a digest of every column that was stored of its rounds and edges."""
    summary = json.loads((folder / "summary.json").read_text())
    found: dict[str, Any] = {"table": summary["table"]}
    for path in sorted(folder.rglob("*.parquet")):
        for name, column in zip(*(lambda t: (t.column_names, t.columns))(pq.read_table(path)), strict=True):
            values = column.combine_chunks().to_pylist()
            digest = hashlib.sha256(repr(values).encode()).hexdigest()[:16]
            found[f"{path.relative_to(folder).as_posix()}:{name}"] = digest
    return found


def machine() -> dict[str, str]:
    """Return what the last bits of a number depend on beside the code."""
    cpu = numba.core.config.CPU_NAME or __import__("llvmlite.binding").binding.get_host_cpu_name()
    return {"cpu": cpu, "numba": numba.__version__, "numpy": np.__version__}


def run_case(case: str, folder: Path, **options: Any) -> dict[str, Any]:
    """Run one case with the package that Python finds."""
    file = folder / f"{case}.toml"
    file.write_text(scenario_of(case))
    words = command("run", str(file), "--out", str(folder / case), "--quiet", "--workers", "1")
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    return numbers_of(folder / case)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        stored = {"machine": machine(), "cases": {case: run_case(case, Path(folder)) for case in CASES}}
    Path(sys.argv[1]).write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
