"""Throughput of a sweep with two worker processes against one, everything included: `python -m benchmarks.sweep`."""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.side_by_side import note

SWEEP = """
kind = "city"
title = "Helsinki over windows and noise"
rounds = {rounds}
replications = {replications}
seed = 0
[city]
name = "helsinki"
origin = [24.9367, 60.1642]
destination = [24.9522, 60.1784]
routes = 6
window = 4
noise = 0.1
congestion = {{ name = "linear", slope = 0.5 }}
[[learners]]
name = "CARMAB"
confidence = 1.0
monotone = false
[[learners]]
name = "UCB1"
[[learners]]
name = "ThompsonSampling"
[sweep]
"city.window" = [2, 3, 4]
"city.noise" = [0.1, 0.3]
"""


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--rounds", type=int, default=60_000)
    words.add_argument("--replications", type=int, default=4)
    words.add_argument("--repeats", type=int, default=1)
    chosen = words.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        text = SWEEP.format(rounds=chosen.rounds, replications=chosen.replications)
        (folder / "sweep.toml").write_text(text, encoding="utf-8")
        _run(folder, 1, "--rounds", "100")  # compiled code comes from the disk in what follows
        for _ in range(chosen.repeats):
            one, two = _run(folder, 1), _run(folder, 2)
            print(
                f"one worker {one[0]:.1f} s ({one[1]:.1f} s of CPU), "
                f"two workers {two[0]:.1f} s ({two[1]:.1f} s of CPU): "
                f"{one[0] / two[0]:.2f} times the throughput"
            )
            note(
                "a sweep with two worker processes, start-up included",
                f"{two[0]:.0f} s",
                f"{one[0] / two[0]:.2f} x one worker",
            )
            if one[2] != two[2]:
                sys.exit("the results differ")


def _run(folder: Path, workers: int, *more: str) -> tuple[float, float, str]:
    """Return the seconds from the start of the command to its end, those of CPU, and the summary without its times."""
    words = ["run", "sweep.toml", "--json", "--workers", str(workers), "--out", f"with-{workers}", "--overwrite", *more]
    began, used = time.perf_counter(), _cpu_seconds()
    out = subprocess.run(
        [sys.executable, "-m", "routesim", *words], cwd=folder, check=True, capture_output=True, text=True
    )
    seconds, used = time.perf_counter() - began, _cpu_seconds() - used
    summary = json.loads(out.stdout)
    del summary["times"]
    return seconds, used, json.dumps(summary)


def _cpu_seconds() -> float:
    """Return what all ended processes under this one used: on a busy machine it says more than the clock."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
