"""Report: what learners did, as one table, one record, one verdict in plain words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

from routesim.results.bands import Band
from routesim.results.record import Record
from routesim.results.run import Scalar

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Row: TypeAlias = dict[str, Any]
"""Scalars by name; None where there is none, as half the width of the band of a single replication."""

Part = TypeVar("Part")


class Group(NamedTuple, Generic[Part]):
    """The replications of one learner or router in one setting, and what it says of itself."""

    setting: dict[str, Scalar]
    label: str
    informed: bool
    learns: bool
    takes_shortest_path: bool
    runs: list[Part]


def best_learner(rows: Sequence[Row], groups: Sequence[Group[Any]], key: str) -> tuple[Row, bool]:
    """Return the row with the least `key` of those that had to learn, or of all, and whether any had to."""
    had_to = {group.label for group in groups if group.learns and not group.informed}
    learning = [row for row in rows if row["learner"] in had_to]
    return min(learning or rows, key=lambda row: float(row[key])), bool(learning)


def shortest_path_row(rows: Sequence[Row], groups: Sequence[Group[Any]]) -> Row | None:
    """Return the first row of one that sends everyone down the path that is quickest on empty roads."""
    shortest = {group.label for group in groups if group.takes_shortest_path}
    return next((row for row in rows if row["learner"] in shortest), None)


def signed(share: float) -> str:
    """Return a share as a percentage with its sign: tenths below 100 %, whole numbers above; never -0.0.

    >>> signed(0.0012), signed(3.751), signed(-0.473), signed(-0.0001)
    ('+0.1 %', '+375 %', '-47.3 %', '+0.0 %')
    """
    tenths = round(100 * share, 1) + 0.0
    return f"{tenths:+.1f} %" if abs(tenths) < 100 else f"{tenths:+.0f} %"


def against(trip: float, other: float, whom: str) -> str:
    """Return in words how much less, or more, a trip takes than another.

    >>> against(70.0, 100.0, "by bus"), against(105.0, 100.0, "by bus"), against(100.0, 100.0, "by bus")
    ('30 % less than by bus', '5 % more than by bus', 'as much as by bus')
    """
    percent = round(100 * (trip / other - 1))
    return f"{abs(percent)} % {'less' if percent < 0 else 'more'} than {whom}" if percent else f"as much as {whom}"


def counted(replications: int) -> str:
    """Return the number of replications in words; a single one gives no interval, and that is said.

    >>> counted(5), counted(1)
    ('5 replications', '1 replication, which gives no interval')
    """
    return f"{replications} replications" if replications > 1 else "1 replication, which gives no interval"


def with_half(value: float, half: float | None, digits: int = 1) -> str:
    """Return a value with half the width of its interval, or alone where there is none.

    >>> with_half(12.34, 0.56), with_half(12.34, None)
    ('12.3 ± 0.6', '12.3')
    """
    return f"{value:.{digits}f}" if half is None else f"{value:.{digits}f} ± {half:.{digits}f}"


@dataclass(frozen=True, eq=False)
class Report:
    """What is told of an experiment.

    `table` has a flat row for each setting and learner; `cells` are the same in a few words, under `columns`, for the
    terminal. `bands` are curves with bands by panel and learner. `rounds` is the thinned trace of every run. In traffic
    `physics` says what it did to travel times, and `notices` where that model was out of its depth; `tables` are link
    volumes and the like, and `demand` has figures of what was loaded.
    """

    record: Record
    table: list[Row]
    heading: str
    columns: list[str]
    cells: list[list[str]]
    verdict: str
    bands: dict[str, dict[str, Band]]
    rounds: "pa.Table"
    physics: str = ""
    notices: tuple[str, ...] = ()
    tables: Mapping[str, "pd.DataFrame"] = field(default_factory=dict)
    demand: Mapping[str, Any] = field(default_factory=dict)
