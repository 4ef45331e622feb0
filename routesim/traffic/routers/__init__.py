"""Routers: who sends the vehicles of the simulator down which paths. Fixed, by the present, by plan, or learning."""

from collections.abc import Sequence
from typing import Any

from routesim import registry
from routesim.errors import InputError
from routesim.learners.base import Learner
from routesim.traffic.protocol import Router
from routesim.traffic.routers.base import RouterTraits, settings_for
from routesim.traffic.routers.fixed import FixedRouter
from routesim.traffic.routers.pair_learners import PairLearnersRouter


def as_router(given: Any) -> Router:
    """Return the router that `given` stands for: itself, a list of paths, or a learner.

    A learner that has a router of its own becomes that router, with all its settings: CARMAB a CARMABRouter, CARCB a
    CARCBRouter, ShortestPath a FreeFlowRouter and GreedyCongestion a GreedyRouter; a setting that the router cannot
    honour is an error. Any other learner chooses among paths of each OD pair by a copy of its own.
    """
    if isinstance(given, Router):
        return given
    own = _own_router(type(given))
    if own is not None:
        router: Router = own(**settings_for(own, given))
        return router
    if isinstance(given, Learner):
        return PairLearnersRouter(given)
    if isinstance(given, Sequence) and not isinstance(given, str):
        return FixedRouter(given)
    raise InputError(f"a router is a Router, a learner or a list of paths, got {type(given).__name__}")


def in_traffic(learner: type) -> bool:
    """Say whether a class of learners has a counterpart in traffic."""
    return _own_router(learner) is not None or PairLearnersRouter.serves(learner)


def _own_router(learner: type) -> Any:
    """Return the class of routers that stands for a class of learners, or None."""
    stand = ((kind, RouterTraits.of(kind).stands_for) for kind in registry.routers().values())
    return next((kind for kind, meant in stand if meant is not None and issubclass(learner, meant)), None)
