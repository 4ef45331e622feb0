"""Records of real runs, made small and quickly: a city in rounds, a city in traffic, a graph of one's own, arms."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise

import networkx as nx
import numpy as np
from numpy.typing import NDArray

import routesim as rs
from routesim.record import Played, Record

Floats = NDArray[np.float64]

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


def record_rounds(
    title: str,
    environment: rs.RoundEnvironment,
    network: rs.RoadNetwork | None,
    learners: Mapping[str, rs.Learner],
    rounds: int,
    steps: int,
    replications: int = 2,
) -> Record:
    """Play learners and count what they did in each step of rounds."""
    bounds = np.linspace(0, rounds, steps + 1).round().astype(np.int64)
    paths, used = environment.actions.paths, environment.actions.edges
    assert paths is not None
    incidence = environment.actions.incidence.toarray()
    rewards, window = environment.rewards, environment.window
    parts = []
    best = 0.0
    for label, learner in learners.items():
        runs = rs.replicate(environment, learner, rounds, seed=0, replications=replications)
        shares = np.mean(
            [
                [np.bincount(run.actions[a:b], minlength=len(paths)) / (b - a) for a, b in pairwise(bounds)]
                for run in runs
            ],
            axis=0,
        )
        loads = window * shares @ incidence
        ratios = ratios_at(rewards, loads)
        trips = np.array([[-run.expected_rewards[a:b].mean() for a, b in pairwise(bounds)] for run in runs])
        values = np.array(
            [
                np.mean([-run.expected_rewards[run.actions == action].mean() for run in runs if action in run.actions])
                if any(action in run.actions for run in runs)
                else np.nan
                for action in range(len(paths))
            ]
        )
        sign = 1.0 if network is not None else -1.0
        spread = trips.std(axis=0, ddof=1) if len(runs) > 1 else np.zeros(steps)
        curve = sign * trips.mean(axis=0)
        informed = isinstance(learner, rs.GreedyCongestion)
        parts.append(
            Played(label, informed, loads, ratios, shares, sign * values, curve, curve - spread, curve + spread)
        )
        best = -sign * runs[0].comparator_value
    return Record(
        title,
        "rounds",
        float(window),
        "mean trip, s" if network is not None else "mean reward",
        bounds[1:].astype(np.float64),
        used.astype(np.int32),
        paths,
        tuple(parts),
        network,
        {"best possible": np.full(steps, best)},
    )


def ratios_at(rewards: Floats, loads: Floats) -> Floats:
    """How many times dearer an edge is at a load, between whole counts along a straight line."""
    low = np.clip(np.floor(loads).astype(np.int64), 0, rewards.shape[1] - 1)
    high = np.minimum(low + 1, rewards.shape[1] - 1)
    columns = np.arange(rewards.shape[0])
    at = rewards[columns, low] + (loads - low) * (rewards[columns, high] - rewards[columns, low])
    empty = rewards[:, 0]
    ratio = at / empty if empty[0] < 0 else empty / np.maximum(at, 1e-9)
    return np.where(loads > 0, np.maximum(1.0, ratio), 1.0)


@cache
def city(name: str = "helsinki", k: int = 8, rounds: int = 4_000, steps: int = 20, slope: float = 0.5) -> Record:
    network = rs.load_city(name)
    origin, destination = ENDS.get(name) or far_ends(network)
    routes = rs.ActionSet.between(network, origin, destination, k=k, method="penalty")
    seconds = network.free_flow_s[routes.edges]
    environment = rs.RoundEnvironment.from_congestion(
        routes, -seconds, rs.congestion.Linear(slope), window=4, noise_std=0.1 * seconds
    )
    title = f"{name.title()}: {k} routes across the centre, every trip slows down those that follow"
    return record_rounds(title, environment, network, LEARNERS, rounds, steps)


@cache
def traffic(name: str = "helsinki", vehicles: float = 3_000.0, bin_s: float = 300.0, load: float = 1.0) -> Record:
    """Vehicles between many places of a city, in bins of time; the ratio is BPR's at the flow of the bin."""
    network = rs.load_city(name)
    demand = rs.load_demand(name, vehicles)
    simulator = rs.TrafficSimulator(network, demand, window_s=bin_s)
    routers = {"empty roads": rs.FreeFlowRouter(), "greedy": rs.GreedyRouter()}
    runs = {label: simulator.run(router, seed=0) for label, router in routers.items()}
    steps = min(24, *(len(run.edge_counts) for run in runs.values()))
    used = np.flatnonzero(sum(run.edge_counts[:steps].sum(axis=0) for run in runs.values()))
    popular: dict[tuple[int, ...], int] = {}
    for run in runs.values():
        for path in run.trips["path"]:
            popular[path] = popular.get(path, 0) + 1
    routes = tuple(sorted((path for path in popular if path), key=lambda path: -popular[path])[:12])
    parts = []
    for label, run in runs.items():
        loads = load * run.edge_counts[:steps, used].astype(np.float64)
        flow = loads / bin_s * 3600.0
        ratios = 1 + network.bpr_alpha[used] * (flow / network.capacity_vph[used]) ** network.bpr_beta[used]
        bins = np.minimum((run.departure_s // bin_s).astype(int), steps - 1)
        trips = run.trips
        shares = np.array([[np.sum((bins == s) & (trips["path"] == route)) for route in routes] for s in range(steps)])
        shares = shares / np.maximum(1, np.bincount(bins, minlength=steps))[:, None]
        curve = np.array(
            [
                np.nanmean(np.append(run.travel_time_s[bins == s], np.nan)) if (bins == s).any() else np.nan
                for s in range(steps)
            ]
        )
        times = np.array(
            [
                run.travel_time_s[(trips["path"] == route).to_numpy()].mean()
                if (trips["path"] == route).any()
                else np.nan
                for route in routes
            ]
        )
        parts.append(Played(label, False, loads, ratios, shares, times, curve, curve * 0.97, curve * 1.03))
    ends = np.arange(1, steps + 1, dtype=np.float64) * bin_s
    title = f"{name.title()}: traffic between many places"
    return Record(title, "seconds", bin_s, "mean trip, s", ends, used.astype(np.int32), routes, tuple(parts), network)


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
    return record_rounds("A diamond with a bridge", environment, network, LEARNERS, 1_500, 10)


@cache
def arms(count: int = 4) -> Record:
    base = [0.64, 0.27, 0.14, 0.1, 0.08, 0.05][:count]
    environment = rs.RoundEnvironment.from_congestion(
        rs.ActionSet.arms(count), base, rs.congestion.Inverse(), window=4, noise_std=0.3
    )
    learners = {label: learner for label, learner in LEARNERS.items() if label != "ShortestPath"}
    return record_rounds("A congested bandit", environment, None, learners, 2_000, 15)


def one_learner(record: Record) -> Record:
    return Record(**{**vars(record), "learners": record.learners[:1]})


def labels(record: Record) -> Sequence[str]:
    return [played.label for played in record.learners]


def small_city() -> Record:
    """Helsinki with few routes, rounds and steps, quick enough for every test."""
    return city(k=5, rounds=1_500, steps=12)


MAKERS: dict[str, Callable[[], Record]] = {
    "city": small_city,
    "traffic": traffic,
    "own graph": own_graph,
    "arms": arms,
    "one learner": lambda: one_learner(small_city()),
}
