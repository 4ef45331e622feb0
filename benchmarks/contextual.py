"""CARCB's rounds per second, planning included, beside LinUCB as a plain NumPy loop and as MABWiser's.

    python -m benchmarks.contextual

Ten arms, window 2, ten features: the paper's second contextual setting. Contexts are made beforehand for everyone.
The peers play LinUCB on the same contexts without congestion, a simpler task: no window, no planning.
"""

import importlib.metadata
import math

import numpy as np
from numpy.typing import NDArray

import routesim as rs
from benchmarks.side_by_side import best_seconds, note
from routesim.travellers.contexts import unit_vectors

ARMS, WINDOW, FEATURES = 10, 2, 10
ROUNDS = 200_000


def carcb(world: rs.ContextualEnvironment, comparator: rs.Comparator | None) -> rs.Run:
    return rs.run(world, rs.CARCB(), rounds=ROUNDS, seed=0, comparator=comparator)


def numpy_linucb(features: NDArray[np.float64], theta: NDArray[np.float64], noise: NDArray[np.float64]) -> None:
    """One theta for all arms; the inverse is updated by Sherman and Morrison's formula."""
    inverse, moment = np.eye(FEATURES), np.zeros(FEATURES)
    for now in range(len(noise)):
        seen = features[now]
        estimate = inverse @ moment
        arm = int(np.argmax(seen @ estimate + np.sqrt(((seen @ inverse) * seen).sum(axis=1))))
        chosen = seen[arm]
        reward = chosen @ theta + noise[now]
        shift = inverse @ chosen
        inverse -= np.outer(shift, shift) / (1.0 + chosen @ shift)
        moment += reward * chosen


def mabwiser_linucb(features: NDArray[np.float64], theta: NDArray[np.float64], noise: NDArray[np.float64]) -> None:
    """A theta for each arm, as MABWiser has it; it sees the features of the round's first arm."""
    from mabwiser.mab import MAB, LearningPolicy

    policy = MAB(arms=list(range(ARMS)), learning_policy=LearningPolicy.LinUCB(alpha=1.0), seed=0)
    policy.fit(decisions=list(range(ARMS)), rewards=[0.0] * ARMS, contexts=features[:ARMS, 0])
    for now in range(len(noise)):
        context = features[now, :1]
        arm = policy.predict(context)
        reward = float(features[now, arm] @ theta + noise[now])
        policy.partial_fit([arm], [reward], context)


def main() -> None:
    rng = np.random.default_rng(0)
    theta, features = unit_vectors(rng, (FEATURES,)), unit_vectors(rng, (ROUNDS, ARMS, FEATURES))
    noise = rng.normal(0.0, math.sqrt(0.1), ROUNDS)
    world = rs.ContextualEnvironment(
        rs.ActionSet.arms(ARMS), theta, features, rs.congestion.Inverse(), WINDOW, math.sqrt(0.1)
    )
    known = rs.compare(world, ROUNDS, seed=0)
    ours = ROUNDS / best_seconds(lambda: carcb(world, known))
    compared = ROUNDS / best_seconds(lambda: carcb(world, None))
    print(f"CARCB, K = {ARMS}, window {WINDOW}, d = {FEATURES}, {ROUNDS:,} rounds, planning included:")
    print(f"  {ours:,.0f} rounds/s; with the comparator of its regret planned and played too, {compared:,.0f}")
    theirs = 20_000 / best_seconds(lambda: numpy_linucb(features, theta, noise[:20_000]))
    print(f"LinUCB, a plain NumPy loop: {theirs:,.0f} rounds/s; CARCB is {ours / theirs:,.1f} times as fast")
    what = f"CARCB, K = {ARMS}, window {WINDOW}, d = {FEATURES}, {ROUNDS:,} rounds, planning included"
    against = f"{ours / theirs:.1f} x LinUCB as a NumPy loop"
    try:
        version = importlib.metadata.version("mabwiser")
    except importlib.metadata.PackageNotFoundError:
        print("mabwiser: not installed, not measured")
        note(what, f"{ours / 1e6:.2f} million rounds/s", against)
        return
    theirs = 2_000 / best_seconds(lambda: mabwiser_linucb(features, theta, noise[:2_000]))
    print(f"mabwiser {version}, LinUCB loop: {theirs:,.0f} rounds/s; CARCB is {ours / theirs:,.0f} times as fast")
    against += f", {ours / theirs:,.0f} x MABWiser {version}'s LinUCB loop"
    note(what, f"{ours / 1e6:.2f} million rounds/s", against)


if __name__ == "__main__":
    main()
