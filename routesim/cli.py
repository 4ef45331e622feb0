"""The command line: arguments in, the library's calls, words and exit codes out."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from routesim.serve.command import serve

if TYPE_CHECKING:
    from routesim.environment import RoundEnvironment
    from routesim.experiment import EnvironmentMaker
    from routesim.learners.base import Learner
    from routesim.results import Run
    from routesim.scenario import AnyScenario, BanditScenario, CityScenario, ContextualScenario

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Traffic routing simulation where a recommendation changes the traffic it was made for.",
)


app.command()(serve)


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
def cities() -> None:
    """List the bundled cities."""
    from routesim.cities import list_cities, load_city

    for name in list_cities():
        network = load_city(name)
        typer.echo(f"{name:20} {network.n_nodes:>7,} nodes {network.n_edges:>7,} edges   {network.attribution}")


@app.command()
def run(
    name_or_file: Annotated[str, typer.Argument(help="A named scenario, or a TOML file.")],
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds of each run.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Where all chance comes from.")] = None,
    replications: Annotated[int | None, typer.Option(min=1, help="Independent runs of each learner.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes to use.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder for the results; by default runs/NAME.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but mistakes.")] = False,
) -> None:
    """Run a scenario and write its results into a folder."""
    from routesim.results import check_folder
    from routesim.scenario import load_scenario

    scenario = load_scenario(name_or_file, rounds=rounds, seed=seed, replications=replications)
    folder = out or Path("runs") / Path(name_or_file).stem
    check_folder(folder)
    if scenario.kind == "city":
        _run_city(scenario, folder, workers, quiet=quiet)
    else:
        _run_bandit(scenario, folder, workers, quiet=quiet)


@app.command(name="import")
def import_roads(
    place_or_file: Annotated[str, typer.Argument(help="A file or folder of roads, or the name of a place.")],
    out: Annotated[Path, typer.Option(help="File to write: .npz, .graphml or .gpkg.")],
) -> None:
    """Turn a place or a file into a road network file."""
    from routesim.importers import read_network, write_network
    from routesim.network import RoadNetwork

    known = Path(place_or_file).exists() or Path(place_or_file).suffix
    network = read_network(place_or_file) if known else RoadNetwork.from_place(place_or_file)
    write_network(network, out)
    typer.echo(f"{out}: {network.n_nodes:,} nodes, {network.n_edges:,} edges")


def _run_bandit(scenario: "BanditScenario | ContextualScenario", folder: Path, workers: int, *, quiet: bool) -> None:
    from routesim.report.bandit import Curve, write_report
    from routesim.results import write_folder

    source = scenario.bandit if scenario.kind == "bandit" else scenario.contextual
    settings = [(choice, *setting) for choice in scenario.learners for setting in source.settings()]
    curves = []
    with _Progress(scenario, len(settings), quiet=quiet) as progress:
        for choice, setting, environments in settings:
            words = ", ".join(f"{name} {value}" for name, value in setting.items())
            runs = progress.replicate(f"{words}: {choice.label}", environments, choice.make(), workers)
            curves.append(Curve.of(setting, choice.label, runs))
    about = {"scenario": scenario.model_dump(mode="json")}
    write_folder(folder, lambda target: write_report(target, curves, about))
    if quiet:
        return
    cells = []
    for curve in curves:
        half = (curve.milestones.upper - curve.milestones.lower) / 2
        values = [f"{mean:.4f} ± {width:.4f}" for mean, width in zip(curve.milestones.mean, half, strict=True)]
        cells.append([*(str(value) for value in curve.setting.values()), curve.learner, *values])
    heading = f"average regret by rounds, mean ± 95 % band over {scenario.replications} replications"
    rounds = [f"{number:,}" for number in curves[0].milestones.rounds]
    _show_table(f"{scenario.title}\n{heading}", [*curves[0].setting, "learner", *rounds], cells)
    typer.echo(f"figure, curves and table: {folder}")


def _run_city(scenario: "CityScenario", folder: Path, workers: int, *, quiet: bool) -> None:
    from routesim.report.city import table, verdict, write_report
    from routesim.results import write_folder

    network = scenario.city.network()
    actions = scenario.city.actions(network)
    environment = scenario.city.environment(network, actions)
    with _Progress(scenario, len(scenario.learners), quiet=quiet) as progress:
        runs = {
            choice.label: progress.replicate(choice.label, environment, choice.make(), workers)
            for choice in scenario.learners
        }
    about = {"scenario": scenario.model_dump(mode="json")}
    write_folder(folder, lambda target: write_report(target, network, runs, about, scenario.title))
    if quiet:
        return
    cells = [
        [
            row.learner,
            f"{row.mean_trip_s:.1f} ± {row.plus_minus_s:.1f}",
            f"{row.mean_trip_in_the_end_s:.1f} ± {row.standard_error_s:.1f}",
            f"{round(row.above_best, 3) + 0.0:+.1%}",
        ]
        for row in table(runs)
    ]
    heading = f"{actions.n_actions} routes, {scenario.rounds:,} trips, {scenario.replications} replications"
    measure = "mean trip, s" if scenario.city.travellers is None else "mean cost, s"
    columns = ["learner", measure, "in the end, s", "above the best possible"]
    _show_table(f"{scenario.title}\n{heading}", columns, cells)
    typer.echo(verdict(runs))
    typer.echo(f"open the map: {folder / 'map.html'}")


class _Progress:
    """Replications with a bar on standard error."""

    def __init__(self, scenario: "AnyScenario", settings: int, *, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._scenario = scenario
        self._bar = Progress(console=Console(stderr=True), disable=quiet, transient=True)
        self._task = self._bar.add_task("", total=settings * scenario.replications * scenario.rounds)

    def __enter__(self) -> "_Progress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def replicate(
        self, title: str, environment: "RoundEnvironment | EnvironmentMaker", learner: "Learner", workers: int
    ) -> "list[Run]":
        """Return the scenario's replications of one learner."""
        from routesim.experiment import replicate

        self._bar.update(self._task, description=title)
        scenario = self._scenario
        return replicate(
            environment,
            learner,
            scenario.rounds,
            scenario.seed,
            scenario.replications,
            workers,
            progress=lambda played: self._bar.advance(self._task, played),
        )


def _show_table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.width = max(console.width, 100 if len(columns) < 6 else 130)
    table = Table(title=title)
    for number, column in enumerate(columns):
        table.add_column(column, no_wrap=True, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    from routesim.errors import RoutesimError

    # Every mistake in the words of a command; the class has no public name.
    wrong_words = cast("type[typer.BadParameter]", typer.BadParameter.__mro__[2])
    try:
        sys.exit(app(standalone_mode=False))
    except RoutesimError as mistake:
        typer.echo(f"routesim: {mistake}", err=True)
    except wrong_words as mistake:
        typer.echo(f"routesim: {mistake.format_message()} (`routesim --help` shows how)", err=True)
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("routesim: stopped", err=True)
        sys.exit(130)
    sys.exit(2)


if __name__ == "__main__":
    main()
