"""ActionSet: the candidate s-t paths, or plain arms, that a recommendation chooses from."""

import warnings
from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.checks import numbers, whole
from routesim.errors import FewerPathsWarning, InputError, NoPathError
from routesim.roads.candidates import all_paths, k_shortest, penalty_paths
from routesim.roads.graph import Graph
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import Workspace, shortest_path

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PathMethod: TypeAlias = Literal["penalty", "k-shortest", "all"]
Place: TypeAlias = Hashable
"""A node label, or a pair of longitude and latitude."""


@dataclass(frozen=True, eq=False)
class ActionSet:
    """What can be recommended: a list of paths, or every path of a graph.

    A bandit arm is a path of one edge, so arms and routes are the same thing to every other module. `paths` holds
    edge indices of the road network; `edges` lists the distinct ones in ascending order, and arrays elsewhere are
    ordered like `edges` ("edge position j" means `edges[j]`). An action is the number of a path.

    `on_graph` makes the set of every path between two nodes: `paths` and `n_actions` are None then, `edges` are all
    edges of the network, and an action is a tuple of edge indices.

    `several` joins sets with their own ends into one, of which each round serves one pair of ends, drawn in
    proportion to `rates`. The paths of pair p are numbered from `first_action[p]` up to `first_action[p + 1]`.

    `network` are the roads that the edges belong to, None where nobody said.

    >>> roads = ActionSet([(0, 2), (1, 2)])
    >>> roads.n_actions, roads.edges.tolist()
    (2, [0, 1, 2])
    >>> roads.incidence.toarray().astype(int).tolist()
    [[1, 0, 1], [0, 1, 1]]
    """

    paths: tuple[tuple[int, ...], ...] | None
    edges: NDArray[np.int64] = field(init=False, repr=False)
    indptr: NDArray[np.int64] = field(init=False, repr=False)
    indices: NDArray[np.int32] = field(init=False, repr=False)
    first_action: NDArray[np.int64] = field(init=False, repr=False)
    rates: NDArray[np.float64] = field(init=False)
    graph: Graph | None = field(init=False, repr=False)
    ends: tuple[tuple[int, int], ...] = field(init=False)
    network: RoadNetwork | None = field(init=False, repr=False, compare=False)  # for maps: nothing is decided by it

    def __init__(self, paths: Iterable[Sequence[int]], *, network: RoadNetwork | None = None) -> None:
        checked = tuple(_checked_path(number, path) for number, path in enumerate(paths))
        for number, path in enumerate(checked if network is not None else ()):
            if network is not None and max(path) >= network.n_edges:
                raise InputError(f"path {number} names edge {max(path)}; edges run from 0 to {network.n_edges - 1}")
        if not checked:
            raise InputError("an action set needs at least one action, got none; add an arm or a path")
        lengths = np.array([len(path) for path in checked], dtype=np.int64)
        flat = np.fromiter((edge for path in checked for edge in path), dtype=np.int64, count=int(lengths.sum()))
        edges, positions = np.unique(flat, return_inverse=True)
        self._set(
            paths=checked,
            edges=edges,
            indptr=np.concatenate(([0], np.cumsum(lengths))),
            indices=positions.astype(np.int32),
            first_action=np.array([0, len(checked)]),
            network=network,
        )

    def _set(self, *, rates: Sequence[float] = (1.0,), graph: Graph | None = None, **fields: Any) -> None:
        shares = np.asarray(rates, dtype=np.float64)
        for name, value in {"ends": (), **fields, "graph": graph, "rates": shares / shares.sum()}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def arms(cls, k: int) -> Self:
        """Return `k` plain bandit arms: k parallel roads of one edge each."""
        return cls((arm,) for arm in range(whole("the number of arms", k, least=1)))

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
        graph = network.graph
        start, end = _ends(network, origin, destination)
        k = whole("k", k, least=1)
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
        return cls((path.tolist() for path in paths), network=network)

    @classmethod
    def from_paths(cls, network: RoadNetwork, paths: Iterable[Sequence[int]]) -> Self:
        """Return your own paths, each a sequence of edge indices of `network`; all join the same two nodes."""
        actions = cls(paths, network=network)
        ends = set()
        for number, path in enumerate(actions.listed_paths):
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
    def on_graph(cls, network: RoadNetwork, origin: Place, destination: Place) -> Self:
        """Return every path of the network from `origin` to `destination`; an action is a tuple of edge indices."""
        start, end = _ends(network, origin, destination)
        actions = cls.__new__(cls)
        actions._set(
            paths=None,
            edges=np.arange(network.n_edges),
            indptr=np.zeros(1, dtype=np.int64),
            indices=np.empty(0, dtype=np.int32),
            first_action=np.zeros(2, dtype=np.int64),
            graph=network.graph,
            ends=((start, end),),
            network=network,
        )
        return actions

    @classmethod
    def several(cls, sets: Sequence["ActionSet"], rates: Sequence[float]) -> Self:
        """Return one set for several pairs of ends on the same roads; a round serves one pair, drawn by its rate."""
        if len(sets) == 0 or len(sets) != len(rates):
            raise InputError(f"several pairs need one rate each, got {len(sets)} sets and {len(rates)} rates")
        if (numbers("rates", rates) <= 0).any():
            raise InputError(f"rates must be above 0, got {list(rates)}")
        if any(len(one.rates) > 1 for one in sets):
            raise InputError("each set of several must have one pair of ends; join them all at once")
        if len({one.graph is None for one in sets}) > 1:
            raise InputError("several pairs are all lists of paths or all whole graphs, not some of each")
        network = sets[0].network
        if not all(one.network is network or (one.network and network and one.network.equals(network)) for one in sets):
            network = None
        if sets[0].graph is None:
            joined = cls((path for one in sets for path in one.listed_paths), network=network)
            first = np.concatenate(([0], np.cumsum([one.n_listed for one in sets])))
            joined._set(**{**vars(joined), "first_action": first, "rates": rates})
            return joined
        if any(one.graph is None or not np.array_equal(one.graph.heads, sets[0].graph.heads) for one in sets):
            raise InputError("several pairs on whole graphs must lie on the same network")
        joined = cls.__new__(cls)
        nothing = np.zeros(len(sets) + 1, dtype=np.int64)
        ends = tuple(one.ends[0] for one in sets)
        joined._set(**{**vars(sets[0]), "ends": ends, "first_action": nothing, "rates": rates, "network": network})
        return joined

    @classmethod
    def from_incidence(cls, incidence: Any) -> Self:
        """Return the actions given by the rows of an action x edge matrix of zeros and ones."""
        matrix = numbers("an incidence", incidence.toarray() if hasattr(incidence, "toarray") else incidence)
        if matrix.ndim != 2:
            raise InputError(f"an incidence is a matrix of actions x edges, got {matrix.ndim} dimension(s)")
        if not np.isin(matrix, (0, 1)).all():
            raise InputError("an incidence holds only 0 and 1: an action uses an edge once or not at all")
        unused = np.flatnonzero(~matrix.any(axis=0))
        if len(unused) and matrix.any(axis=1).all():
            raise InputError(f"edge column {unused[0]} is used by no action; leave it out of the incidence")
        return cls(np.flatnonzero(row).tolist() for row in matrix)

    @property
    def n_actions(self) -> int | None:
        """The number of actions; None where every path of a graph is one."""
        return None if self.paths is None else len(self.paths)

    @property
    def listed_paths(self) -> tuple[tuple[int, ...], ...]:
        """The paths, for what needs them listed; an error where every path of a graph is an action."""
        if self.paths is None:
            raise InputError(
                "this needs a list of paths, and the set holds every path of a graph; make a list with "
                "ActionSet.between"
            )
        return self.paths

    @property
    def n_listed(self) -> int:
        """The number of listed paths."""
        return len(self.listed_paths)

    @property
    def n_edges(self) -> int:
        """The number of edges that some action may use."""
        return len(self.edges)

    @cached_property
    def longest(self) -> int:
        """The number of edges of the longest action (L in the paper); on a graph the most a simple path can have."""
        return int(np.diff(self.indptr).max()) if self.graph is None else self.graph.n_nodes - 1

    def without_network(self) -> Self:
        """Return the same actions without the roads they are on, to travel lightly."""
        light = copy(self)
        object.__setattr__(light, "network", None)
        return light

    def positions(self, action: int) -> NDArray[np.int32]:
        """Return the positions in `edges` that a listed `action` uses, in the order of the path."""
        return self.indices[self.indptr[action] : self.indptr[action + 1]]

    def best(self, values: NDArray[np.float64], pair: int = 0) -> int | tuple[int, ...]:
        """Return the action of a pair with the largest sum of edge values, the first of equals."""
        if self.graph is not None:
            if values.max() > 0:
                raise InputError(f"the best path of a graph needs values of at most 0, got {values.max():g}")
            origin, destination = self.ends[pair]
            path = shortest_path(self.graph, -values, origin, destination, workspace=self._workspace)
            return tuple(path.tolist())
        first, last = (int(end) for end in self.first_action[pair : pair + 2])
        sums = np.add.reduceat(values[self.indices], self.indptr[:-1])
        return first + int(np.argmax(sums[first:last]))

    @cached_property
    def _workspace(self) -> Workspace | None:
        return None if self.graph is None else Workspace.build(self.graph)

    @cached_property
    def incidence(self) -> "csr_array[Any]":
        """The action x edge matrix as scipy CSR; column j is `edges[j]`."""
        from scipy.sparse import csr_array

        ones = np.ones(len(self.indices), dtype=np.float64)
        matrix = csr_array((ones, self.indices, self.indptr), shape=(self.n_listed, self.n_edges))
        matrix.sort_indices()
        return matrix


def _checked_path(number: int, path: Sequence[int]) -> tuple[int, ...]:
    try:
        edges = tuple(index(edge) for edge in path)
    except TypeError:
        raise InputError(f"action {number} must be a sequence of edge indices, got {path!r:.80}") from None
    if not edges:
        raise InputError(f"action {number} is empty; every action uses at least one edge")
    if min(edges) < 0:
        raise InputError(f"action {number} names edge {min(edges)}; edge indices start at 0")
    if len(set(edges)) < len(edges):
        twice = next(edge for edge in edges if edges.count(edge) > 1)
        raise InputError(f"action {number} uses edge {twice} twice; a path is simple, each edge at most once")
    return edges


def _ends(network: RoadNetwork, origin: Place, destination: Place) -> tuple[int, int]:
    start, end = _node(network, origin), _node(network, destination)
    if start == end:
        raise InputError(f"origin and destination are the same node {network.labels[start]!r}; choose two")
    return start, end


def _node(network: RoadNetwork, place: Place) -> int:
    """Return the index of the node with this label, or else nearest to this (lon, lat)."""
    if isinstance(place, tuple | list) and len(place) == 2 and not network.has_node(tuple(place)):
        return network.node_index(network.nearest_node(*place))
    return network.node_index(place)
