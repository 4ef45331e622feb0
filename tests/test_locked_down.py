"""Machines on which nothing can be written but the results: a read-only installation, and no home."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import routesim

PACKAGE = Path(routesim.__file__).parent


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A copy of the package on a disk that cannot be written to; mounting one is for root."""
    place = tmp_path / "installed"
    shutil.copytree(PACKAGE, place / "routesim", ignore=shutil.ignore_patterns("__pycache__"))
    bound = ["/bin/mount", "--bind", str(place), str(place)]
    for words in (bound, ["/bin/mount", "-o", "remount,ro,bind", str(place)]):
        done = subprocess.run(words, capture_output=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"a read-only disk cannot be mounted here: {done.stderr.decode().strip()}")
    yield place
    subprocess.run(["/bin/umount", "-l", str(place)], capture_output=True, check=False)


def test_without_a_place_for_compiled_code_one_line_warns_and_all_works(read_only: Path, tmp_path: Path) -> None:
    nothing = {"PYTHONPATH": str(read_only), "HOME": str(read_only / "nobody"), "XDG_CACHE_HOME": str(read_only / "x")}
    code = (
        "import routesim as rs\n"
        "print(rs.ActionSet.between(rs.load_city('nauru'), *rs.load_city('nauru').labels[:2], k=1).n_actions)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], env=nothing, capture_output=True, text=True, check=False, cwd="/"
    )
    assert (out.returncode, out.stdout) == (0, "1\n"), out.stderr
    assert out.stderr.count("compiled code cannot be kept") == 1
    (tmp_path / "kept").mkdir()
    kept = nothing | {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    out = subprocess.run([sys.executable, "-c", code], env=kept, capture_output=True, text=True, check=False, cwd="/")
    assert (out.returncode, out.stdout, out.stderr) == (0, "1\n", "")
    assert list((tmp_path / "kept").rglob("*.nbi"))
