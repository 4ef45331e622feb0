"""Tables of an assignment: edges, paths, pairs, and those who use one edge."""

from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from routesim.arrays import Floats
from routesim.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from routesim.assignment.assignment import Assignment


def edge_flows(assignment: "Assignment") -> "pd.DataFrame":
    """Return the edges of the network with their flows and times; lines are in `network.to_geodataframe()`."""
    import pandas as pd

    roads = assignment.network
    columns: dict[str, Any] = {
        "edge": np.arange(roads.n_edges),
        "u": [roads.labels[i] for i in roads.tails.tolist()],
        "v": [roads.labels[i] for i in roads.heads.tolist()],
        "name": list(roads.names),
        "highway": list(roads.highways),
        "length_m": roads.length_m,
        "flow_vph": assignment.flows,
        "capacity_vph": roads.capacity_vph,
        "v_c": assignment.flows / roads.capacity_vph,
        "free_flow_s": roads.free_flow_s,
        "travel_time_s": assignment.travel_time_s,
        "delay_s": np.maximum(0.0, assignment.travel_time_s - roads.free_flow_s),
    }
    if assignment.edge_cost_s.any():
        columns["edge_cost_s"] = assignment.edge_cost_s
    if assignment.background is not None:
        columns["background_vph"] = assignment.background
    return pd.DataFrame(columns)


def path_flows(assignment: "Assignment") -> "pd.DataFrame":
    """Return the paths of every pair, the largest first."""
    import pandas as pd

    paths = assignment.path_shares
    pair = paths.pair
    order = np.lexsort((-paths.shares, pair))
    table = pd.DataFrame(_ends(assignment, pair))
    table["vehicles_vph"] = paths.shares * assignment.pair_vph[pair]
    table["share"] = paths.shares
    table["travel_time_s"] = paths.totals(assignment.travel_time_s)
    table["length_m"] = paths.totals(assignment.network.length_m)
    table["edges"] = [tuple(part.tolist()) for part in np.split(paths.edges, paths.indptr[1:-1])]
    return table.iloc[order].reset_index(drop=True)


def skims(assignment: "Assignment") -> "pd.DataFrame":
    """Return the mean time and length of each pair's drivers, and the time of its quickest path now."""
    import pandas as pd

    paths = assignment.path_shares
    first = paths.first[:-1]
    table = pd.DataFrame(_ends(assignment, np.arange(len(assignment.pairs))))
    table["vehicles_vph"] = assignment.pair_vph
    for name, by_edge in (("travel_time_s", assignment.travel_time_s), ("length_m", assignment.network.length_m)):
        table[name] = np.add.reduceat(paths.shares * paths.totals(by_edge), first)
    table["quickest_s"] = assignment.solver.cheapest_by_edge(assignment.travel_time_s)
    if assignment.edge_cost_s.any():
        table["edge_cost_s"] = np.add.reduceat(paths.shares * paths.totals(assignment.edge_cost_s), first)
    return table


def users(assignment: "Assignment", edge: int) -> Floats:
    """Return the vehicles an hour on each path that uses an edge, 0 on the others."""
    try:
        number = index(edge)
    except TypeError:
        raise InputError(f"edge must be the index of an edge, got {edge!r}") from None
    if not 0 <= number < assignment.network.n_edges:
        raise InputError(f"edge must be between 0 and {assignment.network.n_edges - 1}, got {number}")
    paths = assignment.path_shares
    uses = np.zeros(len(paths.shares), dtype=np.bool_)
    uses[np.searchsorted(paths.indptr, np.flatnonzero(paths.edges == number), side="right") - 1] = True
    return np.asarray(np.where(uses, paths.shares * assignment.pair_vph[paths.pair], 0.0), dtype=np.float64)


def select_link(assignment: "Assignment", edge: int) -> Floats:
    """Return the flow on every edge of the vehicles that use one edge."""
    paths = assignment.path_shares
    by_path = np.repeat(users(assignment, edge), np.diff(paths.indptr))
    return np.asarray(np.bincount(paths.edges, by_path, assignment.network.n_edges), dtype=np.float64)


def select_pairs(assignment: "Assignment", edge: int) -> "pd.DataFrame":
    """Return the pairs of which vehicles use an edge, how many these are, and their share of the pair's demand."""
    import pandas as pd

    by_pair = np.add.reduceat(users(assignment, edge), assignment.path_shares.first[:-1])
    rows = np.flatnonzero(by_pair > 0)
    table = pd.DataFrame(_ends(assignment, rows))
    table["vehicles_vph"] = by_pair[rows]
    table["share"] = by_pair[rows] / assignment.pair_vph[rows]
    return table


def _ends(assignment: "Assignment", pairs: Any) -> dict[str, list[Any]]:
    ends = [assignment.pairs[pair] for pair in pairs.tolist()]
    return {"origin": [origin for origin, _ in ends], "destination": [destination for _, destination in ends]}
