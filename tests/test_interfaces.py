"""What routesim builds on in other packages beyond their documented interfaces: a change there fails here first."""

import re

import numba
import numpy as np
import pytest
import records
import typer
from numba.core.errors import NumbaError

from routesim.kernels import lean_kernel
from routesim.report.assets import bare_map
from routesim.report.page import page_text


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
