"""The queue engine: roads that pass only so many vehicles, hold only so many, and hold back those behind.

Every road passes vehicles in order, no faster than its capacity, and stores no more than fit on its lanes. Queues form
where more come than pass, spill back when a road is full, and dissolve from the front backwards.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints32
from routesim.errors import InputError
from routesim.roads.network import RoadNetwork
from routesim.traffic.engines import queue_kernel as core
from routesim.traffic.engines import queue_state as state
from routesim.traffic.engines.agenda import Agenda
from routesim.traffic.engines.base import Setting
from routesim.traffic.engines.choice import Beliefs, Search
from routesim.traffic.engines.compiled import CompiledEngine
from routesim.traffic.engines.fleet import Fleet
from routesim.traffic.engines.queue_changes import change_roads
from routesim.traffic.engines.queue_roads import Greens, build_lines, build_roads, capacities
from routesim.traffic.engines.records import EdgeLoads, Occupancy, Teaching
from routesim.traffic.engines.signals import signal_greens

_DAY_S = 86_400


@dataclass(frozen=True)
class Queue:
    """Roads with capacity, storage and spillback.

    `jam_density_per_km` is the number of vehicles that stand on a kilometre of one lane and `wave_kph` the speed at
    which a jam dissolves backwards. A vehicle that could not enter its next road for `stuck_s` seconds moves by force,
    which `Traffic.forced_moves` counts; at most a day, or inf for never. With `lanes` every lane has a queue of its
    own, which passes `saturation_vph` vehicles an hour where the network has no capacity of its own; without, a road
    has one queue and the network's capacity. With `signals`, the nodes of `network.signals` have traffic lights: with
    the times of `network.signal_times` where they are known, else with a default programme that repeats every `cycle_s`
    seconds; see `routesim.traffic.engines.signals`. `headway_noise` is the standard deviation of the logarithm of a
    factor with mean 1 on the time between two exits.
    """

    jam_density_per_km: float = 140.0
    wave_kph: float = 18.0
    stuck_s: float = 600.0
    lanes: bool = True
    signals: bool = True
    cycle_s: float = 90.0
    saturation_vph: float = 1800.0
    headway_noise: float = 0.0

    name: ClassVar[str] = "queue"
    has_static_references: ClassVar[bool] = False

    def __post_init__(self) -> None:
        limits = {"jam_density_per_km": (1.0, 1000.0), "wave_kph": (1.0, 200.0), "saturation_vph": (1.0, 1e5)}
        limits["cycle_s"] = (20.0, 600.0)
        for name, (least, most) in limits.items():
            if not least <= getattr(self, name) <= most:
                raise InputError(f"{name} lies between {least:g} and {most:g}, got {getattr(self, name)}")
        if not (0 < self.stuck_s <= _DAY_S or self.stuck_s == np.inf):
            # Every time bin is written down while vehicles stand still, so that a run must not stand still for years.
            raise InputError(
                f"stuck_s lies above 0 and at most at a day, {_DAY_S} seconds, or is inf: never; got {self.stuck_s}"
            )
        if not 0 <= self.headway_noise <= 3:
            raise InputError(f"headway_noise lies between 0 and 3, got {self.headway_noise}")

    @property
    def label(self) -> str:
        """What results call it."""
        detail = {(True, True): "lanes and signals", (True, False): "lanes, no signals", (False, True): "signals"}
        return f"queue ({detail.get((self.lanes, self.signals), 'plain: no lanes, no signals')})"

    def check(self, network: RoadNetwork, window_s: float) -> None:
        """Accept any roads."""

    def static_roads(self, network: RoadNetwork) -> RoadNetwork:
        """Return the roads with the mean wait for green, and what they pass here as capacity.

        A queue has no static travel time above capacity. So that plans keep below it, a road at capacity takes twice
        its time (BPR with alpha 1 and beta 4), the best of seven curves that were tried in Monaco.
        """
        greens = self.greens(network)
        ones = np.ones(network.n_edges)
        return replace(
            network,
            free_flow_s=network.free_flow_s + greens.wait_s,
            capacity_vph=capacities(network, self, greens).exit_vph * greens.share,
            bpr_alpha=ones,
            bpr_beta=4.0 * ones,
        )

    def greens(self, network: RoadNetwork) -> Greens:
        """Return the signals at the ends of the roads."""
        return signal_greens(network, self.cycle_s) if self.signals else Greens.none(network.n_edges)

    def engine(self, setting: Setting) -> "QueueEngine":
        """Return an engine with empty roads."""
        return QueueEngine(setting, self)


@dataclass(frozen=True)
class PlainQueue(Queue):
    """Roads with capacity, storage and spillback, one queue each, and no signals."""

    lanes: bool = False
    signals: bool = False

    name: ClassVar[str] = "plain-queue"


class QueueEngine(CompiledEngine):
    """Queues at work."""

    _world: state.QueueWorld

    def __init__(self, setting: Setting, physics: Queue) -> None:
        network, n_edges, n_vehicles = setting.network, setting.network.n_edges, setting.n_vehicles
        _, goal_row = np.unique(setting.destinations, return_inverse=True)
        greens = physics.greens(network)
        found = capacities(network, physics, greens)
        lines, costs = build_lines(found, n_vehicles), setting.trip_costs
        rates = None if costs is None else costs.costs / network.free_flow_s
        world = state.QueueWorld(
            rules=state.QueueRules(
                setting.bin_s,
                setting.noise,
                physics.headway_noise,
                setting.noise_seed,
                setting.reroute_s if setting.reroutes.any() else 0.0,
                physics.stuck_s,
            ),
            clock=np.zeros(4, dtype=np.int64),
            agenda=Agenda.build(len(lines.who) + n_edges),
            fleet=Fleet.build(setting, goal_row),
            lines=lines,
            roads=build_roads(network, found, greens, n_vehicles),
            signals=greens.rows,
            loads=EdgeLoads.build(n_edges),
            standing=Occupancy.build(n_edges),
            search=Search.build(network.graph),
            beliefs=Beliefs.build(n_edges),
            teaching=Teaching.build(setting.feedback, n_edges, rates, queueing=n_vehicles),
        )
        super().__init__(setting, core.drive, world)
        self.lessons = replace(self.lessons, counted="vehicles")

    def _make_room(self, need: int) -> None:  # noqa: ARG002 - there is one need
        world = self._world
        self._world = world._replace(loads=world.loads.with_room(), standing=world.standing.with_room())

    def _change(self, before: Floats, now_s: float, next_s: float) -> None:  # noqa: ARG002 - nobody waits for it
        change_roads(self._world, before, self._share, now_s)

    def counts(self, now_s: float) -> NDArray[np.int32]:  # noqa: ARG002 - the roads are as they are
        """Return the vehicles on every edge."""
        numbers = self._world.roads.numbers
        return (numbers[:, state.IN] - numbers[:, state.OUT]).astype(np.int32)

    def time_at(self, counts: NDArray[Any]) -> Floats:
        """Return the travel time of every edge with so many vehicles on it, if nothing behind it holds them back."""
        return self._network.free_flow_s * self.multiplier(np.arange(self._network.n_edges), counts)

    def multiplier(self, edges: NDArray[Any], counts: NDArray[Any]) -> Floats:
        """Return the travel times of some edges with so many vehicles on them, relative to free flow."""
        roads, free_flow = self._world.roads, np.maximum(self._network.free_flow_s[edges], core.LEAST_S)
        queue = (np.asarray(counts) + 0.5) * roads.headway_s[edges]
        return np.asarray(np.maximum(free_flow + roads.red_s[edges], queue) / free_flow, dtype=np.float64)

    def _held_back(self) -> tuple[int, Ints32]:
        return int(self._world.clock[state.FORCED]), self._world.standing.all_rows()
