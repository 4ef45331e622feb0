"""Every example runs from its first line to its last, with a short horizon, and tells what it promises."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
ROUNDS = {
    "custom_graph.py": 500,
    "learn_a_city.py": 500,
    "whole_city_plan.py": 50,
    "morning_traffic.py": 500,
    "own_learner.py": 300,
}
SAID = {
    "custom_graph.py": r"[\d.]+ s a trip in the end; the best possible: [\d.]+ s",
    "learn_a_city.py": r"best possible: [\d.]+ s a trip\n(.+ s in the end, [+-][\d.]+%\n){4}",
    "whole_city_plan.py": r"the plan: [\d.]+ s a trip; nobody below [\d.]+ s; gap [\d.]+%\n",
    "morning_traffic.py": r"(.+ s a trip, [\d,]+ edges driven\n){4}static user +[\d.]+ s .+\nstatic system +[\d.]+ s",
    "own_learner.py": r"(a knee at 1 use|BPR)\n( +\w+ +[\d.]+ s in the end, best possible [\d.]+ s\n){4}",
}


def test_all_scripts_are_here() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(ROUNDS)


@pytest.mark.parametrize("script", ROUNDS)
def test_a_script_runs(script: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / script), str(ROUNDS[script])]
    root = {"PYTHONPATH": str(EXAMPLES.parent), "MPLBACKEND": "agg"}
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(SAID[script], done.stdout), done.stdout


def shown(code: str, names: dict[str, Any], place: str) -> Any:
    """Run a cell and return the value of its last line, as a notebook shows it."""
    tree = ast.parse(re.sub(r"^%.*$", "", code, flags=re.MULTILINE))  # %commands are the notebook's own
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(tree, place, "exec"), names)  # noqa: S102 - our own text
        return None
    exec(compile(ast.Module(tree.body[:-1], []), place, "exec"), names)  # noqa: S102
    return eval(compile(ast.Expression(last.value), place, "eval"), names)  # noqa: S307


@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_and_is_kept_without_outputs(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROUNDS", "300")
    content = json.loads(notebook.read_text(encoding="utf-8"))
    assert content["nbformat"] == 4
    names: dict[str, Any] = {}
    pictures = []
    for cell in content["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        value = shown("".join(cell["source"]), names, notebook.name)
        pictures.append(str(getattr(value, "_repr_html_", str)() or ""))
    assert any("<" in picture for picture in pictures)
    if notebook.stem == "city_with_maps":
        assert any("<iframe" in picture for picture in pictures)  # the map
        assert any("data:image/png" in picture for picture in pictures)  # the run's curve


def test_there_are_two_notebooks() -> None:
    assert len(list(EXAMPLES.glob("*.ipynb"))) == 2
