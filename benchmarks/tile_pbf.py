"""Tile a PBF of OpenStreetMap: copies of it side by side, each with ids of its own, up to a size.

    python -m benchmarks.tile_pbf SOURCE.osm.pbf TARGET.osm.pbf [--megabytes 76]

Nodes and ways keep their tags and their distances: copies are moved along the parallel by the width of the source.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import osmium

_GAP_DEGREES = 0.01

Point = tuple[int, float, float, dict[str, str]]
Line = tuple[int, list[int], dict[str, str]]


def tile(source: Path, target: Path, megabytes: float) -> int:
    """Write as many copies as come nearest to `megabytes` (10^6 bytes) and return their number."""
    nodes: list[Point] = []
    ways: list[Line] = []
    for item in osmium.FileProcessor(str(source), osmium.osm.NODE | osmium.osm.WAY):
        tags = dict(item.tags)
        if isinstance(item, osmium.osm.Node):
            nodes.append((item.id, item.location.lon, item.location.lat, tags))
        elif isinstance(item, osmium.osm.Way):
            ways.append((item.id, [node.ref for node in item.nodes], tags))
    _write(target, nodes, ways, 1)
    copies = max(1, round(megabytes * 1e6 / target.stat().st_size))
    _write(target, nodes, ways, copies)
    return copies


def _write(target: Path, nodes: Sequence[Point], ways: Sequence[Line], copies: int) -> None:
    west, east = min(node[1] for node in nodes), max(node[1] for node in nodes)
    node_step, way_step = max(node[0] for node in nodes) + 1, max(way[0] for way in ways) + 1
    shift = east - west + _GAP_DEGREES
    if copies * shift > 360.0:
        raise SystemExit(f"{copies} copies of {shift:.2f} degrees do not fit around the Earth")
    target.unlink(missing_ok=True)
    mutable = osmium.osm.mutable
    with osmium.SimpleWriter(str(target)) as writer:
        for copy in range(copies):
            for number, lon, lat, tags in nodes:
                place = ((lon + copy * shift + 180.0) % 360.0 - 180.0, lat)
                writer.add_node(mutable.Node(id=number + copy * node_step, location=place, tags=tags, version=1))
        for copy in range(copies):
            for number, refs, tags in ways:
                moved = [ref + copy * node_step for ref in refs]
                writer.add_way(mutable.Way(id=number + copy * way_step, nodes=moved, tags=tags, version=1))


def write_small(target: Path) -> None:
    """Write two crossing streets, enough to have every part of a reader compiled."""
    nodes: list[Point] = [(i, 7.0 + i / 1000, 50.0 + (i % 2) / 1000, {}) for i in range(1, 6)]
    street = {"highway": "residential"}
    _write(target, nodes, [(1, [1, 2, 3], street), (2, [4, 2, 5], {**street, "name": "Cross Street"})], 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--megabytes", type=float, default=76.0)
    options = parser.parse_args()
    copies = tile(options.source, options.target, options.megabytes)
    print(f"{options.target}: {copies} copies, {options.target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
