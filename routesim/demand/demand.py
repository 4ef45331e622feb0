"""Demand: who wants to go where, and when they set out."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats, Ints32
from routesim.checks import LATEST_S, MOST_VEHICLES, seconds
from routesim.demand.cells import profile_weights
from routesim.demand.density import Density, density, warn_if_dense
from routesim.demand.loading import Loading
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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Demand:
    """Trips with given departures, or rates between pairs of places from which departures are drawn.

    Make one with `from_csv`, `from_gmns`, `from_tntp_trips`, `from_trips`, `from_od` or `from_zones`. Entry i goes
    from `places[origins[i]]` to `places[destinations[i]]`: one vehicle that departs at `departure_s[i]`, or, where
    that is None, a Poisson number of vehicles with mean `vehicles[i]` between `start_s` and `end_s`, or between
    `starts_s[i]` and `ends_s[i]` where entries have times of their own. `profile` divides that time into equal parts,
    over which departures are spread in proportion to its weights. Trips from a place to itself need no road: they are
    left out, and counted in `loading`, which also says how far places were moved to reach a road.

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
    starts_s: Floats | None = None
    ends_s: Floats | None = None
    profile: Floats = field(default_factory=lambda: np.ones(1))
    loading: Loading = field(default_factory=Loading)

    def __repr__(self) -> str:
        return (
            f"<Demand: {self.expected_vehicles:,.6g} vehicles expected between {self.start_s:g} and {self.end_s:g} s, "
            f"{len(self.vehicles):,} entries, {len(self.places):,} places>"
        )

    def __post_init__(self) -> None:
        seconds("the end of a demand", self.end_s, least=0.0)
        expected = float(self.vehicles.sum())
        if not expected <= MOST_VEHICLES:
            raise InputError(f"a demand expects at most {MOST_VEHICLES:g} vehicles, got {expected:g}; scale it down")

    @classmethod
    def from_trips(cls, table: Any) -> Self:
        """Take a table of trips with the columns origin, destination and departure_s, sorted by departure."""
        places, origins, destinations = _ends(table)
        times = _numbers(table, "departure_s")
        if len(times) != len(origins):
            raise InputError(f"the columns of a table must be equally long, got {len(origins)} and {len(times)}")
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
        kept = origins != destinations
        loading = Loading.of_rows(len(kept), np.ones(int((~kept).sum())))
        origins, destinations, times = origins[kept], destinations[kept], times[kept]
        return cls(
            places=places,
            origins=origins,
            destinations=destinations,
            vehicles=np.ones(len(times)),
            start_s=float(times[0]) if len(times) else 0.0,
            end_s=float(times[-1]) if len(times) else 0.0,
            departure_s=times,
            loading=loading,
        )

    @classmethod
    def from_od(cls, table: Any, start_s: float = 0.0, end_s: float = HOUR_S, *, profile: ArrayLike = (1.0,)) -> Self:
        """Take a table with the columns origin, destination and vehicles, the expected number between the two times.

        A run draws Poisson departures. `profile` lists weights of equal parts of the time: (1, 3, 1) puts three
        fifths of the departures into the middle third.
        """
        places, origins, destinations, vehicles, within = _read_od(table)
        if not (np.isfinite(start_s) and np.isfinite(end_s) and 0 <= start_s < end_s):
            raise InputError(f"demand needs 0 <= start_s < end_s, both finite, got {start_s} and {end_s}")
        seconds("end_s", end_s, least=0.0)
        weights = profile_weights(profile)
        return cls(
            places=places,
            origins=origins,
            destinations=destinations,
            vehicles=vehicles,
            start_s=float(start_s),
            end_s=float(end_s),
            profile=weights,
            loading=Loading.of_rows(len(_numbers(table, "vehicles")), within),
        )

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        network: RoadNetwork,
        start_s: float = 0.0,
        end_s: float = HOUR_S,
        *,
        profile: ArrayLike = (1.0,),
    ) -> Self:
        """Read a table of trips or rates, .csv (also .gz) or .parquet, for these roads.

        The ends of a row are node labels, `origin` and `destination`, or places in degrees, `origin_lon`, `origin_lat`,
        `destination_lon` and `destination_lat`. A place stands for the nearest node that cars can leave and reach;
        one farther from it than 200 m is warned of, and one beyond the network refused. A row is a trip at
        `departure_s`, or `vehicles` expected between `start_s` and `end_s`: those of the row where the table has such
        columns, and else the arguments. So rows of one pair with times of their own are its profile; a column `profile`
        with weights such as `1;3;1`, or the argument, spreads the departures of a row over equal parts of its time.
        With both `departure_s` and `vehicles`, so many depart at that time. Other columns are left alone.

        What was left out and moved is in `loading`. Demand that is far above what real places have is warned of, see
        `density`. A mistake in the file is an error that names the row as a spreadsheet numbers it, and the column.
        """
        from routesim.demand.tables import read_demand  # late: it builds on this module

        return cls(**read_demand(path, network, start_s, end_s, profile))._checked(network, path)

    @classmethod
    def from_gmns(
        cls,
        folder: str | Path,
        network: RoadNetwork | None = None,
        start_s: float = 0.0,
        end_s: float = HOUR_S,
        *,
        profile: ArrayLike = (1.0,),
    ) -> Self:
        """Read `demand.csv` of a GMNS folder: its `volume` between zones, as vehicles between the two times.

        A zone is its centroid. Where that has no roads, or there is none, the zone's trips are spread evenly over the
        places of the zone that connectors join to the roads, or if there are none over all its nodes. `network` are
        the roads of the folder where they are read already. Trips within a zone are left out and counted in `loading`.
        """
        from routesim.demand.gmns import read_gmns_demand  # late: it builds on this module

        roads = RoadNetwork.from_gmns(folder) if network is None else network
        return cls(**read_gmns_demand(folder, roads, start_s, end_s, profile))._checked(roads, folder)

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

    def _checked(self, network: RoadNetwork, source: str | Path) -> Self:
        warn_if_dense(self.density(network), str(source))
        return self

    def density(self, network: RoadNetwork) -> Density:
        """Return how dense the demand is on these roads, beside what was measured in real places."""
        return density(network, self)

    def first(self, n: int) -> Self:
        """Return the first `n` entries: the trips that depart first, where departures are given."""
        names = ("origins", "destinations", "vehicles", "departure_s", "starts_s", "ends_s")
        columns = {name: values[:n] for name in names if (values := getattr(self, name)) is not None}
        return replace(self, **columns)

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
        if self.starts_s is not None and self.ends_s is not None:
            overlap = np.minimum(end_s, self.ends_s) - np.maximum(start_s, self.starts_s)
            shares = np.maximum(overlap, 0.0) / (self.ends_s - self.starts_s)
            mean = self.expected_vehicles / (self.end_s - self.start_s)
            return float(shares @ self.vehicles / ((end_s - start_s) * mean))
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
        if self.starts_s is not None and self.ends_s is not None:
            times = self.starts_s[which] + rng.random(len(which)) * (self.ends_s - self.starts_s)[which]
        else:
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

    Rows of 0 vehicles ask for nothing, and rows from a place to itself need no road: both are left out.
    """
    return _read_od(table)[:4]


def _read_od(table: Any) -> tuple[tuple[Hashable, ...], Ints32, Ints32, Floats, Floats]:
    """Do as `read_od` does, and return also the vehicles of the rows from a place to itself."""
    vehicles = _numbers(table, "vehicles")
    bad = np.flatnonzero(~(np.isfinite(vehicles) & (vehicles >= 0)))
    if len(bad):
        raise InputError(f"vehicles must be finite and at least 0, got {vehicles[bad[0]]} in row {bad[0]}")
    places, origins, destinations = _ends(table)
    if len(vehicles) != len(origins):
        raise InputError(f"the columns of a table must be equally long, got {len(origins)} and {len(vehicles)}")
    within, asked = origins == destinations, vehicles > 0
    keep = asked & ~within
    return places, origins[keep], destinations[keep], vehicles[keep], vehicles[asked & within]


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


def _ends(table: Any) -> tuple[tuple[Hashable, ...], Ints32, Ints32]:
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
    if len(origins) != len(destinations):
        raise InputError(f"the columns of a table must be equally long, got {len(origins)} and {len(destinations)}")
    return tuple(number), origins, destinations


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
