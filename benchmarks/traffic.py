"""Link traversals per second of the traffic simulator, beside UXsim and Path4GMNS; and how its cost grows.

    python -m benchmarks.traffic
    python -m benchmarks.traffic growth

A grid of 30 x 30 nodes, 3,480 directed links of 500 m at 15 m/s, 100,000 vehicles between 2,000 random pairs over
3,600 s: about two million link traversals. Every engine runs in a process of its own, one thread, in turn. Seconds are
of CPU time, so that other work on the machine counts little; memory is the most the process had. What is timed is
the simulation from prepared demand, routing included (Path4GMNS: without the equilibrium that finds its paths).

The physics differ. routesim makes a vehicle slower by the number that entered the link in the last window; UXsim
moves vehicles or platoons by Newell's car following in steps of time, with queues that spill back onto the links
behind; Path4GMNS has point queues at the ends of links, on paths equilibrated before. A window count is cheaper
physics: the ratio says what it costs to simulate this model, not that the others are slow at theirs.

Peers come with `pip install routesim[bench]`; one that is missing is said to be.

"growth" measures the cost of an event (an entry into a link or an arrival) on the same grid from 10,000 to two million
vehicles, beside what is allowed: growth as the logarithm of the vehicles on the road. These are the most that had
departed and not arrived at any moment, each with one pending event. Timed is the compiled core alone, in CPU time of
its thread, at its best of several rounds over all sizes: what routers and results cost has a fixed part, which would
hide growth. The regimes are

- flowing: capacity in proportion to the vehicles, a little above what they need, so that trips take the same time at
  every size;
- jammed: a tenth of that capacity, also in proportion;
- filling: 1,800 vehicles an hour at every size, so that traffic goes from empty roads to a jam;
- taught: jammed, with noise, and with everything kept that a learning router is shown of driven edges.
"""

import importlib.metadata
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.side_by_side import note

SIDE, VEHICLES, PAIRS, SECONDS = 30, 100_000, 2_000, 3_600
LENGTH_M, SPEED_MS, CAPACITY_VPH = 500.0, 15.0, 1800.0


def grid_links() -> list[tuple[int, int]]:
    links = []
    for node in range(SIDE * SIDE):
        i, j = divmod(node, SIDE)
        links += [
            (node, k * SIDE + m) for k, m in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)) if 0 <= k < SIDE > m >= 0
        ]
    return links


def pairs_and_times(vehicles: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    ends = rng.integers(SIDE * SIDE, size=PAIRS)
    others = (ends + rng.integers(1, SIDE * SIDE, size=PAIRS)) % (SIDE * SIDE)
    which = rng.integers(PAIRS, size=vehicles)
    return ends[which], others[which], np.sort(rng.random(vehicles) * SECONDS)


def routesim_grid() -> Any:
    import networkx as nx

    import routesim as rs

    graph = nx.DiGraph()
    graph.add_nodes_from(range(SIDE * SIDE))
    times = {"length": LENGTH_M, "free_flow_s": LENGTH_M / SPEED_MS, "capacity_vph": CAPACITY_VPH}
    graph.add_edges_from((tail, head, times) for tail, head in grid_links())
    return rs.RoadNetwork.from_networkx(graph)


def routesim_demand(vehicles: int) -> Any:
    import routesim as rs

    origins, destinations, departures = pairs_and_times(vehicles)
    return rs.Demand.from_trips({"origin": origins, "destination": destinations, "departure_s": departures})


def routesim_run(vehicles: int, router: str) -> dict[str, float]:
    import routesim as rs

    network = routesim_grid()
    simulator = rs.TrafficSimulator(network, routesim_demand(vehicles))
    kinds: dict[str, Callable[[], Any]] = {"free flow": rs.FreeFlowRouter, "greedy": rs.GreedyRouter}
    best, traversals = np.inf, 0
    few = rs.Demand.from_trips({"origin": [0], "destination": [899], "departure_s": [0.0]})
    rs.TrafficSimulator(network, few).run(kinds[router]())  # compiles, or reads what was compiled before
    for _ in range(3 if vehicles <= VEHICLES else 1):
        start = time.process_time()
        traffic = simulator.run(kinds[router]())
        best, traversals = min(best, time.process_time() - start), traffic.n_events
        if not traffic.arrived.all():
            raise SystemExit("vehicles are missing")
    return {"seconds": best, "traversals": traversals}


GROWTH = [10_000, 30_000, 100_000, 300_000, 1_000_000, 2_000_000]
NEEDED = CAPACITY_VPH / 12 / VEHICLES  # capacity in entries per window of 300 s and vehicle, for traffic that flows
REGIMES: dict[str, tuple[Callable[[int], float], bool]] = {
    "flowing": (lambda vehicles: NEEDED * vehicles, False),
    "jammed": (lambda vehicles: NEEDED * vehicles / 10, False),
    "filling": (lambda _: CAPACITY_VPH / 12, False),
    "taught": (lambda vehicles: NEEDED * vehicles / 10, True),
}


def growth(rounds: int = 3) -> None:
    """Print the cost of an event against the vehicles on the road."""
    import routesim as rs
    from routesim.traffic.engines import window_kernel as events

    network, core, spent = routesim_grid(), events.drive, 0.0

    def timed(*arguments: Any) -> int:
        nonlocal spent
        start = time.thread_time()
        answer = core(*arguments)
        spent += time.thread_time() - start
        return answer

    setattr(events, "drive", timed)  # noqa: B010 - the simulator looks it up at every call
    best: dict[tuple[str, int], tuple[float, int, int]] = {}
    for number in range(rounds + 1):
        for vehicles in GROWTH if number else GROWTH[:1]:  # the first round compiles
            demand = routesim_demand(vehicles)
            for regime, (capacity, taught) in REGIMES.items():
                congestion = rs.congestion.BPR(capacity=capacity(vehicles))
                router = rs.FreeFlowRouter()
                router.feedback = "lessons" if taught else "none"
                simulator = rs.TrafficSimulator(network, demand, 300.0, congestion, noise=0.1 if taught else 0.0)
                spent = 0.0
                traffic = simulator.run(router)
                happened = np.argsort(np.concatenate((traffic.departure_s, traffic.arrival_s)), kind="stable")
                road = int(np.cumsum(np.where(happened < vehicles, 1, -1)).max())
                cost = spent / (traffic.n_events + vehicles)
                if number:
                    best[regime, vehicles] = (
                        min(cost, best.get((regime, vehicles), (cost,))[0]),
                        road,
                        traffic.n_events,
                    )
        print(f"round {number} of {rounds} done", file=sys.stderr, flush=True)
    print("| regime | vehicles | most on the road | entries | ns an event | growth | allowed | last step | allowed |")
    print("|---|---|---|---|---|---|---|---|---|")
    for regime in REGIMES:
        first, before = best[regime, GROWTH[0]], best[regime, GROWTH[0]]
        for vehicles in GROWTH:
            here = best[regime, vehicles]
            ratios = [
                f"{here[0] / other[0]:.2f} | {np.log(here[1]) / np.log(other[1]):.2f}" for other in (first, before)
            ]
            print(
                f"| {regime} | {vehicles:,} | {here[1]:,} | {here[2]:,} | {here[0] * 1e9:.0f} | {' | '.join(ratios)} |"
            )
            before = here


def uxsim_run(platoon: int) -> dict[str, float]:
    import uxsim

    world = uxsim.World(
        name="", deltan=platoon, tmax=2 * SECONDS, print_mode=0, save_mode=0, show_mode=0, random_seed=0, cpp=True,
        vehicle_logging_timestep_interval=-1,
    )  # fmt: skip
    for node in range(SIDE * SIDE):
        world.addNode(str(node), node // SIDE, node % SIDE)
    for tail, head in grid_links():
        world.addLink(
            f"{tail}-{head}", str(tail), str(head), length=LENGTH_M, free_flow_speed=SPEED_MS, jam_density=0.2
        )
    origins, destinations, _ = pairs_and_times(VEHICLES)
    keys, counts = np.unique(np.stack((origins, destinations)), axis=1, return_counts=True)
    for (origin, destination), count in zip(keys.T.tolist(), counts.tolist(), strict=True):
        world.adddemand(str(origin), str(destination), 0, SECONDS, volume=count)
    start = time.process_time()
    world.exec_simulation()
    seconds = time.process_time() - start
    # Cumulative arrivals count vehicles, platoons of any size.
    traversals = sum(float(link.cum_departure[-1]) for link in world.LINKS)
    return {"seconds": seconds, "traversals": traversals}


def path4gmns_run() -> dict[str, float]:
    import os

    import path4gmns

    origins, destinations, _ = pairs_and_times(VEHICLES)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        nodes = ["node_id,zone_id,x_coord,y_coord"]
        nodes += [f"{n + 1},{n + 1},{n // SIDE},{n % SIDE}" for n in range(SIDE * SIDE)]
        (here / "node.csv").write_text("\n".join(nodes) + "\n")
        head = "link_id,from_node_id,to_node_id,length,lanes,free_speed,capacity,link_type,allowed_uses"
        links = [head]
        links += [
            f"{k},{tail + 1},{head_ + 1},{LENGTH_M},1,{SPEED_MS * 3.6},{CAPACITY_VPH},1,auto"
            for k, (tail, head_) in enumerate(grid_links(), 1)
        ]
        (here / "link.csv").write_text("\n".join(links) + "\n")
        keys, counts = np.unique(np.stack((origins, destinations)), axis=1, return_counts=True)
        rows = ["o_zone_id,d_zone_id,volume"]
        rows += [f"{a + 1},{b + 1},{n}" for (a, b), n in zip(keys.T.tolist(), counts.tolist(), strict=True)]
        (here / "demand.csv").write_text("\n".join(rows) + "\n")
        os.chdir(here)
        network = path4gmns.read_network(length_unit="m", speed_unit="kph")
        path4gmns.read_demand(network)
        path4gmns.find_ue(network, 1, 0)
        start = time.process_time()
        path4gmns.perform_simple_simulation(network)
        seconds = time.process_time() - start
        # Positions count down to 0, the last link; those that are in it or done are taken to have driven it.
        agents = [agent for agent in network._base_assignment.get_agents() if agent.link_path]
        traversals = sum(len(agent.link_path) - agent.curr_link_pos for agent in agents)
    return {"seconds": seconds, "traversals": traversals}


CASES: dict[str, tuple[str, Callable[[], dict[str, float]]]] = {
    "ours": ("routesim, paths on empty roads", lambda: routesim_run(VEHICLES, "free flow")),
    "greedy": ("routesim, a search at present counts for every vehicle", lambda: routesim_run(VEHICLES, "greedy")),
    "uxsim-1": ("UXsim, C++ engine, single vehicles", lambda: uxsim_run(1)),
    "uxsim-5": ("UXsim, C++ engine, platoons of five", lambda: uxsim_run(5)),
    "path4gmns": ("Path4GMNS, point queues", path4gmns_run),
    "10k": ("routesim, 10,000 vehicles", lambda: routesim_run(10_000, "free flow")),
    "million": ("routesim, a million vehicles", lambda: routesim_run(1_000_000, "free flow")),
}


def measured(case: str) -> dict[str, float] | None:
    """Run one case in a process of its own."""
    package = case.partition("-")[0] if case.startswith(("uxsim", "path4gmns")) else "routesim"
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        print(f"{CASES[case][0]}: {package} is not installed, not measured")
        return None
    code = (
        "import json, resource, benchmarks.traffic as b;"
        f"r = b.CASES[{case!r}][1]();"
        "r['memory_mib'] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024;"
        "print('RESULT' + json.dumps(r))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    lines = [line for line in out.stdout.splitlines() if line.startswith("RESULT")]
    if not lines:
        print(f"{CASES[case][0]}: failed: {out.stderr.strip().splitlines()[-1:]}")
        return None
    result: dict[str, float] = json.loads(lines[-1][len("RESULT") :])
    result["rate"] = result["traversals"] / result["seconds"]
    print(
        f"{CASES[case][0]} ({package} {version}): {result['seconds']:.2f} s, {result['traversals']:,.0f} traversals, "
        f"{result['rate'] / 1000:,.0f} thousand/s, {result['memory_mib']:,.0f} MiB",
        flush=True,
    )
    return result


def main() -> None:
    if sys.argv[1:] == ["growth"]:
        growth()
        return
    ours = measured("ours")
    for case in [*sys.argv[1:]] or [name for name in CASES if name != "ours"]:
        other = measured(case)
        if ours and other and case in ("uxsim-1", "uxsim-5", "path4gmns"):
            ratio = ours["rate"] / other["rate"]
            print(f"  routesim is {ratio:.1f} times as fast, at cheaper physics")
            note(
                f"{VEHICLES:,} vehicles on a 30 x 30 grid, beside {CASES[case][0]}",
                f"{ours['rate'] / 1e6:.1f} million entries/s, {ours['memory_mib']:.0f} MiB",
                f"{ratio:.1f} x (cheaper physics; there {other['memory_mib']:,.0f} MiB)",
            )
        elif other and case == "million":
            note(
                "the same with a million vehicles",
                f"{other['rate'] / 1e6:.1f} million entries/s, {other['memory_mib']:.0f} MiB",
            )


if __name__ == "__main__":
    main()
