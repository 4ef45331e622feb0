"""What a page needs inside itself to work without a network: scripts, styles, safe text."""

import base64
import html
import re
from functools import cache
from importlib import resources
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

from branca.element import Element, Figure, MacroElement
from jinja2 import Template

from routesim.storage.files import whole_file

if TYPE_CHECKING:
    import folium

_LEAFLET = "xstatic/pkg/leaflet/data"
_NOTICE = "Leaflet 1.9.3, (c) 2010-2022 Vladimir Agafonkin, (c) 2010-2011 CloudMade, BSD-2-Clause licence"
TILES = "https://tile.openstreetmap.org"
# The browser itself refuses every request but the tiles, which are asked for only when the reader switches them on.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    f"img-src data: {TILES}; base-uri 'none'; form-action 'none'"
)
_HEAD = (
    f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
)


# What folium puts into the head for a map, but for the rule that forbids readers to enlarge the page.
_MAP_STYLE = (
    "<style>#{name} {{ position: relative; width: 100%; height: 100%; }} .leaflet-container {{ font-size: 1rem; }} "
    "html, body {{ width: 100%; height: 100%; margin: 0; padding: 0; }}</style>"
)


class Inline(Element):
    """Text that goes into the page as it is, never read as a template."""

    _template = Template("{{ this.text }}")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class Markup(MacroElement):
    """Markup in the body and a script behind the maps, both as they are.

    What a macro of branca returns is read as a template once more, and a street called {{7*7}} would be calculated:
    so both are handed over without a macro.
    """

    def __init__(self, name: str, markup: str, code: str = "") -> None:
        super().__init__()
        self._name, self._id = "markup", name
        self.markup, self.code = markup, code

    def render(self, **_: object) -> None:
        """Put both into the figure."""
        figure = self.get_root()
        figure.html.add_child(Inline(self.markup), name=self.get_name())
        if self.code:
            figure.script.add_child(Inline(self.code), name=self.get_name())


class Page(Figure):
    """A page as branca makes it, which also says its language."""

    _template = Template(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n{{ this.header.render(**kwargs) }}\n</head>\n'
        "<body>\n{{ this.html.render(**kwargs) }}\n</body>\n"
        "<script>\n{{ this.script.render(**kwargs) }}\n</script>\n</html>\n"
    )


class MapHead(MacroElement):
    """Replaces what a map before it put into the head, which branca keeps under the map's name."""

    def __init__(self, made: "folium.Map") -> None:
        super().__init__()
        self._map = made

    def render(self, **_: object) -> None:
        """Put the style of the map into the figure."""
        name = self._map.get_name()
        self.get_root().header.add_child(Inline(_MAP_STYLE.format(name=name)), name=name)


def bare_map(name: str) -> "folium.Map":
    """Return a folium map that asks nobody for anything and is always called the same."""
    import folium

    made = folium.Map(tiles=None, location=(0.0, 0.0), zoom_start=2, zoom_snap=0.25, zoom_delta=0.5, prefer_canvas=True)
    made._id = name  # of many digits by chance otherwise, and the same page would be another file each time
    made.default_js, made.default_css = [], []
    return made


def render(title: str, styles: str, parts: "list[folium.Map | Markup]") -> str:
    """Return a whole page of folium maps and markup in this order, with Leaflet inside."""
    figure = Page()
    figure.header.add_child(Inline(_HEAD), name="policy")
    figure.header.add_child(Inline(f"<title>{escape(title)}</title>"), name="page_title")
    figure.header.add_child(Inline(f"{leaflet_style()}<style>{styles}</style>"), name="style")
    figure.header.add_child(Inline(leaflet_script()), name="script")
    for part in parts:
        figure.add_child(part)
        if not isinstance(part, Markup):
            figure.add_child(MapHead(part))
    text: str = figure.render()
    return text


def escape(text: str) -> str:
    """Return `text` so that it shows as itself in HTML, and also inside a script's quotes or template literal."""
    escaped = html.escape(text, quote=True)
    return re.sub(r"[`${}\\]", lambda found: f"&#{ord(found[0])};", escaped)


@cache
def own_file(name: str) -> str:
    """Return a script, style or markup of this folder."""
    return (resources.files("routesim.report") / name).read_text(encoding="utf-8")


def write_text(path: str | Path, text: str) -> None:
    """Write a page whole or not at all; half characters that no file can hold become question marks."""
    with whole_file(path) as temporary:
        temporary.write_bytes(text.encode("utf-8", errors="replace"))


@cache
def leaflet_script() -> str:
    """Return Leaflet's code as a script element."""
    code = _leaflet_file("leaflet.js").read_text(encoding="utf-8")
    code = re.sub(r"//# sourceMappingURL=\S*", "", code)
    return f"<script>/* {_NOTICE} */\n{code}</script>"


@cache
def leaflet_style() -> str:
    """Return Leaflet's style as a style element, its pictures inside."""

    def picture(found: "re.Match[str]") -> str:
        content = base64.b64encode(_leaflet_file(f"images/{found[1]}").read_bytes()).decode("ascii")
        return f"url(data:image/png;base64,{content})"

    style = _leaflet_file("leaflet.css").read_text(encoding="utf-8")
    return f"<style>/* {_NOTICE} */\n{re.sub(r'url[(]images/([a-z0-9-]+[.]png)[)]', picture, style)}</style>"


def _leaflet_file(name: str) -> Path:
    return Path(str(distribution("XStatic-Leaflet").locate_file(f"{_LEAFLET}/{name}")))
