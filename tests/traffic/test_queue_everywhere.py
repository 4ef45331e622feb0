"""Roads that queue behind every door: routers, learners, rerouting, Gymnasium, scenarios and the command line."""

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import networkx as nx
import numpy as np
import pytest
from command_line import routesim
from gymnasium.utils.env_checker import check_env
from queue_town import Witness, drive, roads
from town import edge

import routesim as rs
from routesim import registry
from routesim.errors import InputError, ScenarioError
from routesim.learners.base import Traits
from routesim.runner.reports import report
from routesim.runner.units import units
from routesim.scenario.choices import RouterChoice
from routesim.scenario.files import parse_scenario, scenario_schema, to_toml

QUEUES = ["queue", "plain-queue"]
PLAYERS = [
    rs.FreeFlowRouter(),
    rs.GreedyRouter(),
    rs.LogitRouter(k=3),
    rs.PlannedRouter(),
    rs.PlannedRouter(objective="user"),
    rs.CompliantRouter(rs.PlannedRouter(), rs.GreedyRouter(), share=0.5),
    rs.CompliantRouter(rs.CARMABRouter(interval_s=60.0), rs.LogitRouter(k=3), share=0.5),
    rs.CompliantRouter(rs.PlannedRouter(), rs.FreeFlowRouter(), share=0.25),
    rs.CARMABRouter(interval_s=60.0),
    *(kind() for kind in registry.learners().values() if not Traits.of(kind).needs_contexts and kind is not rs.Oracle),
]


def city(lanes: float = 1) -> rs.RoadNetwork:
    """Four by four junctions, 150 m apart, with roads both ways."""
    graph = nx.grid_2d_graph(4, 4, create_using=nx.DiGraph)
    for k, (_, _, attributes) in enumerate(graph.edges(data=True)):
        attributes |= {"length_m": 150.0, "free_flow_s": 12.0 + 0.01 * k, "capacity_vph": 700.0, "lanes": lanes}
    for i, j in graph:
        graph.nodes[i, j].update(x=0.002 * i, y=0.002 * j)
    return rs.RoadNetwork.from_networkx(graph)


def rush_hour(vehicles: float = 1500.0) -> rs.Demand:
    ends = {"origin": [(0, 0), (0, 3), (3, 1)], "destination": [(3, 3), (3, 0), (0, 2)]}
    return rs.Demand.from_od({**ends, "vehicles": [vehicles / 3] * 3}, 0.0, 1200.0)


def test_every_kind_of_learner_and_router_is_among_the_players() -> None:
    needs_more = {"CARCBRouter", "PairLearnersRouter", "FixedRouter"}  # travellers; a learner; paths
    assert {type(one).__name__ for one in PLAYERS} >= set(registry.routers()) - needs_more


@pytest.mark.parametrize("physics", QUEUES)
@pytest.mark.parametrize("player", PLAYERS, ids=lambda player: type(player).__name__)
def test_every_router_and_learner_sends_everybody_home_and_repeats(player: Any, physics: str) -> None:
    simulator = rs.TrafficSimulator(city(), rush_hour(), physics=physics, noise=0.1, bin_s=60.0)
    traffic, again = simulator.run(player, seed=2), simulator.run(player, seed=2)
    assert traffic.arrived.all()
    assert traffic.physics == simulator.physics.label == traffic.summary()["physics"]
    assert traffic.arrival_s.tobytes() == again.arrival_s.tobytes()
    assert traffic.n_events == traffic.edges_entered.sum() == traffic.path_lengths.sum()
    stopped = simulator.run(player, seed=2, until_s=600.0)
    early = traffic.arrival_s < 600.0
    assert np.array_equal(stopped.arrival_s[early], traffic.arrival_s[early])
    assert np.isnan(stopped.arrival_s[~early]).all()


@pytest.mark.parametrize("physics", QUEUES)
@pytest.mark.parametrize("player", [rs.CARCBRouter(), rs.GreedyRouter(), rs.UCB1()])
def test_travellers_have_costs_of_their_own_in_queues(player: Any, physics: str) -> None:
    network = city()
    terms = {"time": 1.0, "time*hurried": 0.5}
    features = rs.RoadFeatures(network, range(network.n_edges), list(terms))
    costs = rs.TripCosts(rs.Travellers({"hurried": 1, "calm": 1}), features, features.theta(terms))
    traffic = rs.TrafficSimulator(network, rush_hour(300.0), physics=physics, trip_costs=costs).run(player)
    assert traffic.arrived.all()
    assert traffic.trip_cost is not None
    # A second costs the hurried half as much again, in queues, outside and on the open road.
    hurried = costs.kinds[traffic.trip_kinds, 0] == 1
    assert traffic.trip_cost == pytest.approx(traffic.travel_time_s * np.where(hurried, 1.5, 1.0))


@pytest.mark.parametrize("physics", QUEUES)
def test_lessons_are_the_passages_by_the_vehicles_met_on_the_road(physics: str) -> None:
    class Pupil(rs.FreeFlowRouter):
        feedback = "lessons"

        def start(self, task: Any, rng: np.random.Generator) -> None:
            super().start(task, rng)
            self.lessons = task.lessons

    simulator = rs.TrafficSimulator(city(), rush_hour(), physics=physics)
    pupil, witness = Pupil(), Witness()
    simulator.run(pupil, seed=1)
    traffic = simulator.run(witness, seed=1)
    assert len(witness.column("edges")) == traffic.n_events
    assert pupil.lessons.visits.sum() == simulator.run(rs.FreeFlowRouter(), seed=1).n_events
    # The count is that of the vehicles ahead on the road: with the entries and exits replayed, it is the same.
    edges, entered, left = witness.column("edges"), witness.column("entered_s"), witness.left_s
    for k in range(simulator.network.n_edges):
        came, went = entered[edges == k], left[edges == k]
        for time, count in zip(came.tolist(), witness.column("counts")[edges == k].tolist(), strict=True):
            # Who leaves at the very moment may or may not have gone.
            least, most = (int(((came < time) & (went > time + more)).sum()) for more in (1e-9, -1e-9))
            assert least <= count <= most


def test_greedy_vehicles_avoid_the_queue_and_a_road_that_nobody_used_looks_empty() -> None:
    # A short way over two roads, the second of which passes 360 an hour, and a long one of its own.
    network = roads([("s", "m", 300.0, 20.0, 1800.0), ("m", "t", 300.0, 20.0, 360.0), ("s", "t", 1500.0, 90.0, 1800.0)])
    demand = rs.Demand.from_trips(
        {"origin": ["s"] * 300, "destination": ["t"] * 300, "departure_s": (5000 + 4.0 * np.arange(300)).tolist()}
    )
    simulator = rs.TrafficSimulator(network, demand, physics="plain-queue")
    greedy, free = simulator.run(rs.GreedyRouter()), simulator.run(rs.FreeFlowRouter())
    short = edge(network, "s", "m")
    ways = np.array([greedy.path(v)[0] for v in range(300)])
    assert (ways[:8] == short).all()  # nobody has driven anywhere for 5,000 s, and that is no reason to go round
    # 900 an hour come and the short way passes 360: the others go round once the queue costs them 50 s.
    assert np.mean(ways[150:] == short) == pytest.approx(0.4, abs=0.05)
    assert greedy.mean_travel_time_s < 110
    assert free.mean_travel_time_s == pytest.approx(40 + 6 * 149.5)


@pytest.mark.parametrize("physics", QUEUES)
def test_who_looks_again_on_the_way_goes_round_the_queue(physics: str) -> None:
    # All are sent over the bottleneck; at the fork before it there is another way.
    network = roads(
        [
            ("s", "f", 300.0, 20.0, 1800.0),
            ("f", "t", 300.0, 20.0, 300.0),
            ("f", "g", 300.0, 30.0, 1800.0),
            ("g", "t", 300.0, 30.0, 1800.0),
        ]
    )
    first, direct = edge(network, "s", "f"), edge(network, "f", "t")
    paths, times = [[first, direct]] * 200, 5.0 * np.arange(200)
    stubborn, _ = drive(network, paths, times, physics)
    looking, witness = drive(network, paths, times, physics, reroute_share=1.0, reroute_s=10.0)
    assert stubborn.mean_travel_time_s > 500
    assert looking.arrived.all()
    assert looking.mean_travel_time_s < 130
    assert {looking.path_lengths[v] for v in range(200)} == {2, 3}
    assert (np.bincount(witness.column("vehicles")) == looking.path_lengths).all()
    for v in range(200):  # what was driven is what the path says
        mine = witness.column("vehicles") == v
        assert witness.column("edges")[mine].tolist() == looking.path(v).tolist()


@pytest.mark.parametrize("physics", QUEUES)
@pytest.mark.parametrize("until_s", [None, 900.0])
def test_gymnasium_drives_through_queues(physics: str, until_s: float | None) -> None:
    def env() -> rs.TrafficEnv:
        return rs.TrafficEnv(
            rs.TrafficSimulator(city(), rush_hour(300.0), physics=physics, noise=0.1), k=3, until_s=until_s
        )

    check_env(env())
    played = []
    for _ in range(2):
        mine = env()
        seen, _ = mine.reset(seed=3)
        rewards, over = [], False
        while not over:
            assert seen in mine.observation_space
            seen, reward, terminated, truncated, _ = mine.step(np.int64(len(rewards) % 2))
            rewards.append(reward)
            over = terminated or truncated
        played.append(rewards)
    assert played[0] == played[1]
    assert sum(played[0]) < 0


def test_options_of_another_physics_are_refused() -> None:
    network, demand = city(), rush_hour(30.0)
    with pytest.raises(InputError, match="the physics 'queue' has no option congestion; leave it out"):
        rs.TrafficSimulator(network, demand, 300, rs.congestion.Linear(0.5), physics="queue")
    with pytest.raises(InputError, match="the physics 'plain-queue' has no option overtaking; leave it out"):
        rs.TrafficSimulator(network, demand, physics="plain-queue", overtaking=True)
    with pytest.raises(InputError, match="physics is one of 'window', 'queue', 'plain-queue', 'sumo', 'sumo-micro' or"):
        rs.TrafficSimulator(network, demand, physics="queues")


SCENARIO = """
kind = "traffic"
title = "A narrow bridge"
replications = 2
seed = 1
[traffic]
{options}
file = "roads.graphml"
[traffic.demand]
pairs = [{{ origin = "a", destination = "c", vehicles = 1200.0 }}]
[[learners]]
name = "FreeFlowRouter"
[[learners]]
name = "GreedyRouter"
[[learners]]
name = "CARMABRouter"
"""


def scenario(folder: Path, options: str) -> None:
    """Write a scenario and its roads: a bridge that passes 600 an hour, and a way round it."""
    rows = [("a", "b", 300.0, 20.0, 1800.0), ("b", "c", 300.0, 20.0, 600.0), ("a", "c", 1500.0, 90.0, 1800.0)]
    roads(rows).to_graphml(folder / "roads.graphml")
    (folder / "bridge.toml").write_text(SCENARIO.format(options=options))


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ('physics = "queue"', "queue (lanes and signals)"),
        ('physics = "plain-queue"', "queue (plain: no lanes, no signals)"),
        ('physics = { name = "queue", stuck_s = 300.0, signals = false }', "queue (lanes, no signals)"),
    ],
)
def test_a_scenario_with_queues_runs_from_the_command_line(options: str, label: str, tmp_path: Path) -> None:
    scenario(tmp_path, options)
    done = routesim("run", "bridge.toml", "--out", "bridge", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    files = {path.name for path in (tmp_path / "bridge").iterdir()}
    assert {"scenario.toml", "summary.json", "map.html"} <= files
    assert all(path.stat().st_size > 0 for path in (tmp_path / "bridge").rglob("*") if path.is_file())
    summary = json.loads((tmp_path / "bridge" / "summary.json").read_text())
    assert (summary["physics"], summary["notices"]) == (label, [])
    rows = summary["table"]
    assert "queues.parquet" in files
    assert rows[0]["most_in_queues"] > rows[1]["most_in_queues"]
    assert [(row["physics"], row["forced_moves"]) for row in rows] == [(label, 0)] * 3
    # Those who all take the bridge queue before it: 1,200 an hour come, 600 pass.
    assert rows[0]["mean_trip_s"] > 1000
    assert rows[1]["mean_trip_s"] < 150
    # The reference is the equilibrium of repeated days, and no static one.
    assert all(0 <= row["day_to_day_gap"] < 0.1 and row["day_to_day_equilibrium_s"] < 150 for row in rows)
    assert not any("user_equilibrium_s" in row for row in rows)


def test_a_scenario_with_an_option_of_another_physics_is_refused(tmp_path: Path) -> None:
    for options, message in [
        ('physics = "queue"\novertaking = false', "the physics 'queue' has no option overtaking"),
        ('physics = { name = "queue", congestion = "bpr" }', "congestion"),
        ('physics = "quantum"', "quantum"),
        ('physics = { name = "queue", wave_kph = -3.0 }', "wave_kph"),
    ]:
        scenario(tmp_path, options)
        done = routesim("run", "bridge.toml", cwd=tmp_path)
        assert done.returncode not in (0, None), options
        assert message in done.stderr, (options, done.stderr)
        assert "Traceback" not in done.stderr


LISTED = """
kind = "traffic"
title = "A bridge and a way round it"
replications = 2
seed = 1
[traffic]
physics = "{physics}"
edges = [
  {{ from = "a", to = "b", free_flow_s = 20.0, capacity_vph = 1800.0, length_m = 300.0, lanes = 2.5 }},
  {{ from = "b", to = "c", free_flow_s = 20.0, capacity_vph = 600.0, length_m = 300.0, lanes = 1 }},
  {{ from = "a", to = "c", free_flow_s = 90.0, capacity_vph = 1800.0, length_m = 1500.0 }},
]
[traffic.demand]
pairs = [{{ origin = "a", destination = "c", vehicles = 1200.0 }}]
[traffic.travellers]
classes = {{ hurried = 1.0, calm = 1.0 }}
costs = {{ time = 1.0, "time*hurried" = 0.5 }}
"""


def listed(physics: str, names: Iterable[str], more: str = "") -> str:
    """Write a scenario whose roads it lists itself, with these routers."""
    learners = (f'[[learners]]\nname = "{name}"\n' for name in names)
    return LISTED.format(physics=physics) + "".join(learners) + more


def test_edges_of_a_scenario_have_a_length_and_lanes() -> None:
    scenario = parse_scenario(listed("queue", ["FreeFlowRouter"]))
    network = scenario.traffic.network()  # type: ignore[union-attr]  # traffic
    assert network.length_m.tolist() == [300.0, 1500.0, 300.0]  # ordered by where roads begin
    assert network.lanes.tolist() == [2.5, 1.0, 1.0]
    assert network.imputed("lanes").tolist() == [False, True, False]
    assert parse_scenario(to_toml(scenario)) == scenario
    jsonschema.validate(tomllib.loads(listed("queue", ["FreeFlowRouter"])), scenario_schema())
    for key, value in (("length_m", -1.0), ("lanes", 0.0)):
        old = {"length_m": "length_m = 300.0", "lanes": "lanes = 2.5"}[key]
        with pytest.raises(ScenarioError, match=f"traffic.edges.0.{key}: Input should be greater than or equal to"):
            parse_scenario(listed("queue", ["FreeFlowRouter"]).replace(old, f"{key} = {value}", 1))


def test_what_a_listed_road_holds_follows_from_its_length_and_lanes() -> None:
    # The bridge passes 600 an hour of 1,200. On the road before it, 300 m with 2.5 lanes, 105 find room, less the 10
    # whose places are free while the wave that tells of them comes back (60 s at 18 km/h).
    for length, holds in ((300.0, 105 - 10), (150.0, 52 - 5)):
        text = listed("plain-queue", ["FreeFlowRouter"]).replace("length_m = 300.0", f"length_m = {length}", 1)
        simulator = parse_scenario(text).traffic.simulator(None)  # type: ignore[union-attr]  # traffic
        traffic = simulator.run(rs.FreeFlowRouter())
        assert traffic.standing is not None
        on_first = traffic.standing[traffic.standing[:, 1] == 0]
        assert on_first[:, 2].max() == holds
        assert on_first[:, 4].max() > 100  # the others wait outside


@pytest.mark.parametrize("physics", QUEUES)
def test_every_router_a_scenario_can_name_drives_through_queues(physics: str) -> None:
    every = list(RouterChoice.known)
    scenario = parse_scenario(listed(physics, every))
    parts = {unit: unit.run() for unit in units(scenario)}
    table = report(scenario, parts).table
    assert len(table) == len(every)
    by_name = dict(zip(every, table, strict=True))
    assert {row["forced_moves"] for row in table} == {0}
    # All over the bridge is what those who look at nothing do; those who are told, and those who learned, go round it.
    assert by_name["FreeFlowRouter"]["mean_trip_s"] > 800
    for name in ("GreedyRouter", "PlannedRouter", "CARMABRouter", "CARCBRouter"):
        assert by_name[name]["mean_trip_s"] < 160, name


def test_a_sweep_over_physics_and_demand_runs_from_the_command_line(tmp_path: Path) -> None:
    more = '[sweep]\n"traffic.physics" = ["window", "queue", "plain-queue"]\n"traffic.demand.growth" = [0.4, 1.0]\n'
    (tmp_path / "bridge.toml").write_text(listed("window", ["FreeFlowRouter", "CARMABRouter"], more))
    done = routesim("run", "bridge.toml", "--out", "bridge", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "bridge" / "summary.json").read_text())["table"]
    assert len(rows) == 3 * 2 * 2
    free = {
        (row["traffic.physics"], row["traffic.demand.growth"]): row["mean_trip_s"]
        for row in rows
        if row["learner"] == "FreeFlowRouter"
    }
    # Below the capacity of the bridge nobody queues for long; above it queues hold vehicles back, and entries do not.
    assert free["queue", 0.4] < 60
    assert free["window", 1.0] < 300 < 800 < free["queue", 1.0]
    assert free["plain-queue", 1.0] == pytest.approx(free["queue", 1.0], rel=0.02)
