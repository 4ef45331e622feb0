"""Zones of GMNS folders: which nodes are centroids and carry no through traffic, and which nodes a zone has.

A node is a centroid where its `node_type` (or the `activity_type` that osm2gmns writes) says so. A node that only
connectors touch, links whose `facility_type` or `link_type_name` says so, is a place off the street, such as the points
of interest of osm2gmns, and carries no through traffic either.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from routesim.arrays import Bools
from routesim.roads.importers.files import reads_files
from routesim.roads.importers.gmns_tables import Row, plain_id, read_table

_CENTROID, _CONNECTOR = "centroid", "connector"


def is_centroid(row: Mapping[str, str]) -> bool:
    """Tell whether a row of node.csv is the centroid of a zone."""
    return any(_CENTROID in row.get(column, "").lower() for column in ("node_type", "activity_type"))


def nodes_without_through_traffic(nodes: Sequence[Row], ends: Sequence[tuple[int, int]], kinds: Sequence[str]) -> Bools:
    """Mark the centroids, and the nodes that only connectors touch; `kinds` says what each link is."""
    closed = np.array([is_centroid(row) for _, row in nodes], dtype=np.bool_)
    if not ends:
        return closed
    pairs = np.array(ends, dtype=np.int64)
    connector = np.array([_CONNECTOR in kind.lower() for kind in kinds], dtype=np.bool_)
    off_street, on_street = np.zeros(len(nodes), dtype=np.bool_), np.zeros(len(nodes), dtype=np.bool_)
    off_street[pairs[connector].ravel()] = True
    on_street[pairs[~connector].ravel()] = True
    off_street &= ~on_street & ~closed
    # Where connectors follow each other, the nodes between them must let the zone's own traffic pass.
    chained = connector & (off_street | closed)[pairs].all(axis=1)
    off_street[pairs[chained].ravel()] = False
    return np.asarray(closed | off_street, dtype=np.bool_)


@reads_files
def read_zones(folder: str | Path) -> dict[str, list[tuple[str, bool]]]:
    """Return the nodes of each zone of a GMNS folder as written in node.csv, and whether they are its centroid."""
    zones: dict[str, list[tuple[str, bool]]] = {}
    for _, row in read_table(Path(folder) / "node.csv", ("node_id", "zone_id"), None):
        zone = plain_id(row["zone_id"])
        if zone and not (zone == "0" and not is_centroid(row)):
            zones.setdefault(zone, []).append((plain_id(row["node_id"]), is_centroid(row)))
    return zones
