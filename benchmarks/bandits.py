"""CARMAB's rounds per second, planning included, beside the bandit loops of river and MABWiser.

    python -m benchmarks.bandits

Peers come with `pip install routesim[bench]`; one that is missing is said to be. They play UCB1 on a plain bandit,
a simpler task: no window, no planning.
"""

import importlib.metadata
import math

import numpy as np

import routesim as rs
from benchmarks.side_by_side import best_seconds, note

MEANS = (0.2, 0.4, 0.5, 0.7)


def carmab(rounds: int) -> None:
    world = rs.RoundEnvironment.from_congestion(
        rs.ActionSet.arms(4), MEANS, rs.congestion.Inverse(), window=4, noise_std=math.sqrt(0.1)
    )
    rs.run(world, rs.CARMAB(confidence=10, monotone=False), rounds=rounds, seed=0)


def river_ucb(rounds: int) -> None:
    from river import bandit

    policy = bandit.UCB(delta=1, seed=0)
    paid = (np.random.default_rng(0).random((rounds, 4)) < MEANS).astype(float).tolist()
    arms = [0, 1, 2, 3]
    for row in paid:
        arm = policy.pull(arms)
        policy.update(arm, row[arm])


def mabwiser_ucb(rounds: int) -> None:
    from mabwiser.mab import MAB, LearningPolicy

    paid = (np.random.default_rng(0).random((rounds, 4)) < MEANS).astype(float).tolist()
    policy = MAB(arms=[0, 1, 2, 3], learning_policy=LearningPolicy.UCB1(alpha=1.0), seed=0)
    policy.fit(decisions=[0, 1, 2, 3], rewards=paid[0])
    for row in paid:
        arm = policy.predict()
        policy.partial_fit([arm], [row[arm]])


def main() -> None:
    ours = 1_000_000 / best_seconds(lambda: carmab(1_000_000))
    print(f"CARMAB, K = 4, window 4, 10^6 rounds, planning included: {ours:,.0f} rounds/s")
    against: list[str] = []
    for package, loop, rounds in (("river", river_ucb, 100_000), ("mabwiser", mabwiser_ucb, 5_000)):
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            print(f"{package}: not installed, not measured")
            continue
        theirs = rounds / best_seconds(lambda loop=loop, rounds=rounds: loop(rounds))  # type: ignore[misc]
        print(f"{package} {version}, UCB loop: {theirs:,.0f} rounds/s; CARMAB is {ours / theirs:,.0f} times as fast")
        against.append(f"{ours / theirs:,.0f} x {package} {version}'s UCB1 loop")
    note(
        "CARMAB, K = 4, window 4, 10⁶ rounds, planning included",
        f"{ours / 1e6:.1f} million rounds/s",
        ", ".join(against),
    )


if __name__ == "__main__":
    main()
