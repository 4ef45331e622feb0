"""Timing helpers: each figure is the best of a few runs, and peers are measured in the same process."""

import time
from collections.abc import Callable


def best_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the least wall time of `repeats` runs, after one that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
