"""Flows by origin: machine precision, published objectives, warm starts, costs of edges, banned turns."""

from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from shared_data import tntp
from slow_flows import all_paths, least_total
from town import town

import routesim as rs
from routesim.assignment.prices import Prices, link_price, link_prices, prices_at
from routesim.errors import InputError


def grid(side: int, seed: int) -> rs.RoadNetwork:
    """A square grid of two-way streets with random times and capacities."""
    rng = np.random.default_rng(seed)
    graph = nx.DiGraph()
    for one, other in nx.grid_2d_graph(side, side).to_directed().edges:
        graph.add_edge(
            one[0] * side + one[1],
            other[0] * side + other[1],
            free_flow_s=float(rng.uniform(10, 30)),
            capacity_vph=float(rng.uniform(300, 900)),
        )
    return rs.RoadNetwork.from_networkx(graph)


def trips(network: rs.RoadNetwork, n_pairs: int, seed: int, vehicles: float = 400.0) -> dict[str, list[object]]:
    """Random pairs of different nodes, each once."""
    rng = np.random.default_rng(seed)
    pairs = [(a, b) for a in range(network.n_nodes) for b in range(network.n_nodes) if a != b]
    chosen = [pairs[i] for i in rng.choice(len(pairs), n_pairs, replace=False)]
    return {
        "origin": [network.labels[a] for a, _ in chosen],
        "destination": [network.labels[b] for _, b in chosen],
        "vehicles": rng.uniform(0.2 * vehicles, vehicles, n_pairs).tolist(),
    }


def checked_gap(network: rs.RoadNetwork, flows: np.ndarray, table: dict[str, list[object]], price: np.ndarray) -> float:
    """The relative gap by scipy's Dijkstra, for networks without zones and bans."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    n = network.n_nodes
    apart = dijkstra(csr_array((price, (network.tails, network.heads)), shape=(n, n)))
    rows = zip(table["origin"], table["destination"], table["vehicles"], strict=True)
    least = sum(float(v) * apart[network.node_index(a), network.node_index(b)] for a, b, v in rows)  # type: ignore[arg-type, call-overload]
    paid = float(flows @ price)
    return (paid - least) / paid


@pytest.mark.parametrize("seed", range(4))
def test_gaps_of_1e_10_are_true_by_an_independent_search(seed: int) -> None:
    network = grid(5, seed)
    table = trips(network, 60, seed)
    for objective in ("user", "system"):
        result = rs.assign(network, table, objective, 1e-10)  # type: ignore[arg-type]
        price = result.travel_time_s + (result.marginal_cost_s if objective == "system" else 0.0)
        assert result.relative_gap <= 1e-10
        assert checked_gap(network, result.flows, table, price) == pytest.approx(result.relative_gap, abs=1e-13)
        balance = np.bincount(network.heads, result.flows, 25) - np.bincount(network.tails, result.flows, 25)
        for a, b, vehicles in zip(*table.values(), strict=True):
            balance[network.node_index(b)] -= vehicles  # type: ignore[call-overload]
            balance[network.node_index(a)] += vehicles  # type: ignore[call-overload]
        assert np.abs(balance).max() < 1e-8


@pytest.mark.parametrize(("name", "objective"), [("SiouxFalls", 4_231_335.3), ("Anaheim", 1_286_032.2)])
def test_published_objectives_are_met_to_seven_digits(name: str, objective: float) -> None:
    network, trips_file = tntp(name)
    result = rs.assign(network, rs.Demand.from_tntp_trips(trips_file), relative_gap=1e-12)
    assert result.relative_gap <= 1e-12
    assert result.objective_value / 60 == pytest.approx(objective, abs=0.05)


def test_the_optimum_is_that_of_a_convex_programme_over_all_paths() -> None:
    network = grid(3, 7)
    table = {"origin": [0, 2, 6], "destination": [8, 6, 2], "vehicles": [1500.0, 900.0, 700.0]}
    every = [
        list(all_paths(network, network.node_index(a), network.node_index(b))) for a, b in ((0, 8), (2, 6), (6, 2))
    ]
    by_hand = least_total(network, every, [1500.0, 900.0, 700.0])
    assert rs.assign(network, table, "system", 1e-10).total_travel_time_s == pytest.approx(by_hand, rel=1e-6)


def test_paths_make_the_flows_and_are_worked_out_later_just_the_same() -> None:
    network = grid(5, 1)
    table = trips(network, 60, 1)
    now, later = (rs.assign(network, table, "system", 1e-8, paths=paths) for paths in (True, False))
    assert (now.flows == later.flows).all()
    for one, other in zip(now.path_shares, later.path_shares, strict=True):
        assert (one == other).all()
    paths = now.path_shares
    by_path = np.repeat(paths.shares * now.pair_vph[paths.pair], np.diff(paths.indptr))
    assert np.bincount(paths.edges, by_path, network.n_edges) == pytest.approx(now.flows, abs=1e-3)
    assert len(paths.shares) < 2 * len(now.pairs)


def test_a_warm_start_finds_the_same_flows_sooner_whatever_the_demand_was() -> None:
    network = grid(6, 2)
    table = trips(network, 150, 2)
    cold = rs.assign(network, table, relative_gap=1e-9)
    warm = rs.assign(network, table, relative_gap=1e-9, start=cold)
    assert warm.iterations == 0
    assert warm.flows == pytest.approx(cold.flows)
    more = table | {"vehicles": [1.1 * v for v in table["vehicles"]]}  # type: ignore[operator]
    again, anew = rs.assign(network, more, relative_gap=1e-9, start=cold), rs.assign(network, more, relative_gap=1e-9)
    assert again.flows == pytest.approx(anew.flows, abs=1.0)
    assert again.objective_value == pytest.approx(anew.objective_value, rel=1e-8)
    assert cold.relative_gap == rs.assign(network, table, relative_gap=1e-9).relative_gap  # the start is left alone
    with pytest.raises(InputError, match="same network and between the same places"):
        rs.assign(grid(6, 2), table, start=cold)


def test_a_toll_moves_drivers_as_worked_out_by_hand() -> None:
    # 10 (1 + x1) + 5 = 20 (1 + x2) in thousands, x1 + x2 = 2: x1 = 1.5.
    roads = town([("s", "t", 10.0), ("s", "t", 20.0)], capacity_vph=1000.0, alpha=1.0, beta=1.0)
    table = {"origin": ["s"], "destination": ["t"], "vehicles": [2000.0]}
    result = rs.assign(roads, table, relative_gap=1e-10, edge_cost_s=[5.0, 0.0])
    assert result.flows == pytest.approx([1500.0, 500.0])
    assert result.travel_time_s == pytest.approx([25.0, 30.0])
    assert result.total_travel_time_s == pytest.approx(1500 * 25 + 500 * 30)  # time alone
    assert result.inequality.worst == pytest.approx(0, abs=1e-6)  # the quicker road costs 5 s more
    # The toll of the optimum makes it the equilibrium.
    optimum = rs.assign(roads, table, "system", 1e-10)
    tolled = rs.assign(roads, table, "user", 1e-10, edge_cost_s=optimum.marginal_cost_s)
    assert tolled.flows == pytest.approx(optimum.flows)
    with pytest.raises(InputError, match="edge_cost_s must be seconds of at least 0, one number for each of 2 edges"):
        rs.assign(roads, table, edge_cost_s=[-1.0, 0.0])


def test_links_cost_what_their_edges_do_with_every_exponent_and_a_background() -> None:
    rng = np.random.default_rng(0)
    n = 40
    prices = Prices(
        rng.uniform(0, 9, n), rng.uniform(0, 2, n), rng.uniform(100, 2000, n), rng.choice([0.0, 0.5, 1.0, 4.0, 6.3], n),
        np.empty(0), np.empty((0, 0)),
    )  # fmt: skip
    first = np.array([0, 1, 5, 12, 40])
    background = rng.choice([0.0, 300.0], n)
    links = link_prices(prices, first, np.arange(n, dtype=np.int32), background)
    out = np.empty(n)
    for flow in (0.0, 1.0, 750.0):
        prices_at(prices, background + flow, out)
        for link in range(4):
            price, slope = link_price(links, link, flow)
            assert price == pytest.approx(out[first[link] : first[link + 1]].sum())
            if flow:
                step = 1e-4 * flow
                rise = link_price(links, link, flow + step)[0] - link_price(links, link, flow - step)[0]
                assert slope == pytest.approx(rise / (2 * step), rel=1e-5, abs=1e-9)


def turn_network(
    network: rs.RoadNetwork, table: dict[str, list[object]]
) -> tuple[rs.RoadNetwork, dict[str, list[str]]]:
    """The slow twin of bans: a node for each end of a road, and a link without length for each turn that is allowed."""
    graph = nx.DiGraph()
    banned = {tuple(turn) for turn in network.banned_turns.tolist()}
    for edge in range(network.n_edges):
        graph.add_edge(
            f"in {edge}", f"out {edge}", free_flow_s=float(network.free_flow_s[edge]),
            capacity_vph=float(network.capacity_vph[edge]), place=edge,
        )  # fmt: skip
    for one in range(network.n_edges):
        for other in np.flatnonzero(network.tails == network.heads[one]).tolist():
            if (one, other) not in banned:
                graph.add_edge(f"out {one}", f"in {other}", free_flow_s=0.0, capacity_vph=1e9)
        for end, name in ((network.heads[one], "to"), (network.tails[one], "from")):
            ends = (f"out {one}", f"to {end}") if name == "to" else (f"from {end}", f"in {one}")
            graph.add_edge(*ends, free_flow_s=0.0, capacity_vph=1e9)
    ends = {
        "origin": [f"from {network.node_index(a)}" for a in table["origin"]],
        "destination": [f"to {network.node_index(b)}" for b in table["destination"]],
    }
    return rs.RoadNetwork.from_networkx(graph), ends | {"vehicles": table["vehicles"]}  # type: ignore[dict-item]


@pytest.mark.parametrize("seed", range(4))
def test_banned_turns_are_not_taken_and_flows_are_those_of_a_graph_of_turns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = grid(4, seed)
    turns = [
        (one, other)
        for one in range(network.n_edges)
        for other in np.flatnonzero(network.tails == network.heads[one]).tolist()
        if network.heads[other] != network.tails[one]
    ]
    chosen = np.array([turns[i] for i in rng.choice(len(turns), 10, replace=False)], dtype=np.int32)
    network = replace(network, banned_turns=chosen)
    table = trips(network, 30, seed)
    slow_network, slow_table = turn_network(network, table)
    number = {(a, b): e for e, (a, b) in enumerate(zip(*(
        [slow_network.labels[i] for i in ends.tolist()] for ends in (slow_network.tails, slow_network.heads)
    ), strict=True))}  # fmt: skip
    roads = [number[f"in {edge}", f"out {edge}"] for edge in range(network.n_edges)]
    for objective in ("user", "system"):
        result = rs.assign(network, table, objective, 1e-9)  # type: ignore[arg-type]
        slow = rs.assign(slow_network, slow_table, objective, 1e-9)  # type: ignore[arg-type]
        assert result.relative_gap <= 1e-9
        assert result.objective_value == pytest.approx(slow.objective_value, rel=1e-7)
        assert result.flows == pytest.approx(slow.flows[roads], abs=1.0)
        banned = {tuple(turn) for turn in chosen.tolist()}
        for pair in result.pairs:
            for path, _ in result.paths(*pair):
                assert not banned & set(pairwise(path))
    limited = rs.assign(network, table, "system", 1e-6, max_detour=0.1)
    assert limited.relative_gap <= 1e-6
    assert limited.detours.worst <= 0.1 + 1e-6
