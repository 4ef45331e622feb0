"""Static traffic assignment: flows in which no driver, or the town as a whole, could do better."""

import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from routesim.arrays import Floats
from routesim.assignment.contraction import contract
from routesim.assignment.frank_wolfe import Prices, advance, objective_at, prices_at
from routesim.assignment.trees import Pairs, Paths, load_all, owners
from routesim.checks import numbers
from routesim.demand.demand import Demand, read_od, resolve
from routesim.errors import InputError, NoPathError, NotConvergedWarning
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import Workspace

Objective: TypeAlias = Literal["user", "system"]


class PathShares(NamedTuple):
    """Paths by pair: pair i uses the paths first[i] … first[i + 1] - 1, each with its share of the pair's demand.

    Path p is edges[indptr[p] : indptr[p + 1]], from origin to destination.
    """

    first: NDArray[np.int64]
    shares: Floats
    indptr: NDArray[np.int64]
    edges: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Assignment:
    """Flows in vehicles an hour, one per edge, and what they cost.

    `travel_time_s` is each edge's travel time at its flow, `total_travel_time_s` the vehicle-seconds spent per
    hour. `objective_value` is what was minimised, in vehicle-seconds per hour: for "user" Beckmann's sum of
    integrals of the travel times, for "system" the total travel time. `relative_gap` is the share of the price
    paid that would be saved if everybody took the cheapest path at present prices: travel times for "user",
    marginal travel times for "system". Where there is a `background`, flows and totals include it.
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
    path_shares: PathShares
    background: Floats | None = None

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


def assign(
    network: RoadNetwork,
    od: Any,
    objective: Objective = "user",
    relative_gap: float = 1e-4,
    *,
    max_iterations: int = 10_000,
    background: ArrayLike | None = None,
) -> Assignment:
    """Assign demand to roads: the user equilibrium, or the system optimum.

    `od` is a table with the columns origin, destination and vehicles (an hour), or a `Demand`. Travel times follow
    each road's own BPR curve. In the equilibrium (`"user"`) no vehicle could be quicker on another path; the
    optimum (`"system"`) has the least total travel time. Nodes that carry no through traffic carry none. A pair
    that no path joins is a NoPathError; a gap not reached within `max_iterations` is a
    NotConvergedWarning. Vehicles of the `background` (an hour, one number per edge) stay where they are, and the
    optimum is that of all.

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
    table = od.per_hour() if isinstance(od, Demand) else od
    solver = FlowSolver(network, table, background)
    prices = solver.bpr(objective)
    gap, iterations = solver.solve(prices, relative_gap, max_iterations)
    if gap > relative_gap:
        warnings.warn(
            f"the relative gap is {gap:.3g} after {iterations} iterations, above {relative_gap:g}; "
            "raise max_iterations or relative_gap",
            NotConvergedWarning,
            stacklevel=2,
        )
    times = np.empty(network.n_edges)
    total = prices_at(solver.bpr("user"), solver.flows, times)
    return Assignment(
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
        path_shares=solver.path_shares(),
        background=None if background is None else solver.background,
    )


def travel_times(network: RoadNetwork, flows: Floats) -> Floats:
    """Return the travel time of every edge at its flow in vehicles an hour."""
    rise = network.bpr_alpha * (flows / network.capacity_vph) ** network.bpr_beta
    return np.asarray(network.free_flow_s * (1.0 + rise), dtype=np.float64)


def load_cheapest(network: RoadNetwork, od: Any) -> Floats:
    """Return the flows if every vehicle takes the path that is quickest on empty roads: all or nothing."""
    solver = FlowSolver(network, od)
    none = np.zeros(network.n_edges)
    solver.solve(solver.bpr("user")._replace(alpha=none), 1.0, 0)
    return solver.flows


class FlowSolver:
    """The flows of one demand on one network; solved again at other prices, it starts from where it is."""

    def __init__(self, network: RoadNetwork, table: Any, background: ArrayLike | None = None) -> None:
        self.background = np.zeros(network.n_edges) if background is None else numbers("background", background)
        if self.background.shape != (network.n_edges,) or (self.background < 0).any():
            raise InputError(
                f"background must be vehicles an hour of at least 0, one number for each of {network.n_edges} edges; "
                f"got shape {self.background.shape}, the least {self.background.min(initial=0.0):g}"
            )
        places, origins, destinations, vehicles = read_od(table)
        if not len(vehicles):
            raise InputError("an assignment needs demand, got a table without vehicles")
        nodes = resolve(network, places)
        order = np.lexsort((nodes[destinations], nodes[origins]))
        starts, goals = nodes[origins[order]], nodes[destinations[order]]
        new = np.concatenate(([True], (np.diff(starts) != 0) | (np.diff(goals) != 0)))
        demand = np.add.reduceat(vehicles[order], np.flatnonzero(new))  # rows of one pair are added up
        starts, goals = starts[new], goals[new]
        kept = order[new]
        self.labels = tuple((places[origins[row]], places[destinations[row]]) for row in kept)
        roots, first = np.unique(starts, return_index=True)
        self.network = network
        self._links = contract(network, np.union1d(starts, goals))
        number = self._links.number
        self.pairs = Pairs(number[roots], np.append(first, len(starts)).astype(np.int64), number[goals], demand)
        self.flows = self.background.copy()
        self._paths = Paths.none_yet(len(goals))
        self._trees = np.full((len(roots), len(self._links.junctions)), -1, dtype=np.int32)
        self._work = Workspace.build(self._links.graph)
        self._link_flows = np.empty(len(self._links.first) - 1)
        self._started = False

    def bpr(self, objective: Objective) -> Prices:
        """Return the travel times of the network, or the marginal ones, as prices."""
        roads = self.network
        # Fresh arrays, all writable: a read-only one would be another type to the compiler.
        alpha = roads.bpr_alpha * (1.0 + roads.bpr_beta if objective == "system" else 1.0)
        return Prices(
            roads.free_flow_s.copy(),
            alpha,
            roads.capacity_vph.copy(),
            roads.bpr_beta.copy(),
            np.empty(0),
            np.empty((0, 0)),
        )

    def solve(self, prices: Prices, relative_gap: float, max_iterations: int) -> tuple[float, int]:
        """Move the flows until the gap is small enough; return the gap and the number of iterations."""
        at_flows = np.empty_like(self.flows)
        last, before = np.zeros_like(self.flows), np.zeros_like(self.flows)
        memory = np.zeros(2)
        if not self._started:
            prices_at(prices, self.flows, at_flows)
            self._load(at_flows)
            self.flows = self._links.spread(self._link_flows, self.network.n_edges) + self.background
            self._paths.shares[0, self._paths.cheapest] = 1.0
            self._started = True
        iterations = 0
        while True:
            paid = prices_at(prices, self.flows, at_flows) - float(at_flows @ self.background)
            least = self._load(at_flows)
            # Rounding can leave the price paid a hair below the least possible.
            gap = max(0.0, (paid - least) / paid) if paid > 0 else 0.0
            if not np.isfinite(gap):
                raise InputError("travel times overflow at this demand; check the units of vehicles and capacity_vph")
            if gap <= relative_gap or iterations >= max_iterations:
                return gap, iterations
            loaded = self._links.spread(self._link_flows, self.network.n_edges) + self.background
            advance(prices, at_flows, self.flows, loaded, last, before, self._paths, memory)
            iterations += 1

    def _load(self, at_flows: Floats) -> float:
        """Send all demand down the links of the cheapest paths; return the price paid for it."""
        links = self._links
        paid, stuck, self._paths = load_all(
            links.graph, self.pairs, links.prices(at_flows), self._trees, self._work, self._paths, self._link_flows
        )
        if stuck >= 0:
            origin, destination = self.labels[stuck]
            raise NoPathError(
                f"no path leads from {origin!r} to {destination!r}, between which {self.pairs.demand[stuck]:g} "
                "vehicles an hour want to go; leave the pair out or connect it"
            )
        return paid

    def path_shares(self, least: float = 1e-6) -> PathShares:
        """Return the paths of every pair; shares below `least` are given to the others."""
        paths = self._paths
        owner = owners(paths)
        chosen = np.flatnonzero(paths.shares[0, : len(owner)] >= least)
        rows = chosen[np.argsort(owner[chosen], kind="stable")]
        first = np.searchsorted(owner[rows], np.arange(len(self.labels) + 1))
        shares = paths.shares[0, rows]
        shares = shares / np.repeat(np.add.reduceat(shares, first[:-1]), np.diff(first))
        lengths = paths.length[rows].astype(np.int64)
        ends = np.concatenate(([0], np.cumsum(lengths)))
        # The links of a path are stored from the goal back, so each path is read from its end.
        back = np.arange(ends[-1]) - np.repeat(ends[:-1], lengths)
        used = paths.links[np.repeat(paths.start[rows] + lengths - 1, lengths) - back]
        links = self._links
        sizes = np.diff(links.first)[used]
        stops = np.concatenate(([0], np.cumsum(sizes)))
        place = np.arange(stops[-1]) - np.repeat(stops[:-1] - links.first[used], sizes)
        return PathShares(first, shares, stops[ends], links.members[place])
