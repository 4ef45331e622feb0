"""Runs and replications: repeatable, independent of workers, and leaving their arguments alone."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import routesim as rs
from routesim.errors import InputError


def draw_bandit(rng: np.random.Generator) -> rs.RoundEnvironment:
    return rs.RoundEnvironment.from_congestion(rs.ActionSet.arms(3), rng.random(3), rs.congestion.Inverse(), 3, 0.3)


def bandit() -> rs.RoundEnvironment:
    return draw_bandit(np.random.default_rng(0))


def test_a_run_leaves_environment_and_learner_as_they_were() -> None:
    world, learner = bandit(), rs.UCB1()
    world.step(2)
    before = repr(vars(learner)), world.observe().history, world.observe().counts.tolist()
    first = rs.run(world, learner, rounds=50, seed=1)
    assert before == (repr(vars(learner)), world.observe().history, world.observe().counts.tolist())
    assert_array_equal(rs.run(world, learner, rounds=50, seed=1).rewards, first.rewards)


def test_two_learners_with_one_seed_meet_the_same_noise() -> None:
    world = bandit()
    noise = [
        (run.rewards - run.expected_rewards)
        for run in (rs.run(world, learner, rounds=20, seed=2) for learner in (rs.UCB1(), rs.RandomPath()))
    ]
    np.testing.assert_allclose(noise[0], noise[1], atol=1e-12)


def test_replications_differ_and_do_not_depend_on_the_workers() -> None:
    alone = rs.replicate(bandit(), rs.CARMAB(), rounds=200, seed=7, replications=4)
    together = rs.replicate(bandit(), rs.CARMAB(), rounds=200, seed=7, replications=4, workers=2)
    assert len({tuple(run.rewards.tolist()) for run in alone}) == 4
    for one, other in zip(alone, together, strict=True):
        assert one.summary() == other.summary()
        assert_array_equal(one.rewards, other.rewards)
    assert [run.replication for run in alone] == [0, 1, 2, 3]


def test_a_replication_can_be_run_again_by_itself() -> None:
    third = rs.replicate(bandit(), rs.UCB1(), rounds=50, seed=7, replications=3)[2]
    assert_array_equal(rs.run(bandit(), rs.UCB1(), rounds=50, seed=7, replication=2).rewards, third.rewards)


def test_a_function_draws_a_new_environment_for_each_replication() -> None:
    runs = rs.replicate(draw_bandit, rs.Oracle(), rounds=20, seed=1, replications=3)
    assert len({run.comparator_value for run in runs}) == 3
    again = rs.replicate(draw_bandit, rs.UCB1(), rounds=20, seed=1, replications=3)
    assert [run.comparator_value for run in runs] == [run.comparator_value for run in again], "learners share them"


@pytest.mark.parametrize("learner", [rs.CARMAB(), rs.UCB1()], ids=repr)
def test_progress_counts_every_round_once(learner: rs.Learner) -> None:
    played: list[int] = []
    rs.run(bandit(), learner, rounds=10_000, seed=0, progress=played.append)
    assert sum(played) == 10_000
    played.clear()
    rs.replicate(bandit(), learner, rounds=50, replications=3, progress=played.append)
    assert played == [50, 50, 50]


def test_realised_and_expected_regret_agree_in_the_long_run() -> None:
    run = rs.run(bandit(), rs.RandomPath(), rounds=50_000, seed=0)
    assert abs(run.average_regret[-1] - run.average_realised_regret[-1]) < 0.01
    assert run.average_regret[-1] != run.average_realised_regret[-1]


def test_a_plot_with_bands_is_written(tmp_path: Path) -> None:
    runs = {learner: rs.replicate(bandit(), learner_, 200, 0, 3) for learner, learner_ in [("UCB1", rs.UCB1())]}
    figure = rs.plot_regret(runs, tmp_path / "regret.png", title="three arms")
    assert (tmp_path / "regret.png").read_bytes().startswith(b"\x89PNG")
    (axes,) = figure.axes
    (curve,) = (line for line in axes.lines if line.get_label() == "UCB1")
    band = rs.regret_band(runs["UCB1"])
    assert_array_equal(np.asarray(curve.get_ydata()), band.mean)
    assert axes.get_title() == "three arms"
    assert len(axes.collections) == 1, "one band"
    with pytest.raises(InputError, match="at least one"):
        rs.plot_regret({})
    with pytest.raises(rs.RoutesimError, match="cannot write the figure"):
        rs.plot_regret(runs, tmp_path / "nowhere" / "regret.png")


def test_a_class_is_not_a_learner() -> None:
    with pytest.raises(InputError, match="such as CARMAB"):
        rs.run(bandit(), rs.CARMAB, rounds=10, seed=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"rounds": 2.5}, "rounds must be a whole number, got 2.5"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"seed": 1.5}, "seed must be a whole number, got 1.5"),
        ({"replications": 0}, "replications must be at least 1"),
        ({"workers": 0}, "workers must be at least 1"),
    ],
)
def test_bad_input_is_named(options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rs.replicate(bandit(), rs.UCB1(), **{"rounds": 10, "seed": 0, **options})
