"""Speeds and lanes as tags state them, and what is assumed where they do not."""

import pytest

from routesim.roads.importers.defaults import ROAD_CLASSES, lanes_one_way, parse_lanes, parse_maxspeed, road_class
from routesim.roads.importers.tags import is_drivable, read_road


@pytest.mark.parametrize(
    ("tag", "kph"),
    [
        ("50", 50.0),
        ("50 km/h", 50.0),
        ("50kmh", 50.0),
        ("30 mph", 30 * 1.609344),
        ("30mph", 30 * 1.609344),
        ("10 knots", 18.52),
        ("62,5", 62.5),
        ("50;30", 40.0),
        ("60|80|100", 80.0),
        ("50; signals", 50.0),
        ("none", 130.0),
        ("walk", 6.0),
        ("RO:urban", 50.0),
        ("DE:rural", 100.0),
        ("CH:rural", 80.0),
        ("XX:rural", 90.0),
        ("GB:nsl_single", 60 * 1.609344),
        ("DE:zone:30", 30.0),
        ("FR:zone30", 30.0),
        ("be-vlg:rural", 70.0),
        ("signals", None),
        ("variable", None),
        ("", None),
        ("0", None),
        ("-30", None),
        ("nan", None),
        ("inf", None),
        ("1e3", None),
        ("9999", None),
        ("fast", None),
        ("::", None),
        ("RO:", None),
        ("٣٠", None),
        ("5" * 100_000, None),
        (";" * 200, None),
    ],
)
def test_maxspeed(tag: str, kph: float | None) -> None:
    assert parse_maxspeed(tag) == (None if kph is None else pytest.approx(kph))


@pytest.mark.parametrize(
    ("tag", "lanes"),
    [("2", 2.0), ("2;4", 3.0), ("1.5", 1.5), ("0", None), ("-1", None), ("nan", None), ("x", None)],
)
def test_lanes(tag: str, lanes: float | None) -> None:
    assert parse_lanes(tag) == lanes


def test_lanes_of_a_two_way_street_are_halved_but_never_gone() -> None:
    assert [lanes_one_way(n, two_way=True) for n in (1, 2, 3, 4)] == [1.0, 1.0, 1.0, 2.0]
    assert lanes_one_way(3, two_way=False) == 3.0


def test_every_class_has_sensible_defaults_and_links_are_slower() -> None:
    for name, assumed in ROAD_CLASSES.items():
        assert 5 <= assumed.speed_kph <= 130
        assert assumed.lanes >= 1
        assert 100 <= assumed.lane_capacity_vph <= 2400
        if name.endswith("_link"):
            assert assumed.speed_kph < ROAD_CLASSES[name.removesuffix("_link")].speed_kph
    assert road_class("nonsense") == road_class("") == ROAD_CLASSES["unclassified"]


@pytest.mark.parametrize(
    ("tags", "drivable"),
    [
        ({"highway": "residential"}, True),
        ({"highway": "motorway_link", "access": "yes"}, True),
        ({"highway": "footway"}, False),
        ({"highway": "service"}, False),
        ({"highway": "trail"}, False),
        ({"highway": "residential", "area": "yes"}, False),
        ({"highway": "residential", "access": "private"}, False),
        ({"highway": "residential", "motor_vehicle": "no"}, False),
        ({"highway": "residential", "service": "alley"}, False),
        ({"building": "yes"}, False),
    ],
)
def test_which_ways_cars_may_use(tags: dict[str, str], drivable: bool) -> None:
    assert is_drivable(tags) is drivable


@pytest.mark.parametrize(
    ("tags", "directions"),
    [
        ({}, (True, True)),
        ({"oneway": "yes"}, (True, False)),
        ({"oneway": "-1"}, (False, True)),
        ({"oneway": "no"}, (True, True)),
        ({"junction": "roundabout"}, (True, False)),
    ],
)
def test_directions(tags: dict[str, str], directions: tuple[bool, bool]) -> None:
    road = read_road({"highway": "primary", **tags})
    assert (road.forward, road.backward) == directions


def test_each_direction_may_have_a_speed_and_lanes_of_its_own() -> None:
    tags = {
        "highway": "primary",
        "maxspeed": "50",
        "maxspeed:backward": "30",
        "lanes": "3",
        "lanes:forward": "2",
    }
    road = read_road(tags)
    assert road.speed_kph == (50.0, 30.0)
    assert road.lanes == (2.0, 1.0)
