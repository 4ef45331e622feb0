"""Modelled volumes beside counted ones: GEH of each place of counting, from traffic or an assignment."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats, Ints
from routesim.assignment.assignment import Assignment
from routesim.demand.cells import Cells, read_cells
from routesim.errors import InputError, RoutesimError
from routesim.roads.network import RoadNetwork
from routesim.roads.places import EARTH_RADIUS_M
from routesim.traffic.result import Traffic
from routesim.traffic.tables import edge_between

if TYPE_CHECKING:
    import pandas as pd

GOOD_GEH = 5.0
"""Practice calls a GEH below 5 a good match, and wants it at 85 % of the places."""

FARTHEST_M = 100.0
_HOUR_S = 3600.0


def geh(modelled_vph: ArrayLike, counted_vph: ArrayLike) -> Floats:
    """Return the GEH statistic of hourly volumes: sqrt(2 (m - c)^2 / (m + c)), 0 where both are 0.

    >>> geh([1100.0, 0.0, 50.0], [1000.0, 0.0, 100.0]).round(2).tolist()
    [3.09, 0.0, 5.77]
    """
    modelled, counted = np.asarray(modelled_vph, dtype=np.float64), np.asarray(counted_vph, dtype=np.float64)
    if (modelled < 0).any() or (counted < 0).any():
        raise InputError("GEH compares hourly volumes of at least 0, got a negative one")
    total = modelled + counted
    return np.asarray(np.sqrt(2 * (modelled - counted) ** 2 / np.where(total > 0, total, 1.0)), dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class CountComparison:
    """Counted and modelled volumes, one row of `table` for each place: edges, name, both in vehicles an hour, GEH."""

    table: "pd.DataFrame"

    def __repr__(self) -> str:
        return (
            f"<CountComparison: {len(self.table)} places, GEH below {GOOD_GEH:g} at {self.good_share:.0%}, "
            f"root mean square error {self.rmse_vph:.4g} vehicles an hour>"
        )

    @property
    def good_share(self) -> float:
        """The share of places with a GEH below 5."""
        return float((self.table.geh < GOOD_GEH).mean())

    @property
    def rmse_vph(self) -> float:
        """The root of the mean squared difference in vehicles an hour."""
        return float(np.sqrt(((self.table.modelled_vph - self.table.counted_vph) ** 2).mean()))


def compare_counts(result: Traffic | Assignment, counts: Any) -> CountComparison:
    """Compare modelled volumes with counted ones.

    `counts` is a table, or a .csv or .parquet file, with a row for each place: the column `count`, vehicles an hour, or
    with `start_s` and `end_s` those between the two times. The place is an `edge` (its number), the nodes `u` and
    `v` (with `key` where edges are parallel), or `lon` and `lat`: the nearest road, at most 100 m away, in both
    directions, or with `bearing` (degrees from north) in that direction alone. Without times, traffic is
    averaged over the time of its demand. An assignment has one volume an hour, whatever the times.
    """
    import pandas as pd

    there, volumes = read_counts(counts, result.network), _volumes(result)
    times = zip(there.start_s, there.end_s, strict=True)
    modelled = np.array([volumes(edges, *time) for edges, time in zip(there.edges, times, strict=True)])
    table = pd.DataFrame(
        {
            "row": there.rows,
            "edges": pd.Series([tuple(edges.tolist()) for edges in there.edges], dtype=object),
            "name": [result.network.names[edges[0]] for edges in there.edges],
            "counted_vph": there.counted_vph,
            "modelled_vph": modelled,
            "difference_vph": modelled - there.counted_vph,
            "geh": geh(modelled, there.counted_vph),
        }
    )
    return CountComparison(table)


class Counts(NamedTuple):
    """Counts on some roads: the edges of each row, its time (NaN where it has none), and its vehicles an hour."""

    rows: list[int]
    edges: list[Ints]
    start_s: Floats
    end_s: Floats
    counted_vph: Floats


def read_counts(counts: Any, network: RoadNetwork) -> Counts:
    """Read a table of counts on these roads; see `compare_counts`."""
    cells = read_cells(counts) if isinstance(counts, str | Path) else _cells_of(counts)
    places = _Places(cells, network)
    return Counts(list(cells.rows), [places.edges(row) for row in range(len(cells.rows))], *_counted(cells))


def _counted(cells: Cells) -> tuple[Floats, Floats, Floats]:
    """Return the time of each row, NaN where it has none, and its vehicles an hour."""
    counts = cells.numbers("count")
    wrong = np.flatnonzero(counts < 0)
    if len(wrong):
        raise cells.mistake(int(wrong[0]), "count", f"is {counts[wrong[0]]:g}", "give a number of at least 0")
    none = np.full(len(counts), np.nan)
    if cells.has("start_s") != cells.has("end_s"):
        raise InputError(f"{cells.file} row 1 has one of start_s and end_s; give both, or neither")
    if not cells.has("start_s"):
        return none, none, counts
    starts, ends = cells.seconds("start_s"), cells.seconds("end_s")
    wrong = np.flatnonzero(~(starts < ends))
    if len(wrong):
        row = int(wrong[0])
        what = f"is {ends[row]:g}, and start_s is {starts[row]:g}"
        raise cells.mistake(row, "end_s", what, "the end must be later than the start")
    return starts, ends, np.asarray(counts * _HOUR_S / (ends - starts), dtype=np.float64)


def _volumes(result: Traffic | Assignment) -> Callable[[Ints, float, float], float]:
    """Return what gives the vehicles an hour on some edges between two times."""
    if isinstance(result, Assignment):
        flows = result.flows
        return lambda edges, *_: float(flows[edges].sum())
    bins, bin_s, demand = result.loads[:, 0] * result.bin_s, result.bin_s, result.demand
    whole = (demand.start_s, demand.end_s if demand.end_s > demand.start_s else demand.start_s + bin_s)

    def entered(edges: Ints, start_s: float, end_s: float) -> float:
        start, end = whole if np.isnan(start_s) else (start_s, end_s)
        mine = np.isin(result.loads[:, 1], edges)
        # A recorded bin that lies in the time only in part counts in proportion.
        share = np.clip(np.minimum(bins[mine] + bin_s, end) - np.maximum(bins[mine], start), 0.0, None) / bin_s
        return float(share @ result.loads[mine, 2]) * _HOUR_S / (end - start)

    return entered


class _Places:
    """Finds the edges that a row of counts means."""

    edges: Callable[[int], Ints]

    def __init__(self, cells: Cells, network: RoadNetwork) -> None:
        self.cells, self.network = cells, network
        if cells.has("edge"):
            self._numbers = cells.numbers("edge")
            self.edges = self._numbered
        elif cells.has("u") and cells.has("v"):
            self._labels = {str(label): label for label in network.labels}
            self.edges = self._between
        elif cells.has("lon") and cells.has("lat"):
            self._lines()
            self.edges = self._nearest
        else:
            cells.column("edge", "or u and v, or lon and lat")

    def _numbered(self, row: int) -> Ints:
        value = float(self._numbers[row])
        if not (value.is_integer() and 0 <= value < self.network.n_edges):
            fix = f"edges run from 0 to {self.network.n_edges - 1}"
            raise self.cells.mistake(row, "edge", f"is {value:g}", fix)
        return np.array([int(value)])

    def _between(self, row: int) -> Ints:
        u, v = (self._labels.get(text, text) for text in (self.cells.column("u")[row], self.cells.column("v")[row]))
        key = self.cells.columns["key"][row] if self.cells.has("key") else ""
        try:
            return np.array([edge_between(self.network, u, v, int(float(key)) if key else None)])
        except (RoutesimError, ValueError, OverflowError) as problem:
            fix = "name two nodes that an edge joins"
            raise self.cells.mistake(row, "u, v", f"is ({u!r:.40}, {v!r:.40}): {problem}", fix) from None

    def _lines(self) -> None:
        import shapely
        from shapely import STRtree

        network = self.network
        known = [edge for edge in range(network.n_edges) if len(network.shape(edge)) > 1]
        if not known:
            raise InputError(f"{network!r} has no lines, so no road is nearest; name places by edge, or by u and v")
        self._known = np.array(known)
        # In metres around the middle, where a degree of longitude is shorter than one of latitude.
        degree_m = np.radians(1.0) * EARTH_RADIUS_M if network.is_geographic else 1.0
        narrow = float(np.cos(np.radians(np.nanmean(network.y)))) if network.is_geographic else 1.0
        self._scale = np.array([degree_m * narrow, degree_m])
        self._shapes = [shapely.LineString(network.shape(edge) * self._scale) for edge in known]
        self._tree = STRtree(self._shapes)
        self._x, self._y = self.cells.numbers("lon"), self.cells.numbers("lat")
        self._bearings = self.cells.numbers("bearing") if self.cells.has("bearing") else None

    def _nearest(self, row: int) -> Ints:
        import shapely

        point = shapely.Point(self._scale * [self._x[row], self._y[row]])
        near = self._tree.query(point, predicate="dwithin", distance=FARTHEST_M)
        if self._bearings is not None:
            near = np.array(
                [line for line in near if self._leads(int(line), point, self._bearings[row])], dtype=np.int64
            )
        if not len(near):
            there = f"is ({self._x[row]:g}, {self._y[row]:g}), with no such road within {FARTHEST_M:g} m"
            raise self.cells.mistake(row, "lon, lat", there, "give longitude and latitude of a place on the road")
        away = [self._shapes[line].distance(point) for line in near]
        edge = int(self._known[near[int(np.argmin(away))]])
        if self._bearings is not None:
            return np.array([edge])
        tails, heads = self.network.tails, self.network.heads
        back = np.flatnonzero((tails == heads[edge]) & (heads == tails[edge]))
        same = [e for e in back.tolist() if self._along(e, point, min(away))]
        return np.array([edge, *same])

    def _along(self, edge: int, point: Any, away_m: float) -> bool:
        place = int(np.searchsorted(self._known, edge))
        here = place < len(self._known) and self._known[place] == edge
        return bool(here and self._shapes[place].distance(point) <= away_m + 15.0)

    def _leads(self, line: int, point: Any, bearing: float) -> bool:
        shape = self._shapes[line]
        at = shape.project(point)
        before, after = (shape.interpolate(min(max(at + step, 0.0), shape.length)) for step in (-5.0, 5.0))
        heading = np.degrees(np.arctan2(after.x - before.x, after.y - before.y))
        return bool(abs((heading - bearing + 180.0) % 360.0 - 180.0) < 60.0)


def _cells_of(table: Any) -> Cells:
    """Return the columns of a table in memory as texts; rows are numbered as in a file with a header."""
    names = [str(name) for name in (table.columns if hasattr(table, "columns") else table)]
    columns = {
        name: ["" if value is None or value != value else str(value) for value in list(table[name])] for name in names
    }
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1 or lengths == {0}:
        raise InputError("a table of counts needs at least one row, and columns of equal length")
    return Cells("the table of counts", columns, range(2, lengths.pop() + 2))
