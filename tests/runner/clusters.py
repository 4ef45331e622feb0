"""A real Dask scheduler with workers, each a process of its own started by Dask's commands."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def cluster(folder: Path, workers: int) -> "Iterator[tuple[str, list[subprocess.Popen[bytes]]]]":
    """Yield the scheduler's address and the processes of the workers."""
    paths = [str(Path(__file__).parent), str(Path(__file__).parent.parent.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])}
    found = folder / "scheduler.json"
    processes = []

    def start(*words: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "dask", *words, "--no-dashboard"]
        with (folder / "dask.log").open("ab") as log:
            processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
        return processes[-1]

    try:
        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(found))
        _wait_for(found)
        address = json.loads(found.read_text())["address"]
        some = [start("worker", address, "--nthreads", "1", "--no-nanny") for _ in range(workers)]
        yield address, some
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def _wait_for(path: Path) -> None:
    for _ in range(600):
        try:
            json.loads(path.read_text())
            return
        except (OSError, ValueError):
            time.sleep(0.1)
    raise TimeoutError(f"{path} did not come")
