"""The page in a real browser: drawn without a network, moved by slider, player, keys and clicks, on any screen."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import records
from browser import Browser
from driving import click, image, near, press, spot, top_level, work_through

from routesim.report.page import write_page
from routesim.report.palette import LOAD_CLASSES

MAPS = Path(__file__).parents[2] / "maps"


@pytest.mark.parametrize("name", records.MAKERS)
def test_every_kind_of_record_is_drawn_where_its_roads_are(browser: Browser, pages: dict[str, Path], name: str) -> None:
    browser.open(pages[name])
    maps = browser.js("return Page.views.length")
    assert maps == (1 if name == "one learner" else 2)
    picture = image(browser)
    for side in range(maps):
        level = top_level(browser, side)
        _, at = spot(browser, side, level)
        assert near(picture, at, LOAD_CLASSES[level].light), f"class {level} is not seen at {at}"
    browser.js("for (const v of Page.views) { v.map.removeLayer(v.loads); v.map.removeLayer(v.bands); }")
    assert (image(browser) != picture).any(axis=2).sum() > 300, "pixels change where the roads were"


@pytest.mark.parametrize("path", sorted(MAPS.glob("*.html")), ids=lambda path: path.stem)
def test_every_committed_map_works_without_a_network(browser: Browser, path: Path) -> None:
    if path.stem == "index":
        browser.driver.get(path.as_uri())
        links = browser.js("return [...document.querySelectorAll('a.card')].map((a) => a.getAttribute('href'))")
        assert sorted(links) == sorted(page.name for page in MAPS.glob("*.html") if page.stem != "index")
        return
    browser.open(path)
    if not re.search(r"-0(?!00_)\d\d_", path.stem):  # of a sweep the first point stands for all
        work_through(browser)


def test_the_slider_moves_everything(browser: Browser, pages: dict[str, Path]) -> None:
    record = records.small_city()
    browser.open(pages["city"])
    assert browser.js("return document.getElementById('when').textContent") == "rounds 1,411 to 1,440"
    cursor = browser.js("return document.querySelector('#curves .cursor').getAttribute('x1')")
    browser.js("const t = document.getElementById('time'); t.value = '0'; t.dispatchEvent(new Event('input'))")
    browser.painted()
    assert browser.js("return document.getElementById('when').textContent") == "rounds 1 to 30"
    assert browser.js("return document.querySelector('#curves .cursor').getAttribute('x1')") != cursor
    head = browser.js("return [...document.querySelectorAll('.pane output b')].map((b) => b.textContent)")
    assert [float(text.replace(",", "")) for text in head] == pytest.approx(
        [played.curve[0] for played in record.learners[:2]], rel=1e-3
    )
    shares = browser.js("return [...document.querySelectorAll('#routes td.share span')].map((s) => s.textContent)")
    first = [shown for played in record.learners[:2] for shown in [played.shares[0]]]
    for route in range(len(record.routes)):
        for side in range(2):
            shown = float(shares[2 * route + side].strip("<% "))
            assert shown == pytest.approx(100 * first[side][route], abs=0.6)


def test_a_step_paints_only_what_changed(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["city"])
    changed = browser.js(
        """Page.go(0); const {loads} = Page.views[0], before = loads.levels.slice();
        const again = loads.setLevels(before); Page.go(47); const after = loads.levels;
        return [again, before.filter((v, i) => v !== after[i]).length];"""
    )
    assert changed[0] == 0
    assert changed[1] > 0


def test_playing_goes_on_and_stops_at_the_end(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["city"])
    browser.js("document.getElementById('speed').value = '8'; Page.go(45); document.getElementById('play').click()")
    assert browser.js("return document.getElementById('play').textContent") == "Pause"
    browser.wait("Page.state.step === 47 && document.getElementById('play').textContent === 'Play'")
    browser.js("document.getElementById('play').click()")
    browser.wait("Page.state.step >= 1 && Page.state.step < 9")
    browser.js("document.getElementById('play').click()")
    stopped = browser.js("return Page.state.step")
    assert browser.js("return document.getElementById('play').textContent") == "Play"
    browser.js("document.getElementById('back').click()")
    assert browser.js("return Page.state.step") == stopped - 1
    browser.js("document.getElementById('forward').click()")
    assert browser.js("return Page.state.step") == stopped


def test_keys_move_through_time(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["city"])
    press(browser, "Home", 36)
    assert browser.js("return Page.state.step") == 0
    press(browser, "ArrowRight", 39)
    press(browser, "ArrowRight", 39)
    press(browser, "ArrowLeft", 37)
    assert browser.js("return Page.state.step") == 1
    press(browser, "End", 35)
    assert browser.js("return Page.state.step") == 47
    press(browser, " ", 32, " ")
    assert browser.js("return Page.state.timer !== null")
    press(browser, " ", 32, " ")
    assert browser.js("return Page.state.timer === null")
    # With the slider in focus the same keys work, each once.
    browser.js("document.getElementById('time').focus()")
    press(browser, "Home", 36)
    press(browser, "ArrowRight", 39)
    assert browser.js("return Page.state.step") == 1


def test_any_two_learners_can_be_set_side_by_side(browser: Browser, pages: dict[str, Path]) -> None:
    record = records.small_city()
    browser.open(pages["city"])
    before = browser.js("return Array.from(Page.views[0].loads.levels)")
    browser.js(
        "const s = document.querySelectorAll('.pane select')[0]; s.value = '2'; s.dispatchEvent(new Event('change'))"
    )
    assert browser.js("return Page.state.shown") == [2, 1]
    assert browser.js("return Array.from(Page.views[0].loads.levels)") != before
    groups = browser.js("return [...document.querySelectorAll('th.group')].map((cell) => cell.textContent)")
    assert groups == [record.learners[2].label, record.learners[1].label]
    # Choosing what the other side shows makes them change places.
    browser.js(
        "const s = document.querySelectorAll('.pane select')[0]; s.value = '1'; s.dispatchEvent(new Event('change'))"
    )
    assert browser.js("return Page.state.shown") == [1, 2]
    informed = [number for number, played in enumerate(record.learners) if played.informed]
    browser.js(
        "const s = document.querySelectorAll('.pane select')[0]; s.value = arguments[0];"
        "s.dispatchEvent(new Event('change'))",
        str(informed[0]),
    )
    assert "told" in browser.js("return document.querySelector('.pane .informed').textContent")


def test_a_click_on_a_road_tells_its_name_and_history(browser: Browser, pages: dict[str, Path]) -> None:
    record = records.small_city()
    assert record.network is not None
    browser.open(pages["city"])
    assert browser.js("return document.getElementById('road').hidden")
    edge, at = spot(browser, 0, top_level(browser, 0))
    click(browser, *at)
    assert not browser.js("return document.getElementById('road').hidden")
    picked = browser.js("return Page.state.edge")
    known = int(record.edges[picked])
    assert picked == edge
    assert browser.js("return document.getElementById('road-name').textContent") == record.network.names[known]
    text = browser.js("return document.getElementById('road-facts').textContent")
    assert record.network.highways[known] in text
    assert f"{record.learners[0].loads[-1, picked]:.3g} uses in 4 rounds" in text
    assert f"{record.learners[0].ratios[-1, picked]:.3g} times as long as empty" in text
    assert browser.js("return document.querySelectorAll('#road-chart path.curve').length") == 2
    tip = browser.js("return document.querySelector('.leaflet-tooltip')?.textContent")
    assert tip == record.network.names[known], "the name is shown beside the pointer too"
    press(browser, "Escape", 27)
    assert browser.js("return document.getElementById('road').hidden")


def test_layers_go_on_and_off_on_both_maps(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["city"])
    full = image(browser)
    names = browser.js(
        "return [...document.querySelectorAll('.leaflet-control-layers-overlays')][0].innerText.split('\\n')"
        ".map((text) => text.trim()).filter(Boolean)"
    )
    boxes = "document.querySelector('.leaflet-control-layers-overlays').querySelectorAll('input')"
    count = browser.js(f"return {boxes}.length")
    assert count == 4, names
    assert browser.js(f"return [...{boxes}].map((box) => box.checked)") == [True, True, True, False]
    for number in range(3):
        browser.js(f"{boxes}[{number}].click()")
        layer = ("backdrop", "bands", "loads")[number]
        assert browser.js(f"return Page.views.map((v) => v.map.hasLayer(v.{layer}))") == [False, False]
    assert (image(browser) != full).any(axis=2).sum() > 1_000
    for number in range(3):
        browser.js(f"{boxes}[{number}].click()")
    assert (image(browser) != full).any(axis=2).mean() < 0.001, "everything is back as it was"


def test_tiles_are_asked_for_only_when_they_are_switched_on(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.look()
    chromium.open(pages["city"])
    chromium.painted()
    assert chromium.requests() == []
    chromium.cdp("Network.setBlockedURLs", urls=["*openstreetmap.org*"])
    try:
        chromium.js("document.querySelectorAll('.leaflet-control-layers-overlays input')[3].click()")
        chromium.wait("document.querySelectorAll('.leaflet-tile').length > 0")
        chromium.painted()
        asked = chromium.requests()
        assert asked
        assert all(url.startswith("https://tile.openstreetmap.org/") for url in asked)
        chromium.driver.get("about:blank")
        chromium.requests(), chromium.complaints()
    finally:
        chromium.cdp("Network.setBlockedURLs", urls=[])


def test_the_maps_move_together(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["city"])
    views = "return Page.views.map((v) => [v.map.getZoom(), v.map.getCenter().lat, v.map.getCenter().lng])"
    browser.js("Page.views[0].map.panBy([80, 40], {animate: false})")
    left, right = browser.js(views)
    assert left == pytest.approx(right, abs=1e-4)
    browser.js("Page.views[1].map.setZoom(Page.views[1].map.getZoom() + 1, {animate: false})")
    left, right = browser.js(views)
    assert left == pytest.approx(right, abs=1e-4)


def test_routes_light_up_from_the_table(browser: Browser, pages: dict[str, Path]) -> None:
    record = records.small_city()
    browser.open(pages["city"])
    before = image(browser)
    browser.js("document.querySelectorAll('#routes tbody tr')[1].click()")
    assert browser.js("return Page.views.map((v) => v.picked.getLatLngs().length)") == [len(record.routes[1])] * 2
    assert (image(browser) != before).any(axis=2).sum() > 50
    assert (
        browser.js("return document.querySelectorAll('#routes tbody button')[1].getAttribute('aria-pressed')") == "true"
    )
    browser.js("document.querySelectorAll('#routes tbody tr')[1].click()")
    assert browser.js("return Page.views[0].picked.getLatLngs().length") == 0


def test_many_routes_are_folded_until_asked_for(browser: Browser, tmp_path: Path) -> None:
    record = records.traffic()
    routes = tuple((edge,) for edge in record.edges[:15].tolist())
    learners = tuple(
        replace(played, shares=np.full((len(record.step_ends), 15), 1 / 15), route_values=np.ones(15), overall=None)
        for played in record.learners
    )
    path = tmp_path / "map.html"
    write_page(path, replace(record, routes=routes, learners=learners))
    browser.open(path)
    shown = "return [...document.querySelectorAll('#routes tbody tr')].filter((row) => row.offsetHeight).length"
    assert browser.js(shown) == 12
    browser.js("document.getElementById('more').click()")
    assert browser.js(shown) == 15
    texts = browser.js("return [...document.querySelectorAll('#curves text')].map((text) => text.textContent)")
    times = [text for text in texts if ":" in text and text[0].isdigit()]
    assert times
    assert all(text.count(":") == 1 for text in times), "round times, such as 0:15"


def test_a_click_on_the_curves_moves_time_and_keys_hide_curves(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["city"])
    browser.js("document.getElementById('curves').scrollIntoView({block: 'center', behavior: 'instant'})")
    box = browser.js("const b = document.querySelector('#curves rect').getBoundingClientRect(); return [b.left, b.top]")
    click(browser, box[0] + 2, box[1] + 30)
    assert browser.js("return Page.state.step") == 0
    curves = browser.js("return document.querySelectorAll('#curves path.curve').length")
    assert curves == 5, "four learners and the best possible"
    browser.js("document.querySelector('#curve-legend button').click()")
    assert browser.js("return document.querySelectorAll('#curves path.curve').length") == curves - 1


@pytest.mark.parametrize("name", ["city", "traffic", "arms", "one learner"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_overflows_and_the_credit_is_never_covered(
    browser: Browser, pages: dict[str, Path], name: str, width: int
) -> None:
    browser.look(width, 844)
    browser.open(pages[name])
    browser.js("Page.views[0].loads.hit = 0; Page.views[0].loads.fire('click')")
    assert browser.js("return document.documentElement.scrollWidth") <= width
    outside = browser.js(
        """return [...document.querySelectorAll('body *')].filter((e) => {
          if (e.closest('.leaflet-pane, .skip, .leaflet-control-container') || e.closest('svg')) return false;
          const b = e.getBoundingClientRect(); return b.width && (b.right > innerWidth + 1 || b.left < -1);
        }).map((e) => e.tagName + '.' + e.className)"""
    )
    assert outside == []
    covered = browser.js(
        """return [...document.querySelectorAll('.leaflet-control-attribution')].filter((credit) => {
          credit.scrollIntoView({block: 'center', behavior: 'instant'});
          const b = credit.getBoundingClientRect();
          const seen = (part) => document.elementFromPoint(b.left + part * b.width, b.top + b.height / 2);
          return [0.1, 0.5, 0.9].some((part) => !credit.contains(seen(part)));
        }).length"""
    )
    assert covered == 0
    credit = browser.js("return document.querySelector('.leaflet-control-attribution').textContent")
    assert ("OpenStreetMap" in credit) == (name != "arms")


def test_dark_follows_the_system_and_the_button(browser: Browser, pages: dict[str, Path]) -> None:
    browser.look(dark=True)
    browser.open(pages["city"])
    assert browser.js("return getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 27)"
    level = top_level(browser, 0)
    _, at = spot(browser, 0, level)
    assert near(image(browser), at, LOAD_CLASSES[level].dark)
    browser.js("document.getElementById('theme').click()")
    assert browser.js("return getComputedStyle(document.body).backgroundColor") == "rgb(244, 244, 241)"
    assert near(image(browser), at, LOAD_CLASSES[level].light)


def test_everything_that_acts_has_a_name_and_shows_its_focus(browser: Browser, pages: dict[str, Path]) -> None:
    browser.look(calm=True)
    browser.open(pages["city"])
    nameless = browser.js(
        """return [...document.querySelectorAll('button, select, input[type=range], a[href]')].filter((e) =>
          !(e.getAttribute('aria-label') || e.title || e.textContent.trim())).map((e) => e.outerHTML)"""
    )
    assert nameless == []
    browser.js("document.getElementById('time').focus()")
    for _ in range(3):
        browser.cdp("Input.dispatchKeyEvent", type="keyDown", key="Tab", windowsVirtualKeyCode=9, code="Tab")
        browser.cdp("Input.dispatchKeyEvent", type="keyUp", key="Tab", windowsVirtualKeyCode=9, code="Tab")
        width = browser.js("return getComputedStyle(document.activeElement).outlineWidth")
        assert width == "3px"
    assert browser.js("return Page.views.map((v) => v.map._zoomAnimated)") == [False, False], "nothing flies about"
    heights = browser.js("return [...document.querySelectorAll('.bar button')].map((b) => b.offsetHeight)")
    assert min(heights) >= 32


def test_the_step_and_the_learners_shown_at_first_can_be_named(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "map.html"
    write_page(path, records.small_city(), learners=["UCB1", "CARMAB-st"], step=3)
    browser.open(path)
    assert browser.js("return [Page.state.shown, Page.state.step]") == [[2, 0], 3]


def test_on_paper_there_is_nothing_to_press(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["city"])
    browser.cdp("Emulation.setEmulatedMedia", media="print")
    try:
        shown = browser.js(
            "return ['.bar', '#theme', '.leaflet-control-zoom', '.map-box', '#curves', '.leaflet-control-attribution']"
            ".map((name) => getComputedStyle(document.querySelector(name)).display !== 'none')"
        )
        assert shown == [False, False, False, True, True, True]
    finally:
        browser.cdp("Emulation.setEmulatedMedia", media="")


def test_a_sweep_of_the_mouse_pans_both_maps_and_names_roads(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["city"])
    box = browser.js("const b = Page.views[0].map.getContainer().getBoundingClientRect(); return [b.left, b.top]")
    start = browser.js("return Page.views[1].map.getCenter().lng")
    mouse = {"button": "left", "buttons": 1, "clickCount": 1}
    browser.cdp("Input.dispatchMouseEvent", type="mousePressed", x=box[0] + 120, y=box[1] + 380, **mouse)
    for far in (20, 60, 100):
        browser.cdp("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + 120 + far, y=box[1] + 380, **mouse)
        browser.painted()
    browser.cdp("Input.dispatchMouseEvent", type="mouseReleased", x=box[0] + 220, y=box[1] + 380, **mouse)
    browser.wait(f"Page.views[1].map.getCenter().lng < {start}")
    browser.wait(
        "!Page.views[0].map._panAnim?._inProgress && Math.abs(Page.views[0].map.getCenter().lng"
        " - Page.views[1].map.getCenter().lng) < 1e-4"
    )
    level = top_level(browser, 1)
    _, at = spot(browser, 1, level)
    assert near(image(browser), at, LOAD_CLASSES[level].light), "the other map is painted where it came to lie"
