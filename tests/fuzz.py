"""Seeded fuzzers of scenario files and of result folders: each case in a process of its own, within limits.

A case is a kind, a seed and a number, and is the same on every machine. Repeat all or one of them with

    PYTHONPATH=. python tests/fuzz.py scenarios --seed 1 --cases 3000
    PYTHONPATH=. python tests/fuzz.py results --seed 1 --only 1234 --keep /tmp/case

One process imports all that is needed, and a copy of it is forked for each case. The copy may take `MEMORY_MB` more
than it has in the beginning and `SECONDS` of time; a crash, a hang, a traceback and a message of several lines or
without the name of what it is about are failures.
"""

import argparse
import contextlib
import io
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

MEMORY_MB = 2048
SECONDS = 20
LONGEST = 1500
ENDED_WELL = ("fine", "refused")


class Subject(Protocol):
    """What is fuzzed."""

    def prepare(self, folder: Path) -> None:
        """Make what is to be damaged, and do all once that is done once in a process."""

    def damage(self, rng: random.Random, folder: Path) -> Callable[[], None]:
        """Write a damaged case into `folder` and return what reads it: it raises `RefusedError`, or all is fine."""


class RefusedError(Exception):
    """The case was refused with these words, which must name one of `names`."""

    def __init__(self, said: str, *names: str) -> None:
        super().__init__(said)
        self.said, self.names = said, names


class Ended(NamedTuple):
    """How a case ended."""

    how: str
    seconds: float
    peak_mb: float


@dataclass
class Tally:
    """What the cases came to."""

    kind: str
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0
    slowest_s: float = 0.0
    peak_mb: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.kind}: {self.counts.total()} cases, {self.counts['fine']} read, {self.counts['refused']} refused, "
            f"{len(self.failures)} failures, {self.seconds:.0f} s, slowest {self.slowest_s:.2f} s, "
            f"peak {self.peak_mb:.0f} MB"
        )


def run(kind: str, seed: int, cases: Iterable[int], keep: Path | None = None) -> Tally:
    """Try these cases, each in a fork of this process, which must have one thread only."""
    subject, tally, started = _subject(kind), Tally(kind), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = keep or Path(name)
        whole, place = folder / "whole", folder / "case"
        shutil.rmtree(whole, ignore_errors=True)
        whole.mkdir(parents=True)
        subject.prepare(whole)
        for case in cases:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            ended = _in_a_fork(lambda number=case: _try(subject, f"{kind} {seed} {number}", place))
            tally.slowest_s = max(tally.slowest_s, ended.seconds)
            tally.peak_mb = max(tally.peak_mb, ended.peak_mb)
            tally.counts[ended.how if ended.how in ENDED_WELL else "failed"] += 1
            if ended.how not in ENDED_WELL:
                tally.failures.append(f"{kind} --seed {seed} --only {case}: {ended.how}")
    tally.seconds = time.monotonic() - started
    return tally


def _in_a_fork(do: Callable[[], str]) -> Ended:
    reading, writing = os.pipe()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            here = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            most = here + MEMORY_MB * 2**20
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS)
            os.write(writing, do().encode(errors="replace")[:4000])
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as stream:  # noqa: PTH123 - a number, not a path
        said = stream.read().decode()
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    how = f"no end within {SECONDS} s" if code == -signal.SIGALRM else said or f"the process ended with {code}"
    return Ended(how, time.monotonic() - began, used.ru_maxrss / 1024)


def _try(subject: Subject, seed: str, place: Path) -> str:
    rng = random.Random(seed)  # noqa: S311 - repeatable on purpose
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            subject.damage(rng, place)()
    except RefusedError as refusal:
        said = refusal.said
        if not said.isprintable() or len(said) > LONGEST or "memory" in said:
            return f"a message that is long, of several lines or about memory: {said[:300]!r}"
        return "refused" if any(name in said for name in refusal.names) else f"nothing is named: {said[:300]!r}"
    except BaseException as problem:
        place_of = traceback.extract_tb(problem.__traceback__)[-1]
        return f"{type(problem).__name__}: {str(problem)[:300]} at {place_of.filename}:{place_of.lineno}"
    return "fine"


def command(*words: str) -> None:
    """Run the command line in this process: it ends well, or with exit code 2 and one line of complaint."""
    from routesim.cli import exit_code

    said, complained = io.StringIO(), io.StringIO()
    sys.argv = ["routesim", *words]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        code = exit_code()
    if code == 2:
        *notes, last = complained.getvalue().removesuffix("\n").split("\n")
        if any(not note.startswith("routesim: note: ") for note in notes) or said.getvalue():
            raise AssertionError(f"more than one line: {said.getvalue()[:200]!r} {complained.getvalue()[:500]!r}")
        raise RefusedError(last, *(word for word in words if "/" in word))
    if code != 0:
        raise AssertionError(f"exit code {code}: {complained.getvalue()[:500]!r}")


def _subject(kind: str) -> Subject:
    if kind == "scenarios":
        from fuzz_scenarios import Scenarios

        return Scenarios()
    from fuzz_results import Results

    return Results()


def main() -> None:
    """Try cases as the command line says, print the failures, and exit with 1 where there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["scenarios", "results"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--only", type=int, help="try this case alone")
    parser.add_argument("--keep", type=Path, help="a folder for the case's files, which stay there")
    asked = parser.parse_args()
    cases = range(asked.first, asked.first + asked.cases) if asked.only is None else [asked.only]
    tally = run(asked.kind, asked.seed, cases, asked.keep)
    print("\n".join([*tally.failures, str(tally)]))
    sys.exit(1 if tally.failures else 0)


if __name__ == "__main__":
    from fuzz import main as run_as_a_module  # so that there is one `RefusedError`

    run_as_a_module()
