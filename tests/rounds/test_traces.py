"""Thinned traces: rows by hand, the same rows whatever the stretches, exact where they end, and small on disk."""

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as some
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import parquet
from runs import made_up, same
from worlds import ROUNDS, WORLDS, arms, contexts

import routesim as rs
from routesim.errors import InputError, ResultsError
from routesim.results.run import ThinnedRun
from routesim.rounds.environment import EdgeUses
from routesim.rounds.kernels import Trace
from routesim.rounds.trace import KeptTrace, TraceKeeper, count_plays, equal_ends


def test_rows_by_hand() -> None:
    full = made_up([0.5, 1.0, 0.0, 2.0, 1.0])
    full.actions[:] = [0, 1, 1, 2, 0]
    run = full.thinned(2)
    assert isinstance(run, ThinnedRun)
    assert run.ends.tolist() == [3, 5]
    assert run.rounds == 5
    assert run.actions.tolist() == [1, 0]
    assert_allclose(run.expected_rewards, [0.5, 1.5])
    assert_allclose(run.rewards, [0.6, 1.6])
    # The comparator earns 1 a round: 3 - 1.5 after three rounds, 5 - 4.5 after five.
    assert_allclose(run.regret, [1.5, 0.5])
    assert_allclose(run.average_regret, [0.5, 0.1])
    assert_allclose(run.average_regret_upper, [0.75, 0.35])
    assert_allclose(run.average_realised_regret, [0.4, 0.0], atol=1e-15)
    assert run.summary()["mean_reward"] == pytest.approx(0.9)
    assert run.summary()["rounds"] == 5
    assert run.plays.tolist() == full.plays.tolist() == [[0, 0, 1], [1, 1, 1], [2, 1, 1], [3, 2, 1], [4, 0, 1]]
    assert full.thinned(5) is full


def test_rows_are_thinned_again() -> None:
    full = made_up([float(value) for value in range(10)])
    twice = full.thinned(5).thinned(2)
    assert twice.ends.tolist() == [6, 10]
    assert_allclose(twice.expected_rewards, [2.5, 7.5])
    assert_array_equal(twice.plays, full.plays)


def test_plays_by_hand() -> None:
    actions = np.array([0, 2, 2, 1, 1, 1, 0], dtype=np.int32)
    earned = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    plays, rewards = count_plays(actions, earned, equal_ends(7, 3))
    assert plays.tolist() == [[0, 0, 1], [0, 2, 2], [1, 1, 3], [2, 0, 1]]
    assert rewards.tolist() == [1.0, 6.0, 56.0, 64.0]
    run = made_up([1.0] * 100)
    assert run.step_ends.tolist() == [*range(3, 100, 3), 100]
    assert run.plays[:, 2].tolist() == [3] * 33 + [1]


@pytest.mark.parametrize("name", ["arms", "paths", "graph", "pairs", "known contexts", "stochastic contexts"])
def test_rows_kept_while_playing_are_those_of_the_full_trace(name: str) -> None:
    learner = rs.CARCB() if "contexts" in name else rs.CARMAB(confidence=1)
    full = rs.run(WORLDS[name](), learner, ROUNDS, seed=1)
    assert type(full) is rs.Run
    for keep in (1, 47, ROUNDS):
        run = rs.run(WORLDS[name](), learner, ROUNDS, seed=1, keep=keep)
        assert len(run.actions) <= keep
        # Where the comparator plays, the mean of its rewards is that of rows.
        assert run.comparator_value == pytest.approx(full.comparator_value, rel=1e-12)
        values = {name: getattr(run, name) for name in ("comparator_value", "comparator_bound")}
        same(run, replace(full.thinned(keep), **values))
        assert isinstance(run, ThinnedRun) == (keep < ROUNDS)
        for curve in ("average_regret", "average_regret_upper", "average_realised_regret", "regret"):
            assert_allclose(getattr(run, curve), getattr(full, curve)[run.ends - 1], rtol=1e-9, atol=1e-9)


def test_step_by_step_and_compiled_rows_are_the_same() -> None:
    one, other = (rs.run(arms(), rs.CARMAB(confidence=1), 3_000, keep=11, compiled=flag) for flag in (True, False))
    same(one, other)


@given(
    rounds=some.integers(1, 300),
    keep=some.integers(1, 60),
    stretches=some.lists(some.integers(1, 40), min_size=1),
    seed=some.integers(0, 99),
)
def test_stretches_and_cuts_change_nothing(rounds: int, keep: int, stretches: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    given_rounds = Trace(rng.integers(0, 5, rounds).astype(np.int32), rng.normal(size=rounds), rng.normal(size=rounds))
    at_once, in_parts = TraceKeeper.keeping(rounds, keep), TraceKeeper.keeping(rounds, keep)

    def advance(keeper: TraceKeeper, played: int) -> None:
        before = keeper.now // size_of_step * size_of_step
        if keeper.advance(played):
            # One edge, used in every round of the step.
            keeper.put_uses(EdgeUses(np.array([3]), np.array([keeper.now - before]), np.array([1.5])))

    size_of_step = int(equal_ends(rounds, 48)[0])
    for now in range(rounds):
        at_once.put(*(column[now] for column in given_rounds))
        advance(at_once, 1)
    turn = 0
    while in_parts.now < rounds:
        room = in_parts.room()
        size = min(stretches[turn % len(stretches)], len(room.actions))
        for column, values in zip(room, given_rounds.part(in_parts.now, in_parts.now + size), strict=True):
            column[:size] = values
        advance(in_parts, size)
        turn += 1
        saved, rows = in_parts.state(), in_parts.rows(0)
        in_parts = TraceKeeper.keeping(rounds, keep)
        in_parts.restore(saved, rows)
    one, other = at_once.kept(), in_parts.kept()
    for ours, theirs in zip((*one[:-1], *one.edge_uses), (*other[:-1], *other.edge_uses), strict=True):
        assert_array_equal(ours, theirs)
    if isinstance(one, KeptTrace):
        assert_array_equal(one.expected_rewards, given_rounds.expected_rewards)
        return
    size = int(one.ends[0])
    by_hand = [float(sum(given_rounds.rewards[first : first + size])) for first in range(0, rounds, size)]
    assert_allclose(one.rewards * np.diff(one.ends, prepend=0), by_hand, atol=1e-12)
    plays, earned = count_plays(given_rounds.actions, given_rounds.expected_rewards, equal_ends(rounds, 48))
    assert_array_equal(one.plays, plays)
    assert_array_equal(one.play_rewards, earned)
    assert_array_equal(one.edge_uses.steps, np.arange(len(equal_ends(rounds, 48))))
    assert one.edge_uses.uses.sum() == rounds


def test_memory_does_not_grow_with_the_rounds() -> None:
    rs.run(arms(), rs.CARMAB(), 1_000, keep=100)
    peaks = []
    for rounds in (200_000, 2_000_000):
        tracemalloc.start()
        rs.run(arms(), rs.CARMAB(), rounds, keep=1_000)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] + 100_000
    assert peaks[1] < 2_000_000 * 20 / 8, "a fraction of the full trace"


def test_ten_million_rounds_are_small_on_disk(tmp_path: Path) -> None:
    run = rs.run(arms(), rs.CARMAB(), 10_000_000, seed=0, keep=200_000)
    assert run.rounds == 10_000_000
    run.save(tmp_path / "run")
    assert sum(file.stat().st_size for file in (tmp_path / "run").iterdir()) < 50_000_000
    same(rs.Run.load(tmp_path / "run"), run)


@pytest.mark.parametrize("known", [True, False])
def test_a_thinned_run_survives_the_disk(tmp_path: Path, known: bool) -> None:
    run = rs.run(contexts(known=known), rs.LinUCB(), 100, seed=0)
    run.save(tmp_path / "run", keep=9)
    back = rs.Run.load(tmp_path / "run")
    same(back, run.thinned(9))
    assert isinstance(back, ThinnedRun)
    assert len(back.actions) == 9
    assert parquet.read_schema(tmp_path / "run" / "rounds.parquet").names == [
        "action",
        "expected_reward",
        "reward",
        "comparator_reward",
        "round",
    ]
    assert parquet.read_schema(tmp_path / "run" / "plays.parquet").names == ["step", "action", "uses", "reward"]
    run.save(tmp_path / "run")
    full = rs.Run.load(tmp_path / "run")
    same(full, run)
    assert type(full) is rs.Run
    assert full.ends.tolist() == list(range(1, 101))
    assert not (tmp_path / "run" / "plays.parquet").exists()


@pytest.mark.parametrize("damage", ["no plays", "plays of other steps", "too few uses", "ends fall", "no rows"])
def test_a_damaged_thinned_run_is_an_error_of_ours(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "run"
    rs.run(arms(), rs.UCB1(), 100, seed=0).save(folder, keep=10)
    plays, rounds = folder / "plays.parquet", folder / "rounds.parquet"
    table, rows = parquet.read_table(plays), parquet.read_table(rounds)
    if damage == "no plays":
        plays.unlink()
    elif damage == "plays of other steps":
        parquet.write_table(table.set_column(0, "step", pa.array(table["step"].to_numpy() + 1)), plays)
    elif damage == "too few uses":
        parquet.write_table(table.slice(1), plays)
    elif damage == "ends fall":
        parquet.write_table(rows.set_column(3, "round", pa.array(rows["round"].to_numpy()[::-1].copy())), rounds)
    else:
        parquet.write_table(rows.slice(0, 0), rounds)
    with pytest.raises(ResultsError, match="holds no run"):
        rs.Run.load(folder)


def test_a_band_of_thinned_runs_has_values_at_rows() -> None:
    full = [made_up([0.5, 1.0, 0.0, 2.0, 1.0], number) for number in range(2)]
    thin = [run.thinned(2) for run in full]
    band = rs.regret_band(thin)
    assert band.rounds.tolist() == [3, 5]
    assert_allclose(band.mean, [0.5, 0.1])
    assert rs.regret_band(thin, at=[2]).rounds.tolist() == [3]
    assert rs.regret_band(thin, at=[4, 5]).rounds.tolist() == [5]
    mixed = rs.regret_band([full[0], thin[1]])
    assert (mixed.rounds.tolist(), mixed.mean.tolist()) == (band.rounds.tolist(), pytest.approx(band.mean.tolist()))
    with pytest.raises(InputError, match="between 1 and 5, got 6"):
        rs.regret_band(thin, at=[6])
    shorter = made_up([0.5, 1.0]).thinned(1)
    with pytest.raises(InputError, match="keep as many rows"):
        rs.regret_band([thin[0], shorter])


def test_comparators_of_other_rounds_are_refused() -> None:
    world = contexts(known=False)
    full, thin = rs.compare(world, 100), rs.compare(world, 100, keep=10)
    run = rs.run(world, rs.LinUCB(), 100, keep=10)
    for comparator in (full, thin):
        again = rs.run(world, rs.LinUCB(), 100, keep=10, comparator=comparator)
        assert_array_equal(again.comparator_rewards, run.comparator_rewards)
    for options in ({"rounds": 100}, {"rounds": 100, "keep": 20}, {"rounds": 90, "keep": 10}):
        with pytest.raises(InputError, match="made for other rounds"):
            rs.run(world, rs.LinUCB(), comparator=thin, **options)
    with pytest.raises(InputError, match="made for other rounds"):
        rs.run(world, rs.LinUCB(), 90, comparator=full)


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match="keep must be at least 1, got 0"):
        rs.run(arms(), rs.UCB1(), 10, keep=0)
    with pytest.raises(InputError, match=r"keep must be a whole number, got 2\.5"):
        rs.replicate(arms(), rs.UCB1(), 10, replications=2, keep=2.5)


def test_percentiles_of_long_runs_come_from_a_sample() -> None:
    full = rs.run(arms(), rs.CARMAB(confidence=1), 200_000, seed=3)
    thin = rs.run(arms(), rs.CARMAB(confidence=1), 200_000, seed=3, keep=100)
    # Rewards are few numbers, each with its share: nearly all percentiles are hit exactly.
    assert np.mean(np.isclose(full.quantiles, thin.quantiles)) > 0.95
    assert thin.quantiles[[0, -1]].tolist() == [full.expected_rewards.min(), full.expected_rewards.max()]


def test_replications_are_thinned_too() -> None:
    alone = rs.replicate(arms(), rs.CARMAB(), 200, seed=7, replications=2, keep=10)
    for number, run in enumerate(alone):
        same(run, rs.run(arms(), rs.CARMAB(), 200, seed=7, replication=number).thinned(10))
