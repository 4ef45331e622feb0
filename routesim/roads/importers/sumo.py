"""SUMO nets (.net.xml, .net.xml.gz) -> RoadNetwork, with the ids of SUMO's edges and the turns it connects.

lanes      The lanes of an edge on which cars ("passenger") may drive; an edge without any is left out, as are internal
           edges, crossings and walking areas.
speed      The highest speed of these lanes.
length     As stated of the lanes: from the rim of one junction to the rim of the next.
line       The edge's shape, taken on to the places of its junctions; in degrees where the net states its projection.
class      The part of the edge's type after "highway.", else the type itself.
signals    Junctions whose type begins with "traffic_light"; `routesim.roads.importers.sumo_signals` reads programmes.
turns      Those the net does not connect for cars are banned, but for the ones that `to_sumo` left in the parameters.
capacity   A net has none: filled in by class and lanes, and marked, unless `to_sumo` left it in the edge's parameters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from routesim.arrays import Bools, Floats, Ints
from routesim.errors import NetworkError
from routesim.roads.columns import IMPUTED_BITS
from routesim.roads.edits import connected_nodes
from routesim.roads.importers.assemble import EdgeNumbers, Edges, Lines, Nodes, assemble
from routesim.roads.importers.bans import Bans, missing_connections
from routesim.roads.importers.files import existing_file, reads_files
from routesim.roads.importers.labels import decode_label
from routesim.roads.importers.safexml import Halt, read_xml
from routesim.roads.importers.sumo_fields import for_cars, index, needed, number, points_of, positive
from routesim.roads.importers.sumo_places import Projection
from routesim.roads.importers.sumo_signals import Links, Programmes
from routesim.roads.network import RoadNetwork

MAX_EDGES = 1_000_000  # more than the nets of whole countries have
_CONNECTIONS_PER_EDGE = 8
_MOST_LANES = 64
_MOST_PARAMETERS = 100
_NOT_ROADS = frozenset({"internal", "crossing", "walkingarea"})
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
# What `to_sumo` leaves in the parameters of edges and junctions, as SUMO itself has no place for it.
KEPT_NUMBERS = ("capacity_vph", "bpr_alpha", "bpr_beta")
KEPT_FLAGS, KEPT_CLASS, KEPT_LABEL, KEPT_CLOSED = "imputed", "highway", "label", "no_through"
# Edges onto which one may turn though the net has no connection; ways whose first edge it is, each followed by a comma.
KEPT_TURNS, KEPT_WAYS, KEPT_UNKNOWN = "turns", "banned_ways", "bans_unknown"
_KEPT = frozenset((*KEPT_NUMBERS, KEPT_FLAGS, KEPT_CLASS, KEPT_TURNS, KEPT_WAYS, KEPT_UNKNOWN))


@dataclass(frozen=True, eq=False)
class SumoNet:
    """A net as it was read: edge `e` of `network` is SUMO's edge `ids[e]`.

    Row (e, f) of `connections` says that SUMO lets cars go on from edge `e` to edge `f`. `actuated` counts the
    programmes of signals that depend on traffic and were read as fixed ones.
    """

    network: RoadNetwork
    ids: tuple[str, ...]
    connections: Ints
    actuated: int = 0

    def missing_connections(self) -> Ints:
        """Return the pairs (e, f) of edges that meet at a node and that SUMO does not connect, U-turns included."""
        return missing_connections(self.network.tails, self.network.heads, self.connections)


def from_sumo(
    path: str | Path,
    *,
    largest_component: bool = False,
    name: str | None = None,
    max_bytes: int | None = None,
    max_edges: int = MAX_EDGES,
) -> RoadNetwork:
    """Read the roads for cars of a SUMO net (.net.xml or .net.xml.gz).

    Lanes, speeds, lengths, lines, names, classes and signals with their programmes are those of the net, read by the
    rules above. Ids of junctions become labels, whole numbers where all of them are; edges are in the order of the
    file, or of their ids where all of these are whole numbers, as `to_sumo` writes them. `read_sumo` returns the ids of
    the edges too, and every turn that the net does not connect, which is one of `banned_turns`. All roads are kept
    unless `largest_component` is True. `max_bytes` limits the size once decompressed (1 GiB unless given).
    """
    net = read_sumo(path, largest_component=largest_component, name=name, max_bytes=max_bytes, max_edges=max_edges)
    return net.network


@reads_files
def read_sumo(
    path: str | Path,
    *,
    largest_component: bool = False,
    name: str | None = None,
    max_bytes: int | None = None,
    max_edges: int = MAX_EDGES,
) -> SumoNet:
    """Read a SUMO net as `from_sumo` does, with what a network has no place for."""
    file = existing_file(path, "SUMO net (.net.xml, .net.xml.gz)")
    document = _NetFile(max_edges)
    read_xml(file, document.start, document.end, max_bytes=max_bytes)
    try:
        net = document.net(file.name.split(".")[0] if name is None else name)
        net = _largest(net) if largest_component else net
    except NetworkError as error:
        raise NetworkError(f"{file}: {error}") from None
    document.programmes.warn(str(file))
    return net


def _largest(net: SumoNet) -> SumoNet:
    """Keep the largest component, as `RoadNetwork.largest_component` does."""
    while not (kept := connected_nodes(net.network)).all():
        net = _part(net, kept)
    return net


def _part(net: SumoNet, kept: Bools) -> SumoNet:
    network = net.network
    edges = np.flatnonzero(kept[network.tails] & kept[network.heads])
    if len(edges) == 0:
        raise NetworkError("no road leads from any junction to another and back; leave largest_component False")
    position = np.full(network.n_edges, -1, dtype=np.int64)
    position[edges] = np.arange(len(edges))
    turns = position[net.connections]
    return SumoNet(
        network.subnetwork(edges, nodes=np.flatnonzero(kept)),
        tuple(net.ids[e] for e in edges.tolist()),
        turns[(turns >= 0).all(axis=1)],
        net.actuated,
    )


@dataclass(slots=True)
class _SumoEdge:
    """One edge of a net as its elements say it."""

    key: str
    ends: tuple[str, str]
    name: str
    highway: str
    shape: Floats
    cars: list[bool] = field(default_factory=list)  # by lane
    speed: float = 0.0  # of the lanes for cars, metres a second
    length: float = math.nan
    parameters: dict[str, str] = field(default_factory=dict)


class _NetFile:
    """Collects what a net holds, in whatever order."""

    def __init__(self, max_edges: int) -> None:
        self.max_edges = max_edges
        self.open: list[str] = []
        self.projection = Projection()
        self.edges: dict[str, _SumoEdge | None] = {}  # None is no road
        self.edge: _SumoEdge | None = None
        self.junctions: dict[str, tuple[float, float]] = {}
        self.signals: set[str] = set()
        self.labels: dict[str, str] = {}
        self.closed: set[str] = set()
        self.junction = ""
        self.connections: list[tuple[str, str, int, int, str, int]] = []
        self.programmes = Programmes()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        inside = self.open[-1] if self.open else ""
        if not self.open and tag != "net":
            raise Halt(f"the file must hold <net>, got <{tag:.40}>; give what netconvert writes as .net.xml")
        self.open.append(tag)
        depth = len(self.open)
        if depth == 2:
            if tag == "location":
                self.projection.read(attributes)
            elif tag == "edge":
                self._start_edge(attributes)
            elif tag == "junction":
                self._start_junction(attributes)
            elif tag == "tlLogic":
                self.programmes.start(attributes)
            elif tag == "connection":
                self._add_connection(attributes)
        elif depth == 3:
            if tag == "lane" and inside == "edge" and self.edge is not None:
                self._add_lane(self.edge, attributes)
            elif tag == "phase" and inside == "tlLogic":
                self.programmes.add_phase(attributes)
            elif tag == "param" and inside == "edge" and self.edge is not None:
                if len(self.edge.parameters) >= _MOST_PARAMETERS:
                    raise Halt(f"more than {_MOST_PARAMETERS} parameters of edge {self.edge.key!r:.60}")
                if attributes.get("key") in _KEPT:
                    self.edge.parameters[attributes["key"]] = attributes.get("value", "")
            elif tag == "param" and inside == "junction":
                if attributes.get("key") == KEPT_LABEL:
                    self.labels[self.junction] = attributes.get("value", "")
                elif attributes.get("key") == KEPT_CLOSED and attributes.get("value") == "true":
                    self.closed.add(self.junction)

    def end(self, tag: str) -> None:
        self.open.pop()
        if len(self.open) == 1:
            if tag == "edge" and self.edge is not None:
                if not self.edge.cars:
                    raise Halt(f"edge {self.edge.key!r:.60} has no <lane>")
                if not any(self.edge.cars):
                    self.edges[self.edge.key] = None
                self.edge = None
            elif tag == "tlLogic":
                self.programmes.end()

    def _start_edge(self, attributes: Mapping[str, str]) -> None:
        key = needed(attributes, "id", "edge")
        if key in self.edges:
            raise Halt(f"edge {key!r:.60} a second time")
        if len(self.edges) >= self.max_edges:
            raise Halt(f"more than {self.max_edges} edges; raise max_edges if you trust it")
        self.edges[key] = self.edge = None
        if attributes.get("function") in _NOT_ROADS or key.startswith(":"):
            return
        ends = tuple(needed(attributes, end, f"edge {key!r:.60}") for end in ("from", "to"))
        shape = points_of(attributes.get("shape", ""), f"edge {key!r:.60}")
        self.edge = _SumoEdge(
            key, (ends[0], ends[1]), attributes.get("name", ""), highway_of(attributes.get("type", "")), shape
        )
        self.edges[key] = self.edge

    def _add_lane(self, edge: _SumoEdge, attributes: Mapping[str, str]) -> None:
        where = f"a lane of edge {edge.key!r:.60}"
        if len(edge.cars) >= _MOST_LANES:
            raise Halt(f"more than {_MOST_LANES} lanes of edge {edge.key!r:.60}")
        if "index" in attributes and attributes["index"].strip() != str(len(edge.cars)):
            raise Halt(
                f"the lanes of edge {edge.key!r:.60} must be numbered 0, 1, 2 …, got {attributes['index']!r:.20}"
            )
        cars = for_cars(attributes)
        speed, length = positive(attributes, "speed", where), positive(attributes, "length", where)
        edge.cars.append(cars)
        if cars:
            edge.speed = max(edge.speed, speed)
            edge.length = length if math.isnan(edge.length) else edge.length

    def _start_junction(self, attributes: Mapping[str, str]) -> None:
        self.junction = key = needed(attributes, "id", "junction")
        kind = attributes.get("type", "")
        if kind == "internal" or key.startswith(":"):
            return
        if key in self.junctions:
            raise Halt(f"junction {key!r:.60} a second time")
        if len(self.junctions) >= self.max_edges:
            raise Halt(f"more than {self.max_edges} junctions; raise max_edges if you trust it")
        where = f"junction {key!r:.60}"
        self.junctions[key] = (number(attributes, "x", where), number(attributes, "y", where))
        if kind.startswith("traffic_light"):
            self.signals.add(key)

    def _add_connection(self, attributes: Mapping[str, str]) -> None:
        ends = [needed(attributes, end, "connection") for end in ("from", "to")]
        if any(end.startswith(":") for end in ends) or not for_cars(attributes):
            return
        if len(self.connections) >= _CONNECTIONS_PER_EDGE * self.max_edges:
            raise Halt(
                f"more than {_CONNECTIONS_PER_EDGE * self.max_edges} connections; raise max_edges if you trust it"
            )
        where = f"the connection of edge {ends[0]!r:.60} to {ends[1]!r:.60}"
        lanes = [index(attributes, lane, where) for lane in ("fromLane", "toLane")]
        light = attributes.get("tl", "")
        link = index(attributes, "linkIndex", where) if light else -1
        self.connections.append((ends[0], ends[1], lanes[0], lanes[1], light, link))

    def net(self, name: str) -> SumoNet:
        roads = [edge for edge in self.edges.values() if edge is not None]
        if not roads:
            raise NetworkError("no edge for cars; every lane is closed to the class 'passenger'")
        if all(_WHOLE.fullmatch(road.key) for road in roads):
            roads.sort(key=lambda road: int(road.key))
        for road in roads:
            for end in road.ends:
                if end not in self.junctions:
                    raise NetworkError(f"edge {road.key!r:.60} needs junction {end!r:.60}, which is not in the net")
        touched = {end for road in roads for end in road.ends}
        used = [junction for junction in self.junctions if junction in touched]
        node = {junction: i for i, junction in enumerate(used)}
        ends = np.array([[node[end] for end in road.ends] for road in roads], dtype=np.int64)
        turns, lights = self._turns(roads, ends)
        times = self.programmes.times(lights, ends[:, 1], [used[i] for i in ends[:, 1].tolist()])
        signals = np.array([junction in self.signals for junction in used], dtype=np.bool_)
        signals[ends[times.edge, 1]] = True
        closed = np.array([junction in self.closed for junction in used], dtype=np.bool_)
        places = np.array([self.junctions[junction] for junction in used], dtype=np.float64)
        lines = Lines.joined([_line(road.shape, *places[pair]) for road, pair in zip(roads, ends, strict=True)])
        places, lines = self.projection.places(places), Lines(self.projection.places(lines.xy), lines.offsets)
        columns = [_stated(road) for road in roads]
        bans = _bans(roads, ends, turns)
        classes = [road.parameters.get(KEPT_CLASS, road.highway) for road in roads]
        network = assemble(
            Nodes(self._labels(used), places[:, 0], places[:, 1], closed, signals),
            Edges(ends[:, 0], ends[:, 1], [r.name for r in roads], classes, signal_times=times, bans=bans),
            EdgeNumbers(
                np.array([road.length for road in roads]),
                speed_kph=np.array([road.speed * 3.6 for road in roads]),
                lanes=np.array([float(sum(road.cars)) for road in roads]),
                imputed_bits=np.array([_flags(road) for road in roads], dtype=np.uint8),
                **{column: np.array([row[column] for row in columns]) for column in KEPT_NUMBERS},
            ),
            lines,
            crs=self.projection.crs,
            name=name,
        )
        return SumoNet(network, tuple(road.key for road in roads), turns, self.programmes.actuated)

    def _turns(
        self, roads: Sequence[_SumoEdge], ends: Ints
    ) -> tuple[Ints, dict[tuple[int, int], set[tuple[str, int]]]]:
        """Return the pairs of edges that are connected for cars, and the links of signals that each pair passes."""
        position = {road.key: e for e, road in enumerate(roads)}
        lights: Links = {}
        for start, onward, from_lane, to_lane, light, link in self.connections:
            for key in (start, onward):
                if key not in self.edges:
                    raise NetworkError(f"a connection names edge {key!r:.60}, which is not in the net")
            e, f = position.get(start, -1), position.get(onward, -1)
            if e < 0 or f < 0:
                continue
            for road, lane in ((roads[e], from_lane), (roads[f], to_lane)):
                if lane >= len(road.cars):
                    raise NetworkError(
                        f"a connection names lane {lane} of edge {road.key!r:.60}, which has {len(road.cars)} lanes"
                    )
            if ends[e, 1] != ends[f, 0]:
                raise NetworkError(
                    f"edge {start!r:.60} is connected to {onward!r:.60}, which starts at another junction"
                )
            if roads[e].cars[from_lane] and roads[f].cars[to_lane]:
                links = lights.setdefault((e, f), set())
                if light:
                    links.add((light, link))
        return np.array(sorted(lights), dtype=np.int64).reshape(-1, 2), lights

    def _labels(self, used: Sequence[str]) -> list[Hashable]:
        if all(junction in self.labels for junction in used):
            return [decode_label(self.labels[junction]) for junction in used]
        whole = all(_WHOLE.fullmatch(junction) for junction in used)
        return [int(junction) for junction in used] if whole else list(used)


def _bans(roads: Sequence[_SumoEdge], ends: Ints, turns: Ints) -> Bans:
    """Return the turns that are not connected, and what `to_sumo` left in the parameters of edges."""
    position = {road.key: e for e, road in enumerate(roads)}
    allowed, ways = [], set()
    for e, road in enumerate(roads):
        stated = road.parameters.get(KEPT_TURNS, "").split()
        allowed += [(e, position[onward]) for onward in stated if onward in position]
        for way in road.parameters.get(KEPT_WAYS, "").split(","):
            edges = [position.get(key, -1) for key in way.split()]
            if edges and -1 not in edges:
                ways.add((e, *edges))
    joined = np.concatenate((turns, np.array(allowed, dtype=np.int64).reshape(-1, 2)))
    known = not any(KEPT_UNKNOWN in road.parameters for road in roads)
    return Bans(missing_connections(ends[:, 0], ends[:, 1], joined), sorted(ways), known)


def highway_of(kind: str) -> str:
    """Return the class of road that a type of SUMO stands for."""
    for part in kind.split("|"):
        if part.startswith("highway."):
            return part.removeprefix("highway.").split(".")[0]
    return kind


def _line(shape: Floats, tail: Floats, head: Floats) -> Floats:
    """Return a shape taken on to the places of its junctions, where it ends at their rims; no shape is none."""
    if len(shape) == 0:
        return shape
    before = [tail] if np.abs(shape[0] - tail).max() > 0.01 else []
    after = [head] if np.abs(shape[-1] - head).max() > 0.01 else []
    line = np.array([*before, *shape, *after])
    return line if len(line) > 1 else line[:0]


def _stated(road: _SumoEdge) -> dict[str, float]:
    """Return the numbers that `to_sumo` left in the parameters of an edge."""
    found = dict.fromkeys(KEPT_NUMBERS, math.nan)
    for column in found:
        if column in road.parameters:
            try:
                found[column] = number(road.parameters, column, f"edge {road.key!r:.60}")
            except Halt as halt:
                raise NetworkError(str(halt)) from None
    return found


def _flags(road: _SumoEdge) -> int:
    return sum(IMPUTED_BITS.get(flag, 0) for flag in set(road.parameters.get(KEPT_FLAGS, "").split()))
