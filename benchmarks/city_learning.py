"""CARMAB-st on eight routes of every bundled city, and of Delft where its file is at hand, beside its rivals.

    python -m benchmarks.city_learning [--rounds 20000] [--seeds 5]

Window 4, travel time t0 (1 + n / 2), noise 10 % of t0, confidence 1. The ends are the first pair drawn from a fixed
seed between which eight penalty routes exist. A row shows the mean trip over the last tenth of the rounds, in seconds,
with the 95 % band over seeds, and how far it lies above the exact optimum.
"""

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import routesim as rs
from routesim.errors import FewerPathsWarning
from routesim.results.bands import half_width

LEARNERS: dict[str, rs.Learner] = {
    "CARMAB-st": rs.CARMAB(confidence=1, monotone=False),
    "greedy (informed)": rs.GreedyCongestion(),
    "UCB1": rs.UCB1(),
    "shortest path": rs.ShortestPath(),
}


def networks() -> Iterator[tuple[str, rs.RoadNetwork]]:
    for name in rs.list_cities():
        yield name, rs.load_city(name)
    shared = Path(os.environ.get("ROUTESIM_SHARED", Path(__file__).parents[2] / "shared"))
    delft = shared / "data" / "osm" / "delft.graphml"
    if delft.exists():
        yield "delft", rs.RoadNetwork.from_graphml(delft)
    else:
        print(f"delft: {delft} is not there, not measured")


def eight_routes(network: rs.RoadNetwork) -> rs.ActionSet:
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FewerPathsWarning)
        while True:
            origin, destination = (network.labels[node] for node in rng.choice(network.n_nodes, 2, replace=False))
            try:
                return rs.ActionSet.between(network, origin, destination, k=8)
            except FewerPathsWarning:
                continue


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print(f"| city | edges in the routes | best possible | {' | '.join(LEARNERS)} |")
    print("|---|---|---|" + "---|" * len(LEARNERS))
    for name, network in networks():
        actions = eight_routes(network)
        base = -network.free_flow_s[actions.edges]
        world = rs.RoundEnvironment.from_congestion(actions, base, rs.congestion.Linear(0.5), 4, noise_std=-0.1 * base)
        best = -rs.plan(actions, world.rewards, 4).value
        cells = []
        for learner in LEARNERS.values():
            runs = rs.replicate(world, learner, options.rounds, seed=0, replications=options.seeds)
            ends = np.array([-run.expected_rewards[-options.rounds // 10 :].mean() for run in runs])
            cells.append(f"{ends.mean():.1f} ± {half_width(ends):.1f} ({ends.mean() / best - 1:+.2%})")
        print(f"| {name} | {actions.n_edges} | {best:.1f} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
