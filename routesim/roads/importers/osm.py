"""OpenStreetMap files (.osm, .osm.gz, .osm.bz2, .osm.pbf) -> RoadNetwork."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from routesim.arrays import Bools, Floats, Ints
from routesim.errors import NetworkError
from routesim.roads.importers.files import MAX_STREAM_BYTES, existing_file, reads_files
from routesim.roads.importers.graph import OSM_ATTRIBUTION, SIGNALS_TAG
from routesim.roads.importers.pbf import PbfFile, WayTable
from routesim.roads.importers.pbf_roads import COLUMNS, judge_all, read_roads
from routesim.roads.importers.restrictions import MOST_MEMBERS, RELATION, Member, Pieces, Restrictions
from routesim.roads.importers.safexml import Halt, read_xml
from routesim.roads.importers.simplify import (
    CLOSED_WAYS,
    CUT_WAYS,
    Streets,
    connected_despite_bans,
    network_from_streets,
)
from routesim.roads.importers.tags import Road, judge, read_road
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

    Which ways those are, and in which directions, is decided by the rules of `routesim.roads.importers.tags`: the
    class of the road, the access tags from `motorcar` to `access`, `oneway` and what implies it. `left_out` of the
    network counts what was not taken.
    Points that are no junctions are merged away unless `simplify` is False, and only the largest part
    within which every node reaches every other is kept unless `largest_component` is False. A way that
    leads out of the extract, to points the file does not hold, is cut there. Restriction relations become banned turns
    by the rules of `routesim.roads.importers.restrictions`. Points tagged as traffic
    signals mark the junctions they stand at or up to 50 m before, in `signals`. `max_bytes` limits the size
    once decompressed. Without it the limits are 2 GiB and, above 64 MiB, a hundred times the size of the file.
    """
    streets = read_streets(path, max_bytes=max_bytes, max_ways=max_ways)
    try:
        network = network_from_streets(
            streets,
            largest_component=largest_component,
            simplify=simplify,
            name=Path(path).name.split(".")[0] if name is None else name,
            attribution=OSM_ATTRIBUTION,
        )
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None
    return connected_despite_bans(network) if largest_component else network


def read_streets(path: str | Path, *, max_bytes: int | None = None, max_ways: int = MAX_WAYS) -> Streets:
    """Read all pieces of roads of an OpenStreetMap file, before any is merged or left out."""
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
        return ways.streets()
    except NetworkError as error:
        raise NetworkError(f"{file}: {error}") from None


class _Ways:
    """Collects drivable ways and places of points, in whatever order a file holds them."""

    def __init__(self, file: Path, max_ways: int) -> None:
        self.file, self.max_ways = file, max_ways
        self.roads: list[Road] = []
        self.ids = array("q")
        self.restrictions = Restrictions()
        self.refs = array("q")
        self.counts = array("q")
        self.point_ids, self.point_x, self.point_y = array("q"), array("d"), array("d")
        self.point_signals = array("b")
        self.left_out = dict.fromkeys((CLOSED_WAYS, CUT_WAYS), 0)

    def add_way(self, number: int, tags: Mapping[str, str], refs: array[int]) -> None:
        verdict = judge(tags) if len(refs) > 1 else "no road"
        if verdict == "closed":
            self.left_out[CLOSED_WAYS] += 1
        elif verdict == "drivable":
            self._check_room(1, len(refs))
            self.roads.append(read_road(tags))
            self.ids.append(number)
            self.refs.frombytes(refs.tobytes())
            self.counts.append(len(refs))

    def add_table(self, table: WayTable) -> None:
        """Add the ways of a block of a PBF."""
        drivable, closed = judge_all(table)
        self.left_out[CLOSED_WAYS] += int(closed.sum())
        counts = table.counts[drivable]
        self._check_room(len(counts), int(counts.sum()))
        self.roads += read_roads(table, drivable)
        self.ids.frombytes(table.ids[drivable].tobytes())
        self.refs.frombytes(table.refs(drivable).tobytes())
        self.counts.frombytes(counts.tobytes())

    def add_restriction(self, tags: Mapping[str, str], members: list[Member]) -> None:
        try:
            self.restrictions.add(tags, members)
        except NetworkError as error:
            raise NetworkError(f"{self.file}: {error}") from None

    def _check_room(self, n_ways: int, n_points: int) -> None:
        if len(self.roads) + n_ways > self.max_ways:
            raise self._too_large(f"{self.max_ways} drivable ways")
        if len(self.refs) + n_points > _POINTS_PER_WAY * self.max_ways:
            raise self._too_large(f"{_POINTS_PER_WAY * self.max_ways} points of drivable ways")

    def _too_large(self, limit: str) -> NetworkError:
        return NetworkError(f"{self.file} holds more than {limit}; raise max_ways if you trust it")

    def streets(self) -> Streets:
        if not self.roads:
            closed = self.left_out[CLOSED_WAYS]
            why = f" ({closed} are closed to cars by their access tags)" if closed else ""
            raise NetworkError(f"no drivable road in the file{why}")
        refs = np.frombuffer(self.refs, dtype=np.int64)
        owner = np.repeat(np.arange(len(self.roads)), np.frombuffer(self.counts, dtype=np.int64))
        ids, points = np.unique(refs, return_inverse=True)
        lon, lat, signals = self._places(ids)
        known = ~np.isnan(lon)
        if not known.any():
            raise NetworkError("not one point of its roads is in the file")
        self.left_out[CUT_WAYS] = len(np.unique(owner[~known[points]]))
        a, b = points[:-1], points[1:]
        real = (owner[:-1] == owner[1:]) & (a != b) & known[a] & known[b]
        a, b, road = a[real], b[real], owner[:-1][real]
        forward = np.array([r.forward for r in self.roads], dtype=np.bool_)[road]
        backward = np.array([r.backward for r in self.roads], dtype=np.bool_)[road]
        pieces = Pieces(
            tails=np.concatenate((a[forward], b[backward])),
            heads=np.concatenate((b[forward], a[backward])),
            road=np.concatenate((road[forward], road[backward])),
            backward=np.repeat([False, True], [int(forward.sum()), int(backward.sum())]),
        )
        bans = self.restrictions.bans(pieces, np.frombuffer(self.ids, dtype=np.int64), ids)
        return Streets(
            ids,
            lon,
            lat,
            *pieces,
            roads=self.roads,
            signals=signals,
            bans=bans,
            left_out=self.left_out | {what: n for what, n in self.restrictions.left_out.items() if n},
        )

    def _places(self, ids: Ints) -> tuple[Floats, Floats, Bools]:
        signals = np.zeros(len(ids), dtype=np.bool_)
        lon, lat = np.full(len(ids), np.nan), np.full(len(ids), np.nan)
        stored = np.frombuffer(self.point_ids, dtype=np.int64)
        if len(stored) == 0:
            return lon, lat, signals
        order = np.argsort(stored, kind="stable")
        last = np.searchsorted(stored, ids, side="right", sorter=order) - 1
        found = order[np.maximum(last, 0)]
        here = stored[found] == ids
        lon[here] = np.frombuffer(self.point_x, dtype=np.float64)[found[here]]
        lat[here] = np.frombuffer(self.point_y, dtype=np.float64)[found[here]]
        signals[here] = np.frombuffer(self.point_signals, dtype=np.int8)[found[here]] != 0
        bad = here & ~((np.abs(lon) <= 180) & (np.abs(lat) <= 90))
        if bad.any():
            i = int(np.argmax(bad))
            raise NetworkError(f"node {ids[i]} lies at lon {lon[i]}, lat {lat[i]}, which is nowhere on Earth")
        return lon, lat, signals


def _read_osm_xml(file: Path, ways: _Ways, max_bytes: int | None) -> None:
    tags: dict[str, str] = {}
    refs = array("q")
    members: list[Member] = []
    number = 0
    inside = ""
    root = ""
    most_points = _POINTS_PER_WAY * max(ways.max_ways, MAX_WAYS)

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal inside, root, tags, refs, members, number
        if not root:
            root = tag
            if tag != "osm":
                raise Halt(f"the file must hold <osm>, got <{tag:.40}>")
        elif tag == "node":
            inside = "" if _is_gone(attributes) else "node"
            if not inside:
                return
            if len(ways.point_ids) >= most_points:
                raise Halt(f"more than {most_points} nodes; raise max_ways if you trust it")
            ways.point_ids.append(_whole(attributes, "id", "node"))
            ways.point_x.append(_degrees(attributes, "lon", 180.0))
            ways.point_y.append(_degrees(attributes, "lat", 90.0))
            ways.point_signals.append(0)
        elif tag == "way":
            inside = "" if _is_gone(attributes) else "way"
            number = _whole(attributes, "id", "way") if inside else 0
            tags, refs = {}, array("q")
        elif tag == "relation":
            inside = "" if _is_gone(attributes) else "relation"
            tags, members = {}, []
        elif inside == "relation" and tag == "member":
            if len(members) < MOST_MEMBERS:  # of other relations the rest does not count
                member = attributes.get("type", ""), _whole(attributes, "ref", "member"), attributes.get("role", "")
                members.append(member)
        elif inside == "way" and tag == "nd":
            refs.append(_whole(attributes, "ref", "nd"))
        elif inside == "node" and tag == "tag":
            if attributes.get("k") == "highway" and attributes.get("v") == SIGNALS_TAG:
                ways.point_signals[-1] = 1
        elif inside in {"way", "relation"} and tag == "tag":
            tags[attributes.get("k", "")] = attributes.get("v", "")
            if len(tags) > _MAX_TAGS:
                raise Halt(f"more than {_MAX_TAGS} tags on one {inside}")

    def end(tag: str) -> None:
        nonlocal inside
        if tag == "way" and inside == "way":
            ways.add_way(number, tags, refs)
        elif tag == "relation" and inside == "relation" and tags.get("type") == RELATION:
            ways.add_restriction(tags, members)
        if tag in {"node", "way", "relation"}:
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
    pbf.read_ways(COLUMNS, ways.add_table, RELATION, ways.add_restriction)
    if not ways.refs:
        return
    ids = np.sort(np.frombuffer(ways.refs, dtype=np.int64))  # faster than np.unique, which hashes
    ids = ids[np.concatenate(([True], ids[1:] != ids[:-1]))]
    lon, lat, signals = pbf.places(ids, ("highway", SIGNALS_TAG))
    known = ~np.isnan(lon)
    ways.point_ids.frombytes(ids[known].tobytes())
    ways.point_x.frombytes(lon[known].tobytes())
    ways.point_y.frombytes(lat[known].tobytes())
    ways.point_signals.frombytes(signals[known].tobytes())
