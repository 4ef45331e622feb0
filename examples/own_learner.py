"""A learner and a congestion function of your own, compared with those that are there.

The learner estimates each (edge, count) and takes what looks best right now: it learns, but does not plan ahead.
"""

import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

import routesim as rs
from routesim.rounds.environment import Knowledge

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000


class Myopic:
    """The best path at the present counts, by averages seen so far; what was never seen is believed to be ideal."""

    knows: ClassVar[Knowledge] = "nothing"

    def start(self, task: rs.Task, rng: np.random.Generator) -> None:  # noqa: ARG002 - nothing is left to chance
        """Begin with no knowledge."""
        self.task = task
        self.visits = np.zeros((task.actions.n_edges, task.window + 1))
        self.sums = np.zeros_like(self.visits)

    def choose(self, observation: rs.Observation) -> int:
        """Return the path whose edges look best now."""
        now = np.arange(len(self.visits)), observation.counts
        seen = self.visits[now]
        believed = np.where(seen > 0, self.sums[now] / np.maximum(1, seen), self.task.high)
        return int(np.argmax(self.task.actions.incidence @ believed))

    def update(self, feedback: rs.Feedback) -> None:
        """Add what each edge of the path paid at its count."""
        self.visits[feedback.edges, feedback.counts] += 1
        self.sums[feedback.edges, feedback.counts] += feedback.rewards


@dataclass(frozen=True)
class Knee:
    """Free flow up to `capacity` uses in the window; beyond it, time grows with the square of the excess."""

    capacity: float
    steepness: float = 0.5

    def __call__(self, counts: rs.congestion.Counts) -> NDArray[np.float64]:
        """Return what the free-flow time is multiplied by at each count."""
        excess = np.maximum(0.0, np.asarray(counts, dtype=np.float64) - self.capacity)
        return 1.0 + self.steepness * excess * excess


city = rs.load_city("helsinki")
routes = rs.ActionSet.between(city, (24.9367, 60.1642), (24.9522, 60.1784), k=8)
seconds = city.free_flow_s[routes.edges]
learners: tuple[rs.Learner, ...] = (Myopic(), rs.CARMAB(confidence=1), rs.UCB1(), rs.GreedyCongestion())
curves: dict[str, rs.congestion.CongestionFunction] = {"a knee at 1 use": Knee(1), "BPR": rs.congestion.BPR(capacity=2)}
for name, congestion in curves.items():
    trips = rs.RoundEnvironment.from_congestion(routes, -seconds, congestion, window=4, noise_std=0.1 * seconds)
    print(name)
    for learner in learners:
        run = rs.run(trips, learner, rounds, seed=0)
        mean = -run.expected_rewards[-(rounds // 10) :].mean()
        print(f"  {type(learner).__name__:18} {mean:7.1f} s in the end, best possible {-run.comparator_value:.1f} s")
