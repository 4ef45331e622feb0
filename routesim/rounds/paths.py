"""Paths to choose from: those found between two places of a network, and checks of those that users hand in."""

import warnings
from collections.abc import Hashable, Iterable, Sequence
from operator import index
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats
from routesim.checks import LATEST_S, numbers, whole, within
from routesim.errors import FewerPathsWarning, InputError, NoPathError
from routesim.roads.candidates import all_paths, k_shortest, penalty_paths
from routesim.roads.drivable import banned_on, has_needless_loop, said
from routesim.roads.network import RoadNetwork

PathMethod: TypeAlias = Literal["penalty", "k-shortest", "all"]
Place: TypeAlias = Hashable
"""A node label, or a pair of longitude and latitude."""


class DetourLimits(NamedTuple):
    """What the paths found may share of each other, how much longer they may take, and how many there may be."""

    max_overlap: float
    max_detour: float
    most: int


def paths_between(
    network: RoadNetwork,
    ends: tuple[int, int],
    k: int,
    method: PathMethod,
    limits: DetourLimits,
    edge_cost_s: ArrayLike | None = None,
) -> list[list[int]]:
    """Return what `ActionSet.between` lists between two nodes, the cheapest on empty roads first."""
    graph, k = network.graph, whole("k", k, least=1)
    costs_s = network.free_flow_s + edge_costs(network.n_edges, edge_cost_s)
    start, end = ends
    named = f"{network.labels[start]!r} to {network.labels[end]!r}"
    try:
        if method == "penalty":
            differ = {"max_overlap": limits.max_overlap, "max_detour": limits.max_detour}
            paths = penalty_paths(graph, costs_s, start, end, k, **differ)
        elif method == "k-shortest":
            paths = k_shortest(graph, costs_s, start, end, k)
        elif method == "all":
            paths = all_paths(graph, start, end, limits.most)
            k = len(paths)
        else:
            raise InputError(f'the path method is one of "penalty", "k-shortest", "all"; got {method!r}')
    except NoPathError:
        raise NoPathError(f"no path leads from node {named}; choose ends that are connected") from None
    if len(paths) < k:
        found = f"{len(paths)} of {k} paths were found from node {named}"
        warnings.warn(f"{found} with method {method!r}", FewerPathsWarning, stacklevel=3)
    if method == "all" or network.turn_penalties is None:
        paths = sorted(paths, key=lambda path: float(costs_s[path].sum()))
    return [path.tolist() for path in paths]


def edge_costs(n_edges: int, edge_cost_s: ArrayLike | None) -> Floats:
    """Return what edges cost beside their travel time, in seconds, at least 0 each; nothing unless given."""
    if edge_cost_s is None:
        return np.zeros(n_edges)
    costs_s = within("edge_cost_s", edge_cost_s, 0.0, LATEST_S)
    if costs_s.shape != (n_edges,):
        raise InputError(f"edge_cost_s needs one value for each of {n_edges} edges, got shape {costs_s.shape}")
    return costs_s


def checked_paths(paths: Iterable[Sequence[int]], network: RoadNetwork | None) -> tuple[tuple[int, ...], ...]:
    """Return paths of edges as plain integers, at least one, or say what is wrong with them."""
    checked = tuple(_checked_path(number, path) for number, path in enumerate(paths))
    for number, path in enumerate(checked if network is not None else ()):
        if network is not None and max(path) >= network.n_edges:
            raise InputError(f"path {number} names edge {max(path)}; edges run from 0 to {network.n_edges - 1}")
    if not checked:
        raise InputError("an action set needs at least one action, got none; add an arm or a path")
    return checked


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


def paths_of_incidence(incidence: Any) -> list[list[int]]:
    """Return the columns that each row of a matrix of zeros and ones uses, or say what is wrong with it."""
    matrix = numbers("an incidence", incidence.toarray() if hasattr(incidence, "toarray") else incidence)
    if matrix.ndim != 2:
        raise InputError(f"an incidence is a matrix of actions x edges, got {matrix.ndim} dimension(s)")
    if not np.isin(matrix, (0, 1)).all():
        raise InputError("an incidence holds only 0 and 1: an action uses an edge once or not at all")
    unused = np.flatnonzero(~matrix.any(axis=0))
    if len(unused) and matrix.any(axis=1).all():
        raise InputError(f"edge column {unused[0]} is used by no action; leave it out of the incidence")
    return [np.flatnonzero(row).tolist() for row in matrix]


def check_one_pair(network: RoadNetwork, paths: Iterable[Sequence[int]]) -> None:
    """Refuse paths that are broken, visit a node twice, or do not all join the same two nodes."""
    ends = set()
    for number, path in enumerate(paths):
        edges = np.array(path, dtype=np.int32)
        broken = np.flatnonzero(network.heads[edges[:-1]] != network.tails[edges[1:]])
        if len(broken):
            first, second = edges[broken[0]], edges[broken[0] + 1]
            raise InputError(f"path {number} is broken: edge {second} does not start where edge {first} ends")
        way = banned_on(network.graph, edges)
        if way is not None:
            raise InputError(f"path {number} takes {said(way)}; leave the path out")
        visited = [int(network.tails[edges[0]]), *network.heads[edges].tolist()]
        if len(set(visited)) < len(visited) and not (network.bans and not has_needless_loop(network.graph, edges)):
            round_blocks = " unless a ban makes it drive round the block" if network.bans else ""
            raise InputError(f"path {number} visits a node twice; a path is simple{round_blocks}")
        ends.add((visited[0], visited[-1]))
    if len(ends) > 1:
        raise InputError(f"all paths must join the same two nodes, got {len(ends)} different pairs")


def nodes_of(network: RoadNetwork, origin: Place, destination: Place) -> tuple[int, int]:
    """Return the two nodes, which must differ."""
    start, end = _node(network, origin), _node(network, destination)
    if start == end:
        raise InputError(f"origin and destination are the same node {network.labels[start]!r}; choose two")
    return start, end


def _node(network: RoadNetwork, place: Place) -> int:
    """Return the index of the node with this label, or else nearest to this (lon, lat)."""
    if isinstance(place, tuple | list) and len(place) == 2 and not network.has_node(tuple(place)):
        return network.node_index(network.nearest_node(*place))
    return network.node_index(place)
