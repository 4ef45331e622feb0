"""How dense demand is on some roads, beside what was measured in real places."""

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from routesim.arrays import Floats, Ints32
from routesim.errors import ImplausibleDemandWarning
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import Workspace, shortest_tree

if TYPE_CHECKING:
    from routesim.demand.demand import Demand

ORDINARY = 84.0
"""Vehicle-kilometres an hour for each lane-kilometre: 84 and 83 in the two cities whose real trips were measured."""

FAR_ABOVE = 3.0
"""Demand this many times denser than that is warned of."""

_MOST_ORIGINS = 64
_HOUR_S = 3600.0


class Density(NamedTuple):
    """The demand's mean rates on some roads; two real cities had 84 vehicle-kilometres an hour for a lane-kilometre.

    That is a rule of thumb from two places. Trips are taken to go the quickest way on empty roads. NaN where it cannot
    be said: trips that all depart at once, or roads of unknown length.
    """

    vehicles_per_hour: float
    trips_per_road_km: float
    mean_trip_km: float
    vehicle_km_per_lane_km: float

    @property
    def times_ordinary(self) -> float:
        """How many times denser than in the two real cities."""
        return self.vehicle_km_per_lane_km / ORDINARY

    @property
    def is_far_above(self) -> bool:
        """Whether real places hardly have so much traffic."""
        return bool(self.times_ordinary > FAR_ABOVE)

    def figures(self) -> dict[str, Any]:
        """Return the figures by name; None for those that cannot be said."""
        figures = {**self._asdict(), "times_ordinary": self.times_ordinary}
        return {name: float(f"{value:.4g}") if np.isfinite(value) else None for name, value in figures.items()}

    def __str__(self) -> str:
        return (
            f"{self.vehicles_per_hour:,.0f} vehicles an hour, {self.trips_per_road_km:,.1f} for each kilometre of "
            f"road, {self.mean_trip_km:.2g} km each: {self.vehicle_km_per_lane_km:,.3g} vehicle-km an hour for each "
            f"lane-km, {self.times_ordinary:.3g} times what two real cities have ({ORDINARY:g})"
        )


def warn_if_dense(density: Density, source: str) -> None:
    """Warn of demand that is far above what real places have."""
    if density.is_far_above:
        warnings.warn(
            f"{source}: {density}; check the unit and the hours of the demand, or scale it down, as with "
            f"demand.scaled({1 / density.times_ordinary:.2g})",
            ImplausibleDemandWarning,
            stacklevel=4,
        )


def density(network: RoadNetwork, demand: "Demand") -> Density:
    """Return how dense the demand is; of many origins some are taken, evenly spaced."""
    span, vehicles = demand.end_s - demand.start_s, demand.expected_vehicles
    per_hour = vehicles * _HOUR_S / span if span > 0 else np.nan
    # A connector stands for streets that the network does not have, so it is no road.
    roads = ~(network.no_through[network.tails] | network.no_through[network.heads])
    length_km = np.where(roads, np.nan_to_num(network.length_m), 0.0) / 1000
    road_km, lane_km = float(length_km.sum()), float((length_km * network.lanes).sum())
    mean_km = _mean_trip_km(network, demand, length_km)
    with np.errstate(divide="ignore", invalid="ignore"):
        density = np.float64(per_hour) * mean_km / lane_km if lane_km else np.nan
    return Density(per_hour, per_hour / road_km if road_km else np.nan, mean_km, float(density))


def _mean_trip_km(network: RoadNetwork, demand: "Demand", length_km: Floats) -> float:
    nodes, work = demand.nodes(network), Workspace.build(network.graph)
    starts, goals = nodes[demand.origins], nodes[demand.destinations]
    every = np.unique(starts)
    chosen = every[np.linspace(0, len(every) - 1, min(len(every), _MOST_ORIGINS)).astype(np.int64)]
    order = np.argsort(starts, kind="stable")
    first = np.searchsorted(starts[order], chosen, side="left")
    last = np.searchsorted(starts[order], chosen, side="right")
    driven_km, trips = 0.0, 0.0
    for origin, begin, end in zip(chosen.tolist(), first.tolist(), last.tolist(), strict=True):
        rows = order[begin:end]
        _, parents = shortest_tree(network.graph, network.free_flow_s, origin, workspace=work)
        reached = (parents[goals[rows]] >= 0) & (demand.vehicles[rows] > 0)
        away_km = _along_tree(network, parents, length_km)[goals[rows]]
        driven_km += float(away_km[reached] @ demand.vehicles[rows][reached])
        trips += float(demand.vehicles[rows][reached].sum())
    return driven_km / trips if trips else float("nan")


def _along_tree(network: RoadNetwork, parents: Ints32, length_km: Floats) -> Floats:
    """Return the length of the way to every place of a tree, by jumps towards its root that double each time."""
    graph, place = network.graph, np.arange(network.graph.n_places)
    edges = graph.roads[parents] if len(graph.roads) else parents
    ahead = np.where(parents >= 0, graph.tails[parents], place)
    away_km = np.where(parents >= 0, length_km[edges], 0.0)
    while not np.array_equal(ahead, ahead[ahead]):
        away_km, ahead = away_km + away_km[ahead], ahead[ahead]
    return np.asarray(away_km, dtype=np.float64)
