"""Damaged files of every format of roads: each is a network or an error of one line, within 2 GB and 20 seconds."""

import pytest
from importer_fuzz import FORMATS, run

# Its seed is another than that of the short test, so that both together see more.
LONG_CASES = 3000


@pytest.mark.parametrize("kind", FORMATS)
def test_damaged_files_are_read_or_refused_in_one_line(kind: str) -> None:
    tally = run(kind, seed=1, cases=list(range(60)))
    assert tally.failures == []
    assert tally.cases == tally.networks + tally.refused == 60
    assert tally.refused > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_thousands_of_damaged_files_are_read_or_refused_in_one_line(kind: str) -> None:
    tally = run(kind, seed=2, cases=list(range(LONG_CASES)))
    assert tally.failures == []
    assert tally.networks > 0
    assert tally.refused > 0
