"""Where things lie on a page: the lines of roads in degrees, laid out by a rule where no coordinates are known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats
from routesim.roads.network import RoadNetwork
from routesim.roads.places import GEOGRAPHIC

if TYPE_CHECKING:
    from routesim.results.record import Record


# Layouts made up here lie around (0, 0), where a degree is as long to the east as to the north.
_SPAN = 0.2
MOST_PAIRS = 8  # of origins and destinations that a map marks
_DEGREE_M = 111_195.0
_MOST_NAMES = 60
_WIDEST_M = 2_000_000.0  # planar coordinates that reach farther are no metres


@dataclass(frozen=True, eq=False)
class Drawing:
    """The lines of edges as (lon, lat) points; `schematic` when places were made up, else coordinates are real.

    `lines` has every edge that can be drawn. `located` says that the degrees are places on Earth, `credit`
    whom the roads are from. `nodes` are names to show where places were made up.
    """

    lines: Mapping[int, Floats]
    schematic: bool
    located: bool
    credit: str
    nodes: tuple[tuple[float, float, str], ...] = ()

    def route(self, edges: Sequence[int]) -> Floats:
        """Return the line of a route, its edges joined end to end."""
        parts = [self.lines[edge] for edge in edges if edge in self.lines]
        return np.concatenate(parts) if parts else np.empty((0, 2))


def draw(record: "Record") -> Drawing:
    """Return the lines of a record's roads, or of its arms as curved roads side by side."""
    if record.network is None:
        return Drawing(_arms(record), True, False, "")
    used = {*record.edges.tolist(), *(edge for route in record.routes for edge in route)}
    return draw_network(record.network, used, record.routes)


def draw_network(network: RoadNetwork, needed: Iterable[int] = (), routes: Sequence[Sequence[int]] = ()) -> Drawing:
    """Return the lines of a network where those of all `needed` edges are known, and a layout otherwise."""
    lines = _known_lines(network)
    if not lines or not set(needed) <= lines.keys():
        layout = Layout(network, routes)
        named = zip(layout.places.tolist(), network.labels, strict=True) if network.n_nodes <= _MOST_NAMES else ()
        names = tuple((x, y, str(label)) for (x, y), label in named)
        return Drawing(layout.lines, True, False, network.attribution, names)
    if network.is_geographic:
        return Drawing(lines, False, True, network.attribution)
    if network.crs:
        import pyproj

        to_degrees = pyproj.Transformer.from_crs(network.crs, GEOGRAPHIC, always_xy=True)
        moved = {edge: np.column_stack(to_degrees.transform(*line.T)) for edge, line in lines.items()}
        if all(np.isfinite(line).all() for line in moved.values()):
            return Drawing(moved, False, True, network.attribution)
    points = np.concatenate(list(lines.values()))
    low, high = points.min(axis=0), points.max(axis=0)
    width = float((high - low).max()) or 1.0
    scale = 1 / _DEGREE_M if width < _WIDEST_M else _SPAN / width
    middle = (low + high) / 2
    scaled = {edge: (line - middle) * scale for edge, line in lines.items()}
    return Drawing(scaled, width >= _WIDEST_M, False, network.attribution)


def ends(record: "Record") -> list[tuple[int, int]]:
    """Return the first and the last node of each pair that routes join, as for arms [(0, 1)]; none if they are many."""
    if record.network is None:
        return [(0, 1)]
    tails, heads = record.network.tails, record.network.heads
    pairs = list(dict.fromkeys((int(tails[r[0]]), int(heads[r[-1]])) for r in record.routes if r))
    return pairs if len(pairs) <= MOST_PAIRS else []


def pair_of(record: "Record", route: Sequence[int]) -> int:
    """Return the number of the pair of `ends` that a route joins."""
    if record.network is None:
        return 0
    return ends(record).index((int(record.network.tails[route[0]]), int(record.network.heads[route[-1]])))


def _known_lines(network: RoadNetwork) -> dict[int, Floats]:
    lines = {edge: network.shape(edge) for edge in range(network.n_edges)}
    return {edge: line for edge, line in lines.items() if len(line)}


def _arms(record: "Record") -> dict[int, Floats]:
    arms = max((*record.edges.tolist(), *(edge for route in record.routes for edge in route)), default=0) + 1
    along = np.linspace(0, 1, 49)
    bulges = np.linspace(1, -1, arms) if arms > 1 else np.zeros(1)
    x = (along - 0.5) * _SPAN
    return {arm: np.column_stack((x, bulges[arm] * _SPAN * 0.3 * np.sin(np.pi * along))) for arm in range(arms)}


class Layout:
    """Nodes in layers by their steps from where the routes begin, each layer ordered by its neighbours."""

    def __init__(self, network: RoadNetwork, routes: Sequence[Sequence[int]]) -> None:
        self._network = network
        starts = list(dict.fromkeys(int(network.tails[route[0]]) for route in routes if route))
        self._layers = self._spread(starts or [0])

    def _spread(self, starts: list[int]) -> list[list[int]]:
        network, seen = self._network, set(starts)
        layers, waiting = [starts], [node for node in range(network.n_nodes) if node not in seen]
        self._neighbours: list[list[int]] = [[] for _ in range(network.n_nodes)]
        for tail, head in zip(network.tails.tolist(), network.heads.tolist(), strict=True):
            self._neighbours[tail].append(head)
        while len(seen) < network.n_nodes:
            fresh = list(dict.fromkeys(h for node in layers[-1] for h in self._neighbours[node] if h not in seen))
            if not fresh:
                # What cannot be reached from here still has to be shown somewhere.
                fresh = [next(node for node in waiting if node not in seen)]
            seen.update(fresh)
            layers.append(fresh)
        return layers

    @cached_property
    def places(self) -> NDArray[np.float64]:
        """The place of every node."""
        places = np.zeros((self._network.n_nodes, 2))
        widest = max(len(layer) for layer in self._layers)
        step = _SPAN / max(1, len(self._layers) - 1, widest - 1)
        before: dict[int, list[float]] = {}
        for number, layer in enumerate(self._layers):
            order = sorted(layer, key=lambda node: float(np.mean(before.get(node, [0.0]))))
            for place, node in enumerate(order):
                y = ((len(order) - 1) / 2 - place) * step
                places[node] = (number - (len(self._layers) - 1) / 2) * step, y
                for neighbour in self._neighbours[node]:
                    before.setdefault(neighbour, []).append(-y)
        return places

    @property
    def lines(self) -> dict[int, Floats]:
        """Every edge as a line, bent where parallel edges, both directions or nodes between would lie on each other."""
        network, lines = self._network, {}
        layer = {node: number for number, nodes in enumerate(self._layers) for node in nodes}
        pairs = set(zip(network.tails.tolist(), network.heads.tolist(), strict=True))
        together: dict[tuple[int, int], int] = {}
        along = np.linspace(0, 1, 25)[:, None]
        for edge, (tail, head) in enumerate(zip(network.tails.tolist(), network.heads.tolist(), strict=True)):
            number = together[tail, head] = together.get((tail, head), -1) + 1
            start, end = self.places[tail], self.places[head]
            across = np.array([end[1] - start[1], start[0] - end[0]])
            if tail == head:
                turn = 2 * np.pi * along[:, 0]
                loop = np.column_stack((np.sin(turn), np.cos(turn) - 1))
                lines[edge] = start + loop * (1 + number) * _SPAN / 80
            else:
                alone = (head, tail) not in pairs and abs(layer[tail] - layer[head]) == 1
                bend = (0.16 * number + (0.0 if alone else 0.1)) * across
                lines[edge] = (1 - along) * start + along * end + 2 * along * (1 - along) * bend
        return lines
