"""Assignment: hand-computed equilibria, the published ones, and every way of asking for the impossible."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_data import tntp
from town import braess, edge, town

import routesim as rs
from routesim.assignment.contraction import contract
from routesim.errors import InputError, NetworkError, NoPathError, NotConvergedWarning

TRIPS = {"origin": ["s"], "destination": ["t"], "vehicles": [6000.0]}


def test_two_roads_share_the_traffic_until_both_take_equally_long() -> None:
    # t1 = 10 (1 + x1), t2 = 20 (1 + x2) in thousands; x1 + x2 = 2 gives x1 = 5/3, t = 80/3.
    roads = town([("s", "t", 10.0), ("s", "t", 20.0)], capacity_vph=1000.0, alpha=1.0, beta=1.0)
    result = rs.assign(roads, {"origin": ["s"], "destination": ["t"], "vehicles": [2000.0]}, relative_gap=1e-9)
    assert result.flows == pytest.approx([5000 / 3, 1000 / 3], rel=1e-6)
    assert result.travel_time_s == pytest.approx([80 / 3, 80 / 3], rel=1e-6)
    assert result.total_travel_time_s == pytest.approx(2000 * 80 / 3, rel=1e-6)
    # Beckmann: 10 (x + x^2 / 2) + 20 (x + x^2 / 2) in thousands.
    by_hand = 10 * (5 / 3 + 25 / 18) + 20 * (1 / 3 + 1 / 18)
    assert result.objective_value == pytest.approx(1000 * by_hand, rel=1e-6)


def test_the_optimum_equalises_marginal_times() -> None:
    # 10 (1 + 2 x1) = 20 (1 + 2 x2) with x1 + x2 = 2: x1 = 1.5.
    roads = town([("s", "t", 10.0), ("s", "t", 20.0)], capacity_vph=1000.0, alpha=1.0, beta=1.0)
    table = {"origin": ["s"], "destination": ["t"], "vehicles": [2000.0]}
    result = rs.assign(roads, table, "system", relative_gap=1e-9)
    assert result.flows == pytest.approx([1500, 500], rel=1e-6)
    assert result.objective_value == pytest.approx(result.total_travel_time_s)
    assert result.marginal_cost_s == pytest.approx([15.0, 10.0], rel=1e-6)
    assert [share for _, share in result.paths("s", "t")] == pytest.approx([0.75, 0.25], rel=1e-6)


def test_braess_the_bridge_makes_everybody_slower_and_the_optimum_leaves_it_empty() -> None:
    with_bridge, without = (rs.assign(braess(bridge), TRIPS, relative_gap=1e-8) for bridge in (True, False))
    assert without.mean_travel_time_s == pytest.approx(83, rel=1e-4)
    assert with_bridge.mean_travel_time_s == pytest.approx(92, rel=1e-4)
    optimum = rs.assign(braess(), TRIPS, "system", relative_gap=1e-8)
    assert optimum.mean_travel_time_s == pytest.approx(83, rel=1e-4)
    assert optimum.flows[edge(braess(), "a", "b")] == pytest.approx(0, abs=1)


@pytest.mark.parametrize(("name", "objective"), [("SiouxFalls", 4_231_335.3), ("Anaheim", 1_286_032.2)])
def test_the_published_equilibria_are_found(name: str, objective: float) -> None:
    network, trips = tntp(name)
    demand = rs.Demand.from_tntp_trips(trips)
    user = rs.assign(network, demand)
    assert user.relative_gap <= 1e-4
    assert user.objective_value / 60 == pytest.approx(objective, rel=1e-4)
    rows = (line.split() for line in trips.with_name(f"{name}_flow.tntp").read_text().splitlines()[1:] if line.strip())
    volume = {(int(tail), int(head)): float(flow) for tail, head, flow, _ in rows}
    published = [
        volume[network.labels[t], network.labels[h]] for t, h in zip(network.tails, network.heads, strict=True)
    ]
    assert np.corrcoef(user.flows, published)[0, 1] > 0.999
    system = rs.assign(network, demand, "system")
    assert system.relative_gap <= 1e-4
    assert system.total_travel_time_s < 0.99 * user.total_travel_time_s


def test_flows_are_the_sum_of_the_paths_and_no_zone_is_passed_through() -> None:
    network, trips = tntp("Anaheim")
    result = rs.assign(network, rs.Demand.from_tntp_trips(trips))
    found = result.path_shares
    by_path = np.repeat(result.pair_vph, np.diff(found.first)) * found.shares
    flows = np.zeros(network.n_edges)
    np.add.at(flows, found.edges, np.repeat(by_path, np.diff(found.indptr)))
    assert flows == pytest.approx(result.flows, abs=1e-3)
    for number, (origin, destination) in enumerate(result.pairs):
        for p in range(found.first[number], found.first[number + 1]):
            path = found.edges[found.indptr[p] : found.indptr[p + 1]]
            assert network.labels[network.tails[path[0]]] == origin
            assert network.labels[network.heads[path[-1]]] == destination
            assert (network.heads[path[:-1]] == network.tails[path[1:]]).all()
            assert not network.no_through[network.tails[path[1:]]].any()


def test_a_demand_is_assigned_at_its_mean_rate() -> None:
    roads = town([("s", "t", 10.0), ("s", "t", 20.0)], capacity_vph=1000.0)
    half_an_hour = rs.Demand.from_od({"origin": ["s"], "destination": ["t"], "vehicles": [500.0]}, 0, 1800)
    assert rs.assign(roads, half_an_hour).flows.sum() == pytest.approx(1000)


def test_rows_of_one_pair_are_added_up() -> None:
    roads = town([("s", "t", 10.0)])
    table = {"origin": ["s", "s"], "destination": ["t", "t"], "vehicles": [1.0, 2.0]}
    assert rs.assign(roads, table).flows.tolist() == [3.0]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_contraction_changes_no_distance(seed: int) -> None:
    """On random roads with bends, dead ends and parallels, links join the same nodes at the same least prices."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    rng = np.random.default_rng(seed)
    n_nodes = int(rng.integers(4, 25))
    roads = []
    for node in range(1, n_nodes):
        other = int(rng.integers(max(0, node - 3), node))
        roads.append((other, node, float(rng.integers(1, 9))))
        if rng.random() < 0.8:
            roads.append((node, other, float(rng.integers(1, 9))))
    for _ in range(int(rng.integers(0, n_nodes))):
        tail, head = rng.choice(n_nodes, 2, replace=False)
        roads.append((int(tail), int(head), float(rng.integers(1, 9))))
    network = town(roads)  # type: ignore[arg-type]
    ends = rng.choice(network.n_nodes, 3, replace=False).astype(np.int32)
    links = contract(network, ends)

    def distances(tails: object, heads: object, prices: np.ndarray, n: int, start: int) -> np.ndarray:
        cheapest: dict[tuple[int, int], float] = {}
        for tail, head, price in zip(tails, heads, prices, strict=True):  # type: ignore[call-overload]
            cheapest[tail, head] = min(price, cheapest.get((tail, head), np.inf))
        rows, columns = zip(*cheapest, strict=True) if cheapest else ((), ())
        return dijkstra(csr_array((list(cheapest.values()), (rows, columns)), shape=(n, n)), indices=start)

    for start in ends:
        before = distances(network.tails, network.heads, network.free_flow_s, network.n_nodes, start)[ends]
        after = distances(
            links.graph.tails,
            links.graph.heads,
            links.prices(network.free_flow_s),
            len(links.junctions),
            links.number[start],
        )[links.number[ends]]
        assert after == pytest.approx(before)


def test_a_pair_that_no_path_joins_is_an_error_that_names_it() -> None:
    roads = town([("s", "t", 10.0), ("u", "t", 10.0)])
    with pytest.raises(NoPathError, match=r"from 's' to 'u'.*5 vehicles"):
        rs.assign(roads, {"origin": ["s"], "destination": ["u"], "vehicles": [5.0]})


def test_zones_without_through_traffic_are_no_way_through() -> None:
    roads = town([("s", "z", 1.0), ("z", "t", 1.0)])
    closed = _with_no_through(roads, "z")
    with pytest.raises(NoPathError, match="'s' to 't'"):
        rs.assign(closed, {"origin": ["s"], "destination": ["t"], "vehicles": [5.0]})
    assert rs.assign(closed, {"origin": ["s"], "destination": ["z"], "vehicles": [5.0]}).flows.tolist() == [5.0, 0.0]


def _with_no_through(network: rs.RoadNetwork, label: str) -> rs.RoadNetwork:
    import dataclasses

    marks = np.zeros(network.n_nodes, dtype=bool)
    marks[network.node_index(label)] = True
    values = {f.name: getattr(network, f.name) for f in dataclasses.fields(network) if f.init}
    return rs.RoadNetwork(**{**values, "no_through": marks})


def test_what_cannot_be_assigned_is_refused() -> None:
    roads = town([("s", "t", 10.0)])
    with pytest.raises(NetworkError, match="no node 'x'"):
        rs.assign(roads, {"origin": ["x"], "destination": ["t"], "vehicles": [5.0]})
    with pytest.raises(InputError, match="column 'vehicles'; it has origin, destination"):
        rs.assign(roads, {"origin": ["s"], "destination": ["t"]})
    with pytest.raises(InputError, match=r"at least 0, got -1\.0 in row 0"):
        rs.assign(roads, {"origin": ["s"], "destination": ["t"], "vehicles": [-1.0]})
    with pytest.raises(InputError, match="without vehicles"):  # within one place nobody needs a road
        rs.assign(roads, {"origin": ["s"], "destination": ["s"], "vehicles": [1.0]})
    with pytest.raises(InputError, match="without vehicles"):
        rs.assign(roads, {"origin": ["s"], "destination": ["t"], "vehicles": [0.0]})
    with pytest.raises(InputError, match='"user" or "system"'):
        rs.assign(roads, TRIPS, "best")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="between 0 and 1, got 0"):
        rs.assign(roads, TRIPS, relative_gap=0)
    with pytest.raises(NetworkError, match="capacity_vph must be a finite number between 1e-06 and 1e\\+12, got 0"):
        town([("s", "t", 10.0)], capacity_vph=0.0)


def test_a_gap_not_reached_is_a_warning_and_the_gap_is_told() -> None:
    network, trips = tntp("SiouxFalls")
    with pytest.warns(NotConvergedWarning, match="after 3 iterations"):
        result = rs.assign(network, rs.Demand.from_tntp_trips(trips), max_iterations=3)
    assert result.relative_gap > 1e-4
