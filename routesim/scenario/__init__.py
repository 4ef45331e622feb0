"""Scenarios: a TOML file, or the name of a bundled one -> typed frozen values -> units to run and a report of them."""

from routesim.bundled import scenario_names
from routesim.scenario.files import (
    fingerprint,
    load_scenario,
    parse_scenario,
    points,
    scenario_schema,
    to_toml,
)
from routesim.scenario.kinds import AnyScenario, BanditScenario, CityScenario, ContextualScenario, TrafficScenario
from routesim.scenario.reports import Report, report
from routesim.scenario.units import Part, Unit, units
from routesim.traffic_run import TrafficRun

__all__ = [
    "AnyScenario",
    "BanditScenario",
    "CityScenario",
    "ContextualScenario",
    "Part",
    "Report",
    "TrafficRun",
    "TrafficScenario",
    "Unit",
    "fingerprint",
    "load_scenario",
    "parse_scenario",
    "points",
    "report",
    "scenario_names",
    "scenario_schema",
    "to_toml",
    "units",
]
