"""Turn restrictions of OpenStreetMap files: every rule on a crossroads, by hand."""

from collections.abc import Sequence
from pathlib import Path

import osmium
import pytest
from road_files import OSM_GRID_BANS, bans_by_label, osm_grid, shared

from routesim.errors import NetworkError
from routesim.roads.importers import restrictions
from routesim.roads.importers.restrictions import CONDITIONAL, INCOMPLETE, NOT_FOR_CARS, OFF_ROADS, read_kind
from routesim.roads.network import RoadNetwork

# A crossing 0 with arms to 1 (north), 2 (east), 3 (south) and 4 (west), each a way of that number drawn outwards.
# East of 2 the road goes on to 5 (way 5) and 6 (way 6); 3 and 6 are joined by way 7; way 8 is for buses only.
# Short streets (ways 9 and 10) make junctions of 3 and 6.
PLACES = {0: (0, 0), 1: (0, 1), 2: (1, 0), 3: (0, -1), 4: (-1, 0), 5: (2, 0), 6: (1, -1), 7: (0, -2), 8: (1, -2)}
WAYS = {1: (0, 1), 2: (0, 2), 3: (0, 3), 4: (0, 4), 5: (2, 5), 6: (2, 6), 7: (3, 6), 8: (0, 5), 9: (3, 7), 10: (6, 8)}
WAY_TAGS = {8: {"highway": "primary", "access": "no"}}

Members = Sequence[tuple[str, int, str]]
Tags = dict[str, str]
Turn = tuple[object, ...]


def members(a: int, via: int | Sequence[int], b: int) -> Members:
    """From way `a` to way `b` by a node, or by a list of ways."""
    middle = [("node", via, "via")] if isinstance(via, int) else [("way", way, "via") for way in via]
    return [("way", a, "from"), *middle, ("way", b, "to")]


def osm(
    *relations: tuple[Tags, Members],
    ways: dict[int, tuple[int, ...]] | None = None,
    tags: dict[int, Tags] | None = None,
    first: bool = False,
) -> str:
    """Return OSM XML of the crossing with these relations, at the beginning of the file if `first`."""
    rows = [f'<node id="{i}" version="1" lat="{50 + y / 1000}" lon="{7 + x / 1000}"/>' for i, (x, y) in PLACES.items()]
    for way, points in (WAYS if ways is None else ways).items():
        said = {**{"highway": "primary"}, **WAY_TAGS.get(way, {}), **(tags or {}).get(way, {})}
        inside = "".join(f'<nd ref="{point}"/>' for point in points) + _tags(said)
        rows.append(f'<way id="{way}" version="1">{inside}</way>')
    stated = []
    for i, (said, parts) in enumerate(relations, start=1):
        inside = "".join(f'<member type="{kind}" ref="{ref}" role="{role}"/>' for kind, ref, role in parts)
        stated.append(f'<relation id="{i}" version="1">{inside}{_tags({"type": "restriction", **said})}</relation>')
    return "\n".join(['<osm version="0.6">', *(stated + rows if first else rows + stated), "</osm>"])


def _tags(said: Tags) -> str:
    return "".join(f'<tag k="{key}" v="{value}"/>' for key, value in said.items())


def read(folder: Path, text: str, **options: bool) -> RoadNetwork:
    (folder / "crossing.osm").write_text(text, encoding="utf-8")
    return RoadNetwork.from_osm(folder / "crossing.osm", **options)


def counts(network: RoadNetwork) -> dict[str, int]:
    kinds = (CONDITIONAL, NOT_FOR_CARS, OFF_ROADS, INCOMPLETE)
    return {kind: network.left_out[kind] for kind in kinds if kind in network.left_out}


NO = {"restriction": "no_left_turn"}
FROM_SOUTH_TO_WEST = members(3, 0, 4)

# What a relation says, and which turns it bans, as the nodes passed.
RULES = {
    "no_left_turn": (NO, members(3, 0, 4), {(3, 0, 4)}),
    "no_right_turn": ({"restriction": "no_right_turn"}, members(3, 0, 2), {(3, 0, 2)}),
    "no_straight_on": ({"restriction": "no_straight_on"}, members(3, 0, 1), {(3, 0, 1)}),
    "no_u_turn at a crossing": ({"restriction": "no_u_turn"}, members(3, 0, 3), {(3, 0, 3)}),
    "only_straight_on": ({"restriction": "only_straight_on"}, members(3, 0, 1), {(3, 0, 2), (3, 0, 3), (3, 0, 4)}),
    "only_left_turn": ({"restriction": "only_left_turn"}, members(4, 0, 1), {(4, 0, 2), (4, 0, 3), (4, 0, 4)}),
    "only_u_turn": ({"restriction": "only_u_turn"}, members(4, 0, 4), {(4, 0, 1), (4, 0, 2), (4, 0, 3)}),
    "no_entry from several ways": (
        {"restriction": "no_entry"},
        [("way", 3, "from"), ("way", 4, "from"), ("node", 0, "via"), ("way", 1, "to")],
        {(3, 0, 1), (4, 0, 1)},
    ),
    "no_exit to several ways": (
        {"restriction": "no_exit"},
        [("way", 3, "from"), ("node", 0, "via"), ("way", 1, "to"), ("way", 2, "to")],
        {(3, 0, 1), (3, 0, 2)},
    ),
    "a way between": ({"restriction": "no_left_turn"}, members(4, [2], 6), {(4, 0, 2, 6)}),
    "ways between, in the wrong order": ({"restriction": "no_left_turn"}, members(4, [6, 2], 7), {(4, 0, 2, 6, 3)}),
    "no_u_turn by way of a way": ({"restriction": "no_u_turn"}, members(3, [2], 6), {(3, 0, 2, 6)}),
    "only by way of a way": ({"restriction": "only_straight_on"}, members(4, [2], 5), {(4, 0, 2, 6), (4, 0, 2, 0)}),
    "the most specific decides": (
        {"restriction": "no_left_turn", "restriction:motorcar": "only_right_turn"},
        members(3, 0, 2),
        {(3, 0, 1), (3, 0, 3), (3, 0, 4)},
    ),
    "for motor vehicles": ({"restriction:motor_vehicle": "no_left_turn"}, members(3, 0, 4), {(3, 0, 4)}),
    "but for buses and bicycles": ({**NO, "except": "psv;bicycle"}, members(3, 0, 4), {(3, 0, 4)}),
    "conditions besides": ({**NO, "restriction:conditional": "none @ (Su)"}, members(3, 0, 4), {(3, 0, 4)}),
    "a hint where the sign stands": (NO, [*members(3, 0, 4), ("node", 1, "location_hint")], {(3, 0, 4)}),
    "the same member twice": (NO, [*members(3, 0, 4), ("way", 3, "from")], {(3, 0, 4)}),
}


@pytest.mark.parametrize("rule", RULES)
def test_what_is_banned(rule: str, tmp_path: Path) -> None:
    tags, parts, banned = RULES[rule]
    network = read(tmp_path, osm((tags, parts)), largest_component=False)
    assert bans_by_label(network) == banned
    assert network.bans_known
    assert counts(network) == {}
    # Nothing else changes, wherever relations stand in the file.
    plain = read(tmp_path, osm(), largest_component=False)
    assert (network.labels, network.tails.tolist(), network.heads.tolist()) == (
        plain.labels,
        plain.tails.tolist(),
        plain.heads.tolist(),
    )
    assert read(tmp_path, osm((tags, parts), first=True), largest_component=False).equals(network)


# What a relation says that bans nothing, and what it is counted as.
IGNORED = {
    "conditional": ({"restriction:conditional": "no_left_turn @ (07:00-09:00)"}, FROM_SOUTH_TO_WEST, CONDITIONAL),
    "conditional for cars": ({"restriction:motorcar:conditional": "no_left_turn"}, FROM_SOUTH_TO_WEST, CONDITIONAL),
    "at hours, as once": ({**NO, "hour_on": "07:00", "hour_off": "09:00"}, FROM_SOUTH_TO_WEST, CONDITIONAL),
    "on red": ({"restriction": "no_right_turn_on_red"}, members(3, 0, 2), CONDITIONAL),
    "not for cars": ({**NO, "except": "motorcar"}, FROM_SOUTH_TO_WEST, NOT_FOR_CARS),
    "not for motor vehicles": ({**NO, "except": "bus; motor_vehicle"}, FROM_SOUTH_TO_WEST, NOT_FOR_CARS),
    "for lorries": ({"restriction:hgv": "no_left_turn"}, FROM_SOUTH_TO_WEST, NOT_FOR_CARS),
    "from a way for buses": (NO, members(8, 0, 4), OFF_ROADS),
    "only on to a way for buses": ({"restriction": "only_straight_on"}, members(3, 0, 8), OFF_ROADS),
    "to a way that is not there": (NO, members(3, 0, 99), OFF_ROADS),
    "by a way that is not there": (NO, members(3, [99], 4), OFF_ROADS),
    "no kind": ({}, FROM_SOUTH_TO_WEST, INCOMPLETE),
    "unknown kind": ({"restriction": "no_parking"}, FROM_SOUTH_TO_WEST, INCOMPLETE),
    "no via": (NO, [("way", 3, "from"), ("way", 4, "to")], INCOMPLETE),
    "no from": (NO, members(3, 0, 4)[1:], INCOMPLETE),
    "no to": (NO, members(3, 0, 4)[:-1], INCOMPLETE),
    "two from": (NO, [*FROM_SOUTH_TO_WEST, ("way", 1, "from")], INCOMPLETE),
    "two to": (NO, [*FROM_SOUTH_TO_WEST, ("way", 1, "to")], INCOMPLETE),
    "two nodes": (NO, [*FROM_SOUTH_TO_WEST, ("node", 1, "via")], INCOMPLETE),
    "a node and a way": (NO, [*FROM_SOUTH_TO_WEST, ("way", 2, "via")], INCOMPLETE),
    "from a node": (NO, [("node", 3, "from"), *members(3, 0, 4)[1:]], INCOMPLETE),
    "a via elsewhere": (NO, members(3, 5, 4), INCOMPLETE),
    "a via that is not there": (NO, members(3, 99, 4), INCOMPLETE),
    "ways that do not meet": (NO, members(4, [5], 6), INCOMPLETE),
    "more members than any restriction": (NO, [*FROM_SOUTH_TO_WEST, *[("way", 1, "x")] * 200], INCOMPLETE),
}


@pytest.mark.parametrize("case", IGNORED)
def test_what_is_not_read_is_counted(case: str, tmp_path: Path) -> None:
    tags, parts, kind = IGNORED[case]
    network = read(tmp_path, osm((tags, parts), (NO, members(1, 0, 2))))
    assert bans_by_label(network) == {(1, 0, 2)}
    assert counts(network) == {kind: 1}


def test_other_relations_are_none_of_them(tmp_path: Path) -> None:
    route = ({"type": "route", "restriction": "no_left_turn"}, members(3, 0, 4))
    network = read(tmp_path, osm(route))
    assert network.banned_turns.shape == (0, 2)
    assert (network.bans_known, counts(network)) == (True, {})


def test_a_ban_against_a_oneway_street_bans_nothing(tmp_path: Path) -> None:
    # Way 4 leads from the crossing outwards only: nobody comes from there.
    text = osm((NO, members(4, 0, 1)), tags={4: {"oneway": "yes"}})
    network = read(tmp_path, text, largest_component=False)
    assert bans_by_label(network) == set()
    assert counts(network) == {OFF_ROADS: 1}


def test_only_rules_for_one_way_and_place_add_up(tmp_path: Path) -> None:
    straight = ({"restriction": "only_straight_on"}, members(3, 0, 1))
    right = ({"restriction": "only_right_turn"}, members(3, 0, 2))
    assert bans_by_label(read(tmp_path, osm(straight, right))) == {(3, 0, 3), (3, 0, 4)}


THROUGH = {1: (1, 0, 3), 2: (0, 2), 4: (0, 4)}  # the road from north to south is one way


def test_a_way_that_passes_through_says_which_piece_only_if_it_is_one_way(tmp_path: Path) -> None:
    turn = (NO, members(1, 0, 2))
    assert counts(read(tmp_path, osm(turn, ways=THROUGH))) == {INCOMPLETE: 1}
    network = read(tmp_path, osm(turn, ways=THROUGH, tags={1: {"oneway": "yes"}}), largest_component=False)
    assert bans_by_label(network) == {(1, 0, 2)}


def test_a_u_turn_is_banned_in_both_directions_of_a_way_that_passes_through(tmp_path: Path) -> None:
    network = read(tmp_path, osm(({"restriction": "no_u_turn"}, members(1, 0, 1)), ways=THROUGH))
    assert bans_by_label(network) == {(1, 0, 1), (3, 0, 3)}


# Without way 9, node 3 between 0 and 6 is no junction, and is merged away.
CHAIN = {way: points for way, points in WAYS.items() if way != 9}


def test_bans_are_of_the_merged_edges(tmp_path: Path) -> None:
    turn = (NO, members(3, 0, 4))
    merged, split = (read(tmp_path, osm(turn, ways=CHAIN), simplify=simplify) for simplify in (True, False))
    assert 3 not in merged.labels
    assert bans_by_label(merged) == {(6, 0, 4)}
    assert bans_by_label(split) == {(3, 0, 4)}


def test_a_way_between_that_is_merged_with_the_first_leaves_a_pair(tmp_path: Path) -> None:
    network = read(tmp_path, osm((NO, members(7, [3], 4)), ways=CHAIN))
    assert bans_by_label(network) == {(6, 0, 4)}
    assert network.banned_ways == ()


def test_a_ban_where_two_ways_meet_keeps_the_node(tmp_path: Path) -> None:
    network = read(tmp_path, osm(({"restriction": "no_straight_on"}, members(3, 3, 7)), ways=CHAIN))
    assert 3 in network.labels
    assert bans_by_label(network) == {(0, 3, 6)}


def test_a_u_turn_where_nobody_turns_needs_no_node(tmp_path: Path) -> None:
    network = read(tmp_path, osm(({"restriction": "no_u_turn"}, members(3, 3, 3)), ways=CHAIN))
    assert 3 not in network.labels
    assert (bans_by_label(network), counts(network)) == (set(), {})


def test_a_ban_outside_the_largest_component_goes_with_its_roads(tmp_path: Path) -> None:
    ways = {**WAYS, 4: (4, 0)}
    text = osm((NO, members(4, 0, 1)), (NO, members(3, 0, 2)), ways=ways, tags={4: {"oneway": "yes"}})
    assert bans_by_label(read(tmp_path, text)) == {(3, 0, 2)}
    assert bans_by_label(read(tmp_path, text, largest_component=False)) == {(4, 0, 1), (3, 0, 2)}


def test_a_roundabout_as_via_does_not_say_where_it_is_left(tmp_path: Path) -> None:
    ways = {1: (0, 1), 2: (0, 2, 6, 3, 0), 5: (2, 5)}
    assert counts(read(tmp_path, osm((NO, members(1, [2], 5)), ways=ways))) == {INCOMPLETE: 1}


def test_pbf_says_the_same(tmp_path: Path) -> None:
    rules = [(tags, parts) for tags, parts, _ in (*RULES.values(), *IGNORED.values())]
    network = read(tmp_path, osm(*rules), largest_component=False)
    assert bans_by_label(network) >= RULES["no_left_turn"][2] | RULES["ways between, in the wrong order"][2]
    for i, options in enumerate(("", ",pbf_dense_nodes=false", ",pbf_compression=none")):
        target = tmp_path / f"crossing{i}.osm.pbf"
        with osmium.SimpleWriter(osmium.io.File(str(target), f"pbf{options}")) as writer:
            for item in osmium.FileProcessor(str(tmp_path / "crossing.osm")):
                writer.add(item)
        again = RoadNetwork.from_osm(target, name="crossing", largest_component=False)
        assert again.equals(network)
        assert again.left_out == network.left_out


def test_a_file_may_not_ban_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only = ({"restriction": "only_straight_on"}, members(3, 0, 1))
    monkeypatch.setattr(restrictions, "MAX_BANS", 2)
    with pytest.raises(NetworkError, match=r"crossing.osm: its turn restrictions ban more than 2 turns"):
        read(tmp_path, osm(only))
    monkeypatch.setattr(restrictions, "MAX_RESTRICTIONS", 0)
    with pytest.raises(NetworkError, match=r"crossing.osm: .*more than 0 turn restrictions"):
        read(tmp_path, osm(only))


def test_a_conditional_is_told_from_what_always_holds() -> None:
    assert read_kind({"restriction": " no_u_turn "}) == "no_u_turn"
    assert read_kind({"restriction:bicycle": "no_u_turn"}) == NOT_FOR_CARS
    assert read_kind({"restriction:motorcar:conditional": "no_u_turn @ x", "restriction": "no_u_turn"}) == "no_u_turn"


def test_the_grid_of_the_other_tests(tmp_path: Path) -> None:
    network = read(tmp_path, osm_grid(bans=True))
    assert bans_by_label(network) == OSM_GRID_BANS
    assert [len(way) for way in network.banned_ways] == [6]
    assert counts(network) == {CONDITIONAL: 1, NOT_FOR_CARS: 1}
    assert read(tmp_path, osm_grid()).bans == []


# Restrictions in the file, banned turns in the network, and restrictions that are not read.
REAL = {
    "liechtenstein.osm.pbf": (3, 2, {OFF_ROADS: 1}),
    "andorra.osm.pbf": (0, 0, {}),
    "krems.osm.gz": (9, 5, {OFF_ROADS: 3}),  # one bans a U-turn where nobody turns
}


@pytest.mark.parametrize("name", REAL)
def test_real_files(name: str) -> None:
    network = RoadNetwork.from_osm(shared(f"osm/{name}"), largest_component=False)
    file = osmium.FileProcessor(str(shared(f"osm/{name}")), osmium.osm.RELATION)
    stated = sum(relation.tags.get("type") == "restriction" for relation in file)
    assert (stated, len(network.bans), counts(network)) == REAL[name]
