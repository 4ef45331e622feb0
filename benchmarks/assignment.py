"""Static assignment to relative gap 1e-4, beside AequilibraE's bi-conjugate Frank-Wolfe, in one process on one core.

    python -m benchmarks.assignment [vehicles an hour in Coquimbo]

Sioux Falls and Anaheim are read from ../shared/data (or ROUTESIM_SHARED); without it, only Coquimbo is measured.
AequilibraE 1.7.2 is given the same roads and trips as a table: its graph, contraction and assignment need no
project, so neither SQLite's extensions nor spatialite. Seconds are of CPU time, so that other work on the machine
counts little: for routesim a whole `assign`, contraction and path shares included; for AequilibraE
`TrafficAssignment.execute` from the prepared graph on, to the first iteration at the gap, with its progress bars off.
Linear algebra is kept on one thread: a second one would only wait, and waiting counts as CPU time. Both are run once
before, for compiling and caches, and the best of three is shown.
"""

import importlib.metadata
import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import routesim as rs
from benchmarks.side_by_side import note

GAP = 1e-4
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
    return found


def aequilibrae_run(network: rs.RoadNetwork, demand: rs.Demand) -> Callable[[], Any]:
    """Return a function that assigns with AequilibraE and returns (flows by edge, gap, iterations)."""
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
        assignment.max_iter = 2000
        assignment.rgap_target = GAP
        assignment.set_cores(1)
        return assignment

    return run


def best_cpu_seconds(work: Callable[[], object]) -> float:
    """Return the least CPU time of three runs, after one that is not counted."""
    times = []
    for _ in range(4):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times[1:])


def measured_aequilibrae(network: rs.RoadNetwork, demand: rs.Demand) -> tuple[float, float, int, Any]:
    prepare = aequilibrae_run(network, demand)
    best = np.inf
    for attempt in range(4):
        assignment = prepare()
        assignment.assignment.steps_below_needed_to_terminate = 1
        start = time.process_time()
        assignment.execute(log_specification=False)
        if attempt:
            best = min(best, time.process_time() - start)
    report = assignment.report()
    flows = assignment.results()["PCE_AB"].to_numpy()
    return best, float(assignment.assignment.rgap), len(report), flows


def main() -> None:
    vehicles = float(sys.argv[1]) if len(sys.argv) > 1 else 60_000.0
    for name, network, demand in cases(vehicles):
        result = rs.assign(network, demand, relative_gap=GAP)
        ours = best_cpu_seconds(lambda network=network, demand=demand: rs.assign(network, demand, relative_gap=GAP))  # type: ignore[misc]
        print(
            f"{name}: {network.n_edges:,} edges, {demand.expected_vehicles:,.0f} vehicles an hour: {ours:.3f} s, "
            f"{result.iterations} iterations, gap {result.relative_gap:.2e}"
        )
        if name in PUBLISHED:
            above = result.objective_value / 60 / PUBLISHED[name] - 1
            print(f"  objective {100 * above:.4f} % above the published best")
        system = rs.assign(network, demand, "system", relative_gap=GAP)
        anarchy = result.total_travel_time_s / system.total_travel_time_s
        print(f"  equilibrium over optimum, in total travel time (price of anarchy): {anarchy:.4f}")
        try:
            version = importlib.metadata.version("aequilibrae")
        except importlib.metadata.PackageNotFoundError:
            print("  AequilibraE: not installed, not measured")
            note(f"assignment to {GAP:g}: {name}", f"{ours:.3f} s of CPU time")
            continue
        theirs, gap, iterations, flows = measured_aequilibrae(network, demand)
        correlation = np.corrcoef(np.nan_to_num(flows), result.flows)[0, 1]
        print(
            f"  AequilibraE {version}: {theirs:.3f} s, {iterations} iterations, gap {gap:.2e}, flows correlate "
            f"{correlation:.5f}; routesim is {theirs / ours:.1f} times as fast"
        )
        note(
            f"assignment to {GAP:g}: {name}",
            f"{ours:.3f} s of CPU time",
            f"{theirs / ours:.1f} x AequilibraE {version}'s bi-conjugate Frank-Wolfe",
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
