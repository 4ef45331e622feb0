"""Plots: curves with bands over replications, how trip times spread, and what loads traffic met over time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from routesim.errors import InputError, ResultsError
from routesim.report.palette import CURVE_COLOURS, DASHES, LOAD_CLASSES, class_ranges, load_classes
from routesim.results.bands import Band, regret_band
from routesim.results.counts import GOOD_GEH, CountComparison
from routesim.results.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from routesim.results.record import Played, Record

# Legends have fixed places: matplotlib's own search for the best one takes seconds on long curves.
MEASURE, TRAVEL_TIMES, LOAD = "measure.svg", "travel_times.svg", "load.svg"
_MOST_PANELS = 8
_DAY_S = 86_400.0
_ROUND_S = tuple(60.0 * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440))


def plot_regret(
    runs: Mapping[str, Sequence[Run]], path: str | Path | None = None, *, title: str = "", level: float = 0.95
) -> "Figure":
    """Draw the average regret of each labelled set of replications, mean and band; save it if a path is given."""
    bands = {label: regret_band(replications, level=level) for label, replications in runs.items()}
    return plot_bands({title: bands}, path)


def plot_bands(
    panels: Mapping[str, Mapping[str, Band]],
    path: str | Path | None = None,
    *,
    measure: str = "average regret",
    clock: str = "rounds",
) -> "Figure":
    """Draw one panel per title, side by side, each with its labelled bands; save it if a path is given."""
    if not panels or not all(panels.values()):
        raise InputError("a regret plot needs at least one labelled set of runs, got none")
    figure = _figure(2 + 5 * len(panels), 4.5)
    columns = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (title, bands) in zip(columns, panels.items(), strict=True):
        for number, (label, band) in enumerate(bands.items()):
            _curve(axes, number, label, band.rounds, band.mean, band.lower, band.upper)
        if clock == "rounds":
            axes.set_xscale("log")
            axes.axhline(0, color="#888888", linewidth=0.8)
        axes.set_xlabel(clock)
        axes.legend(loc="upper right")
        axes.set_title(_plain(title))
    columns[0].set_ylabel(_plain(measure))
    return _saved(figure, path)


def plot_counts(comparison: CountComparison, path: str | Path | None = None, *, title: str = "") -> "Figure":
    """Draw modelled over counted volumes, with the lines of equality and of a GEH of 5; save it if a path is given."""
    table = comparison.table
    figure = _figure(6.0, 6.0)
    axes = figure.subplots()
    most = float(max(table.counted_vph.max(), table.modelled_vph.max(), 1.0)) * 1.05
    counted = np.linspace(0.0, most, 200)
    axes.plot([0, most], [0, most], color="#444444", linewidth=1.0, label="equal")
    # 2 (m - c)^2 = GEH^2 (m + c) solved for m.
    square = GOOD_GEH**2
    half, root = square / 4, np.sqrt(square**2 / 16 + square * counted)
    axes.plot(counted, counted + half + root, "--", color="#888888", linewidth=1.0, label=f"GEH {GOOD_GEH:g}")
    axes.plot(counted, np.maximum(counted + half - root, 0.0), "--", color="#888888", linewidth=1.0)
    good = (table.geh < GOOD_GEH).to_numpy()
    for mask, colour, label in ((good, CURVE_COLOURS[0], "below"), (~good, CURVE_COLOURS[1], "at least")):
        axes.scatter(
            table.counted_vph[mask], table.modelled_vph[mask], s=18, color=colour, label=f"GEH {label} {GOOD_GEH:g}"
        )
    axes.set_xlim(0, most)
    axes.set_ylim(0, most)
    axes.set_xlabel("counted, vehicles an hour")
    axes.set_ylabel("modelled, vehicles an hour")
    axes.legend(loc="upper left")
    axes.set_title(_plain(title or f"{len(table)} places, GEH below {GOOD_GEH:g} at {comparison.good_share:.0%}"))
    return _saved(figure, path)


def plot_measure(record: "Record", path: str | Path | None = None) -> "Figure":
    """Draw the record's measure over time for each learner with its band, and the references as dashed lines."""
    figure = _figure(9.0, 4.5)
    axes = figure.subplots()
    for number, played in enumerate(record.learners):
        lower = np.where(np.isfinite(played.lower), played.lower, played.curve)
        upper = np.where(np.isfinite(played.upper), played.upper, played.curve)
        _curve(axes, number, _name(played), record.step_ends, played.curve, lower, upper)
    for number, (name, values) in enumerate(record.references.items()):
        style = DASHES[1 + number % (len(DASHES) - 1)]
        axes.plot(record.step_ends, values, style, color="#444444", linewidth=1.2, label=_plain(name))
    axes.set_ylabel(_plain(record.measure))
    _time_axis(axes, record)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    axes.set_title(_plain(record.title), fontsize="medium", wrap=True)
    return _saved(figure, path)


def plot_travel_times(record: "Record", path: str | Path | None = None) -> "Figure":
    """Draw which share of trips took at most so long, or of rounds paid at most so much."""
    figure = _figure(9.0, 4.5)
    axes = figure.subplots()
    for number, played in enumerate(record.learners):
        if played.quantiles is not None:
            _curve(axes, number, _name(played), played.quantiles, np.linspace(0, 1, len(played.quantiles)))
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_ylabel("share of rounds" if record.network is None else "share of trips")
    axes.set_xlabel(_plain(record.measure.removeprefix("mean ") if record.clock == "rounds" else "trip, s"))
    if axes.lines:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    axes.set_title(_plain(record.title), fontsize="medium", wrap=True)
    return _saved(figure, path)


def plot_loads(record: "Record", path: str | Path | None = None) -> "Figure":
    """Draw for each learner which share of all road uses met which class of load, over time."""
    shown = record.learners[:_MOST_PANELS]
    columns = min(4, len(shown))
    rows = -(-len(shown) // columns)
    figure = _figure(1.2 + 2.9 * columns, 1.1 + 2.3 * rows)
    every = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    labels = [f"{one.word}: {text}" for one, text in zip(LOAD_CLASSES, class_ranges(), strict=True)]
    for axes, played in zip(every, shown, strict=False):
        colours = [one.light for one in LOAD_CLASSES]
        axes.stackplot(record.step_ends, class_shares(played).T, colors=colours, labels=labels, edgecolor="white")
        axes.set_title(_name(played), fontsize="medium")
        axes.set_ylim(0, 1)
        _time_axis(axes, record)
    for axes in every[len(shown) :]:
        axes.remove()
    every[0].yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    figure.supylabel("share of road uses", fontsize="medium")
    handles = every[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3 if columns > 1 else 2, fontsize="small")
    return _saved(figure, path)


def class_shares(played: "Played") -> NDArray[np.float64]:
    """Return, by step and class of load, the share of all road uses that met it; all 0 in a step without uses."""
    classes = load_classes(np.nan_to_num(played.ratios, nan=1.0))
    sums = [np.where(classes == number, played.loads, 0.0).sum(axis=1) for number in range(len(LOAD_CLASSES))]
    together = np.stack(sums, axis=1)
    total = together.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(together, total, out=np.zeros_like(together), where=total > 0))


def write_plots(folder: str | Path, record: "Record") -> list[Path]:
    """Write `measure.svg`, `travel_times.svg` and `load.svg` into a folder, and return those that apply."""
    target = Path(folder)
    plot_measure(record, target / MEASURE)
    plot_loads(record, target / LOAD)
    if all(played.quantiles is None for played in record.learners):
        return [target / MEASURE, target / LOAD]
    plot_travel_times(record, target / TRAVEL_TIMES)
    return [target / MEASURE, target / TRAVEL_TIMES, target / LOAD]


def _figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _curve(
    axes: "Axes",
    number: int,
    label: str,
    x: NDArray[np.float64] | NDArray[np.int64],
    mean: NDArray[np.float64],
    lower: NDArray[np.float64] | None = None,
    upper: NDArray[np.float64] | None = None,
) -> None:
    colour = CURVE_COLOURS[number % len(CURVE_COLOURS)]
    dashes = DASHES[number // len(CURVE_COLOURS) % len(DASHES)]
    axes.plot(x, mean, dashes, color=colour, label=_plain(label))
    if lower is not None and upper is not None:
        axes.fill_between(x, lower, upper, color=colour, alpha=0.2, linewidth=0)


def _time_axis(axes: "Axes", record: "Record") -> None:
    if record.clock == "rounds":
        axes.set_xlabel("rounds")
    else:
        from matplotlib.ticker import MultipleLocator

        rough = float(record.step_ends[-1]) / 8
        step = next((one for one in _ROUND_S if one >= rough), _DAY_S * -(-rough // _DAY_S))
        axes.xaxis.set_major_locator(MultipleLocator(step))
        axes.xaxis.set_major_formatter(lambda value, _: f"{int(value) // 3600}:{int(value) // 60 % 60:02d}")
        axes.set_xlabel("time, h:min")


def _name(played: "Played") -> str:
    told = played.informed and "informed" not in played.label
    return _plain(f"{played.label} (informed)" if told else played.label)


def _plain(text: str) -> str:
    """Return text in which a dollar begins no formula, and what no font or file can show is a question mark."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shown.replace("\\", "\\\\").replace("$", r"\$") if "$" in shown else shown


def _saved(figure: "Figure", path: str | Path | None) -> "Figure":
    if path is not None:
        try:
            # The same plot gives the same file: no date, and names of parts from their number.
            import matplotlib

            with matplotlib.rc_context({"svg.hashsalt": "routesim"}):
                figure.savefig(path, dpi=150, metadata={"Date": None} if Path(path).suffix == ".svg" else None)
        except (OSError, ValueError) as problem:
            raise ResultsError(f"cannot write the figure to {path}: {problem}") from problem
    return figure
