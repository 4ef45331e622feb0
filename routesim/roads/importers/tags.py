"""What the tags of an OpenStreetMap way say: whether cars may drive, which way, how fast, on which lanes."""

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from routesim.roads.importers.defaults import ROAD_CLASSES, lanes_one_way, parse_lanes, parse_maxspeed

# The tags that are looked at; readers may drop all others.
USED_TAGS = (
    "access", "area", "highway", "junction", "lanes", "lanes:backward", "lanes:forward", "maxspeed",
    "maxspeed:backward", "maxspeed:forward", "motor_vehicle", "motorcar", "name", "oneway", "ref", "service",
)  # fmt: skip

# The classes cars drive on. osmnx's "drive" network asks Overpass for all but a list of others, which lets in
# whatever mappers invent ("trail", "busway"); here a class must be known.
_DRIVABLE = frozenset(ROAD_CLASSES) - {"service", "track", "busway"}

# A way is left out where one of these is found in the tag: the further rules of osmnx's "drive" network.
_NOT_DRIVABLE = {
    tag: re.compile(pattern)
    for tag, pattern in {
        "area": "yes",
        "access": "private",
        "motor_vehicle": "no",
        "motorcar": "no",
        "service": "alley|driveway|emergency_access|parking|parking_aisle|private",
    }.items()
}
_ONE_WAY = {"yes", "true", "1", "-1", "reverse", "T", "F"}
_REVERSED = {"-1", "reverse", "T"}


class Road(NamedTuple):
    """A drivable way: its directions, and what its tags say for each (forward, backward); NaN is nothing."""

    highway: str
    name: str
    forward: bool
    backward: bool
    speed_kph: tuple[float, float]
    lanes: tuple[float, float]


def is_drivable(tags: Mapping[str, str]) -> bool:
    """Tell whether cars may use a way, by the rules above."""
    if tags.get("highway") not in _DRIVABLE:
        return False
    return not any(tag in tags and pattern.search(tags[tag]) for tag, pattern in _NOT_DRIVABLE.items())


def read_road(tags: Mapping[str, str]) -> Road:
    """Read the tags of a drivable way."""
    oneway = tags.get("oneway", "")
    one_way = oneway in _ONE_WAY or tags.get("junction") == "roundabout"
    reverse = one_way and oneway in _REVERSED
    return Road(
        highway=tags["highway"],
        name=tags.get("name") or tags.get("ref", ""),
        forward=not reverse,
        backward=reverse or not one_way,
        speed_kph=(_speed(tags, "forward"), _speed(tags, "backward")),
        lanes=(_lanes(tags, "forward", one_way=one_way), _lanes(tags, "backward", one_way=one_way)),
    )


def _speed(tags: Mapping[str, str], direction: str) -> float:
    for tag in (f"maxspeed:{direction}", "maxspeed"):
        speed = parse_maxspeed(tags[tag]) if tag in tags else None
        if speed is not None:
            return speed
    return math.nan


def _lanes(tags: Mapping[str, str], direction: str, *, one_way: bool) -> float:
    directed = parse_lanes(tags.get(f"lanes:{direction}", ""))
    if directed is not None:
        return max(1.0, directed)
    both = parse_lanes(tags.get("lanes", ""))
    return math.nan if both is None else lanes_one_way(both, two_way=not one_way)
