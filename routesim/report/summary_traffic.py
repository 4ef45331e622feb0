"""The report of traffic in continuous time: mean trips beside equilibrium and optimum, and the record over time."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.assignment.assignment import assign
from routesim.report.summary import Report, Row
from routesim.results.bands import Band, half_width
from routesim.results.from_results import record_traffic
from routesim.results.thinned_traffic import TrafficRun
from routesim.scenario.kinds import TrafficScenario
from routesim.scenario.units import Unit, simulator
from routesim.traffic.routers.base import RouterTraits
from routesim.traffic.simulator import TrafficSimulator

Floats: TypeAlias = NDArray[np.float64]


def report_traffic(scenario: TrafficScenario, parts: Mapping[Unit, TrafficRun]) -> Report:
    """Return the report of a scenario in continuous time."""
    world = simulator(scenario)
    groups: dict[str, list[TrafficRun]] = {}
    traits = {choice.label: choice.traits for choice in scenario.learners}
    informed = {label: one.informed for label, one in traits.items()}
    for unit in sorted(parts, key=lambda one: (one.learner, one.replication)):
        groups.setdefault(unit.label, []).append(parts[unit])
    user, system = _references(world)
    rows = [_row(label, informed[label], runs, user, system) for label, runs in groups.items()]
    record = record_traffic(
        groups,
        scenario.title,
        world.network,
        world.window_s,
        informed=informed,
        costs=world.trip_costs is not None,
        references={"user equilibrium": user, "system optimum": system},
    )
    bands = {
        played.label: Band(record.step_ends.astype(np.int64), played.curve, played.lower, played.upper)
        for played in record.learners
    }
    told = _tell(scenario, rows, traits, user, system)
    return Report(record, rows, *told, {"": bands}, _trace(groups))


def _references(world: TrafficSimulator) -> tuple[float, float]:
    """Return the mean trip of the demand's mean rates in the static user equilibrium and system optimum.

    NaN where roads do not congest as the assignment assumes: by BPR with their own capacities.
    """
    if not world.physics.has_static_references or world.trip_costs is not None:
        return float("nan"), float("nan")
    if world.demand.end_s <= world.demand.start_s:
        return float("nan"), float("nan")
    # A thousandth is closer than the simulation's own chance; large cities would take minutes to do better.
    user, system = (assign(world.network, world.demand, kind, relative_gap=1e-3) for kind in ("user", "system"))
    return user.mean_travel_time_s, system.mean_travel_time_s


def _row(label: str, informed: bool, runs: Sequence[TrafficRun], user: float, system: float) -> Row:
    means = [float(run.summary.get("mean_travel_time_s", np.nan)) for run in runs]
    mean = float(np.mean(means))
    row: Row = {"learner": label, "informed": informed}
    row |= {name: round(float(np.mean([float(run.summary[name]) for run in runs])), 3) for name in _COUNTS}
    numbers = {
        "mean_trip_s": mean,
        "plus_minus_s": float(half_width(means)),
        "median_trip_s": float(np.mean([run.quantiles[50] for run in runs])),
        "slowest_tenth_s": float(np.mean([run.quantiles[90] for run in runs])),
        "user_equilibrium_s": user,
        "system_optimum_s": system,
        "excess_over_system_optimum": mean / system - 1,
        "distance_to_user_equilibrium": mean / user - 1,
    }
    if "mean_cost" in runs[0].summary:
        costs = [float(run.summary["mean_cost"]) for run in runs]
        numbers |= {"mean_cost": float(np.mean(costs)), "mean_cost_plus_minus": float(half_width(costs))}
    return row | {name: float(f"{value:.10g}") for name, value in numbers.items() if np.isfinite(value)}


_COUNTS = ("vehicles", "arrived", "driving", "not_departed", "edge_entries", "measured_trips", "measured_unfinished")


def _tell(
    scenario: TrafficScenario, rows: list[Row], traits: Mapping[str, RouterTraits], user: float, system: float
) -> tuple[str, list[str], list[list[str]], str]:
    costs = scenario.traffic.travellers is not None
    columns = ["router", "mean trip, s", "slowest tenth above, s", "mean cost" if costs else "above system optimum"]
    cells = []
    for row in rows:
        last = f"{row.get('mean_cost', float('nan')):.1f}"
        if not costs:
            excess = row.get("excess_over_system_optimum")
            last = "" if excess is None else f"{excess:+.1%}"
        cells.append(
            [
                str(row["learner"]),
                f"{row.get('mean_trip_s', float('nan')):.1f} ± {row.get('plus_minus_s', 0.0):.1f}",
                f"{row.get('slowest_tenth_s', float('nan')):.1f}",
                last,
            ]
        )
    heading = f"{rows[0]['vehicles']:,.0f} vehicles, {scenario.replications} replications"
    if np.isfinite(user):
        heading += (
            f"; static user equilibrium {user:.1f} s a trip, system optimum {system:.1f} s (references, no bounds)"
        )
    key = "mean_cost" if costs else "mean_trip_s"
    measured = [row for row in rows if key in row]
    if not measured:
        return heading, columns, cells, "No trip that was to be measured ended."
    learning = [row for row in measured if not row["informed"] and traits[str(row["learner"])].learns]
    best = min(learning or measured, key=lambda row: float(row[key]))
    unit = "cost" if costs else "s"
    among = " of those that were not told how roads congest" if learning else ""
    verdict = f"{best['learner']} did best{among}: {best[key]:.1f} {unit} a trip"
    if not costs and np.isfinite(system):
        verdict += f", {float(best['mean_trip_s']) / system - 1:+.1%} from the static system optimum"
    fixed = next((row for row in rows if traits[str(row["learner"])].takes_shortest_path), best)
    if fixed is not best and key in fixed:
        saved = 1 - float(best[key]) / float(fixed[key])
        verdict += f", and {saved:.0%} less than sending everyone down the path that is quickest on empty roads"
    return heading, columns, cells, f"{verdict}."


def _trace(groups: Mapping[str, Sequence[TrafficRun]]) -> Any:
    """Return one row for each router, replication and step of departure."""
    import pyarrow as pa

    tables = []
    for label, runs in groups.items():
        for replication, run in enumerate(runs):
            steps = len(run.departures)
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = run.totals / run.arrived
            columns: dict[str, Any] = {
                "learner": [label] * steps,
                "replication": np.full(steps, replication, dtype=np.int32),
                "start_s": run.start_s + np.arange(steps) * run.bin_s,
                "departures": run.departures,
                "arrived": run.arrived,
                "mean_trip": pa.array(mean, mask=run.arrived == 0),
            }
            tables.append(pa.table(columns))
    return pa.concat_tables(tables)
