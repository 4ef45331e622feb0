"""One browser for all tests of a session, and drawn cases that are the same in every run."""

from collections.abc import Iterator

import pytest
from browser import Browser, find_chromium
from hypothesis import settings

settings.register_profile("the same cases in every run", derandomize=True, print_blob=True)
settings.load_profile("the same cases in every run")


@pytest.fixture(scope="session")
def chromium_if_any(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser | str]:
    """The browser, or why there is none."""
    found = find_chromium()
    if isinstance(found, str):
        yield found
        return
    opened = Browser(*found, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture
def chromium(chromium_if_any: Browser | str) -> Browser:
    """The session's browser; without one the test is skipped, with the reason."""
    if isinstance(chromium_if_any, str):
        pytest.skip(chromium_if_any)
    return chromium_if_any


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """The browser as a desk has it; whatever a test shows, nothing may be asked for or complained about."""
    chromium.look()
    yield chromium
    assert chromium.complaints() == []
    assert chromium.requests() == []
