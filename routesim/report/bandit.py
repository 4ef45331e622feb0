"""The report of a bandit scenario: average regret by setting and learner, as a figure and as tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from routesim.folders import write_json
from routesim.report.plots import plot_bands
from routesim.results import Band, Run, regret_band


@dataclass(frozen=True)
class Curve:
    """The regret of one learner in one setting, such as a window, over replications."""

    setting: Mapping[str, str | int]
    learner: str
    band: Band
    milestones: Band

    @classmethod
    def of(cls, setting: Mapping[str, str | int], learner: str, runs: Sequence[Run]) -> "Curve":
        """Return the curve of some replications; the runs can be dropped afterwards."""
        return cls(setting, learner, regret_band(runs), regret_band(runs, at=milestones(runs[0].rounds)))

    @property
    def title(self) -> str:
        """The setting in words."""
        return ", ".join(f"{name} {value}" for name, value in self.setting.items())


def milestones(rounds: int) -> list[int]:
    """Return the powers of ten from 1,000 on that fit into `rounds`, and `rounds` itself."""
    powers = [10**power for power in range(3, 19) if 10**power < rounds]
    return [*powers, rounds]


def write_report(folder: Path, curves: Sequence[Curve], about: Mapping[str, object]) -> None:
    """Write `regret.png`, `regret.csv` (every point of every curve) and `summary.json` (the table)."""
    panels: dict[str, dict[str, Band]] = {}
    for curve in curves:
        panels.setdefault(curve.learner, {})[curve.title] = curve.band
    # One panel for each learner, or for each setting, whichever are fewer.
    if len({curve.title for curve in curves}) < len(panels) or len({curve.title for curve in curves}) == 1:
        panels = {}
        for curve in curves:
            panels.setdefault(curve.title, {})[curve.learner] = curve.band
    plot_bands(panels, folder / "regret.png")
    lines = [",".join((*curves[0].setting, "learner,round,average_regret,lower,upper"))]
    for curve in curves:
        name = '"' + curve.learner.replace('"', '""') + '"'
        where = ",".join(str(value) for value in curve.setting.values())
        lines += [
            f"{where},{name},{row[0]},{row[1]:.6g},{row[2]:.6g},{row[3]:.6g}"
            for row in zip(*(column.tolist() for column in curve.band), strict=True)
        ]
    (folder / "regret.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_json(folder / "summary.json", {**about, "table": table(curves)})


def table(curves: Sequence[Curve]) -> list[dict[str, object]]:
    """Return one flat row per curve: average regret at each milestone, with the half width of its band."""
    rows: list[dict[str, object]] = []
    for curve in curves:
        row: dict[str, object] = {**curve.setting, "learner": curve.learner}
        half = (curve.milestones.upper - curve.milestones.lower) / 2
        for number, mean, width in zip(curve.milestones.rounds, curve.milestones.mean, half, strict=True):
            row[f"average_regret_{number}"] = float(np.round(mean, 9))
            row[f"plus_minus_{number}"] = float(np.round(width, 9))
        rows.append(row)
    return rows
