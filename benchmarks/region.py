"""A region made by script, assigned to a gap: seconds and memory.

    python -m benchmarks.region [zones] [side of the grid] [gap]

By default 1,800 zones on a grid of 101 x 101 crossings (40,400 links), with vehicles between all of them (3.2 million
pairs), fewer the further apart they are. Every fifth street is twice as quick and wide. Paths are not worked out.
"""

import resource
import sys
import time
import warnings

import networkx as nx
import numpy as np

import routesim as rs
from benchmarks.side_by_side import note


def region(zones: int, side: int, vehicles: float, seed: int = 1) -> tuple[rs.RoadNetwork, dict[str, list[object]]]:
    """Return the grid and its trips an hour."""
    rng = np.random.default_rng(seed)
    graph = nx.DiGraph()
    for x in range(side):
        for y in range(side):
            for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                if 0 <= x + dx < side and 0 <= y + dy < side:
                    fast = (dx and y % 5 == 0) or (dy and x % 5 == 0)
                    graph.add_edge(
                        x * side + y,
                        (x + dx) * side + y + dy,
                        free_flow_s=float(rng.uniform(18, 30) / (2 if fast else 1)),
                        capacity_vph=3600.0 if fast else 1200.0,
                    )
    network = rs.RoadNetwork.from_networkx(graph)
    nodes = np.sort(rng.choice(side * side, zones, replace=False))
    east, north = nodes // side, nodes % side
    weight = rng.uniform(0.5, 2.0, zones)
    apart = np.abs(east[:, None] - east) + np.abs(north[:, None] - north)
    trips = weight[:, None] * weight * np.exp(-apart / 12.0)
    np.fill_diagonal(trips, 0.0)
    trips *= vehicles / trips.sum()
    one, other = np.nonzero(trips)
    return network, {
        "origin": nodes[one].tolist(),
        "destination": nodes[other].tolist(),
        "vehicles": trips[one, other].tolist(),
    }


def main() -> None:
    zones, side = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (1800, 101)
    gap = float(sys.argv[3]) if len(sys.argv) > 3 else 1e-6
    network, trips = region(zones, side, 800.0 * zones)
    warnings.simplefilter("ignore")
    wall, cpu = time.perf_counter(), time.process_time()
    result = rs.assign(network, trips, "user", gap, paths=False)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    load = result.flows / network.capacity_vph
    print(
        f"{network.n_edges:,} links, {zones:,} zones, {len(result.pairs):,} pairs: gap {result.relative_gap:.1e} in "
        f"{cpu:.0f} s of CPU time, {wall:.0f} s by the clock, {result.iterations} iterations, {memory:.2f} GB at most; "
        f"v/c up to {load.max():.2f}, above 1 on {(load > 1).mean():.1%} of the links"
    )
    note(f"region of {len(result.pairs):,} pairs to {result.relative_gap:.0e}", f"{cpu:.0f} s of CPU time", "")


if __name__ == "__main__":
    main()
