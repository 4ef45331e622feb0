"""State as plain arrays: who takes it up goes on as if nothing had happened, and what does not fit is refused."""

import copy
import io
import itertools
import zlib

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from worlds import CASES, ROUNDS, WORLDS, arms, contexts, graph, pairs

import routesim as rs
from routesim.errors import ResultsError
from routesim.planning import Planner
from routesim.planning.edgewise.index_policy import IndexPolicy
from routesim.storage import state as st


def begun(world: rs.RoundEnvironment, learner: rs.Learner, seed: int) -> tuple[rs.RoundEnvironment, rs.Learner]:
    """A copy of both, at round 0."""
    world, learner = copy.copy(world), copy.deepcopy(learner)
    chance = np.random.SeedSequence(seed).spawn(2)
    world.reset(np.random.default_rng(chance[0]), ROUNDS)
    learner.start(world.task(learner.knows, ROUNDS), np.random.default_rng(chance[1]))
    return world, learner


def through_a_file(state: st.State) -> st.State:
    """The state as it comes back from a file without pickles."""
    buffer = io.BytesIO()
    np.savez(buffer, **state)
    buffer.seek(0)
    with np.load(buffer, allow_pickle=False) as arrays:
        return dict(arrays)


def play(world: rs.RoundEnvironment, learner: rs.Learner, rounds: int) -> list[tuple[object, float, float]]:
    played = []
    for _ in range(rounds):
        feedback = world.step(learner.choose(world.observe()))
        learner.update(feedback)
        played.append((feedback.action, world.expected_reward, feedback.reward))
    return played


@pytest.mark.parametrize(("name", "learner"), CASES, ids=lambda part: part if isinstance(part, str) else repr(part))
def test_going_on_from_a_state_is_as_if_nothing_had_happened(
    name: str, learner: rs.Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("routesim.travellers.contexts.BLOCK_NUMBERS", 600)  # contexts come in some dozens of blocks
    make, rounds = WORLDS[name], 100 if "long" in name else ROUNDS
    undisturbed = play(*begun(make(), learner, seed=3), rounds)
    rng = np.random.default_rng(zlib.crc32(f"{name}{learner!r}".encode()))
    cuts = [0, *sorted(rng.choice(np.arange(1, rounds), size=3, replace=False).tolist()), rounds]
    world, player = begun(make(), learner, seed=3)
    again = []
    for first, last in itertools.pairwise(cuts):
        saved = through_a_file(world.state()), through_a_file(player.state())
        play(world, player, 2)  # what happens after a state was told does not change it
        world, player = begun(make(), learner, seed=3)
        for one, state in zip((world, player), saved, strict=True):
            one.restore(state)
            told = one.state()
            assert sorted(told) == sorted(state)
            for key in state:
                assert_array_equal(told[key], state[key], err_msg=key)
        again += play(world, player, last - first)
    assert again == undisturbed
    assert getattr(player, "epochs", 0) > 1 or not hasattr(player, "epochs"), "several plans were made"


def test_every_learner_of_the_package_takes_part() -> None:
    for _, learner in CASES:
        assert isinstance(learner, rs.Resumable)
        assert st.resumable(learner)
    assert st.resumable(arms())
    assert st.resumable(contexts(known=True))


def test_a_subclass_that_plays_otherwise_must_tell_its_own_state() -> None:
    class Plain(rs.UCB1):
        pass

    class Counting(rs.UCB1):
        def update(self, feedback: rs.Feedback) -> None:
            super().update(feedback)
            self.seen = getattr(self, "seen", 0) + 1

    class Telling(Counting):
        def state(self) -> st.State:
            return super().state() | st.collect(self, "seen")

    assert st.resumable(Plain())
    assert not st.resumable(Counting())
    assert st.resumable(Telling())
    assert not st.resumable(object())


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_a_generator_goes_on_where_another_stood(kind: str) -> None:
    rng, other = (np.random.Generator(getattr(np.random, kind)(seed)) for seed in (1, 2))
    rng.integers(10, dtype=np.int32)  # leaves half a word behind
    rng.standard_normal(7)
    saved = through_a_file(st.rng_state(rng))
    assert all(array.dtype.kind == "u" for array in saved.values()) or kind in ("MT19937", "Philox")
    st.restore_rng(other, saved)
    assert_array_equal(other.integers(1000, size=50, dtype=np.int32), rng.integers(1000, size=50, dtype=np.int32))
    assert_array_equal(other.standard_normal(50), rng.standard_normal(50))


def test_a_state_of_another_generator_is_refused() -> None:
    saved = st.rng_state(np.random.Generator(np.random.PCG64(0)))
    with pytest.raises(ResultsError, match="does not fit"):
        st.restore_rng(np.random.Generator(np.random.SFC64(0)), saved)
    wrong = saved | {"bit_generator": np.frombuffer(b"PCG64ABCD", dtype=np.uint8)}
    with pytest.raises(ResultsError, match="another generator than PCG64DXSM"):
        st.restore_rng(np.random.Generator(np.random.PCG64DXSM(0)), wrong)


def test_rows_of_any_length_come_back() -> None:
    rows = [(3, 1), (), (2,), (0, 0, 0)]
    packed = st.pack_rows(rows)
    assert (packed["ends"].tolist(), packed["values"].tolist()) == ([2, 2, 3, 6], [3, 1, 2, 0, 0, 0])
    assert st.unpack_rows(packed, below=4) == rows
    assert st.unpack_rows(st.pack_rows([]), below=0) == []
    with pytest.raises(ResultsError, match=r"rows lie in 0\.\.3, below 3 asked"):
        st.unpack_rows(packed, below=3)
    for ends in ([2, 1, 3, 6], [2, 2, 3, 7], [-1, 2, 3, 6]):
        with pytest.raises(ResultsError, match="end where they cannot"):
            st.unpack_rows(packed | {"ends": np.array(ends)}, below=4)


def test_parts_are_joined_and_taken_apart() -> None:
    joined = st.join(one={"a": np.array(1), "b.c": np.array(2)}, other={"a": np.array(3)})
    assert sorted(joined) == ["one.a", "one.b.c", "other.a"]
    assert {name: int(value) for name, value in st.part(joined, "one").items()} == {"a": 1, "b.c": 2}
    assert st.part(joined, "on") == {}


@pytest.mark.parametrize("name", [name for name in WORLDS if "contexts" not in name])
@pytest.mark.parametrize("method", ["auto", "edgewise"])
def test_a_plan_comes_back_with_the_start_it_leaves(name: str, method: str) -> None:
    world = WORLDS[name]()
    planner = Planner(world.actions, world.window, method)
    plan = planner.plan(world.rewards)
    plan = planner.plan(0.9 * world.rewards, start=plan)
    state = planner.state_of(plan)
    back = planner.restored(through_a_file(state))
    again = planner.state_of(back)
    assert sorted(again) == sorted(state)
    for key, value in state.items():
        assert again[key].dtype == value.dtype
        assert_array_equal(again[key], value, err_msg=key)
    assert (back.value, back.bound, back.value_error) == (plan.value, plan.bound, plan.value_error)
    assert (back.method, back.cycle, type(back.policy)) == (plan.method, plan.cycle, type(plan.policy))
    if isinstance(plan.policy, IndexPolicy):
        assert_array_equal(back.policy.edge_values.values, plan.policy.edge_values.values)
        assert_array_equal(back.policy.edge_values.row, plan.policy.edge_values.row)
    if plan.method == "edgewise":
        ours, theirs = back.warm, plan.warm
        assert (ours.patterns is None) == (theirs.patterns is None) == (world.window > 16)
        assert ours.cycle == theirs.cycle
        for (one, path), (other, twin) in zip(ours.paths, theirs.paths, strict=True):
            assert one == other
            assert_array_equal(path, twin)


@pytest.mark.parametrize("name", ["arms", "paths", "graph", "pairs on a graph", "pairs, long window"])
def test_every_array_that_is_missing_or_misshapen_is_refused(name: str) -> None:
    learner = rs.CARMAB(confidence=1)
    world, player = begun(WORLDS[name](), learner, seed=0)
    play(world, player, 50)
    for number, whole in enumerate((world.state(), player.state())):
        for key, value in whole.items():
            if key in ("plan.warm.patterns",) or value.size == 0:
                continue
            damaged = [value.astype(np.complex128), value[np.newaxis]]
            for wrong in ({k: v for k, v in whole.items() if k != key}, *(whole | {key: bad} for bad in damaged)):
                with pytest.raises(rs.RoutesimError, match="does not fit"):
                    begun(WORLDS[name](), learner, seed=0)[number].restore(wrong)


@pytest.mark.parametrize(
    ("key", "value"),
    [("ring", 7), ("ring", -1), ("pair", 1), ("round", -1)],
)
def test_numbers_that_lead_out_of_arrays_are_refused(key: str, value: int) -> None:
    world, learner = begun(arms(), rs.CARMAB(confidence=1), seed=0)
    play(world, learner, 20)
    state = world.state()
    with pytest.raises(ResultsError, match="does not fit"):
        world.restore(state | {key: np.full_like(state[key], value)})
    plan = learner.state()
    with pytest.raises(ResultsError, match="the table's actions lie in"):
        learner.restore(plan | {"plan.table": np.full_like(plan["plan.table"], 3)})


def test_contexts_of_rounds_elsewhere_are_refused() -> None:
    world, learner = begun(contexts(known=True), rs.LinUCB(), seed=0)
    play(world, learner, 20)
    state = world.state()
    for key, value in (("bases_first", 21), ("bases_last", 19), ("bases_last", 10**9), ("bases_first", -1)):
        with pytest.raises(ResultsError, match=f"{key} is {value}"):
            world.restore(state | {key: np.array(value)})


def test_paths_that_are_no_paths_are_refused() -> None:
    world, learner = begun(graph(), rs.CARMAB(confidence=1), seed=0)
    play(world, learner, 20)
    state = world.state()
    for key, value in (("routes.pairs", 1), ("routes.values", 10**6), ("routes.values", 0)):
        fresh, _ = begun(graph(), learner, seed=0)
        with pytest.raises(rs.RoutesimError):
            fresh.restore(state | {key: np.full_like(state[key], value)})


def test_pairs_of_a_graph_keep_their_numbers() -> None:
    world, learner = begun(pairs(whole=True), rs.GreedyCongestion(), seed=0)
    play(world, learner, 30)
    fresh, _ = begun(pairs(whole=True), rs.GreedyCongestion(), seed=0)
    fresh.restore(world.state())
    assert fresh.paths == world.paths
    assert fresh.observe().history == world.observe().history
    assert_array_equal(fresh.observe().counts, world.observe().counts)
