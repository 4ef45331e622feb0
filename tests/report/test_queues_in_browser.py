"""Queues in a real browser: drawn where they stand, moved by the slider, explained in words; none without them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import records
from browser import Browser
from driving import image, near, work_through

from routesim.report.page import page_text, write_page
from routesim.report.palette import FULL_CLASSES
from routesim.results.from_results import record

QUEUE = "#101418"


def along(browser: Browser, edge: int, share: float) -> tuple[int, int]:
    """A place on the screen, a share of the way along a road."""
    x, y = browser.js(
        """const {map, loads} = Page.views[0], box = map.getContainer().getBoundingClientRect();
        const line = loads.getLatLngs()[arguments[0]].map((at) => map.latLngToContainerPoint(at));
        const [first, last] = [line[0], line[line.length - 1]];
        return [box.left + first.x + arguments[1] * (last.x - first.x),
          box.top + first.y + arguments[1] * (last.y - first.y)];""",
        edge,
        share,
    )
    return round(x), round(y)


def slide(browser: Browser, step: int) -> np.ndarray:
    browser.js(
        "const t = document.getElementById('time'); t.value = arguments[0]; t.dispatchEvent(new Event('input'))", step
    )
    return image(browser)


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    path = tmp_path / "queue.html"
    write_page(path, record(records.through_the_bottleneck(until_s=720.0), "A bottleneck"))
    return path


def test_the_queue_is_drawn_as_long_as_it_is_and_moves_with_the_slider(browser: Browser, alone: Path) -> None:
    browser.open(alone)
    # At the end of the fourth minute the queue reaches half of the second road.
    picture = slide(browser, 3)
    assert near(picture, along(browser, 1, 0.9), QUEUE, 8)
    assert near(picture, along(browser, 1, 0.6), QUEUE, 8)
    assert not near(picture, along(browser, 1, 0.4), QUEUE, 8)
    assert not near(picture, along(browser, 0, 0.5), QUEUE, 8)
    later = slide(browser, 4)
    assert near(later, along(browser, 1, 0.4), QUEUE, 8)
    x, y = along(browser, 1, 0.4)
    assert (later != picture)[y - 5 : y + 6, x - 5 : x + 6].any()
    assert not near(slide(browser, 1), along(browser, 1, 0.9), QUEUE, 8), "no queue yet"
    # Back in time everything is as it was: nothing of the longer queue stays.
    assert (np.abs(slide(browser, 3) - picture).max(axis=2) > 60).mean() < 0.001
    browser.js("Page.views[0].map.removeLayer(Page.views[0].queues)")
    assert not near(image(browser), along(browser, 1, 0.9), QUEUE, 8)


def test_those_who_wait_to_enter_are_a_ring_before_the_road(browser: Browser, alone: Path) -> None:
    browser.open(alone)
    before, after = slide(browser, 5), slide(browser, 11)
    x, y = along(browser, 0, 0.0)
    changed = (before != after)[y - 45 : y + 46, max(0, x - 45) : x + 1].any(axis=2)
    assert changed.sum() > 60
    browser.js("Page.views[0].map.removeLayer(Page.views[0].waiting)")
    gone = image(browser)
    # The ring lies outside the road and beside the mark of the origin.
    hidden = (gone != after)[y - 45 : y + 46, max(0, x - 45) : x + 1].any(axis=2)
    assert hidden.sum() > 60
    told = record(records.through_the_bottleneck(until_s=720.0)).learners[0].standing
    assert told is not None
    words = f"{told.queued[11].sum():.0f} in queues, {told.outside[11].sum():.0f} waiting to enter"
    assert browser.js("return document.querySelector('.informed').textContent") == words


def test_colours_say_how_full_roads_are_until_travel_times_are_chosen(browser: Browser, alone: Path) -> None:
    browser.open(alone)
    # 60 vehicles on a kilometre where 140 have room: 43 %; 30 on the first road: 21 %.
    assert near(slide(browser, 3), along(browser, 1, 0.3), FULL_CLASSES[2].light)
    assert near(slide(browser, 3), along(browser, 0, 0.5), FULL_CLASSES[1].light)
    legend = browser.js("return document.querySelector('.legend').innerText")
    assert "bumper to bumper" in legend
    assert "dense: 25 to 50 %" in legend
    assert "vehicles waiting to enter" in legend
    full = browser.js("return Array.from(Page.views[0].loads.levels)")
    browser.js("document.querySelectorAll('#shows button')[1].click()")
    assert browser.js("return Array.from(Page.views[0].loads.levels)") != full
    assert "jammed: over 2.5 times" in browser.js("return document.querySelector('.legend').innerText")
    assert browser.js("return [...document.querySelectorAll('#shows button')].map((b) => b.ariaPressed)") == [
        "false",
        "true",
    ]


def test_a_click_on_a_road_says_what_stands_on_it(browser: Browser, alone: Path) -> None:
    browser.open(alone)
    slide(browser, 3)
    browser.js("Page.views[0].loads.hit = 1; Page.views[0].loads.fire('click')")
    facts = browser.js("return document.getElementById('road-facts').innerText")
    assert "60 vehicles on it (43 % full), 30 in its queue (500 m long), 0 waiting to enter" in facts
    slide(browser, 4)
    facts = browser.js("return document.getElementById('road-facts').innerText")
    assert "75 vehicles on it (54 % full), 45 in its queue (750 m long)" in facts
    assert browser.js("return document.querySelectorAll('#road-chart path').length") >= 2


def test_the_page_says_which_physics_and_where_it_was_out_of_its_depth(browser: Browser, alone: Path) -> None:
    browser.open(alone)
    assert "Physics: queue (plain: no lanes, no signals)." in browser.js(
        "return document.getElementById('about').innerText"
    )
    notice = browser.js("return document.getElementById('depth').innerText")
    assert "vehicles had not arrived when the run ended" in notice
    assert browser.js("return document.getElementById('depth').offsetHeight") > 20


def test_a_page_of_the_window_count_has_no_queues(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "window.html"
    write_page(path, record(records.through_the_bottleneck(physics="window")))
    browser.open(path)
    assert browser.js("return Object.keys(Page.views[0].overlays)")[:3] == ["Roads", "Recommended routes", "Loads"]
    assert "Queues" not in browser.js("return Object.keys(Page.views[0].overlays)")
    hidden = "return ['shows', 'queued', 'waiting'].map((id) => document.getElementById(id).offsetHeight)"
    assert browser.js(hidden) == [0, 0, 0]
    notice = browser.js("return document.getElementById('depth').innerText")
    assert "the worst, Second (edge 1), 2 times its capacity" in notice
    assert "Physics: window count." in browser.js("return document.getElementById('about').innerText")


def test_queues_and_the_window_count_stand_side_by_side(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "both.html"
    both = {name: records.through_the_bottleneck(physics=name) for name in ("plain-queue", "window")}
    write_page(path, record(both))
    browser.open(path)
    assert browser.js("return Page.state.full") is False
    about = browser.js("return document.getElementById('about').innerText")
    assert "plain-queue: queue (plain: no lanes, no signals); window: window count." in about
    work_through(browser)


def test_hostile_notices_are_plain_text(browser: Browser, tmp_path: Path) -> None:
    told = record(records.through_the_bottleneck(60))
    evil = "</script><img src=x onerror='document.title=1'>"
    path = tmp_path / "evil.html"
    write_page(path, replace(told, learners=(replace(told.learners[0], physics=evil, notices=(evil,)),)))
    browser.open(path)
    assert evil in browser.js("return document.getElementById('depth').textContent")
    assert browser.js("return document.querySelectorAll('#depth img, #about img').length") == 0


def test_queues_add_little_to_a_page() -> None:
    told = record(records.through_the_bottleneck())
    without = replace(told, learners=(replace(told.learners[0], standing=None),))
    assert len(page_text(told)) - len(page_text(without)) < 3_000
