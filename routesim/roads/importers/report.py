"""What an import gave: extent, what was filled in and left out, signals, and trips to start with."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from routesim.arrays import Bools, Floats, Ints32
from routesim.roads.columns import IMPUTED_BITS
from routesim.roads.edits import largest_component_nodes
from routesim.roads.importers.plausible import implausible, implied_speeds
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import shortest_tree, trace
from routesim.storage.reading import one_line

N_EXAMPLES = 3


class ExampleTrip(NamedTuple):
    """Two nodes far apart that reach each other, and the quickest path between them on empty roads."""

    origin: Hashable
    destination: Hashable
    free_flow_s: float
    length_m: float


@dataclass(frozen=True)
class ImportReport:
    """What is worth knowing of a network before it is used; `lines` says it in words."""

    network: RoadNetwork
    bounds: tuple[float, float, float, float] | None
    imputed: Mapping[str, float]
    median_kph: float
    problem: str
    n_signals: int
    n_programmes: int
    left_out: Mapping[str, int]
    examples: tuple[ExampleTrip, ...]

    @classmethod
    def of(cls, network: RoadNetwork) -> "ImportReport":
        """Look a network over."""
        known = ~np.isnan(network.x)
        x, y = network.x[known], network.y[known]
        speeds = implied_speeds(network)
        speeds = speeds[~np.isnan(speeds)]
        timed = np.unique(network.heads[network.signal_times.edge])
        return cls(
            network=network,
            bounds=(float(x.min()), float(y.min()), float(x.max()), float(y.max())) if len(x) else None,
            imputed={what: float(network.imputed(what).mean()) if network.n_edges else 0.0 for what in IMPUTED_BITS},
            median_kph=float(np.median(speeds)) if len(speeds) else np.nan,
            problem=implausible(network),
            n_signals=int(network.signals.sum()),
            n_programmes=len(timed),
            left_out=network.left_out,
            examples=example_trips(network),
        )

    @property
    def lines(self) -> list[str]:
        """The report in words, line by line."""
        network = self.network
        km = np.nansum(network.length_m) / 1000.0
        lines = [f"{network.n_nodes:,} nodes, {network.n_edges:,} edges, {km:,.1f} km of road in driving directions"]
        if self.bounds is None:
            lines.append("Bounding box: unknown, as no node has coordinates")
        else:
            what = "longitude and latitude" if network.is_geographic else "x and y"
            west, south, east, north = (_number(value, network) for value in self.bounds)
            lines.append(f"Bounding box ({what}): {west}, {south} to {east}, {north}")
        shares = ", ".join(f"{what} {share:.0%}" for what, share in self.imputed.items())
        lines.append(f"Filled in by rule, share of edges: {shares}")
        if not np.isnan(self.median_kph):
            lines.append(f"Free-flow speed where the source states it: median {self.median_kph:.3g} km/h")
        if self.problem:
            lines.append(f"Implausible: {self.problem}; check the units")
        lines.append(f"Traffic signals: {self.n_signals:,} nodes, {self.n_programmes:,} with a known programme")
        lines.append(f"Banned turns: {_bans(network)}")
        left = ", ".join(f"{n:,} {one_line(what)}" for what, n in self.left_out.items() if n)
        lines.append(f"Left out: {left or 'nothing that is counted'}")
        none = "Trips to start with: none, as no two nodes reach each other"
        lines.append("Trips to start with, quickest paths on empty roads:" if self.examples else none)
        for trip in self.examples:
            length = "" if np.isnan(trip.length_m) else f"{trip.length_m / 1000:.1f} km, "
            ends = " to ".join(_end(network, label) for label in (trip.origin, trip.destination))
            lines.append(f"  {ends}: {length}{trip.free_flow_s / 60:.1f} min")
        return lines


def example_trips(network: RoadNetwork, n: int = N_EXAMPLES) -> tuple[ExampleTrip, ...]:
    """Return up to `n` trips between nodes of the largest component that are far apart in time, the same every time.

    Each origin is as far as can be from the ends of the trips before, and each destination from its origin.
    """
    inside = largest_component_nodes(network.n_nodes, network.tails, network.heads)
    if inside.sum() < 2:
        return ()
    free = inside.copy()
    nearest = _tree(network, int(np.argmax(inside)))[0]
    trips: list[ExampleTrip] = []
    while len(trips) < n and free.sum() >= 2:
        origin = _farthest(nearest, free)
        if origin < 0:
            break
        free[origin] = False
        times, parents = _tree(network, origin)
        destination = _farthest(times, free)
        if destination < 0:
            break
        free[destination] = False
        path = trace(network.graph, parents, destination)
        ends = network.labels[origin], network.labels[destination]
        trips.append(ExampleTrip(*ends, float(times[destination]), float(network.length_m[path].sum())))
        nearest = times if len(trips) == 1 else np.minimum(nearest, times)
        nearest = np.minimum(nearest, _tree(network, destination)[0])
    return tuple(trips)


def _tree(network: RoadNetwork, origin: int) -> tuple[Floats, Ints32]:
    return shortest_tree(network.graph, network.free_flow_s, origin)


def _farthest(times: Floats, free: Bools) -> int:
    """Return the free node that takes longest to reach, of equals the first; -1 if none is reached."""
    usable = free & np.isfinite(times)
    return int(np.argmax(np.where(usable, times, -1.0))) if usable.any() else -1


def _number(value: float, network: RoadNetwork) -> str:
    return f"{value:.5f}" if network.is_geographic else f"{value:.1f}"


def _bans(network: RoadNetwork) -> str:
    n_turns, n_ways = len(network.banned_turns), len(network.banned_ways)
    if not (network.bans_known or n_turns or n_ways):
        return "unknown, as the source does not say"
    return f"{n_turns:,} pairs of edges, {n_ways:,} longer ways"


def _end(network: RoadNetwork, label: Hashable) -> str:
    node = network.node_index(label)
    x, y = float(network.x[node]), float(network.y[node])
    if np.isnan(x):
        return f"node {label!r:.60}"
    return f"node {label!r:.60} ({_number(x, network)}, {_number(y, network)})"
