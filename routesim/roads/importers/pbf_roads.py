"""Roads of a table of PBF ways: the rules of `tags`, applied to each text once and to all ways at a time."""

from functools import partial

import numpy as np

from routesim.arrays import Bools, Ints
from routesim.roads.importers.pbf import WayTable
from routesim.roads.importers.tags import (
    ACCESS_TAGS,
    DRIVABLE,
    LEFT_OUT,
    USED_TAGS,
    Road,
    is_left_out,
    read_access,
    read_road,
)

# `highway` first: ways without it are not looked at.
COLUMNS = ("highway", *(tag for tag in USED_TAGS if tag != "highway"))
_NAMES = [COLUMNS.index(tag) for tag in ("name", "ref")]


def judge_all(table: WayTable) -> tuple[Bools, Bools]:
    """Return which ways are drivable and which are closed, as `tags.judge` says of each."""
    road = table.said(0, lambda value: int(value in DRIVABLE)) > 0
    for tag in LEFT_OUT:
        road &= table.said(COLUMNS.index(tag), partial(is_left_out, tag)) == 0
    access = np.zeros(len(road), dtype=np.int8)
    for tag in ACCESS_TAGS:
        access = np.where(access == 0, table.said(COLUMNS.index(tag), read_access), access)
    return road & (access >= 0), road & (access < 0)


def read_roads(table: WayTable, chosen: Bools) -> list[Road]:
    """Return what `tags.read_road` says of each chosen way; tags that repeat are read once."""
    values: Ints = table.values[chosen]
    names = values[:, _NAMES].tolist()
    values[:, _NAMES] = -1
    raw, width = values.tobytes(), values.itemsize * len(COLUMNS)
    known: dict[bytes, Road] = {}
    roads = []
    text_of = table.block.text
    for i, (name, ref) in enumerate(names):
        key = raw[i * width : (i + 1) * width]
        road = known.get(key)
        if road is None:
            tags = {COLUMNS[c]: text_of(number) for c, number in enumerate(values[i].tolist()) if number >= 0}
            road = known[key] = read_road(tags)
        text = (text_of(name) if name >= 0 else "") or (text_of(ref) if ref >= 0 else "")
        roads.append(Road(road[0], text, *road[2:]) if text else road)
    return roads
