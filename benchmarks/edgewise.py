"""Measure plans made edge by edge: against exact optima, on Delft, on large grids, over long windows.

Usage: python benchmarks/edgewise.py [families] [delft] [grids] [long] [pairs]; without a name, all of them.
"""

import re
import resource
import sys
import time
from pathlib import Path

import networkx as nx
import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "planning")]

from edgewise_instances import (  # noqa: E402
    FAMILIES,
    arms,
    draw_instance,
    exact_optimum,
    grid_edges,
    path_set,
    reward_table,
)

from routesim.planning.choices import RoadGraph  # noqa: E402
from routesim.planning.count_policy import CountPolicy  # noqa: E402
from routesim.planning.edgewise import EdgewiseResult, plan_graph, plan_paths  # noqa: E402

Floats = NDArray[np.float64]
DELFT = Path("/work/shared/data/osm/delft.graphml")
SPEED_KPH = {
    "motorway": 100,
    "motorway_link": 60,
    "trunk": 80,
    "trunk_link": 50,
    "primary": 50,
    "secondary": 50,
    "tertiary": 40,
    "unclassified": 40,
    "residential": 30,
    "living_street": 15,
    "service": 15,
}


def bpr_rewards(times: Floats, window: int, capacity: float) -> Floats:
    return np.asarray(-times[:, None] * (1 + 0.15 * (np.arange(window + 1) / capacity) ** 4))


def load_delft() -> tuple[RoadGraph, Floats, list[int]]:
    """Return the graph (its pair to be replaced), free-flow times and the largest connected part."""
    roads = nx.MultiDiGraph(nx.read_graphml(DELFT))
    place = {node: number for number, node in enumerate(roads.nodes)}
    rows = []
    for tail, head, road in roads.edges(data=True):
        if tail == head:
            continue
        speeds = re.findall(r"\d+", str(road.get("maxspeed", "")))
        classes = re.findall(r"[a-z_]+", str(road.get("highway", "")))
        speed_kph = float(speeds[0]) if speeds else SPEED_KPH.get(classes[0] if classes else "", 30)
        rows.append((place[tail], place[head], float(road["length"]) / (speed_kph / 3.6)))
    tails, heads, times = (np.array(column) for column in zip(*rows, strict=True))
    graph = RoadGraph.from_edges(tails.astype(np.int32), heads.astype(np.int32), len(place), [0], [1])
    connected = max(nx.strongly_connected_components(nx.DiGraph(zip(tails, heads, strict=True))), key=len)
    return graph, times, sorted(int(node) for node in connected)


def between(graph: RoadGraph, *pairs: tuple[int, int]) -> RoadGraph:
    origins, destinations = zip(*pairs, strict=True)
    return RoadGraph.from_edges(graph.tails, graph.heads, graph.n_nodes, origins, destinations)


def draw_pair(nodes: list[int], rng: np.random.Generator) -> tuple[int, int]:
    origin, destination = rng.choice(nodes, 2, replace=False)
    return int(origin), int(destination)


def penalty_paths(graph: RoadGraph, times: Floats, n_paths: int) -> list[list[int]]:
    """Shortest paths, each edge used so far made half as long again."""
    costs, found = times.copy(), dict[tuple[int, ...], None]()
    while len(found) < n_paths:
        path = graph.best(-costs, 0)[1]
        found[tuple(path.tolist())] = None
        costs[path] *= 1.5
    return [list(path) for path in found]


def report(name: str, plan: EdgewiseResult, seconds: float, warm_seconds: float) -> None:
    gap = plan.value / plan.bound - 1
    greedy = plan.candidates["greedy"]
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"| {name} | {plan.choices.n_edges} | {-greedy:.1f} | {-plan.value:.1f} | {-plan.bound:.1f} "
        f"| {gap:.2%} | {seconds:.2f} s | {warm_seconds * 1000:.0f} ms | {peak_mb:.0f} MB |",
        flush=True,
    )


HEADER = (
    "| instance | edges | greedy, s | plan, s | bound, s | gap | planned in | replanned in | peak memory |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def families() -> None:
    print(
        "\n| family | greedy | plan, mean | plan, worst | bound, mean | bound, worst | plan, ms |\n"
        + "|---" * 7
        + "|"
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


def city(name: str, graph: RoadGraph, rewards: Floats, window: int) -> None:
    start = time.perf_counter()
    plan = plan_graph(graph, rewards, window)
    middle = time.perf_counter()
    changed = rewards * np.random.default_rng(0).uniform(0.97, 1.03, size=(len(rewards), 1))
    plan_graph(graph, changed, window, warm=plan.warm)
    report(name, plan, middle - start, time.perf_counter() - middle)


def listed(name: str, graph: RoadGraph, times: Floats, window: int, capacity: float) -> None:
    paths = path_set(penalty_paths(graph, times, 12), graph.n_edges)
    rewards = bpr_rewards(times, window, capacity)
    start = time.perf_counter()
    plan = plan_paths(paths, rewards, window)
    middle = time.perf_counter()
    changed = rewards * np.random.default_rng(0).uniform(0.97, 1.03, size=(len(rewards), 1))
    plan_paths(paths, changed, window, warm=plan.warm, kicks=0)
    report(name, plan, middle - start, time.perf_counter() - middle)


def delft() -> None:
    if not DELFT.exists():
        print(f"\nDelft skipped: {DELFT} is not there")
        return
    graph, times, nodes = load_delft()
    rng = np.random.default_rng(1)
    pairs = [draw_pair(nodes, rng) for _ in range(4)]
    plan_graph(between(graph, pairs[0]), bpr_rewards(times, 2, 2), 2)  # compile
    print("\n" + HEADER)
    for origin, destination in pairs:
        pair = between(graph, (origin, destination))
        for capacity in (2, 1):
            name = f"Delft {origin}-{destination}, capacity {capacity}"
            city(f"{name}, whole graph", pair, bpr_rewards(times, 8, capacity), 8)
            listed(f"{name}, 12 paths", pair, times, 8, capacity)


def grids() -> None:
    print("\n" + HEADER)
    for side in (30, 42, 60, 84, 92):
        tails, heads = np.array(grid_edges(side), np.int32).T
        ends = side * (side // 8) + side // 8, side * (7 * side // 8) + 7 * side // 8
        graph = RoadGraph.from_edges(tails, heads, side * side, [ends[0]], [ends[1]])
        times = np.random.default_rng(0).uniform(3, 20, size=graph.n_edges)
        for capacity in (2, 1):
            city(f"grid {side}, capacity {capacity}", graph, bpr_rewards(times, 8, capacity), 8)


def long() -> None:
    rows = []
    for draw in range(10):
        rewards = reward_table("reciprocal", 20, 120, np.random.default_rng(draw))
        start = time.perf_counter()
        plan = plan_paths(arms(20), rewards, 120)
        seconds = time.perf_counter() - start
        _, earned = CountPolicy(arms(20), rewards, np.zeros(20), 120).play(np.zeros(20_000, np.int64))
        rows.append((earned[2_000:].mean(), plan.value, plan.bound, seconds))
    greedy, value, bound, seconds_each = np.array(rows).T
    print("\nTwenty arms, window 120, reciprocal congestion, ten draws:")
    print(f"greedy {greedy.mean():.4f}, plan {value.mean():.4f}, bound {bound.mean():.4f};")
    print(
        f"plan / greedy {np.mean(value / greedy):.3f} (least {np.min(value / greedy):.3f}), "
        f"bound / plan {np.mean(bound / value):.3f}, {np.median(seconds_each):.2f} s each"
    )


def pairs() -> None:
    if not DELFT.exists():
        print(f"\nDelft skipped: {DELFT} is not there")
        return
    graph, times, nodes = load_delft()
    rng = np.random.default_rng(2)
    for n_pairs in (2, 4, 8):
        ends = [draw_pair(nodes, rng) for _ in range(n_pairs)]
        start = time.perf_counter()
        plan = plan_graph(between(graph, *ends), bpr_rewards(times, 8, 2), 8)
        seconds = time.perf_counter() - start
        print(
            f"Delft, {n_pairs} pairs: greedy {-plan.candidates['greedy']:.1f} s, plan {-plan.value:.1f} ± "
            f"{plan.value_error:.1f} s, bound {-plan.bound:.1f} s, {seconds:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    parts = {"families": families, "delft": delft, "grids": grids, "long": long, "pairs": pairs}
    for part in sys.argv[1:] or parts:
        parts[part]()
