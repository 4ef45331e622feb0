"""Run a whole scenario, all points of its sweep included, into a result folder; begun runs can go on."""

import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import routesim
from routesim.checks import whole
from routesim.errors import InputError, RoutesimError
from routesim.results.run import Scalar
from routesim.runner.cluster import do_on_cluster
from routesim.runner.local import Crew, cores
from routesim.runner.outputs import Finished, ReportJob, about_scenario
from routesim.runner.sweep import write_sweep
from routesim.runner.units import units
from routesim.runner.work import Job, UnitJob
from routesim.runner.workspace import Identity, RunFolder, open_workspace, read_summary
from routesim.scenario.files import fingerprint, load_scenario, points, to_toml
from routesim.scenario.kinds import AnyScenario


class Standing(NamedTuple):
    """How far a run is: `done` of `total` rounds or vehicles, `finished` of `runs` single runs, and what runs now."""

    done: int
    total: int
    finished: int
    runs: int
    now: str


@dataclass(frozen=True)
class Outcome:
    """A finished result: its folder, its summary, and the table as people read it (empty if it was there before)."""

    folder: Path
    summary: dict[str, Any]
    heading: str = ""
    columns: list[str] = field(default_factory=list)
    cells: list[list[str]] = field(default_factory=list)


class _Point(NamedTuple):
    name: str
    values: dict[str, Scalar]
    scenario: AnyScenario
    jobs: list[UnitJob]


def run_scenario(
    scenario: AnyScenario | str | Path,
    folder: str | Path,
    *,
    name: str | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    replications: int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    watch: Callable[[Standing], None] | None = None,
) -> Outcome:
    """Run a scenario, given by name, as a TOML file or as an object, and leave its results in `folder`.

    `rounds`, `seed` and `replications` replace those of a scenario that is given by name or as a file. The numbers do
    not depend on `workers`, the processes on this machine (None: one for each core), nor on the machines behind
    `scheduler`, the address of a Dask scheduler. A run that is stopped, killed or out of disk goes on with `resume`, to
    the same numbers. The result of another scenario in `folder` is replaced only with `overwrite`. `watch` is called
    now and then with how far it is.
    """
    if isinstance(scenario, str | Path):
        name = name or Path(scenario).stem
        scenario = load_scenario(scenario, rounds=rounds, seed=seed, replications=replications)
    elif not (rounds is seed is replications is None):
        raise InputError("rounds, seed and replications are for a scenario given by name or as a file; set its fields")
    title = name or "scenario"
    processes = cores() if workers is None else whole("workers", workers, least=1)
    target, started, clock = Path(folder), datetime.now(UTC), monotonic()
    identity = Identity(to_toml(scenario), fingerprint(scenario), routesim.__version__)
    at_points = [(_point_name(number, at), at, one, units(one)) for number, (at, one) in enumerate(points(scenario))]
    workspace = open_workspace(target, identity, resume=resume, overwrite=overwrite)
    if workspace is None:
        return Outcome(target, read_summary(target))
    try:
        planned = [
            _Point(where, at, one, [_job(workspace, where, unit) for unit in every])
            for where, at, one, every in at_points
        ]
        progress = _Progress([job for point in planned for job in point.jobs], watch)
        waiting = [job for point in planned for job in point.jobs if not job.target.is_dir()]
        with Crew(processes) as crew:
            if scheduler is None:
                crew.do(waiting, progress.hear)
            else:
                do_on_cluster(waiting, scheduler, progress.hear)
            progress.say("writing the results")
            reports = [
                ReportJob(point.scenario, point.name or title, workspace.part(point.name), workspace.report(point.name))
                for point in planned
            ]
            crew.do(reports, lambda *_: None)
        times = {
            "started": started.isoformat(timespec="seconds"),
            "seconds": round(monotonic() - clock, 3),
            "host": platform.node(),
            "workers": processes,
            "scheduler": scheduler,
            "runs_found_done": progress.runs - len(waiting),
        }
        finished = [Finished.read(job) for job in reports]
        outcome: list[Outcome] = []

        def write(fresh: Path) -> None:
            if scenario.sweep:
                values = [(point.name, point.values) for point in planned]
                about = about_scenario(scenario, title)
                outcome.append(Outcome(target, *write_sweep(fresh, to_toml(scenario), about, values, finished, times)))
            else:
                (one,) = finished
                outcome.append(Outcome(target, one.move(fresh, times), one.heading, one.columns, one.cells))

        workspace.finish(write)
        return outcome[0]
    except RoutesimError:
        workspace.close(forget_if_empty=True)
        raise
    finally:
        workspace.close(forget_if_empty=False)


def _job(workspace: RunFolder, point: str, unit: Any) -> UnitJob:
    return UnitJob(unit, workspace.part(point, unit.key), workspace.checkpoint(point, unit.key))


def _point_name(number: int, values: dict[str, Scalar]) -> str:
    """Return a folder's name for a point of a sweep, none where there is no sweep."""
    words = "_".join(f"{name.rpartition('.')[2]}-{value}" for name, value in values.items())
    return f"{number:03d}_{re.sub(r'[^A-Za-z0-9._-]+', '-', words)[:80]}" if values else ""


class _Progress:
    """Adds up what the jobs report."""

    def __init__(self, jobs: Sequence[UnitJob], watch: Callable[[Standing], None] | None) -> None:
        self._done = {job.target: job.total if job.target.is_dir() else 0 for job in jobs}
        self._total = sum(job.total for job in jobs)
        self._finished = {job.target for job in jobs if job.target.is_dir()}
        self._watch = watch
        self.runs = len(jobs)
        self.say("starting")

    def hear(self, job: Job, done: int, finished: bool) -> None:
        """Take in what one job says."""
        # A run that goes on from a checkpoint may report less than all of it, one that was begun again more.
        self._done[job.target] = min(done, job.total)
        if finished:
            self._finished.add(job.target)
        self.say(job.label)

    def say(self, now: str) -> None:
        """Tell who watches."""
        if self._watch:
            done = sum(self._done.values())
            self._watch(Standing(done, self._total, len(self._finished), self.runs, now))
