"""Routers in continuous time beside the static equilibrium and optimum: Sioux Falls, and the bundled cities.

    python -m benchmarks.continuous_time            both tables
    python -m benchmarks.continuous_time sioux      Sioux Falls at full demand (needs ../shared/data or ROUTESIM_SHARED)
    python -m benchmarks.continuous_time cities     CARMAB beside greedy under heavy demand, over seeds

Sioux Falls: 360,600 vehicles an hour for three hours, every vehicle simulated. The mean is over departures between 1:30
and 2:00, when the roads have filled; all their trips end before demand does at 3:00, but those of the free-flow
router, which take hours.

Cities: `load_demand` for three hours, travel times with noise of 10 %, the mean over departures between 2:00 and 2:30.
CARMAB, with the optimistic bins of `confidence=1`, knows nothing of congestion at the start; greedy knows the true
congestion function and the counts.
"""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import routesim as rs
from routesim.results.bands import half_width

HOUR = 3600.0
CITIES = ("helsinki", "cologne", "monaco", "gothenburg", "ingolstadt", "nauru")
SEEDS = 5


def sioux_falls(windows: tuple[float, ...] = (900.0, 300.0), seed: int = 0) -> list[dict[str, Any]]:
    """Return a row for each window and router: mean trip over the user equilibrium's and the system optimum's."""
    shared = Path(os.environ.get("ROUTESIM_SHARED", Path(__file__).parents[2] / "shared"))
    folder = shared / "data" / "tntp" / "SiouxFalls"
    if not folder.is_dir():
        raise SystemExit(f"no {folder}; set ROUTESIM_SHARED")
    network = rs.RoadNetwork.from_tntp(folder / "SiouxFalls_net.tntp")
    demand = rs.Demand.from_tntp_trips(folder / "SiouxFalls_trips.tntp", 0, 3 * HOUR).scaled(3)
    user, system = rs.assign(network, demand), rs.assign(network, demand, "system")
    routers = {
        "free-flow shortest path": rs.FreeFlowRouter(),
        "greedy: shortest at the present counts": rs.GreedyRouter(),
        "greedy with the planned (SO) tolls": rs.GreedyRouter(tolls=system.marginal_cost_s),
        "planned user equilibrium, dealt evenly": rs.PlannedRouter(user),
        "planned system optimum, dealt evenly": rs.PlannedRouter(system),
        "CARMAB-st, knowing no congestion at the start": rs.CARMABRouter(),
        "CARMAB-st with optimistic bins (`confidence=1`)": rs.CARMABRouter(confidence=1),
    }
    rows = []
    for window_s in windows:
        for name, router in routers.items():
            traffic = rs.TrafficSimulator(network, demand, window_s).run(router, seed)
            times = traffic.measured(1.5 * HOUR, 2 * HOUR)
            late = traffic.arrival_s[(traffic.departure_s >= 1.5 * HOUR) & (traffic.departure_s < 2 * HOUR)] > 3 * HOUR
            rows.append(
                {
                    "window_s": window_s,
                    "router": name,
                    "mean_s": float(times.mean()),
                    "per_user": float(times.mean() / user.mean_travel_time_s),
                    "per_system": float(times.mean() / system.mean_travel_time_s),
                    "late": float(late.mean()),
                    "vehicles": traffic.n_vehicles,
                }
            )
    return rows


def city(name: str, seeds: int = SEEDS) -> dict[str, Any]:
    """Return the mean trips of greedy, planned and CARMAB, one for each seed, over the system optimum's."""
    network, demand = rs.load_city(name), rs.load_demand(name, end_s=3 * HOUR)
    system = rs.assign(network, demand, "system", relative_gap=1e-3)
    simulator = rs.TrafficSimulator(network, demand, 300.0, noise=0.1)
    routers = {
        "greedy": rs.GreedyRouter(),
        "planned": rs.PlannedRouter(system),
        "carmab": rs.CARMABRouter(confidence=1),
    }
    means = {
        kind: np.array(
            [
                simulator.run(router, seed).measured(2 * HOUR, 2.5 * HOUR).mean() / system.mean_travel_time_s
                for seed in range(seeds)
            ]
        )
        for kind, router in routers.items()
    }
    return {"city": name, "vehicles": demand.expected_vehicles, "system_s": system.mean_travel_time_s, **means}


def main() -> None:
    which = sys.argv[1] if len(sys.argv) > 1 else "both"
    if which in ("both", "sioux"):
        print("| window | router | mean trip | / UE | / SO |\n|---|---|---|---|---|")
        for row in sioux_falls():
            print(
                f"| {row['window_s']:.0f} s | {row['router']} | {row['mean_s']:,.0f} s | {row['per_user']:.3f} | "
                f"{row['per_system']:.3f} |",
                flush=True,
            )
    if which in ("both", "cities"):
        print("| city | vehicles in 3 h | SO, mean trip | greedy / SO | CARMAB / SO | CARMAB - greedy | planned / SO |")
        print("|---|---|---|---|---|---|---|")
        for name in CITIES:
            row = city(name)
            cells = [
                f"{values.mean():.3f} ± {half_width(values):.3f}"
                for values in (row["greedy"], row["carmab"], row["carmab"] - row["greedy"], row["planned"])
            ]
            print(f"| {name} | {row['vehicles']:,.0f} | {row['system_s']:.0f} s | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
