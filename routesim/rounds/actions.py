"""ActionSet: the candidate paths, or plain arms, that a recommendation chooses from.

Three types keep one contract: `PathList`, a list of paths; `WholeGraph`, every path between two nodes; `SeveralPairs`,
lists or whole graphs of several origin-destination pairs. Whoever needs a list asks for `listed`, or for what is made
of it, and gets an error that says so from a whole graph.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats, Ints, Ints32
from routesim.checks import numbers, whole
from routesim.errors import InputError
from routesim.roads.graph import Graph
from routesim.roads.network import RoadNetwork
from routesim.roads.shortest import Workspace, shortest_path
from routesim.rounds.numbering import Action, ListedNumbers, Numbering, PlayedNumbers
from routesim.rounds.pairs import DrawnPairs, OnePair
from routesim.rounds.paths import (
    DetourLimits,
    PathMethod,
    Place,
    check_one_pair,
    checked_paths,
    nodes_of,
    paths_between,
    paths_of_incidence,
)
from routesim.rounds.window import PathRows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ALL_ROUNDS = np.ones(1)
_ALL_ROUNDS.setflags(write=False)


class ActionSet:
    """What can be recommended: a list of paths, or every path of a graph.

    A bandit arm is a path of one edge, so arms and routes are the same thing to every other module. `paths` holds
    edge indices of the road network; `edges` lists the distinct ones in ascending order, and arrays elsewhere are
    ordered like `edges` ("edge position j" means `edges[j]`). An action is the number of a path.

    `on_graph` makes the set of every path between two nodes: `paths` and `n_actions` are None then, `edges` are all
    edges of the network, and an action is a tuple of edge indices.

    `several` joins the sets of several origin-destination pairs into one, of which each round serves one pair, drawn in
    proportion to `rates`. Listed paths of pair p are numbered from `first_action[p]` up to `first_action[p + 1]`.

    `network` are the roads that the edges belong to, None where nobody said.

    >>> roads = ActionSet([(0, 2), (1, 2)])
    >>> roads.n_actions, roads.edges.tolist()
    (2, [0, 1, 2])
    >>> roads.incidence.toarray().astype(int).tolist()
    [[1, 0, 1], [0, 1, 1]]
    """

    paths: tuple[tuple[int, ...], ...] | None
    edges: Ints
    longest: int  # the number of edges of the longest action (L in the paper), on a graph the most a path can have
    network: RoadNetwork | None
    together: "PathList | WholeGraph"  # the actions of all pairs as one set
    parts: tuple[Any, ...]  # which of them are those of each pair: a range of numbers, or the two nodes
    rates: Floats = _ALL_ROUNDS

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Return a list of paths where no type is named."""
        return object.__new__(PathList if cls is ActionSet else cls)  # type: ignore[return-value]  # each is one

    def __init__(self, paths: Iterable[Sequence[int]], *, network: RoadNetwork | None = None) -> None:
        raise NotImplementedError  # each type has its own

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def arms(cls, k: int) -> "PathList":
        """Return `k` plain bandit arms: k parallel roads of one edge each."""
        return PathList((arm,) for arm in range(whole("the number of arms", k, least=1)))

    @classmethod
    def between(
        cls,
        network: RoadNetwork,
        origin: Place,
        destination: Place,
        k: int = 8,
        method: PathMethod = "penalty",
        *,
        max_overlap: float = 0.75,
        max_detour: float = 0.5,
        limit: int = 10_000,
        edge_cost_s: ArrayLike | None = None,
    ) -> "PathList":
        """Return up to `k` simple paths from `origin` to `destination`, the quickest on empty roads first.

        The ends are node labels or (lon, lat) pairs. Methods: `"penalty"`, paths that really differ: two share
        at most `max_overlap` of the time of the quicker one, and none takes longer than 1 + `max_detour` times
        the quickest; `"k-shortest"`, the k quickest, however alike; `"all"`, every simple path whatever `k`, an
        error if there are more than `limit`. Fewer paths than asked for are a FewerPathsWarning. With `edge_cost_s`,
        what each edge of the network costs beside its travel time (a toll, its length, in seconds), the quickest is the
        cheapest by both together.
        """
        ends, limits = nodes_of(network, origin, destination), DetourLimits(max_overlap, max_detour, limit)
        return PathList(paths_between(network, ends, k, method, limits, edge_cost_s), network=network)

    @classmethod
    def from_paths(cls, network: RoadNetwork, paths: Iterable[Sequence[int]]) -> "PathList":
        """Return your own paths, each a sequence of edge indices of `network`; all join the same two nodes."""
        actions = PathList(paths, network=network)
        check_one_pair(network, actions.paths)
        return actions

    @classmethod
    def on_graph(cls, network: RoadNetwork, origin: Place, destination: Place) -> "WholeGraph":
        """Return every path of the network from `origin` to `destination`; an action is a tuple of edge indices."""
        return WholeGraph(network, *nodes_of(network, origin, destination))

    @classmethod
    def several(cls, sets: Sequence["ActionSet"], rates: Sequence[float]) -> "ActionSet":
        """Return one set for several OD pairs on the same roads; a round serves one pair, drawn by its rate."""
        if len(sets) == 0 or len(sets) != len(rates):
            raise InputError(f"several pairs need one rate each, got {len(sets)} sets and {len(rates)} rates")
        if (numbers("rates", rates) <= 0).any():
            raise InputError(f"rates must be above 0, got {list(rates)}")
        if any(one.n_pairs > 1 for one in sets):
            raise InputError("each set of several must have one pair of ends; join them all at once")
        if len({type(one.together) for one in sets}) > 1:
            raise InputError("several pairs are all lists of paths or all whole graphs, not some of each")
        return sets[0] if len(sets) == 1 else SeveralPairs(sets, rates)

    @classmethod
    def from_incidence(cls, incidence: Any) -> "PathList":
        """Return the actions given by the rows of an action x edge matrix of zeros and ones."""
        return PathList(paths_of_incidence(incidence))

    @property
    def n_actions(self) -> int | None:
        """The number of actions; None where every path of a graph is one."""
        return None if self.paths is None else len(self.paths)

    @property
    def n_pairs(self) -> int:
        """The number of origin-destination pairs."""
        return len(self.parts)

    @property
    def n_edges(self) -> int:
        """The number of edges that some action may use."""
        return len(self.edges)

    @property
    def listed(self) -> "PathList":
        """The paths as one list; an error where every path of a graph is an action."""
        return self.together.listed

    @property
    def listed_paths(self) -> tuple[tuple[int, ...], ...]:
        """The paths, for what needs them listed."""
        return self.listed.paths

    @property
    def n_listed(self) -> int:
        """The number of listed paths."""
        return len(self.listed.paths)

    @property
    def indptr(self) -> Ints:
        """Where the edges of each listed path begin in `indices`."""
        return self.listed.rows.indptr

    @property
    def indices(self) -> Ints32:
        """The positions in `edges` that the listed paths use, one path after the other."""
        return self.listed.rows.indices

    @property
    def incidence(self) -> "csr_array[Any]":
        """The action x edge matrix as scipy CSR; column j is `edges[j]`."""
        return self.listed.matrix

    @property
    def first_action(self) -> Ints:
        """The number of the first listed path of each pair, and behind them how many there are."""
        _ = self.listed
        return np.array([0, *(part.stop for part in self.parts)])

    def positions(self, action: int) -> Ints32:
        """Return the positions in `edges` that a listed `action` uses, in the order of the path."""
        return self.indices[self.indptr[action] : self.indptr[action + 1]]

    def best(self, values: Floats, pair: int = 0) -> Action:
        """Return the action of a pair with the largest sum of edge values, the first of equals."""
        return self.together.best_of(self.parts[pair], values)

    def numbering(self) -> Numbering:
        """Return the numbers by which kernels and records name the actions."""
        return self.together.numbering_of(self.parts)

    def draw_pairs(self, rng: np.random.Generator) -> OnePair | DrawnPairs:  # noqa: ARG002 - nothing to draw
        """Return what says which pair each round serves."""
        return OnePair()

    def ask(self, policy: Callable[..., Any], history: Sequence[Action], pair: int) -> Any:  # noqa: ARG002 - the only one
        """Return the action of a policy after `history`, in a round that serves `pair`."""
        return policy(history)

    def without_network(self) -> Self:
        """Return the same actions without the roads they are on, to travel lightly."""
        light = copy(self)
        light._set(network=None)
        return light


@dataclass(frozen=True, eq=False, init=False)
class PathList(ActionSet):
    """A list of paths between two nodes, or of arms; an action is the number of a path."""

    paths: tuple[tuple[int, ...], ...] = field(init=False)
    edges: Ints = field(init=False, repr=False)
    rows: PathRows = field(init=False, repr=False)
    network: RoadNetwork | None = field(init=False, repr=False, compare=False)  # for maps: nothing is decided by it

    def __init__(self, paths: Iterable[Sequence[int]], *, network: RoadNetwork | None = None) -> None:
        checked = checked_paths(paths, network)
        lengths = np.array([len(path) for path in checked], dtype=np.int64)
        flat = np.fromiter((edge for path in checked for edge in path), dtype=np.int64, count=int(lengths.sum()))
        edges, positions = np.unique(flat, return_inverse=True)
        rows = PathRows(np.concatenate(([0], np.cumsum(lengths))), positions.astype(np.int32))
        self._set(paths=checked, edges=edges, rows=rows, network=network)
        self._set(parts=(range(len(checked)),), longest=int(lengths.max()))

    @classmethod
    def join(cls, sets: Sequence["PathList"], network: RoadNetwork | None) -> tuple["PathList", tuple[range, ...]]:
        """Return the paths of all sets in one list, and the numbers of each set's."""
        ends = np.cumsum([0, *(len(one.paths) for one in sets)]).tolist()
        joined = cls((path for one in sets for path in one.paths), network=network)
        return joined, tuple(range(first, last) for first, last in pairwise(ends))

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return len(self.paths)

    @property
    def listed(self) -> "PathList":
        """The list itself."""
        return self

    @property
    def together(self) -> "PathList":  # type: ignore[override]  # read only
        """The list itself."""
        return self

    @cached_property
    def matrix(self) -> "csr_array[Any]":
        """The incidence."""
        from scipy.sparse import csr_array

        indptr, indices = self.rows
        matrix = csr_array((np.ones(len(indices)), indices, indptr), shape=(self.n_actions, self.n_edges))
        matrix.sort_indices()
        return matrix

    def best_of(self, part: range, values: Floats) -> int:
        """Return the path with the largest sum of edge values among those with these numbers."""
        sums = np.add.reduceat(values[self.rows.indices], self.rows.indptr[:-1])
        return part.start + int(np.argmax(sums[part.start : part.stop]))

    def numbering_of(self, parts: tuple[range, ...]) -> ListedNumbers:
        """Return the numbers of the list."""
        return ListedNumbers(self.paths, self.rows, parts)


@dataclass(frozen=True, eq=False, init=False)
class WholeGraph(ActionSet):
    """Every simple path of a network between two nodes; an action is a tuple of edge indices."""

    edges: Ints = field(init=False, repr=False)
    graph: Graph = field(init=False, repr=False)
    ends: tuple[int, int] = field(init=False)
    network: RoadNetwork | None = field(init=False, repr=False, compare=False)

    paths: ClassVar[None] = None  # type: ignore[misc]  # nobody lists them

    def __init__(self, network: RoadNetwork, origin: int, destination: int) -> None:
        graph, ends = network.graph.without_turn_costs(), (origin, destination)
        self._set(edges=np.arange(network.n_edges), graph=graph, ends=ends, network=network)
        self._set(parts=(ends,), longest=graph.most_edges)

    @classmethod
    def join(
        cls, sets: Sequence["WholeGraph"], network: RoadNetwork | None
    ) -> tuple["WholeGraph", tuple[tuple[int, int], ...]]:
        """Return the graph that all sets share, and the two nodes of each set."""
        if not all(np.array_equal(one.graph.heads, sets[0].graph.heads) for one in sets):
            raise InputError("several pairs on whole graphs must lie on the same network")
        joined = copy(sets[0])
        joined._set(network=network)
        return joined, tuple(one.ends for one in sets)

    @property
    def listed(self) -> NoReturn:
        """Nothing: this is where all that need a list are refused."""
        raise InputError(
            "this needs a list of paths, and the set holds every path of a graph; make a list with ActionSet.between"
        )

    @property
    def together(self) -> "WholeGraph":  # type: ignore[override]  # read only
        """The graph itself."""
        return self

    @cached_property
    def _workspace(self) -> Workspace:
        return Workspace.build(self.graph)

    def best_of(self, part: tuple[int, int], values: Floats) -> tuple[int, ...]:
        """Return the path between these nodes with the largest sum of edge values."""
        if values.max() > 0:
            raise InputError(f"the best path of a graph needs values of at most 0, got {values.max():g}")
        return tuple(shortest_path(self.graph, -values, *part, workspace=self._workspace).tolist())

    def numbering_of(self, parts: tuple[tuple[int, int], ...]) -> PlayedNumbers:
        """Return numbers that paths get when they are first played."""
        return PlayedNumbers(self.graph, parts)


@dataclass(frozen=True, eq=False, init=False)
class SeveralPairs(ActionSet):
    """The lists or whole graphs of several origin-destination pairs; each round serves one, drawn by its rate."""

    together: PathList | WholeGraph = field(init=False)
    parts: tuple[Any, ...] = field(init=False)
    rates: Floats = field(init=False)

    def __init__(self, sets: Sequence[ActionSet], rates: Sequence[float]) -> None:
        network = sets[0].network
        if not all(one.network is network or (one.network and network and one.network.equals(network)) for one in sets):
            network = None
        shares = np.asarray(rates, dtype=np.float64)
        alike: Any = [one.together for one in sets]
        together, parts = type(sets[0].together).join(alike, network)
        self._set(together=together, parts=parts, rates=shares / shares.sum())
        self._set(paths=together.paths, edges=together.edges, longest=together.longest, network=network)

    def draw_pairs(self, rng: np.random.Generator) -> DrawnPairs:
        """Return what draws the pair of each round, by the rates."""
        return DrawnPairs(rng.spawn(1)[0], self.rates)

    def ask(self, policy: Callable[..., Any], history: Sequence[Action], pair: int) -> Any:
        """Return the action of a policy after `history`, in a round that serves `pair`."""
        return policy(history, pair)

    def without_network(self) -> Self:
        """Return the same actions without the roads they are on, to travel lightly."""
        light = super().without_network()
        light._set(together=self.together.without_network())
        return light
