"""A morning of traffic: every vehicle simulated under four routers, beside user equilibrium and system optimum."""

import sys

import routesim as rs

vehicles = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000

city = rs.load_city("cologne")
demand = rs.load_demand("cologne", end_s=7200)
demand = demand.scaled(vehicles / demand.vehicles.sum())
simulator = rs.TrafficSimulator(city, demand, window_s=300, noise=0.1)
routers = {
    "quickest on empty roads": rs.FreeFlowRouter(),
    "quickest right now": rs.GreedyRouter(),
    "planned, dealt evenly": rs.PlannedRouter(),
    "CARMAB, learning": rs.CARMABRouter(),
}
for name, router in routers.items():
    traffic = simulator.run(router, seed=0)
    print(f"{name:24} {traffic.mean_travel_time_s:7.1f} s a trip, {traffic.n_events:,} edges driven")
for objective in ("user", "system"):
    flows = rs.assign(city, demand, objective)
    print(f"{'static ' + objective:24} {flows.mean_travel_time_s:7.1f} s a trip (gap {flows.relative_gap:.0e})")
