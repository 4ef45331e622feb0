"""Verdicts and tables in words: intervals that are proven, signs that are kept, no interval from one replication."""

import json
from typing import Any

import networkx as nx
import numpy as np
import pytest
from browser import Browser

import routesim as rs
from routesim.assignment.references import References
from routesim.experiment import Comparator
from routesim.report.summary import Group, Report
from routesim.report.summary_rounds import RoadsPlayed, report_rounds
from routesim.report.summary_traffic import Equilibrium, RoadsDriven, report_traffic
from routesim.results.thinned_traffic import TrafficRun
from routesim.runner.outputs import plain


class Always:
    """One road for ever."""

    knows = "nothing"

    def __init__(self, road: int) -> None:
        self.road = road

    def start(self, task: Any, rng: np.random.Generator) -> None:
        """Begin."""

    def choose(self, observation: Any) -> int:  # noqa: ARG002 - whatever it sees
        """Return the road."""
        return self.road

    def update(self, feedback: Any) -> None:
        """Learn nothing."""


def town() -> rs.RoadNetwork:
    """Two roads from home to work: 20 s and 30 s."""
    graph = nx.MultiDiGraph()
    graph.add_edge("home", "work", free_flow_s=20.0)
    graph.add_edge("home", "work", free_flow_s=30.0)
    return rs.RoadNetwork.from_networkx(graph)


def trips(best_known_s: float, bound_s: float, replications: int = 1, learner: rs.Learner | None = None) -> Report:
    """Twenty trips without congestion, down the road of 20 s unless a learner is given, beside a plan and its bound."""
    network = town()
    routes = rs.ActionSet.between(network, "home", "work", method="all")
    world = rs.RoundEnvironment.from_congestion(
        routes, -network.free_flow_s[routes.edges], rs.congestion.Constant(), window=1, noise_std=0.0
    )
    beside = Comparator(-best_known_s, -bound_s)
    fixed = [rs.run(world, rs.ShortestPath(), 20, comparator=beside, replication=k) for k in range(replications)]
    groups = [Group({}, "ShortestPath", False, False, True, fixed)]
    if learner is not None:
        runs = [rs.run(world, learner, 20, comparator=beside, replication=k) for k in range(replications)]
        groups.insert(0, Group({}, "other", False, True, False, runs))
    return report_rounds("trips", groups, RoadsPlayed(network, "2 routes", False))


def arms(known: float, bound: float, replications: int = 1, base: tuple[float, ...] = (0.5, 0.25)) -> Report:
    """Ten rounds on the better of two arms without congestion, beside a plan and its bound."""
    sort = rs.ActionSet.arms(2)
    world = rs.RoundEnvironment.from_congestion(sort, list(base), rs.congestion.Constant(), window=1, noise_std=0.0)
    beside = Comparator(known, bound)
    runs = [rs.run(world, rs.ShortestPath(), 10, comparator=beside, replication=k) for k in range(replications)]
    return report_rounds("arms", [Group({"window": 1}, "A", False, True, False, runs)])


def test_between_the_best_plan_known_and_the_bound_the_interval_is_given() -> None:
    # 20 s a trip; the plan takes 20 / 1.001 s, nobody can take less than 20 / 4.75 s.
    told = trips(20 / 1.001, 20 / 4.75)
    assert told.verdict == (
        "ShortestPath did best: 20.0 s a trip in the end, between +0.1 % and +375 % above the best possible."
    )
    assert told.columns[3:] == ["above the best known", "above the best possible, at most"]
    assert told.cells[0][3:] == ["+0.1 %", "+375 %"]
    assert "the best plan known takes 20.0 s, nobody can take less than 4.2 s" in told.heading
    row = told.table[0]
    assert (row["above_best_known"], row["above_bound"]) == (pytest.approx(0.001), pytest.approx(3.75))
    assert "best_possible_s" not in row


def test_a_proven_plan_is_the_best_possible() -> None:
    told = trips(16.0, 16.0)
    assert told.verdict == "ShortestPath did best: 20.0 s a trip in the end, +25.0 % above the best possible."
    assert told.columns[3:] == ["above the best possible"]
    assert told.cells[0][3:] == ["+25.0 %"]
    assert "nobody" not in told.heading


def test_who_beats_the_best_plan_known_is_said_with_the_sign() -> None:
    # 20 s beside a plan of 40 s: half of it. The bound is 16 s: 25 % below 20 s.
    told = trips(40.0, 16.0)
    assert told.verdict == (
        "ShortestPath did best: 20.0 s a trip in the end, -50.0 % against the best plan known "
        "(at most +25.0 % above the best possible)."
    )
    assert told.cells[0][3:] == ["-50.0 %", "+25.0 %"]
    assert "-50.0 % against the best possible" in trips(40.0, 40.0).verdict
    assert "+0.0 % above the best possible" in trips(20.000001, 20.000001).verdict, "no -0.0 %"


def test_a_bound_of_nothing_proves_nothing() -> None:
    told = trips(16.0, 0.0)
    assert "+25.0 % above the best plan known; how far above the best possible is not known." in told.verdict
    assert told.table[0]["above_bound"] is None


def test_more_than_the_shortest_path_is_said_as_more() -> None:
    worse = trips(16.0, 16.0, learner=Always(1))
    # The other road takes 30 s, half as much again.
    assert "30.0 s a trip in the end, +87.5 % above the best possible, and 50 % more than sending" in worse.verdict
    same = trips(16.0, 16.0, learner=Always(0))
    assert "and as much as sending everyone down the shortest path" in same.verdict


def test_one_replication_has_no_interval() -> None:
    told = trips(16.0, 16.0)
    assert told.cells[0][1:3] == ["20.0", "20.0"]
    assert told.heading == "2 routes, 20 trips, 1 replication, which gives no interval"
    assert (told.table[0]["plus_minus_s"], told.table[0]["standard_error_s"]) == (None, None)
    assert '"plus_minus_s": null' in json.dumps(plain(told.table[0]))
    two = trips(16.0, 16.0, replications=2)
    assert two.cells[0][1] == "20.0 ± 0.0", "two that agree have an interval, of no width"
    assert two.heading == "2 routes, 20 trips, 2 replications"


def test_arms_of_one_replication_have_no_interval() -> None:
    told = arms(0.5, 0.5)
    assert told.cells == [["1", "A", "0.0000"]]
    assert told.heading == "average regret by rounds of 1 replication, which gives no interval"
    assert told.table[0]["plus_minus_10"] is None
    assert arms(0.5, 0.5, 2).heading == "average regret by rounds, mean ± 95 % band over 2 replications"


def test_arms_are_compared_with_what_is_proven() -> None:
    assert arms(0.5, 0.5).verdict == (
        "A did best of those that had to learn (window 1): it lost 0.0000 a round against the best possible, and "
        "earned 100.0 % of it over all rounds."
    )
    # 0.5 a round beside a plan of 0.6 and a bound of 1: 0.1 and 0.5 lost, 83.3 % and 50 % earned.
    assert arms(0.6, 1.0).verdict == (
        "A did best of those that had to learn (window 1): it lost 0.1000 a round against the best plan known (at most "
        "0.5000 against the best possible), and earned between 50.0 % and 83.3 % of that over all rounds."
    )
    assert "it gained 0.1000 a round against the best plan known (at most 0.5000" in arms(0.4, 1.0).verdict


def drive(references: References, replications: int = 1) -> Report:
    """Two trips of 20 s beside these references."""
    network = town()
    table = {"origin": ["home"] * 2, "destination": ["work"] * 2, "departure_s": [0.0, 400.0]}
    simulator = rs.TrafficSimulator(network, rs.Demand.from_trips(table))
    runs = [TrafficRun.of(simulator.run(rs.FreeFlowRouter(), seed), 0.0, np.inf) for seed in range(replications)]
    groups: list[Any] = [Group({}, "Free", False, False, True, runs)]
    return report_traffic("drive", groups, RoadsDriven(network, 300.0, False, references))


def test_traffic_says_signs_and_no_interval_from_one_replication() -> None:
    told = drive(References(20.0, 25.0))
    assert told.verdict == "Free did best: 20.0 s a trip, -20.0 % against the static system optimum."
    assert told.cells[0] == ["Free", "20.0", "20.0", "-20.0 %"]
    assert told.heading.startswith("2 vehicles, 1 replication, which gives no interval; physics: window count; static")
    assert told.table[0]["plus_minus_s"] is None
    assert drive(References(20.0, 25.0), 2).cells[0][1] == "20.0 ± 0.0"


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (12_500, "12,500"),
        (10_000, "10,000"),
        (0.30000000000000004, "0.3"),
        (1_234_567, "1,234,567"),
        (0.0125, "0.0125"),
    ],
)
def test_labels_of_axes_are_exact(browser: Browser, pages: dict[str, Any], value: float, label: str) -> None:
    browser.open(pages["city"])
    assert browser.js(f"return Words.exact({value!r})") == label


def test_labels_of_a_long_run_have_all_their_digits(browser: Browser, pages: dict[str, Any]) -> None:
    browser.open(pages["city"])
    drawn = """
      const box = document.createElement('div');
      box.style.width = '700px';
      document.body.append(box);
      const [x, values] = arguments, words = {label: '', xLabel: '', yLabel: ''};
      const plain = {formatX: Words.exact, formatY: Words.exact, ...words};
      Charts.chart(box, () => ({x, ...plain, series: [{values, colour: 'red'}]})).draw();
      const texts = [...box.querySelectorAll('text')].map((text) => text.textContent).filter(Boolean);
      box.remove();
      return texts;"""
    texts = browser.driver.execute_script(drawn, [0, 15_000], [100_010, 100_040])
    assert {"2,500", "12,500"} <= set(texts)
    assert {"100,010", "100,020", "100,030", "100,040"} <= set(texts), "not 100,000 four times"
    texts = browser.driver.execute_script(drawn, [0, 15_000], [400, 400 + 1e-13])
    assert len(texts) > 3, "a range of rounding errors is drawn too"


def test_traffic_beside_a_day_to_day_equilibrium_has_its_gap() -> None:
    network = town()
    table = {"origin": ["home"] * 2, "destination": ["work"] * 2, "departure_s": [0.0, 400.0]}
    traffic = rs.TrafficSimulator(network, rs.Demand.from_trips(table), physics="plain-queue").run(rs.FreeFlowRouter())
    groups: list[Any] = [Group({}, "Free", False, False, True, [TrafficRun.of(traffic, 0.0, np.inf)])]
    told = report_traffic("drive", groups, RoadsDriven(network, 300.0, False, References(), Equilibrium(16.0, 0.012)))
    assert told.verdict == "Free did best: 20.0 s a trip, +25.0 % against the day-to-day equilibrium."
    assert told.columns[-1] == "against day-to-day equilibrium"
    assert told.cells[0][-1] == "+25.0 %"
    assert "day-to-day equilibrium 16.0 s a trip with a gap of 1.2% (a reference, no bound)" in told.heading
    row = told.table[0]
    assert (row["day_to_day_equilibrium_s"], row["day_to_day_gap"]) == (16.0, 0.012)
    assert row["distance_to_day_to_day_equilibrium"] == pytest.approx(0.25)
    assert "user_equilibrium_s" not in row
    assert told.record.references.keys() == {"day-to-day equilibrium"}
