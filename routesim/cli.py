"""The command line: arguments in, the library's calls, words and exit codes out.

0: done. 2: a mistake in the words, the scenario or the folder. 130: stopped by Ctrl-C. 1: anything else.
"""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from routesim.serve.command import rescue, serve

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Traffic routing simulation where a recommendation changes the traffic it was made for.",
)
_INTERRUPTED = 130
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON, for scripts.")]


app.command()(serve)
app.command()(rescue)


def _show_version(wanted: bool) -> None:
    if wanted:
        import routesim

        typer.echo(routesim.__version__)
        raise typer.Exit


def _names(incomplete: str) -> list[str]:
    from routesim.scenario.bundled import scenario_names

    return [name for name in scenario_names() if name.startswith(incomplete)]


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


@app.command()
def scenarios(as_json: AsJson = False) -> None:
    """List the named scenarios."""
    from routesim.console import say, say_json
    from routesim.scenario.bundled import scenario_names
    from routesim.scenario.files import load_scenario

    known = {name: load_scenario(name) for name in scenario_names()}
    if as_json:
        say_json([{"name": name, "kind": one.kind, "title": one.title} for name, one in known.items()])
        return
    for name, one in known.items():
        say(f"{name:24} {one.title}")


@app.command()
def cities(as_json: AsJson = False) -> None:
    """List the bundled cities."""
    from routesim.console import say, say_json
    from routesim.roads.cities import list_cities, load_city

    networks = {name: load_city(name) for name in list_cities()}
    if as_json:
        say_json(
            [
                {"name": name, "nodes": one.n_nodes, "edges": one.n_edges, "attribution": one.attribution}
                for name, one in networks.items()
            ]
        )
        return
    for name, one in networks.items():
        say(f"{name:20} {one.n_nodes:>7,} nodes {one.n_edges:>7,} edges   {one.attribution}")


@app.command()
def run(
    name_or_file: Annotated[
        str, typer.Argument(metavar="NAME_OR_FILE", help="A named scenario, or a TOML file.", autocompletion=_names)
    ],
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds of each run; in traffic, about so many trips.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Where all chance comes from.")] = None,
    replications: Annotated[int | None, typer.Option(min=1, help="Independent runs of each learner.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes; all cores unless told. The results are the same for any number."),
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="A Dask scheduler to run on, such as tcp://host:8786; the results are the same.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results; runs/NAME unless told.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the unfinished run in the folder.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the result of another scenario in the folder.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but mistakes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the summary as JSON, and nothing else.")] = False,
) -> None:
    """Run a scenario and write its results into a folder."""
    from routesim.console import ProgressBar, note_warnings, resume_hint, say_json, show_outcome

    folder = out or Path("runs") / Path(name_or_file).stem
    note_warnings(quiet=quiet)
    try:
        with ProgressBar(quiet=quiet) as bar:
            from routesim.runner.execution import run_scenario

            outcome = run_scenario(
                name_or_file,
                folder,
                rounds=rounds,
                seed=seed,
                replications=replications,
                workers=workers,
                scheduler=scheduler,
                resume=resume,
                overwrite=overwrite,
                watch=bar.show,
            )
    except KeyboardInterrupt:
        raise _StoppedError(resume_hint(folder, _this_command_with_resume())) from None
    if as_json:
        say_json(outcome.summary)
    elif not quiet:
        show_outcome(outcome)


@app.command(name="map")
def draw_map(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A result folder of `routesim run`, or a saved Run.")
    ],
    learner: Annotated[
        list[str] | None, typer.Option(help="Shown at first; twice for two side by side.", show_default=False)
    ] = None,
    step: Annotated[int | None, typer.Option(min=1, help="The step of time shown at first, counted from 1.")] = None,
    out: Annotated[Path | None, typer.Option(help="File to write; FOLDER/map.html unless told.")] = None,
) -> None:
    """Draw the page of a finished run again."""
    from routesim.console import note_warnings, say
    from routesim.errors import InputError
    from routesim.report.page import write_page
    from routesim.results.from_results import read_record

    note_warnings(quiet=False)
    points = sorted(folder.glob("points/*/record.json"))
    if points:
        raise InputError(f"{folder} is a sweep with a map at each point; name one, such as {points[0].parent}")
    target, record = out or folder / "map.html", read_record(folder)
    if step is not None and step > len(record.step_ends):
        raise InputError(f"--step runs from 1 to {len(record.step_ends)} here, got {step}")
    write_page(target, record, learners=learner or None, step=None if step is None else step - 1)
    say(str(target))


@app.command(name="import")
def import_roads(
    place_or_file: Annotated[
        str, typer.Argument(metavar="PLACE_OR_FILE", help="A file or folder of roads, or the name of a place.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="File to write: .npz, .graphml or .gpkg. Only the report unless told.")
    ] = None,
    time_unit: Annotated[
        str | None, typer.Option(help="Unit of times in a TNTP file: s, min, h or h/100.", show_default=False)
    ] = None,
    length_unit: Annotated[
        str | None, typer.Option(help="Unit of lengths in TNTP and GMNS files: m, km, mi or ft.", show_default=False)
    ] = None,
) -> None:
    """Turn a place or a file into a road network file, and report what was read, filled in and left out."""
    from routesim.console import note_warnings, say
    from routesim.errors import InputError
    from routesim.roads.importers import read_network, write_network
    from routesim.roads.importers.report import ImportReport
    from routesim.roads.network import RoadNetwork

    note_warnings(quiet=False)
    known = Path(place_or_file).exists() or Path(place_or_file).suffix
    units = {"time_unit": time_unit, "length_unit": length_unit}
    given = {option: unit for option, unit in units.items() if unit is not None}
    if given and not known:
        raise InputError(f"{place_or_file!r} is the name of a place, whose units are known; leave out the units")
    network = read_network(place_or_file, **given) if known else RoadNetwork.from_place(place_or_file)
    if out is not None:
        write_network(network, out)
    first, *others = ImportReport.of(network).lines
    say(f"{out or place_or_file}: {first}")
    for line in others:
        say(line)


@app.command()
def schema() -> None:
    """Write the JSON schema of scenario files, for editors that complete and check TOML."""
    from routesim.console import say_json
    from routesim.scenario.files import scenario_schema

    say_json(scenario_schema())


class _StoppedError(Exception):
    """Ctrl-C during a run; says how to go on."""


def _this_command_with_resume() -> str:
    words = ["routesim", *sys.argv[1:]]
    return shlex.join(words if "--resume" in words else [*words, "--resume"])


def exit_code() -> int:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    try:
        from routesim.console import complain
        from routesim.errors import LostWorkerError, RoutesimError

        try:
            code = int(app(standalone_mode=False) or 0)
            sys.stdout.flush()
            if code == _INTERRUPTED:  # typer says nothing when it catches Ctrl-C
                complain("stopped")
            return code
        except _StoppedError as hint:
            complain(str(hint))
            return _INTERRUPTED
        except LostWorkerError as loss:
            complain(str(loss))
            return 1
        except RoutesimError as mistake:
            complain(str(mistake))
            return 2
        except typer.TyperException as mistake:  # every mistake in the words of a command
            complain(f"{mistake.format_message()} (`routesim --help` shows how)")
            return 2
        except BrokenPipeError:  # who read the output went away
            _drop_output()
            return 1
        except OSError as problem:
            complain(str(problem))
            _drop_output()
            return 2
    except (typer.Abort, KeyboardInterrupt):
        print("routesim: stopped", file=sys.stderr)
        return _INTERRUPTED


def _drop_output() -> None:
    """Let what could not be written go nowhere: Python tries once more when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Run the command line and end with its exit code."""
    sys.exit(exit_code())


if __name__ == "__main__":
    main()
