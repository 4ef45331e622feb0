"""calibrate: capacities, and with them travel-time curves, fitted by class of road to traffic that was seen.

A road takes wait + free_flow_s x (1 + alpha x (flow / capacity) ** beta) seconds. Fitted are a factor on the capacity
for each class of road, and one wait for all roads that end at a signal, by least squares with bounds on the times that
were seen. Alpha and beta stay: no time tells an alpha from a capacity. The wait is part of the free-flow time then, so
that the roads are for the window count and for assignments; the queue engine has signals of its own. What is fitted
holds for the city and the range of flows it was fitted to, and does not carry over to other cities. It is kept only
where it is better on roads, and where given at a level of demand, that it was not fitted to.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from routesim.arrays import Bools, Floats, Ints
from routesim.errors import InputError, NotFittedWarning
from routesim.roads.network import RoadNetwork
from routesim.traffic.result import Traffic

FACTORS = 0.2, 5.0  # between which a capacity may change
MOST_WAIT_S = 90.0
LEAST_ROADS = 8  # of a class with a fit of its own, beside the held-out ones
LEAST_ENTRIES = 5  # of a road within an interval that says something of its time
_HELD_OUT = 0.3
_PRIOR = 0.01  # how much a parameter stays where it was: as much as this share of all observations


class Observations(NamedTuple):
    """What was seen: edges, vehicles an hour, seconds a vehicle, and the weight of each in vehicles."""

    edges: Ints
    flow_vph: Floats
    time_s: Floats
    vehicles: Floats

    @classmethod
    def of(cls, network: RoadNetwork, observed: Any) -> Self:
        """Take them from a `Traffic`, or a table with columns edge, flow_vph and speed_kph or travel_time_s."""
        if isinstance(observed, Traffic):
            return cls._driven(network, observed)
        try:
            columns = {name: np.asarray(observed[name]) for name in ("edge", "flow_vph")}
            has_times = "travel_time_s" in observed
            given = np.asarray(observed["travel_time_s" if has_times else "speed_kph"], dtype=np.float64)
            edges, flow = columns["edge"].astype(np.int64), columns["flow_vph"].astype(np.float64)
        except (KeyError, TypeError, ValueError, IndexError):
            raise InputError(
                "observed is a Traffic, or a table with the columns edge, flow_vph and speed_kph or travel_time_s"
            ) from None
        if edges.ndim != 1 or not edges.shape == flow.shape == given.shape:
            raise InputError("the columns of observed must be equally long")
        bad = (edges < 0) | (edges >= network.n_edges) | (columns["edge"] != edges)
        bad |= ~((flow >= 0) & (flow <= 1e6)) | ~((given > 0) & (given <= 1e6))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"row {row} of observed must have an edge from 0 to {network.n_edges - 1}, a flow of at least 0 and a "
                f"speed or time above 0, got {columns['edge'][row]}, {flow[row]:g} and {given[row]:g}"
            )
        time_s = given if has_times else network.length_m[edges] / (given / 3.6)
        if np.isnan(time_s).any():
            edge = edges[np.argmax(np.isnan(time_s))]
            raise InputError(f"edge {edge} has no length, so that its speed says no time; give travel_time_s")
        return cls(edges, flow, time_s, np.maximum(flow, 1.0))

    @classmethod
    def _driven(cls, network: RoadNetwork, traffic: Traffic) -> Self:
        if traffic.network.n_edges != network.n_edges:
            raise InputError(f"observed is traffic on {traffic.network.n_edges} edges, and here are {network.n_edges}")
        enough = traffic.loads[:, 2] >= LEAST_ENTRIES
        _, edges, entries = traffic.loads[enough].T
        time_s = traffic.load_seconds[enough] / entries
        return cls(edges, entries * (3600.0 / traffic.bin_s), time_s, entries.astype(np.float64))

    def part(self, mine: Bools) -> Self:
        """Return only those marked."""
        edges, flow_vph, time_s, vehicles = self
        return self.__class__(edges[mine], flow_vph[mine], time_s[mine], vehicles[mine])

    def error(self, network: RoadNetwork) -> float:
        """Return the share of all time by which the times on these roads miss those that were seen."""
        wrong = np.abs(times_at(network, self.edges, self.flow_vph) - self.time_s)
        return float(self.vehicles @ wrong / (self.vehicles @ self.time_s)) if len(wrong) else float("nan")


def times_at(network: RoadNetwork, edges: Ints, flow_vph: Floats) -> Floats:
    """Return the seconds that roads take at flows, by their own curves."""
    load = (flow_vph / network.capacity_vph[edges]) ** network.bpr_beta[edges]
    return np.asarray(network.free_flow_s[edges] * (1.0 + network.bpr_alpha[edges] * load))


@dataclass(frozen=True, eq=False)
class Calibration:
    """What was fitted, and whether it is better: errors are shares of all time, before and after.

    `held_out` are the errors on roads that were not fitted, `elsewhere` those at the other level of demand, NaN where
    none was given. `network` has the fitted roads where they are better on both, else the roads as they came.
    """

    network: RoadNetwork
    kept: bool
    held_out: tuple[float, float]
    elsewhere: tuple[float, float]
    classes: tuple[tuple[str, float], ...]  # class and factor on its capacities
    wait_s: float

    def __repr__(self) -> str:
        said = f"held-out roads {self.held_out[0]:.1%} -> {self.held_out[1]:.1%}"
        if not np.isnan(self.elsewhere[0]):
            said += f", other demand {self.elsewhere[0]:.1%} -> {self.elsewhere[1]:.1%}"
        return f"<Calibration of {len(self.classes)} classes, {'kept' if self.kept else 'not kept'}: error on {said}>"


def calibrate(network: RoadNetwork, observed: Any, *, check: Any = None, seed: int = 0) -> RoadNetwork:
    """Return the roads with capacities and curves fitted to what was seen, or as they are where that is no better.

    `observed` is a `Traffic`, of SUMO for one, or a table with the columns edge, flow_vph and speed_kph or
    travel_time_s; so is `check`, which was seen at another level of demand. `calibration` returns the errors too.
    """
    found = calibration(network, observed, check=check, seed=seed)
    if not found.kept:
        warnings.warn(f"the roads stay as they are: {found!r}", NotFittedWarning, stacklevel=2)
    return found.network


def calibration(network: RoadNetwork, observed: Any, *, check: Any = None, seed: int = 0) -> Calibration:
    """Fit as `calibrate` does, and return the fit with its errors; `seed` draws the roads that are held out."""
    seen = Observations.of(network, observed)
    roads = np.unique(seen.edges)
    if len(roads) < 2:
        raise InputError(f"a fit needs observations of at least two roads, got {len(roads)}; observe more")
    drawn = np.random.default_rng(seed).permutation(roads)
    out = np.isin(seen.edges, drawn[: max(1, int(_HELD_OUT * len(roads)))])
    fitted, groups, wait_s = _fit(network, seen.part(~out))
    held_out = seen.part(out).error(network), seen.part(out).error(fitted)
    elsewhere = float("nan"), float("nan")
    if check is not None:
        other = Observations.of(network, check)
        elsewhere = other.error(network), other.error(fitted)
    kept = held_out[1] < held_out[0] and not elsewhere[1] >= elsewhere[0]
    return Calibration(fitted if kept else network, kept, held_out, elsewhere, groups, wait_s)


def _fit(network: RoadNetwork, seen: Observations) -> tuple[RoadNetwork, tuple[tuple[str, float], ...], float]:
    """Return the roads fitted to all of this, the classes with their factors, and the wait at signals."""
    from scipy.optimize import least_squares

    names, group = _classes(network, seen)
    mine, n, edges = group[seen.edges], len(names), seen.edges
    signal = network.signals[network.heads].astype(np.float64)
    free_flow, beta = network.free_flow_s[edges], network.bpr_beta[edges]
    loaded = network.bpr_alpha[edges] * (seen.flow_vph / network.capacity_vph[edges]) ** beta
    weight = np.sqrt(seen.vehicles / seen.vehicles.sum()) / np.maximum(free_flow, 1.0)
    start = np.append(np.zeros(n), 1.0)

    def wrong(parameters: Floats) -> Floats:
        times = parameters[-1] * signal[edges] + free_flow * (1 + loaded * np.exp(-parameters[:n][mine] * beta))
        return np.concatenate((weight * (times - seen.time_s), np.sqrt(_PRIOR / n) * parameters[:n]))

    low, high = np.append(np.full(n, np.log(FACTORS[0])), 0.0), np.append(np.full(n, np.log(FACTORS[1])), MOST_WAIT_S)
    # Few roads that stand still must not decide about all others.
    scale = float(np.median(np.abs(wrong(start)[:-n]))) or 1.0
    found = least_squares(wrong, start, bounds=(low, high), loss="soft_l1", f_scale=scale).x
    factor, wait_s = np.exp(found[:n]), float(found[-1])
    fitted = replace(
        network,
        free_flow_s=network.free_flow_s + wait_s * signal,
        capacity_vph=network.capacity_vph * factor[group],
    )
    return fitted, tuple(zip(names, factor.tolist(), strict=True)), wait_s


def _classes(network: RoadNetwork, seen: Observations) -> tuple[list[str], Ints]:
    """Return the classes with a fit of their own, and the class of every edge; those seldom seen are one class."""
    kinds = np.array(network.highways)
    roads = np.unique(seen.edges)
    named, numbers = np.unique(kinds[roads], return_counts=True)
    own = named[numbers >= LEAST_ROADS].tolist()
    group = np.array([own.index(kind) if kind in own else len(own) for kind in kinds.tolist()], dtype=np.int64)
    return [*own, *(["other roads"] if (group == len(own)).any() else [])], group
