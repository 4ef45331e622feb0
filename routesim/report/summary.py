"""Report: the parts of a scenario, once run, as one table, one record, one verdict in plain words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.results.bands import Band
from routesim.results.record import Record
from routesim.results.run import Scalar
from routesim.scenario.kinds import AnyScenario, TrafficScenario
from routesim.scenario.units import Part, Unit

if TYPE_CHECKING:
    import pyarrow as pa

Floats: TypeAlias = NDArray[np.float64]
Row: TypeAlias = dict[str, Scalar]


@dataclass(frozen=True, eq=False)
class Report:
    """What is told of a scenario.

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


def report(scenario: AnyScenario, parts: Mapping[Unit, Part]) -> Report:
    """Return the report of all units of a scenario without a sweep."""
    from routesim.report.summary_rounds import report_rounds
    from routesim.report.summary_traffic import report_traffic

    if isinstance(scenario, TrafficScenario):
        return report_traffic(scenario, parts)  # type: ignore[arg-type]  # units of traffic give TrafficRuns
    return report_rounds(scenario, parts)  # type: ignore[arg-type]  # all other units give Runs
