"""TrafficRun: one run of the simulator, thinned to steps of time and the most driven routes; save and load."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints
from routesim.results.link_tables import load_tables, save_tables
from routesim.results.run import Scalar
from routesim.results.standing import thinned
from routesim.rounds.trace import PERCENTILES
from routesim.storage import reading
from routesim.storage.folders import write_json
from routesim.traffic.engines.window import Window
from routesim.traffic.result import Traffic
from routesim.traffic.tables import path_numbers

if TYPE_CHECKING:
    import pandas as pd

MOST_STEPS = 96
MOST_ROUTES = 60

COUNTS = ("vehicles", "arrived", "driving", "not_departed", "edge_entries", "measured_trips", "measured_unfinished")
"""What every summary counts."""

_TIMES = ("start_s", "bin_s", "end_s")
_ARRAYS = (
    "departures",
    "arrived",
    "totals",
    "loads",
    "load_seconds",
    "route_ends",
    "route_edges",
    "plays",
    "route_totals",
    "quantiles",
)
_STANDING = ("standing_at", "standing")


@dataclass(frozen=True, eq=False)
class TrafficRun:
    """What is kept of one run. Steps of `bin_s` seconds count from `start_s`; the last holds all up to `end_s`.

    For the vehicles that departed in each step: how many `departures`, how many of them `arrived` in the end, and the
    `totals` of what their trips took (seconds, or cost where travellers have costs). `loads` has rows (step, edge,
    entries), and `load_seconds` the travel times of those who entered, added up, without noise. Route r, one of the
    most driven, has the edges `route_edges[route_ends[r]:route_ends[r + 1]]`; `plays` has rows (step, route,
    departures), and `route_totals` rows (trips that ended, what they took in all). `quantiles` are the percentiles 0
    to 100 of the measured travel times in seconds. With queues `standing_at` has rows (step, edge), and `standing` for
    each of them the vehicles on the road, in its queue and waiting to enter, and the metres that the queue reaches
    back from the end of the road: means over the ends of the step's bins. `tables` are link volumes and the like.
    """

    summary: Mapping[str, Scalar]
    start_s: float
    bin_s: float
    end_s: float
    departures: Ints
    arrived: Ints
    totals: Floats
    loads: Ints
    load_seconds: Floats
    route_ends: Ints
    route_edges: Ints
    plays: Ints
    route_totals: Floats
    quantiles: Floats
    standing_at: Ints | None = None
    standing: Floats | None = None
    tables: Mapping[str, "pd.DataFrame"] = field(default_factory=dict)

    @classmethod
    def of(cls, traffic: Traffic, from_s: float, to_s: float, *, first_bin: int = 0, bins: int = 1) -> Self:
        """Thin a run to steps of so many of its `bins` of time, from `first_bin` on.

        Trips that departed from `from_s` up to `to_s` are the measured ones.
        """

        def steps_of(time_bins: NDArray[Any]) -> Ints:
            return np.clip((time_bins.astype(np.int64) - first_bin) // bins, 0, MOST_STEPS - 1)

        loads = traffic.loads.copy()
        last_bin = int(max(loads[:, 0].max(initial=first_bin), _last_standing(traffic)))
        loads[:, 0] = steps_of(loads[:, 0])
        steps = int(steps_of(np.array([last_bin]))[0]) + 1
        loads, seconds = _added_up(loads, traffic.load_seconds)
        step, departed, ended = steps_of(traffic.departure_s // traffic.bin_s), traffic.departed, traffic.arrived
        took = traffic.travel_time_s if traffic.trip_cost is None else traffic.trip_cost
        measured = traffic.measured(from_s, to_s)
        measured = measured[np.isfinite(measured)]
        summary = {name: value for name, value in traffic.summary(from_s=from_s, to_s=to_s).items() if value == value}
        standing = thinned(traffic, range(first_bin, last_bin + 1), _ended(traffic, last_bin), steps_of)
        end_bin = max(first_bin + steps * bins, last_bin + 1)
        return cls(
            summary,
            first_bin * traffic.bin_s,
            bins * traffic.bin_s,
            min(end_bin * traffic.bin_s, traffic.until_s),
            np.bincount(step[departed], minlength=steps),
            np.bincount(step[ended], minlength=steps),
            np.bincount(step[ended], took[ended], minlength=steps).astype(np.float64),
            loads,
            seconds,
            *_routes(traffic, step, took),
            np.percentile(measured, PERCENTILES) if len(measured) else np.full(len(PERCENTILES), np.nan),
            *standing,
        )

    @property
    def routes(self) -> list[tuple[int, ...]]:
        """The kept routes as tuples of edges, the most driven first."""
        ends, edges = self.route_ends.tolist(), self.route_edges.tolist()
        return [tuple(edges[first:last]) for first, last in pairwise(ends)]

    @property
    def _kept(self) -> tuple[str, ...]:
        """The names of the arrays that there are."""
        return _ARRAYS if self.standing is None else (*_ARRAYS, *_STANDING)

    def save(self, folder: str | Path) -> None:
        """Write `summary.json` and `traffic.npz` into `folder`."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        with (target / "traffic.npz").open("wb") as stream:
            np.savez_compressed(stream, **{name: getattr(self, name) for name in self._kept})
        save_tables(target, self.tables)
        write_json(target / "summary.json", {name: getattr(self, name) for name in _TIMES} | dict(self.summary))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what `save` wrote."""
        source = Path(folder)
        with reading.reading(source, "traffic"):
            # Results of versions before there were queues say nothing of physics: they were window counts.
            summary: dict[str, Any] = {"physics": Window.label} | reading.read_json(source / "summary.json")
            arrays = reading.read_arrays(source / "traffic.npz")
            start_s, bin_s, end_s = (reading.number(summary.pop(name), name) for name in _TIMES)
            queues = {name: arrays[name] for name in _STANDING if any(one in arrays for one in _STANDING)}
            kept = {name: arrays[name] for name in _ARRAYS} | queues
            run = cls(summary, start_s, bin_s, end_s, **kept, tables=load_tables(source))
            run._check()
        return run

    def _check(self) -> None:
        """Refuse what no run can hold, as a file that was changed may."""
        if not (self.bin_s > 0 and self.end_s > self.start_s):
            raise ValueError(f"time runs from {self.start_s} to {self.end_s} s in steps of {self.bin_s} s")
        texts = {"router", "physics"}
        for name in texts:
            reading.text(self.summary[name], name)
        for name in (*COUNTS, *(self.summary.keys() - texts)):
            reading.number(self.summary[name], name)
        for name in self._kept:
            values, (kind, shape) = getattr(self, name), _SHAPES[name]
            if values.dtype != kind or values.ndim != len(shape):
                raise ValueError(f"{name} must be {len(shape)}-dimensional {kind.__name__}, got {values.dtype}")
            if any(size not in (None, found) for size, found in zip(shape, values.shape, strict=True)):
                raise ValueError(f"{name} must have shape {shape}, got {values.shape}")
            if kind is np.int64 and values.min(initial=0) < 0:
                raise ValueError(f"{name} must be at least 0, got {values.min()}")
            if kind is np.int64 and values.max(initial=0) > _MOST_COUNT:
                raise ValueError(f"{name} must be at most {_MOST_COUNT}, got {values.max()}")
            if kind is np.float64:
                reading.finite(values, name, missing=name == "quantiles")
        steps, routes = len(self.departures), len(self.route_totals)
        rules = {
            "every step needs departures, arrivals and totals": steps > 0
            and len(self.arrived) == len(self.totals) == steps
            and steps <= MOST_STEPS,
            "loads must be of steps that there are": len(self.loads) == len(self.load_seconds)
            and self.loads[:, 0].max(initial=0) < steps,
            "edges of loads are numbered up to 2^31": self.loads[:, 1].max(initial=0) < 1 << 31,
            "routes must follow each other": len(self.route_ends) == routes + 1
            and int(self.route_ends[0]) == 0
            and int(self.route_ends[-1]) == len(self.route_edges)
            and bool((np.diff(self.route_ends) > 0).all()),
            "edges of routes are numbered up to 2^31": self.route_edges.max(initial=0) < 1 << 31,
            "plays must be of steps and routes that there are": self.plays[:, 0].max(initial=0) < steps
            and self.plays[:, 1].max(initial=-1) < routes,
        }
        if self.standing_at is not None and self.standing is not None:
            rules["queues must be of steps that there are"] = (
                len(self.standing_at) == len(self.standing) and self.standing_at[:, 0].max(initial=0) < steps
            )
            rules["edges of queues are numbered up to 2^31"] = self.standing_at[:, 1].max(initial=0) < 1 << 31
            rules["roads hold 0 vehicles or more"] = bool((self.standing >= 0).all())
            rules["no more vehicles are in a queue than on its road"] = bool(
                (self.standing[:, 1] <= self.standing[:, 0] + 1e-6).all()
            )
        for rule, kept in rules.items():
            if not kept:
                raise ValueError(rule)


_MOST_COUNT = 10**15
_SHAPES: dict[str, tuple[type, tuple[int | None, ...]]] = {
    "departures": (np.int64, (None,)),
    "arrived": (np.int64, (None,)),
    "totals": (np.float64, (None,)),
    "loads": (np.int64, (None, 3)),
    "load_seconds": (np.float64, (None,)),
    "route_ends": (np.int64, (None,)),
    "route_edges": (np.int64, (None,)),
    "plays": (np.int64, (None, 3)),
    "route_totals": (np.float64, (None, 2)),
    "quantiles": (np.float64, (len(PERCENTILES),)),
    "standing_at": (np.int64, (None, 2)),
    "standing": (np.float64, (None, 4)),
}


def _last_standing(traffic: Traffic) -> int:
    return -1 if traffic.standing is None else int(traffic.standing[:, 0].max(initial=-1))


def _ended(traffic: Traffic, last_bin: int) -> int:
    """Return the first bin at whose end the vehicles were not counted any more."""
    if traffic.arrived.all():
        return last_bin + 1  # all had left by then
    if traffic.until_s < np.inf:
        return min(last_bin + 1, int(traffic.until_s // traffic.bin_s))
    return _last_standing(traffic) + 1


def _added_up(rows: Ints, seconds: Floats) -> tuple[Ints, Floats]:
    """Return the rows (step, edge, entries) with equal steps and edges added up, and the seconds likewise."""
    keys, place = np.unique(rows[:, :2], axis=0, return_inverse=True)
    entries, together = (np.bincount(place.ravel(), values, len(keys)) for values in (rows[:, 2], seconds))
    return np.column_stack((keys, entries.astype(np.int64))), together.astype(np.float64)


def _routes(traffic: Traffic, step: Ints, took: Floats) -> tuple[Ints, Ints, Ints, Floats]:
    paths, route = path_numbers(traffic)
    driven = route >= 0
    counts = np.bincount(route[driven], minlength=len(paths))
    kept = [one for one in np.argsort(-counts, kind="stable")[:MOST_ROUTES].tolist() if counts[one]]
    rank = np.full(len(paths) + 1, -1)
    rank[kept] = np.arange(len(kept))
    rank_of = np.where(driven, rank[route], -1)
    shown = rank_of >= 0
    edges = [np.array(paths[one], dtype=np.int64) for one in kept]
    ends = np.cumsum([0, *(len(path) for path in edges)])
    pairs, count = np.unique(np.column_stack((step[shown], rank_of[shown])), axis=0, return_counts=True)
    plays = np.column_stack((pairs, count)).astype(np.int64)
    ended = shown & np.isfinite(took)
    trips = np.bincount(rank_of[ended], minlength=len(kept))
    total = np.bincount(rank_of[ended], took[ended], minlength=len(kept))
    every = np.concatenate(edges) if edges else np.empty(0, dtype=np.int64)
    return ends.astype(np.int64), every, plays, np.column_stack((trips, total)).astype(np.float64)
