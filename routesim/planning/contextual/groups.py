"""Groups of edges: those used by the same actions with the same multipliers, which always share one multiplier."""

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats
from routesim.rounds.actions import ActionSet
from routesim.rounds.window import PathRows


class EdgeGroups:
    """The groups of an action set: `used` says which action uses which, `curves` are their multipliers by count.

    `paths` lists the groups of each action.
    """

    def __init__(self, actions: ActionSet, multipliers: Floats) -> None:
        used = actions.incidence.toarray().astype(bool)
        _, row_of_edge = np.unique(multipliers, axis=0, return_inverse=True)
        members = np.column_stack((row_of_edge.reshape(-1), np.packbits(used.T, axis=1)))
        _, chosen, group_of_edge = np.unique(members, axis=0, return_index=True, return_inverse=True)
        group_of_edge = group_of_edge.reshape(-1)
        self.used: NDArray[np.bool_] = used[:, chosen]
        self.curves: Floats = np.ascontiguousarray(multipliers[chosen])
        indptr = np.concatenate(([0], np.cumsum(self.used.sum(axis=1))))
        self.paths = PathRows(indptr, np.nonzero(self.used)[1].astype(np.int32))
        self._order = np.argsort(group_of_edge, kind="stable")
        self._starts = np.searchsorted(group_of_edge[self._order], np.arange(len(chosen)))

    def __len__(self) -> int:
        return len(self.curves)

    def sums(self, bases: Floats) -> Floats:
        """Add up the bases of the edges of each group; the last axis runs over the edges."""
        if len(self) == bases.shape[-1]:
            return np.ascontiguousarray(bases[..., self._order])
        return np.ascontiguousarray(np.add.reduceat(bases[..., self._order], self._starts, axis=-1))
