"""Street pieces between neighbouring points -> a network whose nodes are junctions and dead ends.

A point is passed through, and its pieces merged, where osmnx's simplification does so: it has exactly two
neighbours and either one way through or the same street in both directions. Where pieces run in parallel,
loop, or change between one-way and two-way, the point stays a node. A ring without any junction keeps one
node.

Signals are at nodes. One on the way to a node stands at the stop line before it and belongs to it if it is at
most 50 m ahead, in either direction of driving; farther from any node it is a crossing on foot, and is left out.
Bans of pieces become bans of the edges they are part of. A point at which a ban leaves one way to go on stays a node if
it is no U-turn: where a point is passed through, nobody turns round.
A known programme at a node becomes one of the edges that end and start there; one of a point that is passed through is
left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Bools, Floats, Ints
from routesim.errors import NetworkError
from routesim.kernels import kernel
from routesim.roads.columns import IMPUTED_BITS
from routesim.roads.edits import largest_component_nodes
from routesim.roads.importers.assemble import EdgeNumbers, Edges, Lines, Nodes, assemble
from routesim.roads.importers.bans import Bans
from routesim.roads.importers.defaults import class_columns
from routesim.roads.importers.tags import Road
from routesim.roads.network import RoadNetwork
from routesim.roads.places import haversine_m
from routesim.roads.signal_times import SignalTimes

STOP_LINE_M = 50.0  # how far before a junction its signals may stand

# What `left_out` of a network counts.
CLOSED_WAYS = "ways closed to cars"
CUT_WAYS = "ways that leave the file"
APART = "points outside the largest component"


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
    signals: Bools | None = None  # which points have traffic signals
    signal_times: SignalTimes | None = None  # known programmes, with pieces for roads
    bans: Sequence[tuple[int, ...]] | None = None  # pieces that may not follow each other; None is not known
    left_out: Mapping[str, int] = field(default_factory=dict)  # what the reader did not take, counted


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
    left_out = dict(streets.left_out)
    if largest_component:
        n_used = int(used.sum())
        used &= largest_component_nodes(n_points, tails, heads)
        left_out[APART] = n_used - int(used.sum())
    kept = used[tails] & used[heads]
    if not kept.all():
        tails, heads, road, backward = tails[kept], heads[kept], road[kept], backward[kept]
    bans = _within(kept, streets.bans or ())
    if len(tails) == 0:
        raise NetworkError("no road leads from any point to another and back; pass largest_component=False to keep all")
    position = np.cumsum(used) - 1
    tails, heads = position[tails], position[heads]
    lon, lat, node_ids = streets.lon[used], streets.lat[used], streets.node_ids[used]
    length = haversine_m(lon[tails], lat[tails], lon[heads], lat[heads])
    if simplify:
        pieces, offsets = merge_pieces(len(node_ids), tails, heads, bans)
    else:
        pieces = np.argsort(tails, kind="stable").astype(np.int64)
        offsets = np.arange(len(tails) + 1, dtype=np.int64)
    starts, ends = offsets[:-1], offsets[1:]
    numbers = _numbers(streets.roads, road, backward, length, pieces, starts)
    by_piece = length[pieces]
    del length
    junctions = np.zeros(len(node_ids), dtype=np.bool_)
    edge_tails, edge_heads = tails[pieces[starts]], heads[pieces[ends - 1]]
    junctions[edge_tails] = junctions[edge_heads] = True
    index = np.cumsum(junctions) - 1
    signals = np.zeros(len(node_ids), dtype=np.bool_) if streets.signals is None else streets.signals[used]
    signals = _at_stop_lines(signals, heads[pieces], by_piece, offsets)
    names = _longest([r.name for r in streets.roads], road[pieces], by_piece, offsets)
    highways = _longest([r.highway for r in streets.roads], road[pieces], by_piece, offsets)
    return assemble(
        Nodes(node_ids[junctions].tolist(), lon[junctions], lat[junctions], signals=signals[junctions]),
        Edges(
            index[edge_tails],
            index[edge_heads],
            names,
            highways,
            signal_times=_times(streets.signal_times, kept, pieces, offsets),
            bans=Bans.of(_of_edges(bans, pieces, offsets), known=streets.bans is not None),
        ),
        numbers,
        _lines(lon, lat, tails[pieces], heads[pieces], offsets),
        name=name,
        attribution=attribution,
        left_out=left_out,
    )


def connected_despite_bans(network: RoadNetwork) -> RoadNetwork:
    """Drop what cannot be reached, or left again, without a banned turn, and count it."""
    connected = network.largest_component()
    if connected is network:
        return network
    apart = network.left_out.get(APART, 0) + network.n_nodes - connected.n_nodes
    return replace(connected, left_out={**network.left_out, APART: apart})


def _numbers(
    roads: Sequence[Road], road: Ints, backward: Bools, length: Floats, pieces: Ints, starts: Ints
) -> EdgeNumbers:
    """Return the numbers of each edge, given the road, direction and length of its pieces."""
    speed, lanes, capacity, flags = _filled(roads, road, backward)
    edge_length = np.add.reduceat(length[pieces], starts)
    seconds = np.add.reduceat((length / speed * 3.6)[pieces], starts)
    slowest = np.minimum.reduceat(speed[pieces], starts)
    uniform = slowest == np.maximum.reduceat(speed[pieces], starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        edge_speed = np.where(uniform | (seconds == 0), slowest, edge_length / seconds * 3.6)
    return EdgeNumbers(
        edge_length,
        edge_length / edge_speed * 3.6,
        edge_speed,
        lanes=np.minimum.reduceat(lanes[pieces], starts),
        capacity_vph=np.minimum.reduceat(capacity[pieces], starts),
        imputed_bits=np.bitwise_or.reduceat(flags[pieces], starts),
    )


def _at_stop_lines(signals: Bools, heads: Ints, length: Floats, offsets: Ints) -> Bools:
    """Mark the ends of edges too that have signals on the last metres before them."""
    last = np.repeat(offsets[1:] - 1, np.diff(offsets))
    driven = np.cumsum(length)
    near = signals[heads] & (driven[last] - driven <= STOP_LINE_M)
    marked = signals.copy()
    marked[heads[last[near]]] = True
    return marked


def _times(times: SignalTimes | None, kept: Bools, pieces: Ints, offsets: Ints) -> SignalTimes | None:
    """Return programmes in which a piece that is the last of an edge, or the first one to go on to, is the edge."""
    if times is None:
        return None
    pieces = np.flatnonzero(kept)[pieces]
    ending, starting = (np.full(len(kept), -1, dtype=np.int64) for _ in range(2))
    ending[pieces[offsets[1:] - 1]] = starting[pieces[offsets[:-1]]] = np.arange(len(offsets) - 1)
    return times.renumbered(ending, starting)


def _filled(
    roads: Sequence[Road], road: Ints, backward: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats, NDArray[np.uint8]]:
    """Return speed, lanes, capacity and flags of each piece."""
    side = backward.astype(np.int64)
    speed = np.array([r.speed_kph for r in roads], dtype=np.float64)[road, side]
    lanes = np.array([r.lanes for r in roads], dtype=np.float64)[road, side]
    classes = class_columns([r.highway for r in roads])[road]
    no_speed, no_lanes = np.isnan(speed), np.isnan(lanes)
    speed = np.where(no_speed, classes[:, 0], speed)
    lanes = np.where(no_lanes, classes[:, 1], lanes)
    flags = no_speed * IMPUTED_BITS["speed"] + no_lanes * IMPUTED_BITS["lanes"] + IMPUTED_BITS["capacity"]
    return speed, lanes, lanes * classes[:, 2], flags.astype(np.uint8)


def _longest(texts: Sequence[str], road: Ints, length: Floats, offsets: Ints) -> list[str]:
    """Return for each edge the text that most of its length carries; texts that say nothing give way."""
    table = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    codes = np.array([table[text] for text in texts], dtype=np.int64)[road]
    chosen = np.minimum.reduceat(codes, offsets[:-1])
    mixed = chosen != np.maximum.reduceat(codes, offsets[:-1])
    # Of edges through several texts: the length of each text, and the longest, of equals the first to come.
    pieces = np.flatnonzero(np.repeat(mixed, np.diff(offsets)) & (codes != table.get("", -1)))
    edge = np.repeat(np.arange(len(mixed)), np.diff(offsets))[pieces]
    _, first, group = np.unique(edge * len(table) + codes[pieces], return_index=True, return_inverse=True)
    share = np.bincount(group, weights=length[pieces])
    order = np.lexsort((first, -share, edge[first]))
    best = first[order[np.unique(edge[first][order], return_index=True)[1]]]
    chosen[edge[best]] = codes[pieces[best]]
    names = list(table)
    return [names[code] for code in chosen.tolist()]


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


def _within(kept: Bools, bans: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the bans of pieces that are kept, with their new numbers."""
    number = np.where(kept, np.cumsum(kept) - 1, -1)
    renamed = (tuple(number[list(ban)].tolist()) for ban in bans)
    return [ban for ban in renamed if min(ban) >= 0]


def _of_edges(bans: Sequence[tuple[int, ...]], pieces: Ints, offsets: Ints) -> set[tuple[int, ...]]:
    """Return the bans with edges for pieces; those that turn round within an edge are none."""
    if not bans:
        return set()
    place = np.empty(len(pieces), dtype=np.int64)
    place[pieces] = np.arange(len(pieces))
    edge = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    found = set()
    for ban in bans:
        places = place[list(ban)].tolist()
        edges = [int(edge[places[0]])]
        for before, after in pairwise(places):
            if before + 1 == offsets[edge[before] + 1] and after == offsets[edge[after]]:
                edges.append(int(edge[after]))
            elif after != before + 1:
                break
        else:
            found.add(tuple(edges))
    return found


def merge_pieces(n_points: int, tails: Ints, heads: Ints, bans: Sequence[tuple[int, ...]] = ()) -> tuple[Ints, Ints]:
    """Return the pieces of each merged edge in driving order, and where each edge's pieces begin.

    No ban, a sequence of pieces, is merged into one edge.
    """
    out_order = np.argsort(tails, kind="stable")
    in_order = np.argsort(heads, kind="stable")
    out_ptr, in_ptr = (np.zeros(n_points + 1, dtype=np.int64) for _ in range(2))
    np.cumsum(np.bincount(tails, minlength=n_points), out=out_ptr[1:])
    np.cumsum(np.bincount(heads, minlength=n_points), out=in_ptr[1:])
    passing = _passing(tails, heads, out_ptr, out_order, in_ptr, in_order)
    for ban in bans:
        inner = list(ban[:-1])
        if passing[heads[inner]].all() and not (tails[inner] == heads[list(ban[1:])]).any():
            passing[heads[inner[-1]]] = False
    return _merge(tails, heads, out_ptr, out_order, passing)


@kernel
def _passing(tails: Ints, heads: Ints, out_ptr: Ints, out_order: Ints, in_ptr: Ints, in_order: Ints) -> Bools:
    """Mark the points that are passed through."""
    n_points = len(out_ptr) - 1
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
    return passing


@kernel
def _merge(tails: Ints, heads: Ints, out_ptr: Ints, out_order: Ints, passing: Bools) -> tuple[Ints, Ints]:
    n_points, n_pieces = len(out_ptr) - 1, len(tails)
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
