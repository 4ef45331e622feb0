"""Tables of an assignment against slow, obvious sums over its paths."""

import numpy as np
import pytest
from test_bushes import grid, trips
from town import town

import routesim as rs
from routesim.errors import InputError


@pytest.fixture(scope="module")
def made() -> rs.Assignment:
    network = grid(5, 9)
    return rs.assign(network, trips(network, 50, 9), "system", 1e-8)


def test_the_table_of_edges_says_where_and_how_full_each_is() -> None:
    roads = town([("s", "t", 10.0), ("s", "t", 20.0)], capacity_vph=1000.0, alpha=1.0, beta=1.0)
    table = rs.assign(
        roads, {"origin": ["s"], "destination": ["t"], "vehicles": [2000.0]}, "system", 1e-10, background=[0.0, 0.0]
    ).table()
    assert table["edge"].tolist() == [0, 1]
    assert table[["u", "v"]].to_numpy().tolist() == [["s", "t"], ["s", "t"]]
    assert table["flow_vph"].tolist() == pytest.approx([1500.0, 500.0])
    assert table["v_c"].tolist() == pytest.approx([1.5, 0.5])
    assert table["travel_time_s"].tolist() == pytest.approx([25.0, 30.0])
    assert table["delay_s"].tolist() == pytest.approx([15.0, 10.0])
    assert {"name", "highway", "length_m", "capacity_vph", "background_vph"} <= set(table.columns)


def test_select_link_is_the_sum_over_the_paths_that_use_it(made: rs.Assignment) -> None:
    for edge in (0, 17, int(np.argmax(made.flows)), int(np.argmin(made.flows))):
        slow, by_pair = np.zeros(made.network.n_edges), {}
        for number, pair in enumerate(made.pairs):
            for path, share in made.paths(*pair):
                if edge in path:
                    slow[list(path)] += share * made.pair_vph[number]
                    by_pair[pair] = by_pair.get(pair, 0.0) + share * made.pair_vph[number]
        flows = made.select_link(edge)
        assert flows == pytest.approx(slow)
        assert flows[edge] == pytest.approx(made.flows[edge], abs=1e-3)
        pairs = made.select_pairs(edge)
        found = dict(zip(zip(pairs["origin"], pairs["destination"], strict=True), pairs["vehicles_vph"], strict=True))
        assert found == pytest.approx(by_pair)
    for wrong in (-1, made.network.n_edges, "Main Street"):
        with pytest.raises(InputError, match="edge must be"):
            made.select_link(wrong)  # type: ignore[arg-type]


def test_skims_are_means_over_drivers_and_the_quickest_times(made: rs.Assignment) -> None:
    from routesim.roads.shortest import shortest_tree

    table = made.skims()
    assert list(zip(table["origin"], table["destination"], strict=True)) == list(made.pairs)
    for row in table.itertuples():
        mean = sum(
            share * made.travel_time_s[list(path)].sum() for path, share in made.paths(row.origin, row.destination)
        )
        assert row.travel_time_s == pytest.approx(mean)
        away = shortest_tree(made.network.graph, made.travel_time_s, made.network.node_index(row.origin))[0]
        assert row.quickest_s == pytest.approx(away[made.network.node_index(row.destination)])
    assert (table["vehicles_vph"] * table["travel_time_s"]).sum() == pytest.approx(made.total_travel_time_s)


def test_path_flows_list_every_path_once_with_the_largest_first(made: rs.Assignment) -> None:
    table = made.path_flows()
    assert table["vehicles_vph"].sum() == pytest.approx(made.demand_vph)
    listed = {(row.origin, row.destination, row.edges): row.share for row in table.itertuples()}
    for pair in made.pairs:
        paths = made.paths(*pair)
        assert [share for *_, share in paths] == [listed[(*pair, path)] for path, _ in paths]
    assert len(listed) == len(table) == len(made.path_shares.shares)
    assert table["travel_time_s"][0] == pytest.approx(made.travel_time_s[list(table["edges"][0])].sum())


def test_an_assignment_shows_itself_in_a_line(made: rs.Assignment) -> None:
    assert repr(made).startswith("<Assignment system: ")
    assert "50 pairs" in repr(made)
    assert len(repr(made)) < 150
