"""The fenced examples of a Markdown page, read and run in order, as a reader would who types them.

    python snippets.py PAGE     runs all of a page in the present folder

Python examples of a page share their names. `sh` examples run in a shell. An example with a title, as in
`toml title="town.toml"`, is a file and is written. A comment `<!-- not run: WHY -->` on the line above leaves one out.
"""

import os
import re
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from routesim.errors import CapacityWarning

_FENCE = re.compile(
    r"""(?:^<!--\ not\ run:\ (?P<why>.+?)\ -->\n)?
        ^```(?P<language>\w+)(?:\ title="(?P<title>[\w./-]+)")?\n
        (?P<text>.*?)^```$""",
    flags=re.MULTILINE | re.DOTALL | re.VERBOSE,
)
RUN = ("python", "sh")
SHOWN = ("text", "toml", "xml")
SET_UP = "python3 -m venv "
"""Commands that begin so make an environment; who runs the examples is in one."""


@dataclass(frozen=True)
class Snippet:
    """One fenced example: where it begins, what language it is in, what it says, and why it is not run, if so."""

    page: str
    line: int
    language: str
    title: str | None
    text: str
    not_run: str | None

    def run(self, names: dict[str, object]) -> None:
        """Do what the example says in the present folder."""
        if self.title:
            Path(self.title).write_text(self.text, encoding="utf-8")
        elif self.language == "python":
            # Lines of an error are those of the page.
            padded = "\n" * self.line + self.text
            exec(compile(padded, self.page, "exec"), names)  # noqa: S102 - our own text
        elif self.language == "sh":
            subprocess.run(["bash", "-euo", "pipefail", "-c", self.text], check=True)  # noqa: S607


def snippets(page: Path) -> list[Snippet]:
    """Return the examples of a page in their order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for fence in _FENCE.finditer(text):
        line = text.count("\n", 0, fence.start("language")) + 1
        why = fence["why"] or ("makes an environment" if fence["text"].startswith(SET_UP) else None)
        found.append(Snippet(page.name, line, fence["language"], fence["title"], fence["text"], why))
    return found


def run_page(page: Path, folder: Path, python: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a page's examples in `folder`; `routesim` and `python` there are those of the interpreter `python`."""
    tools = folder / ".tools"
    tools.mkdir(parents=True)
    for name, words in (("python", ""), ("routesim", " -m routesim.cli")):
        (tools / name).write_text(f'#!/bin/sh\nexec "{python}"{words} "$@"\n', encoding="utf-8")
        (tools / name).chmod(0o755)
    return subprocess.run(
        [python, "-W", "error", str(Path(__file__).resolve()), str(page.resolve())],
        cwd=folder,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "MPLBACKEND": "agg", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    # Examples of the window count fill roads beyond their capacity to show congestion on few vehicles.
    warnings.simplefilter("ignore", CapacityWarning)
    shared: dict[str, object] = {"__name__": "__main__"}
    for snippet in snippets(Path(sys.argv[1])):
        if snippet.not_run is None:
            print(f"{snippet.page}:{snippet.line}", flush=True)
            snippet.run(shared)
