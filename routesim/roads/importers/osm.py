"""OpenStreetMap files (.osm, .osm.gz, .osm.bz2, .osm.pbf) -> RoadNetwork."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from routesim.arrays import Floats, Ints
from routesim.errors import NetworkError
from routesim.roads.importers.files import MAX_STREAM_BYTES, existing_file, reads_files
from routesim.roads.importers.graph import OSM_ATTRIBUTION
from routesim.roads.importers.pbf import PbfFile
from routesim.roads.importers.safexml import Halt, read_xml
from routesim.roads.importers.simplify import Streets, network_from_streets
from routesim.roads.importers.tags import Road, is_drivable, read_road
from routesim.roads.network import RoadNetwork

# As many drivable ways as a large country has; each takes about half a kilobyte, and each of its points, of
# which there may be this many a way on average, some tens of bytes.
MAX_WAYS = 2_000_000
_POINTS_PER_WAY = 20
_MAX_TAGS = 1000


@reads_files
def from_osm(
    path: str | Path,
    *,
    largest_component: bool = True,
    simplify: bool = True,
    name: str | None = None,
    max_bytes: int | None = None,
    max_ways: int = MAX_WAYS,
) -> RoadNetwork:
    """Read the roads cars may use from an OpenStreetMap file.

    Which ways those are is decided as osmnx does for "drive"; directions by `oneway` and roundabouts.
    Points that are no junctions are merged away unless `simplify` is False, and only the largest part
    within which every node reaches every other is kept unless `largest_component` is False. A way that
    leads out of the extract, to points the file does not hold, is cut there. `max_bytes` limits the size
    once decompressed. Without it the limits are 2 GiB and, above 64 MiB, a hundred times the size of the file.
    """
    file = existing_file(path, "OpenStreetMap (.osm, .osm.gz, .osm.bz2, .osm.pbf)")
    ways = _Ways(file, max_ways)
    ending = file.suffix.lower()
    if ending == ".pbf":
        _read_pbf(file, ways, max_bytes)
    elif ending in {".osm", ".gz", ".bz2", ".xml"}:
        _read_osm_xml(file, ways, max_bytes)
    else:
        raise NetworkError(f"{file} must end in .osm, .osm.gz, .osm.bz2 or .osm.pbf")
    try:
        return network_from_streets(
            ways.streets(),
            largest_component=largest_component,
            simplify=simplify,
            name=file.name.split(".")[0] if name is None else name,
            attribution=OSM_ATTRIBUTION,
        )
    except NetworkError as error:
        raise NetworkError(f"{file}: {error}") from None


class _Ways:
    """Collects drivable ways and places of points, in whatever order a file holds them."""

    def __init__(self, file: Path, max_ways: int) -> None:
        self.file, self.max_ways = file, max_ways
        self.roads: list[Road] = []
        self.refs = array("q")
        self.counts = array("q")
        self.point_ids, self.point_x, self.point_y = array("q"), array("d"), array("d")

    def add_way(self, tags: Mapping[str, str], refs: array[int] | Ints) -> None:
        if len(refs) > 1 and is_drivable(tags):
            if len(self.roads) >= self.max_ways:
                raise self._too_large(f"{self.max_ways} drivable ways")
            if len(self.refs) + len(refs) > _POINTS_PER_WAY * self.max_ways:
                raise self._too_large(f"{_POINTS_PER_WAY * self.max_ways} points of drivable ways")
            self.roads.append(read_road(tags))
            self.refs.frombytes(refs.tobytes())
            self.counts.append(len(refs))

    def _too_large(self, limit: str) -> NetworkError:
        return NetworkError(f"{self.file} holds more than {limit}; raise max_ways if you trust it")

    def streets(self) -> Streets:
        if not self.roads:
            raise NetworkError("no drivable road in the file")
        refs = np.frombuffer(self.refs, dtype=np.int64)
        owner = np.repeat(np.arange(len(self.roads)), np.frombuffer(self.counts, dtype=np.int64))
        ids, points = np.unique(refs, return_inverse=True)
        lon, lat = self._places(ids)
        known = ~np.isnan(lon)
        if not known.any():
            raise NetworkError("not one point of its roads is in the file")
        a, b = points[:-1], points[1:]
        real = (owner[:-1] == owner[1:]) & (a != b) & known[a] & known[b]
        a, b, road = a[real], b[real], owner[:-1][real]
        forward = np.array([r.forward for r in self.roads], dtype=np.bool_)[road]
        backward = np.array([r.backward for r in self.roads], dtype=np.bool_)[road]
        return Streets(
            node_ids=ids,
            lon=lon,
            lat=lat,
            tails=np.concatenate((a[forward], b[backward])),
            heads=np.concatenate((b[forward], a[backward])),
            road=np.concatenate((road[forward], road[backward])),
            backward=np.repeat([False, True], [int(forward.sum()), int(backward.sum())]),
            roads=self.roads,
        )

    def _places(self, ids: Ints) -> tuple[Floats, Floats]:
        lon, lat = np.full(len(ids), np.nan), np.full(len(ids), np.nan)
        stored = np.frombuffer(self.point_ids, dtype=np.int64)
        if len(stored) == 0:
            return lon, lat
        order = np.argsort(stored, kind="stable")
        last = np.searchsorted(stored, ids, side="right", sorter=order) - 1
        found = order[np.maximum(last, 0)]
        here = stored[found] == ids
        lon[here] = np.frombuffer(self.point_x, dtype=np.float64)[found[here]]
        lat[here] = np.frombuffer(self.point_y, dtype=np.float64)[found[here]]
        bad = here & ~((np.abs(lon) <= 180) & (np.abs(lat) <= 90))
        if bad.any():
            i = int(np.argmax(bad))
            raise NetworkError(f"node {ids[i]} lies at lon {lon[i]}, lat {lat[i]}, which is nowhere on Earth")
        return lon, lat


def _read_osm_xml(file: Path, ways: _Ways, max_bytes: int | None) -> None:
    tags: dict[str, str] = {}
    refs = array("q")
    inside = ""
    root = ""
    most_points = _POINTS_PER_WAY * max(ways.max_ways, MAX_WAYS)

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal inside, root, tags, refs
        if not root:
            root = tag
            if tag != "osm":
                raise Halt(f"the file must hold <osm>, got <{tag:.40}>")
        elif tag == "node":
            if _is_gone(attributes):
                return
            if len(ways.point_ids) >= most_points:
                raise Halt(f"more than {most_points} nodes; raise max_ways if you trust it")
            ways.point_ids.append(_whole(attributes, "id", "node"))
            ways.point_x.append(_degrees(attributes, "lon", 180.0))
            ways.point_y.append(_degrees(attributes, "lat", 90.0))
        elif tag == "way":
            inside = "" if _is_gone(attributes) else "way"
            tags, refs = {}, array("q")
        elif inside and tag == "nd":
            refs.append(_whole(attributes, "ref", "nd"))
        elif inside and tag == "tag":
            tags[attributes.get("k", "")] = attributes.get("v", "")
            if len(tags) > _MAX_TAGS:
                raise Halt(f"more than {_MAX_TAGS} tags on one way")

    def end(tag: str) -> None:
        nonlocal inside
        if tag == "way" and inside:
            ways.add_way(tags, refs)
            inside = ""

    read_xml(file, start, end, max_bytes=max_bytes, default=MAX_STREAM_BYTES)


def _is_gone(attributes: Mapping[str, str]) -> bool:
    return attributes.get("action") == "delete" or attributes.get("visible") == "false"


def _whole(attributes: Mapping[str, str], key: str, tag: str) -> int:
    text = attributes.get(key, "")
    try:
        value = int(text)
    except ValueError:
        value = 2**62
    if not -(2**62) < value < 2**62:
        raise Halt(f"<{tag}> needs a whole number as its {key}, got {text!r:.40}")
    return value


def _degrees(attributes: Mapping[str, str], key: str, limit: float) -> float:
    text = attributes.get(key, "")
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) <= limit:
        raise Halt(f"node {attributes.get('id', '')!r:.30} needs a {key} within ±{limit:g}, got {text!r:.40}")
    return value


def _read_pbf(file: Path, ways: _Ways, max_bytes: int | None) -> None:
    pbf = PbfFile(file, max_bytes)
    for way in pbf.ways("highway"):
        ways.add_way(way.tags, way.refs)
    ids = np.unique(np.frombuffer(ways.refs, dtype=np.int64)) if ways.refs else np.empty(0, dtype=np.int64)
    if len(ids) == 0:
        return
    lon, lat = pbf.places(ids)
    known = ~np.isnan(lon)
    for target, values in ((ways.point_ids, ids), (ways.point_x, lon), (ways.point_y, lat)):
        target.frombytes(np.ascontiguousarray(values[known]).tobytes())
