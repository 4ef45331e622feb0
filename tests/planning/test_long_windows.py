"""Long windows: what a potential proves of one edge, and plans with a bound that means something."""

from itertools import product

import numpy as np
import pytest
from edgewise_instances import arms, reward_table
from numpy.typing import NDArray

import routesim as rs
from routesim.planning.edgewise.long_windows import LongWindowModel
from routesim.planning.edgewise.planner import plan_paths
from routesim.planning.edgewise.potential_search import best_potential
from routesim.planning.edgewise.potentials import most_gained, moves_of
from routesim.planning.edgewise.single_edge import best_averages, plain_window

Floats = NDArray[np.float64]


def edge_table(kind: int, window: int, rng: np.random.Generator) -> Floats:
    """Any table, a falling one, a threshold, steps with ties, a cliff, mixed scales."""
    counts = np.arange(window + 1)
    if kind == 0:
        return rng.uniform(-1, 1, window + 1)
    if kind == 1:
        return np.sort(rng.uniform(-1, 1, window + 1))[::-1].copy()
    if kind == 2:
        return np.where(counts <= rng.integers(0, window + 1), 1.0, rng.uniform(-1, 0.5))
    if kind == 3:
        return -np.floor(counts / rng.integers(1, 4)) - 1.0
    if kind == 4:
        return np.where(counts <= window // 2, -1.0, -1e6)
    return np.asarray(-(10.0 ** rng.uniform(-6, 6)) * (1 + 0.15 * (counts / max(1.0, window / 4)) ** 4))


def a_price(table: Floats, rng: np.random.Generator) -> float:
    return float(table.max() - rng.uniform(0, 1.2) * max(1e-3, table.max() - np.median(table)))


def gains_by_history(values: Floats, table: Floats, prices: Floats, rates: Floats) -> float:
    """Return the most that any history and decision gains, looking at every one of them."""
    window, most = table.size - 1, -np.inf

    def value_of(history: tuple[int, ...]) -> float:  # history[i] is the use i + 1 rounds ago
        count = sum(history)
        return float(values[count, 0] + sum(values[count, age + 1] for age in range(window) if history[age]))

    for history in product((0, 1), repeat=window):
        gain = -value_of(history)
        for price, rate in zip(prices, rates, strict=True):
            rest = value_of((0, *history[:-1]))
            use = table[sum(history)] - (price if np.isfinite(price) else 0.0) + value_of((1, *history[:-1]))
            gain += rate * (use if price == -np.inf else rest if price == np.inf else max(rest, use))
        most = max(most, gain)
    return most


def best_average_of_kinds(table: Floats, prices: Floats, rates: Floats) -> tuple[float, float]:
    """Return the best average where each round serves a random kind: lazy value iteration over all use histories."""
    window = table.size - 1
    labels, states = plain_window(window).labels, np.arange(1 << window)
    unused = states << 1 & (1 << window) - 1
    value = np.zeros(states.size)
    for _ in range(3_000):
        new = np.zeros(states.size)
        for price, rate in zip(prices, rates, strict=True):
            use = table[labels] - (price if np.isfinite(price) else 0.0) + value[unused | 1]
            rest = value[unused]
            new += rate * (use if price == -np.inf else rest if price == np.inf else np.maximum(use, rest))
        change = new - value
        if np.ptp(change) < 1e-9 * np.abs(table).max():
            break
        value += 0.5 * change
        value -= value[0]
    return float(change.min()), float(change.max())


class TestPotentials:
    def test_sorting_finds_the_history_that_gains_the_most(self) -> None:
        rng = np.random.default_rng(0)
        for number in range(60):
            window = 1 + number % 6
            table = edge_table(number % 4, window, rng)
            n_kinds = 1 + number % 3
            prices, rates = rng.uniform(-1, 1, n_kinds), rng.dirichlet(np.ones(n_kinds))
            if n_kinds == 3:
                prices[rng.integers(3)] = rng.choice([-np.inf, np.inf])
            values = rng.normal(size=(window + 1, window + 1))
            slow = gains_by_history(values, table, prices, rates)
            fast = most_gained(values, moves_of(table, prices, rates, window))
            assert slow <= fast <= slow + 1e-11

    def test_two_uses_by_hand(self) -> None:
        # Window 1, worth 1 when rested and nothing when just used, price 0: every other round, so 1/2 a round. With
        # phi = (0, -1/2) a use of the rested edge gains 1 - 1/2, a rest of the other 1/2, and all others less.
        values = np.array([[0.0, 0.0], [-0.5, 0.0]])
        moves = moves_of(np.array([1.0, 0.0]), np.zeros(1), np.ones(1), 1)
        assert most_gained(values, moves) == pytest.approx(0.5, abs=1e-14)
        found, frequency = best_potential(moves, 1, 1e-9)
        assert most_gained(found, moves) == pytest.approx(0.5, abs=1e-8)
        assert frequency @ moves.used == pytest.approx(0.5, abs=1e-6)

    @pytest.mark.parametrize("kind", [0, 1, 2, 3])
    def test_the_best_potential_of_one_kind_is_exact(self, kind: int) -> None:
        """Nothing proves it, but no counterexample is known."""
        rng = np.random.default_rng(kind)
        for window in (1, 2, 3, 5, 8):
            table = edge_table(kind, window, rng)
            prices = np.array([a_price(table, rng)])
            moves = moves_of(table, prices, np.ones(1), window)
            values, frequency = best_potential(moves, window, 1e-7)
            exact = best_averages(table[None], prices, plain_window(window))[0][0]
            size = np.abs(table).max()
            assert exact - 1e-10 * size <= most_gained(values, moves) <= exact + 1e-6 * size
            assert frequency @ moves.reward == pytest.approx(exact, abs=1e-5 * size)

    def test_no_potential_of_several_kinds_is_below_the_best_average(self) -> None:
        rng = np.random.default_rng(4)
        excess = []
        for number in range(18):
            window = 2 + number % 4
            table = edge_table(number % 4, window, rng)
            prices = np.array([a_price(table, rng) for _ in range(3)])
            if number % 3:
                prices[2] = -np.inf if number % 3 == 1 else np.inf
            rates = rng.dirichlet(np.ones(3))
            moves = moves_of(table, prices, rates, window)
            values, _ = best_potential(moves, window, 1e-6)
            low, high = best_average_of_kinds(table, prices, rates)
            size = np.abs(table).max()
            assert high - low < 1e-6 * size
            assert most_gained(values, moves) >= low - 1e-9 * size
            excess.append((most_gained(values, moves) - high) / size)
        assert np.mean(excess) < 0.02


class TestModel:
    @pytest.mark.parametrize("kind", range(6))
    def test_bounds_hold_for_edges_that_share_a_table_and_for_others(self, kind: int) -> None:
        rng = np.random.default_rng(kind)
        window = 7
        shared = edge_table(kind, window, rng) * rng.uniform(0.1, 9.0, size=(5, 1))
        rewards = np.concatenate([shared, [edge_table(kind, window, rng)]])
        prices = np.array([a_price(table, rng) for table in rewards])
        model = LongWindowModel(rewards)
        exact = best_averages(rewards, prices, plain_window(window))[0]
        size = np.abs(rewards).max(axis=1)
        for rows in (np.array([0, 2, 4]), np.arange(6)):
            bounds = model.best_averages(rewards[rows], prices[rows])
            assert np.all(bounds >= exact[rows] - 1e-10 * size[rows])
        assert model.n_patterns > 0 or kind in (2, 4)  # where uses spread evenly are already the best
        grid, heights = model.curves(rewards)
        conjugate = (heights - prices[:, None] * grid).max(axis=1)
        earned = np.abs(heights).max(axis=1)
        assert np.all(bounds - conjugate <= 5e-3 * earned.sum())


class TestPlans:
    # What is left is what one price an edge leaves, except for the precision of chords.
    @pytest.mark.parametrize("window", [17, 18])
    @pytest.mark.parametrize(("family", "loose"), [("BPR time", 0.003), ("reciprocal", 0.05), ("threshold", 0.12)])
    def test_two_arms_against_the_exact_optimum(self, window: int, family: str, loose: float) -> None:
        rewards = reward_table(family, 2, window, np.random.default_rng(window))
        exact = rs.plan(rs.ActionSet.arms(2), rewards, window, method="exact")
        plan = plan_paths(arms(2), rewards, window)
        assert plan.value <= exact.value + 1e-9 * abs(exact.value)
        assert exact.value <= plan.bound + 1e-9 * abs(exact.value)
        assert plan.bound <= exact.value + loose * abs(exact.value)

    @pytest.mark.parametrize("family", ["BPR time", "linear time"])
    def test_there_is_no_cliff_where_histories_become_too_many(self, family: str) -> None:
        gaps = []
        for window in (16, 17, 24):
            counts = np.arange(window + 1) / (window / 4)
            falls = 1 + (0.15 * counts**4 if family == "BPR time" else counts)
            rewards = -np.random.default_rng(1).uniform(1, 3, size=(6, 1)) * falls
            plan = plan_paths(arms(6), rewards, window, kicks=5)
            assert plan.value <= plan.bound
            gaps.append(plan.value / plan.bound - 1)
        assert max(gaps) < 0.02
