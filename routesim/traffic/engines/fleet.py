"""The vehicles of a run and the pool of their paths, as the kernels of an engine read and write them."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints, Ints32
from routesim.errors import InputError
from routesim.traffic.engines.base import Setting
from routesim.traffic.protocol import ASK, Departures, Routes

MOST_VEHICLES = 1 << 24
# Columns of Fleet.state: where the path starts in the pool (the node of departure while the path is undecided), its
# length (0: undecided), edges entered, and the count on entering the present edge.
START, LENGTH, ENTERED, COUNT = range(4)


class Fleet(NamedTuple):
    """One row a vehicle, in order of departure; path p is `paths[start : start + length]`.

    `state` has the columns named above. `used` holds how much of the pool of paths is in use.
    """

    state: Ints
    departure_s: Floats
    arrival_s: Floats
    entered_s: Floats
    goal: Ints32  # node
    goal_row: Ints32  # the goal's number among all goals
    choice: NDArray[np.int8]  # ASK, GREEDY, WEIGHED or BELIEVED while the path is undecided
    reroutes: NDArray[np.bool_]
    chosen_s: Floats
    kind: Ints32  # of traveller; empty where travellers do not differ
    cost: Floats  # of the edges driven so far; empty likewise
    paths: Ints32
    used: Ints

    @classmethod
    def build(cls, setting: Setting, goal_row: NDArray[np.integer]) -> Self:
        """Return the vehicles before anything has happened."""
        n = setting.n_vehicles
        if n > MOST_VEHICLES:
            raise InputError(f"a run has at most {MOST_VEHICLES:,} vehicles, got {n:,}; simulate fewer")
        state = np.zeros((n, 4), dtype=np.int64)
        state[:, START] = setting.origins
        departure_s = np.ascontiguousarray(setting.departure_s)
        kinds = np.empty(0, dtype=np.int32) if setting.kinds is None else setting.kinds
        return cls(
            state=state,
            departure_s=departure_s,
            arrival_s=np.full(n, np.nan),
            entered_s=np.zeros(n),
            goal=np.ascontiguousarray(setting.destinations),
            goal_row=goal_row.astype(np.int32),
            choice=np.full(n, ASK, dtype=np.int8),
            reroutes=setting.reroutes,
            chosen_s=departure_s.copy(),
            kind=kinds,
            cost=np.zeros(len(kinds)),
            paths=np.empty(max(1024, 4 * setting.network.n_nodes), dtype=np.int32),
            used=np.zeros(1, dtype=np.int64),
        )

    def with_room(self, edges: int) -> Self:
        """Return the fleet with room for so many more edges of paths, the same arrays otherwise."""
        if self.used[0] + edges <= len(self.paths):
            return self
        return self._replace(paths=longer(self.paths, 2 * (int(self.used[0]) + edges)))

    def take(self, departures: Departures, routes: Routes) -> Self:
        """Return the fleet with the routes of some vehicles."""
        fleet, numbers, used = self.with_room(len(routes.edges)), departures.vehicles, int(self.used[0])
        fleet.paths[used : used + len(routes.edges)] = routes.edges
        fleet.used[0] += len(routes.edges)
        given = routes.which >= 0
        which = routes.which[given]
        fleet.state[numbers[given], START] = used + routes.indptr[which]
        fleet.state[numbers[given], LENGTH] = routes.indptr[which + 1] - routes.indptr[which]
        undecided = numbers[~given]
        fleet.state[undecided, START], fleet.state[undecided, LENGTH] = departures.origins[~given], 0
        fleet.choice[undecided] = routes.which[~given]
        return fleet


def longer(values: NDArray[Any], room: int) -> NDArray[Any]:
    """Return a copy with room for so many rows, those beyond the present ones undefined."""
    more = np.empty((room, *values.shape[1:]), dtype=values.dtype)
    more[: len(values)] = values
    return more
