"""A real run that is killed, stopped, out of disk or in a read-only folder: what is done is kept, and it goes on."""

import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from command_line import command, environment, everything, routesim, small, start

UNFINISHED = Path("run") / ".unfinished"
RUN = ("run", "small.toml", "--out", "run", "--quiet")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the small scenario leaves when nothing happens."""
    folder = tmp_path_factory.mktemp("undisturbed")
    small(folder)
    out = routesim(*RUN, cwd=folder)
    assert (out.returncode, out.stderr) == (0, "")
    return everything(folder / "run")


def until(there: Callable[[], object], process: "subprocess.Popen[str]") -> None:
    """Return when something is there, or the process has ended."""
    while process.poll() is None and not there():
        time.sleep(0.002)


def children(process: "subprocess.Popen[str]") -> list[int]:
    try:
        return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def parts(folder: Path) -> int:
    return len(list((folder / UNFINISHED / "parts").glob("[!.]*")))


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.slow), "2"])
def test_a_killed_run_goes_on_to_the_same_result(workers: str, tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    small(tmp_path)
    moments: list[Callable[[], object]] = [
        lambda: (tmp_path / UNFINISHED / "run.json").exists(),
        lambda: parts(tmp_path) >= 5,
        lambda: (
            list((tmp_path / UNFINISHED / "reports").glob("*/*/files/*")) or (tmp_path / "run" / "map.html").exists()
        ),
    ]
    for moment in moments:
        process = start(*RUN, "--resume", "--workers", workers, cwd=tmp_path)
        until(moment, process)
        some = children(process)
        process.kill()
        process.communicate()
        for _ in range(600):  # nobody goes on working for one that is gone
            if all(gone(pid) for pid in some):
                break
            time.sleep(0.1)
        assert all(gone(pid) for pid in some)
    kept = parts(tmp_path)
    out = routesim(*RUN, "--resume", "--workers", workers, cwd=tmp_path)
    assert (out.returncode, out.stdout, out.stderr) == (0, "", "")
    assert kept >= 5 or kept == 0  # 0 if the last kill came too late
    assert everything(tmp_path / "run") == undisturbed


@pytest.mark.slow
def test_twenty_kills_at_random_moments(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    rng = np.random.default_rng(0)
    small(tmp_path)
    began = time.monotonic()
    assert routesim(*RUN, cwd=tmp_path).returncode == 0
    lasts = time.monotonic() - began
    killed = 0
    while killed < 20:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        for _ in range(4):  # a run that is killed again when it goes on
            process = start(*RUN, "--resume", cwd=tmp_path)
            try:
                process.wait(rng.uniform(0, lasts))
            except subprocess.TimeoutExpired:
                process.kill()
                killed += 1
            process.communicate()
        assert routesim(*RUN, "--resume", cwd=tmp_path).returncode == 0
        assert everything(tmp_path / "run") == undisturbed


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.slow), "2"])
def test_ctrl_c_is_one_line_that_says_how_to_go_on(workers: str, tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    small(tmp_path)
    process = subprocess.Popen(
        command(*RUN, "--workers", workers),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(),
        start_new_session=True,
    )
    until(lambda: parts(tmp_path) >= 3, process)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all processes of a command
    said, complained = process.communicate()
    assert (process.returncode, said) == (130, "")
    assert complained.count("\n") == 1, complained
    assert "stopped; go on with: routesim run small.toml" in complained
    assert parts(tmp_path) >= 3
    again = routesim(*RUN, "--workers", workers, cwd=tmp_path)
    assert again.returncode == 2
    assert "--resume" in again.stderr
    other = routesim(*RUN, "--workers", workers, "--resume", "--seed", "1", cwd=tmp_path)
    assert (other.returncode, other.stderr.count("\n")) == (2, 1)
    assert "seed = 0 there, seed = 1 here" in other.stderr
    words = shlex.split(complained.rpartition("go on with: ")[2])
    out = routesim(*words[1:], cwd=tmp_path)
    assert (out.returncode, out.stderr) == (0, "")
    assert everything(tmp_path / "run") == undisturbed


def loaded(process: "subprocess.Popen[str]", library: str) -> bool:
    """Has the process loaded a library?"""
    try:
        return library in Path(f"/proc/{process.pid}/maps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


# Before the first line of routesim runs, Python itself is starting, and an interrupt is none of routesim's.
@pytest.mark.parametrize("library", ["_multiarray_umath", "_pydantic_core", "libllvmlite"])
def test_ctrl_c_at_the_start_is_a_clean_line_too(library: str, tmp_path: Path) -> None:
    small(tmp_path, rounds=200_000)
    process = start(*RUN, cwd=tmp_path)
    until(lambda: loaded(process, library), process)
    process.send_signal(signal.SIGINT)
    _, complained = process.communicate()
    assert process.returncode == 130
    assert complained.startswith("routesim: stopped")
    assert complained.count("\n") == 1


def test_an_interrupted_sweep_goes_on_to_the_same_result(tmp_path: Path) -> None:
    small(tmp_path, replications=2, more='[sweep]\n"bandit.arms" = [2, 3]\n')
    whole = routesim("run", "small.toml", "--out", "whole", "--quiet", "--workers", "1", cwd=tmp_path)
    assert (whole.returncode, whole.stderr) == (0, "")
    points = tmp_path / UNFINISHED / "parts"
    for least in (1, 7):  # in the first point of the sweep and in the second
        process = start(*RUN, "--workers", "1", "--resume", cwd=tmp_path)
        until(lambda least=least: len(list(points.glob("*/[!.]*"))) >= least, process)
        process.send_signal(signal.SIGINT)
        _, complained = process.communicate()
        assert (process.returncode, complained.count("\n")) == (130, 1), complained
        assert "--resume" in complained
    kept = {path: path.stat().st_mtime_ns for path in points.glob("*/[!.]*")}
    assert len(kept) >= 7
    process = start(*RUN, "--workers", "2", "--resume", cwd=tmp_path)
    assert process.communicate() == ("", "")
    assert everything(tmp_path / "run") == everything(tmp_path / "whole")
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["times"]["runs_found_done"] == len(kept)


@pytest.mark.parametrize("most", [pytest.param(6_000, marks=pytest.mark.slow), 60_000])
def test_a_disk_without_room_is_one_line_and_the_run_goes_on_later(
    most: int, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    small(tmp_path)
    out = subprocess.run(
        command(*RUN, "--workers", "1"),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )
    assert (out.returncode, out.stdout, out.stderr.count("\n")) == (2, "", 1), out.stderr
    assert "cannot write" in out.stderr
    assert routesim(*RUN, "--resume", cwd=tmp_path).returncode == 0
    assert everything(tmp_path / "run") == undisturbed


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """A small disk of its own; mounting one is for root."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(*options: str) -> Path:
        words = ["/bin/mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(place)]
        done = subprocess.run(words, capture_output=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"a disk of its own cannot be mounted here: {done.stderr.decode().strip()}")
        return place

    yield mount
    subprocess.run(["/bin/umount", "-l", str(place)], capture_output=True, check=False)


def test_a_full_disk_leaves_the_earlier_result(
    disk: Callable[..., Path], tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    place = disk("size=16m")
    small(tmp_path)
    words = ("run", "small.toml", "--out", str(place / "run"), "--quiet", "--workers", "1")
    assert routesim(*words, cwd=tmp_path).returncode == 0
    earlier = everything(place / "run")
    assert earlier == undisturbed
    for room in (0, 400):
        (place / "filler").write_bytes(b"")
        free = shutil.disk_usage(place).free
        (place / "filler").write_bytes(b"x" * max(0, free - room * 1024))
        out = routesim(*words, "--seed", "1", "--overwrite", cwd=tmp_path)
        assert (out.returncode, out.stderr.count("\n")) == (2, 1), out.stderr
        assert "No space left on device" in out.stderr or "is there room on the disk?" in out.stderr
        there = everything(place / "run")
        assert {name: there.get(name) for name in earlier} == earlier
        shutil.rmtree(place / "run" / ".unfinished", ignore_errors=True)
    (place / "filler").unlink()
    assert routesim(*words, "--seed", "1", "--resume", cwd=tmp_path).returncode == 2  # the result of seed 0 is there
    assert "--overwrite" in routesim(*words, "--seed", "1", cwd=tmp_path).stderr
    assert routesim(*words, "--seed", "1", "--overwrite", cwd=tmp_path).returncode == 0
    assert everything(place / "run")["summary.json"] != earlier["summary.json"]


def test_a_read_only_folder_is_one_line(disk: Callable[..., Path], tmp_path: Path) -> None:
    place = disk("size=8m")
    small(tmp_path, rounds=500, replications=1)
    words = ("run", "small.toml", "--quiet", "--workers", "1", "--out")
    assert routesim(*words, str(place / "run"), cwd=tmp_path).returncode == 0
    earlier = everything(place / "run")
    shutil.copytree(place / "run", place / "begun")
    (place / "begun" / "summary.json").unlink()
    begun = place / "begun" / ".unfinished"
    begun.mkdir()
    about = {"format": 1, "scenario_sha256": "0", "version": "0.1.0"}
    (begun / "run.json").write_text(json.dumps(about))
    (begun / "scenario.toml").write_text("")
    subprocess.run(["/bin/mount", "-o", "remount,ro", str(place)], check=True, capture_output=True)
    for folder in ("run", "new", "new/deeper", "begun", "begun --resume"):
        out = routesim(*words, *str(place / folder).split(), cwd=tmp_path)
        assert (out.returncode, out.stderr.count("\n")) == (2, 1), out.stderr
        assert "Read-only file system" in out.stderr
    assert everything(place / "run") == earlier
    out = routesim("map", str(place / "run"), cwd=tmp_path)
    assert (out.returncode, out.stderr.count("\n")) == (2, 1), out.stderr
