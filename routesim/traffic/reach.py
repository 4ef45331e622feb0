"""Whether vehicles can get where they want to go at all, and how long that takes on empty roads at least."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints32
from routesim.errors import NoPathError
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import Workspace, shortest_tree


def check_reachable(network: RoadNetwork, origins: Ints32, destinations: Ints32) -> None:
    """Refuse vehicles of which one cannot reach its destination, naming the first."""
    if _strongly_connected(network):
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
    """Yield, for each goal, the time to it from every node on empty roads."""
    reverse, work = network.graph.reverse(), Workspace.build(network.graph)
    for goal in goals.tolist():
        yield shortest_tree(reverse, network.free_flow_s, goal, workspace=work)[0]


def no_way(network: RoadNetwork, vehicle: int, origin: int, destination: int) -> NoPathError:
    """Return the error that says that a vehicle cannot reach its destination."""
    return NoPathError(
        f"vehicle {vehicle} cannot go from node {network.labels[origin]!r} to node "
        f"{network.labels[destination]!r}: no path leads there; leave the trip out or connect the nodes"
    )


def _strongly_connected(network: RoadNetwork) -> bool:
    """Tell whether every node reaches every other, zones without through traffic aside."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if network.no_through.any():
        return False
    joined = coo_array((np.ones(network.n_edges), (network.tails, network.heads)), shape=(network.n_nodes,) * 2)
    parts, _ = connected_components(joined, connection="strong")
    return bool(parts == 1)
