"""Networks, runs and traffic show themselves as maps, in the frame of a notebook's cell and in a real browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import records
from browser import Browser
from test_hostile_texts import HOSTILE
from town import town

import routesim as rs
from routesim.errors import InputError, ResultsError


def monaco(learner: rs.Learner | None = None, rounds: int = 480) -> rs.Run:
    city = rs.load_city("monaco")
    routes = rs.ActionSet.between(city, *records.ENDS["monaco"], k=4)
    seconds = city.free_flow_s[routes.edges]
    trips = rs.RoundEnvironment.from_congestion(routes, -seconds, rs.congestion.Linear(0.5), 4, 0.1 * seconds)
    return rs.run(trips, learner or rs.CARMAB(confidence=1), rounds, seed=0)


def arms(rounds: int = 200) -> rs.Run:
    three = rs.RoundEnvironment.from_congestion(
        rs.ActionSet.arms(3), [0.6, 0.3, 0.1], rs.congestion.Inverse(), window=2, noise_std=0.1
    )
    return rs.run(three, rs.UCB1(), rounds, seed=0)


@contextmanager
def cell(browser: Browser, folder: Path, shown: str) -> Iterator[None]:
    """Show what a notebook would, and go into its frame."""
    path = folder / "cell.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{shown}", encoding="utf-8", errors="replace")
    browser.driver.get(path.as_uri())
    browser.driver.switch_to.frame(0)
    try:
        browser.wait("document.documentElement.dataset.ready === 'yes'")
        yield
        assert browser.js("return window.broken") is None
    finally:
        browser.driver.switch_to.default_content()


def test_a_network_shows_its_roads(browser: Browser, tmp_path: Path) -> None:
    network = rs.load_city("helsinki")
    shown = network._repr_html_()
    assert f"{network.n_edges:,} edges" in shown
    assert len(shown) < 300_000
    assert len(rs.load_city("coquimbo")._repr_html_()) < 1_000_000
    with cell(browser, tmp_path, shown):
        canvas = "document.querySelector('canvas')"
        size = f"0, 0, {canvas}.width, {canvas}.height"
        browser.wait(f"{canvas}.getContext('2d').getImageData({size}).data.some((v) => v)")


def test_a_run_shows_its_routes_on_a_map(browser: Browser, tmp_path: Path) -> None:
    run = monaco()
    shown = run._repr_html_()
    assert len(shown) < 500_000
    with cell(browser, tmp_path, shown):
        assert browser.js("return Page.views.length") == 1
        assert browser.js("return document.getElementById('title').textContent") == "What CARMAB recommended"
        levels = browser.js("return Array.from(Page.views[0].loads.levels)")
        assert set(levels) > {255}, "some roads are coloured, others unused"
        browser.js("const t = document.getElementById('time'); t.value = '0'; t.dispatchEvent(new Event('input'))")
        assert browser.js("return document.getElementById('when').textContent") == "rounds 1 to 10"
        shares = browser.js("return [...document.querySelectorAll('#routes td.share span')].map((s) => s.textContent)")
        first = np.bincount(run.actions[:10], minlength=len(run.paths)) / 10
        assert sorted(float(text.strip("<% ")) for text in shares) == pytest.approx(sorted(100 * first), abs=0.1)
    told = browser.js("return document.querySelector('table').textContent")
    assert "average_regret" in told
    assert browser.js("return document.querySelector('img').naturalWidth") > 300


def test_a_map_of_one_learner_fills_its_frame(browser: Browser, tmp_path: Path) -> None:
    with cell(browser, tmp_path, rs.draw_map(monaco())._repr_html_()):
        inside = browser.js(
            """const {map, loads} = Page.views[0], size = map.getSize();
            const xs = loads.getLatLngs().flat().map((at) => map.latLngToContainerPoint(at).x);
            return [Math.min(...xs) / size.x, 1 - Math.max(...xs) / size.x];"""
        )
        assert inside[0] == pytest.approx(inside[1], abs=0.08), "as much room to the left as to the right"


def test_arms_show_themselves_too(browser: Browser, tmp_path: Path) -> None:
    run = arms()
    with cell(browser, tmp_path, run._repr_html_()):
        assert "average regret" in browser.js("return document.getElementById('curves-title').textContent")
        overall = browser.js("return [...document.querySelectorAll('#routes tbody tr')].map((r) => r.textContent)")
        assert len(overall) == 3
        assert f"{100 * np.mean(run.actions == 0):.0f} %" in overall[0]


def test_traffic_shows_itself(browser: Browser, tmp_path: Path) -> None:
    simulator = rs.TrafficSimulator(rs.load_city("monaco"), rs.load_demand("monaco", 800), window_s=300)
    traffic = simulator.run(rs.GreedyRouter(), seed=0)
    with cell(browser, tmp_path, traffic._repr_html_()):
        assert browser.js("return document.querySelector('.informed').textContent") == "was told the congestion"
        assert browser.js("return document.getElementById('measures').hidden"), "no regret in traffic"
    assert "edge_entries" in browser.js("return document.querySelector('table').textContent")


def test_traffic_that_never_began_is_told_in_numbers() -> None:
    street = town([("a", "b", 10)])
    demand = rs.Demand.from_trips({"origin": ["a"], "destination": ["b"], "departure_s": [50.0]})
    nothing = rs.TrafficSimulator(street, demand).run(rs.FreeFlowRouter(), until_s=10.0)
    shown = nothing._repr_html_()
    assert "iframe" not in shown
    assert "not_departed" in shown


def test_a_run_that_does_not_know_its_roads_tells_its_shares() -> None:
    run = monaco(rs.ShortestPath())
    for lost in (replace(run, network=None), replace(run, edge_uses=None)):
        told = lost._repr_html_()
        assert "iframe" not in told
        assert "data:image/png" in told
        assert "<td>route 1</td><td>100.0%</td>" in told
    assert "<td>arm 1</td>" in replace(arms(), edge_uses=None)._repr_html_()


def test_hostile_learners_and_streets_are_only_text(browser: Browser, tmp_path: Path) -> None:
    run = monaco()
    assert run.network is not None
    names = tuple(HOSTILE[edge % len(HOSTILE)] for edge in range(run.network.n_edges))
    network = replace(run.network, names=names, name=HOSTILE[1], attribution=HOSTILE[3])
    hostile = replace(run, learner=HOSTILE[0], details={HOSTILE[3]: HOSTILE[4]}, network=network)
    with cell(browser, tmp_path, hostile._repr_html_()):
        assert HOSTILE[0] in browser.js("return document.getElementById('title').textContent")
    assert browser.js("return window.broken") is None
    assert HOSTILE[3] in browser.js("return document.querySelector('table').textContent")
    plain = replace(hostile, network=None)._repr_html_()
    assert "<script" not in plain
    assert "<svg" not in plain


def test_learners_are_drawn_side_by_side_from_python(browser: Browser, tmp_path: Path) -> None:
    runs = {"learns": monaco(), "always the same": monaco(rs.ShortestPath())}
    page = rs.draw_map(runs, tmp_path / "map.html", title="Two learners", learners=["always"], step=0)
    assert repr(page).startswith("<MapPage 'Two learners'")
    browser.open(tmp_path / "map.html")
    assert browser.js("return Page.state.shown") == [1]
    assert browser.js("return Page.state.step") == 0
    both = rs.draw_map(runs)
    assert both.title == "What learns and always the same recommended"
    both.save(tmp_path / "map.html")
    browser.open(tmp_path / "map.html")
    assert browser.js("return Page.views.length") == 2
    with pytest.raises(InputError, match="no learner 'nobody'"):
        rs.draw_map(runs, learners=["nobody"])
    for wrong in ([0], 0, ["learns", "lear"], []):
        with pytest.raises(InputError, match=r"labels|two that differ"):
            rs.draw_map(runs, learners=wrong)  # type: ignore[arg-type]  # wrong on purpose
    for step in (1.5, "3", 48, -49):
        with pytest.raises(InputError, match=r"whole number|at least -48|run from 0 to 47"):
            rs.draw_map(runs, step=step)  # type: ignore[arg-type]  # wrong on purpose
    assert rs.draw_map(runs, step=np.int64(3)).html == rs.draw_map(runs, step=3).html
    with pytest.raises(InputError, match="title of a map is a text, got 5"):
        rs.draw_map(runs, title=5)  # type: ignore[arg-type]  # wrong on purpose
    for path, message in (("nowhere/map.html", "No such file"), ("", "it is a folder"), ("a\0b", "null"), (3, "got 3")):
        with pytest.raises(ResultsError, match=message):
            both.save(tmp_path / path if isinstance(path, str) else path)  # type: ignore[arg-type]  # wrong on purpose


def test_a_record_is_drawn_under_another_title() -> None:
    page = rs.draw_map(records.small_city(), title="another")
    assert page.title == "another"
    assert "<title>another</title>" in page.html


def test_traffic_everywhere_has_bands_too(browser: Browser, pages: dict[str, Path]) -> None:
    record = records.traffic()
    assert max(played.shares.max() for played in record.learners) < 0.2, "no route has many of the trips"
    browser.open(pages["traffic"])
    widest = browser.js(
        """let most = 0;
        for (let step = 0; step < arguments[0]; step += 1) {
          Page.go(step);
          for (const {bands} of Page.views) most = Math.max(most, ...bands.levels.filter((level) => level !== 255));
        }
        return most;""",
        len(record.step_ends),
    )
    assert widest == 20


def test_curves_show_the_measure_or_the_regret(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["city"])
    title, first = "return document.getElementById('curves-title').textContent", "#curves path.curve"
    assert browser.js(title) == "mean trip, s"
    before = browser.js(f"return document.querySelector('{first}').getAttribute('d')")
    buttons = "document.querySelectorAll('#measures button')"
    assert browser.js(f"return [...{buttons}].map((b) => b.getAttribute('aria-pressed'))") == ["true", "false"]
    browser.js(f"{buttons}[1].click()")
    assert browser.js(title) == "average regret so far, s a trip"
    assert browser.js(f"return document.querySelector('{first}').getAttribute('d')") != before
    legend = browser.js("return document.getElementById('curve-legend').textContent")
    assert "best possible" not in legend
    browser.js("Page.go(3)")
    cursor = browser.js("return Number(document.querySelector('#curves .cursor').getAttribute('x1'))")
    browser.js("Page.go(30)")
    assert browser.js("return Number(document.querySelector('#curves .cursor').getAttribute('x1'))") > cursor
    browser.js(f"{buttons}[0].click()")
    assert browser.js(title) == "mean trip, s"
