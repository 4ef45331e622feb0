"""Paths from flows by origin: each pair of nodes gets few of them, and together they make the flows."""

from typing import NamedTuple

import numpy as np

from routesim.arrays import Floats, Ints, Ints32
from routesim.assignment.bushes import Bushes, Pairs
from routesim.assignment.contraction import Links
from routesim.assignment.shifts import Ways, longer
from routesim.kernels import kernel

_NOTHING = 1e-9  # the share of a pair's demand that is put down to rounding


class PathShares(NamedTuple):
    """Paths by pair: pair i uses the paths first[i] … first[i + 1] - 1, each with its share of the pair's demand.

    Path p is edges[indptr[p] : indptr[p + 1]], from origin to destination.
    """

    first: Ints
    shares: Floats
    indptr: Ints
    edges: Ints32

    def totals(self, by_edge: Floats) -> Floats:
        """Return the sum over the edges of each path."""
        return np.add.reduceat(by_edge[self.edges], self.indptr[:-1]) if len(self.edges) else np.empty(0)

    @property
    def pair(self) -> Ints:
        """The number of the pair of each path."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def kept(self, rows: Ints) -> "PathShares":
        """Return some of the paths, in this order, with shares that add up to 1 again; each pair must keep one."""
        pair, lengths = self.pair[rows], np.diff(self.indptr)[rows]
        first = np.searchsorted(pair, np.arange(len(self.first))).astype(np.int64)
        shares = self.shares[rows] / np.repeat(np.add.reduceat(self.shares[rows], first[:-1]), np.diff(first))
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], lengths)
        return PathShares(first, shares, indptr, self.edges[places])


class RoadPaths(NamedTuple):
    """Paths by pair, as in `PathShares`, over the roads of links: path p is roads[indptr[p] : indptr[p + 1]]."""

    first: Ints
    shares: Floats
    indptr: Ints
    roads: Ints32

    def over_edges(self, links: Links, least: float) -> PathShares:
        """Return the paths as edges; shares below `least` are given to the others of their pair."""
        begin, members = links.by_road()
        sizes = np.diff(begin)[self.roads]
        stops = np.concatenate(([0], np.cumsum(sizes)))
        place = np.arange(stops[-1]) + np.repeat(begin[self.roads] - stops[:-1], sizes)
        found = PathShares(self.first, self.shares, stops[self.indptr], members[place])
        largest = np.maximum.reduceat(self.shares, self.first[:-1])
        small = self.shares < np.minimum(least, np.repeat(largest, np.diff(self.first)))
        return found.kept(np.flatnonzero(~small)) if small.any() else found


def paths_of(ways: Ways, pairs: Pairs, bushes: Bushes) -> RoadPaths:
    """Return few paths of every pair that together make the flows by origin."""
    first, shares, indptr, used = _peel(ways, pairs, bushes)
    return RoadPaths(first, shares, indptr, ways.roads[used])


@kernel
def _peel(ways: Ways, pairs: Pairs, bushes: Bushes) -> tuple[Ints, Floats, Ints, Ints32]:
    """Take one path after the other out of the flows of each origin, back along the links with the largest flow left.

    Every path uses up a link or the demand of its pair, so there are hardly more paths than pairs. Returns where the
    paths of each pair begin, their shares, where each begins among the links, and the links from origin to goal.
    """
    n_pairs, n_paths, n_used = len(pairs.goals), 0, 0
    first = np.empty(n_pairs + 1, dtype=np.int64)
    shares, ends = np.empty(n_pairs + 16), np.zeros(n_pairs + 17, dtype=np.int64)
    used = np.empty(16 * n_pairs + 64, dtype=np.int32)
    left = np.empty(len(ways.tails))
    back = np.empty(len(ways.first), dtype=np.int32)
    for i in range(len(pairs.origins)):
        origin, flows = pairs.origins[i], bushes.flows[i]
        left[:] = flows
        for pair in range(pairs.first[i], pairs.first[i + 1]):
            first[pair] = n_paths
            demand = pairs.demand[pair]
            rest = demand
            while rest > _NOTHING * demand or n_paths == first[pair]:
                node, length, room = pairs.goals[pair], 0, rest
                while node != origin:
                    widest = ways.first[node]
                    for link in range(ways.first[node] + 1, ways.first[node + 1]):
                        if left[link] > left[widest]:
                            widest = link
                    if left[widest] <= 0.0:
                        # Rounding has used up what should be there: the first links in use lead to the origin too.
                        for link in range(ways.first[node], ways.first[node + 1]):
                            if flows[link] > flows[widest]:
                                widest = link
                    else:
                        room = min(room, left[widest])
                    back[length] = widest
                    length += 1
                    node = ways.tails[widest]
                if room <= _NOTHING * demand and n_paths > first[pair]:
                    break
                if n_paths == len(shares):
                    more, more_ends = np.empty(2 * n_paths), np.zeros(2 * n_paths + 1, dtype=np.int64)
                    more[:n_paths], more_ends[: n_paths + 1] = shares, ends[: n_paths + 1]
                    shares, ends = more, more_ends
                if n_used + length > len(used):
                    used = longer(used, 2 * (n_used + length))
                for k in range(length):
                    left[back[k]] -= room
                    used[n_used + length - 1 - k] = back[k]
                n_used += length
                shares[n_paths] = room / demand
                n_paths += 1
                ends[n_paths] = n_used
                rest -= room
            given = 0.0
            for path in range(first[pair], n_paths):
                given += shares[path]
            for path in range(first[pair], n_paths):
                shares[path] /= given
    first[n_pairs] = n_paths
    return first, shares[:n_paths].copy(), ends[: n_paths + 1].copy(), used[:n_used].copy()
