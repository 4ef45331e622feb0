"""How networks, runs and traffic show themselves in a notebook: as maps, results with their numbers below."""

import base64
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from routesim.report.assets import Markup, bare_map, escape, own_file, render
from routesim.report.drawing import draw_network
from routesim.report.drawn import draw_map, framed
from routesim.report.packing import Bulk, pack_lines, safe_json
from routesim.report.page import backdrop
from routesim.results.from_results import can_be_drawn

if TYPE_CHECKING:
    from routesim.results.run import Run
    from routesim.roads.network import RoadNetwork
    from routesim.traffic.result import Traffic

_HEIGHT_PX = 380
_MOST_LABELS = 12
_STYLE = (
    ":root { --ground: #f4f4f1; --minor: #c3cad1; --middle: #a9b3bd; --major: #7d8a97; }"
    "html, body, .folium-map { height: 100%; margin: 0; } .leaflet-container { background: var(--ground); }"
    ".leaflet-attribution-flag { display: none !important; }"
)
_SCRIPT = """
(async () => {
  const data = JSON.parse(document.getElementById("data").textContent), map = %s;
  const bulk = await Roads.unpack(document.getElementById("bulk").textContent, data.sections);
  map.attributionControl.setPrefix("");
  const credit = document.createElement("span");
  credit.textContent = data.credit;
  if (data.credit) map.attributionControl.addAttribution(credit.innerHTML);
  map.fitBounds(data.bounds, {animate: false});
  Roads.backdrop(map, ["roads0", "roads1", "roads2"].map((name) => Roads.lines(bulk[name]))).addTo(map);
  if (!data.schematic) L.control.scale({imperial: false}).addTo(map);
  document.documentElement.dataset.ready = "yes";
})();
"""


def network_html(network: "RoadNetwork") -> str:
    """Return a heading and a map of the roads in a frame of their own."""
    words = f"{network.name or 'Roads'}: {network.n_nodes:,} nodes, {network.n_edges:,} edges"
    heading = f"<p>{escape(words)}</p>"
    if network.n_edges == 0:
        return heading
    return heading + framed(roads_page(network), "Map of the roads", _HEIGHT_PX)


def roads_page(network: "RoadNetwork") -> str:
    """Return a page with nothing but the roads on it."""
    drawing, bulk = draw_network(network), Bulk()
    for number, lines in enumerate(backdrop(network, drawing)):
        bulk.add(f"roads{number}", pack_lines(lines))
    points = np.concatenate(list(drawing.lines.values()))
    (west, south), (east, north) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    data = {
        "sections": bulk.sections,
        "credit": "© OpenStreetMap contributors" if "OpenStreetMap" in drawing.credit else drawing.credit,
        "schematic": drawing.schematic,
        "bounds": [[south, west], [north, east]],
    }
    holders = (
        f'<script type="application/json" id="data">{safe_json(data)}</script>'
        f'<script type="text/plain" id="bulk">{bulk.text()}</script>'
    )
    roads = bare_map("roads")
    code = own_file("roads.js") + _SCRIPT % roads.get_name()
    return render(network.name or "Roads", _STYLE, [roads, Markup("after", holders, code)])


def run_html(run: "Run") -> str:
    """Return the run's map, its summary as a table, and the curve of its average regret.

    A run that does not know its roads has the shares of its first actions in place of the map.
    """
    from routesim.report.plots import plot_regret

    picture = io.BytesIO()
    figure = plot_regret({run.learner: [run]}, title="")
    figure.set_size_inches(5.2, 3.2)
    figure.savefig(picture, format="png", dpi=90)
    source = base64.b64encode(picture.getvalue()).decode("ascii")
    curve = f'<img alt="average regret over rounds" src="data:image/png;base64,{source}">'
    if can_be_drawn(run):
        return draw_map(run)._repr_html_() + _side_by_side(_table(run.summary()), curve)
    return _side_by_side(_table(run.summary()), _shares(run), curve)


def traffic_html(traffic: "Traffic") -> str:
    """Return the map of traffic and its summary as a table."""
    table = _table(traffic.summary())
    return draw_map(traffic)._repr_html_() + table if len(traffic.loads) else table


def _side_by_side(*parts: str) -> str:
    return f'<div style="display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start">{"".join(parts)}</div>'


def _table(summary: Mapping[str, object]) -> str:
    rows = (f"<tr><th>{escape(str(key))}</th><td>{_cell(value)}</td></tr>" for key, value in summary.items())
    return f"<table>{''.join(rows)}</table>"


def _shares(run: "Run") -> str:
    counts = np.bincount(run.plays[:, 1], run.plays[:, 2])  # thinned rows do not tell how often
    often = np.argsort(-counts, kind="stable")[:_MOST_LABELS]
    what = "route" if any(len(path) > 1 for path in run.paths) else "arm"
    shares = "".join(
        f"<tr><td>{what} {action + 1}</td><td>{counts[action] / run.rounds:.1%}</td></tr>"
        for action in often.tolist()
        if counts[action]
    )
    return f"<table><tr><th colspan=2>recommended</th></tr>{shares}</table>"


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else escape(str(value))
