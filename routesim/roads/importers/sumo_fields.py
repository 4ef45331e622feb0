"""The attributes of a SUMO net's elements, each checked when it is read."""

import math
import re
from collections.abc import Mapping

import numpy as np

from routesim.arrays import Floats
from routesim.roads.importers.safexml import Halt


def needed(attributes: Mapping[str, str], key: str, where: str) -> str:
    """Return an attribute that must be there."""
    text = attributes.get(key, "")
    if not text:
        raise Halt(f"{where} has no {key}")
    return text


def number(attributes: Mapping[str, str], key: str, where: str) -> float:
    """Return an attribute that must be a finite number."""
    text = attributes.get(key, "")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= 1e12:
        raise Halt(f"{where} needs a number as its {key}, got {text!r:.40}")
    return value


def positive(attributes: Mapping[str, str], key: str, where: str) -> float:
    """Return an attribute that must be a number above 0."""
    value = number(attributes, key, where)
    if value <= 0:
        raise Halt(f"{where} needs a {key} above 0, got {value:g}")
    return value


def index(attributes: Mapping[str, str], key: str, where: str) -> int:
    """Return an attribute that must be a whole number from 0 on."""
    text = attributes.get(key, "")
    if not re.fullmatch(r"[0-9]{1,6}", text, re.ASCII):
        raise Halt(f"{where} needs a whole number, at least 0, as its {key}, got {text!r:.40}")
    return int(text)


def for_cars(attributes: Mapping[str, str]) -> bool:
    """Tell whether a lane or a connection is open to cars."""
    if "allow" in attributes:
        return not {"passenger", "all"}.isdisjoint(attributes["allow"].split())
    return {"passenger", "all"}.isdisjoint(attributes.get("disallow", "").split())


def points_of(text: str, where: str) -> Floats:
    """Return the points of a shape, none of an empty one."""
    try:
        points = [[float(value) for value in point.split(",")[:2]] for point in text.split()]
        shape = np.array(points, dtype=np.float64).reshape(len(points), 2)
    except ValueError:
        shape = np.full((1, 2), np.nan)
    if not (np.abs(shape) <= 1e12).all():
        raise Halt(f"{where} needs points 'x,y x,y …' as its shape, got {text!r:.40}")
    return shape
