"""What the project's file declares: every package that is imported, in versions that work, on every Python it names."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# What users install; the other extras are for those who work on the project.
EXTRAS = ("cluster", "gym", "serve", "sumo")
# Tests that ask something of every package: numbers, roads in every format, pages, storage, runs in processes.
ASKED = (
    "tests/test_stored_numbers.py",
    "tests/test_cli.py",
    "tests/test_gym.py",
    "tests/test_congestion.py",
    "tests/roads",
    "tests/results",
    "tests/report/test_files.py",
    "tests/report/test_page.py",
    "tests/storage",
)


def requirements() -> list[str]:
    return [*PROJECT["dependencies"], *(one for extra in EXTRAS for one in PROJECT["optional-dependencies"][extra])]


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def parts(requirement: str) -> tuple[str, str]:
    """Return the name and the lowest version of a requirement."""
    name, version = re.match(r"([A-Za-z0-9_.-]+?)(?:>=|==)([0-9.]+)", requirement).groups()  # type: ignore[union-attr]
    return plain(name), version


def imported() -> set[str]:
    """Return the top-level modules that the package imports, wherever the import stands."""
    names = set()
    for path in (ROOT / "routesim").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - {"routesim", "__future__"}


def test_every_package_that_is_imported_is_declared_with_its_lowest_version() -> None:
    declared = {parts(requirement)[0] for requirement in requirements()}
    owners = packages_distributions()
    missing = {name for name in imported() if not declared & {plain(owner) for owner in owners.get(name, [name])}}
    # These two come with FastAPI and pydantic, in the versions that those ask for.
    assert missing <= {"starlette", "pydantic_core"}, f"imported and not declared in pyproject.toml: {sorted(missing)}"


def test_the_versions_of_python_that_are_named_are_those_that_are_allowed() -> None:
    named = [
        row.rsplit(" ", 1)[1] for row in PROJECT["classifiers"] if row.startswith("Programming Language :: Python")
    ]
    assert named == ["3", "3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == ">=3.11"


def interpreter(version: str) -> str:
    """Return a Python of this version, or skip where the machine has none."""
    found = shutil.which(f"python{version}")
    others = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for program in ([found] if found else []) + [str(path) for path in others]:
        shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        if shown.returncode == 0 and shown.stdout.startswith(f"Python {version}."):
            return program
    pytest.skip(f"there is no Python {version} here")


@pytest.mark.slow
@pytest.mark.parametrize(("version", "lowest"), [("3.11", True), ("3.12", False), ("3.13", False)])
def test_the_project_works_with_its_lowest_versions_and_on_every_python(
    version: str, lowest: bool, tmp_path: Path
) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))},
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }

    def run(*words: str | Path) -> str:
        out = subprocess.run(
            [str(word) for word in words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert out.returncode == 0, f"{words}:\n{out.stdout[-4000:]}\n{out.stderr[-4000:]}"
        return out.stdout

    pins = tmp_path / "lowest.txt"
    pins.write_text("".join(f"{name}=={at}\n" for name, at in map(parts, requirements())) if lowest else "")
    python = tmp_path / "env" / "bin" / "python"
    run(interpreter(version), "-m", "venv", tmp_path / "env")
    install = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-c", pins)
    run(*install, f"{ROOT}[{','.join(EXTRAS)}]", "pytest", "hypothesis", "osmium", "jsonschema", "selenium")
    assert "Usage: routesim" in run(tmp_path / "env" / "bin" / "routesim", "--help")
    # Warnings of old or new packages are no failure of the project.
    run(
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        "-m",
        "not slow",
        "-W",
        "ignore",
        *ASKED,
    )
