"""RoadNetwork: roads as indexed arrays with geometry; the only place that knows OSM's (u, v, key)."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from routesim.arrays import Bools, Floats, Ints, Ints32
from routesim.errors import NetworkError

if TYPE_CHECKING:
    import geopandas as gpd
    import networkx as nx
    import pandas as pd
    from scipy.spatial import cKDTree

    from routesim.roads.graph import Graph


EARTH_RADIUS_M = 6_371_009.0
GEOGRAPHIC = "EPSG:4326"

# One bit of `imputed_bits` per attribute that an importer may have had to fill in from a rule.
IMPUTED_BITS: Mapping[str, int] = {"speed": 1, "lanes": 2, "capacity": 4, "bpr": 8}

# Attributes of an edge that are numbers, with the rule each value keeps. NaN is "unknown" where allowed.
_EDGE_RULES: Mapping[str, tuple[str, bool]] = {
    "length_m": ("at least 0", True),
    "free_flow_s": ("at least 0", False),
    "speed_kph": ("above 0", True),
    "lanes": ("above 0", False),
    "capacity_vph": ("above 0", False),
    "bpr_alpha": ("at least 0", False),
    "bpr_beta": ("at least 0", False),
}
EDGE_NUMBERS: tuple[str, ...] = tuple(_EDGE_RULES)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RoadNetwork:
    """Directed roads in a fixed order, checked when built and read-only afterwards.

    Edge `e` leads from node `tails[e]` to node `heads[e]`; `graph` finds the edges that leave a node. `labels[i]` is
    the name node `i` came with.

    Nodes: `x` and `y` are longitude and latitude in degrees while `crs` is "EPSG:4326", otherwise planar
    coordinates in metres; NaN where a node came without. `no_through` marks zones of TNTP networks: a trip
    may start or end there and never pass through.

    Edges: `length_m` and `speed_kph` may be NaN (unknown); `free_flow_s`, `lanes`, `capacity_vph` (vehicles
    an hour in this direction), `bpr_alpha` and `bpr_beta` are always known. `names` and `highways` hold the
    street's name and class, "" where unknown. `keys` tells parallel edges apart. The line of edge `e` is
    `shape_xy[shape_offsets[e]:shape_offsets[e + 1]]`, empty where unknown. What a rule filled in is marked:
    see `imputed`. The rules are in `routesim.roads.importers.defaults`.

    >>> import networkx as nx
    >>> graph = nx.DiGraph()
    >>> graph.add_edge("home", "work", free_flow_s=60.0)
    >>> network = RoadNetwork.from_networkx(graph)
    >>> network, network.labels, network.free_flow_s.tolist()
    (<RoadNetwork unnamed: 2 nodes, 1 edges>, ('home', 'work'), [60.0])
    """

    labels: tuple[Hashable, ...]
    tails: Ints32
    heads: Ints32
    free_flow_s: Floats
    length_m: Floats
    speed_kph: Floats
    lanes: Floats
    capacity_vph: Floats
    bpr_alpha: Floats
    bpr_beta: Floats
    x: Floats
    y: Floats
    names: tuple[str, ...]
    highways: tuple[str, ...]
    keys: Ints
    shape_xy: Floats
    shape_offsets: Ints
    imputed_bits: NDArray[np.uint8]
    no_through: Bools
    crs: str = GEOGRAPHIC
    name: str = ""
    attribution: str = ""

    def __post_init__(self) -> None:
        """Check every rule above; nothing invalid can be built."""
        put = object.__setattr__
        put(self, "labels", tuple(self.labels))
        n_nodes = len(self.labels)
        if n_nodes == 0:
            raise NetworkError("a road network needs at least one node, got none")
        index = _index_labels(self.labels)
        self.__dict__["_index"] = index
        for which in ("tails", "heads"):
            put(self, which, _indices(getattr(self, which), which, n_nodes))
        n_edges = len(self.tails)
        if len(self.heads) != n_edges:
            raise NetworkError(f"tails and heads must have equal length, got {n_edges} and {len(self.heads)}")
        for column, (rule, may_be_unknown) in _EDGE_RULES.items():
            values = _vector(getattr(self, column), column, n_edges, np.float64)
            put(self, column, values)
            bad = ~np.isfinite(values) | (values < 0 if rule == "at least 0" else values <= 0)
            if may_be_unknown:
                bad &= ~np.isnan(values)
            if bad.any():
                e = int(np.argmax(bad))
                raise NetworkError(
                    f"{column} must be a finite number {rule}, got {values[e]} on edge {e} ({self._ends(e)})"
                )
        for column in ("names", "highways"):
            texts = tuple(getattr(self, column))
            put(self, column, texts)
            if len(texts) != n_edges:
                raise NetworkError(f"{column} must have one text for each of {n_edges} edges, got {len(texts)}")
            if not all(type(text) is str for text in texts):
                raise NetworkError(f"{column} must hold texts only ('' where unknown)")
        put(self, "keys", _vector(self.keys, "keys", n_edges, np.int64))
        put(self, "imputed_bits", _vector(self.imputed_bits, "imputed_bits", n_edges, np.uint8))
        if (self.imputed_bits >= 2 * max(IMPUTED_BITS.values())).any():
            raise NetworkError(f"imputed_bits must be sums of {tuple(IMPUTED_BITS.values())}")
        put(self, "no_through", _vector(self.no_through, "no_through", n_nodes, np.bool_))
        for text in ("crs", "name", "attribution"):
            if not isinstance(getattr(self, text), str):
                raise NetworkError(f"{text} must be a text, got {getattr(self, text)!r}")
        self._check_keys()
        self._check_places()
        self._freeze()

    def _check_keys(self) -> None:
        """Refuse two edges with the same tail, head and key."""
        if len(self.keys) < 2:
            return
        order = np.lexsort((self.keys, self.heads, self.tails))
        t, h, k = self.tails[order], self.heads[order], self.keys[order]
        same = (t[1:] == t[:-1]) & (h[1:] == h[:-1]) & (k[1:] == k[:-1])
        if same.any():
            e = int(order[1:][np.argmax(same)])
            raise NetworkError(f"parallel edges need different keys, got key {self.keys[e]} twice from {self._ends(e)}")

    def _check_places(self) -> None:
        """Check coordinates of nodes and lines of edges."""
        put = object.__setattr__
        n_nodes, n_edges = len(self.labels), len(self.tails)
        put(self, "x", _vector(self.x, "x", n_nodes, np.float64))
        put(self, "y", _vector(self.y, "y", n_nodes, np.float64))
        known = ~np.isnan(self.x)
        if not np.array_equal(known, ~np.isnan(self.y)):
            i = int(np.argmax(known == np.isnan(self.y)))
            raise NetworkError(f"node {self.labels[i]!r} has only one of its two coordinates")
        self._check_range(self.x[known], self.y[known], "node", np.flatnonzero(known))
        offsets = _vector(self.shape_offsets, "shape_offsets", n_edges + 1, np.int64)
        shape = _array(self.shape_xy, "shape_xy", np.float64)
        if shape.ndim != 2 or shape.shape[1] != 2:
            raise NetworkError(f"shape_xy must have two columns, got shape {shape.shape}")
        counts = np.diff(offsets)
        if offsets[0] != 0 or offsets[-1] != len(shape) or (counts < 0).any() or (counts == 1).any():
            raise NetworkError(
                "shape_offsets must rise from 0 to the number of points, by none or at least two an edge"
            )
        put(self, "shape_offsets", offsets)
        put(self, "shape_xy", shape)
        owners = np.repeat(np.arange(n_edges), counts)
        if np.isnan(shape).any():
            e = int(owners[np.argmax(np.isnan(shape).any(axis=1))])
            raise NetworkError(f"the line of edge {e} ({self._ends(e)}) has a coordinate that is not a number")
        self._check_range(shape[:, 0], shape[:, 1], "edge", owners)

    def _check_range(self, x: Floats, y: Floats, kind: str, owners: NDArray[np.integer[Any]]) -> None:
        limit_x, limit_y = (180.0, 90.0) if self.is_geographic else (1e12, 1e12)
        bad = ~((np.abs(x) <= limit_x) & (np.abs(y) <= limit_y))
        if bad.any():
            i = int(np.argmax(bad))
            owner = int(owners[i])
            whose = f"node {self.labels[owner]!r}" if kind == "node" else f"edge {owner} ({self._ends(owner)})"
            raise NetworkError(
                f"coordinates must lie within ±{limit_x:g}, ±{limit_y:g} in {self.crs or 'planar metres'}, "
                f"got ({x[i]}, {y[i]}) at {whose}"
            )

    def _ends(self, edge: int) -> str:
        return f"{self.labels[self.tails[edge]]!r} to {self.labels[self.heads[edge]]!r}"

    def _freeze(self) -> None:
        for value in self.__dict__.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: self.__dict__[f.name] for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__["_index"] = _index_labels(self.labels)
        self._freeze()

    def __repr__(self) -> str:
        return f"<RoadNetwork {self.name or 'unnamed'}: {self.n_nodes} nodes, {self.n_edges} edges>"

    def _repr_html_(self) -> str:
        """Show a small map of the roads in a notebook."""
        from routesim.report.notebook import network_html  # upward on purpose: nothing else here draws

        return network_html(self)

    # ---- what is where -------------------------------------------------------------------------------

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.labels)

    @property
    def n_edges(self) -> int:
        """How many directed edges there are."""
        return len(self.tails)

    @cached_property
    def graph(self) -> Graph:
        """The roads as the graph that searches run on; made once."""
        from routesim.roads.graph import Graph  # late: it compiles, which a network that is only drawn can do without

        return Graph.build(self.tails, self.heads, self.n_nodes, no_through=self.no_through)

    @property
    def is_geographic(self) -> bool:
        """Whether `x` and `y` are longitude and latitude."""
        return self.crs == GEOGRAPHIC

    @property
    def lon(self) -> Floats:
        """Longitude of every node, in degrees."""
        return self._degrees("lon")

    @property
    def lat(self) -> Floats:
        """Latitude of every node, in degrees."""
        return self._degrees("lat")

    def _degrees(self, which: str) -> Floats:
        if not self.is_geographic:
            raise NetworkError(f"{which} needs longitudes and latitudes; this network's are planar: use x and y")
        return self.x if which == "lon" else self.y

    def imputed(self, attribute: str) -> Bools:
        """Mark the edges whose `attribute` (speed, lanes, capacity or bpr) a rule filled in."""
        if attribute not in IMPUTED_BITS:
            raise NetworkError(f"imputed takes one of {', '.join(IMPUTED_BITS)}, got {attribute!r}")
        return np.asarray((self.imputed_bits & np.uint8(IMPUTED_BITS[attribute])) != 0, dtype=np.bool_)

    def shape(self, edge: int) -> Floats:
        """Return the line of an edge, point by point: as it came, or straight between its ends."""
        points = self.shape_xy[self.shape_offsets[edge] : self.shape_offsets[edge + 1]]
        if len(points):
            return points
        ends = [self.tails[edge], self.heads[edge]]
        straight = np.column_stack((self.x[ends], self.y[ends]))
        return straight[:0] if np.isnan(straight).any() else straight

    def has_node(self, label: Hashable) -> bool:
        """Tell whether a node has this label."""
        return label in self.__dict__["_index"]

    def node_index(self, label: Hashable) -> int:
        """Return the index of the node with this label."""
        index: dict[Hashable, int] = self.__dict__["_index"]
        try:
            found = index.get(label)
        except TypeError:
            found = None
        if found is None:
            by_text = {str(known): known for known in self.labels}
            near = difflib.get_close_matches(str(label), by_text, n=3, cutoff=0.5)
            hint = f"; did you mean {' or '.join(repr(by_text[text]) for text in near)}?" if near else ""
            first = self.labels[0]
            raise NetworkError(f"no node {label!r} in {self!r}{hint or f'; labels look like {first!r}'}")
        return found

    def nearest_node(self, lon: float, lat: float) -> Hashable:
        """Return the label of the node nearest to a place (to x, y where the network is planar)."""
        try:
            x, y = float(lon), float(lat)
        except (TypeError, ValueError):
            raise NetworkError(f"a place is two numbers, got {lon!r}, {lat!r}") from None
        limit_x, limit_y = (180.0, 90.0) if self.is_geographic else (np.inf, np.inf)
        if not (np.isfinite(x) and np.isfinite(y) and abs(x) <= limit_x and abs(y) <= limit_y):
            raise NetworkError(
                f"a place must be a longitude within ±180 and a latitude within ±90, got ({lon}, {lat}); "
                "longitude comes first"
            )
        tree, nodes = self._tree
        point = _on_sphere(np.array([x]), np.array([y])) if self.is_geographic else np.array([[x, y]])
        distance, place = (np.ravel(found)[0] for found in tree.query(point))
        width = float(np.linalg.norm(tree.maxes - tree.mins))
        if distance > max(width, 0.001 if self.is_geographic else 0.0):
            label = self.labels[int(nodes[int(place)])]
            raise NetworkError(
                f"({lon}, {lat}) lies farther from the nearest node {label!r} than the whole network is wide; "
                "longitude comes first, then latitude"
            )
        return self.labels[int(nodes[int(place)])]

    @cached_property
    def _tree(self) -> tuple[cKDTree, Ints]:
        from scipy.spatial import cKDTree

        nodes = np.flatnonzero(~np.isnan(self.x)).astype(np.int64)
        if len(nodes) == 0:
            raise NetworkError(f"{self!r} has no coordinates, so no node is nearest; name nodes by their labels")
        x, y = self.x[nodes], self.y[nodes]
        # Chords between points of the sphere order as great circles do, so the nearest is exact everywhere.
        return cKDTree(_on_sphere(x, y) if self.is_geographic else np.column_stack((x, y))), nodes

    @cached_property
    def edges(self) -> pd.DataFrame:
        """The edges as a table in edge order: a GeoDataFrame where lines are known."""
        from routesim.roads.importers.tables import edge_table  # upward on purpose: pandas stays out of this module

        return edge_table(self)

    def equals(self, other: RoadNetwork) -> bool:
        """Tell whether every label, array and text of two networks is the same."""
        for f in fields(self):
            mine, theirs = getattr(self, f.name), getattr(other, f.name)
            if isinstance(mine, np.ndarray):
                same = mine.dtype == theirs.dtype and np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f")
            else:
                same = mine == theirs and (f.name != "labels" or [type(a) for a in mine] == [type(b) for b in theirs])
            if not same:
                return False
        return True

    # ---- networks made of networks ------------------------------------------------------------------

    def subnetwork(self, edges: ArrayLike, *, nodes: ArrayLike | None = None) -> RoadNetwork:
        """Keep these edges, in this order, and the nodes given (those the edges touch unless told)."""
        from routesim.roads.edits import subnetwork  # upward on purpose: see from_networkx

        return subnetwork(self, np.asarray(edges), None if nodes is None else np.asarray(nodes))

    def largest_component(self) -> RoadNetwork:
        """Keep the largest set of nodes that can all reach each other."""
        from routesim.roads.edits import largest_component  # upward on purpose: see from_networkx

        return largest_component(self)

    def consolidate(self, *, tolerance_m: float = 10.0) -> RoadNetwork:
        """Merge junctions joined by links of at most `tolerance_m` metres into one node each."""
        from routesim.roads.edits import consolidate  # upward on purpose: see from_networkx

        return consolidate(self, tolerance_m)

    # ---- in and out -----------------------------------------------------------------------------------
    # The readers and writers live in routesim.roads.importers, which builds on this module. The methods below
    # look them up when called: the one upward reference, so that users find every road into a network on
    # the class itself.

    @classmethod
    def from_networkx(cls, graph: nx.Graph, **options: Any) -> RoadNetwork:
        """Take any networkx graph; see `routesim.roads.importers.graph.from_networkx`."""
        from routesim.roads.importers.graph import from_networkx

        return from_networkx(graph, **options)

    @classmethod
    def from_place(cls, query: str, **options: Any) -> RoadNetwork:
        """Download the roads of a place once, then repeat from the cache; see `routesim.roads.importers.place`."""
        from routesim.roads.importers.place import from_place

        return from_place(query, **options)

    @classmethod
    def from_osm(cls, path: str | Path, **options: Any) -> RoadNetwork:
        """Read .osm, .osm.gz, .osm.bz2 or .osm.pbf; see `routesim.roads.importers.osm`."""
        from routesim.roads.importers.osm import from_osm

        return from_osm(path, **options)

    @classmethod
    def from_graphml(cls, path: str | Path, **options: Any) -> RoadNetwork:
        """Read GraphML as osmnx, networkx or `to_graphml` wrote it; see `routesim.roads.importers.graphml`."""
        from routesim.roads.importers.graphml import from_graphml

        return from_graphml(path, **options)

    @classmethod
    def from_tntp(cls, net: str | Path, nodes: str | Path | None = None, **options: Any) -> RoadNetwork:
        """Read a TNTP network; see `routesim.roads.importers.tntp`."""
        from routesim.roads.importers.tntp import from_tntp

        return from_tntp(net, nodes, **options)

    @classmethod
    def from_gmns(cls, folder: str | Path, **options: Any) -> RoadNetwork:
        """Read a folder with GMNS node and link tables; see `routesim.roads.importers.gmns`."""
        from routesim.roads.importers.gmns import from_gmns

        return from_gmns(folder, **options)

    @classmethod
    def from_geopackage(cls, path: str | Path, **options: Any) -> RoadNetwork:
        """Read what `to_geopackage` wrote."""
        from routesim.roads.importers.tables import from_geopackage

        return from_geopackage(path, **options)

    @classmethod
    def from_file(cls, path: str | Path, **options: Any) -> RoadNetwork:
        """Read what `save` wrote; see `routesim.roads.importers.archive`."""
        from routesim.roads.importers.archive import load

        return load(path, **options)

    def save(self, path: str | Path) -> None:
        """Write the network as one compact file that `from_file` reads back unchanged."""
        from routesim.roads.importers.archive import save

        save(self, path)

    def to_networkx(self) -> nx.MultiDiGraph:
        """Return a MultiDiGraph with osmnx's names beside routesim's own."""
        from routesim.roads.importers.graph import to_networkx

        return to_networkx(self)

    def to_geodataframe(self) -> gpd.GeoDataFrame:
        """Return the edges in edge order as a GeoDataFrame, straight lines where no line is known."""
        from routesim.roads.importers.tables import to_geodataframe

        return to_geodataframe(self)

    def to_graphml(self, path: str | Path) -> None:
        """Write GraphML that osmnx, networkx and `from_graphml` read."""
        from routesim.roads.importers.graphml import to_graphml

        to_graphml(self, path)

    def to_geopackage(self, path: str | Path) -> None:
        """Write a GeoPackage with a layer of nodes and a layer of edges."""
        from routesim.roads.importers.tables import to_geopackage

        to_geopackage(self, path)


def haversine_m(lon1: Floats, lat1: Floats, lon2: Floats, lat2: Floats) -> Floats:
    """Return great-circle distances in metres between places in degrees."""
    a1, a2 = np.radians(lat1), np.radians(lat2)
    half = np.sin((a2 - a1) / 2) ** 2 + np.cos(a1) * np.cos(a2) * np.sin(np.radians(lon2 - lon1) / 2) ** 2
    return np.asarray(2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.minimum(half, 1.0))), dtype=np.float64)


def _on_sphere(lon: Floats, lat: Floats) -> Floats:
    lam, phi = np.radians(lon), np.radians(lat)
    return np.column_stack((np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)))


def _index_labels(labels: Sequence[Hashable]) -> dict[Hashable, int]:
    try:
        index = {label: i for i, label in enumerate(labels)}
    except TypeError:
        bad = next(label for label in labels if not _is_hashable(label))
        raise NetworkError(f"node labels must be hashable, got {bad!r}") from None
    if len(index) != len(labels):
        twice = next(label for i, label in enumerate(labels) if index[label] != i)
        raise NetworkError(f"node labels must differ, got {twice!r} twice")
    return index


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _array(values: ArrayLike, what: str, dtype: Any) -> NDArray[Any]:
    """Return a copy of the wanted type, as the caller's array may change later; no value is bent to fit."""
    try:
        raw = np.array(values, order="C")
        with np.errstate(invalid="ignore"):
            casting = "unsafe" if raw.dtype.kind in "biuf" or raw.size == 0 else "safe"
            array: NDArray[Any] = raw.astype(dtype, casting=casting)  # type: ignore[call-overload]  # one of two words
    except (TypeError, ValueError, OverflowError) as error:
        raise NetworkError(f"{what} must hold numbers: {error}") from None
    if array.dtype.kind != "f" and not np.array_equal(array, raw):
        kind = "truth values" if array.dtype.kind == "b" else "whole numbers"
        raise NetworkError(f"{what} must hold {kind} within {array.dtype}, got others")
    return array


def _vector(values: ArrayLike, what: str, n: int, dtype: Any) -> NDArray[Any]:
    array = _array(values, what, dtype)
    if array.shape != (n,):
        raise NetworkError(f"{what} must have {n} values in one row, got shape {array.shape}")
    return array


def _indices(values: ArrayLike, what: str, n_nodes: int) -> Ints32:
    array = _array(values, what, np.int64)
    if array.ndim != 1:
        raise NetworkError(f"{what} must be one row of node indices, got shape {array.shape}")
    bad = (array < 0) | (array >= n_nodes)
    if bad.any():
        e = int(np.argmax(bad))
        raise NetworkError(f"{what} must be node indices from 0 to {n_nodes - 1}, got {array[e]} on edge {e}")
    return array.astype(np.int32)
