"""How close plans of several pairs and of long windows are proven to be to the best possible.

    python -m benchmarks.certificates [listed] [whole] [windows] [cities=delft,gothenburg] [draws=10] [pairs=2,4,8,16]

Without a name, all of them. Travel times of several pairs are t0 (1 + 0.15 (n / capacity)^4) and the window is 8. Draw
d takes the ends from seed d; every pair has eight penalty routes, of which `listed` plans over, and `whole` over every
path of the graph. `windows` are eight routes of one pair with capacity window / 4 (BPR), and with 1 + 4 n / window
(linear). The gap is plan / bound - 1, with the standard error of the plan's value where several pairs make it random.
Delft is read from ../shared/data, or where ROUTESIM_SHARED points, and left out without it.
"""

import resource
import sys
import time
import warnings
from typing import Any

import numpy as np

import routesim as rs
from benchmarks.city_learning import networks
from routesim.errors import FewerPathsWarning
from routesim.planning import Planner

CITIES = ("delft", "gothenburg", "coquimbo", "helsinki")
WINDOWS = (17, 24, 40, 64, 120)


def ends_with_routes(
    network: rs.RoadNetwork, n_pairs: int, draw: int
) -> tuple[list[rs.ActionSet], list[tuple[Any, Any]]]:
    """Return eight penalty routes for each of some pairs of ends, and these ends."""
    rng = np.random.default_rng(draw)
    routes: list[rs.ActionSet] = []
    ends: list[tuple[Any, Any]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", FewerPathsWarning)
        while len(routes) < n_pairs:
            one = [network.labels[node] for node in rng.choice(network.n_nodes, 2, replace=False)]
            try:
                routes.append(rs.ActionSet.between(network, one[0], one[1], 8))
            except (FewerPathsWarning, rs.RoutesimError):
                continue
            ends.append((one[0], one[1]))
    return routes, ends


def planned(actions: rs.ActionSet, network: rs.RoadNetwork, congestion: Any, window: int) -> tuple[float, ...]:
    """Return gap, relative error of the value, seconds, processor seconds, and seconds to plan again."""
    base = -network.free_flow_s[actions.edges]
    world = rs.RoundEnvironment.from_congestion(actions, base, congestion, window, noise_std=0.0)
    planner = Planner(actions, window, "edgewise")
    start = time.perf_counter(), time.process_time()
    plan = planner.plan(world.rewards)
    middle = time.perf_counter(), time.process_time()
    planner.plan(world.rewards * 1.01, start=plan, tight_bound=False)
    end = time.perf_counter()
    error = plan.value_error / abs(plan.value)
    return plan.value / plan.bound - 1, error, middle[0] - start[0], middle[1] - start[1], end - middle[0]


def row(name: str, figures: list[tuple[float, ...]]) -> None:
    gaps, errors, seconds, processor, again = np.array(figures).T
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"| {name} | {len(gaps)} | {gaps.mean():.2%} | {gaps.max():.2%} | {errors.mean():.2%} | {seconds.mean():.1f} "
        f"| {processor.mean():.1f} | {again.mean():.2f} | {peak_mb:.0f} |",
        flush=True,
    )


def header(what: str) -> None:
    print(
        f"\n| {what} | draws | gap, mean | gap, worst | error of the value | planned in, s | processor, s "
        "| replanned in, s | peak memory, MB |\n" + "|---" * 9 + "|",
        flush=True,
    )


def several(kind: str, cities: list[str], n_draws: int, sizes: list[int]) -> None:
    header(f"several pairs, {kind}")
    for name, network in networks():
        if name not in cities:
            continue
        for n_pairs in sizes:
            for capacity in (2, 1):
                figures = []
                for draw in range(n_draws):
                    sets, ends = ends_with_routes(network, n_pairs, draw)
                    if kind == "whole":
                        sets = [rs.ActionSet.on_graph(network, *each) for each in ends]
                    actions = rs.ActionSet.several(sets, rates=[1.0] * n_pairs)
                    figures.append(planned(actions, network, rs.congestion.BPR(capacity=capacity), 8))
                row(f"{name}, {n_pairs} pairs, capacity {capacity}", figures)


def windows(cities: list[str], n_draws: int) -> None:
    header("one pair, eight routes")
    for name, network in networks():
        if name not in cities:
            continue
        for window in WINDOWS:
            for congestion in (rs.congestion.BPR(capacity=window / 4), rs.congestion.Linear(4 / window)):
                figures = []
                for draw in range(n_draws):
                    sets, _ = ends_with_routes(network, 1, draw)
                    figures.append(planned(sets[0], network, congestion, window))
                row(f"{name}, window {window}, {type(congestion).__name__}", figures)


def main(words: list[str]) -> None:
    options = dict(word.split("=", 1) for word in words if "=" in word)
    parts = [word for word in words if "=" not in word] or ["listed", "whole", "windows"]
    cities = options.get("cities", ",".join(CITIES)).split(",")
    n_draws, sizes = (
        int(options.get("draws", "10")),
        [int(size) for size in options.get("pairs", "2,4,8,16").split(",")],
    )
    for part in parts:
        if part == "windows":
            windows(cities, n_draws)
        else:
            several(part, cities, n_draws, sizes)


if __name__ == "__main__":
    main(sys.argv[1:])
