"""The map of a run: whole without a network, every outside text shown as text, drawn in a real browser."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import routesim as rs
from routesim.errors import InputError
from routesim.report.assets import escape
from routesim.report.routes_map import write_map

HELSINKI = rs.load_city("helsinki")
ROUTES = rs.ActionSet.between(HELSINKI, (24.9367, 60.1642), (24.9522, 60.1784), k=4)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE = "<script>document.title='broken'</script></script>`${document.title='broken'}`\"'\\{{7*7}}"


def runs(shares: list[int]) -> list[rs.Run]:
    actions = np.repeat(np.arange(len(shares)), shares).astype(np.int32)
    nothing = np.zeros(len(actions))
    return [rs.Run("made up", actions, nothing, nothing, 0.0, 0.0, seed=0, paths=ROUTES.paths)]


def page(tmp_path: Path, network: rs.RoadNetwork = HELSINKI, title: str = "a test") -> Path:
    path = tmp_path / "map.html"
    write_map(path, network, {"One": runs([5, 3, 0, 2]), "Two": runs([0, 0, 9, 0])}, title)
    return path


def test_nothing_is_fetched_from_anywhere(tmp_path: Path) -> None:
    text = page(tmp_path).read_text(encoding="utf-8")
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)\s*=", text)
    assert not re.findall(r"url\((?!data:|#)", text)
    assert "OpenStreetMap" in text


def test_a_map_of_nobody_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one learner"):
        write_map(tmp_path / "map.html", HELSINKI, {}, "")


def test_escaped_text_has_nothing_that_acts() -> None:
    assert not set("<>\"'`${}\\") & set(escape(HOSTILE))


def drawn(path: Path, tmp_path: Path) -> str:
    assert CHROMIUM is not None
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    command = [CHROMIUM, "--headless", *quiet, profile, "--virtual-time-budget=4000", "--dump-dom", path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt-get install chromium)")
def test_a_browser_draws_the_recommended_routes(tmp_path: Path) -> None:
    dom = drawn(page(tmp_path), tmp_path)
    lines = re.findall(r'<path class="route[^>]*stroke-width="([0-9.]+)"', dom)
    assert len(lines) == 3, "the first learner recommended three of the four routes"
    assert [float(width) for width in lines] == pytest.approx([3 + 13 * 0.5, 3 + 13 * 0.3, 3 + 13 * 0.2])
    assert "origin" in dom
    assert "One" in dom


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt-get install chromium)")
def test_hostile_street_names_and_titles_are_only_text(tmp_path: Path) -> None:
    network = replace(HELSINKI, names=(HOSTILE,) * HELSINKI.n_edges)
    dom = drawn(page(tmp_path, network, title=HOSTILE), tmp_path)
    title = re.search(r"<title>(.*?)</title>", dom, flags=re.DOTALL)
    assert title is not None
    assert "document.title=" in title[1], "the title is the text itself, not what it tries to set"
    assert len(re.findall(r'<path class="route', dom)) == 3
    assert "49" not in title[1]
