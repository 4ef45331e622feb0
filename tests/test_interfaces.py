"""What routesim builds on in other packages beyond their documented interfaces: a change there fails here first."""

import re
import subprocess
from pathlib import Path

import numba
import numpy as np
import pytest
import records
import typer
from numba.core.errors import NumbaError
from sumo_nets import needs_sumo

from routesim.kernels import lean_kernel
from routesim.report.assets import bare_map
from routesim.report.page import page_text
from routesim.roads.importers.sumo_export import find_netconvert


def test_numba_still_compiles_without_its_runtime() -> None:
    """`lean_kernel` uses an option that numba keeps to itself: without a runtime nothing counts references."""

    def halves(values: np.ndarray) -> float:
        return float(values[: len(values) // 2].sum())

    def allocates(n: int) -> np.ndarray:
        return np.zeros(n)

    assert lean_kernel(halves)(np.arange(6.0)) == 3.0
    with pytest.raises(NumbaError):
        lean_kernel(allocates)(3)
    np.testing.assert_array_equal(numba.njit(allocates)(3), np.zeros(3))


def test_a_map_of_folium_has_the_name_it_was_given_and_leaves_nothing_else_in_the_head() -> None:
    """`bare_map` names a map and `MapHead` replaces what it put into the head under that name."""
    assert bare_map("of_left").get_name() == "map_of_left"
    page = page_text(records.small_city())
    head = page[: page.index("</head>")]
    assert page.count('<html lang="en">') == page.count("<html") == 1
    assert re.findall(r'<meta name="viewport" content="([^"]*)"', page) == ["width=device-width, initial-scale=1"]
    assert "user-scalable" not in page
    assert re.findall(r"<style>#(\w+) ", head) == ["map_of_left", "map_of_right"]
    assert page == page_text(records.small_city())


def test_every_mistake_in_the_words_of_a_command_is_one_class_of_typer() -> None:
    app = typer.Typer()

    @app.command()
    def one(number: int) -> None:
        """Take a number."""

    for words, message in (
        (["x"], "Invalid value for"),
        ([], "Missing argument"),
        (["1", "2"], "unexpected extra argument"),
        (["1", "--nonsense"], "No such option"),
    ):
        with pytest.raises(typer.TyperException) as caught:
            app(words, standalone_mode=False)
        assert message in caught.value.format_message()


@needs_sumo
def test_netconvert_keeps_ids_parameters_and_lengths_and_takes_the_last_programme(tmp_path: Path) -> None:
    """`to_sumo` leaves in parameters what SUMO has no place for, and writes programmes for netconvert's links."""
    (tmp_path / "a.nod.xml").write_text(
        '<nodes><node id="7" x="0" y="0"><param key="label" value="&quot;x&quot;"/></node>'
        '<node id="8" x="100" y="0" type="traffic_light"/><node id="9" x="200" y="0"/></nodes>'
    )
    (tmp_path / "a.edg.xml").write_text(
        '<edges><edge id="0" from="7" to="8" length="123.456789" name="High Street"><param key="k" value="v"/></edge>'
        '<edge id="1" from="8" to="9"/></edges>'
    )
    (tmp_path / "a.tll.xml").write_text(
        '<tlLogics><tlLogic id="8" type="static" programID="0" offset="0"><phase duration="20" state="G"/>'
        '<phase duration="10.5" state="r"/></tlLogic></tlLogics>'
    )
    program, environment = find_netconvert()
    options = ["--precision", "6", "--output.street-names", "true"]
    for words in (
        ["--node-files=a.nod.xml", "--edge-files=a.edg.xml", "-o", "a.net.xml", *options],
        ["--sumo-net-file", "a.net.xml", "--tllogic-files", "a.tll.xml", "-o", "b.net.xml", *options],
    ):
        subprocess.run([program, *words], cwd=tmp_path, env=environment, check=True, capture_output=True)
        made = (tmp_path / words[words.index("-o") + 1]).read_text()
        assert re.search(r'<edge id="0" from="7" to="8" [^>]*name="High Street"', made)
        assert '<param key="k" value="v"/>' in made
        assert '<param key="label" value="&quot;x&quot;"/>' in made
        assert 'length="123.456789"' in made
        assert re.search(r'<connection from="0" to="1" fromLane="0" toLane="0" [^>]*tl="8" linkIndex="0"', made)
    assert [float(seconds) for seconds in re.findall(r'<phase duration="([^"]*)"', made)] == [20.0, 10.5]
