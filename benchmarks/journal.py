"""The journal of `routesim serve` with a million observations: rate, file size, memory, and time to restart.

    python -m benchmarks.journal [--observations 1000000] [--keep-rows 1000000] [--scenario helsinki]

A process recommends and observes through the service itself, without HTTP, from 256 clients at once, and every
answer is on the disk before its client goes on. It then ends without closing anything, as after a kill, and another
process opens the journal: it checks every row and repeats those after the last snapshot. Printed: trips a second,
size of the file, memory of both processes, seconds to open.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.side_by_side import note
from routesim.serve.served import load_served
from routesim.serve.service import Service

CLIENTS = 256


async def fill(service: Service, observations: int) -> None:
    """Recommend and observe, one trip after the other in each client."""

    async def client(first: int) -> None:
        for number in range(first, observations, CLIENTS):
            made, _ = await service.recommend(service.served.ends, (), f"r{number}")
            seconds = np.array([made.decision.expected_s * (0.9 + number * 37 % 101 / 500)])
            await service.observe(service.name(made.number), seconds, total=True, request=f"o{number}")

    await asyncio.gather(*(client(first) for first in range(CLIENTS)))


def work(given: argparse.Namespace) -> None:
    """Fill or open the journal, say how long it took and how much memory, and end as a kill would."""
    served = load_served(given.scenario)
    start = time.perf_counter()
    service = Service(served, Path(given.folder), keep_rows=given.keep_rows)
    if given.do == "fill":
        asyncio.run(fill(service, given.observations))
    took = time.perf_counter() - start
    print(f"{took} {_resident_mb()} {service.desk.recommended} {service.desk.observed}", flush=True)
    os._exit(0)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--scenario", default="helsinki")
    words.add_argument("--observations", type=int, default=1_000_000)
    words.add_argument("--keep-rows", type=int, default=1_000_000)
    words.add_argument("--folder", help=argparse.SUPPRESS)
    words.add_argument("--do", choices=["fill", "open"], help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.do:
        work(given)
    with tempfile.TemporaryDirectory() as folder:

        def told(what: str) -> list[float]:
            command = [sys.executable, "-m", "benchmarks.journal", *sys.argv[1:], "--folder", folder, "--do", what]
            return list(map(float, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()))

        filled = told("fill")
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
        opened = told("open")
    if opened[2:] != filled[2:]:
        raise SystemExit(f"{filled[2:]} rows before the end, {opened[2:]} after it")
    made, seen = map(int, filled[2:])
    print(
        f"{given.scenario}: {made:,} recommendations and {seen:,} observations, the last {given.keep_rows:,} rows kept"
    )
    print(f"filled: {seen / filled[0]:,.0f} trips a second, memory {filled[1]:,.0f} MB, files {size:,.0f} MB")
    print(f"opened after a kill: {opened[0]:.1f} s, memory {opened[1]:,.0f} MB")
    note(
        f"journal of {seen:,} observations, the last {given.keep_rows:,} rows kept",
        f"opens in {opened[0]:.1f} s after a kill, {size:,.0f} MB on disk, {opened[1]:,.0f} MB of memory",
    )


def _resident_mb() -> float:
    """Return the memory of this process at its largest."""
    text = Path("/proc/self/status").read_text()
    return float(text.partition("VmHWM:")[2].split()[0]) / 1000


if __name__ == "__main__":
    main()
