"""The report of rounds: regret on arms, travel times on roads, and the record of loads and routes."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from routesim.arrays import Floats
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
from routesim.results.bands import Band, half_width, regret_band, standard_error
from routesim.results.from_results import record_rounds
from routesim.results.record import Record
from routesim.results.run import Run, Scalar
from routesim.roads.network import RoadNetwork

Groups: TypeAlias = Sequence[Group[Run]]

TRACE_ROWS = 1000
_PROVEN = 1e-6  # a plan this close to its bound, relatively, is the best possible


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
    row["best_known"] = _round(np.mean([run.comparator_value for run in runs]))
    row["bound"] = _round(np.mean([run.comparator_bound for run in runs]))
    for number in milestones(runs[0].rounds):
        values = [float(_at(run, run.average_regret, number)) for run in runs]
        row[f"average_regret_{number}"] = _round(np.mean(values))
        row[f"plus_minus_{number}"] = _half(half_width(values))
    return row


def _tell_arms(rows: list[Row], groups: Groups) -> tuple[str, list[str], list[list[str]], str]:
    first = groups[0]
    marks = milestones(first.runs[0].rounds)
    columns = [*first.setting, "learner", *(f"{number:,}" for number in marks)]
    cells = [
        [
            *(str(row[name]) for name in columns[: len(first.setting) + 1]),
            *(with_half(row[f"average_regret_{number}"], row[f"plus_minus_{number}"], 4) for number in marks),
        ]
        for row in rows
    ]
    band = ", mean ± 95 % band over" if len(first.runs) > 1 else " of"
    heading = f"average regret by rounds{band} {counted(len(first.runs))}"
    return heading, columns, cells, _arms_verdict(rows, f"average_regret_{marks[-1]}", list(first.setting))


def _arms_verdict(rows: list[Row], last: str, setting: list[str]) -> str:
    """Return who lost least, against the best possible where it is proven, or between that and the bound."""
    learning = [row for row in rows if not row["informed"]]
    best = min(learning or rows, key=lambda row: float(row[last]))
    where = words({name: best[name] for name in setting})
    lost, earned, known, bound = (float(best[key]) for key in (last, "mean_reward", "best_known", "bound"))
    proven = _is_proven(known, bound)
    whom = "the best possible" if proven else "the best plan known"
    gap = "lost" if lost >= 0 else "gained"
    told = (
        f"{best['learner']} did best{' of those that had to learn' if learning else ''} ({where}): it {gap} "
        f"{abs(lost):.4f} a round against {whom}"
    )
    if not proven:
        told += f" (at most {lost + bound - known:.4f} against the best possible)"
    if known <= 0:
        return f"{told}."
    if proven:
        return f"{told}, and earned {100 * earned / known:.1f} % of it over all rounds."
    low, high = 100 * earned / bound, min(100.0, 100 * earned / known)
    return f"{told}, and earned between {low:.1f} % and {high:.1f} % of that over all rounds."


def _city_row(group: Group[Run]) -> Row:
    """Return one learner's trips: over all rounds, and in the end, which is the last tenth of them.

    A trip that bothers its traveller counts for more than its seconds. `plus_minus_s` is the half width of the 95 %
    band of the mean over all rounds, None of one replication; `best_known_s` and `best_in_the_end_s` are what the
    comparator reached, and `bound_s` is what nobody can go below. `above_best_known` compares the end with the first,
    and `above_bound` with the second, over all rounds where they have contexts, as the bound is theirs.
    """
    runs = group.runs
    trips = [-_mean(run) for run in runs]
    late = [-_late(run, run.expected_rewards) for run in runs]
    compared = [run.comparator_rewards for run in runs]
    best_late = [
        -run.comparator_value if rewards is None else -_late(run, rewards)
        for run, rewards in zip(runs, compared, strict=True)
    ]
    trip, end, best_end = float(np.mean(trips)), float(np.mean(late)), float(np.mean(best_late))
    bound = -float(np.mean([run.comparator_bound for run in runs]))
    has_contexts = any(rewards is not None for rewards in compared)
    return {
        "learner": group.label,
        "informed": group.informed,
        "mean_trip_s": _round(trip),
        "plus_minus_s": _half(half_width(trips)),
        "mean_trip_in_the_end_s": _round(end),
        "standard_error_s": _half(standard_error(late)),
        "best_known_s": _round(-np.mean([run.comparator_value for run in runs])),
        "best_in_the_end_s": _round(best_end),
        "bound_s": _round(bound),
        "above_best_known": _round(end / best_end - 1) if best_end > 0 else None,
        "above_bound": _round((trip if has_contexts else end) / bound - 1) if bound > 0 else None,
    }


def _tell_city(roads: RoadsPlayed, rows: list[Row], groups: Groups) -> tuple[str, list[str], list[list[str]], str]:
    measure = "mean cost, s" if roads.costs else "mean trip, s"
    runs, first = groups[0].runs, rows[0]
    proven = _is_proven(first["best_known_s"], first["bound_s"])
    compared = {"above the best possible": "above_best_known"}
    if not proven:
        compared = {"above the best known": "above_best_known", "above the best possible, at most": "above_bound"}
    columns = ["learner", measure, "in the end, s", *compared]
    cells = [
        [
            str(row["learner"]),
            with_half(row["mean_trip_s"], row["plus_minus_s"]),
            with_half(row["mean_trip_in_the_end_s"], row["standard_error_s"]),
            *("" if row[key] is None else signed(row[key]) for key in compared.values()),
        ]
        for row in rows
    ]
    heading = f"{roads.routes}, {runs[0].rounds:,} trips, {counted(len(runs))}"
    if not proven:
        heading += (
            f"; the best plan known takes {first['best_known_s']:.1f} s, nobody can take less than "
            f"{first['bound_s']:.1f} s"
        )
    has_contexts = any(run.comparator_rewards is not None for run in runs)
    return heading, columns, cells, _city_verdict(rows, groups, has_contexts)


def _city_verdict(rows: list[Row], groups: Groups, has_contexts: bool) -> str:
    best, learning = best_learner(rows, groups, "mean_trip_in_the_end_s")
    trip = float(best["mean_trip_in_the_end_s"])
    told = (
        f"{best['learner']} did best{' of those that had to learn' if learning else ''}: {trip:.1f} s a trip in the "
        f"end, {_distance(best, has_contexts)}"
    )
    fixed = shortest_path_row(rows, groups)
    if fixed is None or fixed is best:
        return f"{told}."
    saved = against(trip, float(fixed["mean_trip_in_the_end_s"]), "sending everyone down the shortest path")
    return f"{told}, and {saved}."


def _distance(row: Row, has_contexts: bool) -> str:
    """Return how far a row is from the best possible: a number where that is known, or else the interval proven."""
    above, most = row["above_best_known"], row["above_bound"]
    if above is None:
        return "where the best plan known takes no time"
    if _is_proven(row["best_known_s"], row["bound_s"]):
        # Of a few rounds, or by luck of the contexts, the mean may lie below what the best takes in the long run.
        return f"{signed(above)} {'above' if signed(above)[0] == '+' else 'against'} the best possible"
    known = f"{signed(above)} {'above' if signed(above)[0] == '+' else 'against'} the best plan known"
    if most is None:
        return f"{known}; how far above the best possible is not known"
    if has_contexts:  # the bound holds for the contexts of all rounds, and not for those of the end alone
        over_all = row["mean_trip_s"] / row["best_known_s"] - 1
        return f"{known} (over all trips {_interval(over_all, most)})"
    return _interval(above, most) if signed(above)[0] == "+" else f"{known} ({_interval(above, most)})"


def _interval(above: float, most: float) -> str:
    """Return the proven interval; who beats the best plan known may be as good as anything."""
    if signed(above)[0] == "-":
        return f"at most {signed(most)} above the best possible"
    return f"between {signed(above)} and {signed(most)} above the best possible"


def _is_proven(known: float, bound: float) -> bool:
    """Say whether a plan reaches its bound, so that it is the best possible."""
    return bool(np.isclose(known, bound, rtol=_PROVEN, atol=0.0))


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


def _half(value: Any) -> float | None:
    """Return half the width of an interval, None where a single replication gives none."""
    return _round(value) if np.isfinite(value) else None
