"""The page that leads to the pages of a folder: a card for each, with a small picture of its roads and routes."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape as attribute
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from routesim.errors import InputError
from routesim.report.assets import escape, own_file, write_text
from routesim.report.drawing import draw
from routesim.report.palette import LIGHT_GROUND, LOAD_CLASSES, load_classes

if TYPE_CHECKING:
    from routesim.results.record import Record

INDEX = "index.html"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True)
class Card:
    """What the index says of a page: its file beside the index, its title, its city, what came out, and a picture."""

    file: str
    title: str
    city: str = ""
    verdict: str = ""
    picture: bytes = b""


def write_index(folder: str | Path, pages: Sequence[Card], *, title: str = "Maps of routesim") -> None:
    """Write `index.html` into a folder, with a card for each page."""
    for page in pages:
        if not page.file or Path(page.file).name != page.file:
            raise InputError(f"a page of an index is a file beside it, got {page.file!r}")
    cards = "\n".join(_card(page) for page in pages)
    text = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{own_file('index.css')}</style></head><body><h1>{escape(title)}</h1>\n"
        f"<main>\n{cards}\n</main>\n<footer>Roads: &copy; OpenStreetMap contributors, "
        "openstreetmap.org/copyright. Every page works without a network.</footer></body></html>\n"
    )
    write_text(Path(folder) / INDEX, text)


def _card(page: Card) -> str:
    source = base64.b64encode(page.picture).decode("ascii")
    picture = f'<img alt="" src="data:image/png;base64,{source}">' if page.picture else ""
    city = f'<p class="city">{escape(page.city)}</p>' if page.city else ""
    verdict = f'<p class="verdict">{escape(page.verdict)}</p>' if page.verdict else ""
    link = attribute(quote(page.file))
    return f'<a class="card" href="{link}">{picture}<div>{city}<h2>{escape(page.title)}</h2>{verdict}</div></a>'


def thumbnail(record: "Record", width: int = 480, height: int = 300) -> bytes:
    """Return a small picture of the roads and the loads of the first learner, as PNG."""
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure
    from PIL import Image

    drawing, played = draw(record), record.learners[0]
    figure = Figure(figsize=(width / 100, height / 100), facecolor=LIGHT_GROUND)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.add_collection(LineCollection(list(drawing.lines.values()), colors="#c3cad1", linewidths=0.5))
    busiest = int(np.argmax(played.loads.sum(axis=1)))
    ratios = np.nan_to_num(played.ratios[busiest], nan=1.0)
    classes = np.where(played.loads[busiest] > 0, load_classes(ratios).astype(np.int64), -1)
    for number, one in enumerate(LOAD_CLASSES):
        lines = [drawing.lines[edge] for edge in record.edges[classes == number].tolist()]
        axes.add_collection(LineCollection(lines, colors=one.light, linewidths=one.width * 0.6, capstyle="round"))
    points = np.concatenate([drawing.lines[edge] for edge in record.edges.tolist()])
    low, high = np.percentile(points, 2, axis=0), np.percentile(points, 98, axis=0)
    middle, half = (low + high) / 2, np.maximum((high - low) / 2, 1e-4)
    stretch = float(np.cos(np.radians(middle[1])))
    half_width = 1.2 * max(half[0], half[1] / stretch * width / height)
    axes.set_xlim(middle[0] - half_width, middle[0] + half_width)
    axes.set_ylim(middle[1] - half_width * stretch * height / width, middle[1] + half_width * stretch * height / width)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=100)
    small = io.BytesIO()
    Image.open(content).convert("RGB").quantize(24).save(small, format="PNG", optimize=True)
    return small.getvalue()
