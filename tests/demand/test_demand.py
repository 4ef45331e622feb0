"""Demand: tables in, trips out, and what is wrong with a table is said."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from town import town

import routesim as rs
from routesim.assignment.assignment import load_cheapest
from routesim.demand.cities import HEAVY_VPH, ORDINARY_VPH
from routesim.errors import InputError, NetworkError, NoPathError

PAIR = {"origin": ["s"], "destination": ["t"]}


def draw(demand: rs.Demand, seed: int = 0) -> np.ndarray:
    return demand.draw(np.random.default_rng(seed)).departure_s


def test_trips_are_drawn_as_they_stand() -> None:
    table = pd.DataFrame({"origin": [1, 2], "destination": [2, 3], "departure_s": [0.0, 4.5]})
    demand = rs.Demand.from_trips(table)
    trips = demand.draw(np.random.default_rng(0))
    assert demand.places == (1, 2, 3)
    assert (trips.origins.tolist(), trips.destinations.tolist()) == ([0, 1], [1, 2])
    assert trips.departure_s.tolist() == [0.0, 4.5]


def test_departures_are_poisson_and_follow_the_profile() -> None:
    demand = rs.Demand.from_od({**PAIR, "vehicles": [3000.0]}, 600, 1200, profile=(1, 3, 0, 1))
    times = draw(demand)
    assert abs(len(times) - 3000) < 4 * np.sqrt(3000)
    assert (np.diff(times) >= 0).all()
    assert (times >= 600).all()
    parts = np.histogram(times, np.linspace(600, 1200, 5))[0] / len(times)
    assert parts == pytest.approx([0.2, 0.6, 0.0, 0.2], abs=0.03)
    counts = [len(draw(demand, seed)) for seed in range(200)]
    assert np.var(counts) == pytest.approx(3000, rel=0.35)


def test_the_same_seed_draws_the_same_trips() -> None:
    demand = rs.Demand.from_od({**PAIR, "vehicles": [50.0]})
    assert np.array_equal(draw(demand, 3), draw(demand, 3))
    assert not np.array_equal(draw(demand, 3), draw(demand, 4))


def test_demand_grows() -> None:
    rates = rs.Demand.from_od({**PAIR, "vehicles": [50.0]}).scaled(1.5)
    assert rates.expected_vehicles == 75
    trips = rs.Demand.from_trips({**PAIR, "departure_s": [7.0]}).scaled(2)
    assert draw(trips).tolist() == [7.0, 7.0]


def test_the_gravity_model_by_hand() -> None:
    # 100 s apart with decay 100 s; populations 1, 2 and 0: the two pairs weigh the same.
    roads = town([("a", "b", 100.0), ("b", "a", 100.0), ("b", "c", 5.0), ("c", "b", 5.0), ("c", "a", 300.0)])

    class Zones:
        node = ("a", "b", "c", "b")
        population = (10.0, 15.0, 5.0, 5.0)

    demand = rs.Demand.from_zones(roads, Zones, vehicles=100.0, decay_s=100.0)
    table = demand.per_hour()
    rates = dict(zip(zip(table["origin"], table["destination"], strict=True), table["vehicles"], strict=True))
    weights = {
        ("a", "b"): 200 * np.exp(-1.0),
        ("b", "a"): 200 * np.exp(-1.0),
        ("b", "c"): 100 * np.exp(-0.05),
        ("c", "b"): 100 * np.exp(-0.05),
        ("a", "c"): 50 * np.exp(-1.05),
        ("c", "a"): 50 * np.exp(-1.05),
    }
    total = sum(weights.values())
    assert rates == pytest.approx({pair: 100 * weight / total for pair, weight in weights.items()})
    one_way = town([("a", "b", 100.0), ("b", "c", 5.0), ("c", "b", 5.0)])
    with pytest.raises(NoPathError, match="from zone 'b' to zone 'a'"):
        rs.Demand.from_zones(one_way, Zones, vehicles=100.0)


def test_a_tntp_trip_table_is_read_and_must_be_whole(tmp_path: Path) -> None:
    file = tmp_path / "trips.tntp"
    head = "<NUMBER OF ZONES> 2\n<TOTAL OD FLOW> 9.0\n<END OF METADATA>\n\n"
    text = head + "Origin 1\n  1 : 2.0; 2 : 3.0;\nOrigin 2\n 1 : 4.0;\n"
    file.write_text(text)
    table = rs.Demand.from_tntp_trips(file).per_hour()
    assert (table["origin"], table["destination"], table["vehicles"].tolist()) == ([1, 2], [2, 1], [3.0, 4.0])
    for broken, match in (
        (text.replace(" 1 : 4.0;", ""), "announces 9.0 trips and holds 5"),
        (text.replace("4.0", "four"), "line 8: trips must be a number of at least 0, got 'four'"),
        (text.replace("2 : 3.0", "2 = 3.0"), "line 6: expected 'destination : trips'"),
        (text.replace("Origin 2", "Origin two"), "line 7: a zone must be a whole number"),
        (text.replace("<END OF METADATA>", ""), "no TNTP trip table"),
        (text.replace("Origin 1\n", ""), "line 5: trips come before the first origin"),
    ):
        file.write_text(broken)
        with pytest.raises(NetworkError, match=match):
            rs.Demand.from_tntp_trips(file)


@pytest.mark.parametrize(
    ("times", "match"),
    [
        ([0.0, -1.0], r"between 0 and 1e\+09, got -1.0 for vehicle 1"),
        ([0.0, np.nan], "got nan for vehicle 1"),
        ([5.0, 4.0], "vehicle 1 departs at 4, before vehicle 0 at 5; sort"),
        (["now", "then"], "departure_s must hold numbers"),
    ],
)
def test_departures_that_make_no_sense_are_refused(times: list[object], match: str) -> None:
    with pytest.raises(InputError, match=match):
        rs.Demand.from_trips({"origin": [1, 1], "destination": [2, 2], "departure_s": times})


def test_trips_within_one_place_are_left_out_and_counted() -> None:
    trips = rs.Demand.from_trips({"origin": [1, 1], "destination": [1, 2], "departure_s": [0.0, 5.0]})
    assert (trips.departure_s.tolist(), trips.loading.within_rows, trips.loading.within_vehicles) == ([5.0], 1, 1.0)
    rates = rs.Demand.from_od({"origin": [1, 1, 2], "destination": [1, 2, 2], "vehicles": [4.0, 6.0, 0.0]})
    assert (rates.expected_vehicles, rates.loading.rows) == (6.0, 3)
    assert (rates.loading.within_rows, rates.loading.within_vehicles) == (1, 4.0)
    assert repr(rates) == "<Demand: 6 vehicles expected between 0 and 3600 s, 1 entries, 2 places>"


def test_tables_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="equally long"):
        rs.Demand.from_trips({"origin": [1, 2], "destination": [1], "departure_s": [0.0]})
    with pytest.raises(InputError, match="column 'destination'; it has from, origin"):
        rs.Demand.from_trips(pd.DataFrame({"from": [1], "origin": [1], "departure_s": [0.0]}))
    with pytest.raises(InputError, match="0 <= start_s < end_s"):
        rs.Demand.from_od({**PAIR, "vehicles": [1.0]}, 10, 10)
    with pytest.raises(InputError, match="profile"):
        rs.Demand.from_od({**PAIR, "vehicles": [1.0]}, profile=(0, 0))
    with pytest.raises(InputError, match="factor above 0, got 0"):
        rs.Demand.from_od({**PAIR, "vehicles": [1.0]}).scaled(0)


@pytest.mark.parametrize(("name", "ratio"), [("helsinki", 1.7), ("cologne", 1.5), ("nauru", 1.5)])
def test_bundled_cities_have_a_heavy_demand_that_their_roads_can_carry(name: str, ratio: float) -> None:
    network, demand = rs.load_city(name), rs.load_demand(name, end_s=1800)
    assert len(demand.places) == 24
    heavy = rs.assign(network, demand, relative_gap=1e-2).mean_travel_time_s
    empty = rs.assign(network, demand.scaled(1e-6), relative_gap=1e-2).mean_travel_time_s
    assert heavy / empty == pytest.approx(ratio, abs=0.15)
    assert rs.load_demand(name, vehicles=70).expected_vehicles == pytest.approx(70)


def test_coquimbo_has_its_own_zones() -> None:
    demand = rs.load_demand("coquimbo", vehicles=1000)
    assert len(demand.places) == len(set(rs.load_zones("coquimbo").node)) == 130
    with pytest.raises(NetworkError, match="no bundled city 'atlantis'"):
        rs.load_demand("atlantis", vehicles=10)


@pytest.mark.parametrize("city", sorted(HEAVY_VPH))
def test_the_ordinary_demand_of_a_city_is_84_vehicle_kilometres_for_each_kilometre_of_lane(city: str) -> None:
    network, demand = rs.load_city(city), rs.load_demand(city, scale="ordinary")
    driven = load_cheapest(network, demand.per_hour()) @ np.nan_to_num(network.length_m)
    assert driven / (network.lanes @ np.nan_to_num(network.length_m)) == pytest.approx(84, rel=0.005)


def test_the_scale_of_a_demand_is_named_or_a_factor_on_ordinary() -> None:
    def expected(**options: Any) -> float:
        return rs.load_demand("cologne", end_s=1800.0, **options).expected_vehicles

    assert expected() == expected(scale="heavy") == pytest.approx(HEAVY_VPH["cologne"] / 2)
    assert expected(scale="ordinary") == expected(scale=1) == pytest.approx(ORDINARY_VPH["cologne"] / 2)
    assert expected(scale=2.5) == pytest.approx(2.5 * ORDINARY_VPH["cologne"] / 2)
    with pytest.raises(InputError, match='scale is "ordinary", "heavy" or so many times ordinary, got \'light\''):
        expected(scale="light")
    for wrong in (0, -1.0, np.nan, np.inf, True):
        with pytest.raises(InputError, match="scale lies above 0"):
            expected(scale=wrong)
    with pytest.raises(InputError, match="give either vehicles or scale"):
        rs.load_demand("cologne", 100, scale="ordinary")
