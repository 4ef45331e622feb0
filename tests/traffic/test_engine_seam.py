"""A second engine behind the seam: a slow one in plain Python, with which every router must do as with the first."""

from typing import Any

import numpy as np
import pytest
from slow_engine import SlowWindow
from test_simulator import grid, rush
from town import town

import routesim as rs
from routesim.errors import InputError
from routesim.traffic.engines.base import Physics

ROUTERS = [
    rs.FreeFlowRouter(),
    rs.GreedyRouter(),
    rs.LogitRouter(k=3),
    rs.PlannedRouter(),
    rs.CompliantRouter(rs.PlannedRouter(), rs.GreedyRouter(), share=0.5),
    rs.CARMABRouter(interval_s=60.0),
    rs.UCB1(),
]


# Roads in the middle of the grid that are closed, at times together, and one that keeps a third of its capacity.
INCIDENTS = (
    rs.Incident([10, 11], 10.0, 60.0),
    rs.Incident([20, 30], 25.0, 90.0),
    rs.Incident([5, 25, 40], 0.0, 400.0, capacity=0.3),
    rs.Incident([12], 30.0, 31.0),
)


@pytest.mark.parametrize(("until_s", "incidents"), [(None, ()), (60.0, ()), (None, INCIDENTS), (70.0, INCIDENTS)])
@pytest.mark.parametrize("router", ROUTERS, ids=lambda router: type(router).__name__)
def test_every_router_does_the_same_with_a_slow_engine_behind_the_seam(
    router: Any, until_s: float | None, incidents: tuple[rs.Incident, ...]
) -> None:
    times = np.random.default_rng(5).uniform(15.0, 25.0, 48)  # no two ways take the same time
    even = grid(4)
    ends = zip(even.tails.tolist(), even.heads.tolist(), times.tolist(), strict=True)
    network = town([(even.labels[a], even.labels[b], time) for a, b, time in ends], capacity_vph=400.0)
    demand = rush(network, 150, 100, seed=3)
    assert isinstance(SlowWindow(), Physics)
    fast, slow = (
        rs.TrafficSimulator(network, demand, 60.0, physics=physics, incidents=incidents).run(
            router, seed=4, until_s=until_s
        )
        for physics in ("window", SlowWindow())
    )
    assert slow.arrival_s == pytest.approx(fast.arrival_s, rel=1e-9, nan_ok=True)
    assert slow.n_events == fast.n_events > 100
    assert np.array_equal(slow.edge_counts, fast.edge_counts)
    assert [slow.path(v).tolist() for v in range(150)] == [fast.path(v).tolist() for v in range(150)]
    assert slow.load_seconds.sum() == pytest.approx(fast.load_seconds.sum())


def test_a_physics_is_known_by_its_name_and_refuses_the_options_of_another() -> None:
    roads, demand = town([("s", "t", 10.0)]), rush(town([("s", "t", 10.0), ("t", "s", 10.0)]), 2, 10, 0)
    window = rs.physics.Window(rs.congestion.Linear(0.5), overtaking=False)
    assert rs.TrafficSimulator(roads, demand, physics=window).physics == window
    beside = rs.TrafficSimulator(roads, demand, 300, rs.congestion.Linear(0.5), overtaking=False)
    assert beside.physics == window
    assert rs.TrafficSimulator(roads, demand).physics == rs.physics.Window()
    with pytest.raises(InputError, match=r"physics is one of 'window'.* or"):
        rs.TrafficSimulator(roads, demand, physics="quantum")
    with pytest.raises(InputError, match="the physics 'slow' has no option congestion"):
        rs.TrafficSimulator(roads, demand, 300, rs.congestion.Linear(0.5), physics=SlowWindow())
