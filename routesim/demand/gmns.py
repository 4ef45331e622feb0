"""Demand of a GMNS folder: `demand.csv` between zones, which are nodes of its roads."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Bools, Ints
from routesim.demand.cells import Cells, read_cells
from routesim.demand.loading import Loading
from routesim.demand.tables import entries, span
from routesim.errors import InputError
from routesim.roads.importers.gmns_tables import plain_id
from routesim.roads.importers.gmns_zones import read_zones
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import shortest_tree
from routesim.roads.snapping import usable_nodes

_ENDS = ("o_zone_id", "d_zone_id")
_NONE = np.empty(0, dtype=np.int64)
_MOST_ENTRIES = 20_000_000


def read_gmns_demand(
    folder: str | Path, network: RoadNetwork, start_s: float, end_s: float, profile: ArrayLike
) -> dict[str, Any]:
    """Return the fields of the `Demand` of a folder whose roads are `network`."""
    cells = read_cells(Path(folder) / "demand.csv")
    filled = [text or "0" for text in cells.column("volume", "vehicles between two zones")]
    cells = Cells(cells.file, {**cells.columns, "volume": filled}, cells.rows)
    volume = cells.numbers("volume")
    wrong = np.flatnonzero(volume < 0)
    if len(wrong):
        fix = "give a number of at least 0; 0 asks for nothing"
        raise cells.mistake(int(wrong[0]), "volume", f"is {volume[wrong[0]]:g}", fix)
    zones = _Zones(folder, network)
    starts, goals = zones.numbers(cells, volume > 0)
    within = (volume > 0) & (starts == goals)
    kept = np.flatnonzero((volume > 0) & ~within)
    if not len(kept):
        raise InputError(f"{cells.file}: no row asks for a trip between two different zones")
    for end, numbers in zip(_ENDS, (starts, goals), strict=True):
        zones.find_nodes(cells, end, numbers[kept], kept)
    many = zones.sizes(_ENDS[0])[starts[kept]] * zones.sizes(_ENDS[1])[goals[kept]]
    if many.sum() > _MOST_ENTRIES:
        raise InputError(
            f"{cells.file}: its zones have so many nodes that there would be {many.sum():,} pairs of them, at most "
            f"{_MOST_ENTRIES:,} fit; give each zone a centroid with connectors"
        )
    rows = np.repeat(kept, many)
    number = np.arange(len(rows)) - np.repeat(np.cumsum(many) - many, many)
    wide = zones.sizes(_ENDS[1])[goals[rows]]
    origins = zones.pick(_ENDS[0], starts[rows], number // wide)
    destinations = zones.pick(_ENDS[1], goals[rows], number % wide)
    vehicles = volume[rows] / np.repeat(many, many)
    return {
        **entries(network, origins, destinations, vehicles),
        **span(start_s, end_s, profile),
        "loading": Loading.of_rows(len(cells.rows), volume[within]),
    }


class _Zones:
    """The nodes that stand for each zone asked for, as an origin or as a destination, found when a row names it."""

    def __init__(self, folder: str | Path, network: RoadNetwork) -> None:
        self.network, self._known = network, read_zones(folder)
        self._index = {plain_id(str(label)): place for place, label in enumerate(network.labels)}
        hub = int(np.argmax(usable_nodes(network)))
        roads = {_ENDS[0]: network.graph.reverse(), _ENDS[1]: network.graph}
        self._joined = {
            end: np.isfinite(shortest_tree(graph, network.free_flow_s, hub)[0]) for end, graph in roads.items()
        }
        self._number: dict[str, int] = {}
        self.nodes: dict[str, list[Ints]] = {end: [] for end in _ENDS}

    def numbers(self, cells: Cells, asked: Bools) -> list[Ints]:
        """Return the numbers of the two zones of each row, -1 where it asks for nothing."""
        found = []
        for end in _ENDS:
            texts, numbers = cells.column(end, "a zone of node.csv"), np.full(len(asked), -1, dtype=np.int64)
            for place in np.flatnonzero(asked).tolist():
                zone = plain_id(texts[place])
                number = self._number.setdefault(zone, len(self._number))
                for nodes in self.nodes.values():
                    nodes.extend([_NONE] * (len(self._number) - len(nodes)))
                if zone not in self._known:
                    fix = "give some node this zone_id in node.csv"
                    raise cells.mistake(place, end, f"is {zone!r:.40}, and no node has this zone", fix)
                numbers[place] = number
            found.append(numbers)
        return found

    def find_nodes(self, cells: Cells, end: str, zones: Ints, rows: Ints) -> None:
        """Find the nodes of the zones that these rows name."""
        texts = cells.column(end)
        for number, first in zip(*np.unique(zones, return_index=True), strict=True):
            row = int(rows[first])
            zone = plain_id(texts[row])
            known = [(self._index[node], centroid) for node, centroid in self._known[zone] if node in self._index]
            on_roads = [(node, centroid) for node, centroid in known if self._joined[end][node]]
            centroids = [node for node, centroid in on_roads if centroid]
            places = [node for node, _ in on_roads if self.network.no_through[node]]
            chosen = centroids or places or [node for node, _ in on_roads]
            if not chosen:
                way = "from" if end == _ENDS[0] else "to"
                what = f"is {zone!r:.40}: no road leads {way} any of its {len(known)} nodes"
                raise cells.mistake(row, end, what, "connect the zone's centroid in link.csv, or remove the row")
            self.nodes[end][number] = np.array(chosen, dtype=np.int64)

    def sizes(self, end: str) -> Ints:
        """Return the number of nodes of each zone."""
        return np.array([len(nodes) for nodes in self.nodes[end]], dtype=np.int64)

    def pick(self, end: str, zones: Ints, which: Ints) -> Ints:
        """Return for each zone the node of this number."""
        first = np.concatenate(([0], np.cumsum(self.sizes(end))))
        return np.asarray(np.concatenate(self.nodes[end])[first[zones] + which], dtype=np.int64)
