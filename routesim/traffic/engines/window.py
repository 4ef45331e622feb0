"""The window engine: on entering, a vehicle sees how many others entered the road in the last `window_s` seconds.

The edge then takes free_flow_s x congestion(count) x noise, at least a millisecond. Entries at exactly the time of the
vehicle's own count only where their event came first. Roads hold nothing back: this is the paper's world carried over
to continuous time, and no model of queues.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats
from routesim.checks import BPR_LIMITS, within
from routesim.congestion import BPR, CongestionFunction
from routesim.errors import InputError
from routesim.roads.network import RoadNetwork
from routesim.traffic.engines import window_kernel as core
from routesim.traffic.engines.base import Setting
from routesim.traffic.engines.choice import Beliefs, Search
from routesim.traffic.engines.compiled import WANTED, CompiledEngine
from routesim.traffic.engines.event_queue import empty_queue
from routesim.traffic.engines.fleet import Fleet
from routesim.traffic.engines.records import EdgeLoads, Teaching
from routesim.traffic.engines.window_counts import Windows, counts_now


@dataclass(frozen=True)
class Window:
    """Travel times by the count of entries in the window.

    `congestion` multiplies the free-flow time by the count. `BPR()` reads it as a flow, count / window_s, against each
    road's own capacity, alpha and beta; `BPR(capacity=...)` takes a capacity in entries per window.
    `overtaking=False` makes vehicles leave an edge in the order they entered it.
    """

    congestion: CongestionFunction = BPR()  # noqa: RUF009 - frozen
    overtaking: bool = True

    name: ClassVar[str] = "window"
    label: ClassVar[str] = "window count"

    @property
    def has_static_references(self) -> bool:
        """Whether roads congest as static assignments assume: by BPR with their own capacities."""
        return isinstance(self.congestion, BPR) and self.congestion.capacity is None

    def check(self, network: RoadNetwork, window_s: float) -> None:
        """Refuse a congestion function that does not fit the roads."""
        CountLaw(network, self.congestion, window_s)

    def static_roads(self, network: RoadNetwork) -> RoadNetwork:
        """Return the roads as they are."""
        return network

    def engine(self, setting: Setting) -> "WindowEngine":
        """Return an engine with empty roads."""
        return WindowEngine(setting, self)


class CountLaw:
    """What a count makes of each edge's travel time: a BPR curve with numbers by edge, or a table by count."""

    def __init__(self, network: RoadNetwork, congestion: CongestionFunction, window_s: float) -> None:
        self._network, self._congestion = network, congestion
        self.bpr = None
        if not isinstance(congestion, BPR):
            return
        if congestion.capacity is None:
            if not (np.ndim(congestion.alpha) == 0 == np.ndim(congestion.beta)) or (
                (congestion.alpha, congestion.beta) != (BPR().alpha, BPR().beta)
            ):
                raise InputError(
                    "BPR without a capacity takes each road's own alpha and beta; give BPR(capacity=...) too"
                )
            per_window = within(
                f"capacity_vph x window_s / 3600, vehicles in a window of {window_s:g} s",
                network.capacity_vph / 3600.0 * window_s,
                *BPR_LIMITS["capacity"],
            )
            self.bpr = network.bpr_alpha.copy(), per_window, network.bpr_beta.copy()
        else:
            self.bpr = self._by_edge("alpha"), self._by_edge("capacity"), self._by_edge("beta")

    def _by_edge(self, name: str) -> Floats:
        given = np.asarray(getattr(self._congestion, name), dtype=np.float64)
        if given.shape not in ((), (self._network.n_edges,)):
            raise InputError(f"BPR's {name} is one number or one for each of {self._network.n_edges} edges")
        return np.ascontiguousarray(np.broadcast_to(given, (self._network.n_edges,))).copy()

    def table(self, counts: int) -> Floats:
        """Return the multipliers at 0 … counts - 1, one row for all edges or one each, once they keep the rules."""
        values = np.asarray(self._congestion(np.arange(counts)[np.newaxis, :]), dtype=np.float64)
        values = np.atleast_2d(values)
        if values.shape not in ((1, counts), (self._network.n_edges, counts)):
            raise InputError(
                f"the congestion function returned shape {values.shape} for {counts} counts on "
                f"{self._network.n_edges} edges; it must work element by element, for one row or one per edge"
            )
        if not np.isfinite(values).all() or (values <= 0).any() or (np.diff(values, axis=1) < -1e-12).any():
            raise InputError(
                "a congestion function multiplies travel times here: its values must be finite, above 0 and must "
                f"not fall with the count; got {values[0, :4].tolist()} … at counts 0, 1, 2, 3, …"
            )
        return np.ascontiguousarray(values)

    def multiplier(self, edges: NDArray[Any], counts: NDArray[Any], share: Floats) -> Floats:
        """Return the travel times of some edges at some counts relative to free flow, with a share of their capacity.

        A table by count is read with a straight line between counts.
        """
        loads = np.asarray(counts, dtype=np.int64) / share[edges]
        if self.bpr is not None:
            alpha, capacity, beta = (values[edges] for values in self.bpr)
            return np.asarray(1.0 + alpha * (loads / capacity) ** beta, dtype=np.float64)
        low = loads.astype(np.int64)
        table = self.table(int(low.max(initial=0)) + 2)
        rows = edges if len(table) > 1 else 0
        below = table[rows, low]
        return np.asarray(below + (loads - low) * (table[rows, low + 1] - below), dtype=np.float64)


class WindowEngine(CompiledEngine):
    """The window count at work."""

    _world: core.World

    def __init__(self, setting: Setting, physics: Window) -> None:
        self._law = CountLaw(setting.network, physics.congestion, setting.window_s)
        _, goal_row = np.unique(setting.destinations, return_inverse=True)
        clock = np.zeros(4, dtype=np.int64)
        clock[core.SERIAL] = setting.n_vehicles
        n_edges, costs = setting.network.n_edges, setting.trip_costs
        rates = None if costs is None else costs.costs / setting.network.free_flow_s
        world = core.World(
            rules=core.Rules(
                setting.window_s,
                setting.bin_s,
                setting.noise,
                setting.noise_seed,
                setting.reroute_s if setting.reroutes.any() else 0.0,
            ),
            clock=clock,
            queue=empty_queue(setting.n_vehicles),
            fleet=Fleet.build(setting, goal_row),
            roads=self._roads(setting, physics.overtaking),
            windows=Windows.build(n_edges),
            loads=EdgeLoads.build(n_edges),
            search=Search.build(setting.network.graph),
            beliefs=Beliefs.build(n_edges),
            wanted=np.empty(1, dtype=np.int64),
            teaching=Teaching.build(setting.feedback, n_edges, rates),
        )
        super().__init__(setting, core.drive, world)

    def _roads(self, setting: Setting, overtaking: bool) -> core.Roads:
        network, law = setting.network, self._law
        changing = network.n_edges if setting.incidents else 0
        alpha, capacity, beta = law.bpr or (np.empty(0), np.empty(0), np.empty(0))
        return core.Roads(
            graph=network.graph,
            free_flow=network.free_flow_s.copy(),  # writable: a read-only array would be another type to the compiler
            alpha=alpha,
            per_capacity=1.0 / capacity,
            beta=beta,
            table=np.empty((0, 0)) if law.bpr is not None else law.table(64),
            last_exit=np.empty(0) if overtaking else np.zeros(network.n_edges),
            scale=np.ones(0 if law.bpr is not None else changing),
            closed=np.zeros(changing, dtype=np.bool_),
            next_change_s=np.full(1, np.inf),
        )

    def _make_room(self, need: int) -> None:
        world = self._world
        if need == core.ENTRIES:
            self._world = world._replace(windows=world.windows.with_room())
        elif need == core.LOADS:
            self._world = world._replace(loads=world.loads.with_room())
        else:
            table = self._law.table(2 * (int(world.clock[WANTED]) + 1))
            self._world = world._replace(roads=world.roads._replace(table=table))

    def _change(self, before: Floats, now_s: float, next_s: float) -> None:  # noqa: ARG002 - counts go on as they are
        roads = self._world.roads
        roads.closed[:], roads.next_change_s[0] = self._share == 0, next_s
        scale = 1.0 / self._open_share()
        if self._law.bpr is None:
            roads.scale[:] = scale
        else:
            roads.per_capacity[:] = scale / self._law.bpr[1]

    def _open_share(self) -> Floats:
        """Return the shares of capacity, of closed roads those of the time when they open."""
        return np.where(self._share > 0, self._share, 1.0)

    def counts(self, now_s: float) -> NDArray[np.int32]:
        """Return the entries into every edge during the last `window_s` seconds."""
        out = np.empty(self._network.n_edges, dtype=np.int32)
        counts_now(self._world.windows, now_s - self._setting.window_s, out)
        return out

    def time_at(self, counts: NDArray[Any]) -> Floats:
        """Return the travel time of every edge at these counts."""
        return self._network.free_flow_s * self.multiplier(np.arange(self._network.n_edges), counts)

    def multiplier(self, edges: NDArray[Any], counts: NDArray[Any]) -> Floats:
        """Return the travel times of some edges at some counts, relative to free flow."""
        return self._law.multiplier(edges, counts, self._open_share())
