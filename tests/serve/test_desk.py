"""The desk: the same as a run in rounds, counts over all pairs, and a state that can be taken up."""

import io
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import routesim as rs
from routesim.experiment import generators
from routesim.serve.desk import Desk, Pair
from routesim.serve.served import Served, load_served
from routesim.storage.state import State


@cache
def helsinki(learner: str | None = None) -> Served:
    return load_served("helsinki", learner)


def desk_of(served: Served, *ends: tuple[int, int]) -> Desk:
    desk = Desk(served)
    for pair in ends or (served.ends,):
        desk.add(Pair.meet(served, pair))
    return desk


def other_ends(served: Served) -> tuple[int, int]:
    start, end = served.ends
    return end, start


@pytest.mark.parametrize("learner", ["CARMAB", "UCB1", "ThompsonSampling", "RandomPath", "ShortestPath"])
def test_one_pair_is_what_a_run_plays(learner: str) -> None:
    served = helsinki(learner)
    desk = desk_of(served)
    world = served.rounds(*served.ends)
    run = rs.run(world, served.learner, 600, seed=served.seed)
    world.reset(generators(served.seed, 0)[0])
    actions = []
    for _ in range(600):
        assert desk.counts[world.actions.edges].tolist() == world.observe().counts.tolist()
        decision = desk.recommend(served.ends)
        feedback = world.step(decision.action)
        assert decision.counts.tolist() == feedback.counts.tolist()
        desk.observe(decision, -feedback.rewards, total=False)
        actions.append(decision.action)
    assert actions == run.actions.tolist()


def test_counts_are_those_of_the_last_recommendations_of_all_pairs() -> None:
    served = helsinki("RandomPath")
    here, back = served.ends, other_ends(served)
    desk = desk_of(served, here, back)
    rng = np.random.default_rng(0)
    given: list[tuple[int, ...]] = []
    for _ in range(200):
        ends = here if rng.random() < 0.5 else back
        before = np.zeros(served.network.n_edges, dtype=int)
        for path in given[-served.window :]:
            before[list(path)] += 1
        assert desk.counts.tolist() == before.tolist()
        decision = desk.recommend(ends)
        path = desk.pairs[ends].paths[decision.action]
        assert decision.counts.tolist() == before[list(path)].tolist()
        given.append(path)
    assert dict(desk.loads()) == {
        edge: sum(edge in path for path in given[-served.window :]) for path in given[-served.window :] for edge in path
    }


def test_observations_may_come_late_and_in_any_order() -> None:
    """What is learned depends on what the counts were when the route was recommended, not on when it is heard of."""
    served = helsinki()
    orders = []
    for order in (range(40), reversed(range(40))):
        desk = desk_of(served)
        decisions = [desk.recommend(served.ends) for _ in range(40)]
        for number in order:
            path = desk.pairs[served.ends].paths[decisions[number].action]
            desk.observe(decisions[number], served.network.free_flow_s[list(path)] * (1 + number / 40), total=False)
        orders.append(desk)
    first, second = orders
    assert (first.visits == second.visits).all()
    np.testing.assert_allclose(first.sums, second.sums)
    state, same = (desk.pairs[served.ends].learner.state() for desk in orders)  # type: ignore[attr-defined]
    assert (state["tally.visits"] == same["tally.visits"]).all()
    np.testing.assert_allclose(state["tally.sums"], same["tally.sums"])


def test_a_total_is_shared_out_like_the_free_flow_times() -> None:
    served = helsinki()
    whole, by_edge = desk_of(served), desk_of(served)
    for desk, total in ((whole, True), (by_edge, False)):
        decision = desk.recommend(served.ends)
        free_flow = served.network.free_flow_s[list(desk.pairs[served.ends].paths[decision.action])]
        seconds = np.array([2 * free_flow.sum()]) if total else 2 * free_flow
        desk.observe(decision, seconds, total=total)
    np.testing.assert_allclose(whole.sums, by_edge.sums)
    assert whole.sums.sum() > 0


def test_the_expected_time_is_the_mean_seen_at_these_counts_or_else_the_model() -> None:
    served = helsinki("ShortestPath")
    desk = desk_of(served)
    first = desk.recommend(served.ends)
    path = list(desk.pairs[served.ends].paths[first.action])
    free_flow = served.network.free_flow_s[path]
    assert first.expected_s == pytest.approx(free_flow.sum())
    assert desk.recommend(served.ends).expected_s == pytest.approx(1.5 * free_flow.sum())
    for seconds in (1.0, 3.0):
        desk.observe(first, np.full(len(path), seconds), total=False)
    fresh = desk_of(served)
    fresh.visits, fresh.sums = desk.visits, desk.sums
    assert fresh.recommend(served.ends).expected_s == pytest.approx(2.0 * len(path))


def stored(state: State) -> State:
    """What a state is after it was a file."""
    file = io.BytesIO()
    np.savez_compressed(file, **state)  # type: ignore[arg-type]
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


@pytest.mark.parametrize("learner", ["CARMAB", "UCB1", "ThompsonSampling", "RandomPath", "ShortestPath"])
def test_a_desk_taken_up_goes_on_as_the_one_that_was_left(learner: str) -> None:
    served = helsinki(learner)
    pairs = served.ends, other_ends(served)
    desk = desk_of(served, *pairs)
    play(desk, pairs, 300, seed=1)
    again = Desk(served)
    again.restore(stored(desk.state()))
    assert again.counts.tolist() == desk.counts.tolist()
    assert play(again, pairs, 200, seed=2) == play(desk, pairs, 200, seed=2)


def play(desk: Desk, pairs: Any, rounds: int, seed: int, traveller: tuple[str, ...] = ()) -> list[tuple[int, float]]:
    rng = np.random.default_rng(seed)
    given = []
    for _ in range(rounds):
        decision = desk.recommend(pairs[int(rng.integers(len(pairs)))], traveller)
        given.append((decision.action, decision.expected_s))
        if rng.random() < 0.8:
            desk.observe(decision, np.array([decision.expected_s * rng.uniform(0.8, 1.2)]), total=True)
    return given


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda state: state.pop("visits"), "no visits"),
        (lambda state: state.update(sums=np.zeros((1, 1))), "sums has shape"),
        (lambda state: state.update(ends=np.array([[0, 10**6]])), "ends lie in"),
        (lambda state: state["window.values"].fill(10**6), "rows lie in"),
    ],
)
def test_a_state_of_something_else_is_refused(spoil: Any, words: str) -> None:
    desk = desk_of(helsinki())
    desk.recommend(helsinki().ends)
    state = desk.state()
    spoil(state)
    with pytest.raises(rs.RoutesimError, match=words):
        Desk(helsinki()).restore(state)


def test_travellers_are_served_by_their_class() -> None:
    served = load_served("helsinki-travellers")
    assert served.learner_label.startswith("CARCB")
    assert served.classes[0] == "hurried"
    desk = desk_of(served)
    # No trip is ever heard of, and nothing breaks.
    for _ in range(300):
        desk.recommend(served.ends, ("calm", "rain"))
    play(desk, (served.ends,), 100, seed=0, traveller=("hurried",))
    pair = desk.pairs[served.ends]
    calm, hurried = pair.features(("calm",)), pair.features(("hurried",))
    assert calm is not None
    assert hurried is not None
    assert not np.allclose(calm, hurried)


def test_the_first_learner_that_is_not_informed_is_served() -> None:
    assert helsinki().learner_label == "CARMAB"
    assert helsinki("UCB1").learner_label == "UCB1"
    with pytest.raises(rs.RoutesimError, match="no learner 'Oracle' to serve; it has CARMAB"):
        load_served("helsinki", "Oracle")
    with pytest.raises(rs.RoutesimError, match="has no roads to serve"):
        load_served("congested-bandit")


def test_the_fingerprint_tells_roads_learners_and_seeds_apart() -> None:
    served = helsinki()
    others = [
        helsinki("UCB1"),
        replace(served, seed=1),
        replace(served, city=served.city.model_copy(update={"window": 5})),
        replace(served, network=rs.load_city("monaco")),
    ]
    assert len({one.fingerprint for one in (served, *others)}) == 5
    assert load_served("helsinki").fingerprint == served.fingerprint
