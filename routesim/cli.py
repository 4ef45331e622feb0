"""The command line: arguments in, the library's calls, words and exit codes out."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from routesim.report.bandit import Curve
    from routesim.scenario import Scenario

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Traffic routing simulation where a recommendation changes the traffic it was made for.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        import routesim

        typer.echo(routesim.__version__)
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


@app.command()
def scenarios() -> None:
    """List the named scenarios."""
    from routesim.scenario import load_scenario, scenario_names

    for name in scenario_names():
        typer.echo(f"{name:20} {load_scenario(name).title}")


@app.command()
def run(
    name_or_file: Annotated[str, typer.Argument(help="A named scenario, or a TOML file.")],
    rounds: Annotated[int | None, typer.Option(help="Rounds of each run.")] = None,
    seed: Annotated[int | None, typer.Option(help="Where all chance comes from.")] = None,
    replications: Annotated[int | None, typer.Option(help="Independent runs of each learner.")] = None,
    workers: Annotated[int, typer.Option(help="Processes to use.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder for the results; by default runs/NAME.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but mistakes.")] = False,
) -> None:
    """Run a scenario and write its results into a folder."""
    from routesim.scenario import load_scenario

    scenario = load_scenario(name_or_file, rounds=rounds, seed=seed, replications=replications)
    folder = out or Path("runs") / Path(name_or_file).stem
    _run_bandit(scenario, folder, workers, quiet=quiet)


def _run_bandit(scenario: "Scenario", folder: Path, workers: int, *, quiet: bool) -> None:
    from rich.console import Console
    from rich.progress import Progress

    from routesim.experiment import replicate
    from routesim.report.bandit import Curve, write_report
    from routesim.results import write_folder

    curves = []
    settings = [(window, choice) for choice in scenario.learners for window in scenario.bandit.windows]
    with Progress(console=Console(stderr=True), disable=quiet) as progress:
        bar = progress.add_task("", total=len(settings) * scenario.replications * scenario.rounds)
        for window, choice in settings:
            progress.update(bar, description=f"window {window}: {choice.label}")
            runs = replicate(
                scenario.bandit.environments(window),
                choice.make(),
                scenario.rounds,
                scenario.seed,
                scenario.replications,
                workers,
                progress=lambda played: progress.advance(bar, played),
            )
            curves.append(Curve.of(window, choice.label, runs))
    about = {"scenario": scenario.model_dump(mode="json")}
    write_folder(folder, lambda target: write_report(target, curves, about))
    if not quiet:
        console = Console()
        console.width = max(console.width, 100)
        _show_table(console, scenario, curves)
        typer.echo(f"figure, curves and table: {folder}")


def _show_table(console: "Console", scenario: "Scenario", curves: "list[Curve]") -> None:
    from rich.table import Table

    table = Table(
        title=f"{scenario.title}\naverage regret by rounds, mean ± 95 % band over {scenario.replications} replications"
    )
    for heading in ("window", "learner"):
        table.add_column(heading, no_wrap=True)
    for number in curves[0].milestones.rounds:
        table.add_column(f"{number:,}", justify="right")
    for curve in curves:
        half = (curve.milestones.upper - curve.milestones.lower) / 2
        cells = [f"{mean:.4f} ± {width:.4f}" for mean, width in zip(curve.milestones.mean, half, strict=True)]
        table.add_row(str(curve.window), curve.learner, *cells)
    console.print(table)


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    from routesim.errors import RoutesimError

    try:
        app()
    except RoutesimError as mistake:
        typer.echo(f"routesim: {mistake}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
