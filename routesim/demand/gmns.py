"""Demand of a GMNS folder: `demand.csv` between zones, which are nodes of its roads."""

from collections.abc import Sequence
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
from routesim.roads.snapping import usable_nodes

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
    starts, goals = zones.numbers(cells, "o_zone_id", volume > 0), zones.numbers(cells, "d_zone_id", volume > 0)
    within = (volume > 0) & (starts == goals)
    kept = np.flatnonzero((volume > 0) & ~within)
    if not len(kept):
        raise InputError(f"{cells.file}: no row asks for a trip between two different zones")
    sizes = np.array([len(nodes) for nodes in zones.nodes])
    many = sizes[starts[kept]] * sizes[goals[kept]]
    if many.sum() > _MOST_ENTRIES:
        raise InputError(
            f"{cells.file}: its zones have so many nodes that there would be {many.sum():,} pairs of them, at most "
            f"{_MOST_ENTRIES:,} fit; give each zone a centroid with connectors"
        )
    rows = np.repeat(kept, many)
    number = np.arange(len(rows)) - np.repeat(np.cumsum(many) - many, many)
    wide = sizes[goals[rows]]
    origins, destinations = zones.pick(starts[rows], number // wide), zones.pick(goals[rows], number % wide)
    vehicles = volume[rows] / np.repeat(many, many)
    return {
        **entries(network, origins, destinations, vehicles),
        **span(start_s, end_s, profile),
        "loading": Loading.of_rows(len(cells.rows), volume[within]),
    }


class _Zones:
    """The nodes that stand for each zone asked for, found when a row first names it."""

    def __init__(self, folder: str | Path, network: RoadNetwork) -> None:
        self.network, self._known = network, read_zones(folder)
        self._joined = _joined(network)
        self._index = {plain_id(str(label)): place for place, label in enumerate(network.labels)}
        self._number: dict[str, int] = {}
        self.nodes: list[Ints] = []

    def numbers(self, cells: Cells, column: str, asked: Bools) -> Ints:
        """Return the number of the zone of each row, -1 where it asks for nothing."""
        numbers = np.full(len(asked), -1, dtype=np.int64)
        texts = cells.column(column, "a zone of node.csv")
        for place in np.flatnonzero(asked).tolist():
            zone = plain_id(texts[place])
            if zone not in self._number:
                self._number[zone] = len(self.nodes)
                self.nodes.append(self._nodes_of(cells, column, place, zone))
            numbers[place] = self._number[zone]
        return numbers

    def pick(self, zones: Ints, which: Ints) -> Ints:
        """Return for each zone the node of this number."""
        first = np.cumsum([0, *(len(nodes) for nodes in self.nodes)])
        return np.asarray(np.concatenate(self.nodes)[first[zones] + which], dtype=np.int64)

    def _nodes_of(self, cells: Cells, column: str, place: int, zone: str) -> Ints:
        if zone not in self._known:
            raise cells.mistake(
                place, column, f"is {zone!r:.40}, and no node has this zone", "give some node this zone_id in node.csv"
            )
        known = [(self._index[node], centroid) for node, centroid in self._known[zone] if node in self._index]
        every = self._on_roads([node for node, _ in known])
        centroids = self._on_roads([node for node, centroid in known if centroid])
        places = [node for node in every if self.network.no_through[node]]
        chosen = centroids or places or every
        if not chosen:
            raise cells.mistake(
                place,
                column,
                f"is {zone!r:.40}, whose {len(known)} nodes no road joins to the others",
                "connect the zone's centroid in link.csv, or remove the row",
            )
        return np.array(chosen, dtype=np.int64)

    def _on_roads(self, nodes: Sequence[int]) -> list[int]:
        return [node for node in nodes if self._joined[node]]


def _joined(network: RoadNetwork) -> Bools:
    """Mark the nodes from which all others can be reached, and that can be reached from them."""
    roads, tails, heads = usable_nodes(network), network.tails, network.heads
    leaves, reached = np.zeros(network.n_nodes, dtype=np.bool_), np.zeros(network.n_nodes, dtype=np.bool_)
    leaves[tails[roads[heads]]] = True
    reached[heads[roads[tails]]] = True
    return np.asarray(roads | (network.no_through & leaves & reached), dtype=np.bool_)
