"""Names, labels and titles that try to act are shown as the text they are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import records
from browser import Browser

from routesim.report.assets import escape
from routesim.report.index import Card, write_index
from routesim.report.notebook import network_html
from routesim.report.packing import safe_json
from routesim.report.page import page_text, write_page
from routesim.results.record import Record

ACT = "window.broken=1"
HOSTILE = (
    f"<script>{ACT}</script>",
    f"</script><script>{ACT}</script>",
    f"</title><script>{ACT}</script>",
    f"<img src=x onerror={ACT}>",
    f"<svg/onload={ACT}>",
    "<!-- a comment that never ends <script>",
    f"`${{{ACT}}}`",
    f"${{{ACT}}}",
    "{{7*7}}{% raw %}",
    f'"onmouseover="{ACT}',
    f"'+{ACT}+'",
    f"\\u003cscript>{ACT}\\u003c/script>",
    "\u202egnirts thgir ot tfel\u202c",
    f"line\u2028separator\u2029{ACT}",
    f'<a href="javascript:{ACT}">go</a>&lt;b&gt;&amp;',
)


def hostile_record() -> Record:
    record = records.small_city()
    assert record.network is not None
    names = list(record.network.names)
    for place, edge in enumerate(record.edges.tolist()):
        names[edge] = HOSTILE[place % len(HOSTILE)]
    network = replace(record.network, names=tuple(names), name=HOSTILE[0], attribution=HOSTILE[3])
    learners = tuple(replace(played, label=HOSTILE[number]) for number, played in enumerate(record.learners))
    return replace(
        record,
        title=" ".join(HOSTILE),
        measure=HOSTILE[4],
        network=network,
        learners=learners,
        references={HOSTILE[1]: next(iter(record.references.values()))},
    )


def test_hostile_texts_are_only_text(browser: Browser, tmp_path: Path) -> None:
    record = hostile_record()
    path = tmp_path / "map.html"
    write_page(path, record)
    browser.open(path)
    assert browser.js("return document.getElementById('title').textContent") == record.title
    # A browser folds white space in the title of its window.
    assert browser.js("return document.title").split() == record.title.split()
    labels = browser.js("return [...document.querySelector('.pane select').options].map((o) => o.textContent)")
    assert labels == [played.label for played in record.learners]
    seen = set()
    for edge in range(len(record.edges)):
        browser.js("Page.views[0].loads.hit = arguments[0]; Page.views[0].loads.fire('click')", edge)
        seen.add(browser.js("return document.getElementById('road-name').textContent"))
    assert seen == set(HOSTILE)
    vias = browser.js("return [...document.querySelectorAll('td.via')].map((cell) => cell.textContent)")
    assert set(vias) <= set(HOSTILE)
    assert browser.js("return document.getElementById('curves-title').textContent") == record.measure
    browser.js("Page.go(0); document.querySelector('#routes tbody tr').click()")
    credit = browser.js("return document.querySelector('.leaflet-control-attribution').textContent")
    assert HOSTILE[3] in credit
    browser.painted()
    assert browser.js("return window.broken") is None
    assert browser.js("return document.querySelectorAll('body img, body a[href^=javascript]').length") == 0


def test_hostile_names_of_nodes_are_only_text(browser: Browser, tmp_path: Path) -> None:
    record = records.own_graph()
    assert record.network is not None
    network = replace(record.network, labels=HOSTILE[1:5])
    path = tmp_path / "map.html"
    write_page(path, replace(record, network=network))
    browser.open(path)
    shown = browser.js("return [...document.querySelectorAll('.node')].map((node) => node.textContent)")
    assert set(shown) < set(HOSTILE)
    assert browser.js("return window.broken") is None


def test_an_index_shows_hostile_texts_as_text(browser: Browser, tmp_path: Path) -> None:
    write_index(tmp_path, [Card("a page.html", text, text, text) for text in HOSTILE])
    browser.driver.get((tmp_path / "index.html").as_uri())
    assert browser.js("return [...document.querySelectorAll('h2')].map((h) => h.textContent)") == list(HOSTILE)
    assert browser.js("return window.broken") is None


def test_a_notebook_shows_hostile_texts_as_text(browser: Browser, tmp_path: Path) -> None:
    record = hostile_record()
    assert record.network is not None
    path = tmp_path / "cell.html"
    path.write_text(f"<meta charset=utf-8>{network_html(record.network)}", encoding="utf-8")
    browser.driver.get(path.as_uri())
    assert HOSTILE[0] in browser.js("return document.querySelector('p').textContent")
    browser.driver.switch_to.frame(0)
    try:
        browser.wait("document.documentElement.dataset.ready === 'yes'")
        assert browser.js("return document.title") == HOSTILE[0]
        assert browser.js("return window.broken") is None
        # The roads are drawn in the frame.
        canvas = "document.querySelector('canvas')"
        size = f"0, 0, {canvas}.width, {canvas}.height"
        browser.wait(f"{canvas}.getContext('2d').getImageData({size}).data.some((v) => v)")
    finally:
        browser.driver.switch_to.default_content()


@pytest.mark.parametrize("text", HOSTILE)
def test_escaped_text_has_nothing_that_acts(text: str) -> None:
    assert not set("<>\"'`${}\\") & set(escape(text))
    json = safe_json({"name": text})
    assert "<" not in json
    assert json.isascii()


def test_half_characters_do_not_stop_a_page(tmp_path: Path) -> None:
    record = replace(records.small_city(), title="half \ud800 of one")
    write_page(tmp_path / "map.html", record)
    assert "half ? of one" in (tmp_path / "map.html").read_text(encoding="utf-8")


def test_numbers_that_are_not_finite_do_not_stop_a_page() -> None:
    record = records.small_city()
    first = record.learners[0]
    ratios = first.ratios.copy()
    ratios[0, 0], ratios[1, 0] = np.nan, np.inf
    curve = np.full_like(first.curve, np.nan)
    broken = replace(first, ratios=ratios, curve=curve, lower=curve, upper=curve)
    assert "NaN" not in page_text(replace(record, learners=(broken,))).split('id="data">')[1].split("</script>")[0]
