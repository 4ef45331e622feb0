"""Traffic: what happened on the roads in one run, vehicle by vehicle and edge by edge over time."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints, Ints32
from routesim.demand.demand import Demand
from routesim.errors import InputError
from routesim.roads.incidents import Incident
from routesim.roads.network import RoadNetwork
from routesim.storage.folders import write_folder, write_json
from routesim.traffic import tables

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from routesim.assignment.inequality import Inequality


MOST_CELLS = 1 << 28  # time bins x edges that `edge_counts` may have


class OverCapacity(NamedTuple):
    """How many roads were entered above capacity, and the worst: how many times its capacity entered it."""

    n_edges: int
    worst: int
    ratio: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Traffic:
    """One run of the simulator.

    Vehicle i goes from `places[origins[i]]` to `places[destinations[i]]`, departs at `departure_s[i]` and arrives at
    `arrival_s[i]`, which is NaN for a vehicle still driving, or not yet departed, when the run was stopped at
    `until_s`. `n_events` counts the entries into edges. `physics` says what traffic did to travel times. `load_seconds`
    are, for each row of `loads`, the travel times of those who entered, added up, at the counts they met and without
    noise; with queues the seconds that all vehicles spent on the edge within the bin. With queues `standing` has where
    vehicles were at the end of each bin, `jam_density_per_km` is how many stand on a kilometre of one lane, `wave_kph`
    is the speed at which a jam dissolves, and `forced_moves` counts those that moved out of gridlock by force.
    `incidents` are those of the simulator. `informed` says that the router was told how roads congest. With
    `trip_costs` in the simulator, `trip_kinds` are the rows of their `kinds` and `trip_cost` is what each trip that
    ended cost its traveller."""

    network: RoadNetwork
    demand: Demand
    router: str
    seed: int
    window_s: float
    bin_s: float
    places: tuple[Hashable, ...]
    origins: NDArray[np.int32]
    destinations: NDArray[np.int32]
    departure_s: Floats
    arrival_s: Floats
    until_s: float
    n_events: int
    path_starts: Ints
    path_lengths: Ints
    edges_entered: Ints
    path_edges: NDArray[np.int32]
    loads: Ints  # rows of (time bin, edge, entries), by bin
    load_seconds: Floats
    physics: str = "window count"
    forced_moves: int = 0
    standing: Ints32 | None = None  # rows of (time bin, edge, on the road, in its queue, waiting to enter), by bin
    incidents: tuple[Incident, ...] = ()
    jam_density_per_km: float | None = None
    wave_kph: float | None = None
    informed: bool = False
    trip_kinds: NDArray[np.int32] | None = None
    trip_cost: Floats | None = None

    def __repr__(self) -> str:
        return f"<Traffic {self.router}: {self.n_vehicles} vehicles, {self.n_events} edge entries>"

    def _repr_html_(self) -> str:
        """Show the map of the traffic and its summary in a notebook."""
        from routesim.report.notebook import traffic_html  # upward on purpose: nothing else here draws

        return traffic_html(self)

    @property
    def n_vehicles(self) -> int:
        """How many vehicles the demand had."""
        return len(self.departure_s)

    @property
    def departed(self) -> NDArray[np.bool_]:
        """Which vehicles entered their first edge."""
        return self.edges_entered > 0

    @property
    def arrived(self) -> NDArray[np.bool_]:
        """Which vehicles reached their destination."""
        return np.isfinite(self.arrival_s)

    @property
    def travel_time_s(self) -> Floats:
        """Seconds from departure to arrival of every vehicle; NaN for those that did not arrive."""
        return self.arrival_s - self.departure_s

    @property
    def total_travel_time_s(self) -> float:
        """Vehicle-seconds of all trips that ended."""
        return float(np.nansum(self.travel_time_s))

    @property
    def mean_travel_time_s(self) -> float:
        """Mean over the trips that ended; NaN if none did."""
        times = self.travel_time_s[self.arrived]
        return float(times.mean()) if len(times) else float("nan")

    def path(self, vehicle: int) -> NDArray[np.int32]:
        """Return the edges of a vehicle's path, those still ahead of it included; empty before it departs."""
        if not 0 <= vehicle < self.n_vehicles:
            raise InputError(f"vehicles run from 0 to {self.n_vehicles - 1}, got {vehicle}")
        first = self.path_starts[vehicle]
        return self.path_edges[first : first + self.path_lengths[vehicle]]

    def measured(self, from_s: float = 0.0, to_s: float = np.inf) -> Floats:
        """Return the travel times of the trips that departed from `from_s` up to `to_s`, NaN where one did not end.

        Choosing trips by their arrival would leave out the long ones. So choose departures: after the roads have
        filled, and early enough that the trips end while there is still demand.
        """
        return self.travel_time_s[(self.departure_s >= from_s) & (self.departure_s < to_s)]

    def measured_cost(self, from_s: float = 0.0, to_s: float = np.inf) -> Floats:
        """Return what the trips chosen as in `measured` cost their travellers."""
        if self.trip_cost is None:
            raise InputError("trips have costs beside their times only with TrafficSimulator(trip_costs=...)")
        return self.trip_cost[(self.departure_s >= from_s) & (self.departure_s < to_s)]

    @cached_property
    def trips(self) -> "pd.DataFrame":
        """One row a vehicle: origin, destination, departure_s, arrival_s, travel_time_s, path (a tuple of edges)."""
        import pandas as pd

        labels = np.empty(len(self.places), dtype=object)
        labels[:] = self.places
        flat, paths, last = self.path_edges.tolist(), [], {}
        for start, length in zip(self.path_starts.tolist(), self.path_lengths.tolist(), strict=True):
            # Vehicles on the same path share one tuple.
            if (start, length) not in last:
                last[start, length] = tuple(flat[start : start + length])
            paths.append(last[start, length])
        cost = {} if self.trip_cost is None else {"cost": self.trip_cost}
        return pd.DataFrame(
            {
                "origin": pd.Series(labels[self.origins]).infer_objects(),
                "destination": pd.Series(labels[self.destinations]).infer_objects(),
                "departure_s": self.departure_s,
                "arrival_s": self.arrival_s,
                "travel_time_s": self.travel_time_s,
                "path": pd.Series(paths, dtype=object),
                **cost,
            }
        )

    @cached_property
    def edge_counts(self) -> NDArray[np.int32]:
        """Entries by (time bin, edge); bin k is the time from k * bin_s to (k + 1) * bin_s."""
        bins = int(self.loads[:, 0].max()) + 1 if len(self.loads) else 0
        if bins * self.network.n_edges > MOST_CELLS:
            raise InputError(
                f"{bins} time bins of {self.network.n_edges} edges are too many for one array; read `loads`, which "
                "lists only what is not zero, or make bin_s longer"
            )
        counts = np.zeros((bins, self.network.n_edges), dtype=np.int32)
        np.add.at(counts, (self.loads[:, 0], self.loads[:, 1]), self.loads[:, 2])
        return counts

    def inequality(self, from_s: float = 0.0, to_s: float = np.inf) -> "Inequality":
        """Return how much longer trips were than need be: their paths beside the quickest, both at mean times.

        The trips are those chosen as in `measured` that ended, and the time of an edge is its mean over the run.
        """
        from routesim.traffic.unequal import inequality_of_traffic  # late: searches compile

        return inequality_of_traffic(self, (self.departure_s >= from_s) & (self.departure_s < to_s))

    def summary(self, *, references: bool = False, from_s: float = 0.0, to_s: float = np.inf) -> dict[str, Any]:
        """Return the run in a few numbers: all vehicles accounted for, and the trips that departed within a time.

        With `references`, the demand's mean rates are also assigned to the roads as if they were steady, and the
        mean trip is set beside it: `excess_over_system_optimum` and `distance_to_user_equilibrium`, as fractions.
        These are references and no bounds: traffic that starts on empty roads can be below either.
        """
        chosen = self.measured(from_s, to_s)
        times = chosen[np.isfinite(chosen)]
        mean = float(times.mean()) if len(times) else float("nan")
        above = self.over_capacity()
        numbers: dict[str, Any] = {
            "router": self.router,
            "seed": self.seed,
            "window_s": self.window_s,
            "vehicles": self.n_vehicles,
            "arrived": int(self.arrived.sum()),
            "driving": int((self.departed & ~self.arrived).sum()),
            "not_departed": int((~self.departed).sum()),
            "arrived_share": float(self.arrived.mean()) if self.n_vehicles else 1.0,
            "physics": self.physics,
            "forced_moves": self.forced_moves,
            "roads_above_capacity": 0 if above is None else above.n_edges,
            "edge_entries": self.n_events,
            "measured_trips": len(times),
            "measured_unfinished": len(chosen) - len(times),
            "mean_travel_time_s": mean,
            "total_travel_time_s": float(times.sum()),
            **self.inequality(from_s, to_s).named("excess"),
        }
        if above is not None:
            numbers |= {"worst_edge_above_capacity": above.worst, "worst_ratio_above_capacity": above.ratio}
        if self.standing is not None:
            late = ~self.departed & (self.departure_s < self.until_s)
            numbers["waiting_to_enter"] = int(late.sum())
        if self.jam_density_per_km is not None:
            numbers["jam_density_per_km"] = self.jam_density_per_km
        if self.trip_cost is not None:
            numbers["mean_cost"] = float(np.nanmean(self.measured_cost(from_s, to_s))) if len(times) else float("nan")
        if references:
            from routesim.assignment.references import references as assigned

            numbers |= assigned(self.network, self.demand).beside(mean)
        return numbers

    def links(self, bin_s: float | None = None, *, first_s: float = 0.0) -> "pd.DataFrame":
        """Return the link table: one row for each bin of time and road that was used, with names and nodes.

        Columns: start_s and end_s, edge, u, v and key (OpenStreetMap's where the roads are), name, highway, length_m,
        capacity_vph, free_flow_s; volume (vehicles that entered), flow_vph, v_c (flow relative to capacity) and
        mean_delay_s (beyond free flow, noise left out). `bin_s` joins the recorded bins to longer ones, counted from
        `first_s`, or with math.inf to one; largest_v_c and largest_delay_s are those of the recorded bins within. Where
        roads queue the delay is the time all vehicles spent on the road by how many passed (Little's law).
        """
        return tables.links(self, bin_s, first_s)

    def path_flows(self, from_s: float = 0.0, to_s: float = np.inf) -> "pd.DataFrame":
        """Return one row for each path driven by those who departed between the times.

        Columns: origin, destination, path (a tuple of edges), vehicles, share of the pair's vehicles,
        mean_travel_time_s of those who arrived, length_m and free_flow_s.
        """
        return tables.path_flows(self, from_s, to_s)

    def skims(self, from_s: float = 0.0, to_s: float = np.inf) -> "pd.DataFrame":
        """Return one row for each pair of places: what trips between them took that departed between the times.

        Columns: origin, destination, vehicles, arrived, and of those who arrived mean_travel_time_s, slowest_s,
        mean_free_flow_s (their paths on empty roads) and mean_length_m.
        """
        return tables.skims(self, from_s, to_s)

    def select_link(self, edge: int) -> tables.SelectedLink:
        """Return who drove over an edge: `vehicles` on every edge, and `pairs`, a table from where to where."""
        return tables.select_link(self, edge)

    def over_capacity(self) -> "OverCapacity | None":
        """Return the roads that were entered above capacity in some time bin, None where there are none."""
        if not len(self.loads):
            return None
        edges = self.loads[:, 1]
        ratio = self.loads[:, 2] / (self.network.capacity_vph[edges] * self.bin_s / 3600.0)
        worst = int(np.argmax(ratio))
        above = np.unique(edges[ratio > 1.0])
        return OverCapacity(len(above), int(edges[worst]), float(ratio[worst])) if len(above) else None

    def save(self, folder: str | Path) -> None:
        """Write trips.parquet, loads.parquet and summary.json into a new folder, or replace an earlier result.

        With queues, queues.parquet has where vehicles were at the end of each bin of time.
        """

        def write(target: Path) -> None:
            from pyarrow import parquet

            parquet.write_table(self._trips_table(), target / "trips.parquet")
            parquet.write_table(self._loads_table(), target / "loads.parquet")
            if self.standing is not None:
                parquet.write_table(self._queues_table(self.standing), target / "queues.parquet")
            known = {k: v for k, v in self.summary().items() if not (isinstance(v, float) and np.isnan(v))}
            write_json(target / "summary.json", known)

        write_folder(folder, write)

    def _trips_table(self) -> "pa.Table":
        import pyarrow as pa

        labels = pa.array([str(place) for place in self.places])
        ends = np.concatenate(([0], np.cumsum(self.path_lengths)))
        place = np.arange(ends[-1]) - np.repeat(ends[:-1] - self.path_starts, self.path_lengths)
        return pa.table(
            {
                "origin": labels.take(pa.array(self.origins)),
                "destination": labels.take(pa.array(self.destinations)),
                "departure_s": self.departure_s,
                "arrival_s": pa.array(self.arrival_s, mask=~self.arrived),
                "path": pa.LargeListArray.from_arrays(ends, self.path_edges[place]),
                **({} if self.trip_cost is None else {"cost": pa.array(self.trip_cost, mask=~self.arrived)}),
            }
        )

    def _loads_table(self) -> "pa.Table":
        import pyarrow as pa

        return pa.table(
            {
                "start_s": self.loads[:, 0] * self.bin_s,
                "edge": self.loads[:, 1].astype(np.int32),
                "entries": self.loads[:, 2].astype(np.int32),
                "seconds": self.load_seconds,
            }
        )

    def _queues_table(self, standing: Ints32) -> "pa.Table":
        import pyarrow as pa

        time_bin, edge, on, queued, outside = standing.T
        columns = {"edge": edge, "on_road": on, "in_queue": queued, "waiting": outside}
        return pa.table({"end_s": (time_bin + 1) * self.bin_s, **columns})
