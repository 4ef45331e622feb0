"""Report: what learners did, as one table, one record, one verdict in plain words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

from routesim.results.bands import Band
from routesim.results.record import Record
from routesim.results.run import Scalar

if TYPE_CHECKING:
    import pyarrow as pa

Row: TypeAlias = dict[str, Scalar]
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


@dataclass(frozen=True, eq=False)
class Report:
    """What is told of an experiment.

    `table` has a flat row for each setting and learner; `cells` are the same in a few words, under `columns`, for the
    terminal. `bands` are curves with bands by panel and learner. `rounds` is the thinned trace of every run.
    """

    record: Record
    table: list[Row]
    heading: str
    columns: list[str]
    cells: list[list[str]]
    verdict: str
    bands: dict[str, dict[str, Band]]
    rounds: "pa.Table"
