"""Units on a real Dask cluster of separate processes: the same bytes as here, lost workers included."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from clusters import cluster
from small_units import SmallUnit

from routesim.errors import InputError, LostWorkerError
from routesim.runner.cluster import do_on_cluster
from routesim.runner.local import Crew
from routesim.runner.work import Job, UnitJob


def jobs(folder: Path, *units: SmallUnit) -> list[UnitJob]:
    return [UnitJob(unit, folder / "parts" / unit.key, folder / unit.key) for unit in units]


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_cluster_that_loses_a_worker_leaves_the_same_bytes(tmp_path: Path) -> None:
    witness = str(tmp_path / "witness")
    units = [SmallUnit(seed, trouble="slow") for seed in range(6)] + [
        SmallUnit(6, trouble="dies once", witness=witness)
    ]
    finished: list[str] = []
    heard: list[int] = []

    def listen(job: Job, done: int, ended: bool) -> None:
        heard.append(done)
        if ended:
            finished.append(job.label)

    with cluster(tmp_path, 2) as (address, workers):
        do_on_cluster(jobs(tmp_path / "there", *units), address, listen)
        assert [worker.poll() is None for worker in workers].count(False) == 1
        with pytest.raises(InputError, match="seeds must be even"):
            do_on_cluster(jobs(tmp_path / "wrong", SmallUnit(1, trouble="mistake")), address, listen)
        with pytest.raises(LostWorkerError, match=r"scheduler at tcp://.* was lost|every Dask worker"):
            _lose_the_scheduler(tmp_path, address)
    assert sorted(finished) == sorted(unit.label for unit in units)
    assert any(0 < done < 100 for done in heard)
    with Crew(1) as crew:
        crew.do(jobs(tmp_path / "here", *(SmallUnit(seed) for seed in range(7))), lambda *_: None)
    assert everything(tmp_path / "there" / "parts") == everything(tmp_path / "here" / "parts")


def _lose_the_scheduler(folder: Path, address: str) -> None:
    from distributed import Client

    def listen(*_: object) -> None:
        with Client(address, set_as_default=False) as client:
            client.shutdown()

    do_on_cluster(jobs(folder / "lost", SmallUnit(1), SmallUnit(2, trouble="slow")), address, listen)


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "nonsense", "http://127.0.0.1", "tcp://no.such.host.invalid:8786", ""]
)
def test_a_scheduler_that_does_not_answer_is_one_line(address: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no Dask scheduler answers at"):
        do_on_cluster(jobs(tmp_path, SmallUnit(1)), address, lambda *_: None)


def test_something_else_at_the_address_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(InputError, match="no Dask scheduler answers at"):
            do_on_cluster(jobs(tmp_path, SmallUnit(1)), f"tcp://127.0.0.1:{silent.getsockname()[1]}", lambda *_: None)


def test_without_dask_the_extra_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['distributed'] = None\n"
        "from routesim.runner.cluster import do_on_cluster\n"
        "do_on_cluster([], 'tcp://127.0.0.1:1', print)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "pip install 'routesim[cluster]'" in out.stderr
