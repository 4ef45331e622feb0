"""Roads with length and capacity, and a router that sees every passage, for the tests of the queue engine."""

from collections.abc import Iterable, Sequence
from typing import Any

import networkx as nx
import numpy as np

import routesim as rs
from routesim.traffic.protocol import Departures, Driven, Routes, TrafficTask
from routesim.traffic.simulator import Simulation

PLAIN = rs.physics.PlainQueue()


def roads(rows: Iterable[tuple[str, str, float, float, float]], lanes: float = 1) -> rs.RoadNetwork:
    """Roads (from, to, metres, free-flow seconds, vehicles an hour) in this order."""
    graph = nx.MultiDiGraph()
    for tail, head, length_m, seconds, capacity in rows:
        graph.add_edge(tail, head, length_m=length_m, free_flow_s=seconds, capacity_vph=capacity, lanes=lanes)
    network = rs.RoadNetwork.from_networkx(graph)
    assert not network.imputed("capacity").any()
    return network


def chain(*rows: tuple[float, float, float]) -> rs.RoadNetwork:
    """Roads (metres, free-flow seconds, vehicles an hour) one after the other, from place "0" on."""
    return roads((str(k), str(k + 1), *row) for k, row in enumerate(rows))


def demand_of(network: rs.RoadNetwork, paths: Sequence[Sequence[int]], departure_s: Iterable[float]) -> rs.Demand:
    """The demand of vehicles on these paths."""
    labels, tails, heads = network.labels, network.tails, network.heads
    ends = [(labels[tails[path[0]]], labels[heads[path[-1]]]) for path in paths]
    origins, destinations = zip(*ends, strict=True)
    return rs.Demand.from_trips({"origin": origins, "destination": destinations, "departure_s": list(departure_s)})


class Witness:
    """Sends vehicles down given paths, or down the quickest, and writes down every passage."""

    interval_s = None
    feedback = "all"

    def __init__(self, paths: Sequence[Sequence[int]] | None = None) -> None:
        self.paths = paths

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:  # noqa: ARG002 - told nothing
        self.parts: list[Driven] = []

    def route(self, departures: Departures) -> Routes:
        if self.paths is None:
            return Routes.of([], np.full(len(departures.vehicles), -2))
        return Routes.of(self.paths, departures.vehicles)

    def learn(self, driven: Driven) -> None:
        self.parts.append(driven)

    def column(self, name: str) -> Any:
        """One of vehicles, places, edges, counts, entered_s, travel_time_s of all passages, in order of their ends."""
        return np.concatenate([getattr(part, name) for part in self.parts]) if self.parts else np.empty(0)

    @property
    def left_s(self) -> Any:
        return self.column("entered_s") + self.column("travel_time_s")


def drive(
    network: rs.RoadNetwork,
    paths: Sequence[Sequence[int]],
    departure_s: Iterable[float],
    physics: Any = PLAIN,
    **options: Any,
) -> tuple[rs.Traffic, Witness]:
    """Vehicles on these paths, in order of departure: what happened, and every passage of it."""
    until_s, seed = options.pop("until_s", None), options.pop("seed", 0)
    simulator = rs.TrafficSimulator(network, demand_of(network, paths, departure_s), physics=physics, **options)
    witness = Witness(paths)
    return simulator.run(witness, seed, until_s=until_s), witness


def stopped(simulator: rs.TrafficSimulator, router: Any, until_s: float) -> tuple[rs.Traffic, Any]:
    """A run up to a time, and the vehicles on each road then."""
    simulation = Simulation(simulator, router, 0, until_s)
    return simulation.run(), simulation.engine.counts(until_s)


def random_town(rng: np.random.Generator, *, stuck_s: float = 600.0) -> Any:
    """A few roads of all sorts, vehicles on random walks over them, and a physics: no two times are the same."""
    n_nodes = int(rng.integers(3, 7))
    ends = [(k, (k + 1) % n_nodes) for k in range(n_nodes)]  # a ring, so that it can lock
    ends += [tuple(rng.choice(n_nodes, 2, replace=False).tolist()) for _ in range(int(rng.integers(0, 8)))]
    rows = []
    for tail, head in ends:
        length = float(rng.choice([0.0, rng.uniform(5, 40), rng.uniform(40, 400)], p=[0.1, 0.4, 0.5]))
        rows.append((str(tail), str(head), length, float(rng.uniform(0.5, 40)), float(rng.uniform(100, 2500))))
    network = roads(rows, lanes=int(rng.integers(1, 3)))
    out = {node: np.flatnonzero(network.tails == node).tolist() for node in range(network.n_nodes)}
    paths = []
    for _ in range(int(rng.integers(1, 150))):
        start = int(rng.integers(network.n_nodes))
        path = [int(rng.choice(out[start]))]
        while rng.random() < 0.8 or network.heads[path[-1]] == start:
            path.append(int(rng.choice(out[int(network.heads[path[-1]])])))
        paths.append(path)
    departure_s = np.sort(rng.uniform(0, rng.choice([20.0, 300.0, 2000.0]), len(paths))).tolist()
    physics = rs.physics.PlainQueue(
        jam_density_per_km=float(rng.uniform(50, 200)), wave_kph=float(rng.uniform(8, 30)), stuck_s=stuck_s
    )
    return network, paths, departure_s, physics
