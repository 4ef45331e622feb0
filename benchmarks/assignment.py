"""Static assignment to relative gaps of 1e-4, 1e-6 and 1e-8, beside AequilibraE's bi-conjugate Frank-Wolfe.

    OMP_WAIT_POLICY=passive python -m benchmarks.assignment [vehicles an hour in Coquimbo] [--quick]

Sioux Falls and Anaheim are read from ../shared/data (or ROUTESIM_SHARED); without it, Coquimbo and a grid made by
script are measured. AequilibraE 1.7.2 is given the same roads and trips as a table: its graph, contraction and
assignment need no project, so neither SQLite's extensions nor spatialite. Seconds are of CPU time, with the time by the
clock in brackets: for routesim a whole `assign`, contraction and path shares included; for AequilibraE
`TrafficAssignment.execute` from the prepared graph on, to the first iteration at the gap, with its progress bars off,
or until it has had as many iterations as it is given, when the gap it has come to is shown. Both have one thread.
Both are run once before, for compiling and caches; the best of three is shown, or with --quick one run.
"""

import importlib.metadata
import logging
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import routesim as rs
from benchmarks.region import region
from benchmarks.side_by_side import note

GAPS = (1e-4, 1e-6, 1e-8)
MOST_ITERATIONS = {"SiouxFalls": 5000, "Anaheim": 2000, "Coquimbo": 60, "grid": 60}  # of AequilibraE
PUBLISHED = {"SiouxFalls": 4_231_335.3, "Anaheim": 1_286_032.2}  # Beckmann's objective, in vehicle-minutes


def tntp_folder() -> Path:
    shared = os.environ.get("ROUTESIM_SHARED", str(Path(__file__).parents[2] / "shared"))
    return Path(shared) / "data" / "tntp"


def cases(vehicles: float) -> list[tuple[str, rs.RoadNetwork, rs.Demand]]:
    found = []
    for name in PUBLISHED:
        folder = tntp_folder() / name
        if folder.is_dir():
            network = rs.RoadNetwork.from_tntp(folder / f"{name}_net.tntp")
            found.append((name, network, rs.Demand.from_tntp_trips(folder / f"{name}_trips.tntp")))
        else:
            print(f"{name}: no {folder}, not measured")
    coquimbo = rs.load_city("coquimbo")
    found.append(("Coquimbo", coquimbo, rs.Demand.from_zones(coquimbo, rs.load_zones("coquimbo"), vehicles)))
    network, trips = region(200, 50, 160_000.0)
    found.append(("grid", network, rs.Demand.from_od(trips, 0, 3600)))
    return found


def aequilibrae_run(network: rs.RoadNetwork, demand: rs.Demand, gap: float, most: int) -> Callable[[], Any]:
    """Return a function that prepares an assignment with AequilibraE."""
    os.environ["AEQ_SHOW_PROGRESS"] = "FALSE"  # read when the package is imported
    import pandas as pd
    from aequilibrae.matrix import AequilibraeMatrix
    from aequilibrae.paths import Graph, TrafficAssignment, TrafficClass

    logging.getLogger("aequilibrae").setLevel(logging.CRITICAL)
    table = demand.per_hour()
    zones = sorted({*table["origin"], *table["destination"]}, key=network.node_index)
    number = {label: place for place, label in enumerate(zones)}
    links = pd.DataFrame(
        {
            "link_id": np.arange(1, network.n_edges + 1),
            "a_node": network.tails + 1,
            "b_node": network.heads + 1,
            "direction": 1,
            # AequilibraE divides by the free flow time, so it is kept off 0.
            "free_flow": np.maximum(network.free_flow_s, 1e-6),
            "capacity": network.capacity_vph,
            "alpha": network.bpr_alpha,
            "beta": network.bpr_beta,
        }
    )

    def run() -> Any:
        graph = Graph()
        graph.network = links.copy()
        graph.mode = "c"
        centroids = np.array([network.node_index(label) + 1 for label in zones])
        graph.prepare_graph(centroids)
        graph.set_graph("free_flow")
        graph.set_skimming([])
        graph.set_blocked_centroid_flows(bool(network.no_through.any()))
        matrix = AequilibraeMatrix()
        matrix.create_empty(zones=len(zones), matrix_names=["cars"], memory_only=True)
        matrix.index[:] = centroids
        matrix.matrices[:, :, 0] = 0.0
        rows = [number[label] for label in table["origin"]]
        columns = [number[label] for label in table["destination"]]
        matrix.matrices[rows, columns, 0] = table["vehicles"]
        matrix.computational_view(["cars"])
        assignment = TrafficAssignment()
        assignment.set_classes([TrafficClass("cars", graph, matrix)])
        assignment.set_vdf("BPR")
        assignment.set_vdf_parameters({"alpha": "alpha", "beta": "beta"})
        assignment.set_capacity_field("capacity")
        assignment.set_time_field("free_flow")
        assignment.set_algorithm("bfw")
        assignment.max_iter = most
        assignment.rgap_target = gap
        assignment.set_cores(1)
        return assignment

    return run


def best_seconds(prepare: Callable[[], Callable[[], object]], repeats: int) -> tuple[float, float]:
    """Return the least CPU time of some runs, and the time by the clock of that run, after one that is not counted."""
    times = []
    for attempt in range(repeats + (repeats > 1)):
        work = prepare()
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        if attempt or repeats == 1:
            times.append((time.process_time() - cpu, time.perf_counter() - wall))
    return min(times)


def _itself(run: Callable[[], object]) -> Callable[[], object]:
    return run


def beside_aequilibrae(name: str, network: rs.RoadNetwork, demand: rs.Demand, gap: float, repeats: int) -> Any:
    """Return AequilibraE's seconds, the gap that it came to, its iterations and its flows."""
    made: list[Any] = []
    prepare = aequilibrae_run(network, demand, gap, MOST_ITERATIONS[name])

    def prepared() -> Callable[[], object]:
        made.append(prepare())
        made[-1].assignment.steps_below_needed_to_terminate = 1
        return lambda: made[-1].execute(log_specification=False)

    seconds = best_seconds(prepared, repeats)
    flows = made[-1].results()["PCE_AB"].to_numpy()
    return seconds, float(made[-1].assignment.rgap), len(made[-1].report()), flows


def main() -> None:
    quick = "--quick" in sys.argv
    given = [word for word in sys.argv[1:] if word != "--quick"]
    try:
        version: str | None = importlib.metadata.version("aequilibrae")
    except importlib.metadata.PackageNotFoundError:
        version = None
        print("AequilibraE: not installed, not measured")
    for name, network, demand in cases(float(given[0]) if given else 60_000.0):
        rs.assign(network, demand, relative_gap=1e-2)  # compiles
        first = 0.0
        for gap in GAPS:
            result = rs.assign(network, demand, relative_gap=gap)
            run = partial(rs.assign, network, demand, relative_gap=gap)
            ours, clock = best_seconds(partial(_itself, run), 1 if quick else 3)
            first = first or ours
            print(
                f"{name}, gap {gap:g}: {network.n_edges:,} edges, {len(result.pairs):,} pairs: {ours:.3f} s "
                f"({clock:.3f}), {ours / first:.1f} times that of the first gap, {result.iterations} iterations, "
                f"gap {result.relative_gap:.1e}",
                flush=True,
            )
            if name in PUBLISHED:
                print(f"  objective {result.objective_value / 60:,.1f}, published {PUBLISHED[name]:,.1f}")
            if version is None:
                note(f"assignment to {gap:g}: {name}", f"{ours:.3f} s of CPU time")
                continue
            (theirs, their_clock), reached, iterations, flows = beside_aequilibrae(
                name, network, demand, gap, 1 if quick else 3
            )
            correlation = np.corrcoef(np.nan_to_num(flows), result.flows)[0, 1]
            print(
                f"  AequilibraE {version}: {theirs:.3f} s ({their_clock:.3f}), {iterations} iterations, "
                f"gap {reached:.1e}, flows correlate {correlation:.6f}; routesim is {theirs / ours:.1f} times as fast",
                flush=True,
            )
            against = f"{theirs / ours:.1f} x AequilibraE {version}'s bi-conjugate Frank-Wolfe"
            if reached > gap:
                against += f", which came to {reached:.0e} in {iterations} iterations"
            note(f"assignment to {gap:g}: {name}", f"{ours:.3f} s of CPU time", against)
        system = rs.assign(network, demand, "system", relative_gap=GAPS[0])
        anarchy = result.total_travel_time_s / system.total_travel_time_s
        print(f"  equilibrium over optimum, in total travel time (price of anarchy): {anarchy:.4f}", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
