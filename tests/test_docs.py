"""The documentation: every example of the README and the site runs, the site builds, and its tables are the code's."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from snippets import RUN, SET_UP, SHOWN, run_page, snippets

import routesim as rs

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
EXTRAS = ("cluster", "docs", "gym", "serve")
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


WITH_EXAMPLES = [page for page in PAGES if any(one.not_run is None and one.language in RUN for one in snippets(page))]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name)
def test_every_example_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    done = run_page(page, tmp_path, sys.executable, PYTHONPATH=str(ROOT))
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_fence_is_found_and_in_a_known_language(page: Path) -> None:
    found = snippets(page)
    assert len(found) * 2 == len(re.findall(r"^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert {one.language for one in found} <= {*RUN, *SHOWN}


def test_the_first_commands_set_up_run_and_test() -> None:
    run, test = [one.text.rstrip("\n") for one in snippets(README) if one.language == "sh"][:2]
    assert run.startswith(SET_UP)
    assert "routesim run" in run
    assert test.startswith(SET_UP)
    assert test.endswith("-m pytest")
    assert "\n" not in run + test


@pytest.mark.slow
def test_a_stranger_gets_from_a_fresh_clone_to_the_end_of_every_page(tmp_path: Path) -> None:
    clone = tmp_path / "routesim"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)  # noqa: S607
    first = next(one for one in snippets(clone / "README.md") if one.language == "sh")
    subprocess.run(["bash", "-euo", "pipefail", "-c", first.text], cwd=clone, check=True)  # noqa: S607
    assert list(clone.glob("runs/*/map.html"))
    python = str(clone / ".venv" / "bin" / "python")
    wanted = f"{clone}[{','.join(EXTRAS)}]"
    subprocess.run([python, "-m", "pip", "install", "-q", wanted], check=True)
    for number, page in enumerate(WITH_EXAMPLES):
        done = run_page(clone / name(page), tmp_path / str(number), python)
        assert done.returncode == 0, f"{name(page)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(target)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return target


class Loads(HTMLParser):
    """What a page makes a browser fetch by itself, and what it links to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        self.ids |= {values["id"]} if "id" in values else set()
        if tag == "a":
            self.links.append(values.get("href", ""))
        else:
            self.fetched += [values[key] for key in ("src", "href", "srcset", "poster", "data") if key in values]


def test_the_site_builds_and_its_pages_fetch_only_files_of_the_site(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > len(list(DOCS.rglob("*.md")))  # and the page for addresses that do not exist
    for page in pages:
        if page.name == "404.html":
            continue
        fetched = Loads(page).fetched
        assert fetched
        for address in fetched:
            assert not re.match(r"(https?:)?//", address), f"{page.name} fetches {address}"
            file = (page.parent / address.split("#")[0].split("?")[0]).resolve()
            assert not address or (file.is_relative_to(site) and file.exists()), f"{page.name}: {address}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", style.read_text(encoding="utf-8")), style.name


def test_a_browser_asks_for_nothing_from_elsewhere(site: Path, tmp_path: Path) -> None:
    from report.browser import Browser, find_chromium

    found = find_chromium()
    if isinstance(found, str):
        pytest.skip(found)
    browser = Browser(*found, tmp_path / "profile")
    try:
        browser.driver.get("about:blank")
        browser.requests()  # of the page that it began with
        for page in ("index.html", "concepts/plan.html", "reference/api-rounds.html"):
            browser.driver.get((site / page).as_uri())
            browser.wait("document.readyState === 'complete' && document.fonts.status === 'loaded'")
            assert browser.js("return document.querySelector('article h1').getBoundingClientRect().height") > 0
        assert browser.js("return document.querySelectorAll('article h3').length") > 10
        assert browser.requests() == []
    finally:
        browser.close()


def test_every_scenario_field_stands_in_the_reference(site: Path) -> None:
    from routesim.scenario.files import scenario_schema

    shown = (site / "reference" / "scenario.html").read_text(encoding="utf-8")
    definitions = [one for one in scenario_schema()["$defs"].values() if "properties" in one]
    fields = {field for one in definitions for field in one["properties"]}
    assert len(fields) > 40
    assert {field for field in fields if f"<code>{field}</code>" not in shown} == set()


def test_every_public_name_stands_in_the_reference(site: Path) -> None:
    ids = set().union(*(Loads(page).ids for page in (site / "reference").glob("api-*.html")))
    homes = {
        one: f"{getattr(rs, one).__module__}.{one}" for one in rs.__all__ if hasattr(getattr(rs, one), "__module__")
    }
    assert len(homes) > 50
    assert {one for one, home in homes.items() if home not in ids} == set()


def test_examples_of_docstrings_are_shown_as_code(site: Path) -> None:
    shown = (site / "reference" / "api-rounds.html").read_text(encoding="utf-8")
    assert shown.count('<span class="gp">&gt;&gt;&gt; </span>') > 10
    assert "<blockquote>" not in shown


def test_every_test_and_module_that_fidelity_names_exists() -> None:
    text = (DOCS / "fidelity.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:routesim|tests|scenarios|benchmarks)/[\w/.-]+)(?:::(\w+))?`", text))
    assert len(named) > 20
    for path, test in named:
        assert (ROOT / path).exists(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path}::{test}"


def test_the_result_folder_holds_what_the_reference_says(tmp_path: Path) -> None:
    from pyarrow import parquet

    from routesim.runner.execution import run_scenario
    from routesim.scenario.files import parse_scenario

    text = (DOCS / "reference" / "results.md").read_text(encoding="utf-8")
    for kind, scenario in SMALL.items():
        folder = tmp_path / kind
        run_scenario(parse_scenario(scenario), folder, name=kind, workers=1)
        files = {path.name for path in folder.iterdir()}
        assert {one for one in files if f"`{one}`" not in text} == set()
        for table in ("rounds", "edges", "routes"):
            columns = parquet.read_schema(folder / f"{table}.parquet").names
            assert {one for one in columns if f"`{one}`" not in text} == set()
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        keys = {re.sub(r"_\d+$", "_N", key) for key in [*summary, *summary["table"][0]]}
        assert {key for key in keys if f"`{key}`" not in text} == set()


_DIAMOND = """
edges = [{ from = "s", to = "a", free_flow_s = 9.0 }, { from = "a", to = "t", free_flow_s = 9.0 },
         { from = "s", to = "t", free_flow_s = 20.0 }]
"""
SMALL = {
    "bandit": """
kind = "bandit"
title = "arms"
rounds = 50
replications = 1
seed = 0
learners = ["CARMAB"]
[bandit]
arms = 2
congestion = "inverse"
noise_variance = 0.1
windows = [2]
""",
    "contextual": """
kind = "contextual"
title = "arms with features"
rounds = 50
replications = 1
seed = 0
learners = ["CARCB"]
[contextual]
settings = [{ arms = 2, window = 1 }]
features = 2
contexts = ["known"]
congestion = "inverse"
noise_variance = 0.1
""",
    "city": f"""
kind = "city"
title = "roads"
rounds = 50
replications = 1
seed = 0
learners = ["CARMAB", "ShortestPath"]
[city]{_DIAMOND}
origin = "s"
destination = "t"
window = 2
noise = 0.1
congestion = {{ name = "linear", slope = 0.5 }}
""",
    "traffic": f"""
kind = "traffic"
title = "traffic"
replications = 1
seed = 0
learners = ["FreeFlowRouter"]
[traffic]{_DIAMOND}
[traffic.demand]
pairs = [{{ from = "s", to = "t", vehicles = 30.0 }}]
""",
}
