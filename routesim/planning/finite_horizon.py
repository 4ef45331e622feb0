"""The best total over a finite number of rounds, by a dynamic programme over joint histories."""

import numpy as np

from routesim.arrays import Floats
from routesim.errors import InputError
from routesim.planning.contextual.exact import ContextualPlanner
from routesim.rounds.actions import ActionSet, PathList

_READ_ROUNDS = 1 << 12


def best_average(actions: ActionSet | None, rewards: Floats, window: int, rounds: int) -> float:
    """Return the largest sum of rewards over some rounds, from empty roads, divided by their number.

    `actions` is None where rewards depend on contexts.
    """
    if not isinstance(actions, PathList):
        raise InputError(
            "finite_horizon is for a list of paths between one pair of ends, without contexts: known contexts have it "
            "already, and nobody knows it for several pairs or a whole graph"
        )
    # Rewards are multipliers of a base of 1 that never changes.
    planner = ContextualPlanner(actions, window, rewards)
    ones = np.ones((_READ_ROUNDS, actions.n_edges))
    return planner.best(lambda first, last: ones[: last - first], 0, rounds, reads=_READ_ROUNDS) / rounds
