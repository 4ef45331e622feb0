"""The window counter: how often each edge was used by the last `length` actions.

Whoever plays rounds keeps the counts by these kernels: an action enters with all its edges, and the action that was
played `length` rounds before leaves. Where all actions are at hand anyway, as in a sequence that is planned, `enter`
and `leave` are enough; `WindowState` also remembers which action has to leave.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Ints, Ints32
from routesim.kernels import lean_kernel


class PathRows(NamedTuple):
    """The edges of actions by their number: those of action a are `indices[indptr[a] : indptr[a + 1]]`."""

    indptr: Ints
    indices: Ints32

    def of(self, action: int) -> Ints32:
        """Return the edges of an action."""
        return self.indices[self.indptr[action] : self.indptr[action + 1]]


class WindowState(NamedTuple):
    """The counts by edge, and the last `length` actions: that of round t stands at `ring[t % length]`."""

    length: int
    counts: Ints32
    ring: Ints32

    @classmethod
    def empty(cls, length: int, n_edges: int) -> "WindowState":
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
def move(window: WindowState, paths: PathRows, now: int, action: int) -> None:
    """Play `action` in round `now`: it enters, and the action that was played `length` rounds before leaves."""
    if window.length == 0:
        return
    slot = now % window.length
    if now >= window.length:
        oldest = window.ring[slot]
        leave(window.counts, paths.indices[paths.indptr[oldest] : paths.indptr[oldest + 1]])
    enter(window.counts, paths.indices[paths.indptr[action] : paths.indptr[action + 1]])
    window.ring[slot] = action


@lean_kernel
def history_number(window: WindowState, now: int, n_actions: int, n_histories: int) -> int:
    """Return the number of the history before round `now`: its actions as digits, the oldest first."""
    number = 0
    for past in range(max(0, now - window.length), now):
        number = (number * n_actions + window.ring[past % window.length]) % n_histories
    return number
