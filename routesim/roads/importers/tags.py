"""What the tags of an OpenStreetMap way say: whether cars may drive, which way, how fast, on which lanes.

class    A way must be of a class cars drive on, no `area`, and no kind of `service` road such as a driveway.
access   Of `motorcar`, `motor_vehicle`, `vehicle` and `access`, in this order, the first that is there and says
         something decides; without any, a way is open. So `access=private` with `motor_vehicle=yes` is open, and
         `motor_vehicle=yes` with `motorcar=no` is closed. `CLOSED` lists the values that close a way: the public may
         not drive there at all, or only with a permit, a trade or a special vehicle. `OPEN` lists those that do
         not. `destination`, `customers` and `delivery` are among them: a trip may start or end there, and without
         these roads its ends could not be reached. That nobody may pass through them is not modelled. `permissive`
         (the owner allows it for now), `designated` and `official` (meant for this traffic) are open to everyone,
         and `discouraged` is advice, not law. Of several values ("agricultural;destination") one open value opens
         the way. Other values, such as `unknown`, say nothing, and the next tag decides. Conditions that depend on
         the time or the vehicle (`access:conditional`) are not read.
oneway   Of `oneway:motorcar`, `oneway:motor_vehicle`, `oneway:vehicle` and `oneway`, the first that is there and says
         yes, no or -1 decides. Without one, roundabouts (`junction=roundabout` and `junction=circular`),
         motorways and their links are one-way, and all other roads two-way.

Files of XML and PBF and places by name follow these rules alike.
"""

import math
import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from routesim.roads.importers.defaults import LONGEST_TAG, ROAD_CLASSES, lanes_one_way, parse_lanes, parse_maxspeed

# From the most specific to the most general: the first that says something decides.
ACCESS_TAGS = ("motorcar", "motor_vehicle", "vehicle", "access")
_ONEWAY_TAGS = ("oneway:motorcar", "oneway:motor_vehicle", "oneway:vehicle", "oneway")

# The tags that are looked at; readers may drop all others.
USED_TAGS = (
    "area", "highway", "junction", "lanes", "lanes:backward", "lanes:forward", "maxspeed", "maxspeed:backward",
    "maxspeed:forward", "name", "ref", "service", *ACCESS_TAGS, *_ONEWAY_TAGS,
)  # fmt: skip

# The classes cars drive on. osmnx's "drive" network asks Overpass for all but a list of others, which lets in
# whatever mappers invent ("trail", "busway"); here a class must be known.
DRIVABLE = frozenset(ROAD_CLASSES) - {"service", "track", "busway"}

# A way is left out where one of these is found in the tag, as in osmnx's "drive" network.
LEFT_OUT = {"area": "yes", "service": "alley|driveway|emergency_access|parking|parking_aisle|private"}

OPEN = frozenset(
    ("yes", "permissive", "designated", "official", "public", "destination", "customers", "delivery", "discouraged")
)
CLOSED = frozenset(
    (
        "no", "private", "permit", "agricultural", "forestry", "emergency", "military", "residents", "employees", "psv",
        "bus", "taxi", "hgv", "bicycle", "foot",
    )
)  # fmt: skip

_ONE_WAY = {"yes", "true", "1", "-1", "reverse", "T", "F"}
_REVERSED = {"-1", "reverse", "T"}
_TWO_WAY = {"no", "false", "0"}
_SAID = _ONE_WAY | _TWO_WAY
_ROUNDABOUTS = {"roundabout", "circular"}
_MOTORWAYS = {"motorway", "motorway_link"}

Verdict = Literal["drivable", "no road", "closed"]


class Road(NamedTuple):
    """A drivable way: its directions, and what its tags say for each (forward, backward); NaN is nothing."""

    highway: str
    name: str
    forward: bool
    backward: bool
    speed_kph: tuple[float, float]
    lanes: tuple[float, float]


def judge(tags: Mapping[str, str]) -> Verdict:
    """Tell whether cars may use a way; "closed" is a road that would be drivable without its access tags."""
    if tags.get("highway") not in DRIVABLE or any(tag in tags and is_left_out(tag, tags[tag]) for tag in LEFT_OUT):
        return "no road"
    for tag in ACCESS_TAGS:
        says = read_access(tags[tag]) if tag in tags else 0
        if says:
            return "drivable" if says > 0 else "closed"
    return "drivable"


def is_drivable(tags: Mapping[str, str]) -> bool:
    """Tell whether cars may use a way, by the rules above."""
    return judge(tags) == "drivable"


def is_left_out(tag: str, value: str) -> bool:
    """Tell whether a value of `area` or `service` leaves a way out."""
    return re.search(LEFT_OUT[tag], value) is not None


def read_access(value: str) -> int:
    """Read the value of an access tag: 1 is open, -1 is closed, and 0 says nothing."""
    if len(value) > LONGEST_TAG:
        return 0
    parts = {part.strip() for part in value.split(";")}
    return 1 if parts & OPEN else -1 if parts & CLOSED else 0


def was_turned(tags: Mapping[str, str]) -> bool:
    """Tell whether `oneway` alone says that cars drive against the order of the points."""
    return tags.get("oneway") in _REVERSED


def read_road(tags: Mapping[str, str]) -> Road:
    """Read the tags of a drivable way."""
    oneway = next((tags[tag] for tag in _ONEWAY_TAGS if tags.get(tag) in _SAID), None)
    if oneway is None:
        one_way = tags.get("junction") in _ROUNDABOUTS or tags["highway"] in _MOTORWAYS
    else:
        one_way = oneway in _ONE_WAY
    reverse = oneway in _REVERSED
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
    for tag in (f"lanes:{direction}", "lanes"):
        lanes = parse_lanes(tags[tag]) if tag in tags else None
        if lanes is not None:
            return lanes_one_way(lanes, two_way=tag == "lanes" and not one_way)
    return math.nan
