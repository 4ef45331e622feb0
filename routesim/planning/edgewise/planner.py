"""Planning edge by edge: prices that split the problem, a bound they prove, and the best cycle found."""

from dataclasses import dataclass, field, replace

import numpy as np

from routesim.arrays import Floats, Ints, Ints32
from routesim.errors import InputError
from routesim.planning.cycles import CyclePolicy
from routesim.planning.edgewise.candidates import Measured, index_by_pair, measured, policies
from routesim.planning.edgewise.choices import PathSet, RoadGraph, merge_edges
from routesim.planning.edgewise.count_policy import CountPolicy
from routesim.planning.edgewise.cycle_search import GraphCycles, PathCycles
from routesim.planning.edgewise.edge_models import HistoryModel, MajorantModel
from routesim.planning.edgewise.index_policy import IndexPolicy
from routesim.planning.edgewise.long_windows import LONGEST_WINDOW, LongWindowModel
from routesim.planning.edgewise.pair_prices import (
    PairPrices,
    driven_paths,
    find_pair_prices,
    find_pair_prices_on_graph,
    fits_pairs,
    fits_potentials,
    known_edges,
)
from routesim.planning.edgewise.prices import find_prices
from routesim.planning.edgewise.recent_prices import certified_recent_bound, find_recent_prices
from routesim.planning.edgewise.sharing import FlowSharing, PathSharing
from routesim.planning.edgewise.single_edge import (
    MAX_EXACT_WINDOW,
    plain_window,
)

Action = int | tuple[int, ...]

_GOOD_ENOUGH = 0.04  # earlier prices that prove a plan this close to the best are kept: learners plan often
_WORTH_CLOSING = 0.02  # a gap above this between value and bound is looked at with prices that look back
_CLOSED = 0.015  # and they are improved until the gap is this small


@dataclass(frozen=True)
class WarmStart:
    """What a plan leaves for the next one on the same actions, with other rewards, to start from."""

    prices: Floats
    ceiling: Floats
    patterns: Floats | None
    paths: list[tuple[int, Ints32]]
    edges: Ints
    cycle: tuple[Action, ...] | None
    recent_prices: Floats | None = None
    pair_prices: Floats | None = None


@dataclass(frozen=True)
class EdgewiseResult:
    """A policy, the average reward it really achieves, and a proven bound on the best possible.

    `cycle` is what the policy plays once on it, and then `value` is exact and `value_error` 0. With several
    origin-destination pairs there is no cycle: `value` is the mean of a run and `value_error` its standard
    error. The bound comes from `pair_prices` or `recent_prices` where they are the closest, and else from `prices`.
    """

    policy: CyclePolicy[Action] | IndexPolicy | CountPolicy
    value: float
    value_error: float
    bound: float
    prices: Floats
    cycle: tuple[Action, ...] | None
    warm: WarmStart
    choices: PathSet | RoadGraph
    recent_prices: Floats | None = None
    pair_prices: Floats | None = None
    candidates: dict[str, float] = field(default_factory=dict)


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
    tight_bound: bool = True,
) -> EdgewiseResult:
    """Plan over a path set; `rewards` has a row an edge and a column a count, of any sign.

    `kicks` is how often the search over cycles starts again from a changed cycle, `rounds` the length of the
    run that measures a policy where several pairs make the future random. With `tight_bound` a few seconds go into
    a bound that is far from the value; a plan that starts from an earlier one takes over the prices found then.
    """
    _check(rewards, paths.n_edges, window)
    merged, tables = merge_edges(paths, rewards)
    _check_warm(warm, merged.n_edges)
    model, model_tables = _edge_model(tables, window, warm, tight_bound)
    start = None if warm is None else warm.prices
    sharing = PathSharing(merged, [])
    search = find_prices(merged, model_tables, model, sharing, start_prices=start, precision=precision)
    # Adding up the rewards of merged edges rounds; a bound must not.
    size = merged.best(np.abs(tables).max(axis=1), 0)[0] if merged.n_edges < paths.n_edges else 0.0
    rounding = paths.n_edges * float(np.finfo(np.float64).eps) * size
    tried = policies(merged, tables, window, search.prices, sharing, precision)
    result = EdgewiseResult(
        policy=tried[0].policy,
        value=-np.inf,
        value_error=np.inf,
        bound=search.bound + rounding,
        prices=search.prices,
        cycle=None,
        warm=WarmStart(
            search.prices, tables.max(axis=1), _patterns(model, model_tables), [], np.empty(0, np.int64), None
        ),
        choices=merged,
    )
    if paths.rates.size > 1:
        if tight_bound and (fits_pairs(merged.n_edges, window) or fits_potentials(merged.n_edges, window)):
            start = search.prices if warm is None or warm.pair_prices is None else warm.pair_prices
            by_pair = find_pair_prices(merged, model_tables, max(1, window), start)
            result = _with_pair_prices(result, by_pair, rounding)
            if by_pair.values.size:
                tried.append(index_by_pair(merged, tables, window, by_pair))
        return _with_measured(result, measured(tried, paths.rates, rounds, seed, thorough=tight_bound))

    cycles = PathCycles(merged, tables, window)
    cycles.add_simple()
    for entry in tried:
        actions, _ = entry.policy.play(np.zeros(50 * (entry.window + 1), np.int64))
        cycles.add_run(entry.name, np.asarray(actions), entry.block)
    if warm is not None and warm.cycle is not None:
        cycles.add("previous", np.array(warm.cycle, np.int64))
    elif window > 0:
        for period in _flow_periods(window):
            cycles.fill_by_flow("flow", period, precision)
    cycle, value = cycles.best(kicks=kicks, seed=seed)
    if tight_bound and result.bound - value > _WORTH_CLOSING * abs(result.bound):
        if warm is None:
            enough = value + _CLOSED * abs(value)
            recent_prices = find_recent_prices(merged, tables, window, search.prices, cycle, enough)
        else:
            recent_prices = warm.recent_prices
        if recent_prices is not None:
            lower = certified_recent_bound(merged, tables, window, recent_prices) + rounding
            leave = replace(result.warm, recent_prices=recent_prices)
            result = replace(result, warm=leave)
            if lower < result.bound:
                result = replace(result, bound=lower, recent_prices=recent_prices)
    return _with_cycle(result, tuple(int(action) for action in cycle), window, value, cycles.values)


def plan_graph(
    graph: RoadGraph,
    rewards: Floats,
    window: int,
    *,
    warm: WarmStart | None = None,
    precision: float = 3e-3,
    max_paths: int | None = None,
    rounds: int = 2_000,
    seed: int = 0,
    tight_bound: bool = True,
) -> EdgewiseResult:
    """Plan over every path of a graph; `rewards` has a row an edge, a column a count, and none positive.

    `max_paths` is how many shortest paths the search over cycles may take (1,000, or 150 from a warm start),
    `rounds` as for `plan_paths`.
    """
    _check(rewards, graph.n_edges, window)
    if np.any(rewards > 0):
        edge = int(np.argmax(rewards.max(axis=1)))
        raise InputError(
            f"planning over a graph needs rewards of at most 0, got {rewards[edge].max()} on edge {edge}; "
            "plan over a path set instead"
        )
    _check_warm(warm, graph.n_edges)
    model, model_tables = _edge_model(rewards, window, warm, tight_bound)
    cycles = GraphCycles(graph, rewards, window)
    single = graph.rates.size == 1
    ceiling = rewards.max(axis=1)
    start_prices = None if warm is None else _rescaled(warm, ceiling)
    enough = -np.inf
    sharing: PathSharing | FlowSharing
    if single:
        if warm is None or warm.cycle is None:
            cycles.fill("built", (2 if window <= MAX_EXACT_WINDOW else 1) * (window + 1))
        else:
            cycles.add("previous", [np.array(path, np.int32) for path in warm.cycle])
            enough = (1 - _GOOD_ENOUGH) * cycles.values["previous"]
        known = [path.astype(np.int64) for path in cycles.known_paths()]
        sharing = FlowSharing(
            graph, np.concatenate([*known, *([] if warm is None else [warm.edges])]), ceiling, start_prices
        )
    else:
        sharing = PathSharing(graph, [] if warm is None else warm.paths)
    search = find_prices(
        graph, model_tables, model, sharing, start_prices=start_prices, precision=precision, enough=enough
    )
    tried = policies(graph, rewards, window, search.prices, sharing, precision)
    if isinstance(sharing, FlowSharing):
        leave = WarmStart(
            search.prices, ceiling, _patterns(model, model_tables), [], sharing.near(search.prices, 0.002), None
        )
    else:
        known_paths = list(zip(sharing.pairs, sharing.paths, strict=True))
        leave = WarmStart(
            search.prices, ceiling, _patterns(model, model_tables), known_paths, np.empty(0, np.int64), None
        )
    result = EdgewiseResult(
        policy=tried[0].policy,
        value=-np.inf,
        value_error=np.inf,
        bound=search.bound,
        prices=search.prices,
        cycle=None,
        warm=leave,
        choices=graph,
    )
    if not single:
        if tight_bound and fits_pairs(known_edges(known_paths), window):
            start = search.prices if warm is None or warm.pair_prices is None else warm.pair_prices
            driven = driven_paths(tried[-1].policy, graph.rates, seed)
            by_pair, known_paths = find_pair_prices_on_graph(
                graph, model_tables, max(1, window), start, [*known_paths, *driven]
            )
            result = _with_pair_prices(replace(result, warm=replace(leave, paths=known_paths)), by_pair, 0.0)
            tried.append(index_by_pair(graph, rewards, window, by_pair))
        return _with_measured(result, measured(tried, graph.rates, rounds, seed, thorough=tight_bound))
    for entry in tried:
        n_rounds = (12 if warm is None else 6) * (entry.window + 1)
        played, _ = entry.policy.play(np.zeros(n_rounds, np.int64))
        cycles.add_run(entry.name, list(played), entry.block)
    if max_paths is None:
        max_paths = 1_000 if warm is None else 150
    if 0 < window <= MAX_EXACT_WINDOW and warm is None:
        for period in (window + 1, window + 2, 2 * window + 1, 3 * window + 2):
            cycles.fill("built", period)
    if window > 0 and warm is None:
        for period in _flow_periods(window):
            cycles.fill_by_flow("flow", period, precision)
    cycle, value = cycles.best(bound=search.bound, max_paths=max_paths, seed=seed, thorough=warm is None)
    return _with_cycle(result, tuple(tuple(path.tolist()) for path in cycle), window, value, cycles.values)


def _rescaled(warm: WarmStart, ceiling: Floats) -> Floats:
    """Return earlier prices, each moved with the largest reward of its edge (graphs only: none is positive)."""
    ratio = np.divide(ceiling, warm.ceiling, out=np.ones_like(ceiling), where=warm.ceiling < 0)
    return np.minimum(warm.prices * ratio, ceiling)


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


def _check_warm(warm: WarmStart | None, n_edges: int) -> None:
    if warm is not None and warm.prices.size != n_edges:
        raise InputError(
            f"a warm start must come from a plan on the same actions, got {warm.prices.size} prices for {n_edges} edges"
        )


def _edge_model(
    rewards: Floats, window: int, warm: WarmStart | None, tight_bound: bool
) -> tuple[HistoryModel | LongWindowModel | MajorantModel, Floats]:
    """Return the model of single edges for a window, and the reward table it reads."""
    if window > MAX_EXACT_WINDOW:
        tight = tight_bound and window <= LONGEST_WINDOW
        return LongWindowModel(rewards) if tight else MajorantModel(), rewards
    patterns = None if warm is None else warm.patterns
    if window == 0:  # a window of one round whose count does not matter
        return HistoryModel(plain_window(1), patterns), np.repeat(rewards, 2, axis=1)
    return HistoryModel(plain_window(window), patterns), rewards


def _with_pair_prices(result: EdgewiseResult, found: PairPrices, rounding: float) -> EdgewiseResult:
    """Return the result with prices by pair for the next plan, and with their bound where it is closer."""
    result = replace(result, warm=replace(result.warm, pair_prices=found.prices))
    if found.bound + rounding >= result.bound:
        return result
    return replace(result, bound=found.bound + rounding, pair_prices=found.prices)


def _with_measured(result: EdgewiseResult, best: Measured) -> EdgewiseResult:
    return replace(result, policy=best.policy, value=best.value, value_error=best.error, candidates=best.means)


def _flow_periods(window: int) -> list[int]:
    """Return periods in which bursts pay.

    Those a little longer than a window, where a use misses the next ones.
    """
    return sorted({window + 1 + rest for rest in (0, 1, 2, window // 4)})


def _with_cycle(
    result: EdgewiseResult, cycle: tuple[Action, ...], window: int, value: float, candidates: dict[str, float]
) -> EdgewiseResult:
    return replace(
        result,
        policy=CyclePolicy(cycle, window),
        value=value,
        value_error=0.0,
        cycle=cycle,
        warm=replace(result.warm, cycle=cycle),
        candidates=candidates,
    )


def _patterns(model: HistoryModel | LongWindowModel | MajorantModel, tables: Floats) -> Floats | None:
    if not isinstance(model, HistoryModel):
        return None
    model.keep_useful(tables)
    return model.patterns
