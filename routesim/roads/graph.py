"""The one graph of the package: directed edges between numbered nodes, as arrays that compiled code reads.

Path sets, the simulator, plans over whole graphs and assignment all search a `Graph`: that of a network
(`RoadNetwork.graph`), a part of it, or the links that are left of it when roads without a junction are joined.

Where turns are banned, a node alone does not say which edges may follow. So a node that bans are about gets copies, see
`routesim.roads.turns`, and searches run from copy to copy. Nodes and copies together are called places here: place v is
node v itself for v < n_nodes, and a copy of node copy_of[v - n_nodes] beyond. What leads from place to place is an arc
and stands for the edge roads[arc]. Edges keep their numbers: for e < n_edges, arc e is edge e from node to node. Where
nothing is banned, places are the nodes, arcs are the edges, and the arrays that translate are empty.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from routesim.arrays import Bools, Ints32
from routesim.errors import InputError
from routesim.kernels import kernel
from routesim.roads.turns import split_nodes


class Graph(NamedTuple):
    """A directed multigraph: edge e leads from tails[e] to heads[e].

    The arcs out of place v are out_edges[indptr[v] : indptr[v + 1]], in ascending order. A path may start or
    end at a no_through node, as at the zones of a TNTP network, but not pass through it. So it is with a node that has
    copies: its own arcs are for trips that start or end there, those of its copies for trips that pass through.

    `after[e]` is the place of those who drove edge e, whatever they drove before; what was driven more than `memory`
    edges ago matters to no ban.
    """

    indptr: NDArray[np.int64]
    out_edges: Ints32
    tails: Ints32
    heads: Ints32
    no_through: NDArray[np.bool_]
    roads: Ints32
    copy_of: Ints32
    after: Ints32
    memory: int

    @classmethod
    def build(
        cls,
        tails: ArrayLike,
        heads: ArrayLike,
        n_nodes: int,
        *,
        no_through: ArrayLike | None = None,
        banned: Sequence[Sequence[int]] = (),
    ) -> "Graph":
        """Index the edges tails[e] -> heads[e] between the nodes 0 … n_nodes - 1.

        Each of `banned` names two or more edges that must not follow each other as a whole. All arrays are writable,
        whatever was given: a read-only one would be another type to the compiler.
        """
        from_nodes, to_nodes = _end_nodes("tails", tails, n_nodes), _end_nodes("heads", heads, n_nodes)
        if from_nodes.size != to_nodes.size:
            raise InputError(f"tails and heads must be equally long, got {from_nodes.size} and {to_nodes.size}")
        barred = np.array(np.zeros(n_nodes) if no_through is None else no_through, dtype=np.bool_)
        if barred.shape != (n_nodes,):
            raise InputError(f"no_through must have one entry a node ({n_nodes}), got shape {barred.shape}")
        indptr, out_edges = sort_by(from_nodes, np.ones(from_nodes.size, dtype=np.bool_), n_nodes)
        none = np.empty(0, dtype=np.int32)
        if not len(banned):
            return cls(indptr, out_edges, from_nodes, to_nodes, barred, none, none, none, 1)
        split = split_nodes(indptr, out_edges, from_nodes, to_nodes, barred, banned)
        n_places = n_nodes + len(split.copy_of)
        indptr, out_edges = sort_by(split.tails, np.ones(split.tails.size, dtype=np.bool_), n_places)
        return cls(indptr, out_edges, *split, max(map(len, banned)) - 1)

    @property
    def n_places(self) -> int:
        """How many nodes and copies there are."""
        return len(self.indptr) - 1

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return self.n_places - len(self.copy_of)

    @property
    def n_edges(self) -> int:
        """How many edges are numbered; a graph that was restricted has fewer than these."""
        return len(self.after) if len(self.roads) else len(self.tails)

    @property
    def most_edges(self) -> int:
        """How many edges a path can have at the most."""
        return min(self.n_places - 1, self.n_edges) if len(self.roads) else self.n_nodes - 1

    @property
    def zones(self) -> Bools:
        """The nodes that nobody may pass through at all."""
        zones = self.no_through[: self.n_nodes].copy()
        zones[self.copy_of] = False
        return zones

    def restricted(self, usable: NDArray[np.bool_]) -> "Graph":
        """Leave out the edges that are not `usable`; the others keep their indices."""
        return self.with_arcs(usable[self.roads] if len(self.roads) else usable)

    def with_arcs(self, usable: NDArray[np.bool_]) -> "Graph":
        """Leave out the arcs that are not `usable`; the others keep their indices."""
        indptr, out_edges = sort_by(self.tails, usable & self._present(), self.n_places)
        return self._replace(indptr=indptr, out_edges=out_edges)

    def reverse(self) -> "Graph":
        """Turn every arc round; it keeps its index."""
        indptr, in_edges = sort_by(self.heads, self._present(), self.n_places)
        return self._replace(indptr=indptr, out_edges=in_edges, tails=self.heads, heads=self.tails)

    def _present(self) -> NDArray[np.bool_]:
        present = np.zeros(len(self.tails), dtype=np.bool_)
        present[self.out_edges] = True
        return present


def _end_nodes(name: str, given: ArrayLike, n_nodes: int) -> Ints32:
    nodes = np.asarray(given)
    if nodes.ndim != 1 or (nodes.size and nodes.dtype.kind not in "iu"):
        raise InputError(f"{name} must be a list of node indices, got shape {nodes.shape} of {nodes.dtype}")
    outside = np.flatnonzero((nodes < 0) | (nodes >= n_nodes))
    if outside.size:
        edge = int(outside[0])
        raise InputError(f"{name} must be in 0 … {n_nodes - 1}, got {nodes[edge]} at edge {edge}")
    return np.require(nodes, np.int32, ("C", "W"))


@kernel
def sort_by(ends: Ints32, present: NDArray[np.bool_], n_nodes: int) -> tuple[NDArray[np.int64], Ints32]:
    """Sort the present edges by one of their ends: where each node's edges begin, and the edges."""
    indptr = np.zeros(n_nodes + 1, dtype=np.int64)
    for edge, node in enumerate(ends):
        if present[edge]:
            indptr[node + 1] += 1
    for node in range(n_nodes):
        indptr[node + 1] += indptr[node]
    free, order = indptr[:-1].copy(), np.empty(indptr[-1], dtype=np.int32)
    for edge, node in enumerate(ends):
        if present[edge]:
            order[free[node]] = edge
            free[node] += 1
    return indptr, order
