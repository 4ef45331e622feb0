"""Pages that several tests look at."""

from pathlib import Path

import pytest
import records

from routesim.report.page import write_page


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    paths = {}
    for name, make in records.MAKERS.items():
        paths[name] = folder / f"{name.replace(' ', '-')}.html"
        write_page(paths[name], make())
    return paths
