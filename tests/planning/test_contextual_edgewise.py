"""Contextual planning edge by edge: a bound that nobody beats, a policy that beats greed, and where it takes over."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import random_actions
from numpy.testing import assert_allclose

import routesim as rs
from routesim.errors import TooManyStatesError
from routesim.planning.contextual.edgewise import EdgewiseContextualPlanner
from routesim.planning.contextual.exact import ContextualPlanner
from routesim.travellers.contexts import unit_vectors


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(0, 4), st.sampled_from(["bandit", "road", "any sign"]))
def test_no_policy_earns_more_than_the_bound(seed: int, k: int, window: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    actions = random_actions(rng, k)
    bases = rng.normal(size=(60, actions.n_edges))
    multipliers = np.tile(rs.congestion.Reciprocal()(np.arange(window + 1)), (actions.n_edges, 1))
    if kind != "any sign":
        bases = np.abs(bases)
    if kind == "road":
        bases, multipliers = -bases, 1 / multipliers
    planner = EdgewiseContextualPlanner(actions, window, multipliers)
    tolls = planner.tolls(bases[:20])

    def read(first: int, last: int) -> np.ndarray:
        return bases[first:last]

    best = ContextualPlanner(actions, window, multipliers).best(read, 0, 60)
    bounds = [planner.bound(tolls, read, 60, reads) for reads in (7, 60)]
    assert_allclose(bounds[0], bounds[1])
    assert bounds[0] >= best - 1e-9


def test_on_one_arm_with_one_context_the_bound_is_the_value() -> None:
    planner = EdgewiseContextualPlanner(rs.ActionSet.arms(1), 2, np.array([[1.0, 0.5, 0.25]]))
    bases = np.full((30, 1), 0.8)
    tolls = planner.tolls(bases[:5])
    bound = planner.bound(tolls, lambda first, last: bases[first:last], 30, 30)
    assert_allclose(bound, 0.8 + 0.4 + 28 * 0.2, rtol=1e-3)


def crowded(known: bool, rounds: int = 1_500, window: int = 9) -> rs.ContextualEnvironment:
    """Six overlapping roads, ten million joint histories."""
    rng = np.random.default_rng(2)
    actions = rs.ActionSet([(0, 1), (0, 2), (3, 4), (3, 5), (6,), (7, 1)])
    sampler = rs.UniformContexts(actions.n_edges, 3)
    contexts = sampler(rng, rounds) if known else sampler
    theta, curve = [-40.0, -10.0, -30.0], rs.congestion.Linear(0.5)
    return rs.ContextualEnvironment(actions, theta, contexts, curve, window, 4.0, known=known)


@pytest.mark.parametrize("known", [True, False], ids=["known", "stochastic"])
def test_carcb_takes_it_where_joint_histories_are_too_many(known: bool) -> None:
    world = crowded(known)
    best = rs.compare(world, 1_500, seed=0)
    assert best.value < best.bound < 0.8 * best.value, "costs: the bound is less of a cost, and not nothing"
    runs = {
        type(learner).__name__: rs.run(world, learner, 1_500, 0, comparator=best)
        for learner in (rs.CARCB(), rs.Oracle(), rs.GreedyCongestion(), rs.ShortestPath())
    }
    regret = {name: float(run.average_regret[-1]) for name, run in runs.items()}
    assert abs(regret["Oracle"]) < 0.002 * abs(best.value)
    assert regret["CARCB"] < regret["GreedyCongestion"], "a learner that plans beats an informed one that does not"
    assert regret["GreedyCongestion"] < regret["ShortestPath"]
    assert all(run.average_regret_upper[-1] >= 0 for run in runs.values()), "nobody beats the bound"


def test_edge_by_edge_comes_close_to_exact_where_both_can_plan() -> None:
    rng = np.random.default_rng(0)
    theta, sampler = unit_vectors(rng, (3,)), rs.UniformContexts(4, 3)
    world = rs.ContextualEnvironment(
        rs.ActionSet.arms(4), theta, sampler, rs.congestion.Reciprocal(), 4, 0.1, known=False
    )
    best = rs.compare(world, 3_000, seed=0)
    learners = {
        "exact": rs.CARCB(planner="exact"),
        "edgewise": rs.CARCB(planner="edgewise"),
        "greedy": rs.GreedyCongestion(),
    }
    regret = {
        name: rs.run(world, learner, 3_000, 0, comparator=best).average_regret[-1] for name, learner in learners.items()
    }
    assert regret["exact"] < regret["edgewise"] < 0.7 * regret["greedy"]
    assert regret["edgewise"] < 0.04 * best.value


def test_windows_beyond_its_reach_are_refused() -> None:
    with pytest.raises(TooManyStatesError, match="reaches window 12, got 13"):
        EdgewiseContextualPlanner(rs.ActionSet.arms(3), 13, np.ones((3, 14)))
