"""What people see in a terminal: the progress of a run, its table and its verdict; plain text where there is none."""

import json
import sys
import warnings
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from routesim.runner.execution import Outcome, Standing


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """A bar on standard error, if that is a terminal: what runs, how far all of it is, how long it will take."""

    def __init__(self, *, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[runs]}", markup=False),
            TextColumn("left:"),
            TimeRemainingColumn(),
            console=console,
            disable=quiet or not console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=None, runs="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._bar.disable:  # rich before 13.9 ends a bar that was never shown with an empty line
            self._bar.stop()

    def show(self, standing: "Standing") -> None:
        """Show how far the run is."""
        self._bar.update(
            self._task,
            description=standing.now[:60],
            completed=standing.done,
            total=standing.total,
            runs=f"{standing.finished} of {standing.runs} runs",
        )


def say(text: str) -> None:
    """Write a line for people."""
    print(text)


def say_json(content: Any) -> None:
    """Write JSON for scripts."""
    say(json.dumps(content, indent=2, allow_nan=False))


def complain(text: str) -> None:
    """Write one line on standard error, whatever is inside the text."""
    print("routesim: " + " ".join(text.split()), file=sys.stderr)


def note_warnings(*, quiet: bool) -> None:
    """Let warnings that concern the user be one line each, and each of them said once."""
    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        text = str(message)
        ours = category.__module__.startswith("routesim.")  # of what libraries warn, nobody here could change a thing
        if ours and not quiet and text not in said:
            said.add(text)
            complain(f"note: {text}")

    warnings.showwarning = show


def show_outcome(outcome: "Outcome") -> None:
    """Say how a run ended: the table, who did best, and what to open."""
    summary, folder = outcome.summary, outcome.folder
    if not outcome.cells:
        say(f"{folder} is finished already; leave --resume out to run it again.")
    else:
        show_table(f"{summary['title']}\n{outcome.heading}", outcome.columns, outcome.cells)
    if "points" in summary:
        say(summary["verdict"])
        say(f"table: {folder / 'table.csv'}")
        say(f"figure: {folder / 'sweep.png'}")
        say(f"open the maps: {folder / 'points' / '*' / 'map.html'}")
    else:
        say(summary["verdict"])
        # A result of before may have been changed since; a street may be called anything.
        from routesim.storage.reading import one_line

        for notice in summary.get("notices", ()) if outcome.cells else ():
            say(f"note: {one_line(notice)}")
        say(f"everything: {folder}")
        say(f"open the map: {folder / 'map.html'}")


def show_table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Write a table with lines around it, wide enough for what stands in it."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    wide = sum(max(len(column), *(len(row[number]) for row in rows)) + 3 for number, column in enumerate(columns)) + 1
    console.width = max(console.width, wide)
    table = Table(title=Text(title))
    for number, column in enumerate(columns):
        table.add_column(Text(column), no_wrap=True, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def resume_hint(folder: Path, command: str) -> str:
    """Return what to say when a run was stopped."""
    from routesim.storage.folders import is_unfinished

    return f"stopped; go on with: {command}" if is_unfinished(folder) else "stopped"
