"""The window counter: how often each edge was used by the last `length` actions.

Whoever plays rounds keeps the counts by these kernels: an action enters with all its edges, and the action that was
played `length` rounds before leaves. Where all actions are at hand anyway, as in a sequence that is planned, `enter`
and `leave` are enough; `Window` also remembers which action has to leave.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routesim.kernels import lean_kernel


class Window(NamedTuple):
    """The counts by edge, and the last `length` actions: that of round t stands at `ring[t % length]`."""

    length: int
    counts: NDArray[np.int32]
    ring: NDArray[np.int32]

    @classmethod
    def empty(cls, length: int, n_edges: int) -> "Window":
        """Return the window before round 0: no edge is in use."""
        return cls(length, np.zeros(n_edges, dtype=np.int32), np.zeros(max(length, 1), dtype=np.int32))

    def last(self, now: int) -> list[int]:
        """Return the actions inside the window before round `now`, oldest first."""
        return [int(self.ring[past % self.length]) for past in range(max(0, now - self.length), now)]


@lean_kernel
def enter(counts: NDArray[np.integer], edges: NDArray[np.integer]) -> None:
    """Count one more use of each edge of an action that enters the window."""
    for edge in edges:
        counts[edge] += 1


@lean_kernel
def leave(counts: NDArray[np.integer], edges: NDArray[np.integer]) -> None:
    """Count one use less of each edge of an action that leaves the window."""
    for edge in edges:
        counts[edge] -= 1


@lean_kernel
def move(window: Window, now: int, action: int, indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> None:
    """Play `action` in round `now`; its edges are `indices[indptr[action] : indptr[action + 1]]`."""
    if window.length == 0:
        return
    slot = now % window.length
    if now >= window.length:
        oldest = window.ring[slot]
        leave(window.counts, indices[indptr[oldest] : indptr[oldest + 1]])
    enter(window.counts, indices[indptr[action] : indptr[action + 1]])
    window.ring[slot] = action
