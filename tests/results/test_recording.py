"""Records of results: what edges and routes really were to those who used them, by hand and by a slow twin."""

import json
import pickle
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from town import edge, town
from worlds import WORLDS, arms, grid

import routesim as rs
from routesim.errors import InputError, ResultsError
from routesim.results.from_results import can_be_drawn, record
from routesim.results.record import Record
from routesim.rounds.trace import StepUses

KINDS = ["arms", "no window", "paths", "graph", "pairs", "pairs on a graph", "known contexts", "stochastic contexts"]


def roads(window: int = 1, noise: float = 0.0) -> rs.RoundEnvironment:
    """Two ways from home to work, 20 s and 30 s when empty; every use in the window adds as much again."""
    network = town([("home", "bridge", 10), ("bridge", "work", 10), ("home", "ferry", 15), ("ferry", "work", 15)])
    ways = rs.ActionSet.between(network, "home", "work", method="all")
    base = -network.free_flow_s[ways.edges]
    return rs.RoundEnvironment.from_congestion(ways, base, rs.congestion.Linear(1.0), window, noise)


def slow_uses(environment: rs.RoundEnvironment, run: rs.Run) -> StepUses:
    """Count the window again, round by round and edge by edge."""
    table = getattr(environment, "multipliers", environment.rewards)
    position = {int(edge): place for place, edge in enumerate(environment.actions.edges)}
    found: dict[tuple[int, int], list[float]] = {}
    for step, (first, last) in enumerate(pairwise([0, *run.step_ends.tolist()])):
        for now in range(first, last):
            past = [run.paths[action] for action in run.actions[max(0, now - environment.window) : now]]
            for used in run.paths[run.actions[now]]:
                count = sum(used in path for path in past)
                found.setdefault((step, used), []).append(table[position[used], count])
    rows = sorted(found)
    ratios = []
    for _, used in rows:
        mean, empty = np.mean(found[_, used]), table[position[used], 0]
        ratios.append(max(mean / empty, empty / mean))
    steps, edges = np.array(rows).T
    return StepUses(steps, edges, np.array([len(found[row]) for row in rows]), np.array(ratios))


@pytest.mark.parametrize("name", KINDS)
def test_uses_of_edges_are_those_of_a_slow_twin(name: str) -> None:
    learner = rs.CARCB() if "contexts" in name else rs.CARMAB(confidence=1)
    environment = WORLDS[name]()
    run = rs.run(environment, learner, 150, seed=1)
    for one in (run, rs.run(environment, learner, 150, seed=1, keep=7, compiled=False)):
        assert one.edge_uses is not None
        for ours, theirs in zip(one.edge_uses, slow_uses(environment, run), strict=True):
            assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("name", KINDS[:6])
def test_routes_are_worth_what_their_trips_were(name: str) -> None:
    run = rs.run(WORLDS[name](), rs.RandomPath() if "graph" not in name else rs.CARMAB(confidence=1), 400, seed=0)
    told = record(run)
    (played,) = told.learners
    sign = 1.0 if told.network is None else -1.0
    for number, route in enumerate(told.routes):
        mine = np.isin(run.actions, [action for action, path in enumerate(run.paths) if path == route])
        if mine.any():
            assert played.route_values[number] == pytest.approx(sign * run.expected_rewards[mine].mean())
    spans = np.diff(told.step_ends, prepend=0)
    assert np.average(played.curve, weights=spans) == pytest.approx(sign * run.expected_rewards.mean())
    overall = np.average(played.shares, weights=spans, axis=0)
    if len(told.routes) == len(set(run.paths)):
        together = np.nansum(overall * played.route_values)
        assert together == pytest.approx(sign * run.expected_rewards.mean()), "shares and means add up to the whole"
    assert played.regret is not None
    assert_allclose(played.regret.mean, run.average_regret[run.step_ends - 1], atol=1e-9)


def test_two_ways_by_hand() -> None:
    run = rs.run(roads(), rs.ShortestPath(), 96, seed=0)
    told = record(run, "two ways")
    (played,) = told.learners
    assert (told.title, told.clock, told.measure, told.window) == ("two ways", "rounds", "mean trip, s", 1.0)
    assert told.step_ends.tolist() == list(range(2, 97, 2))
    assert told.network is not None
    bridge = edge(told.network, "home", "bridge"), edge(told.network, "bridge", "work")
    assert told.edges.tolist() == sorted(bridge)
    assert told.routes == (bridge,)
    # One use in two rounds is met empty, all others find one before them: 1.5 times as dear, then twice.
    assert played.ratios.tolist() == [[1.5, 1.5]] + [[2.0, 2.0]] * 47
    assert (played.loads == 1.0).all()
    assert_allclose(played.route_values, [(20 + 95 * 40) / 96])
    # The best policy takes turns: 20 s and 30 s.
    assert_allclose(told.references["best possible"], 25.0)
    assert_allclose(played.curve, [30.0] + [40.0] * 47)
    assert played.quantiles is not None
    # 1 of 96 trips found the road empty: the first percentile lies between it and the others.
    assert_allclose(played.quantiles[[0, 1, 2, 100]], [20.0, 39.0, 40.0, 40.0])


def test_what_is_known_is_told_apart_from_what_is_proven() -> None:
    run = replace(rs.run(roads(), rs.Oracle(), 50, seed=0), comparator_bound=-24.0)
    told = record(run)
    assert_allclose(told.references["best known"], 25.0)
    assert_allclose(told.references["bound in the long run"], 24.0)
    other = replace(run, comparator_value=-30.0)
    assert record({"one": run, "other": other}).references == {}, "they do not agree what is best"


def test_a_gain_that_is_gone_is_as_dear_as_can_be_shown() -> None:
    nothing = rs.RoundEnvironment(rs.ActionSet.arms(2), [[0.5, 0.0], [0.0, 0.0]], 1, 0.0)
    (played,) = record(rs.run(nothing, rs.ShortestPath(), 4, seed=0)).learners
    assert played.ratios[:, 0].tolist() == [1.0, 99.0, 99.0, 99.0]
    negative = rs.RoundEnvironment(rs.ActionSet.arms(1), [[0.5, -0.5]], 1, 0.0, reward_range=(-1, 1))
    (played,) = record(rs.run(negative, rs.ShortestPath(), 3, seed=0)).learners
    assert played.ratios[:, 0].tolist() == [1.0, 99.0, 99.0]


def test_replications_are_averaged_and_learners_told_apart() -> None:
    several = rs.replicate(roads(noise=1.0), rs.RandomPath(), 60, seed=0, replications=3)
    told = record([*several, rs.run(roads(), rs.ShortestPath(), 60)])
    assert [played.label for played in told.learners] == ["RandomPath", "ShortestPath"]
    first = told.learners[0]
    alone = [record(run).learners[0] for run in several]
    assert_allclose(first.loads, np.mean([one.loads for one in alone], axis=0))
    assert_allclose(first.curve, np.mean([one.curve for one in alone], axis=0))
    assert (first.lower < first.upper).any()
    labelled = record({"by chance": several, "told": rs.run(roads(), rs.GreedyCongestion(), 60)})
    assert [(one.label, one.informed) for one in labelled.learners] == [("by chance", False), ("told", True)]


def test_runs_of_other_processes_share_a_map() -> None:
    runs = rs.replicate(roads(), rs.RandomPath(), 30, seed=0, replications=2, workers=2)
    assert runs[0].network is runs[1].network is not None, "one network for all, however they travelled"
    copies = [replace(run, network=pickle.loads(pickle.dumps(run.network))) for run in runs]  # noqa: S301 - our own
    assert_array_equal(record(copies).step_ends, record(runs).step_ends)
    assert_array_equal(record(runs).step_ends, record(runs[0]).step_ends)


def test_a_street_in_traffic_by_hand() -> None:
    # One entry in 100 s is a flow of 36 vehicles an hour, the capacity: the second takes twice the time on a-b.
    street = town([("a", "b", 10), ("b", "c", 20)], capacity_vph=36, alpha=1.0, beta=1.0)
    demand = rs.Demand.from_trips({"origin": ["a", "a"], "destination": ["c", "c"], "departure_s": [0.0, 5.0]})
    for noise in (0.0, 0.3):
        traffic = rs.TrafficSimulator(street, demand, window_s=100, bin_s=50, noise=noise).run(
            rs.GreedyRouter(), seed=1
        )
        told = record(traffic)
        (played,) = told.learners
        assert played.informed
        ab = told.edges.tolist().index(edge(street, "a", "b"))
        assert played.ratios[0, ab] == pytest.approx(1.5), "what the count says, whatever the noise"
        assert played.loads[0, ab] == pytest.approx(2 * 100 / 50)
        assert told.measure == "mean trip, s"
        assert played.regret is None
        assert_allclose(played.quantiles, np.percentile(traffic.travel_time_s, np.arange(101)))
        assert np.nanmean(played.route_values) == pytest.approx(traffic.mean_travel_time_s)


def test_times_on_roads_are_those_of_every_vehicle() -> None:
    city = rs.load_city("cologne")
    simulator = rs.TrafficSimulator(city, rs.load_demand("cologne", 3_000), window_s=300, bin_s=300)
    traffic = simulator.run(rs.GreedyRouter(), seed=0)
    assert traffic.load_seconds.sum() == pytest.approx(traffic.total_travel_time_s), "all arrived, and nothing is lost"
    told = record(traffic)
    (played,) = told.learners
    entries = played.loads * simulator.bin_s / simulator.window_s
    seconds = (entries * played.ratios * city.free_flow_s[told.edges]).sum()
    assert seconds == pytest.approx(traffic.total_travel_time_s)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: [], "at least one run"),
        (lambda _: {"nobody": []}, "at least one run"),
        (lambda run: [run, rs.run(roads(), rs.RandomPath(), 21)], r"same rounds, got \[20, 21\]"),
        (lambda run: [run, rs.run(arms(), rs.UCB1(), 20)], "same roads"),
        (lambda run: [run, "a run"], "got 'a run'"),
        (lambda _: None, "got None"),
        (lambda _: Path("runs"), "read_record"),
        (lambda run: {"a": run, "b": 3}, "got 3"),
        (lambda run: {1: run, "1": run}, "labels of results are texts, got 1"),
        (lambda run: [run, rs.run(roads(), rs.ShortestPath(), 20)], "same seed, so they are no replications"),
        (lambda run: [run, rs.run(roads(2), rs.RandomPath(), 20)], "same window"),
        (lambda run: [run, lorry()], "not from both together"),
        (lambda run: {"a": run, "b": replace(run, expected_rewards=-run.expected_rewards)}, "a map each"),
        (lambda run: replace(run, edge_uses=None), "make it with rs.run"),
        (lambda run: replace(run, edge_uses=StepUses.join([])), "make it with rs.run"),
        (lambda run: replace(run, network=None), "no roads to be drawn on"),
        (lambda run: replace(run, network=grid(2), paths=((0, 99),)), "not among the"),
        (lambda _: {"a": lorry(), "b": lorry(bin_s=60)}, "same window_s, bin_s"),
        (lambda _: [lorry(), lorry()], "same seed"),
    ],
)
def test_what_cannot_be_drawn_is_named(make: object, message: str) -> None:
    run = rs.run(roads(), rs.ShortestPath(), 20)
    with pytest.raises(InputError, match=message):
        record(make(run))  # type: ignore[operator]  # a function of the run


def lorry(bin_s: float = 50) -> rs.Traffic:
    """One vehicle on the roads of `roads`."""
    network = roads().actions.network
    assert network is not None
    demand = rs.Demand.from_trips({"origin": ["home"], "destination": ["work"], "departure_s": [0.0]})
    return rs.TrafficSimulator(network, demand, bin_s=bin_s).run(rs.FreeFlowRouter())


def test_steps_of_traffic_begin_with_it_and_are_few() -> None:
    city, nine = rs.load_city("cologne"), 9 * 3600
    demand = rs.load_demand("cologne", 2_000, start_s=nine, end_s=nine + 3600)
    simulator = rs.TrafficSimulator(city, demand, window_s=300, bin_s=10)
    traffic = simulator.run(rs.FreeFlowRouter(), seed=0)
    told = record(traffic)
    (played,) = told.learners
    assert told.start == nine
    assert told.step_ends[0] > nine
    assert len(told.step_ends) <= 96
    spans = np.diff(told.step_ends, prepend=told.start)
    assert len(set(spans)) == 1, "bins are put together, as many for each step"
    entries = played.loads * spans[:, np.newaxis] / simulator.window_s
    assert entries.sum() == pytest.approx(traffic.n_events)
    by_step = np.bincount(((traffic.loads[:, 0] * 10 - nine) // spans[0]).astype(int), traffic.loads[:, 2])
    assert_allclose(entries.sum(axis=1), by_step)


def test_who_never_departed_was_recommended_nothing() -> None:
    city = rs.load_city("cologne")
    simulator = rs.TrafficSimulator(city, rs.load_demand("cologne", 2_000), window_s=300)
    told = record(simulator.run(rs.FreeFlowRouter(), seed=0, until_s=1000.0))
    whole = record(simulator.run(rs.FreeFlowRouter(), seed=0))
    assert told.step_ends.tolist() == [300.0, 600.0, 900.0, 1000.0]
    (cut,), (full,) = told.learners, whole.learners
    place = {route: number for number, route in enumerate(whole.routes)}
    for number, route in enumerate(told.routes):
        if route in place:
            assert_allclose(cut.shares[:3, number], full.shares[:3, place[route]])
    in_all = [record.learners[0].shares.sum(axis=1).max() for record in (told, whole)]
    assert max(in_all) <= 1 + 1e-9
    # The last step is a third as long: its load is what the window would hold at that pace.
    assert cut.loads[3].sum() == pytest.approx(full.loads[3].sum(), rel=0.5)


def test_overall_shares_weigh_every_departure_alike() -> None:
    street = town([("a", "b", 10), ("a", "c", 5), ("c", "b", 6)])
    trips = {"origin": ["a"] * 4, "destination": ["b"] * 4, "departure_s": [0.0, 1.0, 2.0, 500.0]}
    paths = [(edge(street, "a", "b"),)] * 3 + [(edge(street, "a", "c"), edge(street, "c", "b"))]
    traffic = rs.TrafficSimulator(street, rs.Demand.from_trips(trips), window_s=100).run(paths)
    told = record(traffic)
    assert told.learners[0].overall is not None
    assert dict(zip(told.routes, told.learners[0].overall, strict=True)) == {paths[0]: 0.75, paths[3]: 0.25}


@pytest.mark.parametrize("rounds", [960, 1_000])
def test_an_exact_optimum_is_called_the_best_possible(rounds: int) -> None:
    told = record(rs.run(on_roads(known=True), rs.CARCB(), rounds, seed=0))
    assert list(told.references) == ["best possible"]
    assert told.measure == "mean cost, s"


def on_roads(*, known: bool) -> rs.ContextualEnvironment:
    """Two ways whose costs depend on features."""
    ways = roads().actions
    sampler = rs.UniformContexts(ways.n_edges, 2)
    source = rs.DrawnContexts(sampler, seed=2) if known else sampler
    theta = np.array([-40.0, -30.0])
    return rs.ContextualEnvironment(ways, theta, source, rs.congestion.Linear(0.5), 2, 5.0, known=known)


def test_a_thinned_run_has_nearly_the_same_regret() -> None:
    full, thin = (rs.run(on_roads(known=True), rs.Oracle(), 1_000, seed=0, keep=keep) for keep in (None, 30))
    regret = record(thin).learners[0].regret
    assert regret is not None
    assert_allclose(regret.mean, 0.0, atol=1e-9)
    few = rs.run(roads(), rs.ShortestPath(), 960, keep=4).thinned(4)
    lost = record(few).learners[0].regret
    assert lost is not None
    # 15 s a round from the second on; a row of 240 rounds is known by its end alone.
    assert_allclose(lost.mean, [(15 * 240 - 20) / 240] * 12 + [15 - 20 / end for end in range(260, 961, 20)], rtol=1e-9)
    assert_allclose(record(full).learners[0].regret.mean, 0.0, atol=1e-9)  # type: ignore[union-attr]  # it has one


def test_of_many_arms_the_most_played_are_shown() -> None:
    base = np.linspace(0.01, 0.9, 60)
    many = rs.RoundEnvironment.from_congestion(rs.ActionSet.arms(60), base, rs.congestion.Constant(), 1, 0.0)
    told = record(rs.run(many, rs.UCB1(), 4_000, seed=0))
    assert len(told.routes) == 40
    assert (59,) in told.routes
    assert list(told.routes) == sorted(told.routes)


def test_a_run_comes_back_from_its_folder_with_its_map(tmp_path: Path) -> None:
    run = rs.run(roads(), rs.RandomPath(), 300, seed=0)
    for keep in (10, 1000):
        run.save(tmp_path / "run", keep=keep)
        back = rs.Run.load(tmp_path / "run")
        assert back.network is not None
        assert back.network.equals(run.network)  # type: ignore[arg-type]  # it has one
        one, other = record(run), record(back)
        for mine, theirs in zip(one.learners, other.learners, strict=True):
            for name in ("loads", "ratios", "shares", "route_values", "curve"):
                assert_array_equal(getattr(mine, name), getattr(theirs, name))
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    for damage in ({"paths": summary["paths"][:1]}, {"window": -5}, {"quantiles": [1.0]}):
        (tmp_path / "run" / "summary.json").write_text(json.dumps(summary | damage))
        with pytest.raises(ResultsError, match="holds no run that can be read"):
            rs.Run.load(tmp_path / "run")
    (tmp_path / "run" / "summary.json").write_text(json.dumps(summary))
    (tmp_path / "run" / "uses.parquet").unlink()
    assert not can_be_drawn(rs.Run.load(tmp_path / "run"))


@pytest.mark.parametrize("change", [{"steps": np.array([99])}, {"edges": np.array([77])}, {"uses": np.array([0])}])
def test_damaged_uses_are_an_error_of_ours(tmp_path: Path, change: dict[str, np.ndarray]) -> None:
    run = rs.run(roads(), rs.RandomPath(), 30, seed=0)
    one = StepUses(np.array([0]), np.array([0]), np.array([1]), np.array([1.0]))
    replace(run, edge_uses=one._replace(**change)).save(tmp_path / "run")
    with pytest.raises(ResultsError, match="uses of edges"):
        rs.Run.load(tmp_path / "run")


def test_a_record_of_runs_survives_the_disk(tmp_path: Path) -> None:
    told = record({"one": rs.run(roads(), rs.RandomPath(), 60, seed=0)})
    told.write(tmp_path)
    back = Record.read(tmp_path)
    assert back.learners[0].regret is not None
    for mine, theirs in zip(told.learners[0].regret or (), back.learners[0].regret, strict=True):
        assert_allclose(mine, theirs)
    assert_allclose(back.learners[0].ratios, told.learners[0].ratios)
    assert_allclose(back.learners[0].quantiles, told.learners[0].quantiles)
    with pytest.raises(InputError, match="percentiles 0 to 100"):
        replace(told, learners=(replace(told.learners[0], quantiles=np.zeros(3)),))
