"""One browser for all tests of a session, and pages that several of them look at."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import records
from browser import Browser, find_chromium

from routesim.report.page import write_page


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = find_chromium()
    if isinstance(found, str):
        pytest.skip(found)
    opened = Browser(*found, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """The session's browser as a desk has it; whatever a test shows, nothing may be asked for or complained about."""
    chromium.look()
    yield chromium
    assert chromium.complaints() == []
    assert chromium.requests() == []


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    paths = {}
    for name, make in records.MAKERS.items():
        paths[name] = folder / f"{name.replace(' ', '-')}.html"
        write_page(paths[name], make())
    return paths
