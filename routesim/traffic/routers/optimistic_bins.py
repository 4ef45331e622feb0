"""The shortest travel times that lessons allow, by (edge, bin of counts): the paper's optimism in continuous time."""

import numpy as np

from routesim.arrays import Floats
from routesim.traffic.protocol import TrafficTask


def bin_middles(task: TrafficTask) -> Floats:
    """Return the middle of each bin of counts; of the last, which has no end, its start."""
    starts = task.lessons.bin_starts
    return np.append((starts[:-1] + starts[1:] - 1) / 2, starts[-1])


def optimistic_times(task: TrafficTask, confidence: float, delta: float, plans: int) -> Floats:
    """Return the shortest travel time believed possible by (edge, bin), which never falls with the count."""
    lessons, free_flow = task.lessons, task.network.free_flow_s[:, np.newaxis]
    uses = np.maximum(1, lessons.visits)
    mean = lessons.sums / uses
    spread = np.sqrt(np.maximum(0.0, lessons.squares / uses - mean**2))
    pairs = lessons.visits.size
    radius = confidence * spread * np.sqrt(np.log(pairs * plans / delta) / uses)
    lower = np.where(lessons.visits > 0, np.maximum(mean - radius, free_flow), free_flow)
    # A road is no quicker at a larger count, so what is known of a count bounds all larger ones.
    return np.asarray(np.maximum.accumulate(lower, axis=1), dtype=np.float64)
