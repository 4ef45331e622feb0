"""Several origin-destination pairs in a city scenario: which trips they are, and how the report shows them."""

import json
import re

import numpy as np
import pytest

from routesim.errors import ScenarioError
from routesim.report.drawing import ends
from routesim.report.page import page_text
from routesim.report.routes_table import route_rows
from routesim.rounds.actions import ActionSet
from routesim.runner.reports import report
from routesim.runner.units import city_environment, units
from routesim.scenario.files import parse_scenario, to_toml

PAIRS = """
kind = "city"
title = "two pairs over one bridge"
rounds = 400
replications = 1
seed = 0
[city]
method = "all"
window = 1
noise = 0.0
congestion = { name = "linear", slope = 1.0 }
edges = [
  { from = "a", to = "x", free_flow_s = 10.0 }, { from = "b", to = "x", free_flow_s = 20.0 },
  { from = "x", to = "y", free_flow_s = 5.0, name = "bridge" },
  { from = "x", to = "y", free_flow_s = 9.0, name = "ford" },
]
nodes = { a = [0.0, 0.0], b = [0.0, 0.01], x = [0.01, 0.0], y = [0.02, 0.0] }
[[city.pairs]]
origin = "a"
destination = "y"
rate = 3.0
[[city.pairs]]
origin = "b"
destination = "y"
rate = 1.0
[[learners]]
name = "ShortestPath"
"""


def test_rounds_serve_the_pairs_by_their_rates() -> None:
    scenario = parse_scenario(PAIRS)
    environment = city_environment(scenario)  # type: ignore[arg-type]  # it is of a city
    assert isinstance(environment.actions, ActionSet)
    assert environment.actions.n_pairs == 2
    assert environment.actions.rates.tolist() == [0.75, 0.25]
    assert parse_scenario(to_toml(scenario)) == scenario
    played = units(scenario)[0].run()
    # Everybody takes the bridge: the share of the first pair is that of routes over edge 0.
    first = [number for number, path in enumerate(environment.actions.listed_paths) if 0 in path]
    assert np.isin(played.actions, first).mean() == pytest.approx(0.75, abs=0.07)  # type: ignore[union-attr]


def test_the_map_marks_every_pair_and_routes_say_theirs() -> None:
    scenario = parse_scenario(PAIRS)
    told = report(scenario, {unit: unit.run() for unit in units(scenario)})
    assert "of 2 pairs" in told.heading
    record = told.record
    labels = record.network.labels  # type: ignore[union-attr]
    assert sorted((labels[tail], labels[head]) for tail, head in ends(record)) == [("a", "y"), ("b", "y")]
    assert {row.via.split(":")[0] for row in route_rows(record)} == {"A1 to B1", "A2 to B2"}
    found = re.search(r'"ends":\s*(\[\{.*?\}\])', page_text(record))
    assert found is not None
    marks = json.loads(found[1])
    assert [mark["destination"] for mark in marks] == [[0.0, 0.02]] * 2
    assert sorted(mark["origin"] for mark in marks) == [[0.0, 0.0], [0.01, 0.0]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[city]\nmethod",
            '[city]\norigin = "a"\ndestination = "y"\nmethod',
            "or pairs that have them each, and not both",
        ),
        (
            'origin = "b"\ndestination = "y"',
            'origin = "y"\ndestination = "y"',
            "origin and destination are the same, 'y'",
        ),
        ("rate = 1.0", "rate = 0.0", "rate: Input should be greater than 0"),
        ("rate = 1.0", "", "rate: this key is needed"),
        ('name = "ShortestPath"', 'name = "ThompsonSampling"', None),
        (
            "window = 1",
            "window = 1\ntravellers = { classes = { a = 1.0 }, costs = { time = 1.0 } }",
            "between one origin and one destination",
        ),
    ],
)
def test_nonsense_is_refused(old: str, new: str, message: str | None) -> None:
    text = PAIRS.replace(old, new)
    assert text != PAIRS
    if message is None:
        assert parse_scenario(text).learners[0].name == "ThompsonSampling"
        return
    with pytest.raises(ScenarioError, match=message):
        parse_scenario(text)


def test_a_trip_needs_two_ends() -> None:
    text = PAIRS[: PAIRS.index("[[city.pairs]]")] + PAIRS[PAIRS.index("[[learners]]") :]
    with pytest.raises(ScenarioError, match="a trip needs origin and destination, or pairs"):
        parse_scenario(text)
    with pytest.raises(ScenarioError, match="a trip needs origin and destination, or pairs"):
        parse_scenario(text.replace("[city]\n", '[city]\norigin = "a"\n'))
