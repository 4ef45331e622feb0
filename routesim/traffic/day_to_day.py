"""Day-to-day equilibrium: the same trips day after day, until hardly anybody would have been quicker another way.

Static assignments know rates and no queues. Here a day is a run of the simulator, whatever its physics; after it some
vehicles move to the path that would have been quickest for them at the times experienced that day.
"""

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from routesim.arrays import Bools, Floats
from routesim.checks import SHORTEST_S, number, seconds, whole
from routesim.errors import InputError, NotConvergedWarning
from routesim.traffic.experienced import Experience, Turns, VehiclePaths
from routesim.traffic.protocol import Departures, Driven, Feedback, Routes, TrafficTask
from routesim.traffic.result import Traffic
from routesim.traffic.simulator import Simulation, TrafficSimulator, warn_of_depth

# How much the divisor of the step grows after a day with a smaller gap than the day before, and with a larger one.
_AFTER_BETTER, _AFTER_WORSE = 0.3, 1.5


@dataclass(frozen=True, eq=False, repr=False)
class DayToDay:
    """What `day_to_day` found: the run of the day with the least gap, and gap and mean trip of every day.

    A day's gap is (experienced total time - total time of the quickest paths) / experienced total time, both at the
    times of the day averaged by turn and interval of entry, waiting outside included.
    """

    traffic: Traffic
    gaps: Floats
    mean_trip_s: Floats
    day: int
    target: float

    @property
    def days(self) -> int:
        """How many days were simulated."""
        return len(self.gaps)

    @property
    def gap(self) -> float:
        """The gap of `traffic`, the least of all days."""
        return float(self.gaps[self.day])

    @property
    def converged(self) -> bool:
        """Whether that gap is as small as was asked for."""
        return self.gap <= self.target

    def __repr__(self) -> str:
        found = f"mean trip {self.mean_trip_s[self.day]:.1f} s, gap {self.gap:.2%} on day {self.day + 1} of {self.days}"
        return f"<DayToDay {found}{'' if self.converged else ', not converged'}>"


def day_to_day(
    simulator: TrafficSimulator,
    days: int = 50,
    gap: float = 0.01,
    seed: int = 0,
    *,
    interval_s: float = 120.0,
    start: Any = None,
) -> DayToDay:
    """Find the equilibrium of experienced times: repeat the same trips until the gap is at most `gap`.

    On the first day everybody takes the path that is quickest on empty roads, or the one that the router `start` sends
    them down. After each day the travel times of roads, turn by turn, are averaged over intervals of entry of
    `interval_s` seconds, best no shorter than the cycle of signals, and the quickest path of every vehicle at these
    times and from its own departure on is searched for. A vehicle moves to it with probability sqrt(s) / k, where s is
    the share of its time that it would have saved, and k grows by 0.3 after a day with a smaller gap than the day
    before and by 1.5 after one with a larger: successive averages with a self-regulated step (Liu, He and He, 2009).
    All else is the same every day: trips, departures and noise.

    The result is a dynamic user equilibrium as far as its gap says, and no optimum; there can be several, and days can
    go on changing around one. A `gap` that is not reached within `days` is a NotConvergedWarning.

    >>> import networkx as nx
    >>> import routesim as rs
    >>> graph = nx.MultiDiGraph()
    >>> for capacity in (1200.0, 600.0):  # two roads with a bottleneck each, 3,600 vehicles an hour
    ...     _ = graph.add_edge("home", "work", free_flow_s=60.0, capacity_vph=capacity)
    >>> trips = {"origin": ["home"] * 1800, "destination": ["work"] * 1800, "departure_s": range(1800)}
    >>> simulator = rs.TrafficSimulator(
    ...     rs.RoadNetwork.from_networkx(graph), rs.Demand.from_trips(trips), physics="plain-queue"
    ... )
    >>> found = rs.day_to_day(simulator, gap=0.01)
    >>> bool(found.converged), [round(float(np.mean(found.traffic.path_edges == road)), 1) for road in (0, 1)]
    (True, [0.7, 0.3])
    """
    days, gap = whole("days", days, least=1), number("gap", gap, 0.0, 1.0)
    interval_s = seconds("interval_s", interval_s)
    if simulator.reroute_share > 0:
        raise InputError(
            f"in day_to_day vehicles keep their paths, got reroute_share {simulator.reroute_share}; leave it out"
        )
    if simulator.incidents:
        raise InputError("day_to_day is an equilibrium of days that are alike; leave incidents out")
    if simulator.trip_costs is not None:
        raise InputError("day_to_day is an equilibrium of travel times; leave trip_costs out")
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(6)[5])  # the simulator takes the first five
    turns = Turns.build(simulator.network)
    paths = None if start is None else _kept(simulator.run(start, seed))
    gaps: list[float] = []
    means: list[float] = []
    best, number_of_steps = None, 1.0
    for day in range(days):
        commuters = Commuters(turns, interval_s, paths)
        traffic = Simulation(simulator, commuters, seed, None).run()
        if not traffic.n_vehicles:
            raise InputError("day_to_day needs vehicles, got a demand without any")
        seen = commuters.look_back()
        gained, total = np.maximum(0.0, seen.took_s - seen.quickest_s), float(seen.took_s.sum())
        gaps.append(float(gained.sum()) / total if total > 0 else 0.0)
        means.append(traffic.mean_travel_time_s)
        if gaps[-1] == min(gaps):
            best = traffic
        if gaps[-1] <= gap:
            break
        number_of_steps += _AFTER_WORSE if day and gaps[-1] > gaps[-2] else _AFTER_BETTER
        saved = gained / np.maximum(seen.took_s, SHORTEST_S)
        paths = seen.paths.mixed(seen.quickest, _movers(np.sqrt(saved) / number_of_steps, traffic, rng))
    found = DayToDay(best or traffic, np.array(gaps), np.array(means), int(np.argmin(gaps)), gap)
    if not found.converged:
        warnings.warn(
            f"the least gap of {days} days is {found.gap:.3g}, above {gap:g}; raise days or gap, or lower the demand",
            NotConvergedWarning,
            stacklevel=2,
        )
    warn_of_depth(found.traffic)
    return found


class _Day(NamedTuple):
    """A day in retrospect: each vehicle's path, what it takes at the day's mean times, and the same of the quickest."""

    paths: VehiclePaths
    took_s: Floats
    quickest_s: Floats
    quickest: VehiclePaths


class Commuters:
    """A router of vehicles that keep their paths, at first the quickest on empty roads; it watches what they drive."""

    interval_s: float | None = None
    feedback: Feedback = "all"

    def __init__(self, turns: Turns, interval_s: float, paths: VehiclePaths | None) -> None:
        self._turns, self._averaged_s, self._given = turns, interval_s, paths

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:  # noqa: ARG002 - no chance involved
        """Note what roads take while they are empty."""
        self._empty_s = task.time_at(np.zeros(task.network.n_edges, dtype=np.int64))

    def route(self, departures: Departures) -> Routes:
        """Send everybody down the path of the day."""
        self._asked, n_vehicles = departures, len(departures.vehicles)
        self._seen = Experience(self._turns, self._empty_s, float(departures.departure_s[0]), self._averaged_s)
        self._paths = self._given or self._quickest(self._seen.times())[1].in_order()
        return Routes(self._paths.indptr, self._paths.edges, np.arange(n_vehicles))

    def learn(self, driven: Driven) -> None:
        """Take in how long roads took."""
        self._seen.add(driven, self._paths, self._asked.departure_s)

    def look_back(self) -> _Day:
        """Compare the paths of the day with the quickest."""
        times = self._seen.times()
        took_s = self._seen.along(times, self._paths, self._asked.departure_s)
        return _Day(self._paths, took_s, *self._quickest(times))

    def _quickest(self, times: Floats) -> tuple[Floats, VehiclePaths]:
        asked = self._asked
        return self._seen.quickest(times, asked.origins, asked.destinations, asked.departure_s)


def _kept(traffic: Traffic) -> VehiclePaths:
    """Return the paths that were driven."""
    return VehiclePaths(traffic.path_starts, traffic.path_lengths, traffic.path_edges).in_order()


def _movers(chance: Floats, traffic: Traffic, rng: np.random.Generator) -> Bools:
    """Draw who moves, by systematic sampling: evenly over OD pairs and, within each, over departures."""
    order = np.lexsort((traffic.departure_s, traffic.destinations, traffic.origins))
    reached = np.floor(np.cumsum(chance[order]) + rng.random())
    moves = np.zeros(len(chance), dtype=np.bool_)
    moves[order] = np.diff(reached, prepend=0.0) > 0
    return moves
