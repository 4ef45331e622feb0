"""Who entered each edge in the last window: rings of entry times in one pool, which grow as they are needed."""

from typing import NamedTuple, Self

import numpy as np

from routesim.arrays import Floats, Ints, Ints32
from routesim.kernels import lean_kernel
from routesim.traffic.engines.fleet import longer

# Columns of Windows.rings: where the ring starts, its capacity (a power of 2), its oldest entry, its size.
OFFSET, ROOM, HEAD, HELD = range(4)


class Windows(NamedTuple):
    """The entry times of the last window, a ring for each edge in a common pool."""

    rings: Ints
    pool: Floats
    free: Ints  # by power of 2: the offset of a freed ring, which holds the next one's, or -1
    used: Ints  # of the pool

    @classmethod
    def build(cls, n_edges: int) -> Self:
        """Return the windows of empty roads."""
        return cls(
            np.zeros((n_edges, 4), dtype=np.int64),
            np.empty(max(1024, 4 * n_edges)),
            np.full(60, -1, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
        )

    def with_room(self) -> Self:
        """Return the same windows with a larger pool."""
        return self._replace(pool=longer(self.pool, 2 * len(self.pool)))


@lean_kernel
def count_on(windows: Windows, edge: int, since: float) -> int:
    """Forget the entries into an edge up to and including `since`; return how many are left."""
    rings, pool = windows.rings, windows.pool
    held = rings[edge, HELD]
    if held > 0:
        head, offset, mask = rings[edge, HEAD], rings[edge, OFFSET], rings[edge, ROOM] - 1
        if pool[offset + head] <= since:
            while held > 0 and pool[offset + head] <= since:
                head = (head + 1) & mask
                held -= 1
            rings[edge, HEAD], rings[edge, HELD] = head, held
    return int(held)


@lean_kernel
def make_room(windows: Windows, edge: int) -> bool:
    """Give an edge whose ring is full one of twice the size; False if the pool has no room for it."""
    ring = windows.rings[edge]
    room = max(np.int64(4), 2 * ring[ROOM])
    power = 0
    while (1 << power) < room:
        power += 1
    offset = windows.free[power]
    if offset >= 0:
        windows.free[power] = np.int64(windows.pool[offset])
    else:
        if windows.used[0] + room > len(windows.pool):
            return False
        offset = windows.used[0]
        windows.used[0] += room
    for k in range(ring[HELD]):
        windows.pool[offset + k] = windows.pool[ring[OFFSET] + ((ring[HEAD] + k) & (ring[ROOM] - 1))]
    if ring[ROOM] > 0:
        # The old ring joins the list of free rings of its size.
        windows.pool[ring[OFFSET]] = float(windows.free[power - 1])
        windows.free[power - 1] = ring[OFFSET]
    ring[OFFSET], ring[ROOM], ring[HEAD] = offset, room, 0
    return True


@lean_kernel
def enter(windows: Windows, edge: int, now: float) -> None:
    """Add an entry at `now` to an edge whose ring has room."""
    ring = windows.rings[edge]
    windows.pool[ring[OFFSET] + ((ring[HEAD] + ring[HELD]) & (ring[ROOM] - 1))] = now
    ring[HELD] += 1


@lean_kernel
def counts_now(windows: Windows, since: float, out: Ints32) -> None:
    """Fill `out` with the count of every edge."""
    for edge in range(len(out)):
        out[edge] = count_on(windows, edge, since)
