"""The figure of a sweep: the measure against the swept field, a line a learner with its band."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from routesim.errors import InputError
from routesim.report.palette import CURVE_COLOURS, DASHES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_PANELS = 12
_REGRET = "average_regret_"


class Measure(NamedTuple):
    """One number of a row with the half width of its band, None of a single replication, and what it is called."""

    value: float
    half: float | None
    title: str


def measure(row: Mapping[str, Any]) -> Measure | None:
    """Return what a row is judged by: the mean cost or trip, or the average regret after all rounds."""
    for key, half, title in (
        ("mean_cost", "mean_cost_plus_minus", "mean cost of a trip"),
        ("mean_trip_s", "plus_minus_s", "mean trip, s"),
    ):
        if row.get(key) is not None:
            return Measure(float(row[key]), _known(row.get(half)), title)
    rounds = [int(key.removeprefix(_REGRET)) for key, one in row.items() if key.startswith(_REGRET) and one is not None]
    if not rounds:
        return None
    last = max(rounds)
    return Measure(float(row[f"{_REGRET}{last}"]), _known(row.get(f"plus_minus_{last}")), "average regret")


def _known(half: Any) -> float | None:
    return None if half is None else float(half)


def plot_sweep(rows: Sequence[Mapping[str, Any]], fields: Sequence[str], path: Path) -> "Figure":
    """Draw the measure of each row against the field with most values, a panel for each combination of the others."""
    from matplotlib.figure import Figure

    if not rows or not fields:
        raise InputError("a figure of a sweep needs rows and swept fields, got none")
    # The first of those with most values; the others make the panels, or the lines where panels would be too many.
    across = max(fields, key=lambda field: len({row[field] for row in rows}))
    others = [field for field in fields if field != across]
    places = list(dict.fromkeys(row[across] for row in rows))
    numeric = all(isinstance(place, int | float) and not isinstance(place, bool) for place in places)
    lines: dict[str, dict[str, list[tuple[float, Measure]]]] = {}
    titles = {_words(row, others) for row in rows}
    for row in rows:
        judged = measure(row)
        if judged is None:
            continue
        split = len(titles) > _MOST_PANELS
        panel = "" if split else _words(row, others)
        label = ", ".join(filter(None, [*_settings(row, fields), str(row["learner"]), _words(row, others) * split]))
        place = float(row[across]) if numeric else float(places.index(row[across]))
        lines.setdefault(panel, {}).setdefault(label, []).append((place, judged))
    if not lines:
        raise InputError("the rows of the sweep have no measure to draw")
    figure = Figure(figsize=(2 + 5 * len(lines), 4.5), layout="constrained")
    panels = figure.subplots(1, len(lines), sharey=True, squeeze=False)[0]
    for axes, (title, curves) in zip(panels, lines.items(), strict=True):
        for number, (label, points) in enumerate(curves.items()):
            points.sort(key=lambda point: point[0])
            x = [place for place, _ in points]
            value, half = [one.value for _, one in points], [one.half or 0.0 for _, one in points]
            colour = CURVE_COLOURS[number % len(CURVE_COLOURS)]
            dash = DASHES[number // len(CURVE_COLOURS) % len(DASHES)]
            axes.plot(x, value, dash, color=colour, label=label, marker="o", markersize=4)
            low = [one - width for one, width in zip(value, half, strict=True)]
            high = [one + width for one, width in zip(value, half, strict=True)]
            axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
        if not numeric:
            axes.set_xticks(range(len(places)), [str(place) for place in places])
        axes.set_title(title)
        axes.set_xlabel(across)
        axes.legend()
    first = next(iter(next(iter(lines.values())).values()))
    panels[0].set_ylabel(first[0][1].title)
    figure.savefig(path, dpi=150)
    return figure


def _words(row: Mapping[str, Any], fields: Sequence[str]) -> str:
    return ", ".join(f"{field.rpartition('.')[2]} {row[field]}" for field in fields)


def _settings(row: Mapping[str, Any], fields: Sequence[str]) -> list[str]:
    """Return what sets a row apart from others of the same learner at the same point: all that stands before it."""
    before = list(row)[: list(row).index("learner")]
    return [f"{name} {row[name]}" for name in before if name not in fields]
