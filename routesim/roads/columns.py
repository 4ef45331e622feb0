"""The columns of a road network: the rule that each of them keeps, checked when a network is built."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from routesim.arrays import Floats, Ints32
from routesim.checks import BPR_LIMITS, LATEST_S
from routesim.errors import NetworkError

if TYPE_CHECKING:
    from routesim.roads.network import RoadNetwork

# One bit of `imputed_bits` per attribute that an importer may have had to fill in from a rule.
IMPUTED_BITS: Mapping[str, int] = {"speed": 1, "lanes": 2, "capacity": 4, "bpr": 8}


class ColumnLimits(NamedTuple):
    """The least and the largest value of a column, and whether it may be NaN, "unknown"."""

    least: float
    most: float
    or_unknown: bool = False


# Attributes of an edge that are numbers, and between which limits travel times made from them keep their meaning.
EDGE_LIMITS: Mapping[str, ColumnLimits] = {
    "length_m": ColumnLimits(0.0, 1e9, or_unknown=True),
    "free_flow_s": ColumnLimits(0.0, LATEST_S),
    "speed_kph": ColumnLimits(1e-30, 1e30, or_unknown=True),
    "lanes": ColumnLimits(1e-3, 1e4),
    "capacity_vph": ColumnLimits(1e-6, 1e12),
    "bpr_alpha": ColumnLimits(*BPR_LIMITS["alpha"]),
    "bpr_beta": ColumnLimits(*BPR_LIMITS["beta"]),
}
EDGE_NUMBERS: tuple[str, ...] = tuple(EDGE_LIMITS)


def check(network: RoadNetwork) -> dict[Hashable, int]:
    """Put checked copies of its columns into a network under construction; return the index of every label."""
    put = object.__setattr__
    put(network, "labels", tuple(network.labels))
    n_nodes = len(network.labels)
    if n_nodes == 0:
        raise NetworkError("a road network needs at least one node, got none")
    index = index_labels(network.labels)
    for which in ("tails", "heads"):
        put(network, which, _indices(getattr(network, which), which, n_nodes))
    n_edges = len(network.tails)
    if len(network.heads) != n_edges:
        raise NetworkError(f"tails and heads must have equal length, got {n_edges} and {len(network.heads)}")
    for column, limits in EDGE_LIMITS.items():
        values = number_row(getattr(network, column), column, n_edges, np.float64)
        put(network, column, values)
        bad = ~((values >= limits.least) & (values <= limits.most))
        if limits.or_unknown:
            bad &= ~np.isnan(values)
        if bad.any():
            e = int(np.argmax(bad))
            raise NetworkError(
                f"{column} must be a finite number between {limits.least:g} and {limits.most:g}, got {values[e]} "
                f"on edge {e} ({_ends(network, e)})"
            )
    for column in ("names", "highways"):
        texts = tuple(getattr(network, column))
        put(network, column, texts)
        if len(texts) != n_edges:
            raise NetworkError(f"{column} must have one text for each of {n_edges} edges, got {len(texts)}")
        if not set(map(type, texts)) <= {str}:
            raise NetworkError(f"{column} must hold texts only ('' where unknown)")
    put(network, "keys", number_row(network.keys, "keys", n_edges, np.int64))
    put(network, "imputed_bits", number_row(network.imputed_bits, "imputed_bits", n_edges, np.uint8))
    if (network.imputed_bits >= 2 * max(IMPUTED_BITS.values())).any():
        raise NetworkError(f"imputed_bits must be sums of {tuple(IMPUTED_BITS.values())}")
    put(network, "no_through", number_row(network.no_through, "no_through", n_nodes, np.bool_))
    # An empty row is the default of a network whose source knows no signals.
    signals = network.signals if np.size(network.signals) else np.zeros(n_nodes, dtype=np.bool_)
    put(network, "signals", number_row(signals, "signals", n_nodes, np.bool_))
    for text in ("crs", "name", "attribution"):
        if not isinstance(getattr(network, text), str):
            raise NetworkError(f"{text} must be a text, got {getattr(network, text)!r}")
    counts = network.left_out
    if not isinstance(counts, Mapping) or not all(
        isinstance(what, str) and type(n) is int and n >= 0 for what, n in counts.items()
    ):
        raise NetworkError("left_out must hold a count, at least 0, for each text")
    put(network, "left_out", dict(counts))
    _check_keys(network)
    _check_places(network)
    _check_bans(network)
    return index


def _check_keys(network: RoadNetwork) -> None:
    """Refuse two edges with the same tail, head and key."""
    if len(network.keys) < 2:
        return
    order = np.lexsort((network.keys, network.heads, network.tails))
    t, h, k = network.tails[order], network.heads[order], network.keys[order]
    same = (t[1:] == t[:-1]) & (h[1:] == h[:-1]) & (k[1:] == k[:-1])
    if same.any():
        e = int(order[1:][np.argmax(same)])
        raise NetworkError(
            f"parallel edges need different keys, got key {network.keys[e]} twice from {_ends(network, e)}"
        )


def _check_bans(network: RoadNetwork) -> None:
    """Check the banned turns and ways, and put them in order, each of them once."""
    put = object.__setattr__
    if not isinstance(network.bans_known, bool):
        raise NetworkError(f"bans_known must be True or False, got {network.bans_known!r}")
    turns = _array(network.banned_turns, "banned_turns", np.int64)
    if turns.size == 0:
        turns = turns.reshape(0, 2)
    if turns.ndim != 2 or turns.shape[1] != 2:
        raise NetworkError(f"banned_turns must have two columns, edge in and edge out, got shape {turns.shape}")
    wrong = ((turns < 0) | (turns >= len(network.tails))).any(axis=1)
    if not wrong.any():
        wrong = network.heads[turns[:, 0]] != network.tails[turns[:, 1]]
    for turn in turns[wrong][:1].tolist():
        _check_way(network, "banned_turns", turn)
    put(network, "banned_turns", np.unique(turns, axis=0).astype(np.int32))
    try:
        ways = {tuple(operator.index(edge) for edge in way) for way in network.banned_ways}
    except TypeError:
        raise NetworkError(f"banned_ways must be tuples of edge indices, got {network.banned_ways!r:.80}") from None
    for way in ways:
        if len(way) < 3:
            raise NetworkError(f"banned_ways are of three or more edges, got {way}; two are a row of banned_turns")
        _check_way(network, "banned_ways", way)
    put(network, "banned_ways", tuple(sorted(ways)))


def _check_way(network: RoadNetwork, what: str, way: Sequence[int]) -> None:
    """Refuse edges that there are not, or that do not follow each other."""
    n_edges = len(network.tails)
    if min(way) < 0 or max(way) >= n_edges:
        raise NetworkError(f"{what} must name edges from 0 to {n_edges - 1}, got {tuple(way)}")
    for before, after in pairwise(way):
        if network.heads[before] != network.tails[after]:
            raise NetworkError(
                f"{what} must name edges that follow each other, got {tuple(way)}: edge {before} ends at node "
                f"{network.labels[network.heads[before]]!r}, edge {after} starts at "
                f"{network.labels[network.tails[after]]!r}"
            )


def _check_places(network: RoadNetwork) -> None:
    """Check coordinates of nodes and lines of edges."""
    put = object.__setattr__
    n_nodes, n_edges = len(network.labels), len(network.tails)
    put(network, "x", number_row(network.x, "x", n_nodes, np.float64))
    put(network, "y", number_row(network.y, "y", n_nodes, np.float64))
    known = ~np.isnan(network.x)
    if not np.array_equal(known, ~np.isnan(network.y)):
        i = int(np.argmax(known == np.isnan(network.y)))
        raise NetworkError(f"node {network.labels[i]!r} has only one of its two coordinates")
    _check_range(network, network.x[known], network.y[known], "node", np.flatnonzero(known))
    offsets = number_row(network.shape_offsets, "shape_offsets", n_edges + 1, np.int64)
    shape = _array(network.shape_xy, "shape_xy", np.float64)
    if shape.ndim != 2 or shape.shape[1] != 2:
        raise NetworkError(f"shape_xy must have two columns, got shape {shape.shape}")
    counts = np.diff(offsets)
    if offsets[0] != 0 or offsets[-1] != len(shape) or (counts < 0).any() or (counts == 1).any():
        raise NetworkError("shape_offsets must rise from 0 to the number of points, by none or at least two an edge")
    put(network, "shape_offsets", offsets)
    put(network, "shape_xy", shape)
    owners = np.repeat(np.arange(n_edges), counts)
    if np.isnan(shape).any():
        e = int(owners[np.argmax(np.isnan(shape).any(axis=1))])
        raise NetworkError(f"the line of edge {e} ({_ends(network, e)}) has a coordinate that is not a number")
    _check_range(network, shape[:, 0], shape[:, 1], "edge", owners)


def _check_range(network: RoadNetwork, x: Floats, y: Floats, kind: str, owners: NDArray[np.integer[Any]]) -> None:
    limit_x, limit_y = (180.0, 90.0) if network.is_geographic else (1e12, 1e12)
    bad = ~((np.abs(x) <= limit_x) & (np.abs(y) <= limit_y))
    if bad.any():
        i = int(np.argmax(bad))
        owner = int(owners[i])
        whose = f"node {network.labels[owner]!r}" if kind == "node" else f"edge {owner} ({_ends(network, owner)})"
        raise NetworkError(
            f"coordinates must lie within ±{limit_x:g}, ±{limit_y:g} in {network.crs or 'planar metres'}, "
            f"got ({x[i]}, {y[i]}) at {whose}"
        )


def _ends(network: RoadNetwork, edge: int) -> str:
    return f"{network.labels[network.tails[edge]]!r} to {network.labels[network.heads[edge]]!r}"


def index_labels(labels: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return the index of every label, of which no two are the same."""
    try:
        index = {label: i for i, label in enumerate(labels)}
    except TypeError:
        bad = next(label for label in labels if not _is_hashable(label))
        raise NetworkError(f"node labels must be hashable, got {bad!r}") from None
    if len(index) != len(labels):
        twice = next(label for i, label in enumerate(labels) if index[label] != i)
        raise NetworkError(f"node labels must differ, got {twice!r} twice")
    return index


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _array(values: ArrayLike, what: str, dtype: Any) -> NDArray[Any]:
    """Return a copy of the wanted type, as the caller's array may change later; no value is bent to fit."""
    try:
        raw = np.array(values, order="C")
        with np.errstate(invalid="ignore"):
            casting = "unsafe" if raw.dtype.kind in "biuf" or raw.size == 0 else "safe"
            array: NDArray[Any] = raw.astype(dtype, casting=casting)  # type: ignore[call-overload]  # one of two words
    except (TypeError, ValueError, OverflowError) as error:
        raise NetworkError(f"{what} must hold numbers: {error}") from None
    if array.dtype.kind != "f" and not np.array_equal(array, raw):
        kind = "truth values" if array.dtype.kind == "b" else "whole numbers"
        raise NetworkError(f"{what} must hold {kind} within {array.dtype}, got others")
    return array


def number_row(values: ArrayLike, what: str, n: int, dtype: Any) -> NDArray[Any]:
    """Return a copy of `n` values as one row of this type; `what` names them in errors."""
    array = _array(values, what, dtype)
    if array.shape != (n,):
        raise NetworkError(f"{what} must have {n} values in one row, got shape {array.shape}")
    return array


def _indices(values: ArrayLike, what: str, n_nodes: int) -> Ints32:
    array = _array(values, what, np.int64)
    if array.ndim != 1:
        raise NetworkError(f"{what} must be one row of node indices, got shape {array.shape}")
    bad = (array < 0) | (array >= n_nodes)
    if bad.any():
        e = int(np.argmax(bad))
        raise NetworkError(f"{what} must be node indices from 0 to {n_nodes - 1}, got {array[e]} on edge {e}")
    return array.astype(np.int32)
