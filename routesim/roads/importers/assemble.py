"""Columns with gaps -> RoadNetwork: the gaps filled by the rules of `defaults`, and every filling marked."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Bools, Floats, Ints
from routesim.roads.columns import IMPUTED_BITS
from routesim.roads.importers.bans import UNKNOWN, Bans
from routesim.roads.importers.defaults import BPR_ALPHA, BPR_BETA, class_columns
from routesim.roads.network import RoadNetwork
from routesim.roads.places import GEOGRAPHIC
from routesim.roads.signal_times import SignalTimes


class Nodes(NamedTuple):
    """Labels and places of the nodes, which of them no trip may pass through, and which have traffic signals.

    None of them unless given.
    """

    labels: Sequence[Hashable]
    x: Floats
    y: Floats
    no_through: Bools | None = None
    signals: Bools | None = None


class Edges(NamedTuple):
    """Where each edge leads from and to, its name, class and key (numbered unless given), and known signal times.

    `bans` are the turns that are banned.
    """

    tails: NDArray[np.integer[Any]]
    heads: NDArray[np.integer[Any]]
    names: Sequence[str]
    highways: Sequence[str]
    keys: Ints | None = None
    signal_times: SignalTimes | None = None
    bans: Bans = UNKNOWN


class EdgeNumbers(NamedTuple):
    """Numbers of each edge, NaN where the source says nothing; None is a column it does not have.

    `imputed_bits` marks what was filled in before.
    """

    length_m: Floats
    free_flow_s: Floats | None = None
    speed_kph: Floats | None = None
    lanes: Floats | None = None
    capacity_vph: Floats | None = None
    bpr_alpha: Floats | None = None
    bpr_beta: Floats | None = None
    imputed_bits: NDArray[np.uint8] | None = None


class Lines(NamedTuple):
    """The line of edge `e` is `xy[offsets[e]:offsets[e + 1]]`, empty where unknown."""

    xy: Floats
    offsets: Ints

    @classmethod
    def joined(cls, lines: Sequence[Floats]) -> Self:
        """Join the lines of all edges, given one by one."""
        offsets = np.zeros(len(lines) + 1, dtype=np.int64)
        np.cumsum([len(line) for line in lines], out=offsets[1:])
        return cls(np.concatenate(lines) if offsets[-1] else np.empty((0, 2)), offsets)


def assemble(
    nodes: Nodes,
    edges: Edges,
    numbers: EdgeNumbers,
    lines: Lines | None = None,
    *,
    crs: str = GEOGRAPHIC,
    name: str = "",
    attribution: str = "",
    left_out: Mapping[str, int] | None = None,
) -> RoadNetwork:
    """Build a network, filling in by its class what an edge does not say of itself."""
    n = len(edges.tails)
    none = np.zeros(len(nodes.labels), dtype=np.bool_)
    class_speed, class_lanes, lane_capacity = class_columns(edges.highways).T
    flags = np.zeros(n, dtype=np.uint8) if numbers.imputed_bits is None else numbers.imputed_bits.copy()

    def filled(values: Floats | None, otherwise: Floats | float, flag: str | None) -> Floats:
        column = np.full(n, np.nan) if values is None else np.array(values, dtype=np.float64)
        gaps = np.isnan(column)
        column[gaps] = np.broadcast_to(otherwise, (n,))[gaps]
        if flag is not None:
            flags[gaps] |= np.uint8(IMPUTED_BITS[flag])
        return column

    length_m = numbers.length_m
    lanes = filled(numbers.lanes, class_lanes, "lanes")
    capacity_vph = filled(numbers.capacity_vph, lanes * lane_capacity, "capacity")
    times = filled(numbers.free_flow_s, np.nan, None)
    with np.errstate(divide="ignore", invalid="ignore"):
        implied = length_m / times * 3.6
    implied[~(np.isfinite(implied) & (implied > 0))] = np.nan
    speeds = filled(numbers.speed_kph, implied, None)
    # What is still open has neither a speed nor a time: the class decides.
    open_speed = np.isnan(speeds) & np.isnan(times)
    speeds[open_speed] = class_speed[open_speed]
    flags[open_speed] |= np.uint8(IMPUTED_BITS["speed"])
    with np.errstate(divide="ignore", invalid="ignore"):
        times = filled(times, length_m / speeds * 3.6, None)
    if lines is None:
        lines = Lines(np.empty((0, 2)), np.zeros(n + 1, dtype=np.int64))
    return RoadNetwork(
        labels=tuple(nodes.labels),
        x=nodes.x,
        y=nodes.y,
        tails=edges.tails,  # type: ignore[arg-type]  # any integers; the network stores int32
        heads=edges.heads,  # type: ignore[arg-type]  # as above
        length_m=length_m,
        free_flow_s=times,
        speed_kph=speeds,
        lanes=lanes,
        capacity_vph=capacity_vph,
        bpr_alpha=filled(numbers.bpr_alpha, BPR_ALPHA, "bpr"),
        bpr_beta=filled(numbers.bpr_beta, BPR_BETA, "bpr"),
        names=tuple(edges.names),
        highways=tuple(edges.highways),
        keys=number_parallel(edges.tails, edges.heads) if edges.keys is None else edges.keys,
        shape_xy=lines.xy,
        shape_offsets=lines.offsets,
        imputed_bits=flags,
        no_through=none if nodes.no_through is None else nodes.no_through,
        signals=none if nodes.signals is None else nodes.signals,
        signal_times=edges.signal_times or SignalTimes(),
        crs=crs,
        name=name,
        attribution=attribution,
        **edges.bans.columns,
        left_out=left_out or {},
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
