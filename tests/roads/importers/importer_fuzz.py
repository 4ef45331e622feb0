"""A seeded fuzzer of every importer of roads: mutated files, each read within limits of memory and time.

A case is a format, a seed and a number, and is the same on every machine. Repeat all or one of them with

    python tests/roads/importers/importer_fuzz.py pbf --seed 1 --cases 3000
    python tests/roads/importers/importer_fuzz.py pbf --seed 1 --only 1234 --keep /tmp/case

Cases run in worker processes that may take `MEMORY_MB` of address space. One that crashes or takes longer than
`SECONDS` for a case is a failure and gives way to a new one. What a case may come to is a network, or a
NetworkError of one line that names the file; anything else is a failure.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import select
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MEMORY_MB = 2048
SECONDS = 20.0
LONGEST_MESSAGE = 1500
FORMATS = ("pbf", "xml", "graphml", "npz", "gpkg", "tntp", "gmns", "sumo")


@dataclass
class Tally:
    """What the cases of a format came to."""

    kind: str
    cases: int = 0
    networks: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0
    slowest_s: float = 0.0
    peak_mb: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.kind}: {self.cases} cases, {self.networks} networks, {self.refused} refused, "
            f"{len(self.failures)} failures, {self.seconds:.0f} s, slowest {self.slowest_s:.2f} s, "
            f"peak {self.peak_mb:.0f} MB"
        )


def run(kind: str, seed: int, cases: list[int], *, keep: Path | None = None) -> Tally:
    """Read these cases of a format in worker processes and count what came out."""
    tally, started = Tally(kind), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) if keep is None else keep
        folder.mkdir(parents=True, exist_ok=True)
        waiting, worker = list(reversed(cases)), None
        while waiting:
            if worker is None:
                worker = _Worker(kind, seed, folder)
                if (answer := worker.ask(None, 180.0)) is None:
                    raise RuntimeError(f"the worker for {kind} does not start: {worker.end()}")
            case = waiting.pop()
            tally.cases += 1
            answer = worker.ask(case, SECONDS)
            if answer is None:
                tally.failures.append(f"{kind} --seed {seed} --only {case}: {worker.end()}")
                worker = None
                continue
            tally.peak_mb = max(tally.peak_mb, answer["peak_mb"])
            tally.slowest_s = max(tally.slowest_s, answer["seconds"])
            if answer["outcome"] == "network":
                tally.networks += 1
            elif answer["outcome"] == "refused":
                tally.refused += 1
            else:
                tally.failures.append(f"{kind} --seed {seed} --only {case}: {answer['outcome']}")
        if worker is not None:
            worker.end()
    tally.seconds = time.monotonic() - started
    return tally


class _Worker:
    """A process that reads cases and answers each with a line of JSON."""

    def __init__(self, kind: str, seed: int, folder: Path) -> None:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MB * 2**20, MEMORY_MB * 2**20))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        self.complaints = (folder / "stderr").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", __file__, kind, "--seed", str(seed), "--worker", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            preexec_fn=limit,
        )

    def ask(self, case: int | None, seconds: float) -> dict[str, Any] | None:
        """Send a case and wait for its answer, without one for the worker's first sign of life."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if case is not None:
            self.process.stdin.write(f"{case}\n".encode())
            self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline() if ready else b""
        return json.loads(line) if line else None

    def end(self) -> str:
        """End the process and say how it ended: by itself, or because it did not answer."""
        with self.process:
            if self.process.stdin is not None:
                self.process.stdin.close()
            try:
                code = self.process.wait(2.0)
                how = f"the process ended with {code}"
            except subprocess.TimeoutExpired:
                self.process.kill()
                how = f"no answer within {SECONDS} s"
        self.complaints.seek(0)
        complaint = self.complaints.read()[-300:].strip()
        self.complaints.close()
        return f"{how} {complaint}".strip()


def work(kind: str, seed: int, folder: Path) -> None:
    """Read the cases whose numbers come in on stdin."""
    from mutated_roads import whole_files, write_case

    from routesim.roads.importers import call

    files = whole_files(kind, folder / "whole")
    for at, _ in enumerate(files):  # compiles and imports everything, which is no case's fault
        _outcome(call, *write_case(kind, files, at, None, folder / "case"))
    print(json.dumps({"outcome": "ready", "peak_mb": 0.0}), flush=True)
    for line in sys.stdin:
        rng = random.Random(f"{kind} {seed} {int(line)}")  # noqa: S311 - repeatable on purpose
        at = rng.randrange(len(files))
        read = write_case(kind, files, at, rng, folder / "case")
        before = time.monotonic()
        outcome = _outcome(call, *read)
        seconds = time.monotonic() - before
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"outcome": outcome, "peak_mb": peak_mb, "seconds": seconds}), flush=True)


def _outcome(call, reader: str, *arguments: object) -> str:  # type: ignore[no-untyped-def]
    from routesim.errors import ImplausibleSpeedsWarning, IncompleteSignalsWarning, NetworkError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for harmless in (IncompleteSignalsWarning, ImplausibleSpeedsWarning):  # which refuse nothing
                warnings.simplefilter("ignore", harmless)
            network = call(reader, *arguments)
    except NetworkError as error:
        message = str(error)
        named = any(Path(str(argument)).name in message for argument in arguments)
        if not named or len(message) > LONGEST_MESSAGE or not message.isprintable() or "memory" in message:
            return f"a message that is long, of several lines or names no file: {message[:300]!r}"
        return "refused"
    except BaseException as error:
        import traceback

        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:200]} at {place.filename}:{place.lineno}"
    return "network" if network.n_nodes > 0 else "a network without nodes"


def main() -> None:
    """Run cases as the command line says, print the failures, and exit with 1 where there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=[*FORMATS, "all"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--only", type=int, help="run this case alone")
    parser.add_argument("--keep", type=Path, help="a folder for the case's files, which stay there")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker is not None:
        work(asked.kind, asked.seed, asked.worker)
        return
    failed = False
    for kind in FORMATS if asked.kind == "all" else [asked.kind]:
        tally = run(kind, asked.seed, list(range(asked.cases)) if asked.only is None else [asked.only], keep=asked.keep)
        print("\n".join([*tally.failures, str(tally)]), flush=True)
        failed = failed or bool(tally.failures)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
