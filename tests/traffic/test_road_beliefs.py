"""RoadBeliefs and the router on them: curves that are learned, fall-backs, forgetting, and vehicles sent by beliefs."""

import warnings
from typing import Any

import numpy as np
import pytest
from town import town

import routesim as rs
from routesim.errors import CapacityWarning, RouteError
from routesim.traffic.protocol import BELIEVED, Departures, Routes, TrafficTask
from routesim.traffic.routers.road_beliefs import RoadBeliefs

HOUR = 3600.0
WINDOW_S = 300.0


class Watcher(rs.FreeFlowRouter):
    """Sends everybody down the one road, and looks at it every minute."""

    feedback = "lessons"

    def __init__(self, *, forget: bool = True) -> None:
        super().__init__()
        self.interval_s, self.forget = 60.0, forget

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:
        super().start(task, rng)
        self.beliefs, self.seen = RoadBeliefs(task, forget=self.forget), []

    def route(self, departures: Departures) -> Routes:
        self.beliefs.look(departures.now_s, self._task.counts())
        if len(self.seen) % 5 == 0:
            self.beliefs.pool()
        self.seen.append((departures.now_s, self.beliefs.times[0].copy(), self.beliefs.resets))
        return super().route(departures)


def one_road(vph: float = 1800.0, *, beta: float = 4.0, hours: float = 2.0, **options: Any) -> Watcher:
    """What is learned of a road of 120 s and 1,200 an hour whose demand swells from nothing and ebbs."""
    forget = options.pop("forget", True)
    road = town([("s", "t", 120.0)], capacity_vph=1200.0, beta=beta)
    table = {"origin": ["s"], "destination": ["t"], "vehicles": [vph * hours]}
    demand = rs.Demand.from_od(table, 0.0, hours * HOUR, profile=[1, 2, 3, 4, 3, 2, 1, 2, 3, 4])
    watcher = Watcher(forget=forget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapacityWarning)
        rs.TrafficSimulator(road, demand, WINDOW_S, noise=0.1, **options).run(watcher, seed=1)
    return watcher


def true_times(counts: Any, capacity_vph: float = 1200.0, beta: float = 4.0) -> Any:
    return 120.0 * (1 + 0.15 * (counts / (capacity_vph * WINDOW_S / HOUR)) ** beta)


def test_the_capacity_and_the_power_of_a_road_are_learned() -> None:
    for beta in (2.0, 4.0):
        beliefs = one_road(beta=beta).beliefs
        assert beliefs.beta == beta
        assert np.exp(beliefs.fits.mean[0]) == pytest.approx(100, rel=0.1)
        counts = beliefs.starts[(beliefs.starts > 0) & (beliefs.starts < 1000)]
        found = np.interp(counts, beliefs.starts, beliefs.times[0])
        assert found == pytest.approx(true_times(counts, beta=beta), rel=0.35)
        inside = counts < 150  # what was seen
        assert found[inside] == pytest.approx(true_times(counts[inside], beta=beta), rel=0.1)


def test_a_stationary_road_is_not_forgotten() -> None:
    for noise_free in (True, False):
        assert one_road(forget=noise_free).beliefs.resets == 0


def test_where_no_power_fits_the_bins_take_over_and_go_on_steeply() -> None:
    watcher = one_road(congestion=rs.congestion.Threshold(80, 2.0))
    beliefs = watcher.beliefs
    assert beliefs.fits.misfit[0] > 4
    times = beliefs.times[0]
    assert np.interp([20, 60], beliefs.starts, times) == pytest.approx(120, rel=0.1)
    assert np.interp([110, 130], beliefs.starts, times) == pytest.approx(240, rel=0.1)
    assert (np.diff(times) >= -1e-9).all()
    assert times[-1] > 10 * 240, "beyond the last count seen it is not flat"


def test_what_is_believed_of_a_road_nobody_drove_rises_from_its_free_flow_time() -> None:
    watcher = one_road(0.001)
    times = watcher.beliefs.times[0]
    assert times[0] == 120.0
    assert (np.diff(times) >= 0).all()
    assert times[-1] > 1e5


def test_an_incident_is_noticed_and_what_was_known_before_is_taken_up_again() -> None:
    incident = rs.Incident([0], HOUR, 1.5 * HOUR, capacity=0.5)
    watcher = one_road(1000.0, hours=2.5, incidents=(incident,))
    at = {round(now / 60): (float(np.interp(70, watcher.beliefs.starts, row)), n) for now, row, n in watcher.seen}
    before, during, after = at[58], at[80], at[130]
    assert before[1] == 0
    assert before[0] == pytest.approx(true_times(70), rel=0.1)
    assert during[0] == pytest.approx(true_times(70, 600.0), rel=0.25)
    assert after[0] == pytest.approx(true_times(70), rel=0.15)
    assert 2 <= after[1] <= 6
    stubborn = one_road(1000.0, hours=2.5, incidents=(incident,), forget=False)
    assert stubborn.beliefs.resets == 0


def test_a_vehicle_that_does_not_come_out_is_noticed_before_it_does() -> None:
    # Three minutes later everybody who entered takes more than an hour.
    incident = rs.Incident([0], HOUR, 3 * HOUR, capacity=0.2)
    watcher = one_road(1500.0, hours=1.5, incidents=(incident,))
    late = [row for now, row, _ in watcher.seen if HOUR + 15 * 60 <= now <= HOUR + 20 * 60]
    known = [np.interp(125, watcher.beliefs.starts, row) for row in late]
    assert watcher.beliefs.resets >= 1
    assert max(known) > 2 * true_times(125)


@pytest.mark.parametrize("physics", ["window", "queue"])
def test_believed_routes_go_by_what_is_believed_at_the_counts_of_departure(physics: str) -> None:
    roads = town([("s", "t", 10.0), ("s", "t", 20.0)])

    class Odd(rs.FreeFlowRouter):
        feedback = "lessons"

        def route(self, departures: Departures) -> Routes:
            starts = self._task.lessons.bin_starts
            believed = np.stack((10.0 + 5.0 * starts, np.full(len(starts), 22.0)))
            which = np.full(len(departures.vehicles), BELIEVED)
            return Routes(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32), which, believed=believed)

    times = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    demand = rs.Demand.from_trips({"origin": ["s"] * 6, "destination": ["t"] * 6, "departure_s": times})
    traffic = rs.TrafficSimulator(roads, demand, 100.0, physics=physics).run(Odd())
    assert [int(traffic.path(vehicle)[0]) for vehicle in range(6)] == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("believed", "message"),
    [
        (None, "gave no costs; give Routes\\(believed=...\\)"),
        (np.full((2, 7), 50.0), "needs 112 bins, got 7"),
        (np.full((2, 112), 9.0), "at least the free-flow time"),
        (np.full((3, 112), 50.0), "by \\(edge, bin of the count\\)"),
    ],
)
def test_beliefs_that_cannot_be_are_refused(believed: Any, message: str) -> None:
    roads = town([("s", "t", 10.0), ("s", "t", 20.0)])

    class Wrong(rs.FreeFlowRouter):
        def route(self, departures: Departures) -> Routes:
            which = np.full(len(departures.vehicles), BELIEVED)
            return Routes(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32), which, believed=believed)

    demand = rs.Demand.from_trips({"origin": ["s"], "destination": ["t"], "departure_s": [0.0]})
    with pytest.raises(RouteError, match=message):
        rs.TrafficSimulator(roads, demand).run(Wrong())


def test_the_rate_of_a_demand_follows_its_profile() -> None:
    table = {"origin": ["s"], "destination": ["t"], "vehicles": [100.0]}
    demand = rs.Demand.from_od(table, 0.0, HOUR, profile=[1.0, 3.0])
    assert demand.rate_at(0, 600) == pytest.approx(0.5)
    assert demand.rate_at(2400, 3000) == pytest.approx(1.5)
    assert demand.rate_at(1200, 2400) == pytest.approx(1.0)
    assert demand.rate_at(3600, 4000) == pytest.approx(1.5)
    assert rs.Demand.from_od(table, 0.0, HOUR).rate_at(600, 900) == pytest.approx(1.0)


def test_a_router_that_learns_ends_near_the_plan_that_knows_the_roads() -> None:
    roads = town([("s", "t", 60.0), ("s", "t", 80.0), ("s", "t", 100.0)], capacity_vph=1000.0)
    table = {"origin": ["s"], "destination": ["t"], "vehicles": [5_000.0]}
    simulator = rs.TrafficSimulator(roads, rs.Demand.from_od(table, 0.0, 2 * HOUR), WINDOW_S, noise=0.1)
    mean = {
        type(router).__name__: simulator.run(router, seed=2).measured(HOUR, 2 * HOUR).mean()
        for router in (rs.PlannedRouter(), rs.CARMABRouter(), rs.GreedyRouter())
    }
    assert mean["CARMABRouter"] < 1.03 * mean["PlannedRouter"]
    assert mean["CARMABRouter"] < 1.01 * mean["GreedyRouter"]


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_those_who_follow_are_planned_around_those_who_do_not(share: float) -> None:
    roads = town([("s", "t", 60.0), ("s", "t", 80.0), ("s", "t", 100.0)], capacity_vph=1000.0)
    table = {"origin": ["s"], "destination": ["t"], "vehicles": [5_000.0]}
    simulator = rs.TrafficSimulator(roads, rs.Demand.from_od(table, 0.0, 2 * HOUR), WINDOW_S, noise=0.1)
    mixed = simulator.run(rs.CompliantRouter(rs.CARMABRouter(), rs.GreedyRouter(), share=share), seed=2)
    alone = simulator.run(rs.GreedyRouter(), seed=2)
    assert mixed.measured(HOUR, 2 * HOUR).mean() < 1.01 * alone.measured(HOUR, 2 * HOUR).mean()
