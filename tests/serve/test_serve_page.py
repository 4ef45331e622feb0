"""The page of the service in a real browser: two clicks, a route, loads that change, and nothing from elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, find_chromium
from servers import Server


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = find_chromium()
    if isinstance(found, str):
        pytest.skip(found)
    opened = Browser(*found, tmp_path_factory.mktemp("profile"))
    opened.look(1200, 800)
    yield opened
    opened.close()


def visit(browser: Browser, address: str) -> None:
    browser.driver.get("about:blank")
    browser.requests(), browser.complaints()
    browser.driver.get(f"{address}/")
    browser.wait("document.getElementById('hint').textContent.startsWith('Click the origin')")


def click_node(browser: Browser, number: int) -> None:
    """Click the map where a node lies, with a real mouse."""
    x, y = browser.js(
        "const [, x, y] = roads.nodes[arguments[0]]; const at = map.latLngToContainerPoint([y, x]);return [at.x, at.y]",
        number,
    )
    for kind in ("mousePressed", "mouseReleased"):
        browser.cdp("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


def text(browser: Browser, name: str) -> str:
    return str(browser.js("return document.getElementById(arguments[0]).textContent", name))


def loads(browser: Browser) -> list[list[str]]:
    """The lines of the edges in use, with their widths."""
    found: list[list[str]] = browser.js(
        "return [...document.querySelectorAll('path.load')]"
        ".map((path) => [path.getAttribute('d'), path.getAttribute('stroke-width')])"
    )
    return found


def far_nodes(browser: Browser) -> tuple[int, int]:
    """Two nodes left of the panel and far from each other."""
    west, east = browser.js(
        "const seen = roads.nodes.map(([, x, y], n) => [map.latLngToContainerPoint([y, x]), n])"
        ".filter(([at]) => at.x > 40 && at.x < 780 && at.y > 40 && at.y < 760).sort((a, b) => a[0].x - b[0].x);"
        "return [seen[0][1], seen[seen.length - 1][1]]"
    )
    return west, east


def test_two_clicks_show_a_route_and_the_loads_change(browser: Browser, tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        visit(browser, server.address)
        assert "Helsinki" in text(browser, "title")
        west, east = far_nodes(browser)
        assert browser.js("return document.getElementById('recommend').disabled")
        click_node(browser, west)
        browser.wait("document.getElementById('hint').textContent.includes('destination')")
        click_node(browser, west)  # the same place is no destination
        assert browser.js("return document.getElementById('recommend').disabled")
        click_node(browser, east)
        browser.wait("!document.getElementById('recommend').disabled")
        assert loads(browser) == []

        browser.js("document.getElementById('recommend').click()")
        browser.wait("document.querySelectorAll('path.route').length === 1 && document.querySelector('path.load')")
        assert "s expected" in text(browser, "route")
        first = loads(browser)
        browser.js("document.getElementById('more').click()")
        browser.wait("document.getElementById('totals').textContent.startsWith('11 recommendations')")
        assert loads(browser) != first
        counts = browser.js("return fetch('loads').then((answer) => answer.json())")
        assert len(loads(browser)) == len(counts["edges"])

        browser.js("document.getElementById('seconds').value = '321.5'")
        browser.js("document.getElementById('observe').requestSubmit()")
        browser.wait("document.getElementById('totals').textContent.includes('1 observations')")
        browser.js("document.getElementById('clear').click()")
        assert browser.js("return document.querySelectorAll('path.route').length") == 0
        assert text(browser, "hint").startswith("Click the origin")
        assert [url for url in browser.requests() if not url.startswith(server.address)] == []
        assert browser.complaints() == []

        server.kill()
        click_node(browser, west)
        click_node(browser, east)
        browser.js("document.getElementById('recommend').click()")
        browser.wait("/fetch|failed/i.test(document.getElementById('hint').textContent)")


def test_travellers_can_be_chosen(browser: Browser, tmp_path: Path) -> None:
    with Server(tmp_path, "helsinki-travellers") as server:
        visit(browser, server.address)
        assert browser.js("return [...document.querySelectorAll('#traveller option')].map((o) => o.value)") == [
            "hurried",
            "calm",
            "thrifty",
        ]
        west, east = far_nodes(browser)
        click_node(browser, west)
        click_node(browser, east)
        browser.js("document.getElementById('traveller').value = 'thrifty'")
        browser.js("document.querySelector('#conditions input[value=rain]').checked = true")
        browser.js("document.getElementById('recommend').click()")
        browser.wait("document.querySelectorAll('path.route').length === 1")
        assert browser.complaints() == []


def test_the_page_asks_for_the_token_once(browser: Browser, tmp_path: Path) -> None:
    token = "a-token-of-this-page-0123456789"  # noqa: S105 - made up
    (tmp_path / "token").write_text(token)
    with Server(tmp_path / "state", "helsinki", "--token-file", str(tmp_path / "token")) as server:
        visit(browser, server.address)
        browser.js("window.asked = 0; window.prompt = () => { window.asked += 1; return arguments[0] }", token)
        for node in far_nodes(browser):
            click_node(browser, node)
        browser.js("document.getElementById('more').click()")
        browser.wait("document.getElementById('totals').textContent.startsWith('10 recommendations')")
        assert browser.js("return window.asked") == 1
