"""Records of real runs, made small and quickly: a city in rounds, a city in traffic, a graph of one's own, arms."""

from collections.abc import Callable, Sequence
from functools import cache

import networkx as nx
import numpy as np
from shapely import LineString

import routesim as rs
from routesim.results.from_results import record
from routesim.results.record import Record

ENDS = {
    "helsinki": ((24.9367, 60.1642), (24.9522, 60.1784)),
    "monaco": ((7.4115, 43.7275), (7.4275, 43.7425)),
}
LEARNERS: dict[str, rs.Learner] = {
    "CARMAB-st": rs.CARMAB(confidence=1.0),
    "ShortestPath": rs.ShortestPath(),
    "UCB1": rs.UCB1(),
    "GreedyCongestion": rs.GreedyCongestion(),
}


def far_ends(network: rs.RoadNetwork) -> tuple[tuple[float, float], tuple[float, float]]:
    """Two places well apart: a quarter of the way in from the corners of where most nodes are."""
    (west, south), (east, north) = (
        np.percentile(np.column_stack((network.x, network.y)), part, axis=0) for part in (22, 78)
    )
    return (float(west), float(south)), (float(east), float(north))


def played(title: str, environment: rs.RoundEnvironment, rounds: int, labels: Sequence[str] = ()) -> Record:
    """Let some of the learners, or all, play twice each."""
    return record(
        {
            label: rs.replicate(environment, LEARNERS[label], rounds, seed=0, replications=2)
            for label in labels or LEARNERS
        },
        title,
    )


@cache
def city(name: str = "helsinki", k: int = 8, rounds: int = 4_800) -> Record:
    network = rs.load_city(name)
    origin, destination = ENDS.get(name) or far_ends(network)
    routes = rs.ActionSet.between(network, origin, destination, k=k, method="penalty")
    seconds = network.free_flow_s[routes.edges]
    environment = rs.RoundEnvironment.from_congestion(
        routes, -seconds, rs.congestion.Linear(0.5), window=4, noise_std=0.1 * seconds
    )
    return played(
        f"{name.title()}: {k} routes across the centre, every trip slows down those that follow", environment, rounds
    )


@cache
def traffic() -> Record:
    """Vehicles between many places of a city, in bins of time."""
    simulator = rs.TrafficSimulator(rs.load_city("helsinki"), rs.load_demand("helsinki", 3_000), window_s=300)
    routers = {"empty roads": rs.FreeFlowRouter(), "greedy": rs.GreedyRouter()}
    runs = {label: simulator.run(router, seed=0) for label, router in routers.items()}
    return record(runs, "Helsinki: traffic between many places")


@cache
def own_graph() -> Record:
    """A diamond with a bridge, without coordinates."""
    graph = nx.DiGraph()
    roads = [("home", "bridge", 60), ("bridge", "work", 90), ("home", "ferry", 80), ("ferry", "work", 80)]
    for tail, head, time in [*roads, ("bridge", "ferry", 10), ("ferry", "bridge", 10)]:
        graph.add_edge(tail, head, free_flow_s=time)
    network = rs.RoadNetwork.from_networkx(graph)
    routes = rs.ActionSet.between(network, "home", "work", method="all")
    environment = rs.RoundEnvironment.from_congestion(
        routes, -network.free_flow_s[routes.edges], rs.congestion.Linear(0.5), window=3, noise_std=1.0
    )
    return played("A diamond with a bridge", environment, 1_440)


@cache
def arms() -> Record:
    environment = rs.RoundEnvironment.from_congestion(
        rs.ActionSet.arms(4), [0.64, 0.27, 0.14, 0.1], rs.congestion.Inverse(), window=4, noise_std=0.3
    )
    return played("A congested bandit", environment, 1_920, ["CARMAB-st", "UCB1", "GreedyCongestion"])


def bottleneck() -> rs.RoadNetwork:
    """Two roads of a kilometre and a minute, in line: the first passes 1,800 vehicles an hour, the second half."""
    graph = nx.MultiDiGraph()
    places = {"home": np.array((7.40, 43.73)), "bridge": np.array((7.41, 43.735)), "work": np.array((7.42, 43.73))}
    for place, (x, y) in places.items():
        graph.add_node(place, x=x, y=y)
    for tail, head, capacity, name in (("home", "bridge", 1800.0, "First"), ("bridge", "work", 900.0, "Second")):
        # With a point a third of the way along, the longest piece of a road is beside its number on the map.
        line = LineString([places[tail], (2 * places[tail] + places[head]) / 3, places[head]])
        facts = {"length_m": 1000.0, "free_flow_s": 60.0, "capacity_vph": capacity, "lanes": 1}
        graph.add_edge(tail, head, name=name, geometry=line, **facts)
    return rs.RoadNetwork.from_networkx(graph)


def through_the_bottleneck(
    vehicles: int = 400, until_s: float | None = None, physics: str = "plain-queue"
) -> rs.Traffic:
    """Vehicle i departs at 1 + 2 i seconds, so 1,800 an hour come to the second road and 900 pass."""
    columns = {"origin": ["home"] * vehicles, "destination": ["work"] * vehicles}
    demand = rs.Demand.from_trips(columns | {"departure_s": 1.0 + 2.0 * np.arange(vehicles)})
    simulator = rs.TrafficSimulator(bottleneck(), demand, window_s=60, physics=physics)
    return simulator.run(rs.FreeFlowRouter(), until_s=until_s)


@cache
def queues() -> Record:
    """More vehicles than a road passes, and fewer of them beside."""
    return record({"many": through_the_bottleneck(), "fewer": through_the_bottleneck(200)}, "A bottleneck")


def one_learner(told: Record) -> Record:
    return Record(**{**vars(told), "learners": told.learners[:1]})


def labels(told: Record) -> Sequence[str]:
    return [one.label for one in told.learners]


def small_city() -> Record:
    """Helsinki with few routes and rounds, 48 steps of 30, quick enough for every test."""
    return city(k=5, rounds=1_440)


MAKERS: dict[str, Callable[[], Record]] = {
    "city": small_city,
    "traffic": traffic,
    "queues": queues,
    "own graph": own_graph,
    "arms": arms,
    "one learner": lambda: one_learner(small_city()),
}
