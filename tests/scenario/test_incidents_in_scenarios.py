"""Incidents in a scenario's file: which roads they are on, what they change, and what is refused."""

import pytest

from routesim.errors import RoutesimError
from routesim.runner.reports import report
from routesim.runner.units import units
from routesim.scenario.files import parse_scenario, to_toml

FORK = """
kind = "traffic"
title = "a street that is closed"
replications = 1
seed = 0
[traffic]
edges = [
  { from = "a", to = "b", free_flow_s = 10.0, capacity_vph = 3600.0 },
  { from = "b", to = "a", free_flow_s = 10.0, capacity_vph = 3600.0 },
  { from = "b", to = "c", free_flow_s = 20.0, capacity_vph = 3600.0, name = "quay" },
  { from = "c", to = "b", free_flow_s = 20.0, capacity_vph = 3600.0, name = "quay" },
  { from = "b", to = "c", free_flow_s = 50.0, capacity_vph = 3600.0, name = "hill road" },
]
[traffic.demand]
end_s = 600
pairs = [{ from = "a", to = "c", vehicles = 60 }]
[[learners]]
name = "FreeFlowRouter"
"""


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ('road = "quay"', {"quay"}),
        ('between = ["b", "c"]', {"quay", "hill road"}),
        ("edges = [2]", {"quay"}),
    ],
)
def test_roads_are_named_by_what_people_call_them_by_their_ends_or_by_index(where: str, names: set[str]) -> None:
    scenario = parse_scenario(f"{FORK}\n[[incidents]]\n{where}\nstart_s = 60\nend_s = 120\ncapacity = 0.5\n", "test")
    assert parse_scenario(to_toml(scenario), "again") == scenario
    simulator = scenario.traffic.simulator(None, scenario.incidents)
    (incident,) = simulator.incidents
    assert (incident.start_s, incident.end_s, incident.capacity) == (60.0, 120.0, 0.5)
    assert {simulator.network.names[edge] for edge in incident.edges} == names
    assert len(incident.edges) == (1 if where.startswith("edges") else 2)


def test_a_closed_road_makes_trips_of_a_scenario_longer() -> None:
    means = {}
    for closed, text in ((False, FORK), (True, f'{FORK}\n[[incidents]]\nroad = "quay"\nstart_s = 0\n')):
        scenario = parse_scenario(text, "test")
        (unit,) = units(scenario)
        means[closed] = float(unit.run().summary["mean_travel_time_s"])
    assert means[False] == pytest.approx(30.0, abs=0.1)
    assert means[True] == pytest.approx(60.0, abs=0.1)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('road = "key"\nstart_s = 0', "no road is called 'key'"),
        ('between = ["c", "a"]\nstart_s = 0', "no road leads from 'c' to 'a'"),
        ("edges = [9]\nstart_s = 0", "edge 9; the network has edges 0 … 4"),
        ("start_s = 0", "one of road, between and edges; got none"),
        ('road = "quay"\nedges = [0]\nstart_s = 0', "got road and edges"),
        ('road = "quay"', "start_s"),
        ('road = "quay"\nstart_s = 9\nend_s = 5', "end_s must be later than start_s"),
        ('road = "quay"\nstart_s = 9\ncapacity = 1e-5', "capacity is 0 or at least 0.001"),
        ('road = "quay"\nstart_s = 9\ncapacity = 2', "less than or equal to 1"),
    ],
)
def test_what_has_no_meaning_is_refused(row: str, message: str) -> None:
    def build() -> None:
        scenario = parse_scenario(f"{FORK}\n[[incidents]]\n{row}\n", "test")
        scenario.traffic.simulator(None, scenario.incidents)

    with pytest.raises(RoutesimError, match=message):
        build()


def test_reports_have_no_static_references_beside_incidents() -> None:
    for text, known in ((FORK, True), (f'{FORK}\n[[incidents]]\nroad = "quay"\nstart_s = 60\n', False)):
        scenario = parse_scenario(text, "test")
        (row,) = report(scenario, {unit: unit.run() for unit in units(scenario)}).table
        assert ("excess_over_system_optimum" in row) == known
