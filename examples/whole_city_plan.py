"""A plan over every path of a whole city: what it earns, what nobody can beat, and the routes it takes in turn."""

import sys

import routesim as rs

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 500

city = rs.load_city("gothenburg")
every_path = rs.ActionSet.on_graph(city, (11.94, 57.72), (12.005, 57.685))
trips = rs.RoundEnvironment.from_congestion(
    every_path, -city.free_flow_s, rs.congestion.BPR(capacity=2), window=8, noise_std=0.0
)
plan = rs.plan(every_path, trips.rewards, window=8)
print(f"{city.n_edges:,} edges; planned by: {plan.method}")
print(f"the plan: {-plan.value:.1f} s a trip; nobody below {-plan.bound:.1f} s; gap {plan.gap / -plan.bound:.2%}")

history: list[tuple[int, ...]] = []
for _ in range(min(rounds, 24)):
    history.append(plan.policy(history[-8:]))
print(f"{len(set(history))} different routes in the first {len(history)} trips")

best = rs.compare(trips, rounds)
informed: dict[str, rs.Learner] = {"the plan": rs.Oracle(), "greedy": rs.GreedyCongestion()}
for name, learner in {**informed, "shortest": rs.ShortestPath()}.items():
    run = rs.run(trips, learner, rounds, seed=0, comparator=best)
    print(f"{name:10} {-run.expected_rewards.mean():8.1f} s a trip over {rounds} trips")
