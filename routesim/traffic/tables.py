"""What practitioners take out of traffic: link volumes, path flows, skims and select link, as tables."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from routesim.arrays import Floats, Ints
from routesim.checks import number
from routesim.errors import InputError
from routesim.roads.network import RoadNetwork

if TYPE_CHECKING:
    import pandas as pd

    from routesim.traffic.result import Traffic

_HOUR_S = 3600.0


class SelectedLink(NamedTuple):
    """Who drove over a road: how many of them entered each edge, and how many went from where to where."""

    edge: int
    vehicles: Ints
    pairs: "pd.DataFrame"

    def __repr__(self) -> str:
        return f"<SelectedLink edge {self.edge}: {self.vehicles[self.edge]} vehicles, {len(self.pairs)} pairs>"


class PathNumbers(NamedTuple):
    """The different paths of a run as tuples of edges, and the number of each vehicle's; -1 before it departs."""

    paths: list[tuple[int, ...]]
    of_vehicle: Ints


def path_numbers(traffic: "Traffic") -> PathNumbers:
    """Number the different paths of the vehicles that departed."""
    number: dict[tuple[int, ...], int] = {}
    seen: dict[tuple[int, int], int] = {}
    found = np.empty(traffic.n_vehicles, dtype=np.int64)
    flat = traffic.path_edges
    for vehicle, place in enumerate(zip(traffic.path_starts.tolist(), traffic.path_lengths.tolist(), strict=True)):
        if place not in seen:  # vehicles on the same path share its edges
            path = tuple(flat[place[0] : place[0] + place[1]].tolist())
            seen[place] = number.setdefault(path, len(number))
        found[vehicle] = seen[place]
    found[~traffic.departed] = -1
    return PathNumbers(list(number), found)


def links(traffic: "Traffic", bin_s: float | None, first_s: float) -> "pd.DataFrame":
    """Return the link table; see `Traffic.links`."""
    import pandas as pd

    network, rows = traffic.network, traffic.loads
    step, first_bin = _whole_bins(traffic, bin_s, first_s)
    fine = pd.DataFrame({"bin": rows[:, 0], "edge": rows[:, 1], "volume": rows[:, 2], "seconds": traffic.load_seconds})
    fine["left"] = _left(traffic, fine)
    fine["v_c"] = fine.volume / (network.capacity_vph[fine.edge] * traffic.bin_s / _HOUR_S)
    fine["delay"] = _delay(network, fine)
    last_bin = int(rows[:, 0].max(initial=first_bin)) + 1
    step = min(step, max(last_bin - first_bin, 1))
    fine["bin"] = np.maximum(fine.bin - first_bin, 0) // step * step + first_bin
    together = fine.groupby(["bin", "edge"], sort=True)
    table = together[["volume", "seconds", "left"]].sum().reset_index()
    table["delay"] = _delay(network, table)
    largest = together[["v_c", "delay"]].max()
    edges, start = table.edge.to_numpy(), table.bin * traffic.bin_s
    hours = step * traffic.bin_s / _HOUR_S
    return pd.DataFrame(
        {
            "start_s": start,
            "end_s": start + step * traffic.bin_s,
            **edge_columns(network, edges),
            "volume": table.volume,
            "flow_vph": table.volume / hours,
            "v_c": table.volume / (network.capacity_vph[edges] * hours),
            "largest_v_c": largest.v_c.to_numpy(),
            "mean_delay_s": table.delay,
            "largest_delay_s": largest.delay.to_numpy(),
        }
    )


def edge_columns(network: RoadNetwork, edges: Ints) -> dict[str, Any]:
    """Return the columns by which people know roads: nodes (OpenStreetMap's, where they are), street and class."""
    labels = np.empty(network.n_nodes, dtype=object)
    labels[:] = network.labels
    names, highways = np.array(network.names, dtype=object), np.array(network.highways, dtype=object)
    return {
        "edge": edges.astype(np.int64),
        "u": labels[network.tails[edges]],
        "v": labels[network.heads[edges]],
        "key": network.keys[edges],
        "name": names[edges],
        "highway": highways[edges],
        "length_m": network.length_m[edges],
        "capacity_vph": network.capacity_vph[edges],
        "free_flow_s": network.free_flow_s[edges],
    }


def path_flows(traffic: "Traffic", from_s: float, to_s: float) -> "pd.DataFrame":
    """Return the path flows; see `Traffic.path_flows`."""
    import pandas as pd

    network, (paths, of_vehicle) = traffic.network, path_numbers(traffic)
    counted = _departed_between(traffic, from_s, to_s)
    trips = pd.DataFrame(
        {
            "origin": traffic.origins[counted],
            "destination": traffic.destinations[counted],
            "path": of_vehicle[counted],
            "time": traffic.travel_time_s[counted],
        }
    )
    groups = trips.groupby(["origin", "destination", "path"], sort=True).time
    table = groups.agg(vehicles="size", mean_travel_time_s="mean").reset_index()
    chosen = [paths[path] for path in table.path]
    table["share"] = table.vehicles / table.groupby(["origin", "destination"]).vehicles.transform("sum")
    table["length_m"] = [float(network.length_m[list(path)].sum()) for path in chosen]
    table["free_flow_s"] = [float(network.free_flow_s[list(path)].sum()) for path in chosen]
    table["path"] = pd.Series(chosen, dtype=object)
    table = table.sort_values(["origin", "destination", "vehicles"], ascending=[True, True, False], kind="stable")
    columns = ["origin", "destination", "path", "vehicles", "share", "mean_travel_time_s", "length_m", "free_flow_s"]
    return _named(traffic, table[columns])


def skims(traffic: "Traffic", from_s: float, to_s: float) -> "pd.DataFrame":
    """Return the skims; see `Traffic.skims`."""
    import pandas as pd

    network, (paths, of_vehicle) = traffic.network, path_numbers(traffic)
    counted = _departed_between(traffic, from_s, to_s)
    length_m = np.array([network.length_m[list(path)].sum() for path in paths])
    free_flow_s = np.array([network.free_flow_s[list(path)].sum() for path in paths])
    arrived = traffic.arrived[counted]
    trips = pd.DataFrame(
        {
            "origin": traffic.origins[counted],
            "destination": traffic.destinations[counted],
            "arrived": arrived,
            "time": traffic.travel_time_s[counted],
            "length": np.where(arrived, length_m[of_vehicle[counted]], np.nan),
            "free": np.where(arrived, free_flow_s[of_vehicle[counted]], np.nan),
        }
    )
    table = (
        trips.groupby(["origin", "destination"], sort=True)
        .agg(
            vehicles=("arrived", "size"),
            arrived=("arrived", "sum"),
            mean_travel_time_s=("time", "mean"),
            slowest_s=("time", "max"),
            mean_free_flow_s=("free", "mean"),
            mean_length_m=("length", "mean"),
        )
        .reset_index()
    )
    return _named(traffic, table)


def select_link(traffic: "Traffic", edge: int) -> SelectedLink:
    """Return who drove over an edge; see `Traffic.select_link`."""
    import pandas as pd

    n_edges = traffic.network.n_edges
    if not isinstance(edge, int | np.integer) or not 0 <= edge < n_edges:
        raise InputError(f"edges run from 0 to {n_edges - 1}, got {edge!r:.80}; edge_between finds one by its nodes")
    entered = traffic.edges_entered
    vehicle = np.repeat(np.arange(traffic.n_vehicles), entered)
    place = np.arange(len(vehicle)) - np.repeat(np.cumsum(entered) - entered, entered)
    driven = traffic.path_edges[traffic.path_starts[vehicle] + place]
    mine = np.zeros(traffic.n_vehicles, dtype=np.bool_)
    mine[vehicle[driven == edge]] = True
    vehicles = np.bincount(driven[mine[vehicle]], minlength=n_edges)
    ends = pd.DataFrame({"origin": traffic.origins[mine], "destination": traffic.destinations[mine]})
    pairs = ends.groupby(["origin", "destination"]).size().rename("vehicles").reset_index()
    pairs = pairs.sort_values("vehicles", ascending=False, kind="stable")
    return SelectedLink(int(edge), vehicles, _named(traffic, pairs))


def edge_between(network: RoadNetwork, u: Hashable, v: Hashable, key: int | None = None) -> int:
    """Return the edge from one node to another by their labels; of parallel ones the one with this key."""
    found = np.flatnonzero((network.tails == network.node_index(u)) & (network.heads == network.node_index(v)))
    if key is not None:
        found = found[network.keys[found] == key]
    if len(found) != 1:
        there = "no edge leads" if not len(found) else f"{len(found)} edges lead"
        hint = "" if not len(found) else f"; give a key, one of {network.keys[found].tolist()}"
        raise InputError(f"{there} from {u!r} to {v!r}{hint}")
    return int(found[0])


def _whole_bins(traffic: "Traffic", bin_s: float | None, first_s: float) -> tuple[int, int]:
    """Return how many recorded bins make up one of the table, and the recorded bin in which the first begins."""
    first = int(number("first_s", first_s, 0.0) // traffic.bin_s)
    if bin_s is None:
        return 1, first
    if bin_s == np.inf:
        return 1 << 60, first
    step = number("bin_s", bin_s, traffic.bin_s) / traffic.bin_s
    if abs(step - round(step)) > 1e-9 * step:
        raise InputError(
            f"bin_s must be a multiple of the bins that the run recorded, {traffic.bin_s:g} s, got {bin_s:g}; give the "
            "simulator another bin_s, or math.inf for the whole run"
        )
    return round(step), first


def _left(traffic: "Traffic", fine: "pd.DataFrame") -> Ints:
    """Return how many vehicles left each edge in each bin, where queues were recorded."""
    if traffic.standing is None:
        return np.zeros(len(fine), dtype=np.int64)
    width = traffic.network.n_edges
    keys = traffic.standing[:, 0].astype(np.int64) * width + traffic.standing[:, 1]
    order = np.argsort(keys)
    keys, on = keys[order], traffic.standing[order, 2].astype(np.int64)

    def standing(time_bin: Ints) -> Ints:
        wanted = time_bin * width + fine.edge.to_numpy()
        place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        return np.where(keys[place] == wanted, on[place], 0) if len(keys) else np.zeros(len(fine), dtype=np.int64)

    bins = fine.bin.to_numpy()
    return np.asarray(standing(bins - 1) + fine.volume.to_numpy() - standing(bins), dtype=np.int64)


def _delay(network: RoadNetwork, table: "pd.DataFrame") -> Floats:
    """Return the mean delay in seconds of those who passed, at least 0; NaN where nobody did."""
    passed = np.maximum(table.volume, table.left).to_numpy().astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = table.seconds.to_numpy() / np.where(passed > 0, passed, np.nan)
    return np.asarray(np.maximum(mean - network.free_flow_s[table.edge], 0.0), dtype=np.float64)


def _departed_between(traffic: "Traffic", from_s: float, to_s: float) -> Ints:
    """Return the vehicles that departed between the times, those who never got onto a road left out."""
    within = (traffic.departure_s >= from_s) & (traffic.departure_s < to_s)
    return np.flatnonzero(traffic.departed & within)


def _named(traffic: "Traffic", table: "pd.DataFrame") -> "pd.DataFrame":
    """Return a table with the labels of places for their numbers."""
    import pandas as pd

    labels = np.empty(len(traffic.places), dtype=object)
    labels[:] = traffic.places
    ends = {end: pd.Series(labels[table[end].to_numpy()]).infer_objects() for end in ("origin", "destination")}
    return table.reset_index(drop=True).assign(**ends)
