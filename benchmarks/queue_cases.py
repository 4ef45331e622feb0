"""The roads and trips of `benchmarks.queues`, and how each engine runs them."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.assignment import tntp_folder
from benchmarks.traffic import LENGTH_M, SECONDS, SPEED_MS, grid_links, pairs_and_times

JAM_PER_M, WAVE_MS = 0.2, 5.0
FULL_VPH = 2700.0  # what the triangular diagram of these speeds and this density passes
CYCLE_S = 90.0
GREEN_SHARE = 4 / 9  # of each of two crossing streets of equal width under routesim's default programme
OURS, PLAIN, LANES = "routesim", "plain-queue", "queue"


@dataclass(frozen=True)
class Setup:
    """Roads and trips for both engines; roads are (tail, head, length in m, capacity an hour, lanes)."""

    roads: Sequence[tuple[Any, Any, float, float, float]]
    origins: Any  # sequences, one element a vehicle
    destinations: Any
    departure_s: Any
    ends_s: int  # when UXsim stops
    signals: bool = False  # at all nodes; the capacity of a road is then what it passes while it is green

    @property
    def network(self) -> Any:
        import networkx as nx

        import routesim as rs

        graph = nx.DiGraph(crs="EPSG:3857")
        for tail, head, length, capacity, lanes in self.roads:
            capacity_vph = capacity * GREEN_SHARE if self.signals else capacity
            graph.add_edge(
                tail, head, length=length, free_flow_s=length / SPEED_MS, capacity_vph=capacity_vph, lanes=lanes
            )
        for node in graph.nodes:
            i, j = divmod(node, 30) if isinstance(node, (int, np.integer)) else (0, 0)
            graph.nodes[node].update(x=LENGTH_M * j, y=LENGTH_M * i, highway="traffic_signals" * self.signals)
        return rs.RoadNetwork.from_networkx(graph)

    @property
    def demand(self) -> Any:
        import routesim as rs

        return rs.Demand.from_trips(
            {"origin": self.origins, "destination": self.destinations, "departure_s": self.departure_s}
        )


def evenly(vehicles: int) -> list[float]:
    """Return departures at whole seconds, spread over an hour."""
    return [float(k * SECONDS // vehicles) for k in range(vehicles)]


def corridor(vehicles: int) -> Setup:
    """Three roads of 900 m; the second passes 1,000 vehicles an hour at its end."""
    roads = [(0, 1, 900.0, FULL_VPH, 1), (1, 2, 900.0, 1000.0, 1), (2, 3, 900.0, FULL_VPH, 1)]
    return Setup(roads, [0] * vehicles, [3] * vehicles, evenly(vehicles), 4 * SECONDS)


def merge(first: int, second: int) -> Setup:
    """Two roads into one that passes 1,000 vehicles an hour at its end; the first has two lanes, the second one."""
    roads = [
        (0, 2, 900.0, 2 * FULL_VPH, 2), (1, 2, 900.0, FULL_VPH, 1), (2, 3, 900.0, 1000.0, 1),
        (3, 4, 900.0, FULL_VPH, 1),
    ]  # fmt: skip
    departures = np.array(evenly(first) + evenly(second))
    order = np.argsort(departures, kind="stable")
    origins = np.repeat([0, 1], [first, second])[order].tolist()
    return Setup(roads, origins, [4] * (first + second), departures[order].tolist(), 4 * SECONDS)


def diverge(vehicles: int) -> Setup:
    """One road into two, every other vehicle to each; one of them passes 500 an hour at its end."""
    roads = [
        (0, 1, 900.0, FULL_VPH, 1), (1, 2, 900.0, 500.0, 1), (1, 3, 900.0, FULL_VPH, 1),
        (2, 4, 900.0, FULL_VPH, 1), (3, 5, 900.0, FULL_VPH, 1),
    ]  # fmt: skip
    return Setup(roads, [0] * vehicles, [4 + k % 2 for k in range(vehicles)], evenly(vehicles), 4 * SECONDS)


def wide_diverge(vehicles: int) -> Setup:
    """A road of two lanes and 5,000 vehicles an hour into two of one lane that pass 2,000, drawn for each vehicle."""
    roads = [
        (0, 1, 900.0, 4 * FULL_VPH, 4), (1, 2, 900.0, 5000.0, 2), (2, 3, 900.0, 2000.0, 1), (2, 4, 900.0, 2000.0, 1),
        (3, 5, 900.0, FULL_VPH, 1), (4, 6, 900.0, FULL_VPH, 1),
    ]  # fmt: skip
    destinations = (5 + np.random.default_rng(0).integers(0, 2, vehicles)).tolist()
    return Setup(roads, [0] * vehicles, destinations, evenly(vehicles), 4 * SECONDS)


def grid(vehicles: int, lanes: int = 1, scale: float = 1.0, *, signals: bool = False) -> Setup:
    origins, destinations, departures = pairs_and_times(vehicles)
    roads = [(a, b, LENGTH_M, FULL_VPH * lanes * scale, lanes * scale) for a, b in grid_links()]
    return Setup(roads, origins, destinations, np.floor(departures), 7200 if signals else 5400, signals)


def signalled_grid(vehicles: int) -> Setup:
    return grid(vehicles, 2, signals=True)


def sioux_falls() -> Setup:
    """Sioux Falls at half its demand in an hour, with lengths that give its times at 15 m/s.

    Roads have the lanes that their capacity needs. Trips begin and end on roads of their own, four lanes each: in UXsim
    departures go before all through traffic, so that it locks up without these roads, and arrivals take no capacity.
    """
    import routesim as rs

    folder = tntp_folder() / "SiouxFalls"
    network = rs.RoadNetwork.from_tntp(folder / "SiouxFalls_net.tntp")
    table = rs.Demand.from_tntp_trips(folder / "SiouxFalls_trips.tntp").per_hour()
    counts = np.round(np.asarray(table["vehicles"]) / 2).astype(int)
    ends = [np.repeat(np.asarray(table[name]), counts) for name in ("origin", "destination")]
    departures = np.floor(np.random.default_rng(0).random(counts.sum()) * SECONDS)
    order = np.argsort(departures, kind="stable")
    labels = [str(label) for label in network.labels]
    roads = [
        (labels[tail], labels[head], SPEED_MS * seconds, capacity, -(-capacity // FULL_VPH))
        for tail, head, seconds, capacity in zip(
            network.tails.tolist(), network.heads.tolist(), network.free_flow_s.tolist(),
            network.capacity_vph.tolist(), strict=True,
        )
    ]  # fmt: skip
    roads += [(f"from {label}", label, 150.0, 4 * FULL_VPH, 4) for label in labels]
    roads += [(label, f"to {label}", 150.0, 4 * FULL_VPH, 4) for label in labels]
    origins, destinations = (end[order].astype(str).tolist() for end in ends)
    origins, destinations = [f"from {label}" for label in origins], [f"to {label}" for label in destinations]
    return Setup(roads, origins, destinations, departures[order], 5 * SECONDS)


SETUPS: dict[str, Callable[..., Setup]] = {
    "corridor": corridor, "merge": merge, "diverge": diverge,
    "wide_diverge": wide_diverge, "grid": grid,
    "signalled_grid": signalled_grid, "sioux_falls": sioux_falls,
}  # fmt: skip


def routesim_run(
    setup: Setup, physics: str, *, rounds: int = 1, fine: bool = False, own_routes: bool = False
) -> dict[str, Any]:
    import routesim as rs

    class Remembered(rs.FreeFlowRouter):
        """Routes found before the clock starts."""

        known: Any = None

        def route(self, departures: Any) -> Any:
            if self.known is None:
                self.known = super().route(departures)
            return self.known

    network, demand, kind = setup.network, setup.demand, rs.physics.Queue if physics == LANES else rs.physics.PlainQueue
    rules = kind(jam_density_per_km=1000 * JAM_PER_M, wave_kph=3.6 * WAVE_MS)
    simulator = rs.TrafficSimulator(network, demand, physics=rules, bin_s=1.0 if fine else 300.0)
    few = rs.Demand.from_trips({"origin": setup.origins[:1], "destination": setup.destinations[:1], "departure_s": [0]})
    rs.TrafficSimulator(network, few, physics=rules).run(rs.FreeFlowRouter())  # compiles, or reads what was compiled
    router, best = rs.FreeFlowRouter() if own_routes else Remembered(), np.inf
    if not own_routes:
        simulator.run(router)  # finds the routes
    for _ in range(rounds):
        start = time.process_time()
        traffic = simulator.run(router)
        best = min(best, time.process_time() - start)
    found = summary(traffic.arrival_s, traffic.departure_s) | {
        "seconds": best,
        "passages": int(traffic.edges_entered.sum()),
        "forced_moves": traffic.forced_moves,
        "summary": {name: str(value) for name, value in traffic.summary().items()},
    }
    if fine:
        rows, entries = np.asarray(traffic.standing), traffic.loads
        seconds = int(max(rows[:, 0].max(), entries[:, 0].max())) + 2
        on, entered, outside = (np.zeros((network.n_edges, seconds), dtype=np.int64) for _ in range(3))
        on[rows[:, 1], rows[:, 0] + 1], outside[rows[:, 1], rows[:, 0] + 1] = rows[:, 2], rows[:, 4]
        entered[entries[:, 1], entries[:, 0] + 1] = entries[:, 2]
        found |= curves(on, np.cumsum(entered, axis=1), outside.sum(axis=0))
    return found


def uxsim_run(setup: Setup, *, fine: bool = False, own_routes: bool = False) -> dict[str, Any]:
    import uxsim

    import routesim as rs
    from routesim.traffic.engines.signals import default_greens

    network = setup.network
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paths = rs.TrafficSimulator(network, setup.demand).run(rs.FreeFlowRouter())
    world = uxsim.World(
        name="", deltan=1, reaction_time=1, tmax=setup.ends_s, print_mode=0, save_mode=0, show_mode=0,
        random_seed=0, cpp=True, vehicle_logging_timestep_interval=-1,
        duo_update_time=600 if own_routes else setup.ends_s,
    )  # fmt: skip
    greens = default_greens(network, CYCLE_S)
    phases = add_nodes(world, network, greens)
    exits_vph = network.capacity_vph / greens.share
    links = zip(network.tails, network.heads, network.length_m, exits_vph, network.lanes, strict=True)
    for edge, (tail, head, length, capacity, lanes) in enumerate(links):
        # As in routesim, a road holds what its capacity needs; the reaction time of a lane gives the number of lanes.
        jam = max(lanes * JAM_PER_M, capacity / 3600 * (1 / SPEED_MS + 1 / WAVE_MS))
        side_by_side = int(np.ceil(WAVE_MS * jam - 1e-9))
        diagram = SPEED_MS / (SPEED_MS / side_by_side + 1 / jam)
        world.addLink(
            str(edge), str(network.labels[tail]), str(network.labels[head]), length=float(length),
            free_flow_speed=SPEED_MS, jam_density=float(jam), number_of_lanes=side_by_side,
            merge_priority=float(capacity),
            capacity_out=float(capacity) / 3600 if capacity < 3599 * diagram else None, signal_group=phases[edge],
        )  # fmt: skip
    vehicles: list[Any] = []
    first, length_of, edges = paths.path_starts, paths.path_lengths, [str(edge) for edge in paths.path_edges.tolist()]
    for k in range(paths.n_vehicles):
        origin, destination = (str(paths.places[ends[k]]) for ends in (paths.origins, paths.destinations))
        vehicle = world.addVehicle(origin, destination, float(paths.departure_s[k]))
        if not own_routes:
            vehicle.enforce_route(edges[first[k] : first[k] + length_of[k]])
        vehicles.append(vehicle)
    start = time.process_time()
    world.exec_simulation()
    seconds = time.process_time() - start
    took = np.array([float(vehicle.travel_time) for vehicle in vehicles])
    arrival_s = np.where(took >= 0, paths.departure_s + took, np.nan)
    passed = sum(float(link.cum_departure[-1]) for link in world.LINKS)
    found = summary(arrival_s, paths.departure_s) | {"seconds": seconds, "passages": int(passed)}
    if not own_routes and found["arrived"] == len(vehicles) and passed != length_of.sum():
        raise SystemExit("UXsim did not drive the routes that it was given")
    if fine:
        entered, left = (
            np.array([getattr(link, name) for link in world.LINKS]) for name in ("cum_arrival", "cum_departure")
        )
        starts = np.unique([edges[k] for k in first]).astype(int)
        begun = np.searchsorted(np.sort(paths.departure_s), np.arange(entered.shape[1]), side="left")
        found |= curves(entered - left, entered, begun - entered[starts].sum(axis=0))
    return found


def add_nodes(world: Any, network: Any, greens: Any) -> list[int]:
    """Add the nodes to UXsim's world with the signals that routesim has; return the phase in which each road has green.

    Phases 0 and 2 are green for one street each, 1 and 3 for nobody. UXsim holds a phase a second longer than it is
    told.
    """
    phases, rows = [0] * network.n_edges, greens.rows
    for node, label in enumerate(network.labels):
        into = np.flatnonzero(network.heads == node)
        row = rows.first[into[rows.first[into] < rows.first[into + 1]]]
        if not len(row):
            world.addNode(str(label), 0, 0)
            continue
        starts = np.unique(rows.start_s[row])
        lasts = [rows.green_s[row[rows.start_s[row] == start]].max() for start in starts]
        lost = [*(starts[1:] - starts[:-1] - lasts[:-1]), starts[0] + CYCLE_S - starts[-1] - lasts[-1]]
        lengths = np.array([lasts, lost]).T.ravel()
        for edge, start in zip(into, rows.start_s[row], strict=True):
            phases[edge] = 2 * int(np.searchsorted(starts, start))
        made = world.addNode(str(label), 0, 0, signal=(lengths - 1).tolist())
        since = np.cumsum(lengths) - lengths
        elapsed = -starts[0] % CYCLE_S
        made.signal_phase = int(np.searchsorted(since, elapsed, side="right")) - 1
        made.signal_t = float(elapsed - since[made.signal_phase])
    return phases


def most_memory_mib() -> float:
    """Return the most this process had; `getrusage` would count what the process that started it had."""
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0]) / 1024


def summary(arrival_s: Any, departure_s: Any) -> dict[str, Any]:
    there = np.isfinite(arrival_s)
    return {
        "mean_s": float((arrival_s - departure_s)[there].mean()),
        "last_s": float(arrival_s[there].max()),
        "arrived": int(there.sum()),
        "vehicles": len(arrival_s),
    }


def curves(on: Any, entered: Any, outside: Any) -> dict[str, Any]:
    """Return the most vehicles on each road and outside, and what had left each road after an hour."""
    moment = min(SECONDS, on.shape[1] - 1)
    return {
        "most_on": on.max(axis=1).tolist(),
        "most_outside": int(outside.max()),
        "left": (entered - on)[:, moment].tolist(),
    }
