"""The map of a run: the roads, the recommended routes by how often they were recommended, one layer a learner."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import folium
import numpy as np
from branca.element import MacroElement
from jinja2 import Template
from numpy.typing import NDArray

from routesim.errors import InputError
from routesim.report.assets import Inline, escape, leaflet_script, leaflet_style
from routesim.results import Run

if TYPE_CHECKING:
    from routesim.network import RoadNetwork

_ROUTE_COLOURS = ("#d0104c", "#f07800", "#f0c000", "#0072b2", "#009e73", "#6a0060", "#56b4e9", "#9a6324")
_MAJOR = ("motorway", "trunk", "primary", "secondary", "tertiary")
_STYLE = """<style>
.leaflet-container { background: #f4f4f1; }
.caption { background: #ffffffdd; padding: 4px 8px; max-width: 32em; font: 13px/1.3 system-ui, sans-serif; }
</style>"""
_CREDIT = '&copy; <a href="https://www.openstreetmap.org/copyright">OpenStreetMap</a> contributors'


@dataclass(frozen=True)
class _Layer:
    learner: str
    shares: NDArray[np.float64]


class _RoutesLayer(MacroElement):
    """Roads as one canvas drawing, and a choice of learners whose routes lie on top of it."""

    _template = Template(
        """
        {% macro script(this, kwargs) %}
        (function () {
            const map = {{ this._parent.get_name() }};
            const page = {{ this.data }};
            const canvas = L.canvas({padding: 0.5});
            const unpack = (numbers) => {
                const line = []; let x = 0, y = 0;
                for (let i = 0; i < numbers.length; i += 2) {
                    x += numbers[i]; y += numbers[i + 1]; line.push([y / 1e5, x / 1e5]);
                }
                return line;
            };
            for (const [lines, colour, weight] of page.roads) {
                L.polyline(lines.map(unpack), {renderer: canvas, color: colour, weight: weight,
                                               interactive: false}).addTo(map);
            }
            const routes = page.routes.map(unpack);
            const choices = {};
            page.layers.forEach((layer, number) => {
                const group = L.layerGroup();
                page.order[number].forEach((route) => {
                    const share = layer.shares[route];
                    if (share <= 0) return;
                    const width = 3 + 13 * share;
                    L.polyline(routes[route], {color: "#ffffff", weight: width + 3, interactive: false})
                        .addTo(group);
                    L.polyline(routes[route], {color: page.colours[route], weight: width, opacity: 0.85,
                                               className: "route"})
                        .bindTooltip(layer.texts[route], {sticky: true}).addTo(group);
                });
                choices[layer.name] = group;
                if (number === 0) group.addTo(map);
            });
            L.control.layers(choices, {}, {collapsed: window.innerWidth < 700}).addTo(map);
            for (const [place, name] of page.ends) {
                L.circleMarker(place, {radius: 8, color: "#ffffff", weight: 2, fillColor: "#202020",
                                       fillOpacity: 1})
                    .bindTooltip(name, {permanent: true, direction: "top", offset: [0, -8]}).addTo(map);
            }
            const caption = L.control({position: "bottomleft"});
            caption.onAdd = () => {
                const box = L.DomUtil.create("div", "caption");
                box.textContent = page.caption;
                return box;
            };
            L.control.scale({imperial: false}).addTo(map);
            caption.addTo(map);
            map.fitBounds(L.latLngBounds(routes.flat()), {padding: [40, 40]});
        })();
        {% endmacro %}
        """
    )

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__()
        self._name = "routes"
        # `</` would end the script whatever quotes it stands in; the line separators end a line of script.
        self.data = json.dumps(data).replace("</", "<\\/")


def write_map(path: Path, network: "RoadNetwork", runs: Mapping[str, Sequence[Run]], title: str) -> None:
    """Write one self-contained page: every learner's routes, their width the share of recommendations."""
    if not runs:
        raise InputError("a map needs at least one learner's runs, got none")
    routes = recommended_routes(runs)
    layers = [_Layer(label, route_shares(routes, replications)) for label, replications in runs.items()]
    free_flow = [float(network.free_flow_s[list(route)].sum()) for route in routes]
    data = {
        "roads": _roads(network),
        "routes": [_pack(_route_shape(network, route)) for route in routes],
        "colours": [_ROUTE_COLOURS[number % len(_ROUTE_COLOURS)] for number in range(len(routes))],
        "order": [np.argsort(-layer.shares, kind="stable").tolist() for layer in layers],
        "layers": [
            {
                "name": escape(layer.learner),
                "shares": layer.shares.round(4).tolist(),
                "texts": [
                    f"route {number + 1}, {escape(_via(network, route))}: {layer.shares[number]:.1%} of "
                    f"recommendations, {free_flow[number]:.0f} s on empty roads"
                    for number, route in enumerate(routes)
                ],
            }
            for layer in layers
        ],
        "ends": _ends(network, routes),
        "caption": f"{title}. The wider a route, the more often it was recommended.",
    }
    page = folium.Map(tiles=None, zoom_snap=0.25)
    page.default_js, page.default_css = [], []
    figure = page.get_root()
    figure.header.add_child(Inline(leaflet_style() + _STYLE), name="style")
    figure.header.add_child(Inline(leaflet_script()), name="script")
    figure.header.add_child(Inline(f"<title>{escape(title)}</title>"), name="page_title")
    page.add_child(_RoutesLayer(data))
    page.add_child(_Credit(network.attribution))
    path.write_text(figure.render(), encoding="utf-8")


class _Credit(MacroElement):
    _template = Template(
        """
        {% macro script(this, kwargs) %}
        {{ this._parent.get_name() }}.attributionControl.addAttribution({{ this.credit }});
        {% endmacro %}
        """
    )

    def __init__(self, attribution: str) -> None:
        super().__init__()
        self._name = "credit"
        credit = _CREDIT if "OpenStreetMap" in attribution else escape(attribution)
        self.credit = json.dumps(credit).replace("</", "<\\/")


def recommended_routes(runs: Mapping[str, Sequence[Run]]) -> list[tuple[int, ...]]:
    """Return every route of the runs once, in the order of their numbers."""
    every = (path for replications in runs.values() for run in replications for path in run.paths)
    return list(dict.fromkeys(every))


def route_shares(routes: Sequence[tuple[int, ...]], runs: Sequence[Run]) -> NDArray[np.float64]:
    """Return how often each route was recommended, as a share of all rounds of all replications."""
    place = {route: number for number, route in enumerate(routes)}
    counts = np.zeros(len(routes))
    for run in runs:
        played = np.bincount(run.actions, minlength=len(run.paths))
        counts[[place[path] for path in run.paths]] += played
    return counts / sum(run.rounds for run in runs)


def _roads(network: "RoadNetwork") -> list[tuple[list[list[int]], str, float]]:
    """Return the backdrop: delta-coded lines of the major and the minor roads, each with a colour and a width."""
    major = np.array([highway.removesuffix("_link") in _MAJOR for highway in network.highways])
    return [
        ([_pack(network.shape(edge)) for edge in np.flatnonzero(chosen).tolist()], colour, weight)
        for chosen, colour, weight in ((~major, "#b4bcc6", 1.0), (major, "#8b95a1", 2.0))
    ]


def _pack(line: NDArray[np.float64]) -> list[int]:
    """Return (lon, lat) points as differences of whole 1e-5 degrees, about a metre."""
    whole = np.round(line * 1e5).astype(np.int64)
    return np.diff(whole, axis=0, prepend=0).ravel().tolist()


def _route_shape(network: "RoadNetwork", route: Sequence[int]) -> NDArray[np.float64]:
    return np.concatenate([network.shape(edge) for edge in route])


def _via(network: "RoadNetwork", route: Sequence[int]) -> str:
    """Return the street that the route follows for the longest time."""
    seconds: dict[str, float] = {}
    for edge in route:
        name = network.names[edge]
        seconds[name] = seconds.get(name, 0.0) + float(network.free_flow_s[edge])
    seconds.pop("", None)
    return f"via {max(seconds, key=lambda name: seconds[name])}" if seconds else "unnamed streets"


def _ends(network: "RoadNetwork", routes: Sequence[tuple[int, ...]]) -> list[tuple[list[float], str]]:
    first, last = routes[0][0], routes[0][-1]
    origin, destination = network.shape(first)[0], network.shape(last)[-1]
    return [([origin[1], origin[0]], "origin"), ([destination[1], destination[0]], "destination")]
