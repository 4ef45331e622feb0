"""Fewer nodes for the same paths: dead ends left out, and roads without a junction joined to one link.

Half the nodes of a city are bends or ends of streets. Paths between the nodes that demand knows never turn there,
so the search can do without them: a link stands for a run of edges, and costs what they cost together.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints, Ints32
from routesim.kernels import kernel
from routesim.roads.graph import Graph
from routesim.roads.network import RoadNetwork


class Links(NamedTuple):
    """A graph of links in order of their heads; link k runs along the edges members[first[k] : first[k + 1]], in order.

    `junctions` holds the places that are left, ascending, and `number` the position of each place in it or -1. Places
    are nodes, and copies of nodes where turns are banned; see `Graph`. Then every link runs along one edge, and several
    may run along the same: link k is of road roads[k], and link leaders[r] is one of road r.
    """

    graph: Graph
    first: Ints
    members: Ints32
    junctions: Ints32
    number: Ints32
    roads: Ints32
    leaders: Ints32

    def by_road(self) -> tuple[Ints, Ints32]:
        """Return where the edges of each road begin, and the edges."""
        lengths = np.diff(self.first)[self.leaders]
        first = np.concatenate(([0], np.cumsum(lengths)))
        return first, self.members[np.arange(first[-1]) + np.repeat(self.first[self.leaders] - first[:-1], lengths)]

    def prices(self, by_edge: Floats) -> Floats:
        """Return the price of every link."""
        return np.add.reduceat(by_edge[self.members], self.first[:-1]) if len(self.members) else np.empty(0)

    def spread(self, by_road: Floats, n_edges: int) -> Floats:
        """Return the flow of every edge: that of its road, or none."""
        flows = np.zeros(n_edges)
        first, members = self.by_road()
        flows[members] = np.repeat(by_road, np.diff(first))
        return flows


def contract(network: RoadNetwork, terminals: NDArray[np.int32]) -> Links:
    """Return the links of a network on which demand starts and ends only at the nodes `terminals`."""
    graph = network.graph
    kept = np.zeros(graph.n_places, dtype=np.bool_)
    kept[terminals] = True
    edges = graph.roads if len(graph.roads) else np.arange(len(graph.tails), dtype=np.int32)
    if len(graph.roads):
        # Who may not turn left may drive on and turn round at the next bend, or in a dead end, so all of them stay.
        junction = alive = np.ones(graph.n_places, dtype=np.bool_)
    else:
        alive = _prune(graph.tails, graph.heads, kept, graph.n_places)
        junction = alive & (kept | graph.no_through | ~_passable(graph.tails, graph.heads, alive))
    tails, heads, lengths, members = _walk(graph, alive, junction)
    members = edges[members]
    order = np.argsort(heads, kind="stable")
    ends, lengths = np.cumsum(lengths), lengths[order]
    first = np.concatenate(([0], np.cumsum(lengths)))
    starts = ends[order] - lengths
    members = members[np.arange(first[-1]) + np.repeat(starts - first[:-1], lengths)]
    tails, heads = tails[order], heads[order]
    junctions = np.flatnonzero(junction).astype(np.int32)
    number = np.full(graph.n_places, -1, dtype=np.int32)
    number[junctions] = np.arange(len(junctions), dtype=np.int32)
    contracted = Graph.build(number[tails], number[heads], len(junctions), no_through=graph.no_through[junctions])
    _, leaders, roads = np.unique(members[first[:-1]], return_index=True, return_inverse=True)
    if len(leaders) == len(tails):
        leaders = roads = np.arange(len(tails))
    else:
        contracted = contracted._replace(roads=roads.astype(np.int32))
    return Links(contracted, first, members, junctions, number, roads.astype(np.int32), leaders.astype(np.int32))


def _neighbours(tails: Ints32, heads: Ints32, alive: NDArray[np.bool_]) -> Ints:
    """Return how many other nodes each live node is joined to."""
    n_nodes = len(alive)
    usable = alive[tails] & alive[heads] & (tails != heads)
    one, other = tails[usable].astype(np.int64), heads[usable].astype(np.int64)
    joined = np.unique(np.concatenate((one * n_nodes + other, other * n_nodes + one)))
    return np.bincount(joined // n_nodes, minlength=n_nodes)


def _prune(tails: Ints32, heads: Ints32, kept: NDArray[np.bool_], n_nodes: int) -> NDArray[np.bool_]:
    """Mark the nodes left when nodes with a single neighbour, unless kept, are taken away again and again."""
    alive = np.ones(n_nodes, dtype=np.bool_)
    while True:
        neighbours = _neighbours(tails, heads, alive)
        ends = alive & ~kept & (neighbours <= 1)
        if not ends.any():
            return alive
        alive &= ~ends


def _passable(tails: Ints32, heads: Ints32, alive: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark nodes with two neighbours and no two parallel edges: who comes from one can only go on to the other."""
    neighbours = _neighbours(tails, heads, alive)
    order = np.lexsort((heads, tails))
    twice = np.zeros(len(tails), dtype=np.bool_)
    twice[order[1:]] = (tails[order[1:]] == tails[order[:-1]]) & (heads[order[1:]] == heads[order[:-1]])
    parallel = np.zeros(len(alive), dtype=np.bool_)
    parallel[tails[twice]] = parallel[heads[twice]] = True
    return np.asarray((neighbours == 2) & ~parallel, dtype=np.bool_)


@kernel
def _walk(graph: Graph, alive: NDArray[np.bool_], junction: NDArray[np.bool_]) -> tuple[Ints32, Ints32, Ints, Ints32]:
    """Follow every edge out of a junction to the next one; leave out what comes back or leads nowhere."""
    indptr, out_edges, heads = graph.indptr, graph.out_edges, graph.heads
    link_tails, link_heads = np.empty(len(heads), dtype=np.int32), np.empty(len(heads), dtype=np.int32)
    lengths, members = np.empty(len(heads), dtype=np.int64), np.empty(len(heads), dtype=np.int32)
    links = used = 0
    for start in range(len(alive)):
        if not junction[start]:
            continue
        for edge in out_edges[indptr[start] : indptr[start + 1]]:
            begin, before, node = used, start, heads[edge]
            if not alive[node] or node == start:
                continue
            members[used] = edge
            used += 1
            while not junction[node]:
                onward = -1
                for candidate in out_edges[indptr[node] : indptr[node + 1]]:
                    head = heads[candidate]
                    if alive[head] and head != before and head != node:
                        onward = candidate
                if onward < 0:
                    break
                before, node = node, heads[onward]
                members[used] = onward
                used += 1
            if not junction[node] or node == start:
                used = begin
                continue
            link_tails[links], link_heads[links], lengths[links] = start, node, used - begin
            links += 1
    return link_tails[:links], link_heads[:links], lengths[:links], members[:used]
