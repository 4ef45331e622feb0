"""Plots of regret with bands over replications."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from routesim.errors import InputError, ResultsError
from routesim.results import Band, Run, regret_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Apart under every kind of colour vision (Okabe and Ito), and told apart by dashes as well.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_DASHES = ("-", "--", "-.", ":")


def plot_regret(
    runs: Mapping[str, Sequence[Run]], path: str | Path | None = None, *, title: str = "", level: float = 0.95
) -> "Figure":
    """Draw the average regret of each labelled set of replications, mean and band; save it if a path is given."""
    bands = {label: regret_band(replications, level=level) for label, replications in runs.items()}
    return plot_bands({title: bands}, path)


def plot_bands(panels: Mapping[str, Mapping[str, Band]], path: str | Path | None = None) -> "Figure":
    """Draw one panel per title, side by side, each with its labelled bands; save it if a path is given."""
    from matplotlib.figure import Figure

    if not panels or not all(panels.values()):
        raise InputError("a regret plot needs at least one labelled set of runs, got none")
    figure = Figure(figsize=(2 + 5 * len(panels), 4.5), layout="constrained")
    columns = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (title, bands) in zip(columns, panels.items(), strict=True):
        _draw_bands(axes, bands)
        axes.set_title(title)
    columns[0].set_ylabel("average regret")
    if path is not None:
        try:
            figure.savefig(path, dpi=150)
        except (OSError, ValueError) as problem:
            raise ResultsError(f"cannot write the figure to {path}: {problem}") from problem
    return figure


def _draw_bands(axes: "Axes", bands: Mapping[str, Band]) -> None:
    for number, (label, band) in enumerate(bands.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        dashes = _DASHES[number // len(_COLOURS) % len(_DASHES)]
        axes.plot(band.rounds, band.mean, dashes, color=colour, label=label)
        axes.fill_between(band.rounds, band.lower, band.upper, color=colour, alpha=0.2, linewidth=0)
    axes.set_xscale("log")
    axes.axhline(0, color="#888888", linewidth=0.8)
    axes.set_xlabel("rounds")
    axes.legend()
