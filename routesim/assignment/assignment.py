"""Static traffic assignment: flows in which no driver, or the town as a whole, could do better."""

import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats
from routesim.assignment.detours import DetourSolver
from routesim.assignment.inequality import Inequality, inequality_of
from routesim.assignment.paths import PathShares
from routesim.assignment.prices import Prices, objective_at, prices_at
from routesim.assignment.solver import FlowSolver, by_edge
from routesim.demand.demand import Demand
from routesim.errors import InputError, NotConvergedWarning
from routesim.roads.network import RoadNetwork

if TYPE_CHECKING:
    import pandas as pd

Objective: TypeAlias = Literal["user", "system"]

_EQUILIBRIUM_GAP = 1e-8  # of the equilibrium whose times detours are measured at: its paths agree to some 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Assignment:
    """Flows in vehicles an hour, one per edge, and what they cost.

    `travel_time_s` is each edge's travel time at its flow, `total_travel_time_s` the vehicle-seconds spent per
    hour. `objective_value` is what was minimised, in vehicle-seconds per hour: for "user" Beckmann's sum of
    integrals of the travel times, for "system" the total travel time, both with what `edge_cost_s` adds.
    `relative_gap` is the share of the price paid that would be saved if everybody took the cheapest path at present
    prices: travel times for "user", marginal travel times for "system". It is worked out from the flows alone, by
    a search from every origin. With `max_detour`, the cheapest path is the cheapest one within the limit, and
    `equilibrium` is the assignment at whose times detours are measured. Where there is a `background`, flows and
    totals include it.
    """

    objective: Objective
    flows: Floats
    travel_time_s: Floats
    total_travel_time_s: float
    objective_value: float
    relative_gap: float
    iterations: int
    demand_vph: float
    network: RoadNetwork
    pairs: tuple[tuple[Hashable, Hashable], ...]
    pair_vph: Floats
    solver: FlowSolver | DetourSolver
    edge_cost_s: Floats
    background: Floats | None = None
    max_detour: float | None = None
    equilibrium: "Assignment | None" = None

    def __repr__(self) -> str:
        detour = "" if self.max_detour is None else f", detours up to {self.max_detour:g}"
        return (
            f"<Assignment {self.objective}{detour}: {self.demand_vph:,.0f} vehicles an hour between "
            f"{len(self.pairs):,} pairs, mean {self.mean_travel_time_s:.1f} s, gap {self.relative_gap:.1e}>"
        )

    @property
    def mean_travel_time_s(self) -> float:
        """The mean over the vehicles assigned of the time on the way."""
        total = self.total_travel_time_s
        if self.background is not None:
            total -= float(self.background @ self.travel_time_s)
        return total / self.demand_vph

    @cached_property
    def marginal_cost_s(self) -> Floats:
        """What one more vehicle on each edge costs the others there, in seconds: the toll of the system optimum."""
        roads = self.network
        rise = roads.bpr_alpha * roads.bpr_beta * (self.flows / roads.capacity_vph) ** roads.bpr_beta
        return np.asarray(roads.free_flow_s * rise, dtype=np.float64)

    @cached_property
    def path_shares(self) -> PathShares:
        """The paths of every pair with their shares of its demand.

        Flows of edges do not determine flows of paths. These are few paths for each pair, which together make the
        flows; they are worked out when they are first asked for.
        """
        return self.solver.path_shares()

    def paths(self, origin: Hashable, destination: Hashable) -> list[tuple[tuple[int, ...], float]]:
        """Return the paths of a pair with their shares of its demand, the largest share first."""
        try:
            pair = self._number[origin, destination]
        except KeyError:
            raise InputError(f"no demand from {origin!r} to {destination!r} was assigned") from None
        found = self.path_shares
        rows = range(found.first[pair], found.first[pair + 1])
        paths = [
            (tuple(found.edges[found.indptr[p] : found.indptr[p + 1]].tolist()), float(found.shares[p])) for p in rows
        ]
        return sorted(paths, key=lambda entry: -entry[1])

    @cached_property
    def _number(self) -> dict[tuple[Hashable, Hashable], int]:
        return {pair: place for place, pair in enumerate(self.pairs)}

    @cached_property
    def inequality(self) -> Inequality:
        """How much longer drivers are on the way than on the path that is best for them now."""
        best = self.solver.cheapest_by_edge(self.driver_cost_s)
        return inequality_of(self.path_shares, self.pair_vph, self.driver_cost_s, best)

    @cached_property
    def detours(self) -> Inequality:
        """How much longer paths are than the best one at the equilibrium's times, which `max_detour` limits."""
        if self.equilibrium is None:
            raise InputError("detours are measured where there is a limit; use assign(..., 'system', max_detour=0.2)")
        usual = self.equilibrium.driver_cost_s
        return inequality_of(self.path_shares, self.pair_vph, usual, self.solver.cheapest_by_edge(usual))

    @cached_property
    def driver_cost_s(self) -> Floats:
        """What each edge costs who drives it: its travel time and its `edge_cost_s`."""
        return self.travel_time_s + self.edge_cost_s

    def table(self) -> "pd.DataFrame":
        """Return one row an edge, in edge order: ends, names, flow, capacity, their ratio v_c, times and delay."""
        from routesim.assignment.tables import edge_flows  # late: pandas takes a second

        return edge_flows(self)

    def path_flows(self) -> "pd.DataFrame":
        """Return one row a path, pair by pair: origin, destination, vehicles an hour, share, time, length, edges."""
        from routesim.assignment.tables import path_flows

        return path_flows(self)

    def skims(self) -> "pd.DataFrame":
        """Return one row a pair: vehicles an hour, mean time and length of its drivers, and the quickest time."""
        from routesim.assignment.tables import skims

        return skims(self)

    def select_link(self, edge: int) -> Floats:
        """Return the flow on every edge of the vehicles that use this one."""
        from routesim.assignment.tables import select_link

        return select_link(self, edge)

    def select_pairs(self, edge: int) -> "pd.DataFrame":
        """Return one row for each pair of which vehicles use this edge: how many, and their share of the pair."""
        from routesim.assignment.tables import select_pairs

        return select_pairs(self, edge)

    def summary(self) -> dict[str, Any]:
        """Return the assignment in a few numbers, among them how unequal it is."""
        numbers: dict[str, Any] = {
            "objective": self.objective,
            "demand_vph": self.demand_vph,
            "mean_travel_time_s": self.mean_travel_time_s,
            "total_travel_time_s": self.total_travel_time_s,
            "objective_value": self.objective_value,
            "relative_gap": self.relative_gap,
            "iterations": self.iterations,
            **self.inequality.named("excess"),
        }
        if self.max_detour is not None:
            numbers |= {"max_detour": self.max_detour, **self.detours.named("detour")}
        return numbers


def bpr_prices(roads: RoadNetwork, objective: Objective, edge_cost_s: Floats | None = None) -> Prices:
    """Return the travel times of a network, or the marginal ones, with what an edge costs besides, as prices."""
    # Fresh arrays, all writable: a read-only one would be another type to the compiler.
    steep = roads.free_flow_s * roads.bpr_alpha * (1.0 + roads.bpr_beta if objective == "system" else 1.0)
    base = roads.free_flow_s + (0.0 if edge_cost_s is None else edge_cost_s)
    alpha = np.divide(steep, base, out=np.zeros_like(steep), where=base > 0)
    return Prices(base, alpha, roads.capacity_vph.copy(), roads.bpr_beta.copy(), np.empty(0), np.empty((0, 0)))


def travel_times(network: RoadNetwork, flows: Floats) -> Floats:
    """Return the travel time of every edge at its flow in vehicles an hour."""
    rise = network.bpr_alpha * (flows / network.capacity_vph) ** network.bpr_beta
    return np.asarray(network.free_flow_s * (1.0 + rise), dtype=np.float64)


def load_cheapest(network: RoadNetwork, od: Any) -> Floats:
    """Return the flows if every vehicle takes the path that is quickest on empty roads: all or nothing."""
    solver = FlowSolver(network, od)
    solver.solve(bpr_prices(network, "user")._replace(alpha=np.zeros(network.n_edges)), 0.5, 0)
    return solver.flows


def _prepared(network: RoadNetwork, table: Any, background: ArrayLike | None, start: Assignment | None) -> FlowSolver:
    solver = FlowSolver(network, table, background)
    given = None if start is None else (start.equilibrium or start).solver
    if isinstance(given, FlowSolver):
        solver.take_over(given)
    return solver


def _limited(equilibrium: Assignment, max_detour: float | None) -> DetourSolver:
    assert isinstance(equilibrium.solver, FlowSolver) and max_detour is not None  # noqa: S101, PT018 - made by assign
    return DetourSolver(equilibrium.solver, equilibrium.driver_cost_s, max_detour)


def assign(
    network: RoadNetwork,
    od: Any,
    objective: Objective = "user",
    relative_gap: float = 1e-4,
    *,
    max_detour: float | None = None,
    edge_cost_s: ArrayLike | None = None,
    paths: bool = True,
    max_iterations: int = 10_000,
    background: ArrayLike | None = None,
    start: Assignment | None = None,
) -> Assignment:
    """Assign demand to roads: the user equilibrium, or the system optimum.

    `od` is a table with the columns origin, destination and vehicles (an hour), or a `Demand`. Travel times follow
    each road's own BPR curve, and `edge_cost_s` adds what else an edge costs (a toll, its length), in seconds. In
    the equilibrium (`"user"`) no vehicle could be better off on another path; the optimum (`"system"`) has the least
    total. Nodes that carry no through traffic carry none, and banned turns are not taken. A pair that no path joins
    is a NoPathError; a gap not reached within `max_iterations` is a NotConvergedWarning. Vehicles of the `background`
    (an hour, one number per edge) stay where they are, and the optimum is that of all.

    `max_detour=0.2` looks for the optimum among paths that cost at most 1.2 times what the pair's best path costs at
    the times of the equilibrium, or are used there. `paths=False` leaves paths to be worked out when they are asked
    for, which saves memory with millions of pairs. From `start`, an assignment between the same places, the
    solution is found sooner.

    >>> import networkx as nx
    >>> graph = nx.MultiDiGraph()
    >>> for seconds in (60.0, 80.0):
    ...     _ = graph.add_edge("home", "work", free_flow_s=seconds, capacity_vph=600.0)
    >>> network = RoadNetwork.from_networkx(graph)
    >>> od = {"origin": ["home"], "destination": ["work"], "vehicles": [1200.0]}
    >>> [round(assign(network, od, objective).mean_travel_time_s, 1) for objective in ("user", "system")]
    [83.4, 79.8]
    """
    if objective not in ("user", "system"):
        raise InputError(f'the objective is "user" or "system", got {objective!r}')
    if not 0 < relative_gap < 1:
        raise InputError(f"relative_gap must lie between 0 and 1, got {relative_gap}")
    if max_detour is not None and not (objective == "system" and max_detour >= 0):
        raise InputError(
            f'max_detour must be at least 0 and belongs to the objective "system", got {max_detour} and "{objective}"'
        )
    table = od.per_hour() if isinstance(od, Demand) else od
    costs = by_edge("edge_cost_s", edge_cost_s, network, "seconds")
    equilibrium = None
    if max_detour is not None and np.isfinite(max_detour):
        gap = min(relative_gap, _EQUILIBRIUM_GAP)
        equilibrium = assign(
            network, table, "user", gap, edge_cost_s=costs, paths=False,
            max_iterations=max_iterations, background=background, start=start,
        )  # fmt: skip
    prices = bpr_prices(network, objective, costs)
    solver = _prepared(network, table, background, start) if equilibrium is None else _limited(equilibrium, max_detour)
    gap, iterations = solver.solve(prices, relative_gap, max_iterations)
    if gap > relative_gap:
        warnings.warn(
            f"the relative gap is {gap:.3g} after {iterations} iterations, above {relative_gap:g}; "
            "raise max_iterations or relative_gap",
            NotConvergedWarning,
            stacklevel=2,
        )
    times = np.empty(network.n_edges)
    total = prices_at(bpr_prices(network, "user"), solver.flows, times)
    made = Assignment(
        objective=objective,
        flows=solver.flows,
        travel_time_s=times,
        total_travel_time_s=total,
        objective_value=objective_at(prices, solver.flows),
        relative_gap=gap,
        iterations=iterations,
        demand_vph=float(solver.pairs.demand.sum()),
        network=network,
        pairs=solver.labels,
        pair_vph=solver.pairs.demand,
        solver=solver,
        edge_cost_s=costs,
        background=None if background is None else solver.background,
        max_detour=max_detour,
        equilibrium=equilibrium,
    )
    if paths:
        _ = made.path_shares
    return made
