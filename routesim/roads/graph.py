"""The one graph of the package: directed edges between numbered nodes, as arrays that compiled code reads.

Path sets, the simulator, plans over whole graphs and assignment all search a `Graph`: that of a network
(`RoadNetwork.graph`), a part of it, or the links that are left of it when roads without a junction are joined.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from routesim.arrays import Ints32
from routesim.errors import InputError
from routesim.kernels import kernel


class Graph(NamedTuple):
    """A directed multigraph: edge e leads from tails[e] to heads[e].

    The edges out of node v are out_edges[indptr[v] : indptr[v + 1]], in ascending order. A path may start or
    end at a no_through node, as at the zones of a TNTP network, but not pass through it.
    """

    indptr: NDArray[np.int64]
    out_edges: Ints32
    tails: Ints32
    heads: Ints32
    no_through: NDArray[np.bool_]

    @classmethod
    def build(cls, tails: ArrayLike, heads: ArrayLike, n_nodes: int, *, no_through: ArrayLike | None = None) -> "Graph":
        """Index the edges tails[e] -> heads[e] between the nodes 0 … n_nodes - 1.

        All arrays are writable, whatever was given: a read-only one would be another type to the compiler.
        """
        from_nodes, to_nodes = _end_nodes("tails", tails, n_nodes), _end_nodes("heads", heads, n_nodes)
        if from_nodes.size != to_nodes.size:
            raise InputError(f"tails and heads must be equally long, got {from_nodes.size} and {to_nodes.size}")
        barred = np.array(np.zeros(n_nodes) if no_through is None else no_through, dtype=np.bool_)
        if barred.shape != (n_nodes,):
            raise InputError(f"no_through must have one entry a node ({n_nodes}), got shape {barred.shape}")
        indptr, out_edges = _sort_by(from_nodes, np.ones(from_nodes.size, dtype=np.bool_), n_nodes)
        return cls(indptr, out_edges, from_nodes, to_nodes, barred)

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """How many edges are numbered; a graph that was restricted has fewer than these."""
        return len(self.tails)

    def restricted(self, usable: NDArray[np.bool_]) -> "Graph":
        """Leave out the edges that are not `usable`; the others keep their indices."""
        indptr, out_edges = _sort_by(self.tails, usable & self._present(), self.n_nodes)
        return self._replace(indptr=indptr, out_edges=out_edges)

    def reverse(self) -> "Graph":
        """Turn every edge round; it keeps its index."""
        indptr, in_edges = _sort_by(self.heads, self._present(), self.n_nodes)
        return Graph(indptr, in_edges, self.heads, self.tails, self.no_through)

    def _present(self) -> NDArray[np.bool_]:
        present = np.zeros(self.n_edges, dtype=np.bool_)
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
def _sort_by(ends: Ints32, present: NDArray[np.bool_], n_nodes: int) -> tuple[NDArray[np.int64], Ints32]:
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
