"""Access and one-way rules of OpenStreetMap, each in a file made by hand, from XML and PBF and a place alike."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import osmium
import pytest
from test_import_place import Town, serving

from routesim.errors import NetworkError
from routesim.roads.importers.simplify import APART, CLOSED_WAYS, CUT_WAYS
from routesim.roads.importers.tags import CLOSED, OPEN, judge, read_road
from routesim.roads.network import RoadNetwork

BOTH, FORWARD, BACKWARD, NONE = {(1, 2), (2, 1)}, {(1, 2)}, {(2, 1)}, set[tuple[int, int]]()

ACCESS: list[tuple[dict[str, str], bool]] = [
    # One tag.
    ({}, True),
    *(({tag: "no"}, False) for tag in ("access", "vehicle", "motor_vehicle", "motorcar")),
    *(({tag: "private"}, False) for tag in ("access", "vehicle", "motor_vehicle", "motorcar")),
    *(({"access": value}, False) for value in ("forestry", "permit", "agricultural", "emergency", "military")),
    ({"motor_vehicle": "agricultural"}, False),
    *(({"access": value}, True) for value in ("yes", "permissive", "designated", "destination", "customers")),
    *(({"motor_vehicle": value}, True) for value in ("delivery", "official", "discouraged")),
    # The most specific tag wins.
    ({"access": "private", "motor_vehicle": "yes"}, True),
    ({"access": "no", "vehicle": "destination"}, True),
    ({"vehicle": "no", "motor_vehicle": "yes"}, True),
    ({"motor_vehicle": "no", "motorcar": "yes"}, True),
    ({"access": "yes", "vehicle": "no"}, False),
    ({"access": "yes", "motor_vehicle": "forestry"}, False),
    ({"motor_vehicle": "yes", "motorcar": "private"}, False),
    ({"access": "no", "vehicle": "yes", "motor_vehicle": "no", "motorcar": "yes"}, True),
    # Other travellers' tags say nothing of cars.
    ({"access": "no", "bus": "yes", "bicycle": "yes"}, False),
    ({"hgv": "no", "foot": "no"}, True),
    # Several values, and values that say nothing.
    ({"motor_vehicle": "agricultural;forestry"}, False),
    ({"motor_vehicle": "agricultural; destination"}, True),
    ({"motor_vehicle": "unknown"}, True),
    ({"access": "no", "motor_vehicle": "unknown"}, False),
    ({"access:conditional": "no @ (22:00-06:00)"}, True),
]

DIRECTIONS: list[tuple[dict[str, str], set[tuple[int, int]]]] = [
    ({"oneway": "yes"}, FORWARD),
    ({"oneway": "-1"}, BACKWARD),
    ({"oneway": "no"}, BOTH),
    ({"oneway": "reversible"}, BOTH),
    ({"oneway:motor_vehicle": "yes"}, FORWARD),
    ({"oneway:vehicle": "-1"}, BACKWARD),
    ({"oneway": "yes", "oneway:motor_vehicle": "no"}, BOTH),
    ({"oneway": "no", "oneway:vehicle": "yes"}, FORWARD),
    ({"oneway:vehicle": "yes", "oneway:motor_vehicle": "no"}, BOTH),
    ({"oneway:motor_vehicle": "yes", "oneway:motorcar": "-1"}, BACKWARD),
    ({"oneway": "-1", "oneway:motorcar": "yes"}, FORWARD),
    ({"oneway": "-1", "oneway:motorcar": "no"}, BOTH),
    ({"oneway": "yes", "oneway:bicycle": "no"}, FORWARD),
    ({"oneway": "yes", "oneway:motorcar": "unknown"}, FORWARD),
    ({"junction": "roundabout"}, FORWARD),
    ({"junction": "circular"}, FORWARD),
    ({"junction": "circular", "oneway": "-1"}, BACKWARD),
    ({"junction": "circular", "oneway": "no"}, BOTH),
    ({"highway": "motorway"}, FORWARD),
    ({"highway": "motorway_link"}, FORWARD),
    ({"highway": "motorway", "oneway": "no"}, BOTH),
    ({"highway": "motorway", "oneway": "-1"}, BACKWARD),
    ({"highway": "trunk"}, BOTH),
]


def write_ways(folder: Path, *ways: dict[str, str]) -> Path:
    """Write a street 2-3 that is always there and, between 1 and 2, a way for each set of tags."""
    rows = ['<osm version="0.6">']
    rows += [f'<node id="{i}" version="1" lat="50.00{i}" lon="7.0"/>' for i in (1, 2, 3)]
    rows.append('<way id="9" version="1"><nd ref="2"/><nd ref="3"/><tag k="highway" v="primary"/></way>')
    for i, tags in enumerate(ways):
        texts = "".join(f"<tag k={quoteattr(key)} v={quoteattr(value)}/>" for key, value in tags.items())
        rows.append(f'<way id="{i + 10}" version="1"><nd ref="1"/><nd ref="2"/>{texts}</way>')
    file = folder / "ways.osm"
    file.write_text("\n".join([*rows, "</osm>"]), encoding="utf-8")
    return file


def as_pbf(source: Path) -> Path:
    target = source.with_suffix(".osm.pbf")
    target.unlink(missing_ok=True)
    with osmium.SimpleWriter(str(target)) as writer:
        for item in osmium.FileProcessor(str(source), osmium.osm.NODE | osmium.osm.WAY):
            writer.add(item)
    return target


def driven(network: RoadNetwork) -> set[tuple[Any, Any]]:
    """Return the directions in which the way between 1 and 2 is driven."""
    ends = zip(network.tails.tolist(), network.heads.tolist(), strict=True)
    return {(network.labels[t], network.labels[h]) for t, h in ends} & BOTH


def read_both(folder: Path, *ways: dict[str, str]) -> RoadNetwork:
    """Read the ways from XML and PBF, which must agree."""
    file = write_ways(folder, *ways)
    networks = [
        RoadNetwork.from_osm(source, largest_component=False, simplify=False, name="ways")
        for source in (file, as_pbf(file))
    ]
    assert networks[0].equals(networks[1])
    assert networks[0].left_out == networks[1].left_out
    return networks[0]


@pytest.mark.parametrize(("tags", "is_open"), ACCESS, ids=str)
def test_the_most_specific_access_tag_decides(tags: dict[str, str], is_open: bool, tmp_path: Path) -> None:
    network = read_both(tmp_path, {"highway": "residential", **tags})
    assert driven(network) == (BOTH if is_open else NONE)
    assert network.left_out[CLOSED_WAYS] == (0 if is_open else 1)


@pytest.mark.parametrize(("tags", "directions"), DIRECTIONS, ids=str)
def test_the_most_specific_one_way_tag_decides(
    tags: dict[str, str], directions: set[tuple[int, int]], tmp_path: Path
) -> None:
    assert driven(read_both(tmp_path, {"highway": "residential", **tags})) == directions


def test_no_value_is_both_open_and_closed() -> None:
    assert not OPEN & CLOSED


def test_what_is_left_out_is_counted_and_saved(tmp_path: Path) -> None:
    street = {"highway": "residential"}
    network = read_both(
        tmp_path,
        *({**street, "access": value} for value in ("no", "private", "forestry")),
        {**street, "access": "no", "motorcar": "yes"},
        {"highway": "footway", "access": "no"},  # no road for cars in the first place
        {**street, "area": "yes", "access": "no"},
        {**street, "service": "driveway", "access": "private"},
    )
    assert network.left_out == {CLOSED_WAYS: 3, CUT_WAYS: 0}
    network.save(tmp_path / "ways.npz")
    again = RoadNetwork.from_file(tmp_path / "ways.npz")
    assert again.left_out == network.left_out
    assert again.largest_component().left_out == network.left_out


def test_ways_that_leave_the_file_and_points_apart_are_counted(tmp_path: Path) -> None:
    file = write_ways(tmp_path, {"highway": "residential", "oneway": "yes"})
    file.write_text(file.read_text().replace('<nd ref="3"/>', '<nd ref="3"/><nd ref="77"/>'))
    assert RoadNetwork.from_osm(file).left_out == {CLOSED_WAYS: 0, CUT_WAYS: 1, APART: 1}


def test_a_file_whose_roads_are_all_closed_says_so(tmp_path: Path) -> None:
    file = write_ways(tmp_path, {"highway": "residential", "access": "no"})
    file.write_text(file.read_text().replace('v="primary"/>', 'v="primary"/><tag k="vehicle" v="no"/>'))
    with pytest.raises(NetworkError, match=r"no drivable road in the file \(2 are closed to cars"):
        RoadNetwork.from_osm(file)


def overpass_answer(file: Path) -> dict[str, Any]:
    elements: list[dict[str, Any]] = []
    for item in ElementTree.parse(file).getroot():  # noqa: S314 - written by the tests themselves
        tags = {tag.attrib["k"]: tag.attrib["v"] for tag in item.iter("tag")}
        if item.tag == "node":
            place = {"lat": float(item.attrib["lat"]), "lon": float(item.attrib["lon"])}
            elements.append({"type": "node", "id": int(item.attrib["id"]), "tags": tags, **place})
        else:
            nodes = [int(point.attrib["ref"]) for point in item.iter("nd")]
            elements.append({"type": "way", "id": int(item.attrib["id"]), "nodes": nodes, "tags": tags})
    return {"version": 0.6, "elements": elements}


@pytest.fixture
def town() -> Any:
    with serving() as server:
        yield server


def test_a_place_follows_the_same_rules_as_a_file(town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("osmnx._nominatim.time.sleep", lambda _: None)  # a courtesy to the public servers
    sets = [{"highway": "residential", **tags} for tags in ({**t, **o} for t, _ in ACCESS for o, _ in DIRECTIONS[::4])]
    sets += [{"highway": "residential", **tags} for tags, _ in DIRECTIONS]
    file = write_ways(tmp_path, *sets)
    town.roads = [overpass_answer(file)]
    place = RoadNetwork.from_place("ways", cache_folder=tmp_path, largest_component=False, **town.options)
    plain = RoadNetwork.from_osm(file, largest_component=False)
    assert place.left_out[CLOSED_WAYS] == plain.left_out[CLOSED_WAYS] > 0

    def count(network: RoadNetwork, tail: int, head: int) -> int:
        t, h = (network.node_index(label) for label in (tail, head))
        return int(((network.tails == t) & (network.heads == h)).sum())

    for tail, head in ((1, 2), (2, 1), (2, 3), (3, 2)):
        assert count(place, tail, head) == count(plain, tail, head)
    assert "motor_vehicle" not in town.queries[0]  # the server does not decide on access


def test_the_rules_on_tags_alone() -> None:
    assert judge({"highway": "footway", "access": "no"}) == "no road"
    assert judge({"highway": "primary", "access": "no" * 200}) == "drivable"  # longer than any tag: says nothing
    assert read_road({"highway": "motorway", "lanes": "3"}).lanes == (3.0, 3.0)
