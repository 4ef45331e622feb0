"""Bounds stand in exact arithmetic: what adding and multiplying floats rounds off is made up for by a margin."""

from fractions import Fraction

import numpy as np
import pytest
from edgewise_instances import path_set
from numpy.typing import NDArray

from routesim.planning.edgewise.choices import RoadGraph
from routesim.planning.edgewise.edge_models import MajorantModel
from routesim.planning.edgewise.prices import certified_bound
from routesim.roads.graph import Graph

Floats = NDArray[np.float64]

HALF_STEP = 2.0**-53  # 1 + HALF_STEP lies halfway between 1 and the next float, and is rounded to 1


class KnownChoices:
    """Pairs whose shares of rounds are exact fractions, and whose best actions collect given numbers."""

    n_edges = 1

    def __init__(self, shares: list[Fraction], collected: list[float]) -> None:
        self.rates = np.array([float(share) for share in shares])
        self._collected = collected

    def best(self, values: Floats, pair: int) -> tuple[float, NDArray[np.int32]]:  # noqa: ARG002 - known beforehand
        return self._collected[pair], np.zeros(1, np.int32)


class KnownAverages:
    """Edges whose best averages are given numbers."""

    n_patterns = 0

    def __init__(self, averages: list[float]) -> None:
        self._averages = np.array(averages)

    def curves(self, rewards: Floats) -> tuple[Floats, Floats]:
        raise NotImplementedError

    def best_averages(self, rewards: Floats, prices: Floats) -> Floats:  # noqa: ARG002 - known beforehand
        return self._averages


def bound_of(shares: list[Fraction], collected: list[float], averages: list[float]) -> tuple[float, Fraction]:
    """Return the bound, and what it must not be below."""
    rewards, prices = np.ones((len(averages), 1)), np.zeros(len(averages))
    bound = certified_bound(KnownChoices(shares, collected), rewards, prices, KnownAverages(averages))
    exact = sum((share * Fraction(one) for share, one in zip(shares, collected, strict=True)), Fraction(0))
    return bound, exact + sum(map(Fraction, averages))


def test_the_bound_is_not_below_a_sum_that_lies_between_two_floats() -> None:
    bound, exact = bound_of([Fraction(1)], [HALF_STEP**2], [1.0, HALF_STEP])
    assert 1.0 + HALF_STEP**2 + HALF_STEP == 1.0
    assert 1 < exact <= Fraction(bound) < exact + Fraction(4 * HALF_STEP)


def test_the_bound_makes_up_for_the_rounding_of_rates_where_prices_and_averages_cancel() -> None:
    # Each pair collects minus some hundred seconds and the edges keep as many, so that little but rounding is left.
    rng = np.random.default_rng(0)
    shares = [Fraction(1, 3), Fraction(1, 7), Fraction(11, 21)]
    for _ in range(200):
        collected = (-rng.uniform(100.0, 1000.0, size=3)).tolist()
        kept = -float(sum((share * Fraction(one) for share, one in zip(shares, collected, strict=True)), Fraction(0)))
        bound, exact = bound_of(shares, collected, [kept])
        assert exact <= Fraction(bound) <= exact + Fraction(1e-11)


def test_the_best_path_of_a_set_is_not_below_its_exact_sum() -> None:
    paths = path_set([[0, 1, 2], [3]], 4)
    values = np.array([HALF_STEP, 1.0, HALF_STEP, 0.5])
    assert values[0] + values[1] + values[2] == 1.0
    largest, edges = paths.best(values, 0)
    assert edges.tolist() == [0, 1, 2]
    assert 1 + 2 * Fraction(HALF_STEP) <= Fraction(largest) <= 1 + 8 * Fraction(HALF_STEP)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_best_of_many_paths_is_not_below_any_exact_sum(sign: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        rows = [rng.choice(40, size=rng.integers(2, 30), replace=False).tolist() for _ in range(6)]
        values = sign * rng.uniform(size=40)
        exact = max(sum(Fraction(values[edge]) for edge in row) for row in rows)
        largest = path_set(rows, 40).best(values, 0)[0]
        assert exact <= Fraction(largest) <= exact + Fraction(1e-12)


def test_the_best_path_of_a_graph_is_not_below_its_exact_sum() -> None:
    values = np.array([-1.0, -1.5 * HALF_STEP])
    assert Fraction(values.sum()) == -1 - 2 * Fraction(HALF_STEP)  # rounded down, to the next float
    graph = RoadGraph(Graph.build(np.array([0, 1]), np.array([1, 2]), 3), np.array([0]), np.array([2]))
    largest, edges = graph.best(values, 0)
    assert edges.tolist() == [0, 1]
    assert -1 - Fraction(1.5 * HALF_STEP) <= Fraction(largest) <= -1 + 8 * Fraction(HALF_STEP)


def test_the_average_of_an_edge_from_above_is_not_below_its_exact_mean() -> None:
    rng = np.random.default_rng(2)
    rewards = np.sort(rng.uniform(size=(200, 7)))[:, ::-1].copy()
    prices = rng.uniform(size=200)
    averages = MajorantModel().best_averages(rewards, prices)
    for row, price, average in zip(rewards, prices, averages, strict=True):
        exact = sum(max(Fraction(0), Fraction(reward) - Fraction(price)) for reward in row) / 7
        assert exact <= Fraction(average) <= exact + Fraction(1e-13)
