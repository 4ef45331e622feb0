"""What is assumed of a road that does not say: the one table of speeds, lanes and capacities by class.

Every importer fills gaps by these rules, and marks what it filled: `network.imputed("speed")` and so on.

speed     `maxspeed:forward` or `maxspeed:backward`, else `maxspeed`, as `parse_maxspeed` reads it.
          Without a readable one: the speed of the road's class, marked "speed".
lanes     In one direction: `lanes:forward` or `lanes:backward`; else `lanes`, on a two-way road halved and
          rounded down, at least 1. Without these: the lanes of the class, marked "lanes".
capacity  Without a stated one: lanes times the class's capacity of a lane, marked "capacity".
bpr       Alpha and beta of the BPR function, without stated ones: 0.15 and 4.0, marked "bpr".

A class that is not in the table, or none at all, is treated as "unclassified". Of several values ("50;30",
"60|80", or one per merged piece in a file of osmnx) the mean counts. "none" is 130 km/h and "walk" 6 km/h;
"signals" and "variable" say no speed. A national code ("RO:urban") stands for that country's limit where
the table below has one, else for the usual one of its kind. Lengths are never assumed: they are stated or
measured along the line.
"""

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from routesim.arrays import Floats


class RoadClass(NamedTuple):
    """What is assumed of every road of a class."""

    speed_kph: float
    lanes: float
    lane_capacity_vph: float


DEFAULT_CLASS = "unclassified"

ROAD_CLASSES: Mapping[str, RoadClass] = {
    "motorway": RoadClass(110.0, 2.0, 2000.0),
    "motorway_link": RoadClass(60.0, 1.0, 1500.0),
    "trunk": RoadClass(90.0, 2.0, 1800.0),
    "trunk_link": RoadClass(50.0, 1.0, 1400.0),
    "primary": RoadClass(60.0, 1.0, 1200.0),
    "primary_link": RoadClass(45.0, 1.0, 1000.0),
    "secondary": RoadClass(50.0, 1.0, 1000.0),
    "secondary_link": RoadClass(40.0, 1.0, 900.0),
    "tertiary": RoadClass(45.0, 1.0, 800.0),
    "tertiary_link": RoadClass(35.0, 1.0, 700.0),
    "unclassified": RoadClass(40.0, 1.0, 600.0),
    "residential": RoadClass(30.0, 1.0, 600.0),
    "living_street": RoadClass(10.0, 1.0, 300.0),
    "service": RoadClass(20.0, 1.0, 300.0),
    "busway": RoadClass(50.0, 1.0, 600.0),
    "road": RoadClass(40.0, 1.0, 600.0),
    "track": RoadClass(20.0, 1.0, 200.0),
}

BPR_ALPHA = 0.15
BPR_BETA = 4.0

# What a national code stands for: the usual European values, then the countries that differ.
_ZONES: Mapping[str, float] = {
    "urban": 50.0,
    "rural": 90.0,
    "trunk": 100.0,
    "motorway": 130.0,
    "expressway": 100.0,
    "living_street": 20.0,
    "bicycle_road": 30.0,
    "walk": 6.0,
    "nsl_restricted": 48.28032,
    "nsl_single": 96.56064,
    "nsl_dual": 112.65408,
}
_NATIONAL: Mapping[str, float] = {
    "at:rural": 100.0, "at:trunk": 100.0, "be:motorway": 120.0, "be:rural": 70.0, "be-bru:urban": 30.0,
    "be-vlg:rural": 70.0, "be-wal:rural": 90.0, "by:motorway": 110.0, "by:urban": 60.0, "ca:urban": 50.0,
    "ch:motorway": 120.0, "ch:rural": 80.0, "ch:trunk": 100.0, "cz:living_street": 20.0, "cz:trunk": 110.0,
    "de:rural": 100.0, "de:living_street": 7.0, "dk:motorway": 130.0, "dk:rural": 80.0, "ee:motorway": 110.0,
    "es:motorway": 120.0, "es:trunk": 90.0, "fi:motorway": 120.0, "fi:rural": 80.0, "fi:trunk": 100.0,
    "fr:rural": 80.0, "fr:trunk": 110.0, "gb:motorway": 112.65408, "gr:motorway": 130.0, "gr:trunk": 110.0,
    "hu:trunk": 110.0, "ie:motorway": 120.0, "ie:rural": 80.0, "it:trunk": 110.0, "lt:motorway": 130.0,
    "nl:motorway": 100.0, "nl:rural": 80.0, "no:motorway": 110.0, "no:rural": 80.0, "pl:motorway": 140.0,
    "pl:trunk": 120.0, "pt:motorway": 120.0, "pt:trunk": 100.0, "ro:trunk": 100.0, "ro:motorway": 130.0,
    "ru:living_street": 20.0, "ru:motorway": 110.0, "ru:urban": 60.0, "se:rural": 70.0, "se:motorway": 110.0,
    "si:trunk": 110.0, "sk:rural": 90.0, "tr:motorway": 120.0, "ua:trunk": 110.0, "uk:motorway": 112.65408,
    "us:urban": 40.2336, "us:rural": 88.51392, "za:urban": 60.0, "za:rural": 100.0,
}  # fmt: skip

_UNITS_KPH: Mapping[str, float] = {
    "": 1.0, "km/h": 1.0, "kmh": 1.0, "kph": 1.0, "mph": 1.609344, "knots": 1.852, "kn": 1.852,
}  # fmt: skip
_NUMBER = re.compile(r"([0-9]+(?:[.,][0-9]+)?)\s*(km/h|kmh|kph|mph|knots|kn)?", re.ASCII)
_FASTEST_KPH = 300.0
LONGEST_TAG = 255  # OpenStreetMap's own limit; anything longer says nothing


def road_class(highway: str) -> RoadClass:
    """Return what is assumed of a class of road."""
    return ROAD_CLASSES.get(highway) or ROAD_CLASSES[DEFAULT_CLASS]


def class_columns(highways: Sequence[str]) -> Floats:
    """Return a row of speed, lanes and capacity of a lane for each of many classes."""
    table = {highway: code for code, highway in enumerate(dict.fromkeys(highways))}
    rows = np.array([road_class(highway) for highway in table], dtype=np.float64).reshape(len(table), 3)
    return rows[np.array([table[highway] for highway in highways], dtype=np.int64)]


def parse_maxspeed(tag: str) -> float | None:
    """Read a maxspeed tag as km/h, or None where it states no usable speed."""
    return None if len(tag) > LONGEST_TAG else _parse_speeds(tag)


@lru_cache(maxsize=4096)  # a file repeats a few dozen texts
def _parse_speeds(tag: str) -> float | None:
    speeds = [_parse_one_speed(part.strip().lower()) for part in re.split(r"[;|]", tag)]
    known = [speed for speed in speeds if speed is not None]
    return math.fsum(known) / len(known) if known else None


def _parse_one_speed(text: str) -> float | None:
    match = _NUMBER.fullmatch(text)
    if match:
        speed = float(match[1].replace(",", ".")) * _UNITS_KPH[match[2] or ""]
        return speed if 0.0 < speed <= _FASTEST_KPH else None
    if text == "none":
        return 130.0
    if text == "walk":
        return _ZONES["walk"]
    if text in _NATIONAL:
        return _NATIONAL[text]
    country, _, zone = text.partition(":")
    if not zone or not country.replace("-", "").isalpha():
        return None
    if zone in _ZONES:
        return _ZONES[zone]
    limit = re.fullmatch(r"(?:zone:?)?([0-9]{1,3})", zone)  # DE:zone:30, FR:zone30, AT:zone:30
    return float(limit[1]) if limit and 0 < int(limit[1]) <= _FASTEST_KPH else None


def parse_lanes(tag: str) -> float | None:
    """Read a lanes tag as a number of lanes, or None where it states none."""
    return None if len(tag) > LONGEST_TAG else _parse_counts(tag)


@lru_cache(maxsize=4096)
def _parse_counts(tag: str) -> float | None:
    values = []
    for part in re.split(r"[;|]", tag):
        try:
            value = float(part)
        except ValueError:
            continue
        if 0.0 < value <= 30.0:
            values.append(value)
    return math.fsum(values) / len(values) if values else None


def lanes_one_way(lanes: float, *, two_way: bool) -> float:
    """Return the lanes of one direction of a road whose tag counts all of them."""
    return max(1.0, math.floor(lanes / 2.0) if two_way else lanes)
