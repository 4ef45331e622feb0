"""Ready demands of the bundled cities: `load_demand(name)`, at heavy or ordinary levels.

Coquimbo has 133 zones with their inhabitants, between which a gravity model spreads the trips. The other cities come
without people, so their demand is synthetic: zones are spread over the roads as far from each other as they can be,
and as many people are put into each as there are lane-metres of road nearer to it than to any other. It is a load
on the roads of plausible shape, and says nothing about who lives or drives there.
"""

from collections.abc import Hashable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from routesim.demand.demand import HOUR_S, Demand
from routesim.errors import InputError
from routesim.roads.cities import load_city, load_zones
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import Workspace, shortest_tree

SYNTHETIC_ZONES = 24
# Vehicles an hour at which the user equilibrium's mean trip takes about 1.5 times as long as on empty roads: a heavy
# morning. Made with `scripts/city_demand.py`, before the turns that are banned in some of the places were known: in
# Helsinki trips take about 1.7 times as long with them.
HEAVY_VPH: Mapping[str, float] = {
    "cologne": 11_000.0,
    "coquimbo": 98_000.0,
    "gothenburg": 13_000.0,
    "helsinki": 21_000.0,
    "ingolstadt": 7_200.0,
    "monaco": 20_000.0,
    "nauru": 6_900.0,
}
# Vehicles an hour at which 84 vehicle-kilometres an hour are driven for each kilometre of lane, when everybody takes
# the quickest way on empty roads: a rule of thumb from two cities whose trips are known (84 in Cologne and 83 in
# Ingolstadt). Two cities are few, so scale it where you know better.
ORDINARY_VPH: Mapping[str, float] = {
    "cologne": 1_880.0,
    "coquimbo": 28_400.0,
    "gothenburg": 18_400.0,
    "helsinki": 3_390.0,
    "ingolstadt": 5_150.0,
    "monaco": 3_480.0,
    "nauru": 3_350.0,
}
MOST_SCALE = 1000.0


class SyntheticZones(NamedTuple):
    """Places and how many people are put there."""

    node: tuple[Hashable, ...]
    population: tuple[float, ...]


def load_demand(
    name: str,
    vehicles: float | None = None,
    start_s: float = 0.0,
    end_s: float = HOUR_S,
    *,
    profile: ArrayLike = (1.0,),
    scale: str | float | None = None,
) -> Demand:
    """Return the demand of a bundled city between two times: `vehicles` in all, or as many as the `scale` says.

    "heavy" (unless given) is a load at which, in the user equilibrium, the mean trip takes about 1.5 times as long as
    on empty roads (`HEAVY_VPH`). "ordinary" is what roads carry on an ordinary day by a rule of thumb
    (`ORDINARY_VPH`), and a number is so many times that.
    """
    network = load_city(name)
    if vehicles is None:
        vehicles = vehicles_an_hour(name, "heavy" if scale is None else scale) * (end_s - start_s) / HOUR_S
    elif scale is not None:
        raise InputError(f"give either vehicles or scale, got vehicles={vehicles} and scale={scale!r}")
    if name == "coquimbo":
        return Demand.from_zones(network, load_zones(name), vehicles, start_s, end_s, profile=profile)
    zones, mean_s = synthetic_zones(network)
    return Demand.from_zones(network, zones, vehicles, start_s, end_s, decay_s=mean_s / 2, profile=profile)


def vehicles_an_hour(name: str, scale: str | float) -> float:
    """Return the vehicles an hour of a bundled city at a scale."""
    if isinstance(scale, str):
        if scale not in ("heavy", "ordinary"):
            raise InputError(f'scale is "ordinary", "heavy" or so many times ordinary, got {scale!r}')
        return (HEAVY_VPH if scale == "heavy" else ORDINARY_VPH)[name]
    if isinstance(scale, bool) or not 0 < scale <= MOST_SCALE:
        raise InputError(f"scale lies above 0 and at most at {MOST_SCALE:g} times ordinary, got {scale!r}")
    return float(scale) * ORDINARY_VPH[name]


def synthetic_zones(network: RoadNetwork, k: int = SYNTHETIC_ZONES) -> tuple[SyntheticZones, float]:
    """Return up to `k` zones, and the mean time in seconds between two of them on empty roads.

    The first is the node nearest to the middle of all; each further one is the node that takes longest to reach from
    those before.
    """
    if k < 2:
        raise InputError(f"demand needs at least two zones, got k={k}")
    graph, work = network.graph, Workspace.build(network.graph)
    middle = np.hypot(network.x - np.nanmean(network.x), network.y - np.nanmean(network.y))
    chosen = [int(np.nanargmin(middle))]
    times = [shortest_tree(graph, network.free_flow_s, chosen[0], workspace=work)[0]]
    while len(chosen) < min(k, network.n_nodes):
        nearest = np.min(times, axis=0)
        chosen.append(int(np.argmax(np.where(np.isfinite(nearest), nearest, -1.0))))
        times.append(shortest_tree(graph, network.free_flow_s, chosen[-1], workspace=work)[0])
    home = np.argmin(np.stack(times), axis=0)[network.tails]
    people = np.bincount(home, network.lanes * np.nan_to_num(network.length_m), len(chosen))
    between = np.stack(times)[:, chosen]
    mean_s = float(between.sum() / (len(chosen) * (len(chosen) - 1)))
    return SyntheticZones(tuple(network.labels[node] for node in chosen), tuple(people.tolist())), mean_s
