"""Routers: who sends the vehicles of the simulator down which paths. Fixed, by the present, by plan, or learning."""

from collections.abc import Sequence
from typing import Any

from routesim.errors import InputError
from routesim.learners.base import Learner
from routesim.learners.baselines import GreedyCongestion, Oracle, ShortestPath
from routesim.learners.carcb import CARCB
from routesim.learners.carmab import CARMAB
from routesim.traffic.protocol import Router
from routesim.traffic.routers.basic import FixedRouter, FreeFlowRouter, GreedyRouter
from routesim.traffic.routers.contextual import CARCBRouter
from routesim.traffic.routers.learning import CARMABRouter, PairLearnersRouter


def as_router(given: Any) -> Router:
    """Return the router that `given` stands for: itself, a list of paths, or a learner of the package.

    CARMAB becomes a CARMABRouter with its parameters, CARCB a CARCBRouter, ShortestPath and
    GreedyCongestion the routers of that kind; any other learner chooses among paths of
    each pair of places by a copy of its own.
    """
    if isinstance(given, Router):
        return given
    if isinstance(given, CARMAB):
        return CARMABRouter(confidence=given.confidence, delta=given.delta)
    if isinstance(given, CARCB):
        return CARCBRouter()
    if isinstance(given, ShortestPath):
        return FreeFlowRouter()
    if isinstance(given, GreedyCongestion):
        return GreedyRouter()
    if isinstance(given, Oracle):
        raise InputError("Oracle plans over rounds and has no counterpart here; use PlannedRouter(), which knows BPR")
    if isinstance(given, Learner):
        return PairLearnersRouter(given)
    if isinstance(given, Sequence) and not isinstance(given, str):
        return FixedRouter(given)
    raise InputError(f"a router is a Router, a learner or a list of paths, got {type(given).__name__}")
