"""TrafficSimulator: vehicles on the roads in continuous time, and the protocol of the routers that send them.

On entering an edge at time t a vehicle meets the count of the entries into that edge during (t - window_s, t]: those
at exactly t only when their event came first, itself never. The edge then takes
free_flow_s x congestion(count) x noise, at least a millisecond. The order of events is that of
`routesim.traffic.engines.window`.
"""

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routesim.congestion import BPR, CongestionFunction
from routesim.demand.demand import Demand, Trips
from routesim.errors import InputError, NoPathError, RouteError
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import Workspace, shortest_tree
from routesim.traffic.engines import window as events
from routesim.traffic.engines.event_queue import empty_queue
from routesim.traffic.engines.window import Floats, Ints
from routesim.traffic.protocol import Departures, Driven, Lessons, Router, Routes, TrafficTask, check_routes
from routesim.traffic.result import Traffic
from routesim.travellers.trip_costs import TripCosts

MOST_STEERING = 32_000_000  # nodes x destinations up to which bounds on the time to go are kept to steer searches
# Counts are put into bins, eight for each doubling: [0], [1], … [11], [12], [13, 14], … and one from 2 ** 16 on.
BIN_STARTS = np.concatenate(([0], np.unique(np.round(2.0 ** (np.arange(129) / 8)).astype(np.int64))))
_LOG_ROOM = 1 << 16


class TrafficSimulator:
    """Roads, demand and congestion; `run` lets a router send every vehicle and returns what happened.

    `congestion` multiplies the free-flow time by the count. `BPR()` reads it as a flow, count / window_s, against
    each road's own capacity, alpha and beta; `BPR(capacity=...)` takes a capacity in entries per window. `noise`
    is the standard deviation of the logarithm of a factor with mean 1, drawn for each vehicle and edge.
    `overtaking=False` makes vehicles leave an edge in the order they entered it. `reroute_share` of the vehicles
    look for a better way, at present counts, at the first junction `reroute_s` seconds after their last choice.
    With `trip_costs` every vehicle has a traveller of some kind, to whom seconds on an edge have a cost of their own;
    it is what routers that want feedback are paid for every edge driven, and `Traffic.trip_cost` adds it up.

    >>> import networkx as nx
    >>> import routesim as rs
    >>> graph = nx.DiGraph()
    >>> graph.add_edge("home", "work", free_flow_s=60.0)
    >>> trips = {"origin": ["home"] * 2, "destination": ["work"] * 2, "departure_s": [0.0, 10.0]}
    >>> simulator = TrafficSimulator(
    ...     rs.RoadNetwork.from_networkx(graph), Demand.from_trips(trips), congestion=rs.congestion.Linear(0.5)
    ... )
    >>> simulator.run(rs.FreeFlowRouter()).travel_time_s.tolist()  # the second meets the first
    [60.0, 90.0]
    """

    def __init__(
        self,
        network: RoadNetwork,
        demand: Demand,
        window_s: float = 300.0,
        congestion: CongestionFunction | None = None,
        *,
        noise: float = 0.0,
        overtaking: bool = True,
        reroute_share: float = 0.0,
        reroute_s: float = 60.0,
        bin_s: float | None = None,
        trip_costs: TripCosts | None = None,
    ) -> None:
        for name, value in (("window_s", window_s), ("bin_s", bin_s), ("reroute_s", reroute_s)):
            if value is not None and not (np.isfinite(value) and value > 0):
                raise InputError(f"{name} must be a finite number of seconds above 0, got {value}")
        if not (np.isfinite(noise) and noise >= 0):
            raise InputError(f"noise must be finite and at least 0, got {noise}")
        if not 0 <= reroute_share <= 1:
            raise InputError(f"reroute_share is a share between 0 and 1, got {reroute_share}")
        if not isinstance(demand, Demand):
            raise InputError(f"demand must be a Demand, got {type(demand).__name__}; see Demand.from_trips")
        if trip_costs is not None and trip_costs.features.n_edges != network.n_edges:
            raise InputError(
                f"trip_costs need features of all {network.n_edges} edges in their order, got those of "
                f"{trip_costs.features.n_edges}; give RoadFeatures(network, range(network.n_edges), ...)"
            )
        self.trip_costs = trip_costs
        self.network = network
        self.demand = demand
        self.window_s = float(window_s)
        self.congestion: CongestionFunction = BPR() if congestion is None else congestion
        self.noise = float(noise)
        self.overtaking = overtaking
        self.reroute_share = reroute_share
        self.reroute_s = float(reroute_s)
        self.bin_s = float(bin_s or window_s)
        self._nodes = demand.nodes(network)
        self._bpr = _bpr_of(network, self.congestion, self.window_s)

    def run(self, router: Any, seed: int = 0, *, until_s: float | None = None) -> Traffic:
        """Simulate every vehicle; with `until_s` only up to that time, with the vehicles still driving counted.

        `router` is a Router, a learner, or a list of paths, one for each vehicle in order of departure. The same
        seed gives the same numbers: trips, noise and the router have generators of their own.
        """
        from routesim.traffic.routers import as_router  # upward on purpose: users hand learners and lists to `run`

        if until_s is not None and not until_s > 0:
            raise InputError(f"until_s must be above 0, got {until_s}")
        return Drive(self, as_router(router), seed, np.inf if until_s is None else float(until_s)).run()


class Drive:
    """One run: the arrays of the compiled core, and the router they wait for.

    `run` asks the router. Whoever decides elsewhere takes the `questions` one by one and sends the answers.
    """

    def __init__(self, simulator: TrafficSimulator, router: Router, seed: int, until_s: float) -> None:
        self.simulator, self.router, self.until_s = simulator, router, until_s
        network = self.network = simulator.network
        streams = np.random.SeedSequence(seed).spawn(5)
        self.seed = seed
        self.trips: Trips = simulator.demand.draw(np.random.default_rng(streams[0]))
        self.noise_seed = np.uint64(streams[1].generate_state(1, np.uint64)[0])
        n, n_nodes, n_edges = len(self.trips.departure_s), network.n_nodes, network.n_edges
        if n > events.MOST_VEHICLES:
            raise InputError(f"a run has at most {events.MOST_VEHICLES:,} vehicles, got {n:,}; simulate fewer")
        self.origins = simulator._nodes[self.trips.origins]
        self.goals = simulator._nodes[self.trips.destinations]
        places, self.goal_row = np.unique(self.goals, return_inverse=True)
        self.goal_places = places
        if not _strongly_connected(network):
            self._check_reachable()
        costs = simulator.trip_costs
        state = np.zeros((n, 4), dtype=np.int64)
        state[:, events.START] = self.origins
        share = simulator.reroute_share
        reroutes = np.random.default_rng(streams[3]).random(n) < share if share > 0 else np.zeros(n, dtype=np.bool_)
        self.vehicles = events.Vehicles(
            state,
            np.ascontiguousarray(self.trips.departure_s),
            np.full(n, np.nan),
            np.zeros(n),
            np.ascontiguousarray(self.goals),
            self.goal_row.astype(np.int32),
            np.full(n, events.ASK, dtype=np.int8),
            reroutes,
            np.ascontiguousarray(self.trips.departure_s).copy(),
            np.empty(0, dtype=np.int32) if costs is None else costs.draw(np.random.default_rng(streams[4]), n),
            np.zeros(0 if costs is None else n),
        )
        self.clock = np.zeros(11, dtype=np.int64)
        self.clock[events.SERIAL] = n
        self.queue = empty_queue(n)
        self.paths: Ints = np.empty(max(1024, 4 * n_nodes), dtype=np.int32)
        table = np.empty((0, 0)) if simulator._bpr is not None else self._table(64)
        alpha, capacity, beta = simulator._bpr or (np.empty(0), np.empty(0), np.empty(0))
        self.roads = events.Roads(
            network.graph,
            network.free_flow_s.copy(),  # writable: a read-only array would be another type to the compiler
            alpha,
            1.0 / capacity,
            beta,
            table,
            np.zeros(n_edges),
            np.empty(0) if simulator.overtaking else np.zeros(n_edges),
            np.empty((0, 0)) if costs is None else costs.costs / network.free_flow_s,
            np.empty((0, 0)),
            np.empty(0),
            np.empty(0),
        )
        self.windows = events.Windows(
            np.zeros((n_edges, 4), dtype=np.int64), np.empty(max(1024, 4 * n_edges)), np.full(60, -1, dtype=np.int64)
        )
        self.loads = events.Loads(
            np.zeros(n_edges, dtype=np.int32),
            np.zeros(n_edges),
            np.empty(n_edges, dtype=np.int32),
            np.empty((4 * n_edges, 3), dtype=np.int64),
            np.empty(4 * n_edges),
        )
        self.search = events.Search(np.empty((0, 0)), Workspace.build(network.graph), np.empty(1, dtype=np.int64))
        rows = n_edges if router.feedback == "lessons" else 0
        shape = (rows, len(BIN_STARTS))
        bin_of = (np.searchsorted(BIN_STARTS, np.arange(BIN_STARTS[-1] + 1), side="right") - 1).astype(np.int16)
        log = np.empty((_LOG_ROOM if router.feedback == "all" else 0, 7))
        self.lessons = events.Lessons(bin_of, np.zeros(shape, dtype=np.int64), np.zeros(shape), np.zeros(shape), log)
        self.now_s = 0.0
        view = Lessons(BIN_STARTS, self.lessons.visits, self.lessons.sums, self.lessons.squares)
        self.router.start(
            TrafficTask(
                network,
                simulator.demand,
                simulator.window_s,
                simulator.noise,
                view,
                self._counts,
                self._time_at,
                self._multiplier,
                costs,
            ),
            np.random.default_rng(streams[2]),
        )

    def _check_reachable(self) -> None:
        """Refuse the run if a vehicle cannot reach its goal, naming the first."""
        order = np.argsort(self.goal_row, kind="stable")
        ends = np.searchsorted(self.goal_row[order], np.arange(len(self.goal_places) + 1))
        stuck: list[int] = []
        for row, time in enumerate(self._times_to_go()):
            mine = order[ends[row] : ends[row + 1]]
            stuck += mine[~np.isfinite(time[self.origins[mine]])][:1].tolist()
        if stuck:
            raise self._no_way(min(stuck))

    def _times_to_go(self) -> Iterator[Floats]:
        """Yield, for each goal, the time to it from every node on empty roads."""
        reverse, work = self.network.graph.reverse(), Workspace.build(self.network.graph)
        for place in self.goal_places.tolist():
            yield shortest_tree(reverse, self.network.free_flow_s, place, workspace=work)[0]

    def _steer(self) -> None:
        """Give searches at present counts a bound on the time to go, if there is room to keep one for every goal."""
        cells = len(self.goal_places) * self.network.n_nodes
        if len(self.search.to_go) == 0 and 0 < cells <= MOST_STEERING:
            self.search = self.search._replace(to_go=np.stack(list(self._times_to_go())))

    def _no_way(self, vehicle: int) -> NoPathError:
        labels = self.network.labels
        return NoPathError(
            f"vehicle {vehicle} cannot go from node {labels[self.origins[vehicle]]!r} to node "
            f"{labels[self.goals[vehicle]]!r}: no path leads there; leave the trip out or connect the nodes"
        )

    def _table(self, counts: int) -> Floats:
        """Return the multipliers at 0 … counts - 1, one row for all edges or one each, once they keep the rules."""
        values = np.asarray(self.simulator.congestion(np.arange(counts)[np.newaxis, :]), dtype=np.float64)
        values = np.atleast_2d(values)
        if values.shape not in ((1, counts), (self.network.n_edges, counts)):
            raise InputError(
                f"the congestion function returned shape {values.shape} for {counts} counts on "
                f"{self.network.n_edges} edges; it must work element by element, for one row or one per edge"
            )
        if not np.isfinite(values).all() or (values <= 0).any() or (np.diff(values, axis=1) < -1e-12).any():
            raise InputError(
                "a congestion function multiplies travel times here: its values must be finite, above 0 and must "
                f"not fall with the count; got {values[0, :4].tolist()} … at counts 0, 1, 2, 3, …"
            )
        return np.ascontiguousarray(values)

    def _counts(self) -> Ints:
        out = np.empty(self.network.n_edges, dtype=np.int32)
        events.counts_now(self.windows, self.now_s - self.simulator.window_s, out)
        return out

    def _time_at(self, counts: NDArray[Any]) -> Floats:
        return self.network.free_flow_s * self._multiplier(np.arange(self.network.n_edges), counts)

    def _multiplier(self, edges: NDArray[Any], counts: NDArray[Any]) -> Floats:
        numbers = np.asarray(counts, dtype=np.int64)
        if self.simulator._bpr is not None:
            alpha, capacity, beta = (values[edges] for values in self.simulator._bpr)
            return np.asarray(1.0 + alpha * (numbers / capacity) ** beta, dtype=np.float64)
        table = self._table(int(numbers.max(initial=0)) + 1)
        return np.asarray(table[edges if len(table) > 1 else 0, numbers], dtype=np.float64)

    def run(self) -> Traffic:
        """Let the router answer every question, and return what happened."""
        questions = self.questions()
        asked = next(questions, None)
        while asked is not None:
            try:
                asked = questions.send(self.router.route(asked))
            except StopIteration:
                asked = None
        return self.traffic()

    def questions(self) -> Generator[Departures, Routes, None]:
        """Drive up to each departure that needs a decision, hand it out and wait for its routes; to the end."""
        interval, n = self.router.interval_s, len(self.trips.departure_s)
        if interval is not None and not interval >= 0:
            raise InputError(f"a router's interval_s is None or at least 0 seconds, got {interval}")
        asked = 0
        if self.simulator.reroute_share > 0:
            self._steer()
        if interval is None:
            yield from self._ask(0, n, float(self.trips.departure_s[0]) if n else 0.0)
            asked = n
        pause = np.inf if interval is None or interval == 0 or n == 0 else float(self.trips.departure_s[0])
        while True:
            answer = events.drive(
                min(pause, self.until_s),
                self.simulator.window_s,
                self.simulator.bin_s,
                self.simulator.noise,
                self.noise_seed,
                self.simulator.reroute_s if self.simulator.reroute_share > 0 else 0.0,
                self.queue,
                self.clock,
                self.vehicles,
                self.paths,
                self.roads,
                self.windows,
                self.loads,
                self.search,
                self.lessons,
            )
            if answer == events.DONE or (answer == events.PAUSED and pause >= self.until_s):
                break
            if answer == events.PAUSED:
                assert interval is not None  # noqa: S101 - only intervals pause
                last = int(np.searchsorted(self.trips.departure_s, pause + interval, side="left"))
                yield from self._ask(asked, last, pause)
                asked, pause = last, pause + interval if last < n else np.inf
            elif answer == events.ASKS:
                vehicle = int(self.clock[events.WANTED])
                yield from self._ask(vehicle, vehicle + 1, float(self.trips.departure_s[vehicle]))
            else:
                self._meet(answer)
        self._learn()

    def _meet(self, need: int) -> None:
        """Make room for what the core asked for."""
        if need == events.PATHS_FULL:
            self.paths = _longer(self.paths, 2 * len(self.paths) + self.network.n_nodes)
        elif need == events.WINDOWS_FULL:
            self.windows = self.windows._replace(pool=_longer(self.windows.pool, 2 * len(self.windows.pool)))
        elif need == events.LOADS_FULL:
            rows, seconds = (_longer(values, 2 * len(values)) for values in (self.loads.rows, self.loads.row_seconds))
            self.loads = self.loads._replace(rows=rows, row_seconds=seconds)
        elif need == events.TABLE_SHORT:
            self.roads = self.roads._replace(table=self._table(2 * (int(self.clock[events.WANTED]) + 1)))
        elif need == events.LOG_FULL:
            self._learn()
        else:
            raise self._no_way(int(self.clock[events.WANTED]))

    def _learn(self) -> None:
        logged = int(self.clock[events.LOGGED])
        if logged:
            rows = self.lessons.log[:logged]
            vehicles, places, edges, counts = rows[:, :4].T.astype(np.int64)
            entered_s, took, costs = rows[:, 4:].T.copy()
            kinds = None if self.simulator.trip_costs is None else self.vehicles.kind[vehicles]
            self.router.learn(Driven(vehicles, places, edges, counts, entered_s, took, costs, kinds))
            self.clock[events.LOGGED] = 0

    def _ask(self, first: int, last: int, now_s: float) -> Generator[Departures, Routes, None]:
        """Ask about the vehicles first … last - 1, check the answer and put it into the core."""
        self._learn()
        if first == last:
            return
        self.now_s = now_s
        numbers = np.arange(first, last)
        departures = Departures(
            now_s,
            numbers,
            self.origins[first:last],
            self.goals[first:last],
            self.trips.departure_s[first:last],
            None if self.simulator.trip_costs is None else self.vehicles.kind[first:last],
        )
        routes = yield departures
        check_routes(self.network, routes, departures)
        used = int(self.clock[events.USED_PATHS])
        if used + len(routes.edges) > len(self.paths):
            self.paths = _longer(self.paths, 2 * (used + len(routes.edges)))
        self.paths[used : used + len(routes.edges)] = routes.edges
        self.clock[events.USED_PATHS] += len(routes.edges)
        if routes.tolls is not None:
            self.roads.toll[:] = routes.tolls
        if routes.weights is not None:
            per_second, charges = (np.array(values, dtype=np.float64, order="C") for values in routes.weights)
            self.roads = self.roads._replace(weights=per_second, least_weight=per_second.min(axis=1), charge=charges)
        given = routes.which >= 0
        if not given.all():
            self._steer()
        state, which = self.vehicles.state, routes.which[given]
        state[numbers[given], events.START] = used + routes.indptr[which]
        state[numbers[given], events.LENGTH] = routes.indptr[which + 1] - routes.indptr[which]
        self.vehicles.choice[numbers[~given]] = routes.which[~given]
        if len(self.roads.weights) == 0 and (routes.which == events.WEIGHED).any():
            raise RouteError("the router wants vehicles WEIGHED and gave no weights; give Routes(weights=...)")

    def _trip_cost(self) -> Floats:
        return np.where(np.isfinite(self.vehicles.arrival_s), self.vehicles.cost, np.nan)

    def traffic(self) -> Traffic:
        """Return what happened so far."""
        clock, loads = self.clock, self.loads
        touched = loads.touched[: clock[events.TOUCHED]].astype(np.int64)
        now = np.column_stack((np.full(len(touched), clock[events.BIN]), touched, loads.now[touched]))
        rows = np.concatenate((loads.rows[: clock[events.USED_LOADS]], now))
        seconds = np.concatenate((loads.row_seconds[: clock[events.USED_LOADS]], loads.seconds_now[touched]))
        return Traffic(
            network=self.network,
            router=type(self.router).__name__,
            seed=self.seed,
            window_s=self.simulator.window_s,
            bin_s=self.simulator.bin_s,
            places=self.simulator.demand.places,
            origins=self.trips.origins,
            destinations=self.trips.destinations,
            departure_s=self.trips.departure_s,
            arrival_s=self.vehicles.arrival_s,
            until_s=self.until_s,
            n_events=int(clock[events.EVENTS]),
            path_starts=self.vehicles.state[:, events.START].copy(),
            path_lengths=self.vehicles.state[:, events.LENGTH].copy(),
            edges_entered=self.vehicles.state[:, events.ENTERED].copy(),
            path_edges=self.paths[: clock[events.USED_PATHS]],
            loads=rows,
            load_seconds=seconds,
            informed=bool(getattr(self.router, "informed", False)),
            demand=self.simulator.demand,
            trip_kinds=None if self.simulator.trip_costs is None else self.vehicles.kind,
            trip_cost=None if self.simulator.trip_costs is None else self._trip_cost(),
        )


def _bpr_of(
    network: RoadNetwork, congestion: CongestionFunction, window_s: float
) -> tuple[Floats, Floats, Floats] | None:
    """Return alpha, capacity in entries per window, and beta of every edge; None for another function."""
    if not isinstance(congestion, BPR):
        return None
    if congestion.capacity is None:
        if not (np.ndim(congestion.alpha) == 0 == np.ndim(congestion.beta)) or (
            (congestion.alpha, congestion.beta) != (BPR().alpha, BPR().beta)
        ):
            raise InputError("BPR without a capacity takes each road's own alpha and beta; give BPR(capacity=...) too")
        return network.bpr_alpha.copy(), network.capacity_vph / 3600.0 * window_s, network.bpr_beta.copy()
    values = []
    for name in ("alpha", "capacity", "beta"):
        given = np.asarray(getattr(congestion, name), dtype=np.float64)
        if given.shape not in ((), (network.n_edges,)):
            raise InputError(f"BPR's {name} is one number or one for each of {network.n_edges} edges")
        values.append(np.ascontiguousarray(np.broadcast_to(given, (network.n_edges,))).copy())
    return values[0], values[1], values[2]


def _strongly_connected(network: RoadNetwork) -> bool:
    """Tell whether every node reaches every other, zones without through traffic aside."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if network.no_through.any():
        return False
    joined = coo_array((np.ones(network.n_edges), (network.tails, network.heads)), shape=(network.n_nodes,) * 2)
    parts, _ = connected_components(joined, connection="strong")
    return bool(parts == 1)


def _longer(values: NDArray[Any], room: int) -> NDArray[Any]:
    more = np.empty((room, *values.shape[1:]), dtype=values.dtype)
    more[: len(values)] = values
    return more
