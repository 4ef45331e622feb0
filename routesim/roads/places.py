"""Places on the map: distances between them, and the node of a network that is nearest to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from routesim.arrays import Bools, Floats, Ints
from routesim.errors import NetworkError

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

    from routesim.roads.network import RoadNetwork

EARTH_RADIUS_M = 6_371_009.0
GEOGRAPHIC = "EPSG:4326"


def haversine_m(lon1: Floats, lat1: Floats, lon2: Floats, lat2: Floats) -> Floats:
    """Return great-circle distances in metres between places in degrees."""
    a1, a2 = np.radians(lat1), np.radians(lat2)
    half = np.sin((a2 - a1) / 2) ** 2 + np.cos(a1) * np.cos(a2) * np.sin(np.radians(lon2 - lon1) / 2) ** 2
    return np.asarray(2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.minimum(half, 1.0))), dtype=np.float64)


class NodeTree(NamedTuple):
    """The places of those nodes of a network that have coordinates, in a tree that finds the nearest."""

    tree: cKDTree
    nodes: Ints

    @classmethod
    def build(cls, network: RoadNetwork, among: Bools | None = None) -> NodeTree:
        """Return the tree of a network, which must have coordinates, or of the nodes marked."""
        from scipy.spatial import cKDTree

        known = ~np.isnan(network.x)
        nodes = np.flatnonzero(known if among is None else known & among).astype(np.int64)
        if len(nodes) == 0:
            raise NetworkError(f"{network!r} has no coordinates, so no node is nearest; name nodes by their labels")
        return cls(cKDTree(points_of(network, network.x[nodes], network.y[nodes])), nodes)


def nearest_node(network: RoadNetwork, lon: float, lat: float) -> int:
    """Return the index of the node nearest to a place (to x, y where the network is planar)."""
    try:
        x, y = float(lon), float(lat)
    except (TypeError, ValueError):
        raise NetworkError(f"a place is two numbers, got {lon!r}, {lat!r}") from None
    limit_x, limit_y = (180.0, 90.0) if network.is_geographic else (np.inf, np.inf)
    if not (np.isfinite(x) and np.isfinite(y) and abs(x) <= limit_x and abs(y) <= limit_y):
        raise NetworkError(
            f"a place must be a longitude within ±180 and a latitude within ±90, got ({lon}, {lat}); "
            "longitude comes first"
        )
    tree, nodes = network.node_tree
    distance, place = (np.ravel(found)[0] for found in tree.query(points_of(network, np.array([x]), np.array([y]))))
    node = int(nodes[int(place)])
    width = float(np.linalg.norm(tree.maxes - tree.mins))
    if distance > max(width, 0.001 if network.is_geographic else 0.0):
        raise NetworkError(
            f"({lon}, {lat}) lies farther from the nearest node {network.labels[node]!r} than the whole network "
            "is wide; longitude comes first, then latitude"
        )
    return node


def points_of(network: RoadNetwork, x: Floats, y: Floats) -> Floats:
    """Return places as points whose straight distances order as the distances on the map do."""
    if not network.is_geographic:
        return np.column_stack((x, y))
    # Chords between points of the sphere order as great circles do, so the nearest is exact everywhere.
    lam, phi = np.radians(x), np.radians(y)
    return np.column_stack((np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)))
