"""Damaged scenarios and result folders: no crash, no hang, no traceback and no memory beyond the limit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).with_name("fuzz.py")


def fuzz(kind: str, seed: int, cases: int) -> str:
    """Run the fuzzer in a process with one thread, which can be forked."""
    out = subprocess.run(
        [sys.executable, str(FUZZ), kind, "--seed", str(seed), "--cases", str(cases)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(FUZZ.parents[1]), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    assert out.returncode == 0, f"{out.stdout[-5000:]}{out.stderr[-5000:]}"
    return out.stdout


@pytest.mark.parametrize(("kind", "cases"), [("scenarios", 150), ("results", 80)])
def test_damaged_files_are_refused_in_one_line_or_read(kind: str, cases: int) -> None:
    said = fuzz(kind, 7, cases)
    assert f"{kind}: {cases} cases" in said
    assert "0 failures" in said


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["scenarios", "results"])
def test_thousands_of_damaged_files_are_refused_in_one_line_or_read(kind: str) -> None:
    said = fuzz(kind, 1, 3000)
    assert f"{kind}: 3000 cases" in said
    assert "0 failures" in said


def test_the_fuzzer_notices_what_is_wrong(tmp_path: Path) -> None:
    code = f"""
import sys; sys.path.insert(0, {str(FUZZ.parent)!r})
import os, time
import fuzz
from pathlib import Path
fuzz.SECONDS = 1
def ended(do):
    class Wrong:
        def damage(self, rng, folder): return do
    return fuzz._in_a_fork(lambda: fuzz._try(Wrong(), "x", Path("."))).how
def refuse(said):
    raise fuzz.RefusedError(said, "file")
print(ended(lambda: None))
print(ended(lambda: refuse("file is wrong")))
print(ended(lambda: refuse("something is wrong")))
print(ended(lambda: refuse("file\\nis wrong")))
print(ended(lambda: 1 / 0))
print(ended(lambda: bytearray(3 << 30)))
print(ended(lambda: time.sleep(60)))
print(ended(os.abort))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    fine, refused, *wrong = out.stdout.splitlines()
    assert (fine, refused) == ("fine", "refused")
    expected = ["nothing is named", "a message that is long", "ZeroDivisionError", "MemoryError", "no end within 1 s"]
    assert [line.startswith(start) for line, start in zip(wrong, expected, strict=False)] == [True] * 5, wrong
    assert wrong[5] == "the process ended with -6"
