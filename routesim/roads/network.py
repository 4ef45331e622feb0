"""RoadNetwork: roads as indexed arrays with geometry; the only place that knows OSM's (u, v, key)."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from routesim.arrays import Bools, Floats, Ints, Ints32
from routesim.errors import NetworkError
from routesim.roads.columns import IMPUTED_BITS, check, index_labels
from routesim.roads.places import GEOGRAPHIC, NodeTree, nearest_node
from routesim.roads.signal_times import SignalTimes

if TYPE_CHECKING:
    import geopandas as gpd
    import networkx as nx
    import pandas as pd

    from routesim.roads.graph import Graph


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RoadNetwork:
    """Directed roads in a fixed order, checked when built and read-only afterwards.

    Edge `e` leads from node `tails[e]` to node `heads[e]`; `graph` finds the edges that leave a node. `labels[i]` is
    the name node `i` came with.

    Nodes: `x` and `y` are longitude and latitude in degrees while `crs` is "EPSG:4326", otherwise planar
    coordinates in metres; NaN where a node came without. `no_through` marks zones of TNTP networks: a trip
    may start or end there and never pass through. `signals` marks the nodes with traffic signals, none unless given;
    `signal_times` holds their programmes where they are known.

    Edges: `length_m` and `speed_kph` may be NaN (unknown); `free_flow_s`, `lanes`, `capacity_vph` (vehicles
    an hour in this direction), `bpr_alpha` and `bpr_beta` are always known. `names` and `highways` hold the
    street's name and class, "" where unknown. `keys` tells parallel edges apart. The line of edge `e` is
    `shape_xy[shape_offsets[e]:shape_offsets[e + 1]]`, empty where unknown. What a rule filled in is marked:
    see `imputed`. The rules are in `routesim.roads.importers.defaults`.

    Turns: `banned_turns` has a row (edge in, edge out) for each turn that may not be taken, and `banned_ways` a tuple
    for each way of three or more edges that may not be driven as a whole. Everything that searches or takes paths
    keeps to them. `bans_known` is False where the source could not say which turns are banned.

    `left_out` counts what the import of OpenStreetMap data did not take, such as ways closed to cars. It is kept in
    .npz files only, and two networks are equal whatever it says.

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
    signals: Bools = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    signal_times: SignalTimes = field(default_factory=SignalTimes)
    crs: str = GEOGRAPHIC
    name: str = ""
    attribution: str = ""
    banned_turns: Ints32 = field(default_factory=lambda: np.empty((0, 2), dtype=np.int32))
    banned_ways: tuple[tuple[int, ...], ...] = ()
    bans_known: bool = True
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every rule above; nothing invalid can be built."""
        self.__dict__["_index"] = check(self)
        if not isinstance(self.signal_times, SignalTimes):
            raise NetworkError(f"signal_times must be SignalTimes, got {type(self.signal_times).__name__}")
        self.signal_times.check_roads(self.tails, self.heads, self.signals)
        self._freeze()

    def _freeze(self) -> None:
        for value in self.__dict__.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: self.__dict__[f.name] for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__["_index"] = index_labels(self.labels)
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

        return Graph.build(self.tails, self.heads, self.n_nodes, no_through=self.no_through, banned=self.bans)

    @property
    def bans(self) -> list[tuple[int, ...]]:
        """The banned turns and the banned ways in one list of edges that may not follow each other."""
        return [*map(tuple, self.banned_turns.tolist()), *self.banned_ways]

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
        return self.labels[nearest_node(self, lon, lat)]

    @cached_property
    def node_tree(self) -> NodeTree:
        """The places of the nodes in a tree that finds the nearest; made once."""
        return NodeTree.build(self)

    @cached_property
    def edges(self) -> pd.DataFrame:
        """The edges as a table in edge order: a GeoDataFrame where lines are known."""
        from routesim.roads.importers.tables import edge_table  # upward on purpose: pandas stays out of this module

        return edge_table(self)

    def equals(self, other: RoadNetwork) -> bool:
        """Tell whether every label, array and text of two networks is the same."""
        for f in fields(self):
            if f.name == "left_out":
                continue
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
        """Keep the largest set of nodes that can all reach each other without a banned turn."""
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
    def from_sumo(cls, path: str | Path, **options: Any) -> RoadNetwork:
        """Read a SUMO net, .net.xml or .net.xml.gz; see `routesim.roads.importers.sumo`."""
        from routesim.roads.importers.sumo import from_sumo

        return from_sumo(path, **options)

    @classmethod
    def from_geopackage(cls, path: str | Path, **options: Any) -> RoadNetwork:
        """Read what `to_geopackage` wrote."""
        from routesim.roads.importers.geopackage import from_geopackage

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

    def to_sumo(self, folder: str | Path) -> Path:
        """Write a SUMO net and its plain XML into a new folder; see `routesim.roads.importers.sumo_export`."""
        from routesim.roads.importers.sumo_export import to_sumo

        return to_sumo(self, folder)
