"""TNTP, the format of the Transportation Networks for Research collection -> RoadNetwork."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from routesim.arrays import Floats
from routesim.errors import NetworkError
from routesim.roads.importers.assemble import EdgeNumbers, Edges, Nodes, assemble
from routesim.roads.importers.files import read_text, reads_files
from routesim.roads.importers.plausible import warn_of_speeds
from routesim.roads.network import RoadNetwork
from routesim.roads.places import GEOGRAPHIC

SECONDS: Mapping[str, float] = {"s": 1.0, "min": 60.0, "h": 3600.0, "h/100": 36.0}
METRES: Mapping[str, float] = {"m": 1.0, "km": 1000.0, "mi": 1609.344, "ft": 0.3048}
_COLUMNS = ("init_node", "term_node", "capacity", "length", "free_flow_time", "b", "power")
_TOLL_COLUMN = 8  # after `speed`, and often left out
_TOLL, _LENGTH = "TOLL FACTOR", "DISTANCE FACTOR"
_META = re.compile(r"\s*<([^>]*)>\s*(.*)")


@reads_files
def from_tntp(
    net: str | Path,
    nodes: str | Path | None = None,
    *,
    time_unit: str | None = None,
    length_unit: str | None = None,
    name: str | None = None,
    max_bytes: int | None = None,
) -> RoadNetwork:
    """Read a `*_net.tntp` file, and a `*_node.tntp` or GeoJSON file of node places where there is one.

    Nodes are labelled by their numbers. Zones numbered below FIRST THRU NODE are marked `no_through`: trips
    start and end there and never pass. `time_unit` ("s", "min", "h", "h/100") is what one unit of free flow
    time means and `length_unit` ("m", "km", "mi", "ft") one of length; without them the units the file's
    header states, else minutes and miles, and a warning where that makes speeds that cannot be true. Capacity is
    per hour as it stands; b and power become `bpr_alpha` and `bpr_beta`. Tolls and weights of length, where the file
    has them, are no part of the network, and counted in `left_out`: `read_tntp_costs` returns them.
    """
    lines = read_text(net, "TNTP network", max_bytes=max_bytes).splitlines()
    meta, start = _metadata(lines, str(net))
    time, time_stated = _unit("time_unit", time_unit, SECONDS, meta, "Free Flow Time", "min")
    length, length_stated = _unit("length_unit", length_unit, METRES, meta, "Length", "mi")
    seconds, metres = SECONDS[time], METRES[length]
    n_nodes, n_links = _count(meta, "NUMBER OF NODES", str(net)), _count(meta, "NUMBER OF LINKS", str(net))
    first_through = _count(meta, "FIRST THRU NODE", str(net)) if "FIRST THRU NODE" in meta else 1
    if n_nodes > len(lines) * 2 + 2:
        raise NetworkError(f"{net}: {n_nodes} nodes cannot be joined by {len(lines)} lines of links")
    rows = _links(lines, start, str(net), n_nodes)
    if len(rows) != n_links:
        raise NetworkError(f"{net} announces {n_links} links and holds {len(rows)}; it breaks off or is damaged")
    x, y, crs = _places(nodes, n_nodes, max_bytes)
    ends = rows[:, :2].astype(np.int64) - 1
    priced = _costs(lines, start, str(net), rows, _weight(meta, _TOLL, str(net)), _weight(meta, _LENGTH, str(net)))[1]
    try:
        network = assemble(
            Nodes(range(1, n_nodes + 1), x, y, no_through=np.arange(1, n_nodes + 1) < first_through),
            Edges(ends[:, 0], ends[:, 1], names=[""] * len(rows), highways=[""] * len(rows)),
            EdgeNumbers(
                length_m=rows[:, 3] * metres,
                free_flow_s=rows[:, 4] * seconds,
                capacity_vph=rows[:, 2],
                bpr_alpha=rows[:, 5],
                bpr_beta=rows[:, 6],
            ),
            crs=crs,
            name=Path(net).name.removesuffix(".tntp").removesuffix("_net") if name is None else name,
            left_out={"costs beside time of links": int(np.count_nonzero(priced))} if priced.any() else {},
        )
    except NetworkError as error:
        raise NetworkError(f"{net}: {error}") from None
    stated = {True: "as stated", False: "which is assumed, as the file states none"}
    warn_of_speeds(
        network,
        str(net),
        {
            "time_unit": {unit: seconds / other for unit, other in SECONDS.items()},
            "length_unit": {unit: other / metres for unit, other in METRES.items()},
        },
        f"times in {time} ({stated[time_stated]}) and lengths in {length} ({stated[length_stated]})",
    )
    return network


class TntpCosts(NamedTuple):
    """What links of a TNTP file cost beside their time, in the order of the edges of `from_tntp`.

    `toll` and `length` are in the units of the file, and a weight is how many seconds one unit of them counts.
    """

    toll: Floats
    length: Floats
    toll_weight_s: float
    length_weight_s: float

    @property
    def edge_cost_s(self) -> Floats:
        """What each edge costs beside its time, in seconds."""
        return self.toll * self.toll_weight_s + self.length * self.length_weight_s


@reads_files
def read_tntp_costs(
    net: str | Path,
    *,
    toll_weight: float | None = None,
    length_weight: float | None = None,
    time_unit: str | None = None,
    max_bytes: int | None = None,
) -> TntpCosts:
    """Read tolls and lengths of a `*_net.tntp` file, and how much they count against time.

    `toll_weight` and `length_weight` are units of time for one unit of toll and of length, as the descriptions of the
    collection state them; without them the file's <TOLL FACTOR> and <DISTANCE FACTOR> count, else nothing.
    """
    lines = read_text(net, "TNTP network", max_bytes=max_bytes).splitlines()
    meta, start = _metadata(lines, str(net))
    seconds = SECONDS[_unit("time_unit", time_unit, SECONDS, meta, "Free Flow Time", "min")[0]]
    rows = _links(lines, start, str(net), _count(meta, "NUMBER OF NODES", str(net)))
    weights = []
    for keyword, given, key in (("toll_weight", toll_weight, _TOLL), ("length_weight", length_weight, _LENGTH)):
        if given is not None and not (math.isfinite(given) and given >= 0):
            raise NetworkError(f"{keyword} must be a number, at least 0, got {given}")
        weights.append(_weight(meta, key, str(net)) if given is None else float(given))
    toll, _ = _costs(lines, start, str(net), rows, 1.0, 0.0)
    return TntpCosts(toll, rows[:, 3], weights[0] * seconds, weights[1] * seconds)


def _costs(
    lines: list[str], start: int, where: str, rows: Floats, toll_weight: float, length_weight: float
) -> tuple[Floats, Floats]:
    """Return the toll of every link, and its weighed cost; tolls without a weight are not looked at."""
    toll = np.zeros(len(rows))
    if toll_weight:
        for i, (number, fields) in enumerate(_fields(lines, start)):
            text = fields[_TOLL_COLUMN] if len(fields) > _TOLL_COLUMN else "0"
            try:
                toll[i] = float(text)
            except ValueError:
                toll[i] = math.nan
            if not (math.isfinite(toll[i]) and toll[i] >= 0):
                raise NetworkError(f"{where} line {number}: toll must be a number, at least 0, got {text!r:.40}")
    return toll, toll * toll_weight + rows[:, 3] * length_weight


def _weight(meta: Mapping[str, str], key: str, where: str) -> float:
    text = meta.get(key, "0") or "0"
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight >= 0):
        raise NetworkError(f"{where}: <{key}> must be a number, at least 0, got {text!r:.40}")
    return weight


def _unit(
    keyword: str,
    given: str | None,
    known: Mapping[str, float],
    meta: Mapping[str, str],
    column: str,
    default: str,
) -> tuple[str, bool]:
    """Return a unit, and whether the caller or the file states it."""
    if given is not None:
        if given not in known:
            raise NetworkError(f"{keyword} must be one of {', '.join(known)}, got {given!r}")
        return given, True
    stated = re.search(rf"{column} \(([^)]{{1,20}})\)", meta.get("ORIGINAL HEADER", ""))
    return (stated[1], True) if stated and stated[1] in known else (default, False)


def _metadata(lines: list[str], where: str) -> tuple[dict[str, str], int]:
    meta: dict[str, str] = {}
    for number, line in enumerate(lines):
        match = _META.match(line)
        if match and match[1].strip().upper() == "END OF METADATA":
            return meta, number + 1
        if match:
            meta[match[1].strip().upper()] = match[2].strip().lstrip("~").strip()
    raise NetworkError(f"{where} has no line <END OF METADATA>; it is no TNTP network")


def _count(meta: Mapping[str, str], key: str, where: str) -> int:
    try:
        value = int(meta[key])
    except KeyError:
        raise NetworkError(f"{where} does not state <{key}>") from None
    except ValueError:
        raise NetworkError(f"{where}: <{key}> must be a whole number, got {meta[key]!r:.40}") from None
    if not 1 <= value <= 2**31 - 2:
        raise NetworkError(f"{where}: <{key}> must be at least 1, got {value}")
    return value


def _fields(lines: list[str], start: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of every line with a link, and what stands in it."""
    for number, line in enumerate(lines[start:], start + 1):
        content = line.partition(";")[0].strip()
        if content and not content.startswith("~"):
            yield number, content.split()


def _links(lines: list[str], start: int, where: str, n_nodes: int) -> Floats:
    rows: list[list[float]] = []
    for number, fields in _fields(lines, start):
        try:
            row = [float(field) for field in fields[: len(_COLUMNS)]]
        except ValueError:
            raise NetworkError(f"{where} line {number} must hold numbers, got {' '.join(fields)!r:.80}") from None
        if len(row) < len(_COLUMNS):
            raise NetworkError(f"{where} line {number} needs {', '.join(_COLUMNS)}, got {len(row)} values")
        for column, value in zip(_COLUMNS, row, strict=True):
            if not math.isfinite(value) or value < 0:
                raise NetworkError(f"{where} line {number}: {column} must be a number, at least 0, got {value}")
        if any(end != int(end) or not 1 <= end <= n_nodes for end in row[:2]):
            raise NetworkError(f"{where} line {number}: nodes must be numbers from 1 to {n_nodes}, got {fields[:2]}")
        rows.append(row)
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(_COLUMNS))


def _places(nodes: str | Path | None, n_nodes: int, max_bytes: int | None) -> tuple[Floats, Floats, str]:
    x, y = np.full(n_nodes, np.nan), np.full(n_nodes, np.nan)
    if nodes is None:
        return x, y, "planar"
    text = read_text(nodes, "TNTP or GeoJSON node", max_bytes=max_bytes)
    geojson = text.lstrip().startswith("{")
    for where, label, lon, lat in _geojson_points(text, nodes) if geojson else _node_rows(text, nodes):
        if not 1 <= label <= n_nodes:
            raise NetworkError(f"{where}: node must be a number from 1 to {n_nodes}, got {label}")
        if not (math.isfinite(lon) and math.isfinite(lat)):
            raise NetworkError(f"{where}: coordinates must be finite numbers, got {lon}, {lat}")
        x[label - 1], y[label - 1] = lon, lat
    with np.errstate(invalid="ignore"):
        geographic = geojson or bool((np.abs(x) <= 180).all() and (np.abs(y) <= 90).all())
    return x, y, GEOGRAPHIC if geographic else "planar"


def _node_rows(text: str, nodes: str | Path) -> list[tuple[str, int, float, float]]:
    rows: list[tuple[str, int, float, float]] = []
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.partition(";")[0].replace(",", " ").split()
        if not fields or fields[0].startswith("~") or (not rows and not fields[0].isdigit()):
            continue
        where = f"{nodes} line {number}"
        try:
            rows.append((where, int(fields[0]), float(fields[1]), float(fields[2])))
        except (ValueError, IndexError):
            raise NetworkError(f"{where} must hold node, x and y, got {line!r:.80}") from None
    return rows


def _geojson_points(text: str, nodes: str | Path) -> list[tuple[str, int, float, float]]:
    try:
        features = json.loads(text)["features"]
        rows = []
        for i, feature in enumerate(features):
            properties = feature["properties"]
            label = properties.get("id", properties.get("node", feature.get("id")))
            lon, lat = feature["geometry"]["coordinates"][:2]
            rows.append((f"{nodes} feature {i}", int(label), float(lon), float(lat)))
        return rows
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise NetworkError(f"{nodes} must be GeoJSON points with an id each: {error!r:.80}") from None
