"""Units on a Dask cluster: each goes to some worker, and its part comes back as the files it would have written.

Workers need routesim but no shared folder, so a unit that is begun again after a lost worker begins at its start.
"""

import asyncio
import logging
import queue
import tempfile
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routesim.errors import InputError, LostWorkerError, RoutesimError
from routesim.runner.work import Listener, Runnable, UnitJob, one_thread
from routesim.storage.folders import durable_folder

if TYPE_CHECKING:
    from distributed import Client

_ANSWER_S = 5.0
_GONE_S = 10.0
_RETRIES = 3
_BETWEEN_REPORTS_S = 0.5


def do_on_cluster(jobs: Sequence[UnitJob], address: str, listener: Listener) -> None:
    """Do all jobs on the workers of the scheduler at `address`; parts of lost workers are done again by others."""
    client, topic = _connect(address), f"routesim-{uuid.uuid4().hex}"
    news: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
    futures = {}
    try:
        client.subscribe_topic(topic, lambda event: news.put(event[1]))
        for number, job in enumerate(jobs):
            name = f"{topic}-{number}"
            futures[number] = client.submit(
                _part_of, job.unit, number, topic, key=name, pure=False, retries=_RETRIES, priority=-number
            )
            futures[number].add_done_callback(lambda future, number=number: news.put((number, future)))
        heard = time.monotonic()
        while futures:
            try:
                number, content = news.get(timeout=1)
            except queue.Empty:
                # The client tries on its own to find the scheduler again, which a short fault allows for.
                heard = time.monotonic() if client.status == "running" else heard
                if time.monotonic() - heard > _GONE_S:
                    raise _scheduler_lost(address) from None
                continue
            if number not in futures:
                continue
            if isinstance(content, int):
                listener(jobs[number], content, False)
                continue
            _keep(jobs[number], _result(content, jobs[number], address))
            futures.pop(number).release()
            listener(jobs[number], jobs[number].total, True)
    finally:
        if client.status == "running":
            client.cancel(list(futures.values()), force=True)
        client.close(timeout=2)


def _connect(address: str) -> "Client":
    try:
        from distributed import Client
    except ImportError:
        raise InputError("--scheduler needs Dask, which is an extra: pip install 'routesim[cluster]'") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters of it is said in one line
    try:
        # A client would wait for ever for a server that says nothing; and a notebook has a loop of its own already.
        with ThreadPoolExecutor(1) as aside:
            aside.submit(lambda: asyncio.run(_greet(address))).result()
        return Client(address, timeout=_ANSWER_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as problem:  # a TimeoutError is an OSError
        raise InputError(
            f"no Dask scheduler answers at {address!r} within {_ANSWER_S:.0f} s; addresses look like tcp://host:8786"
        ) from problem


async def _greet(address: str) -> None:
    """Return when something that speaks Dask answers."""
    from distributed.core import connect

    comm = await asyncio.wait_for(connect(address, timeout=_ANSWER_S), _ANSWER_S)
    await comm.close()


def _result(future: Any, job: UnitJob, address: str) -> dict[str, bytes]:
    from distributed import KilledWorker

    try:
        result = future.result()
    except KilledWorker:
        raise LostWorkerError(
            f"every Dask worker that tried {job.label} was lost; does it need more memory than they have? "
            "--resume goes on from here"
        ) from None
    except (CancelledError, asyncio.CancelledError):
        raise _scheduler_lost(address) from None
    if isinstance(result, RoutesimError):
        raise result
    files: dict[str, bytes] = result
    return files


def _scheduler_lost(address: str) -> LostWorkerError:
    return LostWorkerError(f"the Dask scheduler at {address} was lost; --resume goes on from here")


def _keep(job: UnitJob, files: dict[str, bytes]) -> None:
    with durable_folder(job.target) as fresh:
        for name, content in files.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _part_of(unit: Runnable, number: int, topic: str) -> "dict[str, bytes] | RoutesimError":
    """Run a unit on a worker and return the files of its part; a mistake is no reason to try again."""
    from distributed import get_worker

    worker, done, said = get_worker(), 0, 0.0

    def advance(more: int) -> None:
        nonlocal done, said
        done += more
        if time.monotonic() - said >= _BETWEEN_REPORTS_S:
            said = time.monotonic()
            worker.log_event(topic, (number, done))

    with tempfile.TemporaryDirectory() as scratch, one_thread():
        folder = Path(scratch) / "part"
        try:
            unit.run(None, advance).save(folder)
        except RoutesimError as mistake:
            return mistake
        files = (path for path in sorted(folder.rglob("*")) if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
