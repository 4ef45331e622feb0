"""The report of rounds: regret on arms, travel times on roads, and the record of loads and routes."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from routesim.arrays import Floats
from routesim.report.summary import Group, Report, Row, best_learner, shortest_path_row
from routesim.results.bands import Band, half_width, regret_band, standard_error
from routesim.results.from_results import record_rounds
from routesim.results.record import Record
from routesim.results.run import Run, Scalar
from routesim.roads.network import RoadNetwork

Groups: TypeAlias = Sequence[Group[Run]]

TRACE_ROWS = 1000


class RoadsPlayed(NamedTuple):
    """The roads that rounds were played on, the routes there were in words, and whether trips have further costs."""

    network: RoadNetwork
    routes: str
    costs: bool


def report_rounds(title: str, groups: Groups, roads: RoadsPlayed | None = None) -> Report:
    """Return the report of rounds on arms, or on roads; groups in the order in which they are to be shown."""
    panels: dict[str, dict[str, Band]] = {}
    for group in groups:
        panels.setdefault(words(group.setting), {})[group.label] = regret_band(group.runs)
    labels = {group.label for group in groups}
    if len(panels) > len(labels):  # one panel for each learner, or for each setting, whichever are fewer
        turned: dict[str, dict[str, Band]] = {}
        for panel, bands in panels.items():
            for label, band in bands.items():
                turned.setdefault(label, {})[panel] = band
        panels = turned
    record = _record(title, groups, None if roads is None else roads.network)
    if roads is not None:
        rows = [_city_row(group) for group in groups]
        told = _tell_city(roads, rows, groups)
    else:
        rows = [_regret_row(group) for group in groups]
        told = _tell_arms(rows, groups)
    return Report(record, rows, *told, panels, _trace(groups))


def words(setting: dict[str, Scalar]) -> str:
    """Return a setting in words."""
    return ", ".join(f"{name} {value}" for name, value in setting.items())


def milestones(rounds: int) -> list[int]:
    """Return the powers of ten from 1,000 on that fit into `rounds`, and `rounds` itself."""
    return [*(10**power for power in range(3, 19) if 10**power < rounds), rounds]


def _regret_row(group: Group[Run]) -> Row:
    """Return the average regret at each milestone with the half width of its band."""
    runs = group.runs
    row: Row = {**group.setting, "learner": group.label, "informed": group.informed}
    row["mean_reward"] = _round(np.mean([_mean(run) for run in runs]))
    row["best_possible"] = _round(np.mean([run.comparator_value for run in runs]))
    for number in milestones(runs[0].rounds):
        values = [float(_at(run, run.average_regret, number)) for run in runs]
        row[f"average_regret_{number}"] = _round(np.mean(values))
        row[f"plus_minus_{number}"] = _round(half_width(values))
    return row


def _tell_arms(rows: list[Row], groups: Groups) -> tuple[str, list[str], list[list[str]], str]:
    first = groups[0]
    marks = milestones(first.runs[0].rounds)
    columns = [*first.setting, "learner", *(f"{number:,}" for number in marks)]
    cells = [
        [
            *(str(row[name]) for name in columns[: len(first.setting) + 1]),
            *(f"{row[f'average_regret_{number}']:.4f} ± {row[f'plus_minus_{number}']:.4f}" for number in marks),
        ]
        for row in rows
    ]
    heading = f"average regret by rounds, mean ± 95 % band over {len(first.runs)} replications"
    last = f"average_regret_{marks[-1]}"
    learning = [row for row in rows if not row["informed"]] or rows
    best = min(learning, key=lambda row: float(row[last]))
    where = words({name: best[name] for name in first.setting})
    share = float(best["mean_reward"]) / float(best["best_possible"]) if float(best["best_possible"]) > 0 else 1.0
    verdict = (
        f"{best['learner']} did best of those that had to learn ({where}): it lost {float(best[last]):.4f} a round "
        f"against the best possible, and earned {share:.1%} of it over all rounds."
    )
    return heading, columns, cells, verdict


def _city_row(group: Group[Run]) -> Row:
    """Return one learner's trips: over all rounds, and in the end, which is the last tenth of them.

    A trip that bothers its traveller counts for more than its seconds. `plus_minus_s` is the half width of the 95 %
    band of the mean over all rounds; `best_possible_s` and `best_in_the_end_s` are what the comparator reached, and
    `bound_s` is what nobody can go below.
    """
    runs = group.runs
    trips = [-_mean(run) for run in runs]
    late = [-_late(run, run.expected_rewards) for run in runs]
    compared = [run.comparator_rewards for run in runs]
    best_late = [
        -run.comparator_value if rewards is None else -_late(run, rewards)
        for run, rewards in zip(runs, compared, strict=True)
    ]
    end, best_end = float(np.mean(late)), float(np.mean(best_late))
    return {
        "learner": group.label,
        "informed": group.informed,
        "mean_trip_s": _round(np.mean(trips)),
        "plus_minus_s": _round(half_width(trips)),
        "mean_trip_in_the_end_s": _round(end),
        "standard_error_s": _round(standard_error(late)),
        "best_possible_s": _round(-np.mean([run.comparator_value for run in runs])),
        "best_in_the_end_s": _round(best_end),
        "bound_s": _round(-np.mean([run.comparator_bound for run in runs])),
        "above_best": _round(end / best_end - 1),
    }


def _tell_city(roads: RoadsPlayed, rows: list[Row], groups: Groups) -> tuple[str, list[str], list[list[str]], str]:
    measure = "mean cost, s" if roads.costs else "mean trip, s"
    columns = ["learner", measure, "in the end, s", "above the best possible"]
    cells = [
        [
            str(row["learner"]),
            f"{row['mean_trip_s']:.1f} ± {row['plus_minus_s']:.1f}",
            f"{row['mean_trip_in_the_end_s']:.1f} ± {row['standard_error_s']:.1f}",
            f"{round(float(row['above_best']), 3) + 0.0:+.1%}",
        ]
        for row in rows
    ]
    runs = groups[0].runs
    heading = f"{roads.routes}, {runs[0].rounds:,} trips, {len(runs)} replications"
    if float(rows[0]["bound_s"]) < float(rows[0]["best_possible_s"]) * (1 - 1e-9):
        heading += (
            f"; the best plan known takes {rows[0]['best_possible_s']:.1f} s, nobody can take less than "
            f"{rows[0]['bound_s']:.1f} s"
        )
    return heading, columns, cells, _city_verdict(rows, groups)


def _city_verdict(rows: list[Row], groups: Groups) -> str:
    best, learning = best_learner(rows, groups, "mean_trip_in_the_end_s")
    trip = float(best["mean_trip_in_the_end_s"])
    told = (
        f"{best['learner']} did best{' of those that had to learn' if learning else ''}: {trip:.1f} s a trip in the "
        f"end, {abs(float(best['above_best'])):.1%} from the best possible"
    )
    fixed = shortest_path_row(rows, groups)
    if fixed is None or fixed is best:
        return f"{told}."
    saved = 1 - trip / float(fixed["mean_trip_in_the_end_s"])
    return f"{told}, and {saved:.0%} less than sending everyone down the shortest path."


def _record(title: str, groups: Groups, network: RoadNetwork | None) -> Record:
    several = len({words(group.setting) for group in groups}) > 1
    labelled = {f"{words(group.setting)}: {group.label}" if several else group.label: group.runs for group in groups}
    return record_rounds(labelled, title, network)


def _trace(groups: Groups) -> Any:
    """Return every run as at most some thousand rows; see the columns in the reference of results."""
    import pyarrow as pa

    tables = []
    for group in groups:
        for run in group.runs:
            ends = run.ends
            kept = np.unique(np.linspace(0, len(ends) - 1, min(len(ends), TRACE_ROWS)).round().astype(np.int64))
            columns: dict[str, Any] = {
                name: [value] * len(kept) for name, value in {**group.setting, "learner": group.label}.items()
            }
            columns |= {
                "replication": np.full(len(kept), run.replication, dtype=np.int32),
                "round": ends[kept],
                "action": run.actions[kept],
                "expected_reward": run.expected_rewards[kept],
                "reward": run.rewards[kept],
                "average_regret": run.average_regret[kept],
                "average_regret_upper": run.average_regret_upper[kept],
                "average_realised_regret": run.average_realised_regret[kept],
            }
            tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def _at(run: Run, values: Floats, number: int) -> float:
    """Return the value at a round, or at the first row that ends after it."""
    return float(values[min(int(np.searchsorted(run.ends, number)), len(values) - 1)])


def _mean(run: Run) -> float:
    return float(np.average(run.expected_rewards, weights=np.diff(run.ends, prepend=0)))


def _late(run: Run, values: Floats) -> float:
    """Return the mean over the last tenth of the rounds, as far as rows can tell."""
    ends = run.ends
    rows = ends > run.rounds - max(1, run.rounds // 10)
    return float(np.average(values[rows], weights=np.diff(ends, prepend=0)[rows]))


def _round(value: Any) -> float:
    """Return a number without the last digits, which rounding leaves to chance."""
    return float(f"{float(value):.10g}")
