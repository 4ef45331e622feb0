"""The report of a scenario whose units have run: what they left, put together for the room that tells of it."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from routesim.assignment.references import References, references
from routesim.errors import CapacityWarning, NotConvergedWarning
from routesim.report.summary import Group, Report
from routesim.report.summary_rounds import RoadsPlayed, report_rounds
from routesim.report.summary_traffic import Equilibrium, RoadsDriven, report_traffic
from routesim.runner.units import Part, Unit, city_environment, measured_times, replication_seed, simulator
from routesim.scenario.city import CityScenario
from routesim.scenario.kinds import AnyScenario
from routesim.scenario.traffic import TrafficScenario
from routesim.traffic.day_to_day import day_to_day
from routesim.traffic.simulator import TrafficSimulator

# Closer than the simulation's own chance; large cities would take minutes to do better.
_RELATIVE_GAP = 1e-3
# A day of the equilibrium takes some three times as long as a run without learning.
_EQUILIBRIUM_GAP, _LEAST_DAYS, _MOST_DAYS, _MOST_TRIPS = 0.01, 5, 20, 2_000_000


def report(scenario: AnyScenario, parts: Mapping[Unit, Part]) -> Report:
    """Return the report of all units of a scenario without a sweep."""
    groups = _groups(scenario, parts)
    if isinstance(scenario, TrafficScenario):
        world = simulator(scenario)
        roads = RoadsDriven(
            world.network,
            world.window_s,
            world.trip_costs is not None,
            _references(world),
            _equilibrium(scenario, world),
        )
        density, told = world.demand.density(world.network), report_traffic(scenario.title, groups, roads)
        demand = {**world.demand.loading.figures(), **density.figures()}
        heading = told.heading
        if np.isfinite(density.times_ordinary):
            heading += f"; demand {density.times_ordinary:.2g} times as dense as in two real cities"
        return replace(told, heading=heading, demand=demand)
    return report_rounds(scenario.title, groups, _city(scenario) if isinstance(scenario, CityScenario) else None)


def _groups(scenario: AnyScenario, parts: Mapping[Unit, Part]) -> list[Group[Any]]:
    """Return the replications of each setting and learner, in the order of the scenario."""
    found: dict[tuple[int, int], Group[Any]] = {}
    for unit in sorted(parts, key=lambda one: (one.setting_number, one.learner, one.replication)):
        place = unit.setting_number, unit.learner
        if place not in found:
            choice = scenario.learners[unit.learner]
            traits = choice.traits
            says = traits.informed, traits.learns, traits.takes_shortest_path
            found[place] = Group(dict(unit.setting), unit.label, *says, [])
        found[place].runs.append(parts[unit])
    return list(found.values())


def _city(scenario: CityScenario) -> RoadsPlayed:
    city, found = scenario.city, city_environment(scenario).actions.n_actions
    routes = "every path of the graph" if found is None else f"{found} routes"
    asked = city.routes * len(city.ends)
    if len(city.ends) > 1:
        routes += f" of {len(city.ends)} pairs"
    if found is not None and found < asked and city.method != "all":
        routes += f" (of {asked} asked for)"
    return RoadsPlayed(city.network(), routes, city.travellers is not None)


def _references(world: TrafficSimulator) -> References:
    """Return the references: unknown if roads change or congest otherwise, or trips have costs or depart at once."""
    lasts = world.demand.end_s > world.demand.start_s
    if not world.physics.has_static_references or world.trip_costs is not None or world.incidents or not lasts:
        return References()
    return references(world.network, world.demand, _RELATIVE_GAP)


def _equilibrium(scenario: TrafficScenario, world: TrafficSimulator) -> Equilibrium:
    """Return the day-to-day equilibrium where static assignments are no references; unknown where there is none.

    It has the trips of the first replication, and as many days as the time for it allows.
    """
    vehicles = float(world.demand.vehicles.sum())
    has_none = world.trip_costs is not None or world.reroute_share > 0 or bool(world.incidents)
    has_none |= not getattr(world.physics, "has_day_to_day_reference", True)  # twenty runs of SUMO take too long
    if world.physics.has_static_references or has_none or vehicles == 0:
        return Equilibrium()
    days = min(max(int(_MOST_TRIPS / vehicles), _LEAST_DAYS), _MOST_DAYS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapacityWarning)  # the summary has the figures of the runs
        warnings.simplefilter("ignore", NotConvergedWarning)  # and the gap
        found = day_to_day(world, days, _EQUILIBRIUM_GAP, replication_seed(scenario, 0))
    measured = found.traffic.measured(*measured_times(scenario))
    return Equilibrium(float(np.nanmean(measured)) if np.isfinite(measured).any() else math.nan, found.gap)
