"""Networks made of networks: a part of one, its largest component, its junctions consolidated."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints
from routesim.errors import NetworkError
from routesim.roads.columns import EDGE_NUMBERS
from routesim.roads.importers.assemble import number_parallel
from routesim.roads.network import RoadNetwork
from routesim.roads.signal_times import SignalTimes


def subnetwork(network: RoadNetwork, edges: NDArray[Any], nodes: NDArray[Any] | None = None) -> RoadNetwork:
    """Keep these edges in this order, and these nodes (else those the edges touch) in the network's order."""
    edges = _checked(edges, "edges", network.n_edges)
    touched = np.union1d(network.tails[edges], network.heads[edges])
    kept = touched if nodes is None else np.unique(_checked(nodes, "nodes", network.n_nodes))
    if len(np.setdiff1d(touched, kept)):
        missing = network.labels[int(np.setdiff1d(touched, kept)[0])]
        raise NetworkError(f"an edge to be kept touches node {missing!r}, which is not: keep it too")
    position = np.full(network.n_nodes, -1, dtype=np.int64)
    position[kept] = np.arange(len(kept))
    shape_xy, shape_offsets = _gather_shapes(network, edges)
    return replace(
        network,
        labels=tuple(network.labels[i] for i in kept.tolist()),
        x=network.x[kept],
        y=network.y[kept],
        no_through=network.no_through[kept],
        signals=network.signals[kept],
        signal_times=network.signal_times.renumbered(_numbers(network, edges)),
        tails=position[network.tails[edges]].astype(np.int32),
        heads=position[network.heads[edges]].astype(np.int32),
        keys=network.keys[edges],
        shape_xy=shape_xy,
        shape_offsets=shape_offsets,
        **_bans_among(network, edges),
        **_kept(network, edges),
    )


def _bans_among(network: RoadNetwork, edges: Ints) -> dict[str, Any]:
    """Return the bans by the numbers that edges get when only these are kept; others cannot be broken any more."""
    numbers = _numbers(network, edges)
    turns = numbers[network.banned_turns]
    ways = (tuple(numbers[list(way)].tolist()) for way in network.banned_ways)
    return {
        "banned_turns": turns[(turns >= 0).all(axis=1)],
        "banned_ways": tuple(way for way in ways if min(way) >= 0),
    }


def largest_component(network: RoadNetwork) -> RoadNetwork:
    """Keep the largest strongly connected component; of equals, the one with the first node.

    Where turns are banned, a path that keeps to the bans leads from each of its nodes to every other. They are the
    nodes from which one gets onto the largest part of the roads on which drivers can go on from anywhere to anywhere,
    and to which one gets from there.
    """
    while True:
        kept = connected_nodes(network)
        if kept.all():
            return network
        edges = np.flatnonzero(kept[network.tails] & kept[network.heads])
        network = subnetwork(network, edges, np.flatnonzero(kept))


def connected_nodes(network: RoadNetwork) -> NDArray[np.bool_]:
    """Mark nodes of which each can be reached from every other, as many as are found; zones count as any node.

    Paths between them may lead over further nodes.
    """
    if not network.bans:
        return largest_component_nodes(network.n_nodes, network.tails, network.heads)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    from routesim.roads.graph import Graph  # late: it compiles

    graph = Graph.build(network.tails, network.heads, network.n_nodes, banned=network.bans)
    through = ~graph.no_through  # nobody goes on from a node that has copies
    goes_on, came_on = through[graph.tails], through[graph.heads]
    core = largest_component_nodes(graph.n_places, graph.tails[goes_on & came_on], graph.heads[goes_on & came_on])
    connected = np.ones(graph.n_places, dtype=np.bool_)
    for tails, heads in ((graph.tails[goes_on], graph.heads[goes_on]), (graph.heads[came_on], graph.tails[came_on])):
        joins = coo_array((np.ones(len(tails)), (tails, heads)), shape=(graph.n_places, graph.n_places)).tocsr()
        reached = np.zeros_like(connected)
        reached[breadth_first_order(joins, int(np.argmax(core)), return_predecessors=False)] = True
        connected &= reached
    return connected[: network.n_nodes]


def largest_component_nodes(
    n_nodes: int, tails: NDArray[np.integer[Any]], heads: NDArray[np.integer[Any]]
) -> NDArray[np.bool_]:
    """Mark the nodes of the largest strongly connected component."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    matrix = coo_array((np.ones(len(tails), dtype=np.int8), (tails, heads)), shape=(n_nodes, n_nodes)).tocsr()
    _, component = connected_components(matrix, directed=True, connection="strong")
    sizes = np.bincount(component)
    largest = np.flatnonzero(sizes == sizes.max())
    first = component[np.argmax(np.isin(component, largest))]
    return np.asarray(component == first, dtype=np.bool_)


def consolidate(network: RoadNetwork, tolerance_m: float) -> RoadNetwork:
    """Merge the ends of every link of at most `tolerance_m` metres, and what those ends are merged with.

    A merged junction keeps the label of its first node and lies at the mean place of all. Links within it
    that are not longer than the tolerance disappear with their travel time; longer ones become loops. It has
    signals where any of its nodes has. It keeps a known programme if no movement of it begins or ends on a link that
    disappears, and no other node merged with it has signals without one. Nodes marked `no_through` and links of
    unknown length stay.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    tolerance = float(tolerance_m)
    if not (np.isfinite(tolerance) and tolerance >= 0):
        raise NetworkError(f"tolerance_m must be a finite number of metres, at least 0, got {tolerance_m}")
    tails, heads = network.tails, network.heads
    closed = network.no_through[tails] | network.no_through[heads]
    short = (network.length_m <= tolerance) & (tails != heads) & ~closed
    n = network.n_nodes
    links = coo_array((np.ones(int(short.sum())), (tails[short], heads[short])), shape=(n, n))
    _, cluster = connected_components(links.tocsr(), directed=True, connection="weak")
    _, first, members = np.unique(cluster, return_index=True, return_inverse=True)
    order = np.argsort(first)  # junctions in the order of their first node
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    member_of = rank[members]
    first = first[order]
    inside = (member_of[tails] == member_of[heads]) & short
    edges = np.flatnonzero(~inside)
    x, y = _mean_place(network, member_of, len(first))
    merged = np.bincount(member_of, minlength=len(first)) > 1
    new_tails, new_heads = member_of[tails[edges]], member_of[heads[edges]]
    shape_xy, shape_offsets = _gather_shapes(network, edges)
    # A line goes on to the place of the merged junction, where its old end was moved.
    for ends, at in ((new_tails, 0), (new_heads, -1)):
        drawn = (np.diff(shape_offsets) > 0) & merged[ends]
        point = shape_offsets[:-1] if at == 0 else shape_offsets[1:] - 1
        shape_xy[point[drawn]] = np.column_stack((x, y))[ends[drawn]]
    return replace(
        network,
        labels=tuple(network.labels[i] for i in first.tolist()),
        x=x,
        y=y,
        no_through=network.no_through[first],
        signals=np.bincount(member_of, weights=network.signals, minlength=len(first)) > 0,
        signal_times=_whole_programmes(network, edges, member_of),
        tails=new_tails.astype(np.int32),
        heads=new_heads.astype(np.int32),
        keys=number_parallel(new_tails, new_heads),
        shape_xy=shape_xy,
        shape_offsets=shape_offsets,
        **_kept(network, edges),
    )


def _numbers(network: RoadNetwork, edges: Ints) -> Ints:
    """Return what each edge is called once only `edges` are left, -1 for those that are gone."""
    numbers = np.full(network.n_edges, -1, dtype=np.int64)
    numbers[edges] = np.arange(len(edges))
    return numbers


def _whole_programmes(network: RoadNetwork, edges: Ints, member_of: Ints) -> SignalTimes:
    """Return the known programmes of those merged junctions in which nothing of them is lost."""
    times, numbers = network.signal_times, _numbers(network, edges)
    if not len(times):
        return times
    known = np.zeros(network.n_nodes, dtype=np.bool_)
    known[network.heads[times.edge]] = True
    torn = np.zeros(int(member_of.max()) + 1, dtype=np.bool_)
    lost = (numbers[times.edge] < 0) | ((times.to >= 0) & (numbers[times.to] < 0))
    torn[member_of[network.heads[times.edge[lost]]]] = True
    torn[member_of[network.signals & ~known]] = True
    return times.renumbered(np.where(torn[member_of[network.heads]], -1, numbers), numbers)


def _kept(network: RoadNetwork, edges: Ints) -> dict[str, Any]:
    """Return the columns that some edges keep wherever they lead."""
    return {
        "names": tuple(network.names[e] for e in edges.tolist()),
        "highways": tuple(network.highways[e] for e in edges.tolist()),
        "imputed_bits": network.imputed_bits[edges],
        **{column: getattr(network, column)[edges] for column in EDGE_NUMBERS},
    }


def _mean_place(network: RoadNetwork, member_of: Ints, n: int) -> tuple[Floats, Floats]:
    known = ~np.isnan(network.x)
    count = np.bincount(member_of[known], minlength=n).astype(np.float64)
    places = []
    for values in (network.x, network.y):
        with np.errstate(invalid="ignore"):
            mean = np.bincount(member_of[known], weights=values[known], minlength=n) / count
        # A junction of one node keeps its coordinates bit for bit.
        single = np.bincount(member_of, minlength=n) == 1
        mean[member_of[single[member_of]]] = values[single[member_of]]
        places.append(mean)
    return places[0], places[1]


def _gather_shapes(network: RoadNetwork, edges: Ints) -> tuple[Floats, Ints]:
    starts, counts = network.shape_offsets[edges], np.diff(network.shape_offsets)[edges]
    offsets = np.zeros(len(edges) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    points = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], counts)
    return network.shape_xy[points], offsets


def _checked(indices: NDArray[Any], what: str, n: int) -> Ints:
    if indices.dtype == np.bool_ and indices.shape == (n,):
        return np.flatnonzero(indices).astype(np.int64)
    if indices.size == 0:
        return np.empty(0, dtype=np.int64)
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or indices.min() < 0 or indices.max() >= n:
        raise NetworkError(f"{what} must be indices from 0 to {n - 1} or one truth value each")
    return indices.astype(np.int64)
