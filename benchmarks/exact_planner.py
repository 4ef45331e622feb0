"""The exact planner: Howard beside Karp, beside LEMON's Howard in C++, and the memory of a million histories.

    python -m benchmarks.exact_planner

LEMON comes with Debian's liblemon-dev and g++; without them it is said to be missing. LEMON is given the finished
graph; ours also fills in the rewards of every arc, which counts against it.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import routesim as rs
from benchmarks.side_by_side import best_seconds, note
from routesim.planning.exact.planner import ExactPlanner

HERE = Path(__file__).parent


def rewards_of(window: int, seed: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    base = np.random.default_rng(seed).random(4)
    return base[:, np.newaxis] * rs.congestion.Reciprocal()(np.arange(window + 1)[np.newaxis, :])


def howard_beside_karp() -> None:
    planner = ExactPlanner(rs.ActionSet.arms(4), 6)
    times = []
    for seed in range(3):
        rewards = rewards_of(6, seed)
        howard = best_seconds(lambda rewards=rewards: planner.plan(rewards))  # type: ignore[misc]
        karp = best_seconds(lambda rewards=rewards: planner.plan(rewards, method="karp"))  # type: ignore[misc]
        print(
            f"4,096 histories, draw {seed}: Howard {1e3 * howard:.2f} ms, compiled Karp {1e3 * karp:.0f} ms, "
            f"{karp / howard:.0f} times"
        )
        times.append((1e3 * howard, karp / howard))
    low, high = min(times), max(times)
    ratios = [ratio for _, ratio in times]
    note(
        "Howard, 4,096 histories, three draws",
        f"{low[0]:.1f} to {high[0]:.1f} ms",
        f"{min(ratios):.0f} to {max(ratios):.0f} x the compiled Karp",
    )


def compiled_lemon() -> Path | None:
    if shutil.which("g++") is None:
        return None
    program = HERE / "build" / "lemon_howard"
    program.parent.mkdir(exist_ok=True)
    command = ["g++", "-O3", "-march=native", "-o", str(program), str(HERE / "lemon_howard.cpp"), "-llemon"]
    return program if subprocess.run(command, capture_output=True, check=False).returncode == 0 else None


def howard_beside_lemon() -> None:
    program = compiled_lemon()
    if program is None:
        print("LEMON: g++ or liblemon-dev not installed, not measured")
        return
    planner = ExactPlanner(rs.ActionSet.arms(4), 8)
    times = []
    for seed in range(3):
        rewards = rewards_of(8, seed)
        arcs = planner.arc_rewards(rewards)
        graph = f"{len(arcs)} 4 5\n" + "\n".join(map(repr, arcs.ravel().tolist()))
        out = subprocess.run([str(program)], input=graph, capture_output=True, text=True, check=True).stdout.split()
        mean, theirs = float(out[0]), float(out[1])
        plan = planner.plan(rewards)
        ours = best_seconds(lambda rewards=rewards: planner.plan(rewards), repeats=5)  # type: ignore[misc]
        if abs(mean - plan.value) > 1e-9:
            raise SystemExit(f"LEMON finds {mean}, routesim {plan.value}")
        print(
            f"65,536 histories, draw {seed}: Howard {1e3 * ours:.1f} ms, LEMON's {1e3 * theirs:.1f} ms on the same "
            f"graph, {theirs / ours:.1f} times; both find {mean:.9f}"
        )
        times.append((1e3 * ours, theirs / ours))
    ratios = [ratio for _, ratio in times]
    note(
        "Howard, 65,536 histories, three draws",
        f"{min(times)[0]:.0f} to {max(times)[0]:.0f} ms",
        f"{min(ratios):.1f} to {max(ratios):.1f} x LEMON's C++ Howard",
    )


def a_million_histories() -> None:
    code = (
        "import resource, numpy as np; from benchmarks.exact_planner import rewards_of; import routesim as rs;"
        "rs.plan(rs.ActionSet.arms(4), rewards_of(10, 0), 10);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds = best_seconds(lambda: rs.plan(rs.ActionSet.arms(4), rewards_of(10, 0), 10), repeats=2)
    print(f"1,048,576 histories: {seconds:.2f} s, at most {int(out.stdout) / 1024:.0f} MiB in the whole process")
    note("Howard, 1,048,576 histories", f"{seconds:.2f} s, {int(out.stdout) / 1024:.0f} MiB in the whole process")


def main() -> None:
    howard_beside_karp()
    howard_beside_lemon()
    a_million_histories()


if __name__ == "__main__":
    main()
