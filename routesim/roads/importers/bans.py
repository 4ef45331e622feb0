"""Banned turns and ways on their way into files and out of them: lists of edges that may not follow each other."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Ints, Ints32
from routesim.errors import NetworkError

MAX_BANS = 2_000_000  # several times as many as all of Europe has


class Bans(NamedTuple):
    """Pairs of edges, and longer ways of them, that may not be driven one after the other.

    `known` tells whether the source could say which.
    """

    turns: Sequence[Sequence[int]] | Ints = ()
    ways: Sequence[tuple[int, ...]] = ()
    known: bool = True

    @classmethod
    def of(cls, bans: Collection[tuple[int, ...]], *, known: bool = True) -> Self:
        """Tell the pairs from the longer ways."""
        if any(len(ban) < 2 for ban in bans):
            raise NetworkError("a banned turn or way must name two edges or more")
        return cls([ban for ban in bans if len(ban) == 2], [ban for ban in bans if len(ban) > 2], known)

    @classmethod
    def of_rows(cls, sizes: NDArray[Any], edges: NDArray[Any], *, known: bool) -> Self:
        """Take all bans one after the other, as `rows_of` gives them; the numbers may be any."""
        for what, values in (("sizes", sizes), ("edges", edges)):
            if values.ndim != 1 or (len(values) and values.dtype.kind not in "iu"):
                raise NetworkError(f"the {what} of banned turns must be whole numbers, got {values.dtype}")
        if len(sizes) and (int(sizes.min()) < 2 or int(sizes.max()) > len(edges)):
            raise NetworkError("a banned turn or way must name two edges or more")
        ends = np.cumsum(sizes, dtype=np.int64)
        if len(edges) != (ends[-1] if len(ends) else 0):
            raise NetworkError("banned turns must name as many edges as their sizes say")
        listed = edges.tolist()
        return cls.of([tuple(listed[first:last]) for first, last in pairwise([0, *ends.tolist()])], known=known)

    @classmethod
    def of_json(cls, text: object, edges: Mapping[object, int], *, known: bool) -> Self:
        """Read what `json_of` wrote of edges that are now called `edges[e]`; bans of edges that are gone are left out.

        The text may be anything.
        """
        try:
            stored = json.loads(text)  # type: ignore[arg-type]  # whatever it is not
        except (TypeError, ValueError, RecursionError) as error:
            raise NetworkError(f"banned_turns must be JSON as to_graphml writes it: {error}") from None
        if not isinstance(stored, list) or not all(isinstance(ban, list) for ban in stored):
            raise NetworkError("banned_turns must be JSON with a list of edges each")
        if not all(type(edge) is int for ban in stored for edge in ban):
            raise NetworkError("banned_turns must name edges by whole numbers")
        renamed = (tuple(edges.get(edge, -1) for edge in ban) for ban in stored)
        return cls.of([ban for ban in renamed if -1 not in ban], known=known)

    @property
    def columns(self) -> dict[str, Any]:
        """What a network is made with."""
        turns = np.array(self.turns).reshape(-1, 2)
        return {"banned_turns": turns, "banned_ways": tuple(self.ways), "bans_known": self.known}


UNKNOWN = Bans(known=False)


def missing_connections(tails: Ints | Ints32, heads: Ints | Ints32, connections: Ints) -> Ints:
    """Return the pairs (e, f) in ascending order where `f` starts at the end of `e` and no connection joins them."""
    n = len(tails)
    order = np.argsort(tails, kind="stable")
    first = np.searchsorted(tails[order], heads, side="left")
    last = np.searchsorted(tails[order], heads, side="right")
    count = last - first
    edge = np.repeat(np.arange(n, dtype=np.int64), count)
    slot = np.arange(len(edge)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)
    onward = order[slot].astype(np.int64)
    joined = np.asarray(connections, dtype=np.int64).reshape(-1, 2)
    missing = ~np.isin(edge * n + onward, joined[:, 0] * n + joined[:, 1])
    return np.column_stack((edge[missing], onward[missing]))


def rows_of(bans: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return how many edges each ban has, and the edges of all one after the other."""
    sizes = np.array([len(ban) for ban in bans], dtype=np.int64)
    return sizes, np.array([edge for ban in bans for edge in ban], dtype=np.int64)


def json_of(bans: Sequence[Sequence[int]]) -> str:
    """Return all bans as text."""
    return json.dumps([list(ban) for ban in bans], separators=(",", ":"))
