"""Street pieces between neighbouring points -> a network whose nodes are junctions and dead ends.

A point is passed through, and its pieces merged, where osmnx's simplification does so: it has exactly two
neighbours and either one way through or the same street in both directions. Where pieces run in parallel,
loop, or change between one-way and two-way, the point stays a node. A ring without any junction keeps one
node.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints
from routesim.errors import NetworkError
from routesim.kernels import kernel
from routesim.roads.columns import IMPUTED_BITS
from routesim.roads.edits import largest_component_nodes
from routesim.roads.importers.assemble import EdgeNumbers, Edges, Lines, Nodes, assemble
from routesim.roads.importers.defaults import road_class
from routesim.roads.importers.tags import Road
from routesim.roads.network import RoadNetwork
from routesim.roads.places import haversine_m


@dataclass(frozen=True)
class Streets:
    """Points with OSM ids and places, and directed pieces between them, each of one road and direction."""

    node_ids: Ints
    lon: Floats
    lat: Floats
    tails: Ints
    heads: Ints
    road: Ints
    backward: NDArray[np.bool_]
    roads: Sequence[Road]


def network_from_streets(
    streets: Streets, *, largest_component: bool, simplify: bool, name: str, attribution: str
) -> RoadNetwork:
    """Merge the pieces into edges; one through several roads has the name and class of its longest part.

    Lanes and capacity of a merged edge are those of its narrowest piece; its time is the sum of its pieces'
    times.
    """
    tails, heads, road, backward = streets.tails, streets.heads, streets.road, streets.backward
    n_points = len(streets.node_ids)
    if len(tails) == 0:
        raise NetworkError("no drivable road of at least two points")
    used = np.zeros(n_points, dtype=np.bool_)
    used[tails] = used[heads] = True
    if largest_component:
        used &= largest_component_nodes(n_points, tails, heads)
    kept = used[tails] & used[heads]
    tails, heads, road, backward = tails[kept], heads[kept], road[kept], backward[kept]
    if len(tails) == 0:
        raise NetworkError("no road leads from any point to another and back; pass largest_component=False to keep all")
    position = np.cumsum(used) - 1
    tails, heads = position[tails], position[heads]
    lon, lat, node_ids = streets.lon[used], streets.lat[used], streets.node_ids[used]
    if simplify:
        pieces, offsets = merge_pieces(len(node_ids), tails, heads)
    else:
        pieces = np.argsort(tails, kind="stable").astype(np.int64)
        offsets = np.arange(len(tails) + 1, dtype=np.int64)
    starts, ends = offsets[:-1], offsets[1:]
    length = haversine_m(lon[tails], lat[tails], lon[heads], lat[heads])
    speed, lanes, capacity, flags = _filled(streets.roads, road, backward)
    by_piece = length[pieces]
    edge_length = np.add.reduceat(by_piece, starts)
    seconds = np.add.reduceat((length / speed * 3.6)[pieces], starts)
    slowest = np.minimum.reduceat(speed[pieces], starts)
    uniform = slowest == np.maximum.reduceat(speed[pieces], starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        edge_speed = np.where(uniform | (seconds == 0), slowest, edge_length / seconds * 3.6)
    seconds = edge_length / edge_speed * 3.6
    junctions = np.zeros(len(node_ids), dtype=np.bool_)
    edge_tails, edge_heads = tails[pieces[starts]], heads[pieces[ends - 1]]
    junctions[edge_tails] = junctions[edge_heads] = True
    index = np.cumsum(junctions) - 1
    names = _longest([r.name for r in streets.roads], road[pieces], by_piece, offsets)
    highways = _longest([r.highway for r in streets.roads], road[pieces], by_piece, offsets)
    return assemble(
        Nodes(node_ids[junctions].tolist(), lon[junctions], lat[junctions]),
        Edges(index[edge_tails], index[edge_heads], names, highways),
        EdgeNumbers(
            edge_length,
            seconds,
            edge_speed,
            lanes=np.minimum.reduceat(lanes[pieces], starts),
            capacity_vph=np.minimum.reduceat(capacity[pieces], starts),
            imputed_bits=np.bitwise_or.reduceat(flags[pieces], starts),
        ),
        _lines(lon, lat, tails[pieces], heads[pieces], offsets),
        name=name,
        attribution=attribution,
    )


def _filled(
    roads: Sequence[Road], road: Ints, backward: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats, NDArray[np.uint8]]:
    """Return speed, lanes, capacity and flags of each piece."""
    side = backward.astype(np.int64)
    speed = np.array([r.speed_kph for r in roads], dtype=np.float64)[road, side]
    lanes = np.array([r.lanes for r in roads], dtype=np.float64)[road, side]
    classes = np.array([road_class(r.highway) for r in roads], dtype=np.float64)[road]
    no_speed, no_lanes = np.isnan(speed), np.isnan(lanes)
    speed = np.where(no_speed, classes[:, 0], speed)
    lanes = np.where(no_lanes, classes[:, 1], lanes)
    flags = no_speed * IMPUTED_BITS["speed"] + no_lanes * IMPUTED_BITS["lanes"] + IMPUTED_BITS["capacity"]
    return speed, lanes, lanes * classes[:, 2], flags.astype(np.uint8)


def _longest(texts: Sequence[str], road: Ints, length: Floats, offsets: Ints) -> list[str]:
    """Return for each edge the text that most of its length carries; texts that say nothing give way."""
    first, last = np.minimum.reduceat(road, offsets[:-1]), np.maximum.reduceat(road, offsets[:-1])
    chosen = [texts[code] for code in first.tolist()]
    for e in np.flatnonzero(first != last).tolist():
        share: dict[str, float] = {}
        span = slice(offsets[e], offsets[e + 1])
        for code, metres in zip(road[span].tolist(), length[span].tolist(), strict=True):
            if texts[code]:
                share[texts[code]] = share.get(texts[code], 0.0) + metres
        chosen[e] = max(share, key=share.__getitem__, default="")
    return chosen


def _lines(lon: Floats, lat: Floats, tails: Ints, heads: Ints, offsets: Ints) -> Lines:
    """Return each edge's points: the tail of every piece and the head of the last."""
    n_edges = len(offsets) - 1
    shape_offsets = offsets + np.arange(n_edges + 1)
    points = np.empty(shape_offsets[-1], dtype=np.int64)
    last = shape_offsets[1:] - 1
    is_last = np.zeros(len(points), dtype=np.bool_)
    is_last[last] = True
    points[~is_last] = tails
    points[last] = heads[offsets[1:] - 1]
    return Lines(np.column_stack((lon[points], lat[points])), shape_offsets)


def merge_pieces(n_points: int, tails: Ints, heads: Ints) -> tuple[Ints, Ints]:
    """Return the pieces of each merged edge in driving order, and where each edge's pieces begin."""
    out_order = np.argsort(tails, kind="stable")
    in_order = np.argsort(heads, kind="stable")
    out_ptr, in_ptr = (np.zeros(n_points + 1, dtype=np.int64) for _ in range(2))
    np.cumsum(np.bincount(tails, minlength=n_points), out=out_ptr[1:])
    np.cumsum(np.bincount(heads, minlength=n_points), out=in_ptr[1:])
    return _merge(tails, heads, out_ptr, out_order, in_ptr, in_order)


@kernel
def _merge(
    tails: Ints,
    heads: Ints,
    out_ptr: Ints,
    out_order: Ints,
    in_ptr: Ints,
    in_order: Ints,
) -> tuple[Ints, Ints]:
    n_points, n_pieces = len(out_ptr) - 1, len(tails)
    passing = np.zeros(n_points, dtype=np.bool_)
    for v in range(n_points):
        o, i = out_ptr[v], in_ptr[v]
        n_out, n_in = out_ptr[v + 1] - o, in_ptr[v + 1] - i
        if n_out == 1 and n_in == 1:
            a, b = heads[out_order[o]], tails[in_order[i]]
            passing[v] = a not in (b, v) and b != v
        elif n_out == 2 and n_in == 2:
            a, b = heads[out_order[o]], heads[out_order[o + 1]]
            c, d = tails[in_order[i]], tails[in_order[i + 1]]
            passing[v] = a != b and v not in (a, b) and ((a == c and b == d) or (a == d and b == c))
    pieces = np.empty(n_pieces, dtype=np.int64)
    offsets = np.zeros(n_pieces + 1, dtype=np.int64)
    seen = np.zeros(n_pieces, dtype=np.bool_)
    done, n_edges = 0, 0
    # First from every junction; what is left then are rings, each of which gives up one point as its node.
    for turn in range(2):
        for start in range(n_points):
            if passing[start]:
                if turn == 0:
                    continue
                whole = True
                for slot in range(out_ptr[start], out_ptr[start + 1]):
                    whole = whole and not seen[out_order[slot]]
                if not whole:
                    continue
                passing[start] = False
            elif turn == 1:
                continue
            for slot in range(out_ptr[start], out_ptr[start + 1]):
                piece = out_order[slot]
                while True:
                    seen[piece] = True
                    pieces[done] = piece
                    done += 1
                    here = heads[piece]
                    if not passing[here]:
                        break
                    onward = out_order[out_ptr[here]]
                    if heads[onward] == tails[piece]:
                        onward = out_order[out_ptr[here] + 1]
                    piece = onward
                n_edges += 1
                offsets[n_edges] = done
    return pieces[:done], offsets[: n_edges + 1]
