"""Timing helpers: each figure is the best of a few runs, and peers are measured in the same process.

`note` keeps a line for the table that `python -m benchmarks` makes of one run of everything.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

TABLE = "ROUTESIM_BENCHMARK_TABLE"


def best_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the least wall time of `repeats` runs, after one that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def note(what: str, measured: str, against: str = "") -> None:
    """Keep a row of the table, if one is being made: what was measured, the figure, and the ratio to which peer."""
    if TABLE in os.environ:
        with Path(os.environ[TABLE]).open("a", encoding="utf-8") as file:
            file.write(json.dumps([what, measured, against]) + "\n")
