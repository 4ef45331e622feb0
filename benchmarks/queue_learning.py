"""Routers and learners on roads that queue, at ordinary demand, and what predicts the time on such a road.

    python -m benchmarks.queue_learning [--times 1] [--seeds 5] [--physics queue] [--confidence 1]
    python -m benchmarks.queue_learning predictors

Ordinary demand is 84 vehicle-kilometres an hour for each lane-kilometre, which two cities with counted trips have: a
rule of thumb. `--times` multiplies it. It lasts for two hours, and the run goes on for a third. Times are drawn with
noise 0.1. The cities and the seeds, from 1 on, were fixed before anything was run; what there was to choose was chosen
in Monaco with the seeds 11 to 15. A row has the mean trip, where one that has not ended counts until the run does; how
the trips that departed in the first and in the second hour compare with those of GreedyRouter; the share who arrived;
and the moves that were forced: means over seeds with 95 % bands.

`predictors` drives Monaco greedily and predicts the time of every passage of two seeds by the mean, in three others, of
the passages of the same road in the same bin of counts, the road's own mean weighing as much as two passages. R² is the
share of the variance about the roads' means that is explained.
"""

import argparse
import warnings

import numpy as np

import routesim as rs
from routesim.arrays import Floats, Ints
from routesim.assignment.assignment import load_cheapest
from routesim.errors import CapacityWarning
from routesim.results.bands import half_width
from routesim.traffic.engines.records import BIN_STARTS
from routesim.traffic.protocol import Driven, Router, TrafficTask

CITIES = ("cologne", "ingolstadt", "helsinki")
ORDINARY = 84.0  # vehicle-kilometres an hour for each lane-kilometre
HOUR_S, WINDOW_S, NOISE = 3600.0, 300.0, 0.1
COUNTS = ((), ("window",), ("on the road",), ("queued",), ("on the road", "queued"))


def simulator(city: str, physics: str, times: float) -> rs.TrafficSimulator:
    """Two hours of so many times the ordinary demand of a city."""
    network, demand = rs.load_city(city), rs.load_demand(city, end_s=2 * HOUR_S)
    driven = float(load_cheapest(network, demand.per_hour()) @ network.length_m)
    usual = ORDINARY * float(network.lanes @ network.length_m) / driven
    return rs.TrafficSimulator(network, demand.scaled(times * usual), WINDOW_S, physics=physics, noise=NOISE)


def compare(physics: str, times: float, seeds: int, confidence: float) -> None:
    """Print the table of all cities and routers."""
    routers: tuple[Router, ...] = (
        rs.GreedyRouter(),
        rs.FreeFlowRouter(),
        rs.PlannedRouter(),
        rs.CARMABRouter(confidence=confidence),
    )
    print(
        "| city, vehicles | router | mean trip, s | first hour beside greedy | second hour | arrived | forced moves |"
    )
    print("|---|---|---|---|---|---|---|")
    for city in CITIES:
        world = simulator(city, physics, times)
        greedy = np.empty((0, 0))
        for router in routers:
            rows = np.array([_row(world.run(router, seed, until_s=3 * HOUR_S)) for seed in range(1, seeds + 1)])
            greedy = greedy if len(greedy) else rows
            beside = 100 * (rows[:, 1:3] / greedy[:, 1:3] - 1)
            cells = [_band(rows[:, 0]), *(f"{_band(hour, sign='+')} %" for hour in beside.T)]
            cells += [f"{_band(100 * rows[:, 3])} %", _band(rows[:, 4])]
            where = f"{city}, {world.demand.vehicles.sum():,.0f}"
            print(f"| {where} | {type(router).__name__} | {' | '.join(cells)} |", flush=True)


def _row(traffic: rs.Traffic) -> tuple[float, float, float, float, float]:
    times = np.where(traffic.arrived, traffic.travel_time_s, traffic.until_s - traffic.departure_s)
    first = traffic.departure_s < HOUR_S
    hours = float(times[first].mean()), float(times[~first].mean())
    return float(times.mean()), *hours, float(traffic.arrived.mean()), traffic.forced_moves


def _band(sample: Floats, *, sign: str = "") -> str:
    return f"{sample.mean():{sign}.1f} ± {half_width(sample):.1f}"


class Observer(rs.GreedyRouter):
    """Greedy vehicles, every passage of which is written down."""

    feedback = "all"

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:
        super().start(task, rng)
        self.parts: list[Driven] = []

    def learn(self, driven: Driven) -> None:
        self.parts.append(driven)


def passages(world: rs.TrafficSimulator, seeds: range) -> dict[str, Ints | Floats]:
    """The roads, times and counts of all passages of these seeds."""
    found: list[dict[str, Ints | Floats]] = []
    for seed in seeds:
        observer = Observer()
        world.run(observer, seed, until_s=3 * HOUR_S)
        columns = zip(*observer.parts, strict=True)
        named = {
            name: np.concatenate(parts)
            for name, parts in zip(Driven._fields, columns, strict=True)
            if parts[0] is not None
        }
        window = _entries_before(named["edges"], named["entered_s"])
        found.append({**named, "window": window, "on the road": named["counts"]})
    return {name: np.concatenate([one[name] for one in found]) for name in found[0]}


def _entries_before(edges: Ints, entered_s: Floats) -> Ints:
    """The entries into the same road during the window before each."""
    order = np.lexsort((entered_s, edges))
    place = edges[order] * 1e7 + entered_s[order]  # roads are further apart than any time
    counts = np.empty(len(edges), dtype=np.int64)
    counts[order] = np.arange(len(edges)) - np.searchsorted(place, place - WINDOW_S, side="right")
    return counts


def predictors() -> None:
    """Print how well each count predicts the time of a passage."""
    print("| physics | demand | counts | R² | mean absolute error, s |\n|---|---|---|---|---|")
    for physics in ("queue", "plain-queue"):
        for times in (1.0, 2.0):
            world = simulator("monaco", physics, times)
            known, asked = passages(world, range(11, 14)), passages(world, range(14, 16))
            for counts in COUNTS:
                explained, error = _predicted(known, asked, counts, world.network.n_edges)
                name = " and ".join(counts) or "none"
                print(f"| {physics} | {times:g} x | {name} | {explained:.3f} | {error:.2f} |", flush=True)


def _predicted(
    known: dict[str, Ints | Floats], asked: dict[str, Ints | Floats], counts: tuple[str, ...], n_edges: int
) -> tuple[float, float]:
    def cells(rows: dict[str, Ints | Floats]) -> Ints:
        cell = rows["edges"].astype(np.int64)
        for name in counts:
            cell = cell * len(BIN_STARTS) + np.searchsorted(BIN_STARTS, rows[name], side="right") - 1
        return cell

    took, edges = asked["travel_time_s"], asked["edges"]
    uses, sums = (np.bincount(known["edges"], weights, n_edges) for weights in (None, known["travel_time_s"]))
    usual = np.where(uses > 0, sums / np.maximum(uses, 1), np.nan)[edges]
    seen, cell = np.unique(cells(known), return_inverse=True)
    visits, total = np.bincount(cell), np.bincount(cell, known["travel_time_s"])
    mine = cells(asked)
    place = np.minimum(np.searchsorted(seen, mine), len(seen) - 1)
    met = seen[place] == mine
    believed = (np.where(met, total[place], 0.0) + 2 * usual) / (np.where(met, visits[place], 0) + 2)
    valid = np.isfinite(usual)
    wrong, about = (took - believed)[valid], (took - usual)[valid]
    return 1 - float(wrong @ wrong) / float(about @ about), float(np.abs(wrong).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("part", nargs="?", default="routers", choices=("routers", "predictors"))
    parser.add_argument("--times", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--physics", default="queue")
    parser.add_argument("--confidence", type=float, default=1.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", CapacityWarning)
    if options.part == "predictors":
        predictors()
    else:
        compare(options.physics, options.times, options.seeds, options.confidence)


if __name__ == "__main__":
    main()
