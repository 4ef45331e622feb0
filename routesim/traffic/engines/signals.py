"""The programmes of traffic signals: those that are known, and a default one for all other nodes with signals.

A node has a known programme if `network.signal_times` speaks of any road into it. Its green times are then used as they
are; roads and movements of which they do not speak are not part of the programme, and pass the node without signals.

The default programme is a fixed cycle with a phase for each of two crossing streets. Where only the place of signals is
known, as in OpenStreetMap, it says when which road has green. Each junction repeats one cycle. The roads into it are
grouped by the axis on which they arrive: those along the widest one have green together, then all others, with some
seconds between the two in which nobody may start. The green time is shared in proportion to the lanes of the widest
road of each group. Where all roads arrive on one axis, people cross on foot.
"""

import numpy as np

from routesim.arrays import Bools, Floats, Ints
from routesim.roads.network import RoadNetwork
from routesim.roads.signal_times import SignalTimes
from routesim.roads.turns import directions
from routesim.traffic.engines import queue_state as core
from routesim.traffic.engines.queue_roads import Greens

LOST_S = 5.0  # after each phase, in which the junction is cleared and nobody starts
LEAST_SHARE = 0.2
FOOT_SHARE = 0.7  # of the traffic where only people on foot cross it
# Nodes with signals joined by a road no longer than this are the corners of one junction, as where a street with
# separate directions is crossed: whoever has passed the first corner is not stopped again at the next.
JUNCTION_M = 30.0
_GOLDEN = (5**0.5 - 1) / 2  # its multiples spread the starts of the cycles of neighbours evenly


def signal_greens(network: RoadNetwork, cycle_s: float) -> Greens:
    """Return the known programmes, and the default one with this cycle at nodes with signals that have none."""
    default, times = default_greens(network, cycle_s), network.signal_times
    if not len(times):
        return default
    n_edges, own = network.n_edges, default.rows
    count = np.diff(own.first)
    edge = np.concatenate((np.repeat(np.arange(n_edges), count), times.edge))
    order = np.argsort(edge, kind="stable")
    rows = core.SignalRows(
        first=np.searchsorted(edge[order], np.arange(n_edges + 1)).astype(np.int64),
        to=np.concatenate((own.to, times.to))[order],
        cycle_s=np.concatenate((own.cycle_s, times.cycle_s))[order],
        start_s=np.concatenate((own.start_s, times.start_s))[order],
        green_s=np.concatenate((own.green_s, times.green_s))[order],
    )
    share, wait_s = default.share.copy(), default.wait_s.copy()
    # A road passes its capacity while any of its movements has green.
    edges, first = np.unique(times.edge, return_index=True)
    red_s, _ = _reds(times, times.edge.astype(np.int64))
    share[edges] = 1.0 - red_s / times.cycle_s[first]
    # Who arrives at any moment waits what the mean of its movements makes wait.
    movement = np.unique(np.column_stack((times.edge, times.to)), axis=0, return_inverse=True)[1].ravel()
    _, first = np.unique(movement, return_index=True)
    _, squares = _reds(times, movement)
    wait = squares / (2.0 * times.cycle_s[first])
    which = np.searchsorted(edges, times.edge[first])
    wait_s[edges] = np.bincount(which, weights=wait) / np.bincount(which)
    return Greens(rows, share, wait_s)


def _reds(times: SignalTimes, group: Ints) -> tuple[Floats, Floats]:
    """Return for each group of rows, in order, the seconds of a cycle when none is green, and the sum of their squares.

    The squares are those of the lengths of the red intervals.
    """
    end = times.start_s + times.green_s
    over = end > times.cycle_s
    # A green that reaches into the next cycle is one at its end and one at its beginning.
    start = np.concatenate((times.start_s, np.zeros(int(over.sum()))))
    end = np.concatenate((np.minimum(end, times.cycle_s), (end - times.cycle_s)[over]))
    cycle, group = np.concatenate((times.cycle_s, times.cycle_s[over])), np.concatenate((group, group[over]))
    order = np.lexsort((start, group))
    start, end, cycle, group = start[order], end[order], cycle[order], group[order]
    _, first, of = np.unique(group, return_index=True, return_inverse=True)
    # The latest end so far within each group, found among the places of all ends in their order.
    by_end, place = np.argsort(end), np.empty(len(end), dtype=np.int64)
    place[by_end] = np.arange(len(end))
    latest = end[by_end[np.maximum.accumulate(place + of * len(end)) - of * len(end)]]
    gap = np.empty(len(start))
    gap[1:] = start[1:] - latest[:-1]
    last = np.append(first[1:], len(start)) - 1
    gap[first] = start[first] + cycle[first] - latest[last]
    gap = np.maximum(gap, 0.0)
    return np.add.reduceat(gap, first), np.add.reduceat(gap**2, first)


def default_greens(network: RoadNetwork, cycle_s: float) -> Greens:
    """Return the default programme of all nodes with signals whose own is not known."""
    n_edges = network.n_edges
    unknown = network.signals.copy()
    unknown[network.heads[network.signal_times.edge]] = False
    if not unknown.any():
        return Greens.none(n_edges)
    junction = _junctions(network)
    approach = unknown[network.heads] & ~_inside(network)
    edges = np.flatnonzero(approach)
    of = junction[network.heads[edges]]
    order = np.lexsort((edges, of))
    edges, of = edges[order], of[order]
    crossing = _crosses(network, edges, of)
    share = np.ones(n_edges)
    start_s, green_s = np.zeros(n_edges), np.zeros(n_edges)
    share[edges], start_s[edges] = _shares(network.lanes[edges], of, crossing, cycle_s)
    green_s[edges] = share[edges] * cycle_s
    rows = core.SignalRows(
        first=np.concatenate(([0], np.cumsum(approach))).astype(np.int64),
        to=np.full(len(edges), -1, dtype=np.int32),
        cycle_s=np.full(len(edges), cycle_s),
        start_s=start_s[approach],
        green_s=green_s[approach],
    )
    return Greens(rows, share, (1.0 - share) ** 2 * cycle_s / 2.0)


def _inside(network: RoadNetwork) -> Bools:
    """Mark the roads between the corners of one junction."""
    both = network.signals[network.tails] & network.signals[network.heads]
    return np.asarray(both & (network.length_m <= JUNCTION_M) & (network.tails != network.heads), dtype=np.bool_)


def _junctions(network: RoadNetwork) -> Ints:
    """Return the junction of every node: the first of the nodes that are its corners."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_nodes, inside = network.n_nodes, _inside(network)
    ends = network.tails[inside], network.heads[inside]
    joined = coo_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(n_nodes, n_nodes))
    _, component = connected_components(joined.tocsr(), directed=False)
    _, first, member = np.unique(component, return_index=True, return_inverse=True)
    return np.asarray(first[member], dtype=np.int64)


def _crosses(network: RoadNetwork, edges: Ints, of: Ints) -> Bools:
    """Tell which of the roads into junctions cross the axis of the widest; they are in the order of `of`."""
    _, arrives = directions(network)
    group, first = _groups(of)
    lanes = network.lanes[edges]
    widest = lanes == np.maximum.reduceat(lanes, first)[group]
    # Of several roads that are widest, the first gives the axis.
    place = np.where(widest, np.arange(len(edges)), len(edges))
    axis = arrives[edges[np.minimum.reduceat(place, first)]][group]
    crossing = np.abs(np.sin(arrives[edges] - axis)) > np.sqrt(0.5)
    # Where nothing is known of directions, roads cross in turn.
    undrawn = network.shape_offsets[edges] == network.shape_offsets[edges + 1]
    unknown = undrawn & np.isnan(network.x[network.tails[edges]] + network.x[network.heads[edges]])
    turn = (np.arange(len(edges)) - first[group]) % 2 == 1
    return np.asarray(np.where(unknown, turn, crossing), dtype=np.bool_)


def _groups(of: Ints) -> tuple[Ints, Ints]:
    """Return for each entry of a sorted row the number of its group, and where each group begins."""
    _, first, group = np.unique(of, return_index=True, return_inverse=True)
    return group.astype(np.int64), first.astype(np.int64)


def _shares(lanes: Floats, of: Ints, crossing: Bools, cycle_s: float) -> tuple[Floats, Floats]:
    """Return the green share of each road into a junction and the second of the cycle at which its green starts."""
    group, first = _groups(of)
    along = np.maximum.reduceat(np.where(crossing, 0.0, lanes), first)
    across = np.maximum.reduceat(np.where(crossing, lanes, 0.0), first)
    usable = 1.0 - 2.0 * LOST_S / cycle_s
    share = np.clip(usable * along / (along + across), LEAST_SHARE, usable - LEAST_SHARE)
    on_foot = across == 0
    along_share, across_share = np.where(on_foot, FOOT_SHARE, share), usable - share
    begin_s = cycle_s * (of[first] * _GOLDEN % 1.0)
    next_s = (begin_s + along_share * cycle_s + LOST_S) % cycle_s
    return (
        np.where(crossing, across_share[group], along_share[group]),
        np.where(crossing, next_s[group], begin_s[group]),
    )
