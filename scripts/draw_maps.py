"""Make maps/: the page of every named city scenario, and an index page that leads to them.

python scripts/draw_maps.py                      every named scenario with roads, run where runs/NAME has no result
python scripts/draw_maps.py helsinki monaco      only these
python scripts/draw_maps.py --runs R --maps M    results in R/NAME, pages in M
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from routesim.report.index import Card, thumbnail, write_index
from routesim.report.page import write_page
from routesim.results.record import RECORD, Record

_WITHOUT_ROADS = ("bandit", "contextual")


def city_scenarios() -> list[str]:
    """Return the names of the scenarios that take place on roads."""
    from routesim.scenario.bundled import scenario_names
    from routesim.scenario.files import load_scenario

    return [name for name in scenario_names() if load_scenario(name).kind not in _WITHOUT_ROADS]


def results(name: str, runs: Path) -> dict[str, Path]:
    """Return the folders with a record of a scenario by the name of their page; run it where there is no result.

    A sweep has a record for each of its points.
    """
    folder = runs / name
    if not _records(folder):
        command = [sys.executable, "-m", "routesim.cli", "run", name, "--out", str(folder)]
        subprocess.run(command, check=True)  # noqa: S603 - our own command line
    return {name if found == folder else f"{name}-{found.name}": found for found in _records(folder)}


def _records(folder: Path) -> list[Path]:
    if (folder / RECORD).exists():
        return [folder]
    return sorted(path.parent for path in folder.glob(f"points/*/{RECORD}"))


def draw(name: str, folder: Path, maps: Path) -> Card:
    """Write the page of one result, and return its card."""
    record = Record.read(folder)
    page = maps / f"{name}.html"
    write_page(page, record)
    summary = folder / "summary.json"
    said = json.loads(summary.read_text(encoding="utf-8")) if summary.exists() else {}
    city = "" if record.network is None else record.network.name.replace("_", " ").title()
    print(f"{page}: {page.stat().st_size / 1e6:.2f} MB", flush=True)
    return Card(page.name, record.title, city, str(said.get("verdict", "")), thumbnail(record))


def main(words: list[str] | None = None) -> None:
    """Draw the pages asked for, then the index of all of them."""
    parser = argparse.ArgumentParser(description="Make the page of every named city scenario, and their index.")
    parser.add_argument("names", nargs="*", help="scenarios; all with roads unless told")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of results, one a scenario")
    parser.add_argument("--maps", type=Path, default=Path("maps"), help="folder for the pages")
    chosen = parser.parse_args(words)
    chosen.maps.mkdir(parents=True, exist_ok=True)
    names = chosen.names or city_scenarios()
    found = {page: folder for name in names for page, folder in results(name, chosen.runs).items()}
    write_index(chosen.maps, [draw(page, folder, chosen.maps) for page, folder in found.items()])


if __name__ == "__main__":
    main()
