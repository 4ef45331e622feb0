"""SUMO as an engine: by hand on straight roads, beside SUMO itself with fixed routes, and in closed loop."""

import subprocess
import tempfile
import zlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest
from sumo_nets import needs_libsumo

import routesim as rs
from routesim.errors import InputError, NetworkError, RouteError, SimulatorError
from routesim.roads.importers.sumo_export import find_netconvert
from routesim.traffic.engines import sumo_process
from routesim.traffic.engines.sumo_process import net_of
from routesim.traffic.protocol import Departures, Driven, Routes
from routesim.traffic.simulator import Simulation

pytestmark = needs_libsumo
MODES = pytest.mark.parametrize("mode", ["meso", "micro"])


def roads(edges: list[tuple[int, int, float]], places: list[tuple[float, float]]) -> rs.RoadNetwork:
    """Roads of one lane on which cars drive 12.5 m/s, in metres."""
    graph = nx.MultiDiGraph(crs="EPSG:32632")
    for node, (x, y) in enumerate(places):
        graph.add_node(node, x=x, y=y)
    for tail, head, length in edges:
        graph.add_edge(tail, head, length_m=length, free_flow_s=length / 12.5, lanes=1, capacity_vph=1000.0)
    return rs.RoadNetwork.from_networkx(graph)


@pytest.fixture(scope="module")
def fork() -> rs.RoadNetwork:
    """From 0 to 3 either straight on (edges 0, 1, 3: 1,500 m) or by a bend (edges 0, 2, 4: 1,780 m)."""
    places = [(0.0, 0.0), (500.0, 0.0), (1000.0, 0.0), (1500.0, 0.0), (1000.0, 400.0)]
    return roads([(0, 1, 500), (1, 2, 500), (1, 4, 640), (2, 3, 500), (4, 3, 640)], places)


SCENARIO = """
kind = "traffic"
title = "A short judgement"
rounds = 60
replications = 1
seed = 0

[traffic]
name = "cologne"
physics = { name = "sumo", mode = "micro" }

[traffic.demand]
end_s = 60

[[learners]]
name = "PlannedRouter"
"""
STRAIGHT, BEND = (0, 1, 3), (0, 2, 4)


def trips(times: list[float]) -> rs.Demand:
    return rs.Demand.from_trips({"origin": [0] * len(times), "destination": [3] * len(times), "departure_s": times})


def town() -> tuple[rs.RoadNetwork, rs.Demand]:
    """Cologne with signals, for ten minutes."""
    return rs.load_city("cologne"), rs.load_demand("cologne", 600, end_s=600.0)


class Watcher(rs.FreeFlowRouter):
    """Free flow, with all that was driven kept."""

    feedback = "all"

    def start(self, task: Any, rng: np.random.Generator) -> None:
        super().start(task, rng)
        self.parts: list[Driven] = []

    def learn(self, driven: Driven) -> None:
        self.parts.append(driven)


@MODES
def test_a_car_on_a_straight_road_takes_what_its_length_and_speed_say(fork: rs.RoadNetwork, mode: Any) -> None:
    simulator = rs.SumoSimulator(fork, trips([0.0, 30.0]), mode, speed_deviation=0.0)
    traffic = simulator.run(rs.FreeFlowRouter())
    # 1,500 m at 12.5 m/s are 120 s; SUMO counts whole seconds, and its micro drivers dawdle.
    assert traffic.travel_time_s == pytest.approx([120, 120], abs=1 if mode == "meso" else 8)
    assert traffic.path(0).tolist() == list(STRAIGHT)
    assert traffic.n_events == 6
    assert traffic.forced_moves == 0
    assert traffic.physics == f"SUMO {mode}"


def test_waiting_to_be_inserted_is_part_of_a_trip(fork: rs.RoadNetwork) -> None:
    simulator = rs.SumoSimulator(fork, trips([0.0] * 60), bin_s=30.0, speed_deviation=0.0)
    traffic = simulator.run(rs.FreeFlowRouter())
    # SUMO's meso lets a vehicle onto a lane every 1.13 s and the time in which one moves on by its length of 7.5 m.
    least = 120 + 59 * 1.13
    assert least <= traffic.travel_time_s.max() <= 120 + 60 * (1.13 + 7.5 / 12.5 + 1)
    assert np.diff(np.sort(traffic.arrival_s)).min() >= 1
    assert traffic.standing is not None
    outside = {int(row[0]): int(row[4]) for row in traffic.standing if row[1] == 0}
    inserted = int(traffic.edge_counts[0, 0])
    assert outside[0] == 60 - inserted > 0


@MODES
def test_sumo_itself_says_the_same_with_the_routes_fixed(mode: Any, tmp_path: Path) -> None:
    network, demand = town()
    simulator = rs.SumoSimulator(network, demand, mode)
    drive = Simulation(simulator, rs.CARMABRouter(interval_s=60.0), 5, None)
    options = rs.physics.Sumo(mode).options(drive.setting.noise_seed)
    traffic = drive.run()
    vehicles = "".join(
        f'<vehicle id="{i}" type="car" depart="{time:.3f}" departLane="best" departSpeed="max">'
        f'<route edges="{" ".join(map(str, traffic.path(i).tolist()))}"/></vehicle>'
        for i, time in enumerate(traffic.departure_s.tolist())
    )
    (tmp_path / "trips.xml").write_text(f'<routes><vType id="car"/>{vehicles}</routes>')
    (tmp_path / "net.xml").write_bytes(zlib.decompress(net_of(network).text))
    program, environment = find_netconvert()
    command = [str(Path(program).with_name("sumo")), "-n", "net.xml", "-r", "trips.xml", "--tripinfo-output", "out.xml"]
    subprocess.run([*command, *options], cwd=tmp_path, env=environment, check=True, capture_output=True)
    told = ElementTree.parse(tmp_path / "out.xml").getroot()  # noqa: S314 - SUMO wrote it just now
    arrival = {int(trip.attrib["id"]): float(trip.attrib["arrival"]) for trip in told}
    assert len(arrival) == traffic.n_vehicles > 500
    assert traffic.arrival_s.tolist() == [arrival[i] for i in range(traffic.n_vehicles)]


def test_what_was_driven_adds_up_to_trips_loads_and_queues() -> None:
    network, demand = town()
    watcher = Watcher()
    traffic = rs.SumoSimulator(network, demand, bin_s=50.0).run(watcher, seed=2)
    vehicles, edges, counts, entered, took = (
        np.concatenate([getattr(part, name) for part in watcher.parts])
        for name in ("vehicles", "edges", "counts", "entered_s", "travel_time_s")
    )
    assert len(vehicles) == traffic.n_events == traffic.path_lengths.sum()
    assert (took > 0).all()
    # The passages of a vehicle follow each other without a gap, from its insertion to its arrival.
    first = np.full(traffic.n_vehicles, np.inf)
    np.minimum.at(first, vehicles, entered)
    assert np.bincount(vehicles, took) == pytest.approx(traffic.arrival_s - first)
    assert (first >= traffic.departure_s).all()
    # Seconds by time bin and edge, and who is on the roads at the end of each bin, counted slowly.
    assert traffic.load_seconds.sum() == pytest.approx(took.sum())
    leaves, ends = entered + took, 50.0 * np.arange(1, traffic.loads[:, 0].max() + 1)
    spent = np.zeros((len(ends) + 1, network.n_edges))
    for k in range(len(ends) + 1):
        inside = np.minimum(leaves, 50.0 * (k + 1)) - np.maximum(entered, 50.0 * k)
        np.add.at(spent[k], edges, np.maximum(inside, 0.0))
    said = np.zeros_like(spent)
    said[traffic.loads[:, 0], traffic.loads[:, 1]] = traffic.load_seconds
    assert said == pytest.approx(spent, abs=1e-6)
    assert traffic.standing is not None
    on = np.zeros((len(ends), network.n_edges), dtype=int)
    known = traffic.standing[traffic.standing[:, 0] < len(ends)]
    on[known[:, 0], known[:, 1]] = known[:, 2]
    slow = np.array([np.bincount(edges[(entered < end) & (leaves >= end)], minlength=network.n_edges) for end in ends])
    assert on.tolist() == slow.tolist()
    assert (known[:, 3] <= known[:, 2]).all()
    assert known[:, 3].sum() > 0  # some halt at signals
    assert counts.max() > 3


@MODES
def test_the_same_seed_gives_the_same_numbers_and_another_one_others(mode: Any) -> None:
    network, demand = town()
    simulator = rs.SumoSimulator(network, demand, mode, reroute_share=0.5)
    one, again = (simulator.run(rs.GreedyRouter(), seed=3) for _ in range(2))
    assert one.arrival_s.tolist() == again.arrival_s.tolist()
    assert one.path_edges.tolist() == again.path_edges.tolist()
    assert one.arrived.all()
    routes = [one.path(i).tolist() for i in range(one.n_vehicles)]
    assert {path[-1] for path in routes} <= set(range(network.n_edges))
    times = rs.Demand.from_trips(one.trips[["origin", "destination", "departure_s"]])
    fixed = rs.SumoSimulator(network, times, mode)
    arrivals = [fixed.run(rs.FreeFlowRouter(), seed=seed).arrival_s.tolist() for seed in (1, 2)]
    assert arrivals[0] != arrivals[1]  # the trips are the same: the chance is SUMO's


@MODES
def test_those_on_the_way_are_turned_before_a_closed_road(fork: rs.RoadNetwork, mode: Any) -> None:
    closed = rs.Incident([1], start_s=20.0, end_s=100.0)
    simulator = rs.SumoSimulator(fork, trips([0.0, 10.0, 50.0, 110.0]), mode, incidents=[closed])
    traffic = simulator.run([STRAIGHT] * 4)
    paths = [tuple(traffic.path(i).tolist()) for i in range(4)]
    assert paths == [BEND, BEND, BEND, STRAIGHT]
    assert traffic.arrived.all()
    assert traffic.forced_moves == 0


def test_where_there_is_no_other_way_they_wait_until_the_road_opens(fork: rs.RoadNetwork) -> None:
    closed = rs.Incident([0], start_s=0.0, end_s=200.0)
    traffic = rs.SumoSimulator(fork, trips([10.0]), incidents=[closed]).run(rs.FreeFlowRouter())
    assert 200 + 120 <= traffic.arrival_s[0] <= 200 + 140


def test_lost_capacity_holds_the_others_back(fork: rs.RoadNetwork) -> None:
    demand = trips(list(np.arange(0.0, 300.0, 3.0)))
    whole = rs.SumoSimulator(fork, demand).run(rs.FreeFlowRouter())
    narrow = rs.SumoSimulator(fork, demand, incidents=[rs.Incident([1], 0.0, capacity=0.25)]).run(rs.FreeFlowRouter())
    # An edge passes about 2,100 vehicles an hour, a quarter of which is less than the 1,200 that come.
    leaves = np.diff(np.sort(whole.arrival_s)).mean(), np.diff(np.sort(narrow.arrival_s)).mean()
    assert leaves[0] == pytest.approx(3.0, rel=0.05)
    assert 5.0 <= leaves[1] <= 9.0


def test_greedy_vehicles_see_the_queue_and_take_the_bend(fork: rs.RoadNetwork) -> None:
    demand = trips(list(np.arange(0.0, 600.0, 3.0)))
    narrow = [rs.Incident([1], 0.0, capacity=0.25)]
    blind, seeing = (
        rs.SumoSimulator(fork, demand, incidents=narrow).run(router)
        for router in (rs.FreeFlowRouter(), rs.GreedyRouter())
    )
    bends = sum(tuple(seeing.path(i).tolist()) == BEND for i in range(seeing.n_vehicles))
    assert 0.2 <= bends / seeing.n_vehicles <= 0.95
    assert seeing.mean_travel_time_s < 0.7 * blind.mean_travel_time_s


def test_a_learner_finds_the_road_that_is_not_jammed(fork: rs.RoadNetwork) -> None:
    demand = trips(list(np.arange(0.0, 1800.0, 3.0)))
    narrow = [rs.Incident([1], 0.0, capacity=0.25)]
    blind, learnt = (
        rs.SumoSimulator(fork, demand, incidents=narrow).run(router)
        for router in (rs.FreeFlowRouter(), rs.CARMABRouter(interval_s=60.0))
    )
    late = learnt.departure_s >= 900
    bends = np.array([tuple(learnt.path(i).tolist()) == BEND for i in range(learnt.n_vehicles)])
    assert bends[late].mean() > 0.3
    assert learnt.travel_time_s[late].mean() < 0.7 * blind.travel_time_s[late].mean()


class Killer(rs.FreeFlowRouter):
    """Ends SUMO's process in the middle of the run."""

    interval_s = 60.0
    simulation: Simulation

    def route(self, departures: Departures) -> Routes:
        if departures.now_s > 100:
            process: Any = self.simulation.engine
            process._process.process.kill()
        return super().route(departures)


def folders() -> set[str]:
    return {file.name for file in Path(tempfile.gettempdir()).glob("routesim-sumo-*")}


def test_a_killed_process_is_a_clear_error_and_leaves_no_files(
    fork: rs.RoadNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    router = Killer()
    router.simulation = Simulation(rs.SumoSimulator(fork, trips([0.0, 90.0, 180.0, 270.0])), router, 0, None)
    with pytest.raises(SimulatorError, match=r"the process of SUMO ended in the middle of a run \(signal 9, SIGKILL\)"):
        router.simulation.run()
    assert folders() == set()
    # A run that is stopped on its way leaves nothing either, once nobody has it any more.
    stopped = rs.SumoSimulator(fork, trips([0.0])).run(rs.FreeFlowRouter(), until_s=50.0)
    assert stopped.summary()["driving"] == 1
    assert folders() == set()


def test_without_the_extra_there_is_one_line_with_the_command(
    fork: rs.RoadNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sumo_process, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"pip install 'routesim\[sumo\]'"):
        rs.SumoSimulator(fork, trips([0.0]))


def test_roads_and_settings_that_sumo_cannot_have_are_refused(fork: rs.RoadNetwork) -> None:
    graph = nx.DiGraph()
    graph.add_edge(0, 3, free_flow_s=60.0)
    with pytest.raises(NetworkError, match="SUMO needs the place of every node, and node 0 has no coordinates"):
        rs.SumoSimulator(rs.RoadNetwork.from_networkx(graph), trips([0.0]))
    with pytest.raises(InputError, match=r'mode is "meso" or "micro", got \'macro\''):
        rs.SumoSimulator(fork, trips([0.0]), "macro")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"SUMO has chance of its own, and takes no noise, got 0\.1"):
        rs.TrafficSimulator(fork, trips([0.0]), physics="sumo", noise=0.1).run(rs.FreeFlowRouter())
    with pytest.raises(InputError, match="departs at 1e"):
        rs.SumoSimulator(fork, trips([2e6])).run(rs.FreeFlowRouter())
    back = roads([(0, 1, 500), (1, 0, 500), (1, 3, 500), (3, 1, 500)], [(0, 0), (500, 0), (900, 9), (1000, 0)][:4])
    with pytest.raises(RouteError, match="a turn that SUMO's net does not have"):
        rs.SumoSimulator(back, trips([0.0])).run([(0, 1, 0, 2)])


def test_a_question_at_every_departure_is_asked_in_time(fork: rs.RoadNetwork) -> None:
    class Asked(rs.FreeFlowRouter):
        interval_s = 0.0

        def __init__(self) -> None:
            self.seen: list[float] = []

        def route(self, departures: Departures) -> Routes:
            self.seen.append(departures.now_s)
            return super().route(departures)

    times = [0.5, 0.7, 3.0, 400.25]
    traffic = rs.SumoSimulator(fork, trips(times), speed_deviation=0.0).run(asked := Asked())
    assert asked.seen == times
    assert traffic.arrival_s[0] == pytest.approx(1 + 120, abs=1)  # SUMO inserts in whole seconds
    assert traffic.arrival_s[3] == pytest.approx(401 + 120, abs=1)


def test_a_scenario_names_sumo_and_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "judged.toml"
    file.write_text(SCENARIO)
    from routesim.runner.units import units
    from routesim.scenario.files import load_scenario

    (unit,) = units(load_scenario(file))
    assert unit.run().summary["physics"] == "SUMO micro"
