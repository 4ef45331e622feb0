"""What a page needs inside itself to work without a network: Leaflet's script and style, and safe text."""

import base64
import html
import re
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

from branca.element import Element
from jinja2 import Template

_LEAFLET = "xstatic/pkg/leaflet/data"
_NOTICE = "Leaflet 1.9.3, (c) 2010-2022 Vladimir Agafonkin, (c) 2010-2011 CloudMade, BSD-2-Clause licence"


class Inline(Element):
    """Text that goes into the page as it is, never read as a template."""

    _template = Template("{{ this.text }}")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


def escape(text: str) -> str:
    """Return `text` so that it shows as itself in HTML, and also inside a script's quotes or template literal."""
    escaped = html.escape(text, quote=True)
    return re.sub(r"[`${}\\]", lambda found: f"&#{ord(found[0])};", escaped)


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
