"""The static references beside a run, computed by hand."""

import math

import networkx as nx
import pytest

import routesim as rs
from routesim.assignment.references import References, references
from routesim.traffic.engines.window import Window


def test_pigou_by_hand() -> None:
    graph = nx.MultiDiGraph()
    road = {"capacity_vph": 100.0, "bpr_beta": 1.0}
    graph.add_edge("a", "b", free_flow_s=60.0, bpr_alpha=1.0, **road)  # 60 (1 + v / 100) seconds
    graph.add_edge("a", "b", free_flow_s=120.0, bpr_alpha=0.0, **road)
    network = rs.RoadNetwork.from_networkx(graph)
    demand = rs.Demand.from_od({"origin": ["a"], "destination": ["b"], "vehicles": [100.0]}, 0.0, 3600.0)
    found = references(network, demand, relative_gap=1e-6)
    # In the equilibrium all 100 take the first road, for 120 s. In the optimum half of them do: 60 * 1.5 s and 120 s.
    assert found == pytest.approx((120.0, 105.0), rel=1e-3)
    beside = found.beside(126.0)
    assert beside["excess_over_system_optimum"] == pytest.approx(0.2, abs=1e-3)
    assert beside["distance_to_user_equilibrium"] == pytest.approx(0.05, abs=1e-3)
    assert all(math.isnan(value) for value in References().beside(126.0).values())


def test_only_bpr_with_the_roads_own_capacities_is_what_an_assignment_assumes() -> None:
    assert Window(rs.congestion.BPR()).has_static_references
    assert not Window(rs.congestion.BPR(capacity=5)).has_static_references
    assert not Window(rs.congestion.Linear(0.5)).has_static_references
