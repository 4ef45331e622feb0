"""The result folder of one scenario: its parts are read, and everything the folder holds is written from them.

    scenario.toml     the scenario as resolved
    summary.json      the table in numbers, the verdict in words, versions, seed, hash; what varies is under "times"
    rounds.parquet    the thinned trace of every run
    edges.parquet     loads of edges over time, by learner
    queues.parquet    with queues: vehicles on edges, in their queues and waiting to enter, over time
    routes.geojson    the routes, with their shares
    links.csv         in traffic, also .parquet and .gpkg: volumes, v/c and delays by the hour; beside it path_flows,
                      skims, and where the scenario asks for them select_link and counts
    regret.png        the curves with their bands
    map.html          the page
and record.json, routes.parquet, network.npz, from which `routesim map` draws the page again.
"""

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from routesim.errors import InputError, ResultsError
from routesim.report.gis import write_gis
from routesim.report.page import write_page
from routesim.report.plots import plot_bands, write_plots
from routesim.report.tables import write_tables
from routesim.runner.reports import report
from routesim.runner.units import Part, Unit, units
from routesim.runner.work import Progress
from routesim.scenario.files import fingerprint, to_toml
from routesim.scenario.kinds import AnyScenario
from routesim.storage.folders import SUMMARY, write_json
from routesim.storage.reading import read_json, reading

FORMAT = 1
_ABOUT = "about.json"
_FILES = "files"


@dataclass(frozen=True)
class ReportJob:
    """The report of a scenario whose parts are all there; its files and what they say come into `target`."""

    scenario: AnyScenario
    name: str
    parts: Path
    target: Path

    @property
    def label(self) -> str:
        """What is done."""
        return f"report of {self.name}"

    @property
    def total(self) -> int:
        """Nothing that counts."""
        return 0

    def fill(self, folder: Path, progress: Progress) -> None:
        """Read the parts and write everything but the summary, which waits for the end of all."""
        from pyarrow import parquet

        progress(0)
        parts = {unit: self._part(unit) for unit in units(self.scenario)}
        try:
            said = report(self.scenario, parts)
        except InputError as problem:  # parts that were changed may not belong together
            raise ResultsError(f"the parts in {self.parts} make no report: {problem}") from problem
        files = folder / _FILES
        files.mkdir(parents=True)
        (files / "scenario.toml").write_text(to_toml(self.scenario), encoding="utf-8")
        said.record.write(files)
        parquet.write_table(said.rounds, files / "rounds.parquet", compression="zstd")
        traffic = said.record.clock == "seconds"
        measure, clock = (said.record.measure, "seconds") if traffic else ("average regret", "rounds")
        plot_bands(said.bands, files / "regret.png", measure=measure, clock=clock)
        write_plots(files, said.record)
        write_gis(files, said.record)
        if said.record.network is not None:
            write_tables(files, said.tables, said.record.network)
        write_page(files / "map.html", said.record)
        about = {
            "summary": {
                **about_scenario(self.scenario, self.name),
                "verdict": said.verdict,
                **({"physics": said.physics, "notices": said.notices} if said.physics else {}),
                **({"demand": dict(said.demand)} if said.demand else {}),
                "table": [plain(row) for row in said.table],
            },
            "heading": said.heading,
            "columns": said.columns,
            "cells": said.cells,
        }
        write_json(folder / _ABOUT, about)

    def _part(self, unit: Unit) -> Part:
        try:
            return unit.load(self.parts / unit.key)
        except ResultsError as problem:
            raise ResultsError(f"{problem}; remove {self.parts / unit.key} and --resume runs that part again") from None


@dataclass(frozen=True)
class Finished:
    """A report that is written: its files, the summary so far, and the table as people read it."""

    files: Path
    summary: dict[str, Any]
    heading: str
    columns: list[str]
    cells: list[list[str]]

    @classmethod
    def read(cls, job: ReportJob) -> "Finished":
        """Return what a job left."""
        with reading(job.target, "report"):
            about = read_json(job.target / _ABOUT)
            return cls(job.target / _FILES, *(about[name] for name in ("summary", "heading", "columns", "cells")))

    def move(self, folder: Path, times: Mapping[str, Any]) -> dict[str, Any]:
        """Move the files into `folder`, write the summary there and return it."""
        for path in sorted(self.files.iterdir()):
            path.rename(folder / path.name)
        return write_summary(folder, self.summary, times)


def write_summary(folder: Path, summary: Mapping[str, Any], times: Mapping[str, Any]) -> dict[str, Any]:
    """Write `summary.json` beside the files it lists, and return it."""
    files = sorted({path.name for path in folder.iterdir()} | {SUMMARY})
    content = {**summary, "files": files, "times": dict(times)}
    write_json(folder / SUMMARY, content)
    return content


def about_scenario(scenario: AnyScenario, name: str) -> dict[str, Any]:
    """Return what a summary says of the scenario."""
    return {
        "format": FORMAT,
        "name": name,
        "title": scenario.title,
        "kind": scenario.kind,
        "scenario_sha256": fingerprint(scenario),
        "seed": scenario.seed,
        "rounds": scenario.rounds,
        "replications": scenario.replications,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Return the versions of what computes the numbers."""
    import routesim

    others = {name: version(name) for name in ("numpy", "scipy", "numba", "pyarrow")}
    return {"routesim": routesim.__version__, "python": platform.python_version(), **others}


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as JSON has it, where there is no NaN."""
    return {key: None if isinstance(one, float) and not math.isfinite(one) else one for key, one in row.items()}
