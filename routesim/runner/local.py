"""Jobs on this machine: in this process, or in several fresh ones that report over pipes."""

import multiprocessing
import os
import signal
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Self

from routesim.errors import LostWorkerError, RoutesimError
from routesim.runner.work import Job, Listener, do

_BETWEEN_REPORTS_S = 0.1


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Crew:
    """Up to `workers` processes, started when there is work for more than one."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._processes: dict[Connection, BaseProcess] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        for pipe, process in self._processes.items():
            pipe.close()  # an idle worker goes home
            if kind is not None:
                process.terminate()
        for process in self._processes.values():
            process.join(10)
            if process.is_alive():
                process.kill()
                process.join()

    def do(self, jobs: Sequence[Job], listener: Listener) -> None:
        """Do all jobs, the longest first so that none is left alone at the end."""
        ordered = sorted(jobs, key=lambda job: -job.total)
        if min(self._workers, len(jobs)) <= 1:
            for job in ordered:
                _do_here(job, listener)
        else:
            self._start(min(self._workers, len(jobs)))
            self._share_out(deque(ordered), listener)

    def _start(self, workers: int) -> None:
        # Fresh processes: forking one that has threads, as every progress display does, can hang.
        context = multiprocessing.get_context("spawn")
        with _interrupts_held():
            for _ in range(workers - len(self._processes)):
                here, there = context.Pipe()
                process = context.Process(target=_serve, args=(there,), daemon=True)
                process.start()
                there.close()
                self._processes[here] = process

    def _share_out(self, waiting: deque[Job], listener: Listener) -> None:
        busy: dict[Connection, Job] = {}
        idle = list(self._processes)
        while waiting or busy:
            while waiting and idle:
                pipe, job = idle.pop(), waiting.popleft()
                busy[pipe] = job
                self._send(pipe, job)
            ready = set(wait(list(busy)))
            for pipe, job in [(pipe, job) for pipe, job in busy.items() if pipe in ready]:
                word, content = self._receive(pipe, job)
                if word == "progress":
                    listener(job, content, False)
                elif word == "warning":
                    warnings.warn(content, stacklevel=2)
                elif word == "mistake":
                    raise content
                elif word == "failure":
                    raise RuntimeError(f"{job.label} failed in a worker process\n{content}")
                else:
                    listener(job, job.total, True)
                    idle.append(pipe)
                    del busy[pipe]

    def _send(self, pipe: Connection, job: Job) -> None:
        try:
            pipe.send(job)
        except BrokenPipeError:
            raise self._lost(pipe, job) from None

    def _receive(self, pipe: Connection, job: Job) -> tuple[str, Any]:
        try:
            word, content = pipe.recv()
        except (EOFError, ConnectionResetError):
            raise self._lost(pipe, job) from None
        return word, content

    def _lost(self, pipe: Connection, job: Job) -> LostWorkerError:
        process = self._processes[pipe]
        process.join(10)
        code = process.exitcode or 0
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        return LostWorkerError(
            f"a worker process ended {how} while it did {job.label}; if memory ran out, take fewer --workers; "
            "--resume goes on from here"
        )


def _do_here(job: Job, listener: Listener) -> None:
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        listener(job, done, False)

    listener(job, 0, False)
    do(job, advance)
    listener(job, job.total, True)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keep Ctrl-C from the processes started meanwhile, for good: it is this one that stops them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it would let go of the signal when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection) -> None:
    """Do the jobs that come through the pipe until it is closed."""
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.showwarning = lambda message, *_, **__: pipe.send(("warning", message))
    while True:
        try:
            job: Job = pipe.recv()
        except EOFError:
            return
        try:
            do(job, _Reporter(pipe).advance)
            pipe.send(("done", None))
        except RoutesimError as mistake:
            pipe.send(("mistake", mistake))
        except Exception:  # a bug of any kind is told where the run was started
            pipe.send(("failure", traceback.format_exc()))


class _Reporter:
    """Progress through a pipe, a few times a second."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._done, self._said = pipe, 0, 0.0
        pipe.send(("progress", 0))

    def advance(self, more: int) -> None:
        self._done += more
        now = time.monotonic()
        if now - self._said >= _BETWEEN_REPORTS_S:
            self._said = now
            self._pipe.send(("progress", self._done))


def _leave_with_parent() -> None:
    """End this process when the one that started it is gone, even if that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
