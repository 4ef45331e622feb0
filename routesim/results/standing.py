"""RoadQueues: vehicles on the roads, in their queues and waiting to enter, and how far these reach, in time."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints, Ints32
from routesim.errors import InputError
from routesim.storage.reading import float_column, whole_column
from routesim.traffic.result import Traffic

if TYPE_CHECKING:
    import pyarrow as pa

JAM_DENSITY_PER_KM = 140.0
"""Vehicles that stand on a kilometre of one lane, where the physics does not say."""

COLUMNS = {"on_road": "on", "in_queue": "queued", "waiting": "outside", "queue_m": "reach_m"}
"""Columns of result files, and what holds them here."""

_WAVE_KPH = 18.0  # of a physics that does not say
_LOOSEST = 0.25  # a queue has at least so much of the density of a jam beyond that of free traffic
_MOST_VEHICLES = 1e8
_MOST_DENSITY = 1e6


class RoadQueues(NamedTuple):
    """Vehicles by step and edge: `on` the road, `queued` of these at its end, and `outside`, waiting to enter.

    `reach_m` is how far the queue reaches back from the end of the road, 0 where its length is not known. All
    are means over the moments of a step at which they were counted, and over replications. `jam_density_per_km` is the
    number of vehicles that stand on a kilometre of one lane of a full road.
    """

    on: Floats
    queued: Floats
    outside: Floats
    reach_m: Floats
    jam_density_per_km: float = JAM_DENSITY_PER_KM

    @classmethod
    def of_rows(
        cls, rows: Sequence[tuple[Ints, Floats]], steps: int, edges: NDArray[np.int32], jam_density_per_km: float
    ) -> Self:
        """Return the mean over replications, each with rows (step, edge) and their vehicles."""
        total = np.zeros((len(COLUMNS), steps, len(edges)))
        for at, vehicles in rows:
            total[:, at[:, 0], np.searchsorted(edges, at[:, 1])] += vehicles.T
        on, queued, outside, reach_m = total / len(rows)
        return cls(on, queued, outside, reach_m, jam_density_per_km)

    @classmethod
    def read(cls, table: "pa.Table", steps: int, edges: NDArray[np.int32], jam_density_per_km: float) -> Self:
        """Return what a table with columns step, edge and those of `COLUMNS` holds."""
        at, used = whole_column(table, "step", steps - 1), whole_column(table, "edge", (1 << 31) - 1)
        if not np.isin(used, edges).all():
            raise InputError("the table of queues has edges that the record does not list")
        parts = np.zeros((len(COLUMNS), steps, len(edges)))
        for part, name in zip(parts, COLUMNS, strict=True):
            part[at, np.searchsorted(edges, used)] = float_column(table, name)
        on, queued, outside, reach_m = parts
        return cls(on, queued, outside, reach_m, jam_density_per_km)

    def check(self, label: str, steps: int, edges: int) -> None:
        """Refuse what no road can hold."""
        for name in COLUMNS.values():
            values = getattr(self, name)
            if values.shape != (steps, edges):
                raise InputError(f"{name} of {label} needs shape {(steps, edges)}, got {values.shape}")
            if not ((values >= 0) & (values <= _MOST_VEHICLES)).all():
                raise InputError(f"{name} of {label} must lie between 0 and {_MOST_VEHICLES:g} on every road")
        if not (self.queued <= self.on + 1e-6).all():
            raise InputError(f"{label} has more vehicles in the queue of a road than on it")
        if not 0 < self.jam_density_per_km <= _MOST_DENSITY:
            raise InputError(f"jam_density_per_km of {label} must be above 0, got {self.jam_density_per_km}")

    def present(self) -> tuple[Ints, Ints]:
        """Return steps and places of edges at which there is any vehicle, by step."""
        step, place = np.nonzero(self.on + self.outside)
        return step.astype(np.int64), place.astype(np.int64)


def thinned(
    traffic: Traffic, bins: range, ended: int, steps_of: Callable[[NDArray[Any]], Ints]
) -> tuple[Ints, Floats] | tuple[None, None]:
    """Return rows (step, edge) and the means of the `COLUMNS` at the ends of their bins; None without queues.

    `bins` are all bins of the run, of which those before `ended` were counted at their ends, and `steps_of` gives the
    step of each. A run that was stopped within a bin that is a step of its own has there what there was when the bin
    began.
    """
    if traffic.standing is None:
        return None, None
    taken = np.column_stack((traffic.standing.astype(np.float64), reach_m(traffic, traffic.standing)))
    steps = steps_of(np.array(bins))
    counted = np.bincount(steps[: max(0, ended - bins.start)], minlength=int(steps[-1]) + 1)
    if bins.start < ended < bins.stop and counted[steps[ended - bins.start]] == 0:
        begun = taken[taken[:, 0] == ended - 1]
        begun[:, 0] = ended
        taken = np.concatenate((taken, begun))
    keys = np.column_stack((steps_of(taken[:, 0]), taken[:, 1].astype(np.int64)))
    at, place = np.unique(keys, axis=0, return_inverse=True)
    sums = [np.bincount(place.ravel(), taken[:, column], len(at)) for column in range(2, 6)]
    moments = np.maximum(counted, 1)[at[:, 0]]
    return at.astype(np.int64), np.column_stack(sums).astype(np.float64) / moments[:, np.newaxis]


def reach_m(traffic: Traffic, rows: Ints32) -> Floats:
    """Return how far back from the ends of roads their queues reach, for each row of `Traffic.standing`.

    Vehicles in a queue are those that would have left by now if they had not been held back. By the triangular diagram
    a queue that lets `outflow` pass has the density jam - outflow / wave, and without it there would be inflow / speed:
    the difference, all along the queue, is the vehicles in it.
    """
    network, edges, on = traffic.network, rows[:, 1].astype(np.int64), rows[:, 2].astype(np.float64)
    length, free_s = np.nan_to_num(network.length_m[edges]), network.free_flow_s[edges]
    jam = network.lanes[edges] * (traffic.jam_density_per_km or JAM_DENSITY_PER_KM) / 1000.0
    wave_mps = (traffic.wave_kph or _WAVE_KPH) / 3.6

    def found(keys: Ints, values: NDArray[Any], wanted: Ints) -> Floats:
        """Return the values of the wanted keys, 0 where there is none."""
        order = np.argsort(keys, kind="stable")
        place = np.minimum(np.searchsorted(keys[order], wanted), max(len(keys) - 1, 0))
        if not len(keys):
            return np.zeros(len(wanted))
        return np.where(keys[order][place] == wanted, values[order][place], 0).astype(np.float64)

    def key(time_bin: NDArray[Any], edge: NDArray[Any]) -> Ints:
        return np.asarray(time_bin.astype(np.int64) * network.n_edges + edge, dtype=np.int64)

    mine = key(rows[:, 0], edges)
    entered = found(key(traffic.loads[:, 0], traffic.loads[:, 1]), traffic.loads[:, 2], mine)
    left = np.maximum(entered - on + found(mine, on, mine - network.n_edges), 0.0)
    inflow, outflow = entered / traffic.bin_s, left / traffic.bin_s
    with np.errstate(divide="ignore", invalid="ignore"):
        free = np.where(length > 0, inflow * free_s / length, 0.0)
    denser = np.maximum(jam - outflow / wave_mps - free, _LOOSEST * jam)
    return np.asarray(np.minimum(rows[:, 3] / denser, length), dtype=np.float64)
