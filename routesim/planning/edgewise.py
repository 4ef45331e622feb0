"""Planning edge by edge: prices that split the problem, a bound they prove, and the best cycle of actions found with them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from routesim.errors import InputError
from routesim.planning.choices import PathSet, RoadGraph, merge_edges
from routesim.planning.cycle_search import GraphCycles, PathCycles
from routesim.planning.cycles import CyclePolicy
from routesim.planning.edge_models import HistoryModel, MajorantModel
from routesim.planning.index_policy import EdgeValues, IndexPolicy
from routesim.planning.prices import find_prices
from routesim.planning.sharing import FlowSharing, PathSharing
from routesim.planning.single_edge import (
    MAX_EXACT_WINDOW,
    Window,
    block_rewards,
    block_window,
    plain_window,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Edges = NDArray[np.int32]
Action = int | tuple[int, ...]

_BLOCKS = 8
_MAX_VALUES = 1 << 27  # numbers in the tables of edge values: 1 GB


@dataclass(frozen=True)
class WarmStart:
    """What a plan leaves for the next one on the same actions: rewards may change, these stay good to start from."""

    prices: Floats
    patterns: Floats | None
    paths: list[tuple[int, Edges]]
    edges: Ints
    cycle: tuple[Action, ...] | None


@dataclass(frozen=True)
class EdgewiseResult:
    """A policy, the average reward it really achieves, and a proven bound on the best possible.

    `cycle` is what the policy plays once on it, and then `value` is exact and `value_error` 0. With several origin-destination
    pairs there is no cycle: `value` is the mean of a run and `value_error` its standard error.
    """

    policy: CyclePolicy[Action] | IndexPolicy
    value: float
    value_error: float
    bound: float
    prices: Floats
    cycle: tuple[Action, ...] | None
    index_policy: IndexPolicy | None
    warm: WarmStart
    candidates: dict[str, float] = field(default_factory=dict)

    def simulate(self, n_rounds: int, rng: np.random.Generator | None = None) -> Floats:
        """Return the expected reward of each of `n_rounds` rounds of the policy from empty roads."""
        raise NotImplementedError


def plan_paths(
    paths: PathSet,
    rewards: Floats,
    window: int,
    *,
    warm: WarmStart | None = None,
    precision: float = 1e-4,
    kicks: int = 50,
    rounds: int = 20_000,
    seed: int = 0,
) -> EdgewiseResult:
    """Plan over a path set; `rewards` is edge × count, of any sign.

    `kicks` is how often the search over cycles is restarted from a changed cycle, `rounds` the length of the run that measures
    a policy where several pairs make the future random.
    """
    _check(rewards, paths.n_edges, window)
    merged, tables, place = merge_edges(paths, rewards)
    model, model_tables = _edge_model(tables, window, warm)
    start = None if warm is None else np.bincount(place[place >= 0], weights=warm.prices[place >= 0])
    sharing = PathSharing(merged, [])
    search = find_prices(merged, model_tables, model, sharing, start_prices=start, precision=precision)
    prices = _spread(search.prices, tables, rewards, place)

    index = _index_policy(merged, tables, window, search.prices, sharing, precision)
    leave = WarmStart(prices, getattr(model, "patterns", None), [], np.empty(0, np.int64), None)
    if paths.rates.size > 1:
        return _measured(merged, index, search.bound, prices, leave, rounds, seed)

    cycles = PathCycles(merged, tables, window)
    cycles.add_simple()
    n_rounds = 50 * (index.edge_values.window.length + 1)
    block = 1 if window <= MAX_EXACT_WINDOW else -(-window // _BLOCKS)
    for name, policy in (("greedy", _greedy(merged, index)), ("index", index)):
        actions, _ = policy.play(np.zeros(n_rounds, np.int64))
        cycles.add_run(name, np.asarray(actions), block)
    if warm is not None and warm.cycle is not None:
        cycles.add("previous", np.array(warm.cycle, np.int64))
    cycle, value = cycles.best(kicks=kicks, seed=seed)
    played = tuple(int(action) for action in cycle)
    return EdgewiseResult(
        policy=CyclePolicy(played, window),
        value=value,
        value_error=0.0,
        bound=max(search.bound, value),
        prices=prices,
        cycle=played,
        index_policy=index,
        warm=replace(leave, cycle=played),
        candidates=cycles.values,
    )


def plan_graph(
    graph: RoadGraph,
    rewards: Floats,
    window: int,
    *,
    warm: WarmStart | None = None,
    precision: float = 1e-3,
    sweeps: int = 4,
    rounds: int = 2_000,
    seed: int = 0,
) -> EdgewiseResult:
    """Plan over every path of a graph; `rewards` is edge × count and never positive."""
    _check(rewards, graph.n_edges, window)
    if np.any(rewards > 0):
        edge = int(np.argmax(rewards.max(axis=1)))
        raise InputError(
            f"planning over a whole graph needs rewards of at most 0, got {rewards[edge].max()} on edge {edge}; "
            "plan over a path set instead"
        )
    model, model_tables = _edge_model(rewards, window, warm)
    cycles = GraphCycles(graph, rewards, window)
    single = graph.rates.size == 1
    sharing: PathSharing | FlowSharing
    if single:
        if warm is None:
            cycles.fill("filled", 2 * (window + 1))
        else:
            cycles.add("previous", [np.array(path, np.int32) for path in warm.cycle or ()])
        edges = np.concatenate(cycles.known_paths())
        sharing = FlowSharing(graph, edges if warm is None else np.concatenate([edges, warm.edges]))
    else:
        sharing = PathSharing(graph, [] if warm is None else warm.paths)
    search = find_prices(
        graph,
        model_tables,
        model,
        sharing,
        start_prices=None if warm is None else warm.prices,
        precision=precision,
    )
    index = _index_policy(graph, rewards, window, search.prices, sharing, precision)
    leave = WarmStart(
        search.prices,
        getattr(model, "patterns", None),
        [] if isinstance(sharing, FlowSharing) else list(zip(sharing.pairs, sharing.paths, strict=True)),
        sharing.near(search.prices, 0.02) if isinstance(sharing, FlowSharing) else sharing.edges,
        None,
    )
    if not single:
        return _measured(graph, index, search.bound, search.prices, leave, rounds, seed)
    for name, policy in (("greedy", _greedy(graph, index)), ("index", index)):
        played, _ = policy.play(np.zeros(12 * (index.edge_values.window.length + 1), np.int64))
        cycles.add_run(name, list(played))
    cycle, value = cycles.best(sweeps)
    actions = tuple(tuple(path.tolist()) for path in cycle)
    return EdgewiseResult(
        policy=CyclePolicy(actions, window),
        value=value,
        value_error=0.0,
        bound=max(search.bound, value),
        prices=search.prices,
        cycle=actions,
        index_policy=index,
        warm=replace(leave, cycle=actions),
        candidates=cycles.values,
    )


def _check(rewards: Floats, n_edges: int, window: int) -> None:
    if window < 0:
        raise InputError(f"window must be at least 0, got {window}")
    if rewards.shape != (n_edges, window + 1):
        raise InputError(
            f"rewards must have a row for each of {n_edges} edges and window + 1 = {window + 1} columns, "
            f"got shape {rewards.shape}"
        )
    if not np.all(np.isfinite(rewards)):
        edge, count = np.argwhere(~np.isfinite(rewards))[0]
        raise InputError(f"rewards must be finite, got {rewards[edge, count]} for edge {edge} at count {count}")


def _edge_model(rewards: Floats, window: int, warm: WarmStart | None) -> tuple[HistoryModel | MajorantModel, Floats]:
    """Return the model of single edges for a window, and the reward table it reads."""
    if window > MAX_EXACT_WINDOW:
        return MajorantModel(), rewards
    patterns = None if warm is None else warm.patterns
    if window == 0:  # a window of one round whose count does not matter
        return HistoryModel(plain_window(1), patterns), np.repeat(rewards, 2, axis=1)
    return HistoryModel(plain_window(window), patterns), rewards


def _index_policy(
    choices: PathSet | RoadGraph,
    rewards: Floats,
    window: int,
    prices: Floats,
    sharing: PathSharing | FlowSharing,
    precision: float,
) -> IndexPolicy:
    """Return the index policy at the best prices; for a window too long to enumerate, at the resolution of blocks."""
    tolled = int(np.count_nonzero(prices < rewards.max(axis=1)))
    if window <= MAX_EXACT_WINDOW and tolled << window <= _MAX_VALUES:
        histories = plain_window(max(1, window))
        tables = np.repeat(rewards, 2, axis=1) if window == 0 else rewards
        return IndexPolicy(choices, tables, EdgeValues.at_prices(tables, prices, histories))
    histories = block_window(_BLOCKS)
    tables = block_rewards(rewards, window, _BLOCKS)
    in_blocks = find_prices(choices, tables, HistoryModel(histories), sharing, precision=precision)
    return IndexPolicy(choices, tables, EdgeValues.at_prices(tables, in_blocks.prices, histories))


def _greedy(choices: PathSet | RoadGraph, index: IndexPolicy) -> IndexPolicy:
    return IndexPolicy(choices, index.rewards, EdgeValues.none(choices.n_edges, index.edge_values.window))


def _spread(merged_prices: Floats, tables: Floats, rewards: Floats, place: Ints) -> Floats:
    """Split the price of a merged edge among its edges, each as far below its largest reward; unused edges stay idle."""
    ceiling = rewards.max(axis=1)
    used = place >= 0
    shares = np.bincount(place[used], minlength=merged_prices.size)
    sums = np.bincount(place[used], weights=ceiling[used], minlength=merged_prices.size)
    prices = ceiling.copy()
    prices[used] += ((merged_prices - sums) / shares)[place[used]]
    return prices


def _measured(
    choices: PathSet | RoadGraph,
    index: IndexPolicy,
    bound: float,
    prices: Floats,
    warm: WarmStart,
    rounds: int,
    seed: int,
) -> EdgewiseResult:
    """Play the index policy and greedy against the same random pairs and return the better one, with its standard error."""
    rng = np.random.default_rng(seed)
    pairs = rng.choice(choices.rates.size, size=rounds, p=choices.rates).astype(np.int64)
    values: dict[str, tuple[float, float, IndexPolicy]] = {}
    for name, policy in (("greedy", _greedy(choices, index)), ("index", index)):
        _, earned = policy.play(pairs)
        kept = earned[rounds // 10 :]
        batches = np.array([batch.mean() for batch in np.array_split(kept, 30)])
        values[name] = (float(kept.mean()), float(batches.std(ddof=1) / np.sqrt(30)), policy)
    value, error, policy = max(values.values(), key=lambda entry: entry[0])
    return EdgewiseResult(
        policy=policy,
        value=value,
        value_error=error,
        bound=bound,
        prices=prices,
        cycle=None,
        index_policy=index,
        warm=warm,
        candidates={name: entry[0] for name, entry in values.items()},
    )


def pack_actions(actions: Sequence[Sequence[int]]) -> tuple[Ints, Edges]:
    """Return the CSR arrays of a list of actions, each a sequence of edges."""
    indptr = np.concatenate([[0], np.cumsum([len(action) for action in actions])]).astype(np.int64)
    return indptr, np.concatenate([np.asarray(action, np.int32) for action in actions])
