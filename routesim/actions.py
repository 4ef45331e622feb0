"""ActionSet: the candidate s-t paths, or plain arms, that a recommendation chooses from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from routesim.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


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
