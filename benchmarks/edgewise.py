"""Plans made edge by edge: against exact optima, on whole cities, on large grids, over long windows, for several pairs.

    python -m benchmarks.edgewise [families] [cities] [survey] [grids] [long] [pairs]

Without a name, all of them. Travel times are t0 (1 + 0.15 (n / capacity)^4) and the window is 8 where nothing else is
said. The ends in a city are drawn from a fixed seed: the first pair with twelve penalty routes for `cities`, the first
ten for `survey`. Delft is read from ../shared/data, or where ROUTESIM_SHARED points, and left out without it.
"""

import resource
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import routesim as rs
from benchmarks.city_learning import networks
from benchmarks.side_by_side import note
from routesim.errors import FewerPathsWarning
from routesim.planning import Planner
from routesim.planning.edgewise.planner import plan_paths

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "planning"))
from edgewise_instances import FAMILIES, draw_instance, exact_optimum, grid_edges

CITIES = ("delft", "gothenburg", "coquimbo")
HEADER = (
    "| instance | edges | greedy, s | plan, s | bound, s | gap | planned in | replanned in | peak memory |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def world_on(network: rs.RoadNetwork, actions: rs.ActionSet, capacity: float) -> rs.RoundEnvironment:
    base = -network.free_flow_s[actions.edges]
    return rs.RoundEnvironment.from_congestion(actions, base, rs.congestion.BPR(capacity=capacity), 8, noise_std=0.0)


def ends_of(network: rs.RoadNetwork) -> Iterator[tuple[rs.ActionSet, rs.ActionSet]]:
    """Yield, for each OD pair with twelve penalty routes, these routes and the whole graph."""
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FewerPathsWarning)
        while True:
            ends = [network.labels[node] for node in rng.choice(network.n_nodes, 2, replace=False)]
            try:
                yield rs.ActionSet.between(network, ends[0], ends[1], 12), rs.ActionSet.on_graph(network, *ends)
            except (FewerPathsWarning, rs.RoutesimError):
                continue


def measure(name: str, world: rs.RoundEnvironment) -> None:
    planner = Planner(world.actions, world.window, "edgewise")
    start = time.perf_counter()
    plan = planner.plan(world.rewards)
    planned = time.perf_counter()
    changed = world.rewards * np.random.default_rng(0).uniform(0.97, 1.03, size=(len(world.rewards), 1))
    before = time.perf_counter()
    planner.plan(changed, start=plan)
    replanned = time.perf_counter()
    greedy = rs.run(world, rs.GreedyCongestion(), 500, comparator=plan).expected_rewards[-200:].mean()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"| {name} | {world.actions.n_edges} | {-greedy:.1f} | {-plan.value:.1f} | {-plan.bound:.1f} "
        f"| {plan.value / plan.bound - 1:.2%} | {planned - start:.2f} s | {1000 * (replanned - before):.0f} ms "
        f"| {peak_mb:.0f} MB |",
        flush=True,
    )
    note(
        f"plan of {name}, window 8",
        f"{planned - start:.2f} s, replanned in {1000 * (replanned - before):.0f} ms",
        f"proven within {plan.value / plan.bound - 1:.2%} of the best possible",
    )


def compile_first() -> None:
    network = rs.load_city("helsinki")
    listed, whole = next(ends_of(network))
    for actions in (listed, whole):
        planner = Planner(actions, 8, "edgewise")
        rewards = world_on(network, actions, 2).rewards
        planner.plan(rewards, start=planner.plan(rewards))
    # A gap that only prices that look back close, so that they are compiled too.
    rs.plan(rs.ActionSet.arms(2), [[2.0, 0.0], [0.0, 1.0]], 1, method="edgewise")


def cities() -> None:
    compile_first()
    print("\n" + HEADER)
    for name, network in networks():
        if name in CITIES:
            listed, whole = next(ends_of(network))
            for capacity in (2, 1):
                measure(f"{name}, whole graph, capacity {capacity}", world_on(network, whole, capacity))
                measure(f"{name}, 12 paths, capacity {capacity}", world_on(network, listed, capacity))


def survey() -> None:
    compile_first()
    print("\n| gap over ten pairs | capacity | mean | median | worst | longest planning, s (processor, s) |")
    print("|---|---|---|---|---|---|")
    for name, network in networks():
        if name in CITIES:
            pairs_of_ends = [sets for sets, _ in zip(ends_of(network), range(10), strict=False)]
            for kind, which in (("12 paths", 0), ("whole graph", 1)):
                for capacity in (2, 1):
                    gaps, seconds, processor = [], [], []
                    for sets in pairs_of_ends:
                        world = world_on(network, sets[which], capacity)
                        start = time.perf_counter(), time.process_time()
                        plan = rs.plan(world.actions, world.rewards, 8, method="edgewise")
                        seconds.append(time.perf_counter() - start[0])
                        processor.append(time.process_time() - start[1])
                        gaps.append(plan.value / plan.bound - 1)
                    print(
                        f"| {name}, {kind} | {capacity} | {np.mean(gaps):.2%} | {np.median(gaps):.2%} "
                        f"| {np.max(gaps):.2%} | {max(seconds):.1f} ({max(processor):.1f}) |",
                        flush=True,
                    )


def families() -> None:
    print(
        "\n| family | greedy | plan, mean | plan, worst | bound, mean | bound, worst | plan, ms |\n" + "|---" * 7 + "|"
    )
    for family in FAMILIES:
        rng = np.random.default_rng(FAMILIES.index(family))
        rows, seconds = [], 0.0
        for number in range(42):
            instance = draw_instance(family, number, 300_000 if number % 14 == 13 else 8_000, rng)
            optimum = exact_optimum(instance)[1]
            start = time.perf_counter()
            plan = plan_paths(instance.paths, instance.rewards, instance.window)
            seconds += time.perf_counter() - start
            figures = np.array([plan.candidates["greedy"], plan.value, plan.bound]) / optimum
            rows.append(figures)
        greedy, value, bound = np.array(rows).T
        cost = family.endswith("time")
        worst_value, worst_bound = (value.max(), bound.min()) if cost else (value.min(), bound.max())
        print(
            f"| {family}{' (cost)' if cost else ''} | {greedy.mean():.4f} | {value.mean():.4f} "
            f"| {worst_value:.4f} | {bound.mean():.4f} | {worst_bound:.4f} | {1000 * seconds / 42:.1f} |",
            flush=True,
        )


def grids() -> None:
    import networkx as nx

    compile_first()
    print("\n" + HEADER)
    for side in (30, 42, 60, 84, 92):
        times = np.random.default_rng(0).uniform(3, 20, size=len(grid_edges(side)))
        graph = nx.DiGraph()
        for (tail, head), time_s in zip(grid_edges(side), times, strict=True):
            graph.add_edge(tail, head, free_flow_s=time_s)
        network = rs.RoadNetwork.from_networkx(graph)
        ends = side * (side // 8) + side // 8, side * (7 * side // 8) + 7 * side // 8
        for capacity in (2, 1):
            world = world_on(network, rs.ActionSet.on_graph(network, *ends), capacity)
            measure(f"grid {side} x {side}, capacity {capacity}", world)


def long() -> None:
    rows = []
    for draw in range(10):
        base = np.random.default_rng(draw).random(20)
        arms = rs.ActionSet.arms(20)
        world = rs.RoundEnvironment.from_congestion(arms, base, rs.congestion.Reciprocal(), 120, noise_std=0.0)
        start = time.perf_counter()
        plan = rs.plan(arms, world.rewards, 120)
        seconds = time.perf_counter() - start
        greedy = rs.run(world, rs.GreedyCongestion(), 20_000, comparator=plan).expected_rewards[2_000:].mean()
        rows.append((greedy, plan.value, plan.bound, seconds))
    greedy, value, bound, seconds_each = np.array(rows).T
    print("\nTwenty arms, window 120, reciprocal congestion, ten draws:")
    print(f"greedy {greedy.mean():.4f}, plan {value.mean():.4f}, bound {bound.mean():.4f};")
    print(
        f"plan / greedy {np.mean(value / greedy):.3f} (least {np.min(value / greedy):.3f}), "
        f"bound / plan {np.mean(bound / value):.3f}, {np.median(seconds_each):.2f} s each"
    )


def pairs() -> None:
    network = dict(networks())["gothenburg"]
    rng = np.random.default_rng(2)
    for n_pairs in (2, 4, 8):
        drawn = [rng.choice(network.n_nodes, 2, replace=False) for _ in range(n_pairs)]
        sets = [rs.ActionSet.on_graph(network, *(network.labels[node] for node in ends)) for ends in drawn]
        world = world_on(network, rs.ActionSet.several(sets, rates=[1.0] * n_pairs), 2)
        start = time.perf_counter()
        plan = rs.plan(world.actions, world.rewards, 8)
        seconds = time.perf_counter() - start
        print(
            f"gothenburg, {n_pairs} pairs: plan {-plan.value:.1f} ± {plan.value_error:.1f} s, "
            f"bound {-plan.bound:.1f} s, {seconds:.1f} s",
            flush=True,
        )


PARTS = {"families": families, "cities": cities, "survey": survey, "grids": grids, "long": long, "pairs": pairs}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
