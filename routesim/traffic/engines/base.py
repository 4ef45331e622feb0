"""What the simulator sees of an engine: the seam behind which a physics of traffic stands.

A `Physics` is a choice with its parameters, such as `Window()`. For each run it makes an `Engine`, which takes the
vehicles and the roads and is then driven by the simulator:

    engine.take(departures, routes)    routes of vehicles that have not departed yet
    engine.run(until_s)                drive until a route is needed, a lesson is due, it is time, or all is over
    engine.change(share, now_s, ...)   roads lose capacity, get it back, are closed or opened
    engine.driven()                    hand over the edges driven since the last call, where the router asked for them
    engine.counts(), .time_at(...)     the present state of the roads, which the router's task hands on
    engine.happened()                  what happened so far, vehicle by vehicle and edge by edge over time

Everything random in an engine comes from `Setting.noise_seed`, so that a seed repeats exactly.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Bools, Floats, Ints, Ints32
from routesim.roads.incidents import Incident
from routesim.roads.network import RoadNetwork
from routesim.traffic.protocol import Departures, Driven, Feedback, Lessons, Routes
from routesim.travellers.trip_costs import TripCosts


@dataclass(frozen=True, eq=False)
class Setting:
    """What every engine starts from: the roads, the vehicles in order of departure, and the settings of the run.

    `kinds` are the rows of `trip_costs.kinds` that the travellers belong to, where there are `trip_costs`. Vehicles
    that `reroutes` marks look for a better way at the first junction `reroute_s` seconds after their last choice.
    `feedback` says what the router wants to be shown of driven edges. Of `incidents` an engine hears by `change`.
    """

    network: RoadNetwork
    departure_s: Floats
    origins: Ints32
    destinations: Ints32
    reroutes: NDArray[np.bool_]
    window_s: float
    bin_s: float
    noise: float
    noise_seed: np.uint64
    reroute_s: float
    feedback: Feedback
    trip_costs: TripCosts | None = None
    kinds: Ints32 | None = None
    incidents: tuple[Incident, ...] = ()

    @property
    def n_vehicles(self) -> int:
        """The number of vehicles."""
        return len(self.departure_s)


class Stop(NamedTuple):
    """Why an engine stopped: `vehicle` has no route, a lesson is due, the time is reached, or all is over."""

    reason: Literal["route", "lesson", "time", "over"]
    vehicle: int = -1


class Happened(NamedTuple):
    """What happened in an engine, in the arrays of `Traffic`, which explains them."""

    arrival_s: Floats
    n_events: int
    path_starts: NDArray[np.int64]
    path_lengths: NDArray[np.int64]
    edges_entered: NDArray[np.int64]
    path_edges: NDArray[np.int32]
    loads: NDArray[np.int64]
    load_seconds: Floats
    trip_cost: Floats | None
    forced_moves: int = 0
    standing: Ints32 | None = None


class Engine(Protocol):
    """The traffic of one run."""

    lessons: Lessons

    def take(self, departures: Departures, routes: Routes) -> None:
        """Give vehicles that have not departed their routes, which are checked already."""

    def run(self, until_s: float) -> Stop:
        """Drive on until something is needed or `until_s` is reached, of which no event has happened then."""

    def change(self, share: Floats, now_s: float, next_s: float) -> None:
        """Let every road have a share of its capacity from now on, up to `next_s`; a share of 0 closes it for entry."""

    def departed(self) -> int:
        """Return how many vehicles have departed, which are the first ones."""

    def set_to_cross(self, closed: Bools) -> Ints:
        """Return the vehicles that have not departed and whose path leads over a closed road."""

    def driven(self) -> Driven | None:
        """Return the edges driven to their end since the last call, None where there are none."""

    def counts(self, now_s: float) -> NDArray[np.int32]:
        """Return the entries into every edge during the last `window_s` seconds."""

    def time_at(self, counts: NDArray[np.integer]) -> Floats:
        """Return the travel time of every edge at these counts."""

    def multiplier(self, edges: NDArray[np.integer], counts: NDArray[np.integer]) -> Floats:
        """Return the travel times of some edges at some counts, relative to free flow."""

    def happened(self) -> Happened:
        """Return what happened so far."""


@runtime_checkable
class Physics(Protocol):
    """A kind of engine and its parameters."""

    name: ClassVar[str]

    @property
    def label(self) -> str:
        """What results call it: its name and what it takes into account."""

    @property
    def has_static_references(self) -> bool:
        """Whether roads congest as static assignments assume, so that these are references for its traffic."""

    def check(self, network: RoadNetwork, window_s: float) -> None:
        """Refuse parameters that do not fit the roads."""

    def static_roads(self, network: RoadNetwork) -> RoadNetwork:
        """Return the roads as static plans should see them: what they pass here, and how they slow down."""

    def engine(self, setting: Setting) -> Engine:
        """Return an engine with empty roads."""
