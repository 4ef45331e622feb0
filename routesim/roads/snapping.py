"""Which node of the roads stands for a place: the nearest from which cars can go everywhere, and back."""

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from routesim.arrays import Bools, Floats, Ints
from routesim.errors import NetworkError
from routesim.roads.edits import largest_component_nodes
from routesim.roads.network import RoadNetwork
from routesim.roads.places import EARTH_RADIUS_M, NodeTree, points_of

MARGIN_M = 1000.0
"""A place farther than this outside the rectangle around all nodes lies beyond the network."""


class Snapped(NamedTuple):
    """The nodes that stand for places, their distances, and which places lie beyond the network."""

    nodes: Ints
    distance_m: Floats
    beyond: Bools


def usable_nodes(network: RoadNetwork) -> Bools:
    """Mark the nodes that can all reach each other by roads with through traffic: the largest such set.

    Zones that carry no through traffic are not among them, since they are no places on a road.
    """
    roads = ~(network.no_through[network.tails] | network.no_through[network.heads])
    if not roads.any():
        return np.ones(network.n_nodes, dtype=np.bool_)
    return largest_component_nodes(network.n_nodes, network.tails[roads], network.heads[roads])


def snap(network: RoadNetwork, x: Floats, y: Floats) -> Snapped:
    """Return the nearest usable node of each place, in degrees (in metres where the network is planar)."""
    tree, nodes = NodeTree.build(network, usable_nodes(network))
    found, place = tree.query(points_of(network, x, y))
    distance_m = np.asarray(found, dtype=np.float64)
    if network.is_geographic:  # chords of the unit sphere
        distance_m = 2 * EARTH_RADIUS_M * np.arcsin(np.minimum(distance_m / 2, 1.0))
    return Snapped(nodes[np.asarray(place, dtype=np.int64)], distance_m, beyond(network, x, y))


def place_label(network: RoadNetwork, place: Hashable) -> Hashable:
    """Return the label of the node that stands for a place: its label already, or longitude and latitude."""
    if not (isinstance(place, tuple | list) and len(place) == 2) or network.has_node(tuple(place)):
        return place
    x, y = (np.array([float(value)]) for value in place)
    found = snap(network, x, y)
    if found.beyond[0]:
        west, south, east, north = bounds(network)
        raise NetworkError(
            f"({x[0]:g}, {y[0]:g}) lies more than {MARGIN_M:g} m outside the roads, which lie between "
            f"({west:.6g}, {south:.6g}) and ({east:.6g}, {north:.6g}); longitude comes first, then latitude"
        )
    return network.labels[int(found.nodes[0])]


def beyond(network: RoadNetwork, x: Floats, y: Floats) -> Bools:
    """Mark the places outside the rectangle around all nodes, widened by `MARGIN_M`."""
    west, south, east, north = bounds(network)
    wide, high = MARGIN_M, MARGIN_M
    if network.is_geographic:
        high = float(np.degrees(MARGIN_M / EARTH_RADIUS_M))
        wide = high / max(float(np.cos(np.radians((south + north) / 2))), 1e-6)
    inside = (x >= west - wide) & (x <= east + wide) & (y >= south - high) & (y <= north + high)
    return np.asarray(~inside, dtype=np.bool_)


def bounds(network: RoadNetwork) -> tuple[float, float, float, float]:
    """Return the least x and y and the largest x and y of all nodes."""
    if np.isnan(network.x).all():
        raise NetworkError(f"{network!r} has no coordinates, so no node is nearest; name nodes by their labels")
    x, y = network.x, network.y
    return float(np.nanmin(x)), float(np.nanmin(y)), float(np.nanmax(x)), float(np.nanmax(y))
