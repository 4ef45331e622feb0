"""Where a model of traffic was out of its depth, in plain words: roads above capacity, gridlock, endless trips."""

from collections.abc import Sequence

import numpy as np

from routesim.results.thinned_traffic import TrafficRun
from routesim.roads.network import RoadNetwork
from routesim.traffic.engines.window import Window


def physics_of(runs: Sequence[TrafficRun]) -> str:
    """Return what traffic did to travel times in these replications."""
    return str(runs[0].summary.get("physics", Window.label))


def depth_notices(runs: Sequence[TrafficRun], network: RoadNetwork) -> tuple[str, ...]:
    """Return what a reader of these replications must know about their physics, nothing where all was within it."""
    return _above_capacity(runs, network) if physics_of(runs) == Window.label else _gridlock(runs)


def _above_capacity(runs: Sequence[TrafficRun], network: RoadNetwork) -> tuple[str, ...]:
    most = max(runs, key=lambda run: _count(run, "worst_ratio_above_capacity"))
    n_edges = max(_count(run, "roads_above_capacity") for run in runs)
    edge, ratio = int(_count(most, "worst_edge_above_capacity")), _count(most, "worst_ratio_above_capacity")
    if n_edges < 1:
        return ()
    worst = ""
    if ratio > 1 and 0 <= edge < network.n_edges:
        worst = f", the worst, {road_name(network, edge)}, {ratio:.2g} times its capacity"
    return (
        f"{n_edges:,.0f} of {network.n_edges:,} roads were entered above capacity{worst}. The window count holds "
        "nobody back there, so trips are too short; use physics with queues, or less demand.",
    )


def _gridlock(runs: Sequence[TrafficRun]) -> tuple[str, ...]:
    said = []
    forced, missing, outside = (_mean(runs, name) for name in ("forced_moves", "missing", "waiting_to_enter"))
    of = " on average of the replications" if len(runs) > 1 else ""
    if forced:
        said.append(
            f"Gridlock: {_plain(forced)} moves were forced{of} after vehicles had been stuck. With less demand the "
            "figures mean more."
        )
    if missing:
        vehicles = _plain(_mean(runs, "vehicles"))
        said.append(
            f"{_plain(missing)} of {vehicles} vehicles had not arrived when the run ended{of}; {_plain(outside)} of "
            "them were still waiting to enter the roads. Means leave them out."
        )
    return tuple(said)


def road_name(network: RoadNetwork, edge: int) -> str:
    """Return the name of a road with its number."""
    name = network.names[edge]
    return f"{name} (edge {edge})" if name else f"edge {edge}"


def _count(run: TrafficRun, name: str) -> float:
    if name == "missing":
        # Those who were to depart after the run was stopped are not missing.
        return _count(run, "driving") + _count(run, "waiting_to_enter")
    return float(run.summary.get(name, 0))


def _mean(runs: Sequence[TrafficRun], name: str) -> float:
    return float(np.mean([_count(run, name) for run in runs]))


def _plain(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.2g}"
