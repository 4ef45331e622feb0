"""The known programmes of traffic signals: when which movement at the end of which road has green."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from routesim.arrays import Bools, Floats, Ints, Ints32
from routesim.errors import NetworkError
from routesim.roads.columns import number_row

CYCLE_LIMITS_S = (5.0, 3600.0)


def _no_roads() -> Ints32:
    return np.empty(0, dtype=np.int32)


def _no_seconds() -> Floats:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class SignalTimes:
    """Green intervals of signals whose programme is known, checked when built, read-only, and in order of `edge`.

    Row `i` says that, at the end of road `edge[i]`, those who go on to road `to[i]` (to any, where it is -1) have green
    from second `start_s[i]` of a cycle of `cycle_s[i]` seconds on, for `green_s[i]` seconds, which may reach into the
    next cycle. Second 0 of all cycles is second 0 of the simulation. A movement with several greens in a cycle has
    several rows. All rows of a road have the same cycle, and either all of them name a `to` or none does.

    A node at the end of any of these roads has a known programme: whoever comes on a road, or goes on to one, of which
    no row speaks, is not part of it and passes without signals.

    >>> SignalTimes([0, 0], [2, 3], [90.0, 90.0], [0.0, 35.0], [30.0, 15.0]).green_s.tolist()
    [30.0, 15.0]
    """

    edge: Ints32 = field(default_factory=_no_roads)
    to: Ints32 = field(default_factory=_no_roads)
    cycle_s: Floats = field(default_factory=_no_seconds)
    start_s: Floats = field(default_factory=_no_seconds)
    green_s: Floats = field(default_factory=_no_seconds)

    def __post_init__(self) -> None:
        """Check every rule above but those that need the roads."""
        n = int(np.size(self.edge))
        columns = {}
        for column in fields(self):
            kind = np.int32 if column.name in {"edge", "to"} else np.float64
            columns[column.name] = number_row(getattr(self, column.name), f"signal_times.{column.name}", n, kind)
        order = np.lexsort(tuple(columns[name] for name in ("green_s", "start_s", "to", "edge")))
        for name, values in columns.items():
            object.__setattr__(self, name, values[order])
        self._freeze()
        self._check_rows()

    def _freeze(self) -> None:
        for column in fields(self):
            getattr(self, column.name).flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._freeze()

    def __len__(self) -> int:
        return len(self.edge)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SignalTimes):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in self.columns())

    __hash__ = None  # type: ignore[assignment]  # arrays have none

    def columns(self) -> dict[str, Any]:
        """Return the columns by name."""
        return {column.name: getattr(self, column.name) for column in fields(self)}

    def _check_rows(self) -> None:
        cycle, start, green = self.cycle_s, self.start_s, self.green_s
        least, most = CYCLE_LIMITS_S
        self._refuse(self.edge < 0, "edge", "must be the index of a road")
        self._refuse(self.to < -1, "to", "must be the index of a road, or -1 for all that leave the node")
        self._refuse(~((cycle >= least) & (cycle <= most)), "cycle_s", f"must lie between {least:g} and {most:g}")
        self._refuse(~((start >= 0) & (start < cycle)), "start_s", "must lie between 0 and the end of the cycle")
        self._refuse(~((green > 0) & (green <= cycle)), "green_s", "must be above 0 and at most cycle_s")
        same = self.edge[1:] == self.edge[:-1]
        other = np.concatenate(([False], same & (cycle[1:] != cycle[:-1])))
        self._refuse(other, "cycle_s", "must be the same in all rows of a road")
        mixed = np.concatenate(([False], same & ((self.to[1:] < 0) != (self.to[:-1] < 0))))
        self._refuse(mixed, "to", "must be -1 in all rows of a road or in none")

    def check_roads(self, tails: Ints32, heads: Ints32, signals: Bools) -> None:
        """Refuse rows that do not fit these roads."""
        n = len(tails)
        self._refuse(self.edge >= n, "edge", f"must be an edge from 0 to {n - 1}")
        self._refuse(self.to >= n, "to", f"must be an edge from 0 to {n - 1}, or -1")
        self._refuse(~signals[heads[self.edge]], "edge", "must lead to a node that `signals` marks")
        apart = (self.to >= 0) & (tails[self.to] != heads[self.edge])
        self._refuse(apart, "to", "must start at the node where `edge` ends")

    def _refuse(self, bad: Bools, column: str, rule: str) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            raise NetworkError(
                f"signal_times.{column} {rule}, got {getattr(self, column)[row].item()!r} in the row of edge "
                f"{self.edge[row]}, to {self.to[row]}"
            )

    def renumbered(self, edges: Ints, to: Ints | None = None) -> SignalTimes:
        """Return the rows with road `e` called `edges[e]`; those of roads called -1 are left out.

        `to` gives other numbers to the roads on which movements go on.
        """
        onward = edges if to is None else to
        return self._renamed(edges[self.edge], onward[self.to]) if len(self) else self

    def _renamed(self, edge: Ints, to: Ints) -> SignalTimes:
        kept = (edge >= 0) & ((self.to < 0) | (to >= 0))
        to = np.where(self.to < 0, -1, to)
        return SignalTimes(
            edge=edge[kept].astype(np.int32),
            to=to[kept].astype(np.int32),
            cycle_s=self.cycle_s[kept],
            start_s=self.start_s[kept],
            green_s=self.green_s[kept],
        )

    def to_json(self) -> str:
        """Return all rows as text."""
        return json.dumps({name: values.tolist() for name, values in self.columns().items()}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: object, edges: Mapping[object, int]) -> SignalTimes:
        """Read what `to_json` wrote of roads that are now called `edges[e]`; rows of roads that are gone are left out.

        The text may be anything.
        """
        try:
            stored = json.loads(text)  # type: ignore[arg-type]  # whatever it is not
        except (TypeError, ValueError, RecursionError) as error:
            raise NetworkError(f"signal_times must be JSON as to_graphml writes it: {error}") from None
        names = [column.name for column in fields(cls)]
        if not isinstance(stored, dict) or sorted(stored) != sorted(names):
            raise NetworkError(f"signal_times must be JSON with a list each for {', '.join(names)}")
        for name, values in stored.items():
            kinds = (int,) if name in {"edge", "to"} else (int, float)
            if not isinstance(values, list) or len(values) != len(stored["edge"]):
                raise NetworkError(f"signal_times.{name} must be a list of {len(stored['edge'])} numbers")
            if not all(type(value) in kinds for value in values):
                raise NetworkError(f"signal_times.{name} must hold {'whole ' * (len(kinds) == 1)}numbers")
        times = cls(**stored)
        numbers = [[edges.get(e, -1) for e in column.tolist()] for column in (times.edge, times.to)]
        return times._renamed(np.array(numbers[0], dtype=np.int64), np.array(numbers[1], dtype=np.int64))
