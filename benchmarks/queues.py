"""The queue engine beside UXsim's C++ engine with single vehicles: agreement, speed, growth, memory and gridlock.

    python -m benchmarks.queues                      all parts
    python -m benchmarks.queues corridor junctions   only these; there are corridor, junctions, grid, growth, gridlock,
                                                     sioux_falls

Both engines get the same roads, departures (at whole seconds) and routes (the quickest on empty roads). Roads are
driven at 15 m/s and hold 200 vehicles a kilometre; UXsim's reaction time of 1 s then makes jams dissolve at 18 km/h,
which is what routesim is told, and a road without a bottleneck passes 2,700 vehicles an hour in both. Bottlenecks are
at the ends of roads. Every engine runs in a process of its own, one thread, in turn; seconds are of CPU time, so that
other work on the machine counts little. Timed is the simulation from prepared demand and routes, in UXsim with its logs
of vehicles and its search for routes turned off and an end just after the last arrival: what it does at its quickest.
"Own routing" is each with its own: routesim finds the quickest paths on empty roads, UXsim looks every 600 s at the
travel times of the moment, as it does by default, so that routes and trips differ.

"growth" measures the cost of a passage on the same grid from 10,000 to a million vehicles beside the logarithm of the
vehicles on the road. Timed is the compiled core alone, at its best of several rounds. Capacity and
storage grow in proportion to the vehicles: so that trips take the same time at every size ("flowing"), or a twentieth
of that, so that queues form and spill back ("queuing").

With signals, all nodes of the grid have routesim's default programme, in both: the same green times, seconds between
them and starts of the cycle, and 2,700 vehicles an hour and lane while it is green.

Sioux Falls takes longer here, which is not chance: other departures move the mean of either by less than 2 %. UXsim
saves up the exits of a blocked road, as many as it has lanes, and lets a lane take two or three vehicles a second apart
where its diagram passes one in 1.33 s. Here a road saves one headway less than it has lanes, at its exit and at its
entry, as so many can go side by side; without that, the diverge of two lanes took 26 % longer than in UXsim. The
roads of Sioux Falls lock one another, so that any such detail moves its mean by several percent: with the exits of
UXsim and no savings at entries it is 8 % above. All take the paths of empty roads here, so that its queues are far from
real ones.

Peers come with `pip install routesim[bench]`; one that is missing is said to be.
"""

import importlib.metadata
import json
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks.assignment import tntp_folder
from benchmarks.queue_cases import JAM_PER_M, LANES, OURS, PLAIN, WAVE_MS, grid
from benchmarks.side_by_side import note


def measured(engine: str, setup: str, *arguments: Any, **options: Any) -> dict[str, Any] | None:
    """Run an engine in a process of its own: "uxsim", or a physics of routesim."""
    package = "uxsim" if engine == "uxsim" else OURS
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        print(f"{package} is not installed, not measured")
        return None
    call = f"b.uxsim_run(s, **{options!r})" if engine == "uxsim" else f"b.routesim_run(s, {engine!r}, **{options!r})"
    code = (
        "import json, benchmarks.queue_cases as b;"
        f"s = b.SETUPS[{setup!r}](*{arguments!r}); r = {call};"
        "r['memory_mib'] = b.most_memory_mib();"
        "print('RESULT' + json.dumps(r))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    lines = [line for line in out.stdout.splitlines() if line.startswith("RESULT")]
    if not lines:
        print(f"{engine} on {setup} {arguments}: failed: {out.stderr.strip().splitlines()[-1:]}")
        return None
    result: dict[str, Any] = json.loads(lines[-1][len("RESULT") :])
    result["rate"] = result["passages"] / result["seconds"]
    print(
        f"{setup} {arguments} {engine}: mean {result['mean_s']:.1f} s, last {result['last_s']:,.0f} s, "
        f"{result['arrived']:,} of {result['vehicles']:,} arrived, {result['passages']:,} passages in "
        f"{result['seconds']:.2f} s, {result['rate'] / 1e6:.3f} million/s, {result['memory_mib']:,.0f} MiB"
        + "".join(f", {name} {result[name]}" for name in ("most_on", "most_outside", "left") if name in result)
        + (f", {result['forced_moves']} forced moves" if result.get("forced_moves") else ""),
        flush=True,
    )
    return result


def apart(ours: float, theirs: float) -> str:
    return f"{100 * (ours / theirs - 1):+.1f} %" if theirs else "equal" if ours == theirs else "-"


def part_corridor() -> None:
    for vehicles in (800, 1200, 2000):
        ours, theirs = (measured(engine, "corridor", vehicles, fine=True) for engine in (PLAIN, "uxsim"))
        if ours and theirs:
            queues = [found["most_on"][0] + found["most_outside"] for found in (ours, theirs)]
            note(
                f"{vehicles:,} vehicles an hour through a bottleneck of 1,000, queue engine: mean trip, last arrival, "
                "most vehicles before the full road",
                f"{ours['mean_s']:.0f} s, {ours['last_s']:,.0f} s, {queues[0]}",
                f"UXsim {theirs['mean_s']:.0f} s, {theirs['last_s']:,.0f} s, {queues[1]} "
                f"({apart(ours['mean_s'], theirs['mean_s'])}, {apart(ours['last_s'], theirs['last_s'])}, "
                f"{apart(*queues)})",
            )


def part_junctions() -> None:
    cases: list[tuple[str, str, tuple[int, ...], list[int]]] = [
        ("merge, both roads above their share", "merge", (1200, 600), [0, 2]),
        ("merge, the smaller road below its share", "merge", (1200, 200), [0, 2]),
        ("diverge, one branch full", "diverge", (1600,), [1, 2]),
        ("diverge of two lanes, both branches full, drawn at random", "wide_diverge", (6000,), [2, 3]),
    ]
    for what, setup, sizes, branches in cases:
        ours, theirs = (measured(engine, setup, *sizes, fine=True) for engine in (PLAIN, "uxsim"))
        if ours and theirs:
            flows = [" and ".join(f"{found['left'][k]:.0f}" for k in branches) for found in (ours, theirs)]
            note(
                f"{what}, queue engine: mean trip, vehicles through each branch in an hour",
                f"{ours['mean_s']:.0f} s, {flows[0]}",
                f"UXsim {theirs['mean_s']:.0f} s, {flows[1]} ({apart(ours['mean_s'], theirs['mean_s'])})",
            )


def part_grid(*sizes: int) -> None:
    modes: tuple[tuple[str, str, tuple[int, ...], bool, str], ...] = (
        (PLAIN, "grid", (1,), False, "plain"),
        (PLAIN, "grid", (1,), True, "plain, own routing"),
        (LANES, "grid", (2,), False, "two lanes each, no signals"),
        (LANES, "signalled_grid", (), False, "two lanes each, signals at all nodes"),
    )
    for vehicles in sizes or (20_000, 100_000):
        for physics, setup, lanes, own, what in modes:
            if own and vehicles > 20_000:
                continue
            ours = measured(physics, setup, vehicles, *lanes, rounds=5, own_routes=own)
            theirs = measured("uxsim", setup, vehicles, *lanes, own_routes=own)
            if ours and theirs:
                note(
                    f"{vehicles:,} vehicles on a 30 x 30 grid, queue engine, {what}: passages, mean trip",
                    f"{ours['rate'] / 1e6:.1f} million/s, {ours['mean_s']:.1f} s",
                    f"{ours['rate'] / theirs['rate']:.0f} x UXsim, {theirs['mean_s']:.1f} s "
                    f"({apart(ours['mean_s'], theirs['mean_s'])}; {theirs['arrived']:,} arrived there)",
                )


GROWTH = [10_000, 30_000, 100_000, 300_000, 1_000_000]


def part_growth(rounds: int = 2) -> None:
    """Print the cost of a passage against the vehicles on the road, and the memory of a million vehicles."""
    import routesim as rs
    from routesim.traffic.engines import queue_kernel

    core, spent = queue_kernel.drive, 0.0

    def timed(*arguments: Any) -> int:
        nonlocal spent
        start = time.thread_time()
        answer = core(*arguments)
        spent += time.thread_time() - start
        return answer

    setattr(queue_kernel, "drive", timed)  # noqa: B010 - the engine looks it up at every call
    best: dict[tuple[str, int], tuple[float, int, float]] = {}
    regimes = {"flowing": 1.0, "queuing": 0.05}
    demands = {vehicles: grid(vehicles).demand for vehicles in GROWTH}
    simulators = {}
    for regime, share in regimes.items():
        for vehicles, demand in demands.items():
            scale = share * vehicles / GROWTH[0]
            network = grid(GROWTH[0], 1, scale).network  # of at least one lane
            physics = rs.physics.PlainQueue(jam_density_per_km=1000 * JAM_PER_M * min(1, scale), wave_kph=3.6 * WAVE_MS)
            simulators[regime, vehicles] = rs.TrafficSimulator(network, demand, physics=physics)
    for number in range(rounds + 1):
        for vehicles in GROWTH if number else GROWTH[:1]:  # the first round compiles
            for regime in regimes:
                simulator = simulators[regime, vehicles]
                spent = 0.0
                traffic = simulator.run(rs.FreeFlowRouter())
                happened = np.argsort(np.concatenate((traffic.departure_s, traffic.arrival_s)), kind="stable")
                road = int(np.cumsum(np.where(happened < vehicles, 1, -1)).max())
                cost = spent / traffic.n_events
                if number:
                    known = best.get((regime, vehicles), (cost,))[0]
                    best[regime, vehicles] = (min(cost, known), road, float(traffic.travel_time_s.mean()))
    print("| regime | vehicles | most on the road | mean trip s | ns a passage | growth | logarithm |")
    print("|---|---|---|---|---|---|---|")
    for regime in regimes:
        least = best[regime, GROWTH[0]]
        for vehicles in GROWTH:
            cost, road, mean = best[regime, vehicles]
            growth, allowed = cost / least[0], np.log(road) / np.log(least[1])
            print(
                f"| {regime} | {vehicles:,} | {road:,} | {mean:.0f} | {cost * 1e9:.0f} | {growth:.2f} | {allowed:.2f} |"
            )
        note(
            f"cost of a passage at a million vehicles over that at 10,000, queue engine, {regime}",
            f"{growth:.2f} x ({cost * 1e9:.0f} ns)",
            f"the logarithm of the vehicles on the road grows {allowed:.2f} x",
        )
    million = measured(PLAIN, "grid", GROWTH[-1], 1, GROWTH[-1] / GROWTH[0], own_routes=True)
    if million:
        note(
            "a million vehicles on the grid with lanes in proportion, queue engine",
            f"{million['rate'] / 1e6:.1f} million passages/s, {million['memory_mib']:,.0f} MiB",
        )


def part_gridlock() -> None:
    found = measured(PLAIN, "grid", 300_000)
    if found:
        note(
            "gridlock, 300,000 vehicles on the grid, queue engine",
            f"{found['seconds']:.1f} s, {found['arrived']:,} arrived, the last after {found['last_s'] / 3600:.0f} h, "
            f"{found['forced_moves']:,} forced moves of {found['passages']:,} passages",
        )
        print(found["summary"])


def part_sioux_falls() -> None:
    if not (tntp_folder() / "SiouxFalls").is_dir():
        print(f"Sioux Falls: no {tntp_folder()}, not measured")
        return
    ours, theirs = measured(PLAIN, "sioux_falls"), measured("uxsim", "sioux_falls")
    if ours and theirs:
        note(
            "Sioux Falls at half demand in an hour on paths of empty roads, queue engine: mean trip, arrived, passages",
            f"{ours['mean_s']:.0f} s, {ours['arrived'] / ours['vehicles']:.0%}, {ours['rate'] / 1e6:.1f} million/s, "
            f"{ours['forced_moves']} forced moves",
            f"UXsim {theirs['mean_s']:.0f} s, {theirs['arrived'] / theirs['vehicles']:.0%} "
            f"({apart(ours['mean_s'], theirs['mean_s'])}; {ours['rate'] / theirs['rate']:.0f} x as fast)",
        )


PARTS = {
    "corridor": part_corridor, "junctions": part_junctions, "grid": part_grid, "growth": part_growth,
    "gridlock": part_gridlock, "sioux_falls": part_sioux_falls,
}  # fmt: skip

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
