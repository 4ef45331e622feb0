"""A page as a reader works through it: pointer, keys, and what is seen at a place of the screen."""

import io

import numpy as np
from browser import Browser
from PIL import Image

from routesim.report.page import UNUSED
from routesim.report.palette import LOAD_CLASSES


def work_through(browser: Browser) -> None:
    """See the loads where they are, move time, play, choose a learner, click a road, and switch layers off and on."""
    steps = browser.js("return Number(document.getElementById('time').max) + 1")
    learners = browser.js("return document.querySelector('.pane select').options.length")
    for side in range(browser.js("return Page.views.length")):
        # In a large city the few roads of the highest class can all lie beneath marks; some class is in the open.
        levels = range(top_level(browser, side), -1, -1)
        level, (_, at) = next((one, found) for one in levels if (found := open_spot(browser, side, one))[0] >= 0)
        assert near(image(browser), at, LOAD_CLASSES[level].light), f"class {level} is not seen at {at}"
        click(browser, *at)
        assert browser.js("return Page.state.edge") >= 0
        assert browser.js("return document.getElementById('road-name').textContent") != ""
        browser.js("document.getElementById('road-close').click(); window.scrollTo({top: 0, behavior: 'instant'})")
        browser.cdp("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)  # no name beside the pointer any more
    before = image(browser)
    boxes = "[...document.querySelectorAll('.leaflet-control-layers-overlays')[0].querySelectorAll('input')]"
    for number in (1, 2):
        browser.js(f"{boxes}[{number}].click()")
    hidden = image(browser)
    assert (hidden != before).any(axis=2).sum() > 100, "pixels change where routes and loads were"
    for number in (1, 2):
        browser.js(f"{boxes}[{number}].click()")
    # Edges of lines that are painted over each other again may be a shade softer.
    assert (np.abs(image(browser) - before).max(axis=2) > 60).mean() < 0.001, "everything is back as it was"
    browser.js("const t = document.getElementById('time'); t.value = '0'; t.dispatchEvent(new Event('input'))")
    assert browser.js("return Page.state.step") == 0
    if steps > 1:
        browser.js(f"document.getElementById('speed').value = '8'; Page.go({max(0, steps - 3)})")
        browser.js("document.getElementById('play').click()")
        browser.wait(f"Page.state.step === {steps - 1} && Page.state.timer === null")
    if learners > 1:
        shown = browser.js("return Page.state.shown[0]")
        browser.js(
            """const select = document.querySelector('.pane select');
            select.value = arguments[0];
            select.dispatchEvent(new Event('change'));""",
            str((shown + 1) % learners),
        )
        assert browser.js("return Page.state.shown[0]") == (shown + 1) % learners
    browser.painted()


def click(browser: Browser, x: float, y: float) -> None:
    at = {"x": x, "y": y, "button": "left", "clickCount": 1}
    browser.cdp("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    browser.cdp("Input.dispatchMouseEvent", type="mousePressed", **at)
    browser.cdp("Input.dispatchMouseEvent", type="mouseReleased", **at)


def press(browser: Browser, key: str, code: int, text: str = "") -> None:
    values = {"key": key, "windowsVirtualKeyCode": code, "code": key if len(key) > 1 else "Space"}
    browser.cdp("Input.dispatchKeyEvent", type="keyDown", text=text, **values)
    browser.cdp("Input.dispatchKeyEvent", type="keyUp", **values)


def image(browser: Browser) -> np.ndarray:
    browser.painted()
    return np.asarray(Image.open(io.BytesIO(browser.screenshot())).convert("RGB")).astype(int)


def near(picture: np.ndarray, at: tuple[int, int], colour: str, reach: int = 4) -> bool:
    """Whether a colour is seen around a place."""
    x, y = at
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    around = picture[y - reach : y + reach + 1, x - reach : x + reach + 1]
    return bool((np.abs(around - wanted).max(axis=2) < 12).any())


def spot(browser: Browser, side: int, level: int) -> tuple[int, tuple[int, int]]:
    """As `open_spot`, where there is one."""
    found = open_spot(browser, side, level)
    assert found[0] >= 0
    return found


def open_spot(browser: Browser, side: int, level: int) -> tuple[int, tuple[int, int]]:
    """The longest straight piece on screen of a class of load, clear of marks: its edge (-1: none), and its middle."""
    edge, x, y = browser.js(
        """const {map, loads} = Page.views[arguments[0]], holder = map.getContainer();
        const box = holder.getBoundingClientRect();
        const marks = [...holder.querySelectorAll('.leaflet-marker-icon, .leaflet-control, .node')]
          .map((mark) => mark.getBoundingClientRect());
        let best = [-1, 0, 0], far = 0;
        loads.getLatLngs().forEach((line, edge) => {
          if (loads.levels[edge] !== arguments[1]) return;
          for (let k = 1; k < line.length; k += 1) {
            const a = map.latLngToContainerPoint(line[k - 1]), b = map.latLngToContainerPoint(line[k]);
            const x = box.left + (a.x + b.x) / 2, y = box.top + (a.y + b.y) / 2, size = a.distanceTo(b);
            const hidden = marks.some((m) => x > m.left - 8 && x < m.right + 8 && y > m.top - 8 && y < m.bottom + 8);
            const inside = x > box.left + 9 && x < box.right - 9 && y > box.top + 9 && y < box.bottom - 9;
            if (size > far && inside && !hidden) { best = [edge, x, y]; far = size; }
          }
        });
        return best;""",
        side,
        level,
    )
    return int(edge), (round(x), round(y))


def top_level(browser: Browser, side: int) -> int:
    return int(browser.js(f"return Math.max(...Page.views[{side}].loads.levels.filter((v) => v !== {UNUSED}))"))
