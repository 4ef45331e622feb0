"""The table of public names: where each is defined. `routesim` loads one on first use; type checkers read it here.

A line registers a learner or a router: from then on scenario files, the documentation and the tests know it.
"""

from routesim import congestion as congestion
from routesim.assignment.assignment import Assignment as Assignment
from routesim.assignment.assignment import assign as assign
from routesim.demand.cities import load_demand as load_demand
from routesim.demand.demand import Demand as Demand
from routesim.errors import RoutesimError as RoutesimError
from routesim.experiment import Comparator as Comparator
from routesim.experiment import compare as compare
from routesim.experiment import replicate as replicate
from routesim.experiment import run as run
from routesim.gym import RoundsEnv as RoundsEnv
from routesim.gym import TrafficEnv as TrafficEnv
from routesim.learners.base import Learner as Learner
from routesim.learners.carcb import CARCB as CARCB
from routesim.learners.carmab import CARMAB as CARMAB
from routesim.learners.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
from routesim.learners.greedy_congestion import GreedyCongestion as GreedyCongestion
from routesim.learners.lin_ucb import LinUCB as LinUCB
from routesim.learners.linear_greedy import LinearGreedy as LinearGreedy
from routesim.learners.linear_thompson_sampling import LinearThompsonSampling as LinearThompsonSampling
from routesim.learners.oracle import Oracle as Oracle
from routesim.learners.posterior_sampling import PosteriorSampling as PosteriorSampling
from routesim.learners.random_path import RandomPath as RandomPath
from routesim.learners.shortest_path import ShortestPath as ShortestPath
from routesim.learners.thompson_sampling import ThompsonSampling as ThompsonSampling
from routesim.learners.ucb1 import UCB1 as UCB1
from routesim.planning import plan as plan
from routesim.planning.base import Plan as Plan
from routesim.report.drawn import draw_map as draw_map
from routesim.report.plots import plot_regret as plot_regret
from routesim.results.bands import Band as Band
from routesim.results.bands import regret_band as regret_band
from routesim.results.run import Run as Run
from routesim.roads.cities import list_cities as list_cities
from routesim.roads.cities import load_city as load_city
from routesim.roads.cities import load_zones as load_zones
from routesim.roads.incidents import Incident as Incident
from routesim.roads.network import RoadNetwork as RoadNetwork
from routesim.roads.signal_times import SignalTimes as SignalTimes
from routesim.rounds.actions import ActionSet as ActionSet
from routesim.rounds.contextual import ContextualEnvironment as ContextualEnvironment
from routesim.rounds.environment import Feedback as Feedback
from routesim.rounds.environment import Observation as Observation
from routesim.rounds.environment import RoundEnvironment as RoundEnvironment
from routesim.rounds.environment import Task as Task
from routesim.storage.state import Resumable as Resumable
from routesim.traffic import physics as physics
from routesim.traffic.day_to_day import DayToDay as DayToDay
from routesim.traffic.day_to_day import day_to_day as day_to_day
from routesim.traffic.protocol import Router as Router
from routesim.traffic.result import Traffic as Traffic
from routesim.traffic.routers.carcb import CARCBRouter as CARCBRouter
from routesim.traffic.routers.carmab import CARMABRouter as CARMABRouter
from routesim.traffic.routers.compliant import CompliantRouter as CompliantRouter
from routesim.traffic.routers.fixed import FixedRouter as FixedRouter
from routesim.traffic.routers.free_flow import FreeFlowRouter as FreeFlowRouter
from routesim.traffic.routers.greedy import GreedyRouter as GreedyRouter
from routesim.traffic.routers.logit import LogitRouter as LogitRouter
from routesim.traffic.routers.pair_learners import PairLearnersRouter as PairLearnersRouter
from routesim.traffic.routers.planned import PlannedRouter as PlannedRouter
from routesim.traffic.simulator import TrafficSimulator as TrafficSimulator
from routesim.travellers.contexts import DrawnContexts as DrawnContexts
from routesim.travellers.contexts import GaussianContexts as GaussianContexts
from routesim.travellers.contexts import UniformContexts as UniformContexts
from routesim.travellers.features import RoadFeatures as RoadFeatures
from routesim.travellers.features import Travellers as Travellers
from routesim.travellers.trip_costs import TripCosts as TripCosts

__version__: str
