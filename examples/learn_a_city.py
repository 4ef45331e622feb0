"""CARMAB learns eight routes across Helsinki from nothing, beside what people would use otherwise."""

import sys

import routesim as rs

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000

city = rs.load_city("helsinki")
routes = rs.ActionSet.between(city, (24.9367, 60.1642), (24.9522, 60.1784), k=8, method="penalty")
seconds = city.free_flow_s[routes.edges]
trips = rs.RoundEnvironment.from_congestion(
    routes, -seconds, rs.congestion.Linear(0.5), window=4, noise_std=0.1 * seconds
)
learners: dict[str, rs.Learner] = {
    "CARMAB": rs.CARMAB(confidence=1),
    "UCB1": rs.UCB1(),
    "shortest path": rs.ShortestPath(),
    "greedy (informed)": rs.GreedyCongestion(),
}
runs = {name: rs.replicate(trips, learner, rounds, seed=0, replications=3) for name, learner in learners.items()}
best = -runs["CARMAB"][0].comparator_value
print(f"best possible: {best:.1f} s a trip")
for name, several in runs.items():
    last = rounds // 10
    mean = sum(-run.expected_rewards[-last:].mean() for run in several) / len(several)
    print(f"{name:18} {mean:7.1f} s in the end, {mean / best - 1:+.1%}")
rs.plot_regret(runs, "helsinki.png", title="eight routes across Helsinki")
rs.draw_map(runs, "helsinki.html", title="Eight routes across Helsinki")
print("the curves: helsinki.png, the map: helsinki.html")
