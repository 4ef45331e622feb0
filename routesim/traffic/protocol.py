"""What a router is asked and answers: departures in, paths out, and what it is shown of driven edges."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from routesim.arrays import Bools, Floats, Ints, Ints32
from routesim.demand.demand import Demand
from routesim.errors import RouteError
from routesim.roads.drivable import banned_on, banned_rows, said
from routesim.roads.network import RoadNetwork
from routesim.travellers.trip_costs import TripCosts

Feedback: TypeAlias = Literal["none", "lessons", "all"]

# Instead of a path: stop and ask when it departs; take the quickest path of that moment; the one that costs the
# traveller least; or the one that the router believes to cost least at the counts of that moment.
ASK, GREEDY, WEIGHED, BELIEVED = -1, -2, -3, -4


class Departures(NamedTuple):
    """Vehicles that a router is asked about; `vehicles` are their numbers, ends are node indices.

    `kinds` are the kinds of trips they are, where the simulator has `trip_costs`.
    """

    now_s: float
    vehicles: Ints
    origins: Ints32
    destinations: Ints32
    departure_s: Floats
    kinds: Ints32 | None = None

    def part(self, mine: NDArray[np.bool_]) -> "Departures":
        """Return only the vehicles marked."""
        kinds = None if self.kinds is None else self.kinds[mine]
        return Departures(
            self.now_s, self.vehicles[mine], self.origins[mine], self.destinations[mine], self.departure_s[mine], kinds
        )


class Weights(NamedTuple):
    """What a router believes that a second on each edge costs each kind of traveller, and a charge for each edge."""

    per_second: Floats
    charges: Floats


class Routes(NamedTuple):
    """A router's answer: `which[i]` is the number of the path that the i-th vehicle takes, GREEDY, WEIGHED or BELIEVED.

    Path p is edges[indptr[p] : indptr[p + 1]]. GREEDY sends a vehicle down the path that takes least time at the
    counts of the moment when it departs, plus `tolls` (seconds per edge) where they are given. WEIGHED sends it down
    the path that costs a traveller of its kind least at these counts, by the last `weights` given. BELIEVED sends it
    down the path that costs least at these counts by the last `believed` given: costs by (edge, start of the bin of the
    count), as in `Lessons`, at least those of the empty road, with straight lines between the starts.
    """

    indptr: Ints
    edges: Ints32
    which: Ints
    tolls: Floats | None = None
    weights: Weights | None = None
    believed: Floats | None = None

    @classmethod
    def of(cls, paths: Sequence[Sequence[int]], which: ArrayLike) -> "Routes":
        """Collect paths given one by one."""
        lengths = np.array([len(path) for path in paths], dtype=np.int64)
        edges = np.array([edge for path in paths for edge in path], dtype=np.int32)
        return cls(np.concatenate(([0], np.cumsum(lengths))), edges, np.asarray(which, dtype=np.int64))

    def without(self, closed: Bools) -> "Routes":
        """Return the same routes with GREEDY in place of every path over a closed edge."""
        crosses = np.zeros(len(self.indptr), dtype=np.bool_)  # the last entry stands for those without a path
        np.logical_or.at(crosses, np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr)), closed[self.edges])
        return self._replace(which=np.where(crosses[np.maximum(self.which, -1)], GREEDY, self.which))


class Driven(NamedTuple):
    """Edges driven to their end, in order of that end: whose, where on its path, at which count, and how long.

    `costs` are what the edges cost the travellers, and `kinds` what kinds of trips they were on. Where the simulator
    has no `trip_costs`, costs are seconds and there are no kinds. Where roads queue, counts are the vehicles met on the
    road, and `queued` are those of them who had reached its end and could not leave it.
    """

    vehicles: Ints
    places: Ints
    edges: Ints
    counts: Ints
    entered_s: Floats
    travel_time_s: Floats
    costs: Floats
    kinds: Ints32 | None = None
    queued: Ints32 | None = None


@dataclass(frozen=True, eq=False)
class Lessons:
    """What all driven edges taught so far, by (edge, bin of the count): a live view.

    Bin k holds the counts from `bin_starts[k]` up to the next start. An edge counts once it has been driven to
    its end, so the order in which vehicles entered does not matter. Counts are the entries of the window, or where
    roads queue the vehicles on the road, which predict its travel time best there (`docs/measurements.md`).
    """

    bin_starts: Ints
    visits: Ints
    sums: Floats
    squares: Floats
    counted: Literal["entries", "vehicles"] = "entries"


@dataclass(frozen=True, eq=False)
class TrafficTask:
    """What a router is told at the start. Uninformed routers leave `time_at`, `multiplier` and `static_roads` alone.

    Of `trip_costs` they may know the travellers and the features; theta and the costs are for informed ones.
    """

    network: RoadNetwork
    demand: Demand
    window_s: float
    noise: float
    lessons: Lessons
    counts: Callable[[], Ints32]  # the counts of all edges at the present moment
    time_at: Callable[[NDArray[np.integer]], Floats]  # counts of all edges -> their travel times
    multiplier: Callable[[NDArray[np.integer], NDArray[np.integer]], Floats]  # edges, their counts -> time / free flow
    closed: Callable[[], Bools]  # which edges are closed at the present moment
    static_roads: Callable[[], RoadNetwork]  # the roads as static plans should see them, with their BPR curves
    trip_costs: TripCosts | None = None


@runtime_checkable
class Router(Protocol):
    """Sends vehicles down paths.

    `interval_s` says how often it is asked: None once, about all vehicles; a number of seconds about the
    departures of each such interval, at its start; 0 about every vehicle when it departs. `feedback` says what it
    wants to be shown of driven edges: "none", "lessons" (kept up to date in its task), or "all": then `learn`
    is called with every driven edge before the router is asked again. One that goes by `time_at` or `multiplier` of its
    task has an attribute `informed` that is true, and is called so wherever it is shown.
    """

    interval_s: float | None
    feedback: Feedback

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:
        """Begin a run from nothing; all random choices come from `rng`."""

    def route(self, departures: Departures) -> Routes:
        """Return the paths of these vehicles."""

    def learn(self, driven: Driven) -> None:
        """Take in what was driven since the last call."""


def check_routes(network: RoadNetwork, routes: Routes, asked: Departures) -> None:
    """Refuse broken paths, naming the first vehicle that would drive one."""
    which = routes.which
    n_paths = len(routes.indptr) - 1
    if which.shape != asked.vehicles.shape:
        raise RouteError(f"the router was asked about {len(asked.vehicles)} vehicles and answered for {which.shape}")
    if routes.tolls is not None and (routes.tolls.shape != (network.n_edges,) or not (routes.tolls >= 0).all()):
        raise RouteError(f"tolls must be at least 0, one for each of {network.n_edges} edges")

    weighed = which == WEIGHED
    if weighed.any() and asked.kinds is None:
        raise RouteError("WEIGHED needs travellers; give TrafficSimulator(trip_costs=...)")
    if routes.weights is not None:
        per_second, charges = routes.weights
        if per_second.ndim != 2 or per_second.shape[1] != network.n_edges or not (per_second > 0).all():
            raise RouteError(f"weights must be above 0, for each kind of trip one for each of {network.n_edges} edges")
        if charges.shape != (network.n_edges,) or not (charges >= 0).all():
            raise RouteError(f"charges must be at least 0, one for each of {network.n_edges} edges")

    def refuse(position: int, what: str) -> None:
        raise RouteError(f"the router gave vehicle {asked.vehicles[position]} {what}")

    if routes.believed is not None:
        shape, least = routes.believed.shape, network.free_flow_s[:, np.newaxis]
        if len(shape) != 2 or shape[0] != network.n_edges or not (routes.believed >= least).all():
            raise RouteError("what is believed must be at least the free-flow time, by (edge, bin of the count)")

    wrong = np.flatnonzero((which != GREEDY) & (which != BELIEVED) & ~weighed & ((which < 0) | (which >= n_paths)))
    if len(wrong):
        refuse(wrong[0], f"path number {which[wrong[0]]}; there are {n_paths} paths")
    lengths = np.diff(routes.indptr)
    edges, owner = routes.edges, np.repeat(np.arange(n_paths), lengths)
    faults: list[tuple[NDArray[np.bool_], str]] = []
    empty = lengths == 0
    outside = np.zeros(n_paths, dtype=np.bool_)
    outside[owner[(edges < 0) | (edges >= network.n_edges)]] = True
    faults += [(empty, "an empty path"), (outside, f"an edge outside 0 … {network.n_edges - 1}")]
    broken, passes = np.zeros(n_paths, dtype=np.bool_), np.zeros(n_paths, dtype=np.bool_)
    if not outside.any() and len(edges) > 1:
        inside = owner[1:] == owner[:-1]
        broken[owner[1:][inside & (network.tails[edges[1:]] != network.heads[edges[:-1]])]] = True
        passes[owner[1:][inside & network.no_through[network.tails[edges[1:]]]]] = True
    faults += [(broken, "a broken path: an edge does not start where the one before ends")]
    faults += [(passes, "a path through a node that carries no through traffic")]
    if network.bans and not (outside.any() or broken.any()):
        over_ban = banned_rows(network.graph, routes.indptr, routes.edges)
        for path in np.flatnonzero(over_ban)[:1].tolist():
            way = banned_on(network.graph, edges[routes.indptr[path] : routes.indptr[path + 1]])
            faults += [(over_ban, f"a path that takes {said(way)}" if way else "")]
    mine = which >= 0
    for bad, what in faults:
        if bad.any():
            hit = np.flatnonzero(mine & bad[np.where(mine, which, 0)])
            if len(hit):
                refuse(hit[0], what)
    if not n_paths or empty.any() or outside.any():
        return
    starts, ends = network.tails[edges[routes.indptr[:-1]]], network.heads[edges[routes.indptr[1:] - 1]]
    path = np.where(mine, which, 0)
    off = np.flatnonzero(mine & ((starts[path] != asked.origins) | (ends[path] != asked.destinations)))
    if len(off):
        i, labels = off[0], network.labels
        refuse(
            i,
            f"a path from {labels[starts[path[i]]]!r} to {labels[ends[path[i]]]!r}; "
            f"it goes from {labels[asked.origins[i]]!r} to {labels[asked.destinations[i]]!r}",
        )
