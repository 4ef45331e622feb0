"""Plans as plain arrays: what cannot be planned again to the same bits is stored, and what follows from it is not."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from routesim.errors import ResultsError
from routesim.planning.base import Plan, Policy
from routesim.planning.cycles import CyclePolicy
from routesim.planning.edgewise.choices import PathSet, RoadGraph, merge_edges
from routesim.planning.edgewise.count_policy import CountPolicy
from routesim.planning.edgewise.index_policy import EdgeValues, IndexPolicy
from routesim.planning.edgewise.pair_prices import values_by_pair
from routesim.planning.edgewise.planner import Action, WarmStart
from routesim.planning.edgewise.single_edge import plain_window
from routesim.planning.exact.planner import ExactPlanner, TablePolicy
from routesim.storage.state import State, check_numbers, collect, join, named, pack_rows, part, taken, unpack_rows

_NUMBERS = ("value", "bound", "value_error")


def table_state(plan: Plan[TablePolicy]) -> State:
    """Return an exact plan: its value and its table of actions, in the smallest type that holds them."""
    table = plan.policy.table
    kind = np.min_scalar_type(max(1, plan.policy.n_actions - 1))
    return {"value": np.array(plan.value), "table": table.astype(kind)}


def restored_exact(state: State, planner: ExactPlanner, method: str) -> Plan[TablePolicy]:
    """Return the exact plan of a state."""
    n_actions = planner.actions.n_listed
    kind = np.min_scalar_type(max(1, n_actions - 1))
    table = taken(state, "table", np.empty(n_actions**planner.window, dtype=kind))
    check_numbers("the table's actions", table, n_actions)
    return planner.with_table(table.astype(np.int32), float(named(state, "value", np.float64, 0)), method)


def edgewise_state(plan: Plan[Policy]) -> State:
    """Return a plan made edge by edge, with the start it leaves for the next."""
    warm: WarmStart = plan.warm
    start = {"prices": warm.prices, "ceiling": warm.ceiling, "edges": warm.edges}
    if warm.patterns is not None:
        start["patterns"] = warm.patterns
    if warm.pair_prices is not None:
        start["pair_prices"] = warm.pair_prices
    start |= join(paths=pack_rows(path for _, path in warm.paths))
    start["pairs"] = np.array([pair for pair, _ in warm.paths], dtype=np.int64)
    state = collect(plan, *_NUMBERS) | join(warm=start)
    policy = plan.policy
    if isinstance(policy, CyclePolicy):
        return state | join(cycle=pack_rows([action] if isinstance(action, int) else action for action in policy.cycle))
    if isinstance(policy, CountPolicy):
        return state | join(count={"rewards": policy.rewards, "tolls": policy.tolls})
    assert isinstance(policy, IndexPolicy)  # noqa: S101 - there is no other kind
    # Its values follow from the prices.
    index = {"rewards": policy.rewards, "by_pair": np.array(policy.edge_values.by_pair)}
    return state | join(index=index)


def restored_edgewise(state: State, choices: PathSet | RoadGraph, window: int) -> Plan[Policy]:
    """Return the plan of a state on these choices."""
    numbers = {name: float(named(state, name, np.float64, 0)) for name in _NUMBERS}
    if isinstance(choices, PathSet):
        choices = merge_edges(choices, np.zeros((choices.n_edges, 1)))[0]
    start = part(state, "warm")
    like = np.empty(choices.n_edges)
    pairs = named(start, "pairs", np.int64, 1)
    check_numbers("pairs", pairs, choices.rates.size)
    paths = [np.array(path, dtype=np.int32) for path in unpack_rows(part(start, "paths"), choices.n_edges)]
    if len(paths) != len(pairs):
        raise ResultsError(f"the state does not fit: {len(paths)} paths for {len(pairs)} pairs of ends")
    edges = named(start, "edges", np.int64, 1)
    check_numbers("edges", edges, choices.n_edges)
    cycle = _cycle(part(state, "cycle"), choices)
    warm = WarmStart(
        prices=taken(start, "prices", like),
        ceiling=taken(start, "ceiling", like),
        patterns=named(start, "patterns", np.float64, 2) if "patterns" in start else None,
        paths=list(zip(pairs.tolist(), paths, strict=True)),
        edges=edges,
        cycle=cycle,
        pair_prices=_pair_prices(start, choices),
    )
    policy = CyclePolicy(cycle, window) if cycle else _steady(state, choices, warm, window)
    return Plan("edgewise", **numbers, policy=policy, cycle=cycle, warm=warm)


def _cycle(state: State, choices: PathSet | RoadGraph) -> tuple[Action, ...] | None:
    if not state:
        return None
    if isinstance(choices, RoadGraph):
        return tuple(unpack_rows(state, choices.n_edges))
    return tuple(action for row in unpack_rows(state, choices.n_actions) for action in row)


def _steady(state: State, choices: PathSet | RoadGraph, warm: WarmStart, window: int) -> CountPolicy | IndexPolicy:
    def table(of: str, columns: int) -> NDArray[Any]:
        return taken(part(state, of), "rewards", np.empty((choices.n_edges, columns)))

    if part(state, "count"):
        tolls = taken(part(state, "count"), "tolls", np.empty(choices.n_edges))
        return CountPolicy(choices, table("count", window + 1), tolls, window)
    histories = plain_window(max(1, window))
    rewards = table("index", histories.n_labels)
    if bool(named(part(state, "index"), "by_pair", np.bool_, 0)):
        if warm.pair_prices is None:
            raise ResultsError("the state does not fit: a policy by pairs without their prices")
        return IndexPolicy(choices, rewards, values_by_pair(rewards, warm.pair_prices, choices.rates))
    return IndexPolicy(choices, rewards, EdgeValues.at_prices(rewards, warm.prices, histories))


def _pair_prices(start: State, choices: PathSet | RoadGraph) -> NDArray[np.float64] | None:
    if "pair_prices" not in start:
        return None
    return taken(start, "pair_prices", np.empty((choices.n_edges, choices.rates.size)))
