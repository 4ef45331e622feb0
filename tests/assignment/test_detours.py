"""Advice with a limit on detours: against all paths of small grids, at both ends, and on a bundled city."""

import numpy as np
import pytest
from slow_flows import all_paths, least_total
from test_bushes import grid, trips
from town import town

import routesim as rs
from routesim.assignment import detours
from routesim.assignment.assignment import bpr_prices, travel_times
from routesim.errors import InputError, NotConvergedWarning


def within(equilibrium: rs.Assignment, limit: float) -> list[list[tuple[int, ...]]]:
    """All paths of every pair that the rule allows: within the limit, or used in the equilibrium."""
    network, usual = equilibrium.network, equilibrium.travel_time_s
    allowed = []
    for origin, destination in equilibrium.pairs:
        every = list(all_paths(network, network.node_index(origin), network.node_index(destination)))
        times = [usual[list(path)].sum() for path in every]
        used = {path for path, _ in equilibrium.paths(origin, destination)}
        most = (1 + limit) * min(times) * (1 + 1e-9)
        allowed.append([path for path, time in zip(every, times, strict=True) if time <= most or path in used])
    return allowed


@pytest.mark.parametrize("limit", [0.0, 0.05, 0.2, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_least_total_within_the_limit_is_that_of_a_convex_programme_over_all_such_paths(
    seed: int, limit: float
) -> None:
    network = grid(3, seed)
    table = {"origin": [0, 2, 6, 1], "destination": [8, 6, 2, 7], "vehicles": [1500.0, 900.0, 700.0, 500.0]}
    result = rs.assign(network, table, "system", 1e-7, max_detour=limit)
    assert result.relative_gap <= 1e-7
    assert result.equilibrium is not None
    allowed = within(result.equilibrium, limit)
    for (origin, destination), mine in zip(result.pairs, allowed, strict=True):
        assert {path for path, _ in result.paths(origin, destination)} <= set(mine)
    slow = least_total(network, allowed, result.pair_vph.tolist())
    assert result.total_travel_time_s == pytest.approx(slow, rel=1e-5)


def test_at_no_limit_it_is_the_optimum_and_at_0_the_paths_take_no_longer_than_those_of_the_equilibrium() -> None:
    network = grid(5, 3)
    table = trips(network, 60, 3)
    user, system = (rs.assign(network, table, objective, 1e-9) for objective in ("user", "system"))  # type: ignore[arg-type]
    totals = []
    for limit in (0.0, 0.02, 0.1, 0.3, 50.0):
        result = rs.assign(network, table, "system", 1e-7, max_detour=limit)
        totals.append(result.total_travel_time_s)
        assert result.detours.worst <= limit + 1e-5
        assert result.summary()["worst_detour"] == result.detours.worst
    assert totals == sorted(totals, reverse=True)
    assert totals[0] <= user.total_travel_time_s * (1 + 1e-9)
    assert totals[-1] == pytest.approx(system.total_travel_time_s, rel=1e-6)
    free = rs.assign(network, table, "system", 1e-9, max_detour=np.inf)
    assert free.total_travel_time_s == pytest.approx(system.total_travel_time_s, rel=1e-9)


@pytest.mark.parametrize("limit", [0.05, 0.2])
def test_on_a_city_at_heavy_demand_every_path_keeps_the_limit(limit: float) -> None:
    city = rs.load_city("helsinki")
    demand = rs.load_demand("helsinki", end_s=3600)
    user, system = (rs.assign(city, demand, objective, 1e-8) for objective in ("user", "system"))  # type: ignore[arg-type]
    result = rs.assign(city, demand, "system", 1e-5, max_detour=limit)
    assert result.relative_gap <= 1e-5
    assert system.total_travel_time_s < result.total_travel_time_s < user.total_travel_time_s
    best = {pair: min(user.travel_time_s[list(path)].sum() for path, _ in user.paths(*pair)) for pair in user.pairs}
    for pair in result.pairs:
        for path, _ in result.paths(*pair):
            assert user.travel_time_s[list(path)].sum() <= (1 + limit + 1e-5) * best[pair]
    # Without the limit, some are sent further out of their way.
    assert max(
        user.travel_time_s[list(path)].sum() / best[pair] for pair in system.pairs for path, _ in system.paths(*pair)
    ) > 1.2 + 1e-3  # fmt: skip


def test_a_search_that_gives_up_still_proves_a_gap() -> None:
    network = grid(5, 4)
    table = trips(network, 40, 4)
    exact = rs.assign(network, table, "system", 1e-8, max_detour=0.1)
    solver = rs.assign(network, table, "user", 1e-8).solver
    limited = detours.DetourSolver(solver, exact.equilibrium.driver_cost_s, 0.1, most_labels=6)  # type: ignore[union-attr,arg-type]
    gap, _ = limited.solve(bpr_prices(network, "system"), 1e-8, 20)
    assert gap > 1e-8
    total = float(limited.flows @ travel_times(network, limited.flows))
    marginal = network.free_flow_s * (1 + 5 * 0.15 * (limited.flows / network.capacity_vph) ** 4)
    assert total - exact.total_travel_time_s <= gap * float(limited.flows @ marginal) * (1 + 1e-9)


def test_inequality_is_that_worked_out_by_hand() -> None:
    roads = town([("s", "t", 10.0), ("s", "t", 20.0)], capacity_vph=1000.0, alpha=1.0, beta=1.0)
    optimum = rs.assign(roads, {"origin": ["s"], "destination": ["t"], "vehicles": [2000.0]}, "system", 1e-10)
    # 1,500 take 25 s and 500 take 30 s: a quarter drives 20 % longer than need be.
    unequal = optimum.inequality
    assert (unequal.above_5, unequal.above_10) == pytest.approx((0.25, 0.25))
    assert unequal.worst == pytest.approx(0.2)
    assert unequal.mean == pytest.approx(0.05)
    assert optimum.summary()["share_excess_above_10_percent"] == pytest.approx(0.25)
    equilibrium = rs.assign(roads, {"origin": ["s"], "destination": ["t"], "vehicles": [2000.0]}, relative_gap=1e-10)
    assert equilibrium.inequality.above_5 == 0
    with pytest.raises(InputError, match="detours are measured where there is a limit"):
        _ = equilibrium.detours


def test_mistakes_are_named() -> None:
    network = grid(3, 0)
    table = trips(network, 4, 0)
    with pytest.raises(InputError, match=r'at least 0 and belongs to the objective "system", got 0.1 and "user"'):
        rs.assign(network, table, max_detour=0.1)
    for wrong in (-0.1, float("nan")):
        with pytest.raises(InputError, match="max_detour must be at least 0"):
            rs.assign(network, table, "system", max_detour=wrong)
    heavy = trips(network, 30, 0, 2000.0)
    with pytest.warns(NotConvergedWarning):
        rs.assign(network, heavy, "system", 1e-9, max_detour=0.3, max_iterations=1)
