"""A road that passes 1,000 vehicles an hour, in both engines and in theory: `python -m benchmarks.bottleneck`.

The road is 900 m long and takes 60 s. During an hour 800, 1,200 or 2,000 vehicles come at even intervals. In theory it
is a queue with one server (D/D/1): vehicle n leaves no earlier than 60 s after it came, and 3.6 s after the one before.
"""

import warnings

import networkx as nx
import numpy as np

import routesim as rs
from routesim.errors import CapacityWarning

CAPACITY_VPH, FREE_FLOW_S, HOUR_S = 1000.0, 60.0, 3600.0


def theory(departure_s: np.ndarray) -> np.ndarray:
    """Return when the vehicles leave a queue with one server."""
    headway_s = HOUR_S / CAPACITY_VPH
    leaves, last = np.empty_like(departure_s), -np.inf
    for n, departs in enumerate(departure_s):
        last = leaves[n] = max(departs + FREE_FLOW_S, last + headway_s)
    return leaves


def simulated(departure_s: np.ndarray, physics: str) -> np.ndarray:
    """Return when the vehicles arrive in an engine."""
    graph = nx.DiGraph()
    graph.add_edge("a", "b", length_m=900.0, free_flow_s=FREE_FLOW_S, capacity_vph=CAPACITY_VPH, lanes=1)
    trips = {"origin": ["a"] * len(departure_s), "destination": ["b"] * len(departure_s), "departure_s": departure_s}
    simulator = rs.TrafficSimulator(rs.RoadNetwork.from_networkx(graph), rs.Demand.from_trips(trips), physics=physics)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapacityWarning)  # what the table is about
        return simulator.run(rs.FreeFlowRouter()).arrival_s


def main() -> None:
    """Print the table of docs/concepts/engines.md."""
    print("| vehicles in an hour | window engine: mean trip, last arrival | queue engine | theory (D/D/1) |")
    print("|---|---|---|---|")
    for vehicles in (800, 1200, 2000):
        departure_s = np.arange(vehicles) * HOUR_S / vehicles
        arrivals = [simulated(departure_s, physics) for physics in ("window", "queue")] + [theory(departure_s)]
        cells = [f"{np.mean(one - departure_s):,.0f} s, {one.max():,.0f} s" for one in arrivals]
        print(f"| {vehicles:,} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
