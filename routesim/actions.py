"""ActionSet: the candidate s-t paths, or plain arms, that a recommendation chooses from."""

import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.errors import FewerPathsWarning, InputError, NoPathError
from routesim.network import RoadNetwork
from routesim.paths import all_paths, k_shortest, penalty_paths
from routesim.search import Graph

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PathMethod: TypeAlias = Literal["penalty", "k-shortest", "all"]
Place: TypeAlias = Hashable
"""A node label, or a pair of longitude and latitude."""


@dataclass(frozen=True, eq=False)
class ActionSet:
    """A fixed list of actions, each a set of distinct edges.

    A bandit arm is a path of one edge, so arms and routes are the same thing to every other module.
    `paths` holds edge indices of the road network; `edges` lists the distinct ones in ascending order, and
    arrays elsewhere are ordered like `edges` ("edge position j" means `edges[j]`).

    >>> roads = ActionSet([(0, 2), (1, 2)])
    >>> roads.n_actions, roads.edges.tolist()
    (2, [0, 1, 2])
    >>> roads.incidence.toarray().astype(int).tolist()
    [[1, 0, 1], [0, 1, 1]]
    """

    paths: tuple[tuple[int, ...], ...]
    edges: NDArray[np.int64] = field(init=False, repr=False)
    indptr: NDArray[np.int64] = field(init=False, repr=False)
    indices: NDArray[np.int32] = field(init=False, repr=False)

    def __init__(self, paths: Iterable[Sequence[int]]) -> None:
        checked = tuple(_checked_path(number, path) for number, path in enumerate(paths))
        if not checked:
            raise InputError("an action set needs at least one action, got none; add an arm or a path")
        lengths = np.array([len(path) for path in checked], dtype=np.int64)
        flat = np.fromiter((edge for path in checked for edge in path), dtype=np.int64, count=int(lengths.sum()))
        edges, positions = np.unique(flat, return_inverse=True)
        object.__setattr__(self, "paths", checked)
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "indptr", np.concatenate(([0], np.cumsum(lengths))))
        object.__setattr__(self, "indices", positions.astype(np.int32))

    @classmethod
    def arms(cls, k: int) -> Self:
        """Return `k` plain bandit arms: k parallel roads of one edge each."""
        if k < 1:
            raise InputError(f"a bandit needs at least one arm, got k={k}")
        return cls((arm,) for arm in range(k))

    @classmethod
    def between(
        cls,
        network: RoadNetwork,
        origin: Place,
        destination: Place,
        k: int = 8,
        method: PathMethod = "penalty",
        *,
        max_overlap: float = 0.75,
        max_detour: float = 0.5,
        limit: int = 10_000,
    ) -> Self:
        """Return up to `k` simple paths from `origin` to `destination`, the quickest on empty roads first.

        The ends are node labels or (lon, lat) pairs. Methods: `"penalty"`, paths that really differ: two share
        at most `max_overlap` of the time of the quicker one, and none takes longer than 1 + `max_detour` times
        the quickest; `"k-shortest"`, the k quickest, however alike; `"all"`, every simple path whatever `k`, an
        error if there are more than `limit`. Fewer paths than asked for are a FewerPathsWarning.
        """
        graph = Graph(network.indptr, network.out_edges, network.tails, network.heads, network.no_through)
        start, end = _node(network, origin), _node(network, destination)
        if start == end:
            raise InputError(f"origin and destination are the same node {network.labels[start]!r}; choose two")
        try:
            if method == "penalty":
                limits = {"max_overlap": max_overlap, "max_detour": max_detour}
                paths = penalty_paths(graph, network.free_flow_s, start, end, k, **limits)
            elif method == "k-shortest":
                paths = k_shortest(graph, network.free_flow_s, start, end, k)
            elif method == "all":
                paths = all_paths(graph, start, end, limit)
                k = len(paths)
            else:
                raise InputError(f'the path method is one of "penalty", "k-shortest", "all"; got {method!r}')
        except NoPathError:
            ends = f"{network.labels[start]!r} to {network.labels[end]!r}"
            raise NoPathError(f"no path leads from node {ends}; choose ends that are connected") from None
        if len(paths) < k:
            ends = f"{network.labels[start]!r} to {network.labels[end]!r}"
            found = f"{len(paths)} of {k} paths were found from node {ends}"
            warnings.warn(f"{found} with method {method!r}", FewerPathsWarning, stacklevel=2)
        paths.sort(key=lambda path: float(network.free_flow_s[path].sum()))
        return cls(path.tolist() for path in paths)

    @classmethod
    def from_paths(cls, network: RoadNetwork, paths: Iterable[Sequence[int]]) -> Self:
        """Return your own paths, each a sequence of edge indices of `network`; all join the same two nodes."""
        actions = cls(paths)
        ends = set()
        for number, path in enumerate(actions.paths):
            if max(path) >= network.n_edges:
                raise InputError(f"path {number} names edge {max(path)}; edges run from 0 to {network.n_edges - 1}")
            edges = np.array(path)
            broken = np.flatnonzero(network.heads[edges[:-1]] != network.tails[edges[1:]])
            if len(broken):
                first, second = edges[broken[0]], edges[broken[0] + 1]
                raise InputError(f"path {number} is broken: edge {second} does not start where edge {first} ends")
            visited = [int(network.tails[edges[0]]), *network.heads[edges].tolist()]
            if len(set(visited)) < len(visited):
                raise InputError(f"path {number} visits a node twice; a path is simple")
            ends.add((visited[0], visited[-1]))
        if len(ends) > 1:
            raise InputError(f"all paths must join the same two nodes, got {len(ends)} different pairs")
        return actions

    @classmethod
    def from_incidence(cls, incidence: Any) -> Self:
        """Return the actions given by the rows of an action x edge matrix of zeros and ones."""
        matrix = np.asarray(incidence.toarray() if hasattr(incidence, "toarray") else incidence)
        if matrix.ndim != 2:
            raise InputError(f"an incidence is a matrix of actions x edges, got {matrix.ndim} dimension(s)")
        if not np.isin(matrix, (0, 1)).all():
            raise InputError("an incidence holds only 0 and 1: an action uses an edge once or not at all")
        unused = np.flatnonzero(~matrix.any(axis=0))
        if len(unused) and matrix.any(axis=1).all():
            raise InputError(f"edge column {unused[0]} is used by no action; leave it out of the incidence")
        return cls(np.flatnonzero(row).tolist() for row in matrix)

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return len(self.paths)

    @property
    def n_edges(self) -> int:
        """The number of distinct edges that some action uses."""
        return len(self.edges)

    @cached_property
    def longest(self) -> int:
        """The number of edges of the longest action (L in the paper)."""
        return int(np.diff(self.indptr).max())

    def positions(self, action: int) -> NDArray[np.int32]:
        """Return the positions in `edges` that `action` uses, in the order of the path."""
        return self.indices[self.indptr[action] : self.indptr[action + 1]]

    @cached_property
    def incidence(self) -> "csr_array[Any]":
        """The action x edge matrix as scipy CSR; column j is `edges[j]`."""
        from scipy.sparse import csr_array

        ones = np.ones(len(self.indices), dtype=np.float64)
        matrix = csr_array((ones, self.indices, self.indptr), shape=(self.n_actions, self.n_edges))
        matrix.sort_indices()
        return matrix


def _checked_path(number: int, path: Sequence[int]) -> tuple[int, ...]:
    edges = tuple(int(edge) for edge in path)
    if not edges:
        raise InputError(f"action {number} is empty; every action uses at least one edge")
    if min(edges) < 0:
        raise InputError(f"action {number} names edge {min(edges)}; edge indices start at 0")
    if len(set(edges)) < len(edges):
        twice = next(edge for edge in edges if edges.count(edge) > 1)
        raise InputError(f"action {number} uses edge {twice} twice; a path is simple, each edge at most once")
    return edges


def _node(network: RoadNetwork, place: Place) -> int:
    """Return the index of the node with this label, or else nearest to this (lon, lat)."""
    if isinstance(place, tuple | list) and len(place) == 2 and tuple(place) not in network.labels:
        return network.node_index(network.nearest_node(*place))
    return network.node_index(place)
