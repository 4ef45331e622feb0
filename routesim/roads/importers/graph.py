"""networkx graphs and other records of attributes by node and edge -> RoadNetwork, and back."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from routesim.arrays import Floats, Ints
from routesim.errors import NetworkError
from routesim.roads.columns import IMPUTED_BITS
from routesim.roads.importers.assemble import EdgeNumbers, Edges, Lines, Nodes, assemble, number_parallel
from routesim.roads.importers.bans import Bans, json_of
from routesim.roads.importers.defaults import lanes_one_way, parse_lanes, parse_maxspeed
from routesim.roads.network import RoadNetwork
from routesim.roads.places import GEOGRAPHIC
from routesim.roads.signal_times import SignalTimes

if TYPE_CHECKING:
    import networkx as nx

OSM_ATTRIBUTION = (
    "Road data © OpenStreetMap contributors, available under the Open Database License (ODbL) 1.0: "
    "openstreetmap.org/copyright"
)

# The names an attribute may go by, the first found wins.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "free_flow_s": ("free_flow_s", "travel_time"),
    "length_m": ("length_m", "length"),
    "speed_kph": ("speed_kph",),
    "capacity_vph": ("capacity_vph", "capacity"),
    "bpr_alpha": ("bpr_alpha", "alpha"),
    "bpr_beta": ("bpr_beta", "beta"),
}
# What OpenStreetMap, and osmnx after it, call the `highway` of a node with traffic signals.
SIGNALS_TAG = "traffic_signals"


class Edge(NamedTuple):
    """One edge of a graph: indices of its ends, its key, what it says.

    `sense` is 0 for a directed edge, 1 and -1 for the two directions of an undirected one.
    """

    tail: int
    head: int
    key: object
    data: Mapping[str, Any]
    sense: int = 0


def from_networkx(graph: nx.Graph, *, largest_component: bool = False, name: str | None = None) -> RoadNetwork:
    """Take any networkx graph; an undirected edge becomes one edge in each direction.

    The free-flow time of an edge is `free_flow_s`, else `travel_time`, else `length_m` or `length` (metres)
    over `speed_kph`, `maxspeed` or the default speed of its `highway`. Optional: `capacity_vph` or
    `capacity` (vehicles an hour), `bpr_alpha` or `alpha`, `bpr_beta` or `beta`, `lanes`, `name`, `highway`,
    `geometry`. Nodes may carry `x` and `y` (or `lon` and `lat`); they are longitude and latitude unless the
    graph's `crs` says otherwise or they lie outside ±180, ±90. Nodes whose `highway` is "traffic_signals" have
    signals; known programmes are in the graph's `signal_times`, and banned turns in its `banned_turns`, as
    `to_networkx` writes them. Graphs of osmnx know no bans, and `bans_known` is False. Labels are kept; edges are in
    the order networkx lists them.
    """
    if not all(hasattr(graph, needed) for needed in ("nodes", "edges", "is_directed", "is_multigraph")):
        raise NetworkError(f"from_networkx needs a networkx graph, got {type(graph).__name__}")
    labels = list(graph.nodes)
    index = {label: i for i, label in enumerate(labels)}
    edges: list[Edge] = []
    for u, v, *rest in graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True):
        key, data = (rest[0], rest[1]) if len(rest) == 2 else (0, rest[0])
        edges.append(Edge(index[u], index[v], key, data, 0 if graph.is_directed() else 1))
        if not graph.is_directed() and u != v:
            edges.append(Edge(index[v], index[u], key, data, -1))
    network = network_from_records(labels, [graph.nodes[label] for label in labels], edges, graph.graph, name=name)
    return network.largest_component() if largest_component else network


def network_from_records(
    labels: Sequence[Hashable],
    nodes: Sequence[Mapping[str, Any]],
    edges: Sequence[Edge],
    graph: Mapping[str, Any],
    *,
    name: str | None = None,
) -> RoadNetwork:
    """Build a network from what each node and edge says of itself."""
    edges = _in_stored_order(edges)
    n = len(edges)
    x, y = _coordinates(labels, nodes)
    crs = _crs(graph.get("crs"), x, y)
    tails = np.fromiter((edge.tail for edge in edges), dtype=np.int64, count=n)
    heads = np.fromiter((edge.head for edge in edges), dtype=np.int64, count=n)
    columns = {column: np.full(n, np.nan) for column in (*_NAMES, "lanes")}
    flags = np.zeros(n, dtype=np.uint8)
    names, highways, shapes = [], [], []
    for e, edge in enumerate(edges):
        reader = _EdgeReader(edge, labels)
        for column, candidates in _NAMES.items():
            columns[column][e] = reader.number(candidates)
        columns["lanes"][e] = reader.lanes()
        if math.isnan(columns["speed_kph"][e]):
            columns["speed_kph"][e] = reader.maxspeed()
        names.append(reader.text("name", "; "))
        highways.append(reader.text("highway", None))
        if math.isnan(columns["free_flow_s"][e]):
            reader.need_time(columns["length_m"][e], columns["speed_kph"][e], highways[-1])
        flags[e] = reader.flags()
        shapes.append(reader.shape(x, y))
    no_through = np.array([_truth(node.get("no_through")) for node in nodes], dtype=np.bool_)
    signals = np.array([SIGNALS_TAG in _several(node.get("highway")) for node in nodes], dtype=np.bool_)
    return assemble(
        Nodes(labels, x, y, no_through, signals),
        Edges(tails, heads, names, highways, _keys(edges, tails, heads), _times(graph, edges), _bans(graph, edges)),
        EdgeNumbers(**columns, imputed_bits=flags),
        Lines.joined(shapes),
        crs=crs,
        name=name if name is not None else _text(graph.get("name")),
        attribution=_text(graph.get("attribution")) or _found_attribution(graph, edges),
    )


def to_networkx(network: RoadNetwork) -> nx.MultiDiGraph:
    """Return a MultiDiGraph; `from_networkx` turns it back into the same network."""
    import networkx as nx
    from shapely import LineString

    graph = nx.MultiDiGraph(**graph_data(network))
    labels = network.labels
    graph.add_nodes_from(zip(labels, node_data(network), strict=True))
    for e, data in enumerate(edge_data(network)):
        line = network.shape_xy[network.shape_offsets[e] : network.shape_offsets[e + 1]]
        if len(line):
            data["geometry"] = LineString(line)
        graph.add_edge(labels[network.tails[e]], labels[network.heads[e]], key=int(network.keys[e]), **data)
    return graph


def graph_data(network: RoadNetwork) -> dict[str, Any]:
    """Return what the network says of itself, as graph attributes."""
    about = {
        "crs": network.crs,
        "name": network.name,
        "attribution": network.attribution,
        "created_with": "routesim",
        "simplified": True,
    }
    about |= {"bans_known": network.bans_known}
    about |= {"banned_turns": json_of(network.bans)} if network.bans else {}
    return about | {"signal_times": network.signal_times.to_json()} if len(network.signal_times) else about


def node_data(network: RoadNetwork) -> list[dict[str, Any]]:
    """Return what each node says of itself, leaving out what is unknown."""
    rows: list[dict[str, Any]] = []
    columns = (network.x, network.y, network.no_through, network.signals)
    for x, y, closed, signals in zip(*(column.tolist() for column in columns), strict=True):
        row: dict[str, Any] = {} if math.isnan(x) else {"x": x, "y": y}
        if closed:
            row["no_through"] = True
        if signals:
            row["highway"] = SIGNALS_TAG
        rows.append(row)
    return rows


def edge_data(network: RoadNetwork) -> list[dict[str, Any]]:
    """Return what each edge says of itself, without its line: osmnx's names beside routesim's own."""
    columns = {
        "length": network.length_m,
        "travel_time": network.free_flow_s,
        "length_m": network.length_m,
        "free_flow_s": network.free_flow_s,
        "speed_kph": network.speed_kph,
        "lanes_one_way": network.lanes,
        "capacity_vph": network.capacity_vph,
        "bpr_alpha": network.bpr_alpha,
        "bpr_beta": network.bpr_beta,
    }
    rows: list[dict[str, Any]] = [{"edge_index": e} for e in range(network.n_edges)]
    for column, values in columns.items():
        for row, value in zip(rows, values.tolist(), strict=True):
            if not math.isnan(value):
                row[column] = value
    for row, name, highway, bits in zip(
        rows, network.names, network.highways, network.imputed_bits.tolist(), strict=True
    ):
        if name:
            row["name"] = name
        if highway:
            row["highway"] = highway
        row["imputed"] = " ".join(flag for flag, bit in IMPUTED_BITS.items() if bits & bit)
    return rows


class _EdgeReader:
    """Reads what one edge says of itself, with errors that name the edge and the attribute."""

    def __init__(self, edge: Edge, labels: Sequence[Hashable]) -> None:
        self.edge, self.data = edge, edge.data
        self.where = f"edge {labels[edge.tail]!r} to {labels[edge.head]!r} (key {edge.key!r})"

    def number(self, candidates: Sequence[str]) -> float:
        for candidate in candidates:
            value = self.data.get(candidate)
            if value is None or (isinstance(value, str) and not value):
                continue
            try:
                number = float(value)
            except (TypeError, ValueError, OverflowError):
                raise NetworkError(f"{candidate} must be a number, got {value!r} on {self.where}") from None
            if not math.isfinite(number):
                raise NetworkError(f"{candidate} must be a finite number, got {number} on {self.where}")
            return number
        return math.nan

    def maxspeed(self) -> float:
        speeds = [parse_maxspeed(str(value)) for value in _several(self.data.get("maxspeed"))]
        known = [speed for speed in speeds if speed is not None]
        return math.fsum(known) / len(known) if known else math.nan

    def lanes(self) -> float:
        exact = self.number(("lanes_one_way",))
        if not math.isnan(exact):
            return exact
        known = [v for v in (parse_lanes(str(value)) for value in _several(self.data.get("lanes"))) if v]
        if not known:
            return math.nan
        # Only OSM's tag, which osmnx passes on beside `oneway`, counts the lanes of both directions.
        return lanes_one_way(min(known), two_way=not _truth(self.data.get("oneway", True)))

    def text(self, attribute: str, joint: str | None) -> str:
        values = [_text(value) for value in _several(self.data.get(attribute))]
        if not values:
            return ""
        return values[0] if joint is None else joint.join(values)

    def flags(self) -> int:
        stated = self.data.get("imputed")
        if not isinstance(stated, str):
            return 0
        return sum(IMPUTED_BITS.get(flag, 0) for flag in set(stated.split()))

    def need_time(self, length: float, speed: float, highway: str) -> None:
        if math.isnan(length):
            raise NetworkError(
                f"{self.where} has no free_flow_s: give free_flow_s or travel_time in seconds, or length in "
                "metres with speed_kph; 'length' is missing"
            )
        if math.isnan(speed) and not highway:
            raise NetworkError(
                f"{self.where} has no free_flow_s: give free_flow_s or travel_time in seconds, or speed_kph, "
                "maxspeed or highway beside its length; 'speed_kph' is missing"
            )

    def shape(self, x: Floats, y: Floats) -> Floats:
        geometry = self.data.get("geometry")
        if geometry is None or (isinstance(geometry, str) and not geometry):
            return np.empty((0, 2))
        points = parse_linestring(geometry, self.where) if isinstance(geometry, str) else self._line(geometry)
        if self.edge.sense and len(points):
            # The line of an undirected edge may start at either end: turn it to start at this edge's tail.
            tail = (x[self.edge.tail], y[self.edge.tail])
            near_start, near_end = (np.hypot(*(points[i] - tail)) for i in (0, -1))
            if near_end < near_start or (math.isnan(near_start) and self.edge.sense < 0):
                points = points[::-1]
        return points

    def _line(self, geometry: Any) -> Floats:
        try:
            return np.asarray(geometry.coords, dtype=np.float64)[:, :2]
        except (AttributeError, NotImplementedError, TypeError, ValueError, IndexError):
            raise NetworkError(f"geometry must be a line, got {geometry!r:.80} on {self.where}") from None


def parse_linestring(text: str, where: str) -> Floats:
    """Read the points of a LINESTRING in well-known text."""
    kind, bracket, rest = text.strip().partition("(")
    try:
        if kind.strip().upper() != "LINESTRING" or not bracket or not rest.endswith(")"):
            raise ValueError
        points = [[float(number) for number in point.split()[:2]] for point in rest[:-1].split(",")]
        return np.array(points, dtype=np.float64).reshape(len(points), 2)
    except ValueError:
        raise NetworkError(f"geometry must be a LINESTRING, got {text!r:.80} on {where}") from None


def _in_stored_order(edges: Sequence[Edge]) -> Sequence[Edge]:
    """Return edges in the order `edge_index` states, where all of them state one."""
    stored = [edge.data.get("edge_index") for edge in edges]
    if all(type(i) is int for i in stored) and len(set(stored)) == len(stored):
        return sorted(edges, key=lambda edge: edge.data["edge_index"])
    return edges


def _coordinates(labels: Sequence[Hashable], nodes: Sequence[Mapping[str, Any]]) -> tuple[Floats, Floats]:
    columns = []
    for names in (("x", "lon"), ("y", "lat")):
        column = np.full(len(nodes), np.nan)
        for i, node in enumerate(nodes):
            value = next((node[name] for name in names if node.get(name) is not None), None)
            if value is None:
                continue
            try:
                column[i] = float(value)
            except (TypeError, ValueError, OverflowError):
                column[i] = np.nan
            if not math.isfinite(column[i]):
                raise NetworkError(f"{names[0]} must be a finite number, got {value!r} at node {labels[i]!r}")
        columns.append(column)
    return columns[0], columns[1]


def _crs(stated: object, x: Floats, y: Floats) -> str:
    if stated is not None and str(stated).strip():
        text = str(stated).strip()
        geographic = text.upper() in {"EPSG:4326", "WGS84", "OGC:CRS84"} or text.startswith("+proj=longlat")
        return GEOGRAPHIC if geographic else text
    with np.errstate(invalid="ignore"):
        outside = (np.abs(x) > 180).any() or (np.abs(y) > 90).any()
    return "planar" if outside else GEOGRAPHIC


def _keys(edges: Sequence[Edge], tails: Ints, heads: Ints) -> Ints:
    """Keep integer keys; any others are numbered by pair of nodes."""
    if all(type(edge.key) is int and -(2**62) < edge.key < 2**62 for edge in edges):
        return np.array([edge.key for edge in edges], dtype=np.int64)
    return number_parallel(tails, heads)


def _times(graph: Mapping[str, Any], edges: Sequence[Edge]) -> SignalTimes | None:
    """Return the known programmes of signals, whose roads are called by their `edge_index`."""
    stated = graph.get("signal_times")
    return None if stated is None else SignalTimes.from_json(stated, _called(edges, "signal_times"))


def _bans(graph: Mapping[str, Any], edges: Sequence[Edge]) -> Bans:
    """Return the banned turns, whose edges are called by their `edge_index`."""
    stated, known = graph.get("banned_turns"), graph.get("bans_known")
    known = not _found_attribution(graph, edges) if known is None else _truth(known)
    return Bans(known=known) if stated is None else Bans.of_json(stated, _called(edges, "banned_turns"), known=known)


def _called(edges: Sequence[Edge], what: str) -> dict[object, int]:
    """Return the edges by their `edge_index`."""
    called = {
        edge.data.get("edge_index"): e for e, edge in enumerate(edges) if type(edge.data.get("edge_index")) is int
    }
    if len(called) < len(edges):
        raise NetworkError(f"{what} needs an edge_index, a whole number of its own, on every directed edge")
    return called


def _found_attribution(graph: Mapping[str, Any], edges: Sequence[Edge]) -> str:
    from_osm = "osmnx" in str(graph.get("created_with", "")).lower() or any("osmid" in e.data for e in edges)
    return OSM_ATTRIBUTION if from_osm else ""


def _several(value: object) -> list[object]:
    if value is None or (isinstance(value, str) and not value) or (isinstance(value, float) and math.isnan(value)):
        return []
    if isinstance(value, list | tuple | set):
        return [one for one in value if one is not None]
    return [value]


def _text(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return value if isinstance(value, str) else str(value)


def _truth(value: object) -> bool:
    return value.strip().lower() in {"true", "yes", "1"} if isinstance(value, str) else bool(value)
