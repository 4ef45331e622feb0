"""The report of traffic in continuous time: mean trips beside equilibrium and optimum, and the record over time."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from routesim.assignment.references import References
from routesim.report.summary import (
    Group,
    Report,
    Row,
    against,
    best_learner,
    counted,
    shortest_path_row,
    signed,
    with_half,
)
from routesim.report.tables import tables_by_learner
from routesim.results.bands import Band, half_width
from routesim.results.depth import physics_of
from routesim.results.from_results import record_traffic
from routesim.results.thinned_traffic import COUNTS, TrafficRun
from routesim.roads.network import RoadNetwork

Groups: TypeAlias = Sequence[Group[TrafficRun]]


class Equilibrium(NamedTuple):
    """The mean trip in seconds of the day-to-day equilibrium and its gap; NaN where it is not known."""

    mean_s: float = math.nan
    gap: float = math.nan

    def beside(self, mean_s: float) -> dict[str, float]:
        """Return both, and how far a mean trip lies above, as a fraction."""
        return {
            "day_to_day_equilibrium_s": self.mean_s,
            "day_to_day_gap": self.gap,
            "distance_to_day_to_day_equilibrium": mean_s / self.mean_s - 1,
        }


class RoadsDriven(NamedTuple):
    """The roads of a simulation, its window, whether trips have further costs, and the references.

    Static references are for roads that congest as static assignments assume, the equilibrium is for all others.
    """

    network: RoadNetwork
    window_s: float
    costs: bool
    references: References
    equilibrium: Equilibrium = Equilibrium()


def report_traffic(title: str, groups: Groups, roads: RoadsDriven) -> Report:
    """Return the report of traffic in continuous time; groups in the order in which they are to be shown."""
    user, system = roads.references
    record = record_traffic(
        {group.label: group.runs for group in groups},
        title,
        roads.network,
        roads.window_s,
        informed={group.label: group.informed for group in groups},
        costs=roads.costs,
        references={
            "user equilibrium": user,
            "system optimum": system,
            "day-to-day equilibrium": roads.equilibrium.mean_s,
        },
    )
    bands = {
        played.label: Band(record.step_ends.astype(np.int64), played.curve, played.lower, played.upper)
        for played in record.learners
    }
    rows = [_row(group, roads) for group in groups]
    notices = tuple(f"{played.label}: {notice}" for played in record.learners for notice in played.notices)
    told = _tell(roads, rows, groups)
    tables = tables_by_learner({group.label: [run.tables for run in group.runs] for group in groups})
    return Report(record, rows, *told, {"": bands}, _trace(groups), str(rows[0]["physics"]), notices, tables)


def _row(group: Group[TrafficRun], roads: RoadsDriven) -> Row:
    runs = group.runs
    means = [float(run.summary.get("mean_travel_time_s", np.nan)) for run in runs]
    mean = float(np.mean(means))
    row: Row = {"learner": group.label, "informed": group.informed, "physics": physics_of(runs)}
    row |= {
        name: round(float(np.mean([float(run.summary.get(name, 0)) for run in runs])), 3)
        for name in (*COUNTS, "forced_moves", "roads_above_capacity")
    }
    row |= _queues(runs)
    numbers = {
        "mean_trip_s": mean,
        "plus_minus_s": float(half_width(means)),
        "median_trip_s": float(np.mean([run.quantiles[50] for run in runs])),
        "slowest_tenth_s": float(np.mean([run.quantiles[90] for run in runs])),
        **roads.references.beside(mean),
        **roads.equilibrium.beside(mean),
    }
    if "mean_cost" in runs[0].summary:
        costs = [float(run.summary["mean_cost"]) for run in runs]
        numbers |= {"mean_cost": float(np.mean(costs)), "mean_cost_plus_minus": float(half_width(costs))}
    # What was not measured is left out; what one replication cannot tell, half the width of a band, is None.
    row |= {name: float(f"{value:.10g}") for name, value in numbers.items() if np.isfinite(value)}
    return row | {name: None for name in numbers if name.endswith(_HALVES) and name not in row}


def _queues(runs: Sequence[TrafficRun]) -> Row:
    """Return how many vehicles stood in queues and waited to enter at the worst time, nothing without queues."""
    worst = []
    for run in runs:
        if run.standing_at is None or run.standing is None:
            return {}
        steps = run.standing_at[:, 0]
        in_steps = [np.bincount(steps, run.standing[:, column], minlength=1) for column in (1, 2)]
        worst.append([float(counts.max()) for counts in in_steps])
    queued, waiting = np.mean(worst, axis=0)
    never_in = float(np.mean([float(run.summary.get("waiting_to_enter", 0)) for run in runs]))
    return {"most_in_queues": round(queued, 3), "most_waiting": round(waiting, 3), "never_entered": round(never_in, 3)}


_HALVES = ("plus_minus", "plus_minus_s")


def _tell(roads: RoadsDriven, rows: list[Row], groups: Groups) -> tuple[str, list[str], list[list[str]], str]:
    costs, (user, system) = roads.costs, roads.references
    excess_of, excess_over = "excess_over_system_optimum", "above system optimum"
    if np.isfinite(roads.equilibrium.mean_s):
        excess_of, excess_over = "distance_to_day_to_day_equilibrium", "against day-to-day equilibrium"
    columns = ["router", "mean trip, s", "slowest tenth above, s"]
    if costs or any(excess_of in row for row in rows):
        columns.append("mean cost" if costs else excess_over)
    cells = []
    for row in rows:
        last = f"{row.get('mean_cost', float('nan')):.1f}"
        if not costs:
            excess = row.get(excess_of)
            last = "" if excess is None else signed(excess)
        told = [
            str(row["learner"]),
            with_half(row.get("mean_trip_s", float("nan")), row["plus_minus_s"]),
            f"{row.get('slowest_tenth_s', float('nan')):.1f}",
            last,
        ]
        cells.append(told[: len(columns)])
    heading = f"{rows[0]['vehicles']:,.0f} vehicles, {counted(len(groups[0].runs))}; physics: {rows[0]['physics']}"
    if np.isfinite(user):
        heading += (
            f"; static user equilibrium {user:.1f} s a trip, system optimum {system:.1f} s (references, no bounds)"
        )
    if np.isfinite(roads.equilibrium.mean_s):
        settled, gap = roads.equilibrium
        heading += f"; day-to-day equilibrium {settled:.1f} s a trip with a gap of {gap:.1%} (a reference, no bound)"
    key = "mean_cost" if costs else "mean_trip_s"
    measured = [row for row in rows if key in row]
    if not measured:
        return heading, columns, cells, "No trip that was to be measured ended."
    best, learning = best_learner(measured, groups, key)
    unit = "cost" if costs else "s"
    among = " of those that were not told how roads congest" if learning else ""
    verdict = f"{best['learner']} did best{among}: {best[key]:.1f} {unit} a trip"
    if not costs and np.isfinite(system):
        verdict += f", {signed(float(best['mean_trip_s']) / system - 1)} against the static system optimum"
    if not costs and np.isfinite(roads.equilibrium.mean_s):
        verdict += (
            f", {signed(float(best['mean_trip_s']) / roads.equilibrium.mean_s - 1)} against the day-to-day equilibrium"
        )
    fixed = shortest_path_row(rows, groups)
    if fixed is not None and fixed is not best and key in fixed:
        others = "sending everyone down the path that is quickest on empty roads"
        verdict += f", and {against(float(best[key]), float(fixed[key]), others)}"
    return heading, columns, cells, f"{verdict}."


def _trace(groups: Groups) -> Any:
    """Return one row for each router, replication and step of departure."""
    import pyarrow as pa

    tables = []
    for group in groups:
        for replication, run in enumerate(group.runs):
            steps = len(run.departures)
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = run.totals / run.arrived
            columns: dict[str, Any] = {
                "learner": [group.label] * steps,
                "replication": np.full(steps, replication, dtype=np.int32),
                "start_s": run.start_s + np.arange(steps) * run.bin_s,
                "departures": run.departures,
                "arrived": run.arrived,
                "mean_trip": pa.array(mean, mask=run.arrived == 0),
            }
            tables.append(pa.table(columns))
    return pa.concat_tables(tables)
