"""Demand: who wants to go where, and when they set out."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from routesim.arrays import Floats, Ints32
from routesim.checks import LATEST_S, MOST_VEHICLES, seconds
from routesim.demand.tntp import read_tntp_trips
from routesim.errors import InputError, NoPathError
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import Workspace, shortest_tree

HOUR_S = 3600.0


class Trips(NamedTuple):
    """One entry a vehicle, in order of departure; origins and destinations are positions in `Demand.places`."""

    origins: Ints32
    destinations: Ints32
    departure_s: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Demand:
    """Trips with given departures, or rates between pairs of places from which departures are drawn.

    Make one with `from_trips`, `from_od`, `from_zones` or `from_tntp_trips`. Entry i goes from
    `places[origins[i]]` to `places[destinations[i]]`: one vehicle that departs at `departure_s[i]`, or, where
    that is None, a Poisson number of vehicles with mean `vehicles[i]` between `start_s` and `end_s`. `profile`
    divides that time into equal parts, over which departures are spread in proportion to its weights.

    >>> table = {"origin": ["a"], "destination": ["b"], "vehicles": [900.0]}
    >>> demand = Demand.from_od(table, start_s=0, end_s=1800)
    >>> demand.vehicles.tolist(), demand.scaled(2.0).vehicles.tolist()
    ([900.0], [1800.0])
    """

    places: tuple[Hashable, ...]
    origins: Ints32
    destinations: Ints32
    vehicles: Floats
    start_s: float
    end_s: float
    departure_s: Floats | None = None
    profile: Floats

    def __post_init__(self) -> None:
        seconds("the end of a demand", self.end_s, least=0.0)
        expected = float(self.vehicles.sum())
        if not expected <= MOST_VEHICLES:
            raise InputError(f"a demand expects at most {MOST_VEHICLES:g} vehicles, got {expected:g}; scale it down")

    @classmethod
    def from_trips(cls, table: Any) -> Self:
        """Take a table of trips with the columns origin, destination and departure_s, sorted by departure."""
        places, origins, destinations = _ends(table, "vehicle")
        times = _numbers(table, "departure_s")
        bad = np.flatnonzero(~((times >= 0) & (times <= LATEST_S)))
        if len(bad):
            raise InputError(
                f"departure_s must be a finite number between 0 and {LATEST_S:g}, got {times[bad[0]]} for vehicle "
                f"{bad[0]}; count seconds from the first day of the demand"
            )
        early = np.flatnonzero(np.diff(times) < 0)
        if len(early):
            late = int(early[0]) + 1
            raise InputError(
                f"trips must be sorted by departure_s, but vehicle {late} departs at {times[late]:g}, before vehicle "
                f"{late - 1} at {times[late - 1]:g}; sort the table first"
            )
        return cls(
            places=places,
            origins=origins,
            destinations=destinations,
            vehicles=np.ones(len(times)),
            start_s=float(times[0]) if len(times) else 0.0,
            end_s=float(times[-1]) if len(times) else 0.0,
            departure_s=times,
            profile=np.ones(1),
        )

    @classmethod
    def from_od(cls, table: Any, start_s: float = 0.0, end_s: float = HOUR_S, *, profile: ArrayLike = (1.0,)) -> Self:
        """Take a table with the columns origin, destination and vehicles, the expected number between the two times.

        A run draws Poisson departures. `profile` lists weights of equal parts of the time: (1, 3, 1) puts three
        fifths of the departures into the middle third.
        """
        places, origins, destinations, vehicles = read_od(table)
        if not (np.isfinite(start_s) and np.isfinite(end_s) and 0 <= start_s < end_s):
            raise InputError(f"demand needs 0 <= start_s < end_s, both finite, got {start_s} and {end_s}")
        seconds("end_s", end_s, least=0.0)
        weights = np.array(profile, dtype=np.float64)
        if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any() or not weights.sum() > 0:
            raise InputError(f"a profile lists weights of at least 0, not all of them 0, got {profile!r}")
        return cls(
            places=places,
            origins=origins,
            destinations=destinations,
            vehicles=vehicles,
            start_s=float(start_s),
            end_s=float(end_s),
            profile=weights,
        )

    @classmethod
    def from_tntp_trips(
        cls, path: str | Path, start_s: float = 0.0, end_s: float = HOUR_S, *, profile: ArrayLike = (1.0,)
    ) -> Self:
        """Read a TNTP `*_trips.tntp` file; its trips are those between the two times, an hour unless told.

        Trips from a zone to itself never reach a road and are left out.
        """
        return cls.from_od(read_tntp_trips(path), start_s, end_s, profile=profile)

    @classmethod
    def from_zones(
        cls,
        network: RoadNetwork,
        zones: Any,
        vehicles: float,
        start_s: float = 0.0,
        end_s: float = HOUR_S,
        *,
        decay_s: float = 600.0,
        profile: ArrayLike = (1.0,),
    ) -> Self:
        """Spread `vehicles` over pairs of populated zones by a gravity model.

        The pair (i, j) gets a share in proportion to population_i x population_j x exp(-time_ij / decay_s), where
        time_ij is the time from one to the other on empty roads. `zones` has a `node` (label) and a `population`
        for each zone, as `load_zones` returns; zones at one node are one. A zone that cannot be reached from
        another is a NoPathError.
        """
        if not (np.isfinite(vehicles) and vehicles > 0 and np.isfinite(decay_s) and decay_s > 0):
            raise InputError(f"vehicles and decay_s must be finite and above 0, got {vehicles} and {decay_s}")
        people: dict[Hashable, float] = {}
        for label, population in zip(zones.node, np.asarray(zones.population).tolist(), strict=True):
            if not (np.isfinite(population) and population >= 0):
                raise InputError(f"a population must be finite and at least 0, got {population} at node {label!r}")
            people[label] = people.get(label, 0.0) + population
        labels = [label for label, population in people.items() if population > 0]
        if len(labels) < 2:
            raise InputError(f"a gravity model needs two populated zones at different nodes, got {len(labels)}")
        times = _times_between(network, labels)
        weights = np.array([people[label] for label in labels])
        pull = weights[:, np.newaxis] * weights * np.exp(-times / decay_s)
        np.fill_diagonal(pull, 0.0)
        if not pull.sum() > 0:
            raise InputError(f"every pair of zones is too far apart for decay_s={decay_s}; raise it")
        rows, columns = np.nonzero(pull > 0)
        table = {
            "origin": [labels[row] for row in rows],
            "destination": [labels[column] for column in columns],
            "vehicles": vehicles * pull[rows, columns] / pull.sum(),
        }
        return cls.from_od(table, start_s, end_s, profile=profile)

    @property
    def expected_vehicles(self) -> float:
        """How many vehicles there are, or are to be expected."""
        return float(self.vehicles.sum())

    def scaled(self, factor: float) -> Self:
        """Return the demand grown by a factor: rates are multiplied, and given trips drawn that often each."""
        if not (np.isfinite(factor) and factor > 0):
            raise InputError(f"demand grows by a finite factor above 0, got {factor}")
        return replace(self, vehicles=self.vehicles * factor)

    def per_hour(self) -> dict[str, Any]:
        """Return the mean rates as a table of origin, destination and vehicles an hour, for `assign`."""
        span = self.end_s - self.start_s
        if not span > 0:
            raise InputError("all trips depart at the same time, so they have no rate an hour; give assign a table")
        width = max(len(self.places), 1)
        pairs, position = np.unique(self.origins.astype(np.int64) * width + self.destinations, return_inverse=True)
        vehicles = np.bincount(position, self.vehicles, len(pairs)) * (HOUR_S / span)
        return {
            "origin": [self.places[i] for i in pairs // width],
            "destination": [self.places[i] for i in pairs % width],
            "vehicles": vehicles,
        }

    def rate_at(self, start_s: float, end_s: float) -> float:
        """Return the rate of departures between two times, relative to the mean rate; 1 where departures are given."""
        if self.departure_s is not None or not self.end_s > self.start_s:
            return 1.0
        below = np.concatenate(([0.0], np.cumsum(self.profile))) / self.profile.sum()
        ends = np.linspace(self.start_s, self.end_s, len(below))
        first, last = max(start_s, self.start_s), min(end_s, self.end_s)
        if not last > first:
            return float(self.profile[-1 if start_s >= self.end_s else 0] / self.profile.mean())
        share = np.diff(np.interp([first, last], ends, below))[0]
        return float(share * (self.end_s - self.start_s) / (last - first))

    def draw(self, rng: np.random.Generator) -> Trips:
        """Draw the trips of one run: the same generator state gives the same trips."""
        if self.departure_s is not None:
            whole = np.floor(self.vehicles).astype(np.int64)
            if (whole == self.vehicles).all():
                copies = whole
            else:
                copies = whole + (rng.random(len(whole)) < self.vehicles - whole)
            which = np.repeat(np.arange(len(copies)), copies)
            return Trips(self.origins[which], self.destinations[which], self.departure_s[which])
        which = np.repeat(np.arange(len(self.vehicles)), rng.poisson(self.vehicles))
        # The cumulated profile turned round maps uniform numbers to times.
        below = np.concatenate(([0.0], np.cumsum(self.profile))) / self.profile.sum()
        ends = np.linspace(self.start_s, self.end_s, len(below))
        times = np.interp(rng.random(len(which)), below, ends)
        order = np.argsort(times, kind="stable")
        which = which[order]
        return Trips(self.origins[which], self.destinations[which], times[order])

    def nodes(self, network: RoadNetwork) -> Ints32:
        """Return the node index of every place, or say which place is no node of the network."""
        return resolve(network, self.places)


def read_od(table: Any) -> tuple[tuple[Hashable, ...], Ints32, Ints32, Floats]:
    """Read the columns origin, destination and vehicles: the places, and three arrays with an entry a row.

    Rows of 0 vehicles ask for nothing and are left out; a row from a place to itself is an error.
    """
    vehicles = _numbers(table, "vehicles")
    bad = np.flatnonzero(~(np.isfinite(vehicles) & (vehicles >= 0)))
    if len(bad):
        raise InputError(f"vehicles must be finite and at least 0, got {vehicles[bad[0]]} in row {bad[0]}")
    places, origins, destinations = _ends(table, "row", vehicles > 0)
    keep = vehicles > 0
    return places, origins[keep], destinations[keep], vehicles[keep]


def resolve(network: RoadNetwork, places: Sequence[Hashable]) -> Ints32:
    """Return the node index of every place, or an error that names the place."""
    return np.array([network.node_index(place) for place in places], dtype=np.int32)


def _times_between(network: RoadNetwork, labels: Sequence[Hashable]) -> Floats:
    graph = network.graph
    nodes, work = resolve(network, labels), Workspace.build(graph)
    times = np.stack([shortest_tree(graph, network.free_flow_s, int(node), workspace=work)[0][nodes] for node in nodes])
    far = np.argwhere(~np.isfinite(times))
    if len(far):
        row, column = far[0]
        raise NoPathError(f"no path leads from zone {labels[row]!r} to zone {labels[column]!r}; leave one of them out")
    return times


def _ends(table: Any, unit: str, asked: NDArray[np.bool_] | None = None) -> tuple[tuple[Hashable, ...], Ints32, Ints32]:
    """Number the places of the columns origin and destination in order of appearance."""
    number: dict[Hashable, int] = {}
    columns = []
    for name in ("origin", "destination"):
        values = _column(table, name)
        labels = values.tolist() if hasattr(values, "tolist") else list(values)
        try:
            columns.append(np.array([number.setdefault(label, len(number)) for label in labels], dtype=np.int32))
        except TypeError:
            raise InputError(f"the column {name} must hold node labels, which are hashable") from None
    origins, destinations = columns
    if len(origins) != len(destinations) or (asked is not None and len(asked) != len(origins)):
        raise InputError(f"the columns of a table must be equally long, got {len(origins)} and {len(destinations)}")
    places = tuple(number)
    still = (origins == destinations) if asked is None else (origins == destinations) & asked
    if still.any():
        row = int(np.argmax(still))
        raise InputError(f"{unit} {row} goes from {places[origins[row]]!r} to itself; leave it out, it needs no road")
    return places, origins, destinations


def _numbers(table: Any, name: str) -> Floats:
    values = _column(table, name)
    try:
        return np.array(values, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise InputError(f"the column {name} must hold numbers") from None


def _column(table: Any, name: str) -> Any:
    try:
        return table[name]
    except (KeyError, TypeError, IndexError, ValueError):
        known = getattr(table, "columns", None)
        names = [str(one) for one in (table if known is None else known)] if hasattr(table, "__iter__") else []
        have = f"it has {', '.join(names[:8])}" if names else f"got {type(table).__name__}"
        raise InputError(f"the table needs a column {name!r}; {have}") from None
