"""What the queue engine makes of a network: lanes and their headways, storage, waves, and signals."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from routesim.arrays import Bools, Floats, Ints, Ints32
from routesim.roads.network import RoadNetwork
from routesim.roads.turns import allowed_turns
from routesim.traffic.engines import queue_state as core

if TYPE_CHECKING:
    from routesim.traffic.engines.queue import Queue

MOST_LANES = 16


class Capacities(NamedTuple):
    """What each road passes and holds."""

    lanes: Ints  # lines of vehicles side by side
    abreast: Ints  # vehicles that enter side by side
    exit_vph: Floats  # while it is green
    entry_vph: Floats
    wave_s: Floats
    storage: Ints  # 0 where it is not limited


def capacities(network: RoadNetwork, physics: "Queue", signals: "Greens") -> Capacities:
    """Return what each road passes and holds under this physics."""
    lanes = np.clip(np.round(network.lanes), 1, MOST_LANES).astype(np.int64)
    # The capacity of a road with signals is what it passes in an hour, red times included.
    exit_vph = network.capacity_vph / signals.share
    if physics.lanes:
        # A capacity that stands for a class of roads already has the green share of signals in it, of all roads of the
        # class; here signals are where they are, and a lane passes what it passes while it is green.
        exit_vph = np.where(network.imputed("capacity"), physics.saturation_vph * lanes, exit_vph)
    mean_vph = exit_vph * signals.share
    length = np.nan_to_num(network.length_m)
    per_lane = physics.jam_density_per_km / 1000.0
    wave_mps = physics.wave_kph / 3.6
    wave_s = length / wave_mps
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.where(network.free_flow_s > 0, length / network.free_flow_s, np.inf)
        # The largest flow of the triangular diagram of these speeds and this density.
        diagram = 3600.0 * network.lanes * per_lane * wave_mps / (1.0 + wave_mps / speed)
    entry_vph = np.maximum(exit_vph, np.where(length > 0, diagram, physics.saturation_vph * network.lanes))
    storage = np.floor(network.lanes * length * per_lane)
    own = np.ceil(mean_vph * (network.free_flow_s + wave_s + signals.wait_s) / 3600.0)
    free = (length == 0) | network.no_through[network.tails] | network.no_through[network.heads]
    limited = np.where(free, 0.0, np.maximum(np.maximum(storage, own), 1.0))
    return Capacities(
        lanes if physics.lanes else np.ones_like(lanes), lanes, exit_vph, entry_vph, wave_s, limited.astype(np.int64)
    )


class Greens(NamedTuple):
    """The signals at the ends of roads as the core reads them, with their mean effect on each road."""

    rows: core.SignalRows
    share: Floats  # of the time it is green
    wait_s: Floats  # of a vehicle that arrives at any moment

    @classmethod
    def none(cls, n_edges: int) -> "Greens":
        """Return roads without signals."""
        rows = core.SignalRows(
            np.zeros(n_edges + 1, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0), np.empty(0), np.empty(0)
        )
        return cls(rows, np.ones(n_edges), np.zeros(n_edges))


def build_roads(network: RoadNetwork, found: Capacities, greens: Greens, n_vehicles: int) -> core.QueueRoads:
    """Return the roads without vehicles."""
    n_edges = network.n_edges
    # A road that stores all vehicles there are limits nobody.
    storage = np.where(found.storage >= n_vehicles, 0, found.storage)
    numbers = np.zeros((n_edges, 8), dtype=np.int64)
    numbers[:, core.STORAGE] = storage
    numbers[:, core.RING] = np.cumsum(storage) - storage
    numbers[:, core.WAITS] = numbers[:, core.LAST_WAITS] = -1
    numbers[:, core.LANE] = np.cumsum(found.lanes) - found.lanes
    numbers[:, core.LANES] = found.lanes
    headway = 3600.0 / (found.exit_vph * greens.share)
    flows = np.zeros((n_edges, 9))
    flows[:, core.FREE_S] = network.free_flow_s
    flows[:, core.GAP_S] = 3600.0 / found.entry_vph
    flows[:, core.SPREAD_S] = (found.abreast - 1) * flows[:, core.GAP_S]
    flows[:, core.WAVE_S] = found.wave_s
    flows[:, core.LAST_IN] = -np.inf
    flows[:, core.PACE_S] = headway
    leaves, arrives = directions(network)
    return core.QueueRoads(
        graph=network.graph,
        numbers=numbers,
        flows=flows,
        ring=np.full(int(storage.sum()), -np.inf),
        headway_s=headway,
        red_s=greens.wait_s.copy(),
        closed=np.zeros(n_edges, dtype=np.bool_),
        lanes=turn_lanes(network, found.lanes, leaves, arrives),
        leaves=leaves,
        arrives=arrives,
    )


def build_lines(found: Capacities, n_vehicles: int) -> core.VehicleLines:
    """Return the lines of all lanes and of those outside the roads, without vehicles."""
    n_edges, lanes = len(found.lanes), int(found.lanes.sum())
    who = np.full((lanes + n_edges, 8), -1, dtype=np.int32)
    who[:, core.SIZE] = 0
    who[:lanes, core.EDGE] = np.repeat(np.arange(n_edges), found.lanes)
    who[lanes:, core.EDGE] = np.arange(n_edges)
    when = np.zeros((lanes + n_edges, 6))
    when[:, core.CLEAR_S] = -np.inf
    when[:, core.SINCE_S] = np.inf
    when[:lanes, core.HEADWAY] = np.repeat(3600.0 * found.lanes / found.exit_vph, found.lanes)
    when[:lanes, core.STEP] = when[:lanes, core.HEADWAY]
    # Where all lanes of a road are one line, as many leave side by side.
    when[:lanes, core.SLACK_S] = np.repeat(found.abreast - found.lanes, found.lanes) * when[:lanes, core.HEADWAY]
    when[lanes:, core.STEP] = 3600.0 / found.exit_vph
    return core.VehicleLines(who, when, np.full(n_vehicles, -1, dtype=np.int32), np.zeros(n_vehicles))


def directions(network: RoadNetwork) -> tuple[Floats, Floats]:
    """Return the directions in which roads leave and arrive, in radians against the clock from the east; 0 unknown."""
    start, end = network.shape_offsets[:-1], network.shape_offsets[1:]
    drawn = end > start

    def heading(first: Ints, second: Ints, from_node: Ints32, to_node: Ints32) -> Floats:
        x, y = network.x, network.y
        dx, dy = x[to_node] - x[from_node], y[to_node] - y[from_node]
        if drawn.any():
            line = network.shape_xy
            dx[drawn] = line[second[drawn], 0] - line[first[drawn], 0]
            dy[drawn] = line[second[drawn], 1] - line[first[drawn], 1]
        if network.is_geographic:
            dx = dx * np.cos(np.radians(y[from_node]))
        return np.nan_to_num(np.arctan2(dy, dx))

    leaves = heading(start, start + 1, network.tails, network.heads)
    arrives = heading(end - 2, end - 1, network.tails, network.heads)
    return leaves, arrives


def turn_lanes(network: RoadNetwork, n_lanes: Ints, leaves: Floats, arrives: Floats) -> Ints32:
    """Return, for each road and each of right, straight and left, its first lane and the one after the last.

    Lane 0 is the rightmost. Where a road goes straight on, all lanes do, the outermost also turn; where it only turns
    both ways, each half of the lanes turns one way, the middle one both.
    """
    edge, to = allowed_turns(network)
    turn = (leaves[to] - arrives[edge] + np.pi) % (2 * np.pi) - np.pi
    quarter = np.pi / 4

    def any_of(which: Bools) -> Bools:
        found = np.zeros(network.n_edges, dtype=np.bool_)
        found[edge[which]] = True
        return found

    straight = any_of(np.abs(turn) <= quarter)
    right, left = any_of(turn < -quarter), any_of(turn > quarter)
    lanes = np.zeros((network.n_edges, 6), dtype=np.int32)
    lanes[:, 1::2] = n_lanes[:, np.newaxis]
    both = right & left & ~straight
    lanes[:, 1] = np.where(straight, 1, np.where(both, (n_lanes + 1) // 2, n_lanes))
    lanes[:, 4] = np.where(straight, n_lanes - 1, np.where(both, n_lanes // 2, 0))
    return lanes
