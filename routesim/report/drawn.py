"""draw_map: results as one page of maps, to be saved as a file or looked at in a notebook."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from routesim.errors import InputError
from routesim.report.assets import escape, write_text
from routesim.report.page import page_text
from routesim.results.from_results import record
from routesim.results.record import Record

if TYPE_CHECKING:
    from routesim.results.from_results import Results

_HEIGHT_PX = 760


@dataclass(frozen=True, repr=False)
class MapPage:
    """A page that needs no network; a notebook shows it in a frame of its own."""

    html: str
    title: str

    def __repr__(self) -> str:
        return f"<MapPage {self.title!r}: {len(self.html):,} characters>"

    def _repr_html_(self) -> str:
        return framed(self.html, self.title, _HEIGHT_PX)

    def save(self, path: str | Path) -> None:
        """Write the page whole or not at all."""
        write_text(path, self.html)


def draw_map(
    results: "Results | Record",
    path: str | Path | None = None,
    *,
    title: str = "",
    learners: Sequence[str] | None = None,
    step: int | None = None,
) -> MapPage:
    """Draw what was recommended and how roads were loaded, over time; save the page if a path is given.

    `results` are those of `rs.run`, `rs.replicate` or `TrafficSimulator.run`: one, a list, or a mapping from the label
    of each learner to its result or replications. In a list, results of one learner are its replications. All must be
    on the same roads, with the same window and the same rounds or bins of time. `learners` names the one or two that
    are shown at first, and `step` the step of time, counted from 0 or backwards from -1; in the page all can be chosen.

    >>> import routesim as rs
    >>> two_roads = rs.RoundEnvironment.from_congestion(
    ...     rs.ActionSet.arms(2), [0.9, 0.6], rs.congestion.Inverse(), window=2, noise_std=0.1
    ... )
    >>> runs = {"learns": rs.run(two_roads, rs.CARMAB(), 500), "by chance": rs.run(two_roads, rs.RandomPath(), 500)}
    >>> page = draw_map(runs, title="Two arms")
    >>> page.title, page.html.lower().startswith("<!doctype html>")
    ('Two arms', True)
    """
    if not isinstance(title, str):
        raise InputError(f"the title of a map is a text, got {title!r:.80}")
    told = results if isinstance(results, Record) else record(results, title)
    told = replace(told, title=title or told.title)
    page = MapPage(page_text(told, learners=learners, step=step), told.title)
    if path is not None:
        page.save(path)
    return page


def framed(page: str, title: str, height_px: int) -> str:
    """Return a page as a frame inside another, from which its scripts cannot reach out."""
    look = f"width:100%;height:{height_px}px;border:1px solid #ccc;border-radius:6px"
    return (
        f'<iframe title="{escape(title)}" sandbox="allow-scripts" style="{look}" '
        f'srcdoc="{html.escape(page, quote=True)}"></iframe>'
    )
