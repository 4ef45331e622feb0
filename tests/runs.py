"""Runs made by hand, and whether two runs are the same to the bit."""

import numpy as np
from numpy.testing import assert_array_equal

import routesim as rs

COLUMNS = (
    "actions",
    "expected_rewards",
    "rewards",
    "ends",
    "plays",
    "play_rewards",
    "quantiles",
    "step_ends",
    "comparator_rewards",
)


def made_up(expected: list[float], replication: int = 0) -> rs.Run:
    return rs.Run(
        learner="Nobody",
        actions=np.zeros(len(expected), dtype=np.int32),
        expected_rewards=np.array(expected),
        rewards=np.array(expected) + 0.1,
        comparator_value=1.0,
        comparator_bound=1.25,
        seed=3,
        replication=replication,
        details={"epochs": 2, "informed": False},
    )


def same(one: rs.Run, other: rs.Run) -> None:
    for column in COLUMNS:
        ours, theirs = getattr(one, column), getattr(other, column)
        assert (ours is None) == (theirs is None), column
        if ours is not None:
            assert ours.dtype == theirs.dtype
            assert_array_equal(ours, theirs, err_msg=column)
    assert (one.edge_uses is None) == (other.edge_uses is None)
    for ours, theirs in zip(one.edge_uses or (), other.edge_uses or (), strict=True):
        assert ours.dtype == theirs.dtype
        assert_array_equal(ours, theirs)
    assert one.window == other.window
    assert one.summary() == other.summary()
    assert one.paths == other.paths
