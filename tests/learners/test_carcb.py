"""CARCB: the fit, the episodes, the plan of each, and the theory's promises."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import routesim as rs
from routesim.errors import InputError
from routesim.planning.contextual.exact import ContextualPlanner
from routesim.travellers.contexts import unit_vectors

SETTINGS = [(4, 4), (10, 2)]
PAPERS = {"growth": 2.0, "lookahead": 0}


def paper(
    arms: int, window: int, rounds: int, seed: int, *, known: bool = True, noise_std: float = math.sqrt(0.1)
) -> rs.ContextualEnvironment:
    """The environment of Figure 2 (right)."""
    rng = np.random.default_rng((seed, arms))
    theta, sampler = unit_vectors(rng, (10,)), rs.UniformContexts(arms, 10)
    contexts = sampler(rng, rounds) if known else sampler
    curve = rs.congestion.Inverse()
    return rs.ContextualEnvironment(rs.ActionSet.arms(arms), theta, contexts, curve, window, noise_std, known=known)


def roads(rounds: int | None, seed: int = 0) -> rs.ContextualEnvironment:
    """Three overlapping paths with travel times; stochastic if no number of rounds is given."""
    rng = np.random.default_rng(seed)
    actions = rs.ActionSet([(0, 1), (1, 2, 3), (4,)])
    sampler = rs.UniformContexts(actions.n_edges, 3)
    contexts = sampler if rounds is None else sampler(rng, rounds)
    curve = rs.congestion.Linear(0.5)
    return rs.ContextualEnvironment(actions, [-50.0, -20.0, -80.0], contexts, curve, 2, 5.0, known=rounds is not None)


@pytest.mark.parametrize("make", [lambda: paper(4, 2, 400, 0), lambda: roads(400)], ids=["arms", "paths"])
def test_the_fit_is_numpys_least_squares_over_all_rounds(make) -> None:
    world, learner = make(), rs.CARCB()
    learner.start(world.task("congestion", 400), np.random.default_rng(0))
    regressors, rewards = [], []
    for now in range(400):
        feedback = world.step(learner.choose(world.observe()))
        learner.update(feedback)
        assert feedback.features is not None
        regressors.append(feedback.features * world.multipliers[feedback.edges, feedback.counts][:, None])
        rewards.append(feedback.rewards)
        if now in (2, 50, 399):
            truth, *_ = np.linalg.lstsq(np.concatenate(regressors), np.concatenate(rewards), rcond=None)
            assert_allclose(learner.fitted(now + 1), truth, rtol=1e-6, atol=1e-9)
    together = np.concatenate(regressors)
    learner.ridge = 0.7
    penalised = together.T @ together + 0.7 * np.eye(together.shape[1])
    assert_allclose(learner.fitted(400), np.linalg.solve(penalised, together.T @ np.concatenate(rewards)))


def test_episodes_double_and_end_with_the_rounds() -> None:
    for arms, window, length in ((3, 3, 3), (3, 0, 1)):
        world, learner = paper(arms, window, 1_000, 0), rs.CARCB(**PAPERS)
        learner.start(world.task("congestion", 1_000), np.random.default_rng(0))
        starts, thetas = [], []
        for now in range(1_000):
            before = learner.epochs
            learner.update(world.step(learner.choose(world.observe())))
            if learner.epochs > before:
                starts.append(now)
                thetas.append(learner.theta)
        lengths = np.diff(starts)
        assert lengths.tolist() == [length * 2**episode for episode in range(1, len(starts))]
        assert np.linalg.norm(thetas[0]) <= 1, "the first is drawn from the unit ball"
        assert len({tuple(theta) for theta in thetas}) == len(thetas)


@pytest.mark.parametrize("known", [True, False], ids=["known", "stochastic"])
def test_episodes_grow_by_a_tenth_unless_told_otherwise(known: bool) -> None:
    world, learner = paper(3, 3, 300, 0, known=known), rs.CARCB()
    learner.start(world.task("congestion", 300), np.random.default_rng(0))
    starts = []
    for now in range(300):
        before = learner.epochs
        learner.update(world.step(learner.choose(world.observe())))
        if learner.epochs > before:
            starts.append(now)
    lengths = np.diff(starts).tolist()
    assert lengths == [math.ceil(3 * 1.1**episode) for episode in range(1, len(starts))]
    assert lengths[:4] == [4, 4, 4, 5]


@pytest.mark.parametrize("lookahead", [0, 2])
def test_a_plan_looks_so_many_windows_past_the_end_of_its_episode(lookahead: int) -> None:
    world, learner = paper(3, 2, 40, 1), rs.CARCB(lookahead=lookahead)
    learner.start(world.task("congestion", 40), np.random.default_rng(0))
    features, planner = world.contexts.read(0, 40), ContextualPlanner(world.actions, 2, world.multipliers)
    for now in range(40):
        seen, before = world.observe(), learner.epochs
        action = learner.choose(seen)
        if learner.epochs > before:
            first, bases = now, features @ learner.theta
            last = min(40, first + math.ceil(2 * 1.1**learner.epochs) + 2 * lookahead)
            (block,) = planner.blocks(lambda start, end, bases=bases: bases[start:end], first, last)
        state = 0
        for past in seen.history:
            state = state * 3 + past
        assert action == block.table[now - first, state]
        learner.update(world.step(action))
    assert learner.epochs > 8


def test_the_first_theta_is_uniform_in_the_ball() -> None:
    world, radii = paper(2, 1, 10, 0), []
    for seed in range(400):
        learner = rs.CARCB()
        learner.start(world.task("congestion", 10), np.random.default_rng(seed))
        radii.append(np.linalg.norm(learner.theta))
    # The volume within radius r is r ** 10.
    assert_allclose(np.mean(np.array(radii) ** 10), 0.5, atol=0.05)


@pytest.mark.parametrize("skip_first", [False, True])
def test_an_episode_is_planned_for_its_rewards_with_the_theta_of_its_start(skip_first: bool) -> None:
    world, learner = paper(3, 2, 200, 1), rs.CARCB(skip_first=skip_first, **PAPERS)
    learner.start(world.task("congestion", 200), np.random.default_rng(0))
    features = world.contexts.read(0, 200)
    planner = ContextualPlanner(world.actions, 2, world.multipliers)
    played: list[int] = []
    theta = np.zeros(10)
    for now in range(124):
        seen, before = world.observe(), learner.epochs
        action = learner.choose(seen)
        if learner.epochs > before:
            first, theta = now, learner.theta.copy()
            bases = features @ theta
            if skip_first:
                bases[first : first + 2] = 0
            length = 2**learner.epochs * 2
            last = min(200, first + length)
            (block,) = planner.blocks(lambda start, end, bases=bases: bases[start:end], first, last)
        state = 0
        for past in seen.history:
            state = state * 3 + past
        assert action == block.table[now - first, state]
        played.append(action)
        learner.update(world.step(action))
    assert learner.epochs == 5


@pytest.mark.parametrize("window", [0, 1, 3])
@pytest.mark.parametrize("kind", ["arms", "paths"])
@pytest.mark.parametrize("known", [True, False], ids=["known", "stochastic"])
@pytest.mark.parametrize("learner", [rs.CARCB(), rs.CARCB(ridge=0.1, skip_first=True, **PAPERS), rs.Oracle()], ids=repr)
def test_the_compiled_episode_and_the_plain_loop_give_identical_numbers(
    learner: rs.Learner, known: bool, kind: str, window: int
) -> None:
    rounds = 15_000 if kind == "arms" and window == 3 else 1_500
    if kind == "arms":
        world = paper(3, window, rounds, 0, known=known)
    else:
        base = roads(rounds if known else None)
        source = base.contexts.source
        world = rs.ContextualEnvironment(
            base.actions, base.theta, source, rs.congestion.Linear(0.5), window, 5.0, known=known
        )
    fast = rs.run(world, learner, rounds=rounds, seed=4)
    plain = rs.run(world, learner, rounds=rounds, seed=4, compiled=False)
    assert_array_equal(fast.actions, plain.actions)
    assert_array_equal(fast.expected_rewards, plain.expected_rewards)
    assert_array_equal(fast.rewards, plain.rewards)
    assert fast.summary() == plain.summary()


def errors_of_theta(arms: int, window: int, seed: int, rounds: int) -> dict[int, float]:
    """The distance of the fitted theta from the truth at the start of each episode."""
    world, learner = paper(arms, window, rounds, seed), rs.CARCB(**PAPERS)
    learner.start(world.task("congestion", rounds), np.random.default_rng(seed))
    world.reset(np.random.default_rng(seed), rounds)
    from routesim.rounds.kernels import Trace

    now, errors = 0, {}
    while now < rounds:
        policy, fit, _ = learner.epoch(now)
        errors[now] = float(np.linalg.norm(learner.theta - world.theta))
        now += world.play_contextual(policy, fit, Trace.empty(rounds - now))
    return errors


@pytest.mark.parametrize(("arms", "window"), SETTINGS)
def test_theta_comes_closer_like_one_over_the_root_of_the_rounds(arms: int, window: int) -> None:
    runs = [errors_of_theta(arms, window, seed, 40_000) for seed in range(8)]
    late = [now for now in runs[0] if now > 500]
    mean = [np.mean([errors[now] for errors in runs]) for now in late]
    slope = np.polyfit(np.log(late), np.log(mean), 1)[0]
    assert len(late) >= 5
    assert -0.6 < slope < -0.4


@pytest.mark.parametrize(("arms", "window"), SETTINGS)
@pytest.mark.parametrize("known", [True, False], ids=["known", "stochastic"])
def test_average_regret_falls_towards_zero(arms: int, window: int, known: bool) -> None:
    runs = [rs.run(paper(arms, window, 10_000, seed, known=known), rs.CARCB(), 10_000, seed) for seed in range(3)]
    band = rs.regret_band(runs, at=[1_000, 10_000])
    assert band.mean[1] < 0.01
    assert band.mean[1] < band.mean[0] / 2
    assert band.mean[1] > -0.001


def test_a_learner_that_does_not_plan_stays_above() -> None:
    worlds = [paper(4, 4, 8_000, seed) for seed in range(2)]
    regret = {
        name: np.mean([rs.run(world, learner, 8_000, 0).average_regret[-1] for world in worlds])
        for name, learner in {"CARCB": rs.CARCB(), "LinUCB": rs.LinUCB(), "blind": rs.LinUCB(blind=True)}.items()
    }
    assert regret["CARCB"] < regret["LinUCB"] / 1.5
    assert regret["LinUCB"] < regret["blind"] / 5


@pytest.mark.slow
@pytest.mark.parametrize(("arms", "window"), SETTINGS)
@pytest.mark.parametrize("known", [True, False], ids=["known", "stochastic"])
def test_average_regret_is_below_0_005_at_fifty_thousand_rounds(arms: int, window: int, known: bool) -> None:
    worlds = [paper(arms, window, 50_000, seed, known=known) for seed in range(10)]
    runs = [rs.run(world, rs.CARCB(**PAPERS), 50_000, seed) for seed, world in enumerate(worlds)]
    assert rs.regret_band(runs, at=[50_000]).upper[0] < 0.005


def test_a_gaussian_distribution_as_in_the_papers_assumption_is_learned() -> None:
    rng = np.random.default_rng(0)
    sampler = rs.GaussianContexts(unit_vectors(rng, (3, 4)) * 0.7, 0.02 * np.eye(4))
    theta = unit_vectors(rng, (4,))
    world = rs.ContextualEnvironment(
        rs.ActionSet.arms(3), theta, sampler, rs.congestion.Inverse(), 2, 0.2, known=False, lengths="keep"
    )
    run = rs.run(world, rs.CARCB(), 10_000, seed=0)
    assert abs(run.average_regret[-1]) < 0.004
    assert rs.run(world, rs.RandomPath(), 10_000, seed=0).average_regret[-1] > 0.05


def test_a_fit_that_stays_singular_says_what_to_do() -> None:
    rng = np.random.default_rng(0)
    features = unit_vectors(rng, (3_000, 3, 4)) * 0.7
    features[:, :, 3] = features[:, :, 0] + features[:, :, 1]
    features /= 2
    world = rs.ContextualEnvironment(rs.ActionSet.arms(3), np.full(4, 0.5), features, rs.congestion.Inverse(), 2, 0.1)
    with pytest.raises(InputError, match=r"span only 3 of 4 dimensions.*or give ridge > 0"):
        rs.run(world, rs.CARCB(), 3_000, seed=0)
    assert rs.run(world, rs.CARCB(ridge=1e-3), 3_000, seed=0).average_regret[-1] < 0.02


def test_too_many_histories_for_the_exact_planner_are_an_error_that_says_so() -> None:
    world = paper(10, 9, 20, 0)
    with pytest.raises(InputError, match="10 actions and window 9"):
        rs.run(world, rs.CARCB(planner="exact"), 20)


def test_a_started_learner_can_be_run_again() -> None:
    world, learner = paper(3, 2, 300, 0), rs.CARCB()
    learner.start(world.task("congestion", 300), np.random.default_rng(0))
    learner.choose(world.observe())
    assert_array_equal(rs.run(world, learner, 300, 1).actions, rs.run(world, rs.CARCB(), 300, 1).actions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ridge": -1}, r"ridge, where it is not 0, must be between 1e-12 and 1e\+12, got -1"),
        ({"ridge": math.nan}, "ridge"),
        ({"sample": 0}, "sample must be at least 1, got 0"),
        ({"planner": "karp"}, "got 'karp'"),
        ({"growth": 1.0}, r"growth must be between 1.01 and 1000, got 1.0"),
        ({"lookahead": -1}, "lookahead must be at least 0, got -1"),
    ],
)
def test_bad_parameters_are_named(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rs.CARCB(**options)
