"""A sweep on a real Dask cluster that loses a worker: the same result folder as on one local process."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from clusters import cluster
from command_line import command, environment, everything, routesim, small


def test_a_run_whose_dask_worker_is_lost_goes_on_to_the_same_result(tmp_path: Path) -> None:
    small(tmp_path, rounds=100_000, replications=4)
    with cluster(tmp_path, 2) as (address, workers):
        words = command("run", "small.toml", "--out", "there", "--quiet", "--scheduler", address)
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment())
        parts = tmp_path / "there" / ".unfinished" / "parts"
        while process.poll() is None and not list(parts.glob("[!.]*")):
            time.sleep(0.005)
        done = len(list(parts.glob("[!.]*")))
        workers[0].kill()
        _, complained = process.communicate()
        assert (process.returncode, complained) == (0, "")
        assert 1 <= done < 12, "the worker was lost in the middle of the run"
        assert workers[1].poll() is None
    out = routesim("run", "small.toml", "--out", "here", "--quiet", "--workers", "1", cwd=tmp_path)
    assert out.returncode == 0
    assert everything(tmp_path / "here") == everything(tmp_path / "there")


@pytest.mark.slow
def test_a_sweep_on_a_cluster_that_loses_a_worker_gives_the_same_folder(tmp_path: Path) -> None:
    small(tmp_path, rounds=100_000, replications=3, more='[sweep]\n"bandit.arms" = [2, 3, 4]\n')
    with cluster(tmp_path, 2) as (address, workers):
        words = command("run", "small.toml", "--out", "there", "--json", "--scheduler", address)
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment())
        parts = tmp_path / "there" / ".unfinished" / "parts"
        while process.poll() is None and len(list(parts.glob("*/[!.]*"))) < 5:
            pass
        assert process.poll() is None
        workers[0].kill()
        said, _ = process.communicate()
        assert process.returncode == 0
        assert workers[1].poll() is None
    summary = json.loads(said)
    assert summary["times"]["scheduler"] == address
    out = routesim("run", "small.toml", "--out", "here", "--quiet", "--workers", "1", cwd=tmp_path)
    assert out.returncode == 0
    here, there = everything(tmp_path / "here"), everything(tmp_path / "there")
    assert sorted(here) == sorted(there)
    assert [name for name in here if here[name] != there[name]] == []
