"""Restriction relations of OpenStreetMap -> which pieces of roads may not follow each other.

kind       Of `restriction:motorcar`, `restriction:motor_vehicle`, `restriction:vehicle` and `restriction`, the first
           that is there decides. `no_*` bans to go on from the way `from` by `via` to the way `to`. `only_*` bans to go
           on from there to anything else, turning back included; several of them for one way and place add up to what
           is allowed. `no_entry` may have several ways `from`, `no_exit` several ways `to`.
via        One node, or one or more ways, each of which is driven from one end to the other.
not read   Restrictions that hold at times or under conditions (`restriction:conditional`, `day_on`, `hour_on`, on red),
           and those that are not for cars (`except=motorcar`, `except=motor_vehicle`, `restriction:hgv`).
           Restrictions between roads that cars do not use, or not in that direction, ban nothing. What does not say
           which piece of a way is meant is incomplete: a way that does not touch `via`, or passes through it in both
           directions (but for a U-turn, which is banned in both). `left_out` of the network counts each of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Bools, Ints
from routesim.errors import NetworkError
from routesim.roads.importers.bans import MAX_BANS

# What `left_out` of a network counts.
CONDITIONAL = "turn restrictions that depend on conditions"
NOT_FOR_CARS = "turn restrictions for other vehicles"
OFF_ROADS = "turn restrictions on ways that cars do not use"
INCOMPLETE = "turn restrictions that are incomplete"

RELATION = "restriction"  # the `type` of these relations
_TAGS = ("restriction:motorcar", "restriction:motor_vehicle", "restriction:vehicle", "restriction")
_TURNS = ("left_turn", "right_turn", "straight_on", "u_turn")
_KINDS = frozenset((*(f"{rule}_{turn}" for rule in ("no", "only") for turn in _TURNS), "no_entry", "no_exit"))
_ON_RED = frozenset(("no_right_turn_on_red", "no_left_turn_on_red"))
_HOURS = frozenset(("day_on", "day_off", "hour_on", "hour_off"))
_CARS = frozenset(("motorcar", "motor_vehicle", "vehicle"))
MOST_MEMBERS = 100  # of a restriction; one with as many is no restriction
MAX_RESTRICTIONS = MAX_BANS

Member = tuple[str, int, str]  # "node", "way" or "relation", its id, its role
Way = tuple[int, ...]  # pieces that may not follow each other


class Restriction(NamedTuple):
    """A restriction for cars; `via` are nodes or ways."""

    kind: str
    froms: tuple[int, ...]
    via: tuple[int, ...]
    by_ways: bool
    tos: tuple[int, ...]


class Pieces(NamedTuple):
    """The pieces of roads: points where each begins and ends, its road, and whether it leads against its points."""

    tails: Ints
    heads: Ints
    road: Ints
    backward: NDArray[np.bool_]


def read_kind(tags: Mapping[str, str]) -> str:
    """Return the kind of a restriction for cars, or what it is counted as."""
    if _CARS & {part.strip() for part in tags.get("except", "").split(";")}:
        return NOT_FOR_CARS
    kind = next((tags[tag].strip() for tag in _TAGS if tag in tags), None)
    if kind is None:
        if any(f"{tag}:conditional" in tags for tag in _TAGS):
            return CONDITIONAL
        return NOT_FOR_CARS if any(tag.startswith("restriction:") for tag in tags) else INCOMPLETE
    if kind in _ON_RED or (kind in _KINDS and _HOURS & tags.keys()):
        return CONDITIONAL
    return kind if kind in _KINDS else INCOMPLETE


@dataclass
class Restrictions:
    """Collects the restrictions of a file, and counts those that are not read."""

    found: list[Restriction] = field(default_factory=list)
    left_out: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys((CONDITIONAL, NOT_FOR_CARS, OFF_ROADS, INCOMPLETE), 0)
    )

    def add(self, tags: Mapping[str, str], members: Iterable[Member]) -> None:
        """Read one relation whose `type` is `RELATION`."""
        kind = read_kind(tags)
        restriction = _of_members(kind, list(members)) if kind in _KINDS else None
        if restriction is None:
            self.left_out[INCOMPLETE if kind in _KINDS else kind] += 1
        elif len(self.found) >= MAX_RESTRICTIONS:
            raise NetworkError(f"it holds more than {MAX_RESTRICTIONS} turn restrictions")
        else:
            self.found.append(restriction)

    def bans(self, pieces: Pieces, way_ids: Ints, node_ids: Ints) -> list[Way]:
        """Return which pieces may not follow each other, given the ids of roads and points; count what bans nothing."""
        ways = {way for r in self.found for way in (*r.froms, *r.tos, *(r.via if r.by_ways else ()))}
        nodes = {node for r in self.found if not r.by_ways for node in r.via}
        search = _PieceSearch(pieces, _numbers(way_ids, ways), _numbers(node_ids, nodes))
        bans: set[Way] = set()
        allowed: dict[Way, set[int]] = {}
        for restriction in self.found:
            chains = search.chains(restriction)
            if isinstance(chains, str):
                self.left_out[chains] += 1
                continue
            if restriction.kind.startswith("only_"):
                for chain in chains:
                    allowed.setdefault(chain[:-1], set()).add(chain[-1])
            else:
                bans.update(chains)
            _check_room(len(bans))
        for before, allowed_on in allowed.items():
            bans.update((*before, other) for other in search.leaving(before[-1]) if other not in allowed_on)
            _check_room(len(bans))
        return sorted(bans)


def _check_room(n_bans: int) -> None:
    if n_bans > MAX_BANS:
        raise NetworkError(f"its turn restrictions ban more than {MAX_BANS} turns")


def _of_members(kind: str, members: Sequence[Member]) -> Restriction | None:
    """Return the restriction that members state, None where they do not."""
    if len(members) >= MOST_MEMBERS:
        return None
    by_role: dict[str, list[tuple[str, int]]] = {"from": [], "via": [], "to": []}
    for what, number, role in members:
        if role in by_role and (what, number) not in by_role[role]:
            by_role[role].append((what, number))
    froms, vias, tos = (by_role[role] for role in ("from", "via", "to"))
    kinds = {what for what, _ in vias}
    if not (froms and vias and tos) or {what for what, _ in (*froms, *tos)} != {"way"}:
        return None
    if (len(froms) > 1 and kind != "no_entry") or (len(tos) > 1 and kind != "no_exit"):
        return None
    if kinds != {"way"} and not (kinds == {"node"} and len(vias) == 1):
        return None
    numbers = [tuple(number for _, number in part) for part in (froms, vias, tos)]
    return Restriction(kind, numbers[0], numbers[1], kinds == {"way"}, numbers[2])


def _numbers(ids: Ints, wanted: set[int]) -> dict[int, int]:
    """Return at which place each of the wanted ids stands first."""
    if not wanted:
        return {}
    places = np.flatnonzero(np.isin(ids, np.fromiter(wanted, dtype=np.int64, count=len(wanted))))
    return dict(zip(ids[places[::-1]].tolist(), places[::-1].tolist(), strict=True))


class _PieceSearch:
    """Finds the pieces that restrictions are about."""

    def __init__(self, pieces: Pieces, roads: Mapping[int, int], points: Mapping[int, int]) -> None:
        self.tails, self.heads, self.backward = pieces.tails, pieces.heads, pieces.backward
        self.roads, self.points = roads, points
        wanted: Bools = np.isin(pieces.road, np.fromiter(roads.values(), dtype=np.int64, count=len(roads)))
        self.of_road: dict[int, list[int]] = {}
        for piece in np.flatnonzero(wanted).tolist():
            self.of_road.setdefault(int(pieces.road[piece]), []).append(piece)
        self.order = np.argsort(pieces.tails, kind="stable")
        self.starts = pieces.tails[self.order]

    def leaving(self, piece: int) -> list[int]:
        """Return the pieces that start where this one ends."""
        point = self.heads[piece]
        first, last = (np.searchsorted(self.starts, point, side=side) for side in ("left", "right"))
        found: list[int] = self.order[first:last].tolist()
        return found

    def chains(self, r: Restriction) -> list[Way] | str:
        """Return the pieces from `from` to `to`, or what a restriction is counted as that has none."""
        known = [[self.of_road.get(self.roads.get(way, -1), []) for way in ways] for ways in (r.froms, r.tos)]
        froms, tos = ([pieces for pieces in side if pieces] for side in known)
        if not froms or not tos:
            return OFF_ROADS
        if r.by_ways:
            if not all(self.of_road.get(self.roads.get(way, -1)) for way in r.via):
                return OFF_ROADS
            found = [self._by_ways(a, r.via, b) for a, b in product(froms, tos)]
        elif r.via[0] not in self.points:
            return INCOMPLETE
        else:
            point = self.points[r.via[0]]
            found = [self._by_point(a, point, b, u_turn=r.kind.endswith("u_turn")) for a, b in product(froms, tos)]
        chains = [chain for part in found if not isinstance(part, str) for chain in part]
        return chains or next(part for part in found if isinstance(part, str))

    def _by_point(self, a: Sequence[int], point: int, b: Sequence[int], *, u_turn: bool) -> list[Way] | str:
        for road in (a, b):
            if not any(point in (self.tails[piece], self.heads[piece]) for piece in road):
                return INCOMPLETE
        ins = [piece for piece in a if self.heads[piece] == point]
        outs = [piece for piece in b if self.tails[piece] == point]
        pairs: list[Way] = list(product(ins, outs))
        if u_turn and a is b:
            pairs = [(p, q) for p, q in pairs if self.tails[p] == self.heads[q]]
        elif len(pairs) > 1:
            return INCOMPLETE
        return pairs or OFF_ROADS

    def _by_ways(self, a: Sequence[int], via: Sequence[int], b: Sequence[int]) -> list[Way] | str:
        """Return the one chain by way of whole ways, in the order stated or the opposite one."""
        chains: list[Way] = []
        for ways in {tuple(via), tuple(reversed(via))}:
            partial: list[Way] = [(piece,) for piece in a]
            for way in ways:
                runs = self._runs(self.roads[way])
                partial = [
                    (*chain, *run) for chain in partial for run in runs if self.heads[chain[-1]] == self.tails[run[0]]
                ]
            chains += [(*chain, q) for chain in partial for q in b if self.heads[chain[-1]] == self.tails[q]]
        return chains if len(chains) == 1 else INCOMPLETE

    def _runs(self, road: int) -> list[Way]:
        """Return the pieces of a whole road one after the other, for each direction in which it is an unbroken line."""
        runs = []
        for backward in (False, True):
            pieces = [piece for piece in self.of_road[road] if self.backward[piece] == backward]
            by_tail = {int(self.tails[piece]): piece for piece in pieces}
            ends = {int(self.heads[piece]) for piece in pieces}
            starts = [piece for tail, piece in by_tail.items() if tail not in ends]
            if len(by_tail) != len(pieces) or len(starts) != 1:
                continue
            run = starts
            while len(run) < len(pieces) and (onward := by_tail.get(int(self.heads[run[-1]]))) is not None:
                run.append(onward)
            if len(run) == len(pieces):
                runs.append(tuple(run))
        return runs
