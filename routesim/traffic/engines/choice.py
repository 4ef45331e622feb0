"""How an engine finds a path at the present state of the roads, at departure or on the way."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints, Ints32
from routesim.errors import RouteError
from routesim.kernels import lean_kernel, lean_part
from routesim.roads import shortest
from routesim.roads.drivable import place_after
from routesim.roads.graph import Graph
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import Workspace
from routesim.traffic.engines.compiled import NO_WAY, OVER, PATHS, WANTED
from routesim.traffic.engines.fleet import ENTERED, LENGTH, START, Fleet
from routesim.traffic.engines.records import BIN_OF, BIN_STARTS
from routesim.traffic.protocol import BELIEVED, WEIGHED, Routes
from routesim.traffic.reach import times_to_go

MOST_STEERING = 32_000_000  # nodes x destinations up to which bounds on the time to go are kept to steer searches
BY_SECONDS, BY_COUNT = -1, -2  # instead of a kind of traveller: the search goes by seconds, or by what is believed
NO_ROOM = -1  # instead of the length of a path: the pool of paths is too small to write one down


class Search(NamedTuple):
    """What the search for a path at present needs; `to_go` bounds the time from a node to each goal."""

    to_go: Floats
    work: Workspace

    @classmethod
    def build(cls, graph: Graph) -> Self:
        """Allocate it, without bounds."""
        return cls(np.empty((0, 0)), Workspace.build(graph))

    def steered(self, network: RoadNetwork, goals: NDArray[Any]) -> Self:
        """Return the search with bounds on the time to go, if there is room to keep one for every goal."""
        if len(self.to_go) or not 0 < len(goals) * network.graph.n_places <= MOST_STEERING:
            return self
        return self._replace(to_go=np.stack(list(times_to_go(network, goals))))


class Beliefs(NamedTuple):
    """What a router has the search go by beside seconds: tolls, and what it believes of travellers' costs."""

    toll: Floats
    weights: Floats  # what a router believes of the rates, which WEIGHED goes by
    least_weight: Floats  # of all edges, for each kind
    charge: Floats  # what WEIGHED adds to the cost of each edge
    by_count: Floats  # what BELIEVED goes by, at `starts`
    starts: Floats
    bin_of: NDArray[np.int16]

    @classmethod
    def build(cls, n_edges: int) -> Self:
        """Return those of a router that gave none."""
        kept = np.empty((0, 0)), BIN_STARTS.astype(np.float64), BIN_OF.copy()
        return cls(np.zeros(n_edges), np.empty((0, 0)), np.empty(0), np.empty(0), *kept)

    def given(self, routes: Routes) -> Self:
        """Return them with what came with these routes; a route by weights where none were ever given is refused."""
        beliefs = self
        if routes.tolls is not None:
            beliefs.toll[:] = routes.tolls
        if routes.weights is not None:
            per_second, charges = (np.array(values, dtype=np.float64, order="C") for values in routes.weights)
            beliefs = beliefs._replace(weights=per_second, least_weight=per_second.min(axis=1), charge=charges)
        if routes.believed is not None:
            if routes.believed.shape[1] != len(self.starts):
                raise RouteError(f"what is believed needs {len(self.starts)} bins, got {routes.believed.shape[1]}")
            beliefs = beliefs._replace(by_count=np.array(routes.believed, dtype=np.float64, order="C"))
        if not len(beliefs.by_count) and (routes.which == BELIEVED).any():
            raise RouteError("the router wants vehicles BELIEVED and gave no costs; give Routes(believed=...)")
        if not len(beliefs.weights) and (routes.which == WEIGHED).any():
            raise RouteError("the router wants vehicles WEIGHED and gave no weights; give Routes(weights=...)")
        return beliefs


@lean_kernel
def kind_of(fleet: Fleet, vehicle: int) -> int:
    """Return the kind of traveller whose costs the search goes by, or what it goes by instead."""
    if fleet.choice[vehicle] == BELIEVED:
        return BY_COUNT
    return int(fleet.kind[vehicle]) if fleet.choice[vehicle] == WEIGHED else BY_SECONDS


@lean_kernel
def price_of(beliefs: Beliefs, kind: int, edge: int, seconds: float) -> float:
    """Return what so many seconds on an edge cost."""
    if kind >= 0:
        return float(seconds * beliefs.weights[kind, edge] + beliefs.charge[edge])
    return float(seconds + beliefs.toll[edge])


@lean_kernel
def believed_at(beliefs: Beliefs, edge: int, count: int) -> float:
    """Return what an edge is believed to cost at a count."""
    starts, row = beliefs.starts, beliefs.by_count[edge]
    low = int(beliefs.bin_of[min(count, len(beliefs.bin_of) - 1)])
    if low + 1 >= len(row):
        return float(row[low])
    part = (count - starts[low]) / (starts[low + 1] - starts[low])
    return float(row[low] + part * (row[low + 1] - row[low]))


@lean_part
def place_of(graph: Graph, fleet: Fleet, vehicle: int) -> int:
    """Return the place in the graph from which a vehicle goes on."""
    state = fleet.state
    start, driven = state[vehicle, START], state[vehicle, ENTERED]
    if state[vehicle, LENGTH] == 0:
        return int(start)  # until the path is known, its start is the node of departure
    if driven == 0:
        return int(graph.tails[fleet.paths[start]])
    return place_after(graph, fleet.paths[start : start + driven], driven)


@lean_part
def look(graph: Graph, fleet: Fleet, search: Search, costs: Any, least: float, vehicle: int) -> int:
    """Find the path of a vehicle from where it is that costs least, and write it behind those in use.

    Returns its length, 0 where there is none, or NO_ROOM. `least` is the least cost of a second.
    """
    driven, used = fleet.state[vehicle, ENTERED], fleet.used[0]
    if used + driven + len(graph.indptr) - 1 > len(fleet.paths):
        return NO_ROOM
    room: Ints32 = fleet.paths[used + driven :]
    potential = search.to_go[fleet.goal_row[vehicle]] if search.to_go.shape[0] > 0 else search.work.no_potential
    origin, goal = place_of(graph, fleet, vehicle), fleet.goal[vehicle]
    found = shortest.search(graph, costs, origin, goal, potential, least, room[:0], np.inf, search.work)
    return shortest.write_path(graph, search.work.parent, goal, room) if found else 0


@lean_kernel
def settle(fleet: Fleet, clock: Ints, vehicle: int, length: int, now: float) -> int:
    """Let a vehicle go on along the path that `look` found, or answer what is needed; OVER where nothing is."""
    if length == NO_ROOM:
        return PATHS
    if length == 0 and fleet.state[vehicle, LENGTH] == 0:
        clock[WANTED] = vehicle
        return NO_WAY
    _adopt(fleet, vehicle, length, now)
    return OVER


@lean_kernel
def _adopt(fleet: Fleet, vehicle: int, length: int, now: float) -> None:
    """Let a vehicle go on along the path that `look` found; it keeps its own where none was found, or the same."""
    state, paths, used = fleet.state, fleet.paths, fleet.used
    driven, departs = state[vehicle, ENTERED], state[vehicle, LENGTH] == 0
    room = paths[used[0] + driven :]
    fleet.chosen_s[vehicle] = now
    same = not departs and length == state[vehicle, LENGTH] - driven
    for k in range(length if same else 0):
        same = same and room[k] == paths[state[vehicle, START] + driven + k]
    if length > 0 and not same:
        for k in range(driven):
            paths[used[0] + k] = paths[state[vehicle, START] + k]
        state[vehicle, START], state[vehicle, LENGTH] = used[0], driven + length
        used[0] += driven + length
