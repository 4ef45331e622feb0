"""The report of rounds: regret on arms, travel times on roads, and the record of loads and routes."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.learners.base import Traits
from routesim.report.summary import Report, Row
from routesim.results.bands import Band, half_width, regret_band, standard_error
from routesim.results.from_results import record_rounds
from routesim.results.record import Record
from routesim.results.run import Run, Scalar
from routesim.scenario.kinds import AnyScenario, CityScenario
from routesim.scenario.units import Unit, city_environment

Floats: TypeAlias = NDArray[np.float64]
Group: TypeAlias = tuple[dict[str, Scalar], str, list[Run]]

TRACE_ROWS = 1000


def report_rounds(scenario: AnyScenario, parts: Mapping[Unit, Run]) -> Report:
    """Return the report of a scenario of arms or of roads in rounds."""
    groups = _groups(parts)
    panels: dict[str, dict[str, Band]] = {}
    for setting, label, runs in groups:
        panels.setdefault(words(setting), {})[label] = regret_band(runs)
    labels = {label for _, label, _ in groups}
    if len(panels) > len(labels):  # one panel for each learner, or for each setting, whichever are fewer
        turned: dict[str, dict[str, Band]] = {}
        for title, bands in panels.items():
            for label, band in bands.items():
                turned.setdefault(label, {})[title] = band
        panels = turned
    record = _record(scenario, groups)
    if isinstance(scenario, CityScenario):
        rows = [_city_row(label, runs) for _, label, runs in groups]
        told = _tell_city(scenario, rows)
    else:
        rows = [_regret_row(setting, label, runs) for setting, label, runs in groups]
        told = _tell_arms(scenario, rows, groups)
    return Report(record, rows, *told, panels, _trace(groups))


def words(setting: Mapping[str, Scalar]) -> str:
    """Return a setting in words."""
    return ", ".join(f"{name} {value}" for name, value in setting.items())


def _groups(parts: Mapping[Unit, Run]) -> list[Group]:
    """Return the replications of each setting and learner, in the order of the scenario."""
    found: dict[tuple[int, int], Group] = {}
    for unit in sorted(parts, key=lambda one: (one.setting_number, one.learner, one.replication)):
        place = unit.setting_number, unit.learner
        found.setdefault(place, (dict(unit.setting), unit.label, []))[2].append(parts[unit])
    return list(found.values())


def milestones(rounds: int) -> list[int]:
    """Return the powers of ten from 1,000 on that fit into `rounds`, and `rounds` itself."""
    return [*(10**power for power in range(3, 19) if 10**power < rounds), rounds]


def _regret_row(setting: dict[str, Scalar], label: str, runs: Sequence[Run]) -> Row:
    """Return the average regret at each milestone with the half width of its band."""
    row: Row = {**setting, "learner": label, "informed": bool(runs[0].details.get("informed", False))}
    row["mean_reward"] = _round(np.mean([_mean(run) for run in runs]))
    row["best_possible"] = _round(np.mean([run.comparator_value for run in runs]))
    for number in milestones(runs[0].rounds):
        values = [float(_at(run, run.average_regret, number)) for run in runs]
        row[f"average_regret_{number}"] = _round(np.mean(values))
        row[f"plus_minus_{number}"] = _round(half_width(values))
    return row


def _tell_arms(scenario: Any, rows: list[Row], groups: list[Group]) -> tuple[str, list[str], list[list[str]], str]:
    marks = milestones(groups[0][2][0].rounds)
    columns = [*groups[0][0], "learner", *(f"{number:,}" for number in marks)]
    cells = [
        [
            *(str(row[name]) for name in columns[: len(groups[0][0]) + 1]),
            *(f"{row[f'average_regret_{number}']:.4f} ± {row[f'plus_minus_{number}']:.4f}" for number in marks),
        ]
        for row in rows
    ]
    heading = f"average regret by rounds, mean ± 95 % band over {scenario.replications} replications"
    last = f"average_regret_{marks[-1]}"
    learning = [row for row in rows if not row["informed"]] or rows
    best = min(learning, key=lambda row: float(row[last]))
    where = words({name: best[name] for name in groups[0][0]})
    share = float(best["mean_reward"]) / float(best["best_possible"]) if float(best["best_possible"]) > 0 else 1.0
    verdict = (
        f"{best['learner']} did best of those that had to learn ({where}): it lost {float(best[last]):.4f} a round "
        f"against the best possible, and earned {share:.1%} of it over all rounds."
    )
    return heading, columns, cells, verdict


def _city_row(label: str, runs: Sequence[Run]) -> Row:
    """Return one learner's trips: over all rounds, and in the end, which is the last tenth of them.

    A trip that bothers its traveller counts for more than its seconds. `plus_minus_s` is the half width of the 95 %
    band of the mean over all rounds; `best_possible_s` and `best_in_the_end_s` are what the comparator reached, and
    `bound_s` is what nobody can go below.
    """
    trips = [-_mean(run) for run in runs]
    late = [-_late(run, run.expected_rewards) for run in runs]
    compared = [run.comparator_rewards for run in runs]
    best_late = [
        -run.comparator_value if rewards is None else -_late(run, rewards)
        for run, rewards in zip(runs, compared, strict=True)
    ]
    end, best_end = float(np.mean(late)), float(np.mean(best_late))
    return {
        "learner": label,
        "informed": bool(runs[0].details.get("informed", False)),
        "mean_trip_s": _round(np.mean(trips)),
        "plus_minus_s": _round(half_width(trips)),
        "mean_trip_in_the_end_s": _round(end),
        "standard_error_s": _round(standard_error(late)),
        "best_possible_s": _round(-np.mean([run.comparator_value for run in runs])),
        "best_in_the_end_s": _round(best_end),
        "bound_s": _round(-np.mean([run.comparator_bound for run in runs])),
        "above_best": _round(end / best_end - 1),
    }


def _tell_city(scenario: CityScenario, rows: list[Row]) -> tuple[str, list[str], list[list[str]], str]:
    measure = "mean trip, s" if scenario.city.travellers is None else "mean cost, s"
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
    found = city_environment(scenario).actions.n_actions
    routes = "every path of the graph" if found is None else f"{found} routes"
    if found is not None and found < scenario.city.routes and scenario.city.method != "all":
        routes += f" (of {scenario.city.routes} asked for)"
    heading = f"{routes}, {scenario.rounds:,} trips, {scenario.replications} replications"
    if float(rows[0]["bound_s"]) < float(rows[0]["best_possible_s"]) * (1 - 1e-9):
        heading += (
            f"; the best plan known takes {rows[0]['best_possible_s']:.1f} s, nobody can take less than "
            f"{rows[0]['bound_s']:.1f} s"
        )
    return heading, columns, cells, _city_verdict(rows, {one.label: one.traits for one in scenario.learners})


def _city_verdict(rows: list[Row], traits: Mapping[str, Traits]) -> str:
    learning = [row for row in rows if not row["informed"] and traits[str(row["learner"])].learns]
    best = min(learning or rows, key=lambda row: float(row["mean_trip_in_the_end_s"]))
    trip = float(best["mean_trip_in_the_end_s"])
    told = (
        f"{best['learner']} did best{' of those that had to learn' if learning else ''}: {trip:.1f} s a trip in the "
        f"end, {abs(float(best['above_best'])):.1%} from the best possible"
    )
    fixed = next((row for row in rows if traits[str(row["learner"])].takes_shortest_path), best)
    if fixed is best:
        return f"{told}."
    saved = 1 - trip / float(fixed["mean_trip_in_the_end_s"])
    return f"{told}, and {saved:.0%} less than sending everyone down the shortest path."


def _record(scenario: AnyScenario, groups: list[Group]) -> Record:
    several = len({words(setting) for setting, _, _ in groups}) > 1
    labelled = {f"{words(setting)}: {label}" if several else label: runs for setting, label, runs in groups}
    network = scenario.city.network() if isinstance(scenario, CityScenario) else None
    return record_rounds(labelled, scenario.title, network)


def _trace(groups: list[Group]) -> Any:
    """Return every run as at most some thousand rows; see the columns in the reference of results."""
    import pyarrow as pa

    tables = []
    for setting, label, runs in groups:
        for run in runs:
            ends = _ends(run)
            kept = np.unique(np.linspace(0, len(ends) - 1, min(len(ends), TRACE_ROWS)).round().astype(np.int64))
            columns: dict[str, Any] = {
                name: [value] * len(kept) for name, value in {**setting, "learner": label}.items()
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


def _ends(run: Run) -> NDArray[np.int64]:
    """Return the round at the end of each row of a run."""
    return np.arange(1, run.rounds + 1) if run.ends is None else run.ends


def _at(run: Run, values: Floats, number: int) -> float:
    """Return the value at a round, or at the first row that ends after it."""
    return float(values[min(int(np.searchsorted(_ends(run), number)), len(values) - 1)])


def _mean(run: Run) -> float:
    return float(np.average(run.expected_rewards, weights=np.diff(_ends(run), prepend=0)))


def _late(run: Run, values: Floats) -> float:
    """Return the mean over the last tenth of the rounds, as far as rows can tell."""
    ends = _ends(run)
    rows = ends > run.rounds - max(1, run.rounds // 10)
    return float(np.average(values[rows], weights=np.diff(ends, prepend=0)[rows]))


def _round(value: Any) -> float:
    """Return a number without the last digits, which rounding leaves to chance."""
    return float(f"{float(value):.10g}")
