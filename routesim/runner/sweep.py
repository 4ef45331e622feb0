"""The result folder of a sweep: a tidy table over all points, a figure of it, and a result folder for each point.

table.csv, table.parquet   one row a point and learner; swept fields first
sweep.png                  the measure against the swept field, a line a learner
points/NAME/               a full result folder each
"""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from routesim.report.sweep import Measure, measure, plot_sweep
from routesim.results.run import Scalar
from routesim.runner.outputs import Finished, write_summary

Points = Sequence[tuple[str, Mapping[str, Scalar]]]


def write_sweep(
    folder: Path,
    scenario: str,
    about: Mapping[str, Any],
    points: Points,
    finished: Sequence[Finished],
    times: Mapping[str, Any],
) -> tuple[dict[str, Any], str, list[str], list[list[str]]]:
    """Fill `folder` and return its summary, and the heading, columns and cells of the table as people read it."""
    (folder / "scenario.toml").write_text(scenario, encoding="utf-8")
    rows: list[dict[str, Any]] = []
    lines: list[dict[str, str]] = []
    for (name, values), one in zip(points, finished, strict=True):
        place = folder / "points" / name
        place.mkdir(parents=True)
        summary = one.move(place, times)
        rows += [{**values, **row} for row in summary["table"]]
        lines += [
            {**{field: str(value) for field, value in values.items()}, **dict(zip(one.columns, line, strict=True))}
            for line in one.cells
        ]
    fields = list(points[0][1])
    rows = write_table(folder, rows)
    plot_sweep(rows, fields, folder / "sweep.png")
    verdicts = [
        {"point": name, **values, "verdict": one.summary["verdict"]}
        for (name, values), one in zip(points, finished, strict=True)
    ]
    said = {**about, "verdict": verdict(rows, fields), "swept": fields, "points": verdicts, "table": rows}
    summary = write_summary(folder, said, times)
    columns = list(dict.fromkeys(column for line in lines for column in line))
    titles = [column.rpartition(".")[2] if column in fields else column for column in columns]
    return summary, finished[0].heading, titles, [[line.get(column, "") for column in columns] for line in lines]


def verdict(rows: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> str:
    """Return in plain words who did best at how many points, of those that had to learn; ties are called so."""
    points: dict[tuple[Any, ...], dict[str, Measure]] = {}
    for row in rows:
        judged = measure(row)
        if judged is not None and not row.get("informed"):
            learners = points.setdefault(tuple(row[field] for field in fields), {})
            learners[row["learner"]] = min(judged, learners.get(row["learner"], judged), key=_value)
    if not points:
        return "Every learner here was told the congestion; add one that has to learn it."
    wins = Counter(_first(learners) for learners in points.values())
    of = f"of {len(points)} point{'s' if len(points) > 1 else ''}"
    told = ", ".join(
        f"{' and '.join(labels)} {'tied ' if len(labels) > 1 else ''}at {count} {of}"
        for labels, count in wins.most_common()
    )
    tie = "; a tie is equal values, or 95 % intervals that overlap" if any(len(labels) > 1 for labels in wins) else ""
    return f"Best of those that had to learn: {told}{tie}."


def _first(learners: Mapping[str, Measure]) -> tuple[str, ...]:
    """Return who has the least value, and those who cannot be told apart from it: equal, or within the intervals."""
    least = min(learners.values(), key=_value)
    return tuple(
        label
        for label, one in learners.items()
        if one.value == least.value or one.value - least.value <= (one.half or 0.0) + (least.half or 0.0)
    )


def _value(judged: Measure) -> float:
    return judged.value


def write_table(folder: Path, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Write the rows as `table.csv` and `table.parquet`, each with every column, and return them so."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = list(dict.fromkeys(column for row in rows for column in row))
    full = [{column: row.get(column) for column in columns} for row in rows]
    with (folder / "table.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(full)
    # A column of numbers and words, as a swept field can be, is one of words.
    mixed = {column for column in columns if len({_sort(row[column]) for row in full} - {None}) > 1}
    typed = [{key: str(one) if key in mixed and one is not None else one for key, one in row.items()} for row in full]
    parquet.write_table(pa.Table.from_pylist(typed), folder / "table.parquet", compression="zstd")
    return full


def _sort(value: Any) -> str | None:
    if value is None:
        return None
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
