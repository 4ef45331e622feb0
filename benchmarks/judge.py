"""What the engines say about the same routers on the same trips, SUMO being the judge: `python -m benchmarks.judge`.

    python -m benchmarks.judge run [--out FILE] [--cities ...] [--times ...] [--engines ...] [--routers ...] [--seeds 3]
    python -m benchmarks.judge table [--out FILE]
    python -m benchmarks.judge cost [--vehicles 5000]

`run` adds a line of JSON to FILE for each run that is not there yet; `table` prints what they say. Cologne and
Ingolstadt are the nets of RESCO with their real signals, from the wheel of sumo-rl 1.4.5 (`--wheel`, else fetched by
pip); Helsinki is the bundled one, whose signals have default programmes in every engine. Everybody drives between
synthetic zones, at so many times 84 vehicle-kilometres an hour for each kilometre of lane, for an hour; a run goes on
for another one, and a trip that has not ended then counts until then. The trips of a city at a level are drawn once,
from seed 0, and the seeds are those of routers and of SUMO: what differs between seeds is their chance alone.

Where the seeds of SUMO differ by more than 5 % for a router, there is no verdict on it. The order of two routers
counts where they differ by more than 2 % in SUMO meso. `cost` compares a run in closed loop with plain `sumo` that is
given the routes, in CPU seconds of all processes. Nothing was chosen on these instances.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from collections import defaultdict
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import routesim as rs
from routesim.assignment.assignment import load_cheapest
from routesim.demand.cities import synthetic_zones
from routesim.roads.importers.sumo_export import find_netconvert
from routesim.traffic.engines.base import Physics
from routesim.traffic.engines.sumo_process import net_of
from routesim.traffic.protocol import Router
from routesim.traffic.simulator import Simulation

RESCO = {"cologne": "cologne8/cologne8.net.xml", "ingolstadt": "ingolstadt21/ingolstadt21.net.xml"}
CITIES = ("cologne", "ingolstadt", "helsinki")
ROUTERS = {
    "free flow": rs.FreeFlowRouter,
    "greedy": rs.GreedyRouter,
    "planned": rs.PlannedRouter,
    "CARMAB-st": rs.CARMABRouter,
}
ENGINES = ("window", "queue", "meso", "micro")
LEVELS = (0.5, 1.0, 2.0, 3.0)
HOUR_S, ORDINARY = 3600.0, 84.0
SAME, APART = 0.05, 0.02
KEPT = Path(__file__).parent / "judge.jsonl"


def physics(engine: str) -> Physics | str:
    """The physics that a name of the table stands for."""
    return rs.physics.Sumo(engine) if engine in ("meso", "micro") else engine  # type: ignore[arg-type]


@cache
def roads(city: str, wheel: Path | None) -> rs.RoadNetwork:
    """The roads of a city."""
    if city not in RESCO:
        return rs.load_city(city)
    with tempfile.TemporaryDirectory() as folder:
        if wheel is None:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, "sumo-rl==1.4.5"]
            subprocess.run(command, check=True)
            wheel = next(Path(folder).glob("*.whl"))
        with zipfile.ZipFile(wheel) as packed:
            file = Path(folder) / f"{city}.net.xml"
            file.write_bytes(packed.read(f"sumo_rl/nets/RESCO/{RESCO[city]}"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of programmes that are not fixed; they are read as if they were
            return rs.RoadNetwork.from_sumo(file, largest_component=True)


@cache
def trips(city: str, times: float, wheel: Path | None, seed: int = 0) -> rs.Demand:
    """An hour of trips at so many times ordinary demand."""
    network = roads(city, wheel)
    zones, mean_s = synthetic_zones(network)
    rough = rs.Demand.from_zones(network, zones, 1000.0, decay_s=mean_s / 2)
    length = np.nan_to_num(network.length_m)
    driven = float(load_cheapest(network, rough.per_hour()) @ length)
    demand = rough.scaled(times * ORDINARY * float(network.lanes @ length) / driven)
    drawn = demand.draw(np.random.default_rng(seed))
    ends = [[demand.places[place] for place in some.tolist()] for some in (drawn.origins, drawn.destinations)]
    return rs.Demand.from_trips({"origin": ends[0], "destination": ends[1], "departure_s": drawn.departure_s})


def mean_trip(traffic: rs.Traffic) -> float:
    """Mean seconds of a trip; one that did not end counts until the end of the run."""
    late = np.where(traffic.arrived, traffic.travel_time_s, traffic.until_s - traffic.departure_s)
    return float(late.mean())


def run_all(options: argparse.Namespace) -> None:
    """Run what is not in the file yet."""
    known = {tuple(row[name] for name in ("city", "times", "engine", "router", "seed")) for row in read(options.out)}
    for engine in options.engines:
        for city in options.cities:
            for times in options.times:
                for router in options.routers:
                    for seed in range(1, options.seeds + 1):
                        if (city, times, engine, router, seed) not in known:
                            row = one_run(city, times, engine, router, seed, options.wheel)
                            with options.out.open("a", encoding="utf-8") as file:
                                file.write(json.dumps(row) + "\n")
                            print(json.dumps(row), flush=True)


def one_run(city: str, times: float, engine: str, router: str, seed: int, wheel: Path | None) -> dict[str, Any]:
    """Return the row of one run."""
    demand = trips(city, times, wheel)
    simulator = rs.TrafficSimulator(roads(city, wheel), demand, physics=physics(engine))
    began = cpu_s()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traffic = simulator.run(ROUTERS[router](), seed, until_s=2 * HOUR_S)
    return {
        "city": city,
        "times": times,
        "engine": engine,
        "router": router,
        "seed": seed,
        "vehicles": traffic.n_vehicles,
        "mean_s": round(mean_trip(traffic), 2),
        "arrived": round(float(traffic.arrived.mean()), 4),
        "forced": traffic.forced_moves,
        "cpu_s": round(cpu_s() - began, 2),
    }


def read(file: Path) -> list[dict[str, Any]]:
    """Return the rows that are known."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def spread(values: list[float]) -> float:
    """Return the distance between the largest and the smallest, relative to their mean."""
    return (max(values) - min(values)) / float(np.mean(values))


def tau(judge: dict[str, float], engine: dict[str, float]) -> tuple[float, int]:
    """Return Kendall's tau over the pairs of routers that the judge tells apart, and how many these are."""
    signs = [
        float(np.sign((judge[one] - judge[two]) * (engine[one] - engine[two])))
        for one, two in combinations(judge, 2)
        if abs(judge[one] - judge[two]) > APART * min(judge[one], judge[two])
    ]
    return (float(np.mean(signs)) if signs else float("nan")), len(signs)


def table(file: Path) -> None:
    """Print the tables of docs/concepts/judge.md."""
    found: dict[tuple[str, float, str], dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in read(file):
        found[row["city"], row["times"], row["engine"]][row["router"]].append(row)
    cells = sorted({key[:2] for key in found}, key=lambda cell: (CITIES.index(cell[0]), cell[1]))
    print("| city, times ordinary, vehicles | engine | " + " | ".join(ROUTERS) + " | arrived | forced |")
    print("|---|---|" + "---|" * len(ROUTERS) + "---|---|")
    for city, times in cells:
        for engine in ENGINES:
            rows = found.get((city, times, engine))
            if rows:
                every = [row for some in rows.values() for row in some]
                means = [_said([row["mean_s"] for row in rows.get(router, [])]) for router in ROUTERS]
                arrived = min(row["arrived"] for row in every)
                forced = max(row["forced"] for row in every)
                where = f"{city}, {times:g}, {every[0]['vehicles']:,}"
                print(f"| {where} | {engine} | {' | '.join(means)} | {arrived:.0%} | {forced} |")
    print(
        "\n| city, times | "
        + " | ".join(f"{e}: error, tau" for e in ("window", "queue", "micro"))
        + " | best in meso |"
    )
    print("|---|---|---|---|---|")
    for city, times in cells:
        _verdict(city, times, found)


def _said(values: list[float]) -> str:
    if not values:
        return ""
    half = (max(values) - min(values)) / 2
    return f"{np.mean(values):.0f}" + (f" ± {half:.0f}" if half >= 0.5 else "")


def _verdict(city: str, times: float, found: Any) -> None:
    judge_rows = found.get((city, times, "meso"), {})
    sure = {
        router: [row["mean_s"] for row in rows]
        for router, rows in judge_rows.items()
        if len(rows) > 1 and spread([row["mean_s"] for row in rows]) <= SAME
    }
    judge = {router: float(np.mean(values)) for router, values in sure.items()}
    if not judge:
        print(f"| {city}, {times:g} | no verdict | no verdict | no verdict | |")
        return
    said = []
    for engine in ("window", "queue", "micro"):
        rows = found.get((city, times, engine), {})
        means = {router: float(np.mean([row["mean_s"] for row in rows[router]])) for router in judge if router in rows}
        if not means:
            said.append("not run")
            continue
        worst = max((means[router] / judge[router] - 1 for router in means), key=abs)
        order, pairs = tau({router: judge[router] for router in means}, means)
        said.append(f"{worst:+.0%}, {order:.2f} ({pairs})" if pairs else f"{worst:+.0%}, none apart")
    best = min(judge, key=lambda router: judge[router])
    missing = [router for router in judge_rows if router not in judge]
    note = best + (f"; no verdict on {', '.join(missing)}" if missing else "")
    print(f"| {city}, {times:g} | {' | '.join(said)} | {note} |")


def cpu_s() -> float:
    """Return the CPU seconds of this process and of all that it started and that have ended."""
    child = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + child.ru_utime + child.ru_stime


def cost(options: argparse.Namespace) -> None:
    """Print what the closed loop costs over plain `sumo` with the same routes."""
    network = roads("ingolstadt", options.wheel)
    demand = trips("ingolstadt", 1.0, options.wheel)
    asked: dict[str, Router] = {
        "planned, asked once": rs.PlannedRouter(),
        "CARMAB-st, every minute": rs.CARMABRouter(interval_s=60.0),
    }
    asked["greedy, by the speeds of the last 10 s"] = rs.GreedyRouter()
    print("| mode | router | vehicles | closed loop, CPU s | plain sumo, CPU s | ratio | same arrivals |")
    print("|---|---|---|---|---|---|---|")
    for mode in options.engines:
        simulator = rs.TrafficSimulator(network, demand, physics=physics(mode))
        for name, router in asked.items():
            simulator.run(router, until_s=60.0)  # compiled and converted
            loops, plains, same = [], [], 0.0
            for seed in range(1, options.seeds + 1):
                drive, began = Simulation(simulator, router, seed, None), cpu_s()
                traffic = drive.run()
                loops.append(cpu_s() - began)
                arrival_s, took = plain(traffic, physics(mode), drive.setting.noise_seed)
                plains.append(took)
                same = float((arrival_s == traffic.arrival_s).mean())
            ratio = min(loops) / min(plains)
            cells = f"{traffic.n_vehicles:,} | {min(loops):.2f} | {min(plains):.2f} | {ratio:.2f} | {same:.0%}"
            print(f"| {mode} | {name} | {cells} |", flush=True)


def plain(traffic: rs.Traffic, sumo: Any, seed: Any) -> tuple[Any, float]:
    """Run SUMO by itself with the routes of some traffic; return the arrivals and CPU seconds."""
    from xml.etree import ElementTree

    program, environment = find_netconvert()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "net.xml").write_bytes(zlib.decompress(net_of(traffic.network).text))
        vehicles = "".join(
            f'<vehicle id="{i}" type="car" depart="{departs:.3f}" departLane="best" departSpeed="max">'
            f'<route edges="{" ".join(map(str, traffic.path(i).tolist()))}"/></vehicle>'
            for i, departs in enumerate(traffic.departure_s.tolist())
        )
        (folder / "trips.xml").write_text(f'<routes><vType id="car"/>{vehicles}</routes>', encoding="utf-8")
        files = ["-n", "net.xml", "-r", "trips.xml", "--tripinfo-output", "out.xml"]
        command = [str(Path(program).with_name("sumo")), *files, *sumo.options(seed)]
        began = cpu_s()
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        took = cpu_s() - began
        arrival_s = np.full(traffic.n_vehicles, np.nan)
        for trip in ElementTree.parse(folder / "out.xml").getroot():  # noqa: S314 - SUMO wrote it just now
            arrival_s[int(trip.attrib["id"])] = float(trip.attrib["arrival"])
    return arrival_s, took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=("run", "table", "cost"))
    parser.add_argument("--out", type=Path, default=KEPT)
    parser.add_argument("--cities", nargs="+", default=CITIES, choices=CITIES)
    parser.add_argument("--times", nargs="+", type=float, default=LEVELS)
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES)
    parser.add_argument("--routers", nargs="+", default=tuple(ROUTERS), choices=tuple(ROUTERS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--wheel", type=Path)
    options = parser.parse_args()
    if options.what == "run":
        run_all(options)
    elif options.what == "table":
        table(options.out)
    else:
        cost(options)


if __name__ == "__main__":
    main()
