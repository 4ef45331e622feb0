"""Measure pages in headless Chromium: how large, how soon drawn, and how long a step of time takes.

    python -m benchmarks.pages

Gothenburg and Coquimbo with eight routes each and four learners, and Gothenburg with 2,000 roads whose class of load
changes at random in each of 24 steps, on two maps. `ready` is from the start of the navigation until everything is on
the screen, the median of five loads; `step` is from the call that moves the time until the second frame after it, at
most and in the median over all steps.
"""

import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.side_by_side import note
from routesim.report.page import write_page
from routesim.results.record import Played, Record

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "report"))
from browser import Browser, find_chromium
from records import city

LOADS = 5
_STEPS = """
const done = arguments[0], times = [];
let step = 0;
const frame = () => new Promise((then) => requestAnimationFrame(then));
(async () => {
  for (let k = 0; k < 2 * arguments[1]; k += 1) {
    await frame();
    const start = performance.now();
    Page.go(step = (step + 1) % arguments[1]);
    const script = performance.now() - start;
    await frame(); await frame();
    times.push([script, performance.now() - start]);
  }
  done(times);
})();
"""


def many_roads(record: Record, count: int = 2_000, steps: int = 24) -> Record:
    """Return the record with loads on `count` roads that change at random in every step."""
    rng = np.random.default_rng(0)
    roads = 0 if record.network is None else record.network.n_edges
    edges = np.sort(rng.choice(roads, size=count, replace=False)).astype(np.int32)
    nothing = np.zeros(steps)

    def played(label: str) -> Played:
        loads = rng.uniform(0.1, 4.0, size=(steps, count))
        return Played(
            label, False, loads, 1 + loads / 1.5, np.zeros((steps, 0)), np.zeros(0), nothing, nothing, nothing
        )

    ends = np.arange(1, steps + 1, dtype=np.float64) * 100
    learners = (played("one"), played("two"))
    return replace(record, edges=edges, routes=(), learners=learners, step_ends=ends, references={})


def measure(browser: Browser, name: str, record: Record, folder: Path) -> str:
    path = folder / f"{name}.html"
    write_page(path, record)
    ready = statistics.median(ready_ms(browser, path) for _ in range(LOADS))
    browser.wait("Page.views.length === 2")
    steps = len(record.step_ends)
    code = _STEPS.replace("arguments[1]", str(steps))
    times = np.array(browser.driver.execute_async_script(code))
    if asked := [*browser.requests(), *browser.complaints()]:
        sys.exit(f"{name}: the page asks or complains: {asked}")
    note(
        f"page {name}, {len(record.edges):,} coloured edges",
        f"{path.stat().st_size / 1e6:.2f} MB, ready in {ready / 1000:.2f} s, a step in {np.median(times[:, 1]):.0f} ms",
    )
    cells = [
        name,
        f"{0 if record.network is None else record.network.n_edges:,}",
        f"{len(record.edges):,}",
        f"{path.stat().st_size / 1e6:.2f} MB",
        f"{ready / 1000:.2f} s",
        f"{np.median(times[:, 1]):.0f} ms, at most {times[:, 1].max():.0f} ms",
        f"{np.median(times[:, 0]):.0f} ms",
    ]
    return f"| {' | '.join(cells)} |"


def ready_ms(browser: Browser, path: Path) -> float:
    """Open a page and return when the frame after its drawing was done."""
    browser.open(path)
    browser.painted()
    return float(browser.js("return performance.now()"))


def main() -> None:
    found = find_chromium()
    if isinstance(found, str):
        sys.exit(found)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        browser = Browser(*found, folder / "profile")
        try:
            browser.look()
            version = browser.cdp("Browser.getVersion")["product"]
            print(f"{version}, 1280 x 900\n")
            print("| page | edges | coloured | size | ready | a step, drawn | of it script |")
            print("|---|---|---|---|---|---|---|")
            gothenburg = city("gothenburg")
            print(measure(browser, "gothenburg", gothenburg, folder), flush=True)
            print(measure(browser, "coquimbo", city("coquimbo"), folder), flush=True)
            print(measure(browser, "gothenburg-2000-roads", many_roads(gothenburg), folder), flush=True)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
