"""CONTRIBUTING, followed to the letter in a copy of the project: what it says is enough, and touches so many files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from snippets import snippets

ROOT = Path(__file__).parent.parent
SHOWN = {one.title: one.text for one in snippets(ROOT / "CONTRIBUTING.md") if one.title}
IN_TABLE = [one.text for one in snippets(ROOT / "CONTRIBUTING.md") if one.title == "routesim/__init__.pyi"]
TABLE, PHYSICS, FORMATS = "routesim/__init__.pyi", "routesim/traffic/physics.py", "routesim/roads/importers/__init__.py"
REFERENCE = "tests/test_docs.py::test_every_public_name_stands_in_the_reference"

# The lines that each section adds to files there are: the file, a text they go before, and the lines.
LINES = {
    "learner": [(TABLE, "from routesim.learners.lin_ucb", IN_TABLE[0])],
    "router": [(TABLE, "from routesim.traffic.routers.fixed", IN_TABLE[1])],
    "congestion function": [
        ("routesim/congestion.py", "def _floats", f"{SHOWN['routesim/congestion.py']}\n\n"),
    ],
    "engine": [(PHYSICS, "from routesim.traffic.engines.window", SHOWN[PHYSICS]), (PHYSICS, ")}\n", ", SlowWindow")],
    "importer": [(FORMATS, '    ".tntp"', SHOWN[FORMATS])],
}
NEW = {
    "learner": "routesim/learners/in_turn.py",
    "router": "routesim/traffic/routers/even.py",
    "engine": "routesim/traffic/engines/slow.py",
    "importer": "routesim/roads/importers/edge_list.py",
}
USED = {
    "learner": """
world = rs.RoundEnvironment.from_congestion(rs.ActionSet.arms(3), [0.9, 0.5, 0.1], rs.congestion.Inverse(), 2, 0.1)
assert rs.run(world, rs.InTurn(rounds=2), 7).actions.tolist() == [0, 0, 1, 1, 2, 2, 0]
from routesim.scenario.choices import LearnerChoice, RouterChoice
assert LearnerChoice(name="InTurn", rounds=2).make() == rs.InTurn(rounds=2)
assert RouterChoice(name="InTurn", rounds=2).make() == rs.PairLearnersRouter(rs.InTurn(rounds=2))
""",
    "router": """
roads = rs.load_city("nauru")
traffic = rs.TrafficSimulator(roads, rs.load_demand("nauru", vehicles=50)).run(rs.EvenRouter(k=2))
assert traffic.router == "EvenRouter" and traffic.summary()["arrived"] > 0
from routesim.scenario.choices import RouterChoice
assert RouterChoice(name="EvenRouter", k=2).make() == rs.EvenRouter(k=2)
""",
    "congestion function": """
from routesim.scenario.choices import CongestionChoice
made = CongestionChoice(name="exponential", rate=0.5).make()
assert made(np.arange(3)).tolist() == np.exp([0.0, 0.5, 1.0]).tolist()
""",
    "engine": """
roads, demand = rs.load_city("nauru"), rs.load_demand("nauru", vehicles=20)
runs = [rs.TrafficSimulator(roads, demand, physics=one).run(rs.GreedyRouter()) for one in ("window", "slow")]
assert np.allclose(*(run.arrival_s for run in runs), equal_nan=True) and runs[1].n_events > 0
""",
    "importer": """
from pathlib import Path
from routesim.roads.importers import read_network
Path("town.edges").write_text("a b 12.5\\nb c 3\\n")
assert read_network("town.edges").free_flow_s.tolist() == [12.5, 3.0]
""",
}
# Existing tests that take up the new thing by themselves, or would notice that something was forgotten.
WATCHING = {
    "learner": ["tests/learners/test_contract.py", REFERENCE],
    "router": ["tests/learners/test_contract.py", REFERENCE],
    "congestion function": ["tests/test_congestion.py"],
    "engine": ["tests/traffic/test_engine_seam.py"],
    "importer": ["tests/roads/importers/test_hostile_files.py"],
}


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "files"), [*((one, 2) for one in NEW), ("congestion function", 1)])
def test_a_section_is_enough(recipe: str, files: int, tmp_path: Path) -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S607
    for name in tracked.stdout.splitlines():
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name)
    touched = set()
    if recipe in NEW:
        assert not (tmp_path / NEW[recipe]).exists()
        text = SHOWN.get(NEW[recipe]) or (ROOT / "tests/traffic/slow_engine.py").read_text(encoding="utf-8")
        (tmp_path / NEW[recipe]).write_text(text, encoding="utf-8")
        touched.add(NEW[recipe])
    for name, before, added in LINES[recipe]:
        there = (tmp_path / name).read_text(encoding="utf-8")
        assert there.count(before) == 1, (name, before)
        (tmp_path / name).write_text(there.replace(before, added + before), encoding="utf-8")
        touched.add(name)
    assert len(touched) == files
    code = "import numpy as np\nimport routesim as rs\n" + USED[recipe]
    clean = [["-m", "ruff", "check", "."], ["-m", "ruff", "format", "--check", "routesim"]]
    watching = ["-m", "pytest", "-q", "-n", "0", "tests/test_architecture.py", *WATCHING[recipe]]
    lint = [] if recipe == "engine" else clean  # the example of an engine keeps the rules of tests
    for command in (["-c", code], *lint, watching):
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
