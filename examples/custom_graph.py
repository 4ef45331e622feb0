"""A graph of your own in ten lines: roads in, a learner on all its paths, and how far it is from the best possible."""

import sys

import networkx as nx

import routesim as rs

roads = nx.DiGraph()
for a, b, seconds in ("home", "bridge", 60), ("bridge", "work", 90), ("home", "ferry", 80), ("ferry", "work", 80):
    roads.add_edge(a, b, free_flow_s=seconds)
network = rs.RoadNetwork.from_networkx(roads)
paths = rs.ActionSet.between(network, "home", "work", method="all")
seconds_of = network.free_flow_s[paths.edges]
trips = rs.RoundEnvironment.from_congestion(paths, -seconds_of, rs.congestion.Linear(0.5), window=4, noise_std=5.0)
run = rs.run(trips, rs.CARMAB(confidence=1), rounds=int(sys.argv[1]) if len(sys.argv) > 1 else 5_000, seed=0)
in_the_end = -run.expected_rewards[-run.rounds // 10 :].mean()
print(f"{in_the_end:.1f} s a trip in the end; the best possible: {-run.comparator_value:.1f} s")
