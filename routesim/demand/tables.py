"""Tables of demand as people have them: rows of trips or rates, between node labels or places in degrees.

A mistake names the file, the row as a spreadsheet numbers it (the header is row 1), the column and the fix.
"""

import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Bools, Floats, Ints
from routesim.checks import LATEST_S
from routesim.demand.cells import Cells, profile_weights, read_cells
from routesim.demand.loading import FAR_M, Loading
from routesim.errors import FarFromRoadsWarning, InputError, NetworkError
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import Workspace, shortest_tree
from routesim.roads.snapping import MARGIN_M, beyond, bounds, snap

ENDS = ("origin", "destination")
_MOST_ROWS = 20_000_000


def read_demand(
    path: str | Path, network: RoadNetwork, start_s: float, end_s: float, profile: ArrayLike
) -> dict[str, Any]:
    """Return the fields of the `Demand` that a table asks for."""
    cells = read_cells(path)
    at_times, counted = cells.has("departure_s"), cells.has("vehicles")
    if not (at_times or counted):
        cells.column("vehicles", "or departure_s, the seconds at which each trip departs")  # which says what is missing
    ends = [_end(cells, network, end) for end in ENDS]
    vehicles = _vehicles(cells) if counted else np.ones(len(cells.rows))
    origins, destinations = ends[0].nodes, ends[1].nodes
    asked = vehicles > 0
    within = asked & (origins == destinations)
    kept = np.flatnonzero(asked & ~within)
    if not len(kept):
        raise InputError(f"{cells.file}: no row asks for a trip between two different places")
    if not (ends[0].snapped and ends[1].snapped):
        _check_joined(cells, network, origins, destinations, kept)
    _warn_of_distances(cells, network, ends)
    loading = Loading.of_rows(len(cells.rows), vehicles[within])
    loading = loading.with_snaps(np.concatenate([end.distance_m for end in ends]))
    times = _departures(cells, kept) if at_times else _intervals(cells, kept, start_s, end_s, profile)
    rows, shares = times.pop("rows"), times.pop("shares")
    between = entries(network, origins[rows], destinations[rows], vehicles[rows] * shares)
    return {**between, "loading": loading, **times}


def entries(network: RoadNetwork, origins: Ints, destinations: Ints, vehicles: Floats) -> dict[str, Any]:
    """Return the fields of a `Demand` that say how many go from which node to which."""
    places, numbers = np.unique(np.concatenate((origins, destinations)), return_inverse=True)
    return {
        "places": tuple(network.labels[place] for place in places.tolist()),
        "origins": numbers[: len(origins)].astype(np.int32),
        "destinations": numbers[len(origins) :].astype(np.int32),
        "vehicles": vehicles,
    }


def span(start_s: float, end_s: float, profile: ArrayLike) -> dict[str, Any]:
    """Return the fields of a `Demand` whose departures all lie between these times."""
    if not (np.isfinite(start_s) and np.isfinite(end_s) and 0 <= start_s < end_s <= LATEST_S):
        raise InputError(f"demand needs 0 <= start_s < end_s, both at most {LATEST_S:g}, got {start_s} and {end_s}")
    return {"start_s": float(start_s), "end_s": float(end_s), "profile": profile_weights(profile)}


@dataclass(frozen=True)
class _End:
    """The node of each row, and for places in degrees where they were and how far from it."""

    nodes: Ints
    snapped: bool
    x: Floats
    y: Floats
    distance_m: Floats


def _end(cells: Cells, network: RoadNetwork, end: str) -> _End:
    lon, lat = f"{end}_lon", f"{end}_lat"
    if cells.has(lon) or cells.has(lat):
        return _places(cells, network, lon, lat)
    texts = cells.column(end, f"with node labels, or {lon} and {lat} in degrees")
    known = _labels_by_text(network)
    nodes, seen = np.empty(len(texts), dtype=np.int64), dict[str, int]()
    for place, text in enumerate(texts):
        if text not in seen:
            seen[text] = _node(cells, network, known, end, place)
        nodes[place] = seen[text]
    return _End(nodes, False, np.empty(0), np.empty(0), np.empty(0))


def _labels_by_text(network: RoadNetwork) -> dict[str, Hashable]:
    known: dict[str, Hashable] = {}
    for label in network.labels:
        known.setdefault(str(label), label)
    return known


def _node(cells: Cells, network: RoadNetwork, known: dict[str, Hashable], end: str, place: int) -> int:
    text = cells.column(end)[place]
    if not text:
        raise cells.mistake(place, end, "is empty", "give a node label, or remove the row")
    short = text[:-2] if text.endswith(".0") else text  # columns with gaps get ".0" from spreadsheets
    for spelled in (text, short):
        if spelled in known:
            return network.node_index(known[spelled])
    if "e+" in text.lower():
        raise cells.mistake(
            place,
            end,
            f"is {text!r:.40}, which a spreadsheet has rounded",
            "store the column as text, and export again",
        )
    try:
        return network.node_index(text)
    except NetworkError as problem:
        raise cells.mistake(
            place, end, f"is {text!r:.40}: {problem}", "use a label of the network, or degrees"
        ) from None


def _places(cells: Cells, network: RoadNetwork, lon: str, lat: str) -> _End:
    x, y = cells.numbers(lon), cells.numbers(lat)
    if network.is_geographic:
        for column, values, limit in ((lon, x, 180.0), (lat, y, 90.0)):
            wrong = np.flatnonzero(np.abs(values) > limit)
            if len(wrong):
                row = int(wrong[0])
                raise cells.mistake(
                    row, column, f"is {values[row]:g}, outside ±{limit:g} degrees", f"give degrees (WGS 84) in {column}"
                )
    found = snap(network, x, y)
    if found.beyond.any():
        row = int(np.argmax(found.beyond))
        west, south, east, north = bounds(network)
        turned = not beyond(network, y[row : row + 1], x[row : row + 1])[0]
        fix = (
            f"longitude and latitude seem to be swapped: exchange {lon} and {lat}"
            if turned
            else "leave the row out, move the end to the road by which it comes in, or import a larger area"
        )
        raise cells.mistake(
            row,
            f"{lon}, {lat}",
            f"is ({x[row]:g}, {y[row]:g}), more than {MARGIN_M:g} m outside the roads, which lie between "
            f"({west:.6g}, {south:.6g}) and ({east:.6g}, {north:.6g})",
            fix,
        )
    return _End(found.nodes, True, x, y, found.distance_m)


def _warn_of_distances(cells: Cells, network: RoadNetwork, ends: list[_End]) -> None:
    for name, end in zip(ENDS, ends, strict=True):
        far = np.flatnonzero(end.distance_m > FAR_M)
        if len(far):
            worst = int(np.argmax(end.distance_m))
            warnings.warn(
                f"{cells.file}: {len(far)} of {len(end.distance_m)} {name}s lie more than {FAR_M:g} m from the node "
                f"that stands for them, the worst, row {cells.rows[worst]} at ({end.x[worst]:g}, {end.y[worst]:g}), "
                f"{end.distance_m[worst]:.0f} m from node {network.labels[end.nodes[worst]]!r}; on average it is "
                f"{end.distance_m.mean():.0f} m",
                FarFromRoadsWarning,
                stacklevel=4,
            )


def _vehicles(cells: Cells) -> Floats:
    values = cells.numbers("vehicles")
    wrong = np.flatnonzero(values < 0)
    if len(wrong):
        raise cells.mistake(
            int(wrong[0]), "vehicles", f"is {values[wrong[0]]:g}", "give a number of at least 0; 0 asks for nothing"
        )
    return values


def _departures(cells: Cells, kept: Ints) -> dict[str, Any]:
    for column in ("start_s", "end_s", "profile"):
        if cells.has(column):
            raise InputError(
                f"{cells.file} row 1 has both departure_s and {column}; a row is a trip at departure_s or vehicles "
                "between start_s and end_s, so remove one of the columns"
            )
    times = cells.seconds("departure_s")
    rows = kept[np.argsort(times[kept], kind="stable")]
    departure_s = times[rows]
    span = {"start_s": float(departure_s[0]), "end_s": float(departure_s[-1]), "departure_s": departure_s}
    return {"rows": rows, "shares": np.ones(len(rows)), **span}


def _intervals(cells: Cells, kept: Ints, start_s: float, end_s: float, profile: ArrayLike) -> dict[str, Any]:
    """Return when the vehicles of each row depart; a row with a profile becomes one entry for each part of it."""
    whole = span(start_s, end_s, profile)
    given = [column for column in ("start_s", "end_s") if cells.has(column)]
    if len(given) == 1:
        raise InputError(f"{cells.file} row 1 has {given[0]} alone; give both start_s and end_s, or neither")
    if not given and not cells.has("profile"):
        return {"rows": kept, "shares": np.ones(len(kept)), **whole}
    n = len(cells.rows)
    starts = cells.seconds("start_s") if given else np.full(n, float(start_s))
    stops = cells.seconds("end_s") if given else np.full(n, float(end_s))
    wrong = np.flatnonzero(~(starts < stops))
    if len(wrong):
        row = int(wrong[0])
        fix = "the end must be later than the start, both in seconds"
        raise cells.mistake(row, "end_s", f"is {stops[row]:g}, and start_s is {starts[row]:g}", fix)
    parts = [cells.weights(row, whole["profile"]) for row in kept.tolist()]
    sizes = np.array([len(part) for part in parts])
    if sizes.sum() > _MOST_ROWS:
        raise InputError(f"{cells.file}: its profiles have {sizes.sum():,} parts in all, at most {_MOST_ROWS:,} fit")
    rows = np.repeat(kept, sizes)
    number = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    step = (stops - starts)[rows] / np.repeat(sizes, sizes)
    shares = np.concatenate([part / part.sum() for part in parts])
    used: Bools = shares > 0
    begin = starts[rows] + number * step
    return {
        "rows": rows[used],
        "shares": shares[used],
        "start_s": float(starts[kept].min()),
        "end_s": float(stops[kept].max()),
        "starts_s": begin[used],
        "ends_s": (begin + step)[used],
    }


def _check_joined(cells: Cells, network: RoadNetwork, origins: Ints, destinations: Ints, kept: Ints) -> None:
    """Refuse the first row between two nodes that no path joins."""
    work, joined = Workspace.build(network.graph), np.ones(len(kept), dtype=np.bool_)
    order = np.argsort(origins[kept], kind="stable")
    starts = origins[kept][order]
    for first, last in _groups(starts):
        times, _ = shortest_tree(network.graph, network.free_flow_s, int(starts[first]), workspace=work)
        rows = order[first:last]
        joined[rows] = np.isfinite(times[destinations[kept[rows]]])
    if not joined.all():
        row = int(kept[np.argmin(joined)])
        start, goal = (network.labels[ends[row]] for ends in (origins, destinations))
        raise cells.mistake(
            row, "origin, destination", f"goes from {start!r} to {goal!r}, where no path leads", "remove the row"
        )


def _groups(values: Ints) -> list[tuple[int, int]]:
    """Return where each run of equal values begins and ends."""
    ends = np.concatenate(([0], np.flatnonzero(np.diff(values)) + 1, [len(values)])).tolist()
    return list(pairwise(ends))
