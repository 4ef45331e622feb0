"""TrafficSimulator: vehicles on the roads in continuous time, sent by a router, through an engine of some physics."""

import warnings
from collections.abc import Generator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from routesim.arrays import Floats, Ints
from routesim.checks import HORIZON_S, LATEST_S, number, seconds
from routesim.congestion import CongestionFunction
from routesim.demand.demand import Demand, Trips
from routesim.errors import CapacityWarning, InputError
from routesim.roads.incidents import Incident, change_times, shares_at
from routesim.roads.network import RoadNetwork
from routesim.traffic.engines.base import Physics, Setting
from routesim.traffic.engines.window import Window
from routesim.traffic.physics import as_physics
from routesim.traffic.protocol import Departures, Router, Routes, TrafficTask, check_routes
from routesim.traffic.reach import check_reachable
from routesim.traffic.result import Traffic
from routesim.traffic.routers import as_router
from routesim.traffic.routers.base import RouterTraits
from routesim.travellers.trip_costs import TripCosts

MOST_NOISE = 3.0
"""Beyond it nearly all factors are 0, and a few are all that a mean of 1 consists of."""

MOST_INTERVALS = 1e7


class TrafficSimulator:
    """Roads, demand and congestion; `run` lets a router send every vehicle and returns what happened.

    `physics` says what traffic does to travel times: "window", by the number of entries in the last `window_s` seconds;
    "queue", by roads with capacity and storage whose queues spill back; "plain-queue", the same without lanes and
    signals; or a physics with parameters such as `rs.physics.Queue(stuck_s=300)`. `congestion` and `overtaking` are
    those of the window count, `BPR()` and True unless given. `noise` is the standard deviation of the logarithm of a
    factor with mean 1, drawn for each vehicle and edge. `reroute_share` of the vehicles look for a better way, at
    present counts, at the first junction `reroute_s` seconds after their last choice. With `trip_costs` every vehicle
    has a traveller of some kind, to whom seconds on an edge have a cost of their own; it is what routers that want
    feedback are paid for every edge driven, and `Traffic.trip_cost` adds it up. With `incidents` roads lose capacity or
    are closed for some time, see `Incident`.

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
        physics: str | Physics = "window",
        noise: float = 0.0,
        overtaking: bool | None = None,
        reroute_share: float = 0.0,
        reroute_s: float = 60.0,
        bin_s: float | None = None,
        trip_costs: TripCosts | None = None,
        incidents: Sequence[Incident] = (),
    ) -> None:
        for name, value in (("window_s", window_s), ("bin_s", bin_s), ("reroute_s", reroute_s)):
            if value is not None:
                seconds(name, value)
        number("noise", noise, 0.0, MOST_NOISE)
        if not 0 <= reroute_share <= 1:
            raise InputError(f"reroute_share is a share between 0 and 1, got {reroute_share}")
        if not isinstance(demand, Demand):
            raise InputError(f"demand must be a Demand, got {type(demand).__name__}; see Demand.from_trips")
        if trip_costs is not None and trip_costs.features.n_edges != network.n_edges:
            raise InputError(
                f"trip_costs need features of all {network.n_edges} edges in their order, got those of "
                f"{trip_costs.features.n_edges}; give RoadFeatures(network, range(network.n_edges), ...)"
            )
        for incident in incidents:
            if not isinstance(incident, Incident):
                raise InputError(f"incidents are a list of rs.Incident(...), got {type(incident).__name__}")
            incident.check(network.n_edges)
        self.incidents = tuple(incidents)
        self.trip_costs = trip_costs
        self.network = network
        self.demand = demand
        self.window_s = float(window_s)
        self.noise = float(noise)
        self.reroute_share = reroute_share
        self.reroute_s = float(reroute_s)
        self.bin_s = float(bin_s or window_s)
        self.physics = _with_options(as_physics(physics), congestion, overtaking)
        self.physics.check(network, self.window_s)
        self.nodes = demand.nodes(network)  # the node of each of the demand's places

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.physics.label}, {self.network!r}>"

    def run(self, router: Any, seed: int = 0, *, until_s: float | None = None) -> Traffic:
        """Simulate every vehicle; with `until_s` only up to that time, with the vehicles still driving counted.

        `router` is a Router, a learner, or a list of paths, one for each vehicle in order of departure. The same
        seed gives the same numbers: trips, noise and the router have generators of their own.
        """
        traffic = Simulation(self, as_router(router), seed, until_s).run()
        warn_of_depth(traffic)
        return traffic


def warn_of_depth(traffic: Traffic) -> None:
    """Warn where the model was out of its depth."""
    if traffic.physics == Window.label:
        above = traffic.over_capacity()
        if above is not None:
            name = traffic.network.names[above.worst]
            warnings.warn(
                f"{above.n_edges} of {traffic.network.n_edges} roads were entered above capacity, the worst, edge "
                f"{above.worst}{f' ({name})' if name else ''}, {above.ratio:.2g} times: the window count holds nothing "
                'back there, so trips are too short; use physics="queue" or less demand',
                CapacityWarning,
                stacklevel=3,
            )
    elif traffic.forced_moves or (traffic.until_s == np.inf and not traffic.arrived.all()):
        stuck = int((~traffic.arrived).sum())
        warnings.warn(
            f"gridlock: {traffic.forced_moves} moves were forced after vehicles had been stuck, and {stuck} of "
            f"{traffic.n_vehicles} vehicles did not arrive; with less demand the figures mean more",
            CapacityWarning,
            stacklevel=3,
        )


def _with_options(physics: Physics, congestion: CongestionFunction | None, overtaking: bool | None) -> Physics:
    """Return the physics with the options that were given beside it; an option that it does not have is refused."""
    given = {"congestion": congestion, "overtaking": overtaking}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    known: set[str] = {one.name for one in fields(physics)} if is_dataclass(physics) else set()
    for name in options.keys() - known:
        raise InputError(f"the physics {physics.name!r} has no option {name}; leave it out")
    return replace(physics, **options) if options else physics  # type: ignore[type-var]  # it has fields


def check_intervals(departure_s: Floats, interval_s: float) -> None:
    """Refuse intervals of a router that are too many to go through."""
    intervals = (departure_s[-1] - departure_s[0]) / interval_s if len(departure_s) else 0.0
    if intervals > MOST_INTERVALS:
        raise InputError(
            f"a router that is asked every {interval_s:g} s would be asked {intervals:.0f} times between the first and "
            f"the last departure, at most {MOST_INTERVALS:g} are possible; give it a longer interval_s"
        )


def check_arrivals(arrival_s: Floats, until_s: float, *, may_lock: bool) -> None:
    """Refuse traffic that came to a standstill for so long that times lost their meaning.

    Where roads hold vehicles back, some may be locked for good and never arrive, of which the run warns.
    """
    late = np.flatnonzero(~(arrival_s <= HORIZON_S) & ~(np.isnan(arrival_s) & may_lock))
    if until_s == np.inf and len(late):
        raise InputError(
            f"vehicle {late[0]} arrives at {arrival_s[late[0]]:g} s, later than {HORIZON_S:g} s, where times can no "
            "longer be told apart; raise capacities, lower bpr_alpha or bpr_beta, or send fewer vehicles"
        )


class Simulation:
    """One run: an engine that drives, and the router that it waits for.

    `run` asks the router. Whoever decides elsewhere takes the `questions` one by one and sends the answers.
    """

    def __init__(self, simulator: TrafficSimulator, router: Router, seed: int, until_s: float | None) -> None:
        if until_s is not None and not (until_s == np.inf or 0 < until_s <= LATEST_S):
            raise InputError(f"until_s must be above 0 and at most {LATEST_S:g}, got {until_s}")
        self.until_s = np.inf if until_s is None else float(until_s)
        self.simulator, self.router, self.seed = simulator, router, seed
        trip_stream, noise_stream, router_stream, reroute_stream, kind_stream = np.random.SeedSequence(seed).spawn(5)
        self.trips: Trips = simulator.demand.draw(np.random.default_rng(trip_stream))
        origins, destinations = simulator.nodes[self.trips.origins], simulator.nodes[self.trips.destinations]
        check_reachable(simulator.network, origins, destinations)
        n, share, costs = len(self.trips.departure_s), simulator.reroute_share, simulator.trip_costs
        self.setting = Setting(
            network=simulator.network,
            departure_s=self.trips.departure_s,
            origins=origins,
            destinations=destinations,
            reroutes=np.random.default_rng(reroute_stream).random(n) < share,
            window_s=simulator.window_s,
            bin_s=simulator.bin_s,
            noise=simulator.noise,
            noise_seed=np.uint64(noise_stream.generate_state(1, np.uint64)[0]),
            reroute_s=simulator.reroute_s,
            feedback=router.feedback,
            trip_costs=costs,
            kinds=None if costs is None else costs.draw(np.random.default_rng(kind_stream), n),
            incidents=simulator.incidents,
        )
        self.closed = np.zeros(simulator.network.n_edges, dtype=np.bool_)
        self._changes = change_times(simulator.incidents)
        self._detoured = np.empty(0, dtype=np.int64)  # vehicles that were routed around closed roads before departure
        self.engine = simulator.physics.engine(self.setting)
        self.now_s = 0.0
        task = TrafficTask(
            simulator.network,
            simulator.demand,
            simulator.window_s,
            simulator.noise,
            self.engine.lessons,
            lambda: self.engine.counts(self.now_s),
            self.engine.time_at,
            self.engine.multiplier,
            lambda: self.closed,
            lambda: simulator.physics.static_roads(simulator.network),
            costs,
        )
        router.start(task, np.random.default_rng(router_stream))

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
        departure_s, interval = self.trips.departure_s, self.router.interval_s
        if interval:
            seconds("a router's interval_s", interval)
            check_intervals(departure_s, interval)
        n, asked, pause = len(departure_s), 0, np.inf
        if n and interval is None:
            yield from self._ask(np.arange(n), float(departure_s[0]))
        elif n and interval:
            pause = float(departure_s[0])
        while True:
            change = self._changes[0] if self._changes else np.inf
            stop = self.engine.run(min(pause, self.until_s, change))
            if stop.reason == "time" and min(pause, change) >= self.until_s:
                break
            if change < self.until_s and (stop.reason == "over" or (stop.reason == "time" and change <= pause)):
                yield from self._change_roads()
            elif stop.reason == "over":
                break
            elif stop.reason == "lesson":
                self._learn()
            elif stop.reason == "route":
                yield from self._ask(np.array([stop.vehicle]), float(departure_s[stop.vehicle]))
            else:
                # An interval begins: the router is asked about all who depart within it.
                following = pause + (interval or 0.0)
                last = int(np.searchsorted(departure_s, following, side="left"))
                yield from self._ask(np.arange(asked, last), pause)
                asked, pause = last, following if last < n else np.inf
        self._learn()

    def _learn(self) -> None:
        driven = self.engine.driven()
        if driven is not None:
            self.router.learn(driven)

    def _change_roads(self) -> Generator[Departures, Routes, None]:
        """Let incidents begin and end; ask again about those whose way leads over closed roads, or was a detour."""
        now_s = self._changes.pop(0)
        share = shares_at(self.simulator.incidents, now_s, self.simulator.network.n_edges)
        self.engine.change(share, now_s, self._changes[0] if self._changes else np.inf)
        before, self.closed = self.closed, share == 0
        if not np.array_equal(before, self.closed):
            detoured = self._detoured[self._detoured >= self.engine.departed()]
            affected = np.union1d(detoured, self.engine.set_to_cross(self.closed))
            yield from self._ask(affected, now_s)
            self._detoured = affected

    def _ask(self, vehicles: Ints, now_s: float) -> Generator[Departures, Routes, None]:
        """Ask about vehicles, check the answer and give it to the engine.

        Whom the router sends over a closed road all the same takes the quickest way of the moment when he departs.
        """
        self._learn()
        if not len(vehicles):
            return
        self.now_s = now_s
        setting = self.setting
        departures = Departures(
            now_s,
            vehicles,
            setting.origins[vehicles],
            setting.destinations[vehicles],
            setting.departure_s[vehicles],
            None if setting.kinds is None else setting.kinds[vehicles],
        )
        routes = yield departures
        check_routes(setting.network, routes, departures)
        if self.closed.any():
            routes = routes.without(self.closed)
        self.engine.take(departures, routes)

    def traffic(self) -> Traffic:
        """Return what happened so far."""
        simulator, happened = self.simulator, self.engine.happened()
        check_arrivals(
            happened.arrival_s, self.until_s, may_lock=happened.standing is not None or bool(self.simulator.incidents)
        )
        return Traffic(
            network=simulator.network,
            router=type(self.router).__name__,
            seed=self.seed,
            window_s=simulator.window_s,
            bin_s=simulator.bin_s,
            places=simulator.demand.places,
            origins=self.trips.origins,
            destinations=self.trips.destinations,
            departure_s=self.trips.departure_s,
            until_s=self.until_s,
            informed=RouterTraits.of(self.router).informed,
            demand=simulator.demand,
            physics=simulator.physics.label,
            incidents=simulator.incidents,
            jam_density_per_km=getattr(simulator.physics, "jam_density_per_km", None),
            wave_kph=getattr(simulator.physics, "wave_kph", None),
            trip_kinds=self.setting.kinds,
            **happened._asdict(),
        )
