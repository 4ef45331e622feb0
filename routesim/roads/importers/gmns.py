"""GMNS, a folder with node.csv and link.csv -> RoadNetwork."""

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

import numpy as np

from routesim.arrays import Bools, Floats
from routesim.errors import NetworkError
from routesim.roads.importers.assemble import EdgeNumbers, Edges, Lines, Nodes, assemble
from routesim.roads.importers.files import reads_files
from routesim.roads.importers.gmns_signals import Signals, SignalTables, signal_nodes
from routesim.roads.importers.gmns_tables import Row, is_for_cars, number, plain_id, read_table
from routesim.roads.importers.gmns_vdf import volume_delay
from routesim.roads.importers.gmns_zones import nodes_without_through_traffic
from routesim.roads.importers.graph import parse_linestring
from routesim.roads.importers.plausible import warn_of_speeds
from routesim.roads.importers.tntp import METRES
from routesim.roads.network import RoadNetwork
from routesim.roads.places import GEOGRAPHIC, haversine_m

_KPH: Mapping[str, float] = {"km/h": 1.0, "kph": 1.0, "mph": 1.609344, "m/s": 3.6}
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,999}", re.ASCII)


@reads_files
def from_gmns(
    folder: str | Path,
    *,
    length_unit: str | None = None,
    speed_unit: str | None = None,
    largest_component: bool = False,
    name: str | None = None,
    max_bytes: int | None = None,
) -> RoadNetwork:
    """Read the roads for cars from GMNS tables.

    The format leaves units to its `config.csv`, which many data sets lack. Without `length_unit` ("m",
    "km", "mi", "ft") and without config.csv, the unit is the one with which the stated lengths fit the
    lines drawn, and `speed_unit` ("km/h", "mph", "m/s") goes with it. Capacity is per lane and hour, as the
    format says. Links whose `directed` is false lead both ways; links whose `allowed_uses` name no car are
    left out. The volume-delay function is that of the columns `vdf_…`, as `routesim.roads.importers.gmns_vdf` reads
    them. Centroids of zones, and places that only connectors touch, carry no through traffic: see
    `routesim.roads.importers.gmns_zones`.

    Nodes have signals where their `ctrl_type`, or that of a movement, says so. Their programmes are those of the signal
    tables; a node for which these are not complete keeps the default programme, and a warning counts them.
    `routesim.roads.importers.gmns_signals` says how the tables are read. Turns from a link of which movement.csv speaks
    are banned unless a movement of cars is for them.
    """
    directory = Path(folder)
    if not directory.is_dir():
        raise NetworkError(f"{folder} is no folder; give the one that holds node.csv and link.csv")
    units = _configured(directory, max_bytes)
    for what, given, known in (("length", length_unit, METRES), ("speed", speed_unit, _KPH)):
        if given is not None and given not in known:
            raise NetworkError(f"{what}_unit must be one of {', '.join(known)}, got {given!r}")
        if given is not None:
            units[what] = given
    node_file, link_file = directory / "node.csv", directory / "link.csv"
    nodes = read_table(node_file, ("node_id", "x_coord", "y_coord"), max_bytes)
    links = read_table(link_file, ("from_node_id", "to_node_id", "length"), max_bytes)
    labels, x, y = _nodes(nodes, str(node_file))
    geographic = not ((np.abs(x) > 180).any() or (np.abs(y) > 90).any())
    reader = _Links(labels, x, y, str(link_file), geographic)
    for line, row in links:
        reader.add(line, row)
    closed = nodes_without_through_traffic(nodes, reader.ends, [kind for _, kind in reader.texts])
    signals = SignalTables(directory, max_bytes).read(signal_nodes(nodes), reader.index, reader.links, reader.ends)
    try:
        network = reader.network(units, signals, closed, GEOGRAPHIC if geographic else "planar", name or directory.name)
    except NetworkError as error:
        raise NetworkError(f"{link_file}: {error}") from None
    return network.largest_component() if largest_component else network


class _Links:
    """Collects links row by row; lengths and speeds stay in the file's units until all are known."""

    def __init__(self, labels: Sequence[Hashable], x: Floats, y: Floats, where: str, geographic: bool) -> None:
        self.labels, self.x, self.y, self.where, self.geographic = labels, x, y, where, geographic
        self.index = {str(label): i for i, label in enumerate(labels)}
        self.links: dict[str, list[int]] = {}  # the edges of each link_id, none if it is not for cars
        self.ends: list[tuple[int, int]] = []
        self.numbers: list[tuple[float, ...]] = []
        self.texts: list[tuple[str, str]] = []
        self.shapes: list[Floats] = []

    def add(self, line: int, row: Mapping[str, str]) -> None:
        link = plain_id(row.get("link_id", ""))
        edges = self.links.setdefault(link, []) if link else []
        if not is_for_cars(row):
            return
        where = f"{self.where} line {line}"
        ends = []
        for column in ("from_node_id", "to_node_id"):
            label = plain_id(row[column])
            if label not in self.index:
                raise NetworkError(f"{where}: there is no node {row[column]!r:.40} for {column}")
            ends.append(self.index[label])
        capacity, lanes = number(row, "capacity", where), number(row, "lanes", where)
        if not math.isnan(capacity):
            capacity *= 1.0 if math.isnan(lanes) else lanes
        delay = volume_delay(row, where)
        numbers = (
            number(row, "length", where),
            number(row, "free_speed", where),
            lanes or math.nan,
            delay.capacity_vph if math.isnan(capacity or math.nan) else capacity,
            delay.alpha,
            delay.beta,
            delay.free_flow_s,
        )
        if math.isnan(numbers[0]):
            raise NetworkError(f"{where}: length is missing")
        highway = row.get("facility_type") or row.get("link_type_name") or ""
        drawn = row.get("geometry", "").strip()
        shape = parse_linestring(drawn, where) if drawn else np.empty((0, 2))
        edges.append(len(self.ends))
        self._push((ends[0], ends[1]), numbers, (row.get("name", ""), highway), shape)
        if row.get("directed", "").strip().lower() in {"false", "0", "no"} and ends[0] != ends[1]:
            edges.append(len(self.ends))
            self._push((ends[1], ends[0]), numbers, (row.get("name", ""), highway), shape[::-1])

    def _push(
        self,
        ends: tuple[int, int],
        numbers: tuple[float, ...],
        texts: tuple[str, str],
        shape: Floats,
    ) -> None:
        self.ends.append(ends)
        self.numbers.append(numbers)
        self.texts.append(texts)
        self.shapes.append(shape)

    def network(
        self, units: Mapping[str, str], signals: Signals, no_through: Bools, crs: str, name: str
    ) -> RoadNetwork:
        if not self.ends:
            raise NetworkError("no link for cars")
        ends = np.array(self.ends, dtype=np.int64)
        numbers = np.array(self.numbers, dtype=np.float64)
        length_unit = units.get("length") or self._fitting_unit(numbers[:, 0], ends)
        speed_unit = units.get("speed") or ("mph" if length_unit in {"mi", "ft"} else "km/h")
        speed = numbers[:, 1] * _KPH[speed_unit]
        network = assemble(
            Nodes(self.labels, self.x, self.y, no_through, signals.nodes),
            Edges(
                ends[:, 0],
                ends[:, 1],
                names=[name for name, _ in self.texts],
                highways=[highway for _, highway in self.texts],
                signal_times=signals.times,
                bans=signals.bans,
            ),
            EdgeNumbers(
                numbers[:, 0] * METRES[length_unit],
                speed_kph=np.where(speed > 0, speed, np.nan),
                lanes=numbers[:, 2],
                capacity_vph=numbers[:, 3],
                bpr_alpha=numbers[:, 4],
                bpr_beta=numbers[:, 5],
                free_flow_s=numbers[:, 6],
            ),
            Lines.joined(self.shapes),
            crs=crs,
            name=name,
        )
        factors = {unit: kph / _KPH[speed_unit] for unit, kph in _KPH.items() if unit != "kph"}
        warn_of_speeds(network, self.where, {"speed_unit": factors}, f"speeds in {speed_unit}")
        return network

    def _fitting_unit(self, stated: Floats, ends: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> str:
        """Return the unit with which stated lengths are nearest to measured ones."""
        measured = np.array([self._measure(e, ends) for e in range(len(ends))])
        with np.errstate(invalid="ignore"):
            fit = (stated > 0) & (measured > 1.0)
        if fit.any():
            ratio = float(np.median(measured[fit] / stated[fit]))
            for unit, metres in METRES.items():
                if 0.8 < ratio / metres < 1.25:
                    return unit
        raise NetworkError(
            "the unit of length is not stated and none fits the lines; pass length_unit (m, km, mi or ft)"
        )

    def _measure(self, e: int, ends: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> float:
        points = self.shapes[e]
        if len(points) == 0:
            points = np.column_stack((self.x[ends[e]], self.y[ends[e]]))
        x, y = points[:, 0], points[:, 1]
        if not self.geographic:
            return float(np.hypot(np.diff(x), np.diff(y)).sum())
        return float(haversine_m(x[:-1], y[:-1], x[1:], y[1:]).sum())


def _configured(directory: Path, max_bytes: int | None) -> dict[str, str]:
    file = directory / "config.csv"
    units: dict[str, str] = {}
    if file.is_file():
        spelled = {"miles": "mi", "mile": "mi", "feet": "ft", "meters": "m", "meter": "m", "metres": "m"}
        spelled |= {"kilometers": "km", "kilometres": "km", "kmh": "km/h", "kph": "km/h"}
        for _, row in read_table(file, (), max_bytes)[:1]:
            for what, column, known in (("length", "long_length", METRES), ("speed", "speed", _KPH)):
                unit = row.get(column, "").strip().lower()
                unit = spelled.get(unit, unit)
                if unit in known:
                    units[what] = unit
    return units


def _nodes(rows: Sequence[Row], where: str) -> tuple[list[Hashable], Floats, Floats]:
    if not rows:
        raise NetworkError(f"{where} holds no node")
    ids = [plain_id(row["node_id"]) for _, row in rows]
    seen: set[str] = set()
    x, y = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    for i, (line, row) in enumerate(rows):
        if not ids[i]:
            raise NetworkError(f"{where} line {line}: node_id is missing")
        if ids[i] in seen:
            raise NetworkError(f"{where} line {line}: node {ids[i]!r:.40} a second time")
        seen.add(ids[i])
        x[i] = number(row, "x_coord", f"{where} line {line}", signed=True)
        y[i] = number(row, "y_coord", f"{where} line {line}", signed=True)
    whole = all(_WHOLE.fullmatch(text) for text in ids)
    return [int(text) for text in ids] if whole else list(ids), x, y
