"""Units and reports: the same numbers as the library's own calls, hand-computed loads, shares and curves."""

import pickle
import tomllib
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import routesim as rs
from routesim.errors import InputError, RoutesimError, ScenarioError
from routesim.results.run import Run
from routesim.results.thinned_traffic import TrafficRun
from routesim.runner.reports import report
from routesim.runner.units import Part, Unit, units
from routesim.scenario.bundled import scenario_names
from routesim.scenario.files import fingerprint, load_scenario, parse_scenario, points, scenario_schema, to_toml
from routesim.scenario.kinds import AnyScenario

FOLDER = Path(__file__).parents[2] / "scenarios"

DIAMOND = """
kind = "city"
title = "two ways"
rounds = 8
replications = 2
seed = 0
[city]
origin = "home"
destination = "work"
method = "all"
window = 1
noise = 0.0
congestion = { name = "linear", slope = 1.0 }
edges = [
  { from = "home", to = "bridge", free_flow_s = 10.0 }, { from = "bridge", to = "work", free_flow_s = 10.0 },
  { from = "home", to = "ferry", free_flow_s = 15.0 }, { from = "ferry", to = "work", free_flow_s = 15.0 },
]
[[learners]]
name = "ShortestPath"
[[learners]]
name = "Oracle"
"""

STREET = """
kind = "traffic"
title = "one street"
replications = 1
seed = 3
[traffic]
window_s = 100
edges = [
  { from = "a", to = "b", free_flow_s = 10.0, capacity_vph = 36.0, bpr_alpha = 1.0, bpr_beta = 1.0 },
  { from = "b", to = "c", free_flow_s = 20.0, capacity_vph = 36.0, bpr_alpha = 0.0, bpr_beta = 1.0, name = "quay" },
]
[traffic.demand]
trips = "trips.csv"
[[learners]]
name = "FreeFlowRouter"
"""


def played(scenario: AnyScenario) -> dict[Unit, Part]:
    return {unit: unit.run() for unit in units(scenario)}


@pytest.mark.parametrize("name", scenario_names())
def test_a_bundled_scenario_is_short_titled_and_survives_being_written(name: str) -> None:
    scenario = load_scenario(name)
    assert len((FOLDER / f"{name}.toml").read_text(encoding="utf-8").splitlines()) <= 52
    again = parse_scenario(to_toml(scenario))
    assert again == scenario
    assert fingerprint(again) == fingerprint(scenario)
    assert fingerprint(load_scenario(name, seed=7)) != fingerprint(scenario)


@pytest.mark.parametrize("name", scenario_names())
def test_the_schema_for_editors_accepts_the_bundled_scenarios(name: str) -> None:
    content = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    jsonschema.validate(content, scenario_schema())
    for wrong in ({**content, "nonsense": 1}, {**content, "learners": [{"name": "nobody"}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, scenario_schema())


def test_every_key_of_the_schema_is_described() -> None:
    for name, model in scenario_schema()["$defs"].items():
        for key, item in model.get("properties", {}).items():
            assert "description" in item or "const" in item, f"{name}.{key}"


def test_units_give_what_replicate_gives() -> None:
    scenario = load_scenario("helsinki", rounds=300, replications=2)
    parts = played(scenario)
    network = scenario.city.network()  # type: ignore[union-attr]  # helsinki is a city
    environment = scenario.city.environment(network, scenario.city.actions(network))  # type: ignore[union-attr]
    for number, choice in enumerate(scenario.learners):
        runs = rs.replicate(environment, choice.make(), 300, scenario.seed, 2)
        for unit, part in parts.items():
            if unit.learner == number:
                assert isinstance(part, Run)
                np.testing.assert_array_equal(part.expected_rewards, runs[unit.replication].expected_rewards)
                assert part.comparator_value == runs[unit.replication].comparator_value


def test_units_have_keys_of_their_own_and_travel_between_processes() -> None:
    every = units(load_scenario("paper-bandits", rounds=10, replications=2))
    assert len({unit.key for unit in every}) == len(every) == 3 * 2 * 2
    assert [pickle.loads(pickle.dumps(unit)) for unit in every] == every  # noqa: S301 - as processes do it


def test_a_diamond_by_hand() -> None:
    told = report(parse_scenario(DIAMOND), played(parse_scenario(DIAMOND)))
    shortest, oracle = told.table
    # Always the bridge: 20 s on the empty road, then 40 s. In turn: 20 s and 30 s.
    assert shortest["mean_trip_s"] == pytest.approx((20 + 7 * 40) / 8)
    assert shortest["mean_trip_in_the_end_s"] == pytest.approx(40)
    assert oracle["best_known_s"] == pytest.approx(25)
    assert oracle["above_best_known"] == pytest.approx(float(oracle["mean_trip_in_the_end_s"]) / 25 - 1)
    record = told.record
    assert record.step_ends.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    fixed = record.learners[0]
    assert record.routes[0] == (0, 2) or record.network is not None
    bridge = record.routes.index(
        max(record.routes, key=lambda route: fixed.shares[:, record.routes.index(route)].sum())
    )
    assert fixed.shares[:, bridge].tolist() == [1.0] * 8
    assert fixed.loads.max() == 1.0
    used = fixed.loads[0] > 0
    assert fixed.ratios[:, used].tolist() == [[1.0, 1.0]] + [[2.0, 2.0]] * 7, "one use in the window doubles the time"
    assert fixed.route_values[bridge] == pytest.approx((20 + 7 * 40) / 8)
    np.testing.assert_allclose(fixed.curve, [20.0] + [40.0] * 7)
    np.testing.assert_allclose(record.references["best possible"], 25)
    assert "ShortestPath" in str(told.table[0]["learner"])
    assert told.rounds.num_rows == 2 * 2 * 8


def test_one_street_by_hand(tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_text("origin,destination,departure_s\na,c,0\na,c,5\n")
    (tmp_path / "street.toml").write_text(STREET)
    scenario = load_scenario(tmp_path / "street.toml")
    parts = played(scenario)
    (part,) = parts.values()
    assert isinstance(part, TrafficRun)
    # One entry in 100 s is a flow of 36 vehicles an hour, the capacity: the second takes twice the time on a-b.
    assert part.summary["mean_travel_time_s"] == pytest.approx((30 + 40) / 2)
    assert part.departures.sum() == part.arrived.sum() == 2
    assert part.loads[:, 2].sum() == 4
    assert part.routes == [(0, 1)]
    told = report(scenario, parts)
    assert told.table[0]["mean_trip_s"] == pytest.approx(35)
    assert told.record.learners[0].route_values[0] == pytest.approx(35)
    assert told.record.clock == "seconds"
    part.save(tmp_path / "part")
    again = TrafficRun.load(tmp_path / "part")
    assert again.routes == part.routes
    np.testing.assert_array_equal(again.quantiles, part.quantiles)
    (tmp_path / "part" / "traffic.npz").write_bytes(b"nonsense")
    with pytest.raises(RoutesimError, match="part"):
        TrafficRun.load(tmp_path / "part")


def test_parts_come_back_from_their_folders(tmp_path: Path) -> None:
    for name in ("braess", "plain-bandit"):
        scenario = load_scenario(name, rounds=60, replications=1)
        parts = played(scenario)
        back = {}
        for unit, part in parts.items():
            part.save(tmp_path / unit.key)
            back[unit] = unit.load(tmp_path / unit.key)
        assert report(scenario, back).table == report(scenario, parts).table


def test_a_sweep_is_a_grid_of_scenarios() -> None:
    text = DIAMOND + '[sweep]\n"city.window" = [0, 1]\n"learners.1.sample" = [10, 20, 30]\n'
    found = points(parse_scenario(text))
    assert len(found) == 6
    assert found[1][0] == {"city.window": 0, "learners.1.sample": 20}
    assert found[1][1].title == "two ways (window 0, sample 20)", "pages of points are told apart"
    assert found[5][1].city.window == 1  # type: ignore[union-attr]  # a city
    assert found[5][1].learners[1].make().sample == 30
    assert not any(scenario.sweep for _, scenario in found)
    with pytest.raises(InputError, match="points"):
        units(parse_scenario(text))


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ('"city.window" = []', "no values"),
        ('"city.window" = [1, -1]', r"at city.window = -1: city.window: .*greater than or equal to 0"),
        ('"city.windo" = [1]', "windo.*did you mean 'window'"),
        ('"town.window" = [1]', "there is no table 'town'"),
        ('"learners.7.sample" = [1]', "'7' is no number from 0 to 1"),
        ('"learners.0" = [1]', "name a field of entry 0"),
        ('"city.window" = [1, 1]', "a value twice"),
        ('"kind" = ["bandit"]', "cannot be swept"),
        ('"rounds" = [1]\n"seed" = 1', "sweep.seed"),
        ("[sweep.city]\nwindow = [1, 2.5]", "window"),
    ],
)
def test_a_mistake_in_a_sweep_is_named(sweep: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        parse_scenario(DIAMOND + "[sweep]\n" + sweep)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('destination = "work"', 'destination = "home"', "origin and destination are the same"),
        ("free_flow_s = 15.0", "free_flow_s = -1.0", "city.edges.2.free_flow_s: Input should be greater than 0"),
        ("noise = 0.0", "noise = nan", "city.noise: Input should be a finite number"),
        ("noise = 0.0", 'noise = "0"', "city.noise: Input should be a valid number"),
        ("rounds = 8", "rounds = 8.5", "rounds: Input should be a valid integer"),
        ("rounds = 8", "rounds = true", "rounds: Input should be a valid integer"),
        ("window = 1", "window = 10_000_000", "city.window: Input should be less than or equal to"),
        ('title = "two ways"', 'title = "two\\nways"', "a title is one line"),
        ('title = "two ways"', "", "title: this key is needed"),
        ('origin = "home"', 'origin = "home"\nname = "helsinki"', "one of name, file, place and edges; got name and"),
        ('origin = "home"', 'origin = "home"\nfile = "no.npz"', "there is no file"),
        ('name = "Oracle"', 'name = "CARCB"', "CARCB learns from contexts.*add .city.travellers."),
        (
            'method = "all"',
            'method = "graph"\ntravellers = { classes = { a = 1.0 }, costs = { time = 1.0 } }',
            "travellers need a list of routes",
        ),
    ],
)
def test_nonsense_is_refused_with_its_key(old: str, new: str, message: str) -> None:
    assert old in DIAMOND
    with pytest.raises(ScenarioError, match=message):
        parse_scenario(DIAMOND.replace(old, new))


def test_a_window_beyond_the_rounds_remembers_them_all() -> None:
    told = report(*(lambda one: (one, played(one)))(parse_scenario(DIAMOND.replace("window = 1", "window = 12"))))
    # The bridge every time: 20 s, 40 s, 60 s … 160 s.
    assert told.table[0]["mean_trip_s"] == pytest.approx(90)


def test_places_that_do_not_exist_are_named_when_units_are_made() -> None:
    with pytest.raises(RoutesimError, match="nowhere"):
        units(parse_scenario(DIAMOND.replace('"work"\nmethod', '"nowhere"\nmethod')))


@pytest.mark.parametrize(
    ("demand", "message"),
    [
        ('pairs = [{ from = "a", to = "a", vehicles = 1.0 }]', "to itself"),
        ('pairs = [{ from = "a", to = "c", vehicles = -1.0 }]', "vehicles: Input should be greater than 0"),
        ('pairs = [{ from = "a", to = "c", vehicles = 1.0 }]\nend_s = 0.0', "end_s"),
        ('pairs = [{ from = "a", to = "c", vehicles = 1.0 }]\nprofile = [-1.0]', "profile"),
        ('trips = "missing.csv"', "there is no file"),
        ('od = "pyproject.toml"', "a table is a file that ends in"),
        ("growth = 0.0", "growth"),
    ],
)
def test_nonsense_in_a_demand_is_refused(demand: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        parse_scenario(STREET.replace('trips = "trips.csv"', demand))


def test_roads_without_people_need_a_number_of_vehicles() -> None:
    text = STREET.replace('[traffic.demand]\ntrips = "trips.csv"', "")
    with pytest.raises(InputError, match="no demand of their own"):
        units(parse_scenario(text))
