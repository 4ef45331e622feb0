"""Whether paths keep to the bans of a graph, and where vehicles are that have driven a part of one."""

import numpy as np

from routesim.arrays import Bools, Ints, Ints32
from routesim.kernels import kernel, lean_part
from routesim.roads.graph import Graph
from routesim.roads.shortest import road_of
from routesim.roads.turns import Way


@lean_part
def place_beyond(graph: Graph, place: int, edge: int) -> int:
    """Return the place of those who drive on from a place by an edge, -1 where that is banned."""
    beyond = -1
    for slot in range(graph.indptr[place], graph.indptr[place + 1]):
        arc = graph.out_edges[slot]
        if road_of(graph, arc) == edge:
            beyond = max(beyond, graph.heads[arc])  # the copies, for those who pass through, come behind the nodes
    return int(beyond)


@lean_part
def place_after(graph: Graph, path: Ints32, driven: int) -> int:
    """Return the place of those who have driven the first edges of a path, one or more."""
    if graph.roads.shape[0] == 0:
        return int(graph.heads[path[driven - 1]])
    first = max(0, driven - graph.memory)
    place = int(graph.after[path[first]])
    for edge in path[first + 1 : driven]:
        beyond = place_beyond(graph, place, edge)
        place = beyond if beyond >= 0 else int(graph.after[edge])  # a ban that was driven over is forgotten
    return place


@kernel
def drivable(graph: Graph, path: Ints32) -> tuple[int, int]:
    """Return how many edges of an unbroken path can be driven before a ban, and the place reached."""
    place = int(graph.tails[path[0]])
    for driven, edge in enumerate(path):
        beyond = place_beyond(graph, place, edge)
        if beyond < 0:
            return driven, place
        place = beyond
    return len(path), place


def banned_on(graph: Graph, path: Ints32) -> Way | None:
    """Return the banned turn or way that an unbroken path takes, None where it takes none."""
    if not len(graph.roads):
        return None
    n_allowed, _ = drivable(graph, path)
    if n_allowed == len(path):
        return None
    to_here = path[: n_allowed + 1]
    start = max(at for at in range(n_allowed) if drivable(graph, to_here[at:])[0] < n_allowed + 1 - at)
    return tuple(to_here[start:].tolist())


def said(way: Way) -> str:
    """Name a banned turn or way."""
    if len(way) == 2:
        return f"the banned turn from edge {way[0]} onto edge {way[1]}"
    return f"the banned way over the edges {', '.join(map(str, way))}"


@kernel
def banned_rows(graph: Graph, indptr: Ints, edges: Ints32) -> Bools:
    """Mark the rows that are a path over a ban."""
    banned = np.zeros(len(indptr) - 1, dtype=np.bool_)
    for row in range(len(banned)):
        path = edges[indptr[row] : indptr[row + 1]]
        if len(path) > 0:
            banned[row] = drivable(graph, path)[0] < len(path)
    return banned


def has_needless_loop(graph: Graph, path: Ints32, *, so_far: bool = False) -> bool:
    """Tell whether a path still keeps to the bans without what lies between two visits to a node.

    Of the beginning of a path (`so_far`) the same must be allowed after it, with the loop and without.
    """
    nodes = [int(graph.tails[path[0]]), *graph.heads[path].tolist()]
    visits: dict[int, list[int]] = {}
    end = drivable(graph, path)[1] if so_far else -1
    for place, node in enumerate(nodes):
        for before in visits.get(node, ()):
            shorter = np.concatenate((path[:before], path[place:]))
            if not len(shorter):
                return True
            n_allowed, reached = drivable(graph, shorter)
            if n_allowed == len(shorter) and (not so_far or reached == end):
                return True
        visits.setdefault(node, []).append(place)
    return False
