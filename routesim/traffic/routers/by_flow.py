"""What is known by counts, said by flows: vehicles an hour, on which plans are made.

A count of the window's entries is a flow times the window. A count of the vehicles on a road is by Little's law a flow
times the travel time: it goes on to grow where the flow does not, in the queue of a road at its capacity.
"""

import numpy as np

from routesim.arrays import Floats, Ints
from routesim.assignment.prices import Prices
from routesim.kernels import kernel
from routesim.planning.hull import hull_corners
from routesim.traffic.protocol import TrafficTask

_RISE = 0.01  # the least share by which a larger count stands for a larger flow, so that a full road has a steep price
_LEAST_S = 1e-3  # of the time on a road without length
_GRID = np.concatenate(([0.0], 10.0 * 2.0 ** (np.arange(112) / 8)))  # vehicles an hour


def flows_at(task: TrafficTask, counts: Floats | Ints, times: Floats) -> Floats:
    """Return the flows that rising counts stand for, at times by (edge, count): a row for all edges, or one each."""
    if task.lessons.counted == "entries":
        return np.asarray(counts * (3600.0 / task.window_s), dtype=np.float64)[np.newaxis, :]
    return _rising(counts * 3600.0 / np.maximum(times, _LEAST_S))


def totals_at(task: TrafficTask, counts: Floats | Ints, times: Floats) -> Floats:
    """Return the vehicle-seconds that are spent in an hour on each edge at each count."""
    if task.lessons.counted == "entries":
        return np.asarray(flows_at(task, counts, times) * times)
    # Of n vehicles on a road each spends 3,600 seconds in an hour, however many come and go.
    return np.broadcast_to(3600.0 * counts, times.shape)


def between(flows: Floats) -> Floats:
    """Return 0 and the middles between flows, at which differences between them are prices."""
    return np.column_stack((np.zeros(len(flows)), (flows[:, 1:] + flows[:, :-1]) / 2))


def priced(flows: Floats, values: Floats) -> Prices:
    """Return prices that have these values at these flows, which begin with 0: a row for all edges, or one each.

    Rows that differ are read at common flows.
    """
    none = np.empty(0)
    if len(flows) == 1:
        return Prices(none, none, none, none, flows[0], values)
    return Prices(none, none, none, none, _GRID, read_at(_GRID, flows, values))


@kernel
def _rising(flows: Floats) -> Floats:
    """Return the flows, each at least a little larger than the one before."""
    for edge in range(len(flows)):
        for k in range(1, flows.shape[1]):
            flows[edge, k] = max(flows[edge, k], (1.0 + _RISE) * flows[edge, k - 1])
    return flows


@kernel
def read_at(grid: Floats, flows: Floats, values: Floats) -> Floats:
    """Return the values of each edge at common flows, on straight lines between its own; flat beyond the last."""
    out = np.empty((len(values), len(grid)))
    for edge in range(len(values)):
        out[edge] = np.interp(grid, flows[edge], values[edge])
    return out


@kernel
def convex_slopes(flows: Floats, totals: Floats, last: Ints, least: Floats) -> Floats:
    """Return, for each edge and step between flows, the slope of the greatest convex function below the totals.

    Only the flows up to `last` count, and no slope is below `least`; later steps have the slope of the last one.
    There is one row of flows for all edges, or one each.
    """
    slopes = np.empty((len(totals), flows.shape[1] - 1))
    corners = np.empty(flows.shape[1], dtype=np.int64)
    for edge in range(len(totals)):
        mine = flows[edge if len(flows) > 1 else 0]
        size = hull_corners(mine, -totals[edge, : last[edge] + 1], corners)
        slope = least[edge]
        for piece in range(1, size):
            one, two = corners[piece - 1], corners[piece]
            slope = max(slope, (totals[edge, two] - totals[edge, one]) / (mine[two] - mine[one]))
            slopes[edge, one:two] = slope
        slopes[edge, last[edge] :] = slope
    return slopes
