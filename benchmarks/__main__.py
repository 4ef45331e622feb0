"""Everything that is timed, in one run: `python -m benchmarks` writes benchmarks/RESULTS.md and the README's table.

    python -m benchmarks                 all parts, about twenty minutes on two quiet cores
    python -m benchmarks bandits roads   only these parts; the rows of the others stay as they are
    python -m benchmarks --against FOLDER [PART ...]    here and in another checkout in turn, twice; writes nothing

Peers come with `pip install '.[bench]'` (LEMON with Debian's liblemon-dev and g++, pages need Chromium); what is not
there is said to be missing, in the output and beneath the table.
"""

import importlib.metadata
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.side_by_side import TABLE

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "RESULTS.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- benchmarks: written by `python -m benchmarks` -->", "<!-- end of benchmarks -->"
PARTS: dict[str, list[str]] = {
    "bandits": [],
    "exact_planner": [],
    "contextual": [],
    "edgewise": ["cities"],
    "paths": ["--pairs", "5"],
    "roads": [],
    "traffic": [],
    "queues": [],
    "assignment": [],
    "sweep": [],
    "pages": [],
    "service": [],
    "journal": [],
}
PEERS = ("river", "mabwiser", "uxsim", "path4gmns", "aequilibrae", "networkx", "osmnx", "pyrosm")


def main() -> None:
    wanted, other = sys.argv[1:], None
    if wanted[:1] == ["--against"] and len(wanted) > 1:
        other, wanted = Path(wanted[1]).resolve(), wanted[2:]
    wanted = wanted or list(PARTS)
    for part in wanted:
        if part not in PARTS:
            sys.exit(f"there is no part {part!r}; there are {', '.join(PARTS)}")
    if other is not None:
        _compare(wanted, other)
        return
    rows = _known()
    for part in wanted:
        print(f"== {part}", flush=True)
        rows[part] = _measured(part)
        _write(_page(rows))
    print(f"\n{RESULTS.relative_to(ROOT)}:\n\n{_page(rows)}")


def _compare(wanted: list[str], other: Path) -> None:
    """Print how long each thing takes here relative to the other checkout, by the better of two runs each."""
    for part in wanted:
        found: dict[str, dict[Path, list[str]]] = {}
        for root in (other, ROOT, other, ROOT):
            for what, measured, *_ in _measured(part, root):
                found.setdefault(what, {}).setdefault(root, []).append(measured)
        for what, by_root in found.items():
            there, here = (min(map(_cost, by_root.get(root, [])), default=math.nan) for root in (other, ROOT))
            said = f"here {' and '.join(by_root.get(ROOT, []))}; there {' and '.join(by_root.get(other, []))}"
            print(f"{here / there:6.2f} x  {what}: {said}", flush=True)


def _cost(measured: str) -> float:
    """Return the first number as a cost: a number that comes per second as its inverse."""
    number = re.search(r"[\d.,]*\d", measured)
    value = float(number[0].replace(",", "")) if number else math.nan
    value *= 1e-3 if number and measured[number.end() :].startswith(" ms") else 1.0
    return 1 / value if "/s" in measured or "a second" in measured else value


def _measured(part: str, root: Path = ROOT) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as scratch:
        notes = Path(scratch) / "notes"
        command = [sys.executable, "-m", f"benchmarks.{part}", *PARTS[part]]
        environment = {**os.environ, TABLE: str(notes), "PYTHONPATH": str(root)}
        failed = subprocess.run(command, cwd=root, env=environment, check=False).returncode
        found = [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []
    return [[*row, part] for row in found] or [[part, "failed" if failed else "not measured", "", part]]


def _write(table: str) -> None:
    """Keep the table in its own file and between its marks in the README."""
    RESULTS.write_text(table, encoding="utf-8")
    text = README.read_text(encoding="utf-8")
    before, mark, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if mark and end:
        README.write_text(f"{before}{BEGIN}\n{table}{END}{after}", encoding="utf-8")


def _known() -> dict[str, list[list[str]]]:
    """Return the rows of the parts that were measured before."""
    rows: dict[str, list[list[str]]] = {}
    for line in RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []:
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 4 and cells[3].startswith("`"):
            part = cells[3].strip("`").split()[0]
            rows.setdefault(part, []).append([*cells[:3], part])
    return {part: rows[part] for part in PARTS if part in rows}


def _page(rows: dict[str, list[list[str]]]) -> str:
    def version(package: str) -> str:
        try:
            return f"{package} {importlib.metadata.version(package)}"
        except importlib.metadata.PackageNotFoundError:
            return f"{package} not installed, not measured"

    lines = ["| what | measured | against | `python -m benchmarks.` |", "|---|---|---|---|"]
    for part in PARTS:
        for what, measured, against, _ in rows.get(part, []):
            lines.append(f"| {what} | {measured} | {against} | `{' '.join([part, *PARTS[part]])}` |")
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}"
    peers = "; ".join(version(package) for package in PEERS)
    return "\n".join([*lines, "", f"{machine}. Peers: {peers}.", ""])


if __name__ == "__main__":
    main()
