"""The OD pairs of departures: their numbers, their share of the demand, and the paths to choose from."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routesim.errors import FewerPathsWarning
from routesim.rounds.actions import ActionSet
from routesim.traffic.protocol import Departures, TrafficTask


def pair_numbers(departures: Departures, n_nodes: int) -> NDArray[np.int64]:
    """Number the OD pair of every vehicle: origin x nodes + destination."""
    return departures.origins.astype(np.int64) * n_nodes + departures.destinations


def part_of(task: TrafficTask, share: float) -> dict[str, Any]:
    """Return the demand's mean rates of a share of the vehicles, as a table for `assign`."""
    table = task.demand.per_hour()
    return {**table, "vehicles": table["vehicles"] * share}


def candidates(task: TrafficTask, pair: int, k: int, max_overlap: float) -> ActionSet:
    """Return up to k paths of a pair that differ; fewer are no news here."""
    labels, n_nodes = task.network.labels, task.network.n_nodes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewerPathsWarning)
        return ActionSet.between(
            task.network, labels[pair // n_nodes], labels[pair % n_nodes], k, max_overlap=max_overlap
        )
