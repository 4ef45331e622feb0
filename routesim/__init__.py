"""routesim: traffic routing where a recommendation changes the traffic it was made for.

Every public name is found here and loaded on first use, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from routesim import congestion as congestion
    from routesim.actions import ActionSet as ActionSet
    from routesim.cities import list_cities as list_cities
    from routesim.cities import load_city as load_city
    from routesim.cities import load_zones as load_zones
    from routesim.city_demand import load_demand as load_demand
    from routesim.contexts import DrawnContexts as DrawnContexts
    from routesim.contexts import GaussianContexts as GaussianContexts
    from routesim.contexts import UniformContexts as UniformContexts
    from routesim.contextual import ContextualEnvironment as ContextualEnvironment
    from routesim.demand import Demand as Demand
    from routesim.environment import Feedback as Feedback
    from routesim.environment import Observation as Observation
    from routesim.environment import RoundEnvironment as RoundEnvironment
    from routesim.environment import Task as Task
    from routesim.errors import RoutesimError as RoutesimError
    from routesim.experiment import Comparator as Comparator
    from routesim.experiment import compare as compare
    from routesim.experiment import replicate as replicate
    from routesim.experiment import run as run
    from routesim.features import RoadFeatures as RoadFeatures
    from routesim.features import Travellers as Travellers
    from routesim.gym import RoundsEnv as RoundsEnv
    from routesim.gym import TrafficEnv as TrafficEnv
    from routesim.learners.base import Learner as Learner
    from routesim.learners.baselines import UCB1 as UCB1
    from routesim.learners.baselines import EpsilonGreedy as EpsilonGreedy
    from routesim.learners.baselines import GreedyCongestion as GreedyCongestion
    from routesim.learners.baselines import Oracle as Oracle
    from routesim.learners.baselines import RandomPath as RandomPath
    from routesim.learners.baselines import ShortestPath as ShortestPath
    from routesim.learners.baselines import ThompsonSampling as ThompsonSampling
    from routesim.learners.carcb import CARCB as CARCB
    from routesim.learners.carmab import CARMAB as CARMAB
    from routesim.learners.linear import LinearGreedy as LinearGreedy
    from routesim.learners.linear import LinearThompsonSampling as LinearThompsonSampling
    from routesim.learners.linear import LinUCB as LinUCB
    from routesim.network import RoadNetwork as RoadNetwork
    from routesim.planning import plan as plan
    from routesim.planning.assignment import Assignment as Assignment
    from routesim.planning.assignment import assign as assign
    from routesim.planning.base import Plan as Plan
    from routesim.report.drawn import draw_map as draw_map
    from routesim.report.plots import plot_regret as plot_regret
    from routesim.results import Band as Band
    from routesim.results import Run as Run
    from routesim.results import regret_band as regret_band
    from routesim.routers.basic import CompliantRouter as CompliantRouter
    from routesim.routers.basic import FixedRouter as FixedRouter
    from routesim.routers.basic import FreeFlowRouter as FreeFlowRouter
    from routesim.routers.basic import GreedyRouter as GreedyRouter
    from routesim.routers.basic import LogitRouter as LogitRouter
    from routesim.routers.contextual import CARCBRouter as CARCBRouter
    from routesim.routers.learning import CARMABRouter as CARMABRouter
    from routesim.routers.learning import PairLearnersRouter as PairLearnersRouter
    from routesim.routers.planned import PlannedRouter as PlannedRouter
    from routesim.routing import Router as Router
    from routesim.simulator import TrafficSimulator as TrafficSimulator
    from routesim.state import Resumable as Resumable
    from routesim.traffic import Traffic as Traffic
    from routesim.trip_costs import TripCosts as TripCosts

__version__ = "0.1.0"

_HOMES = {
    "ActionSet": "actions",
    "Assignment": "planning.assignment",
    "Band": "results",
    "CARCB": "learners.carcb",
    "CARCBRouter": "routers.contextual",
    "CARMAB": "learners.carmab",
    "CARMABRouter": "routers.learning",
    "Comparator": "experiment",
    "CompliantRouter": "routers.basic",
    "ContextualEnvironment": "contextual",
    "Demand": "demand",
    "DrawnContexts": "contexts",
    "EpsilonGreedy": "learners.baselines",
    "Feedback": "environment",
    "FixedRouter": "routers.basic",
    "FreeFlowRouter": "routers.basic",
    "GaussianContexts": "contexts",
    "GreedyCongestion": "learners.baselines",
    "GreedyRouter": "routers.basic",
    "Learner": "learners.base",
    "LinUCB": "learners.linear",
    "LinearGreedy": "learners.linear",
    "LinearThompsonSampling": "learners.linear",
    "LogitRouter": "routers.basic",
    "Observation": "environment",
    "Oracle": "learners.baselines",
    "PairLearnersRouter": "routers.learning",
    "Plan": "planning.base",
    "PlannedRouter": "routers.planned",
    "RandomPath": "learners.baselines",
    "Resumable": "state",
    "RoadFeatures": "features",
    "RoadNetwork": "network",
    "RoundEnvironment": "environment",
    "RoundsEnv": "gym",
    "Router": "routing",
    "RoutesimError": "errors",
    "Run": "results",
    "ShortestPath": "learners.baselines",
    "Task": "environment",
    "ThompsonSampling": "learners.baselines",
    "Traffic": "traffic",
    "TrafficEnv": "gym",
    "TrafficSimulator": "simulator",
    "Travellers": "features",
    "TripCosts": "trip_costs",
    "UCB1": "learners.baselines",
    "UniformContexts": "contexts",
    "assign": "planning.assignment",
    "compare": "experiment",
    "draw_map": "report.drawn",
    "list_cities": "cities",
    "load_city": "cities",
    "load_demand": "city_demand",
    "load_zones": "cities",
    "plan": "planning",
    "plot_regret": "report.plots",
    "regret_band": "results",
    "replicate": "experiment",
    "run": "experiment",
}
_MODULES = ("congestion",)

__all__ = sorted([*_HOMES, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"routesim.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'routesim' has no attribute {name!r}")
    value = getattr(import_module(f"routesim.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
