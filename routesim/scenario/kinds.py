"""The kinds of scenarios: plain arms, arms with features, roads in rounds, and traffic in continuous time."""

from typing import TypeAlias

from routesim.scenario.arms import BanditScenario, ContextualScenario
from routesim.scenario.city import CityScenario
from routesim.scenario.traffic import TrafficScenario

AnyScenario: TypeAlias = BanditScenario | ContextualScenario | CityScenario | TrafficScenario
KINDS = (BanditScenario, ContextualScenario, CityScenario, TrafficScenario)
