"""Whether vehicles can get where they want to go at all, and how long that takes on empty roads at least."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints32
from routesim.errors import NoPathError
from routesim.roads.edits import connected_nodes
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import Workspace, tree


def check_reachable(network: RoadNetwork, origins: Ints32, destinations: Ints32) -> None:
    """Refuse vehicles of which one cannot reach its destination, naming the first."""
    if _all_connected(network, np.concatenate((origins, destinations))):
        return
    goals, row = np.unique(destinations, return_inverse=True)
    order = np.argsort(row, kind="stable")
    ends = np.searchsorted(row[order], np.arange(len(goals) + 1))
    stuck: list[int] = []
    for place, time in enumerate(times_to_go(network, goals)):
        mine = order[ends[place] : ends[place + 1]]
        stuck += mine[~np.isfinite(time[origins[mine]])][:1].tolist()
    if stuck:
        raise no_way(network, min(stuck), origins[min(stuck)], destinations[min(stuck)])


def times_to_go(network: RoadNetwork, goals: NDArray[np.integer]) -> Iterator[Floats]:
    """Yield, for each goal, the time to it from every place of the graph (every node first) on empty roads."""
    reverse, work = network.graph.reverse(), Workspace.build(network.graph)
    costs = network.free_flow_s.copy()  # writable: a read-only array would be another type to the compiler
    for goal in goals.tolist():
        yield tree(reverse, costs, goal, work.no_potential, np.inf, work)[0]


def no_way(network: RoadNetwork, vehicle: int, origin: int, destination: int) -> NoPathError:
    """Return the error that says that a vehicle cannot reach its destination."""
    return NoPathError(
        f"vehicle {vehicle} cannot go from node {network.labels[origin]!r} to node "
        f"{network.labels[destination]!r}: no path leads there; leave the trip out or connect the nodes"
    )


def _all_connected(network: RoadNetwork, nodes: Ints32) -> bool:
    """Tell whether each of these nodes is known to reach every other; none is, where zones carry no through traffic."""
    return not network.no_through.any() and bool(connected_nodes(network)[nodes].all())
