"""Columns with gaps -> RoadNetwork: the gaps filled by the rules of `defaults`, and every filling marked."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints
from routesim.roads.importers.defaults import BPR_ALPHA, BPR_BETA, road_class
from routesim.roads.network import GEOGRAPHIC, IMPUTED_BITS, RoadNetwork


def assemble(
    *,
    labels: Sequence[Hashable],
    x: Floats,
    y: Floats,
    tails: NDArray[np.integer[Any]],
    heads: NDArray[np.integer[Any]],
    length_m: Floats,
    names: Sequence[str],
    highways: Sequence[str],
    free_flow_s: Floats | None = None,
    speed_kph: Floats | None = None,
    lanes: Floats | None = None,
    capacity_vph: Floats | None = None,
    bpr_alpha: Floats | None = None,
    bpr_beta: Floats | None = None,
    keys: Ints | None = None,
    shape_xy: Floats | None = None,
    shape_offsets: Ints | None = None,
    imputed_bits: NDArray[np.uint8] | None = None,
    no_through: NDArray[np.bool_] | None = None,
    crs: str = GEOGRAPHIC,
    name: str = "",
    attribution: str = "",
) -> RoadNetwork:
    """Build a network from columns where NaN is "not said"; `imputed_bits` are flags already earned."""
    n = len(tails)
    classes = [road_class(highway) for highway in highways]
    flags = np.zeros(n, dtype=np.uint8) if imputed_bits is None else imputed_bits.copy()

    def filled(values: Floats | None, otherwise: Floats | float, flag: str | None) -> Floats:
        column = np.full(n, np.nan) if values is None else np.array(values, dtype=np.float64)
        gaps = np.isnan(column)
        column[gaps] = np.broadcast_to(otherwise, (n,))[gaps]
        if flag is not None:
            flags[gaps] |= np.uint8(IMPUTED_BITS[flag])
        return column

    lanes = filled(lanes, np.array([c.lanes for c in classes], dtype=np.float64), "lanes")
    lane_capacity = np.array([c.lane_capacity_vph for c in classes], dtype=np.float64)
    capacity_vph = filled(capacity_vph, lanes * lane_capacity, "capacity")
    times = np.full(n, np.nan) if free_flow_s is None else np.array(free_flow_s, dtype=np.float64)
    speeds = np.full(n, np.nan) if speed_kph is None else np.array(speed_kph, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        implied = length_m / times * 3.6
    implied[~(np.isfinite(implied) & (implied > 0))] = np.nan
    speeds = filled(speeds, implied, None)
    # What is still open has neither a speed nor a time: the class decides.
    open_speed = np.isnan(speeds) & np.isnan(times)
    speeds[open_speed] = np.array([c.speed_kph for c in classes], dtype=np.float64)[open_speed]
    flags[open_speed] |= np.uint8(IMPUTED_BITS["speed"])
    with np.errstate(divide="ignore", invalid="ignore"):
        times = filled(times, length_m / speeds * 3.6, None)
    return RoadNetwork(
        labels=tuple(labels),
        x=x,
        y=y,
        tails=tails,  # type: ignore[arg-type]  # any integers; the network stores int32
        heads=heads,  # type: ignore[arg-type]  # as above
        length_m=length_m,
        free_flow_s=times,
        speed_kph=speeds,
        lanes=lanes,
        capacity_vph=capacity_vph,
        bpr_alpha=filled(bpr_alpha, BPR_ALPHA, "bpr"),
        bpr_beta=filled(bpr_beta, BPR_BETA, "bpr"),
        names=tuple(names),
        highways=tuple(highways),
        keys=number_parallel(tails, heads) if keys is None else keys,
        shape_xy=np.empty((0, 2)) if shape_xy is None else shape_xy,
        shape_offsets=np.zeros(n + 1, dtype=np.int64) if shape_offsets is None else shape_offsets,
        imputed_bits=flags,
        no_through=np.zeros(len(labels), dtype=np.bool_) if no_through is None else no_through,
        crs=crs,
        name=name,
        attribution=attribution,
    )


def number_parallel(tails: NDArray[np.integer[Any]], heads: NDArray[np.integer[Any]]) -> Ints:
    """Number the edges from one node to another 0, 1, 2 … in the order they come."""
    n = len(tails)
    keys = np.zeros(n, dtype=np.int64)
    if n == 0:
        return keys
    order = np.lexsort((np.arange(n), heads, tails))
    starts = np.ones(n, dtype=np.bool_)
    t, h = tails[order], heads[order]
    starts[1:] = (t[1:] != t[:-1]) | (h[1:] != h[:-1])
    first = np.flatnonzero(starts)
    keys[order] = np.arange(n) - np.repeat(first, np.diff(np.append(first, n)))
    return keys
