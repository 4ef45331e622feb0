"""RoadNetwork -> SUMO: plain XML (nodes, edges, types, connections, programmes) and the net netconvert makes of it.

ids        Edge `e` of the network is edge "e" of the net. Junctions have the labels of the nodes where all of them are
           whole numbers, else their indices; the label is kept as a parameter, so that `from_sumo` gives it back.
time       The speed of an edge is its length over its free-flow time. Lengths are stated, whatever is drawn; SUMO's
           cars drive the inside of junctions in addition. A length below 0.1 m, SUMO's least, becomes 0.1 m.
lanes      Rounded to whole ones, at least one.
turns      Every edge is connected to all that start where it ends, but for banned turns and U-turns: the latter are at
           dead ends, and where the programme of a signal names one. Nothing passes through nodes marked `no_through`.
           SUMO knows no banned ways of three or more edges: they are kept as parameters of their first edge, and so are
           the turns that are allowed and not connected, so that `from_sumo` gives the same bans back.
signals    Junctions of type "traffic_light": with the network's programme where it is known, in which three seconds of
           yellow are taken from the red that follows a green; else with netconvert's own.
places     Degrees are projected to UTM; planar coordinates stay as they are.
"""

from __future__ import annotations

import math
import os
import re
import secrets
import shutil
import subprocess
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from routesim.arrays import Floats
from routesim.errors import InputError, LeftOutWarning, NetworkError, RoutesimError
from routesim.roads.columns import IMPUTED_BITS
from routesim.roads.importers.defaults import ROAD_CLASSES
from routesim.roads.importers.labels import encode_label
from routesim.roads.importers.sumo import (
    KEPT_CLASS,
    KEPT_CLOSED,
    KEPT_FLAGS,
    KEPT_LABEL,
    KEPT_NUMBERS,
    KEPT_TURNS,
    KEPT_UNKNOWN,
    KEPT_WAYS,
    highway_of,
)
from routesim.roads.importers.sumo_lights import programmes_of
from routesim.roads.network import RoadNetwork
from routesim.roads.places import haversine_m

NET = "network.net.xml"
_SHORTEST_M = 0.1
_FASTEST_MPS = 1000.0
_SLOWEST_MPS = 0.01
# What XML has no place for, and the ends of lines, which netconvert drops.
_NOT_XML = re.compile("[\x00-\x1f\ud800-\udfff\ufffe\uffff]+")
_NOT_TYPE = re.compile(r"[^A-Za-z0-9_.-]")
_OPTIONS = ("--precision", "6", "--output.street-names", "true", "--no-warnings", "true")


def to_sumo(network: RoadNetwork, folder: str | Path) -> Path:
    """Write a network for SUMO into a folder, which must be new or empty, and return the path of its net.

    The folder holds `network.net.xml`, which `from_sumo` reads back, and the plain XML it was made of. It is written
    whole or not at all. netconvert comes with the extra `sumo`: pip install 'routesim[sumo]'. SUMO has no edges that
    lead back to the node where they start, and no signals whose roads have cycles of different lengths: the former are
    left out, the latter have netconvert's programme, and a warning counts both.
    """
    netconvert, environment = find_netconvert()
    target = Path(folder)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InputError(f"to_sumo needs a new or an empty folder, and {target} is there; give another")
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot write {target}: {error}") from None
    files = dict(_plain_files(network))
    fresh = target.with_name(f".{target.name}-{secrets.token_hex(6)}")
    try:
        fresh.mkdir()
        for name, text in files.items():
            (fresh / name).write_text(text, encoding="utf-8")
        plain = ("node-files", "edge-files", "type-files", "connection-files")
        given = [f"--{option}={name}" for option, name in zip(plain, files, strict=True)]
        _run([netconvert, *given, "--output-file", NET, *_OPTIONS], fresh, environment)
        lights, others = programmes_of(network, fresh / NET)
        if lights:
            (fresh / "network.tll.xml").write_text(_document("tlLogics", lights), encoding="utf-8")
            again = ["--sumo-net-file", NET, "--tllogic-files", "network.tll.xml", "--output-file", "again.net.xml"]
            _run([netconvert, *again, *_OPTIONS, "--offset.disable-normalization", "true"], fresh, environment)
            (fresh / "again.net.xml").replace(fresh / NET)
        if target.is_dir():
            target.rmdir()
        fresh.rename(target)
    except (OSError, ValueError) as error:  # a name with a null letter is a ValueError
        if isinstance(error, RoutesimError):
            raise
        raise InputError(f"cannot write {target}: {getattr(error, 'strerror', None) or error}") from None
    finally:
        with suppress(ValueError):
            shutil.rmtree(fresh, ignore_errors=True)
    loops = int((network.tails == network.heads).sum())
    said = [f"{loops} edges that lead back to their own node are left out"] if loops else []
    said += [f"{others} signals whose roads have different cycles have netconvert's programme"] if others else []
    if said:
        warnings.warn(f"{target}: {'; '.join(said)}", LeftOutWarning, stacklevel=3)
    return target / NET


def find_netconvert() -> tuple[str, dict[str, str]]:
    """Return SUMO's netconvert and the environment it needs: that of the extra `sumo`, else the one on the path."""
    spec = find_spec("sumo")  # not imported: that would turn pyproj to SUMO's own data
    for place in spec.submodule_search_locations or () if spec is not None else ():
        program = shutil.which("netconvert", path=str(Path(place) / "bin"))
        if program is not None:
            data = str(Path(place) / "data" / "proj")
            return program, {**os.environ, "SUMO_HOME": place, "PROJ_LIB": data, "PROJ_DATA": data}
    program = shutil.which("netconvert")
    if program is None:
        raise InputError("to_sumo needs SUMO's netconvert, which is an extra: pip install 'routesim[sumo]'")
    return program, dict(os.environ)


def _run(command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(  # noqa: S603 - the program is SUMO's own, and the words are those above
        command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode != 0 or not (folder / command[command.index("--output-file") + 1]).is_file():
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.startswith("Error")]
        raise NetworkError(f"netconvert made no net: {' '.join(said)[:500] or f'it ended with {done.returncode}'}")


def _plain_files(network: RoadNetwork) -> Iterator[tuple[str, str]]:
    if np.isnan(network.x).any():
        label = network.labels[int(np.argmax(np.isnan(network.x)))]
        raise NetworkError(f"SUMO needs the place of every node, and node {label!r} has no coordinates")
    projection, places, shapes = _projected(network)
    whole = all(type(label) is int for label in network.labels)
    ids = [str(label) if whole else str(i) for i, label in enumerate(network.labels)]
    location = (
        f'<location netOffset="0.00,0.00" convBoundary="{_boundary(places)}" origBoundary="{_boundary(places)}" '
        f"projParameter={quoteattr(projection)}/>"
    )
    yield "network.nod.xml", _document("nodes", [location, *_nodes(network, ids, places)])
    connected, others = _turns(network)
    yield "network.edg.xml", _document("edges", _edges(network, ids, shapes, others))
    kinds = dict.fromkeys(_type(highway) for highway in network.highways if highway)
    yield "network.typ.xml", _document("types", [f"<type id={quoteattr(kind)}/>" for kind in kinds])
    yield "network.con.xml", _document("connections", _connections(connected, network))


def _document(root: str, elements: Iterator[str] | list[str]) -> str:
    return "\n".join(('<?xml version="1.0" encoding="UTF-8"?>', f"<{root}>", *elements, f"</{root}>", ""))


def _boundary(places: Floats) -> str:
    return ",".join(f"{value:.2f}" for value in (*places.min(axis=0), *places.max(axis=0)))


def _projected(network: RoadNetwork) -> tuple[str, Floats, Floats]:
    """Return the projection, and the places of nodes and the points of lines in it."""
    places = np.column_stack((network.x, network.y))
    if not network.is_geographic:
        return "!", places, network.shape_xy
    import pyproj

    lon, lat = float(np.median(network.x)), float(np.median(network.y))
    zone = min(int((lon + 180) // 6) + 1, 60)
    south = " +south" if lat < 0 else ""
    text = f"+proj=utm +zone={zone}{south} +ellps=WGS84 +datum=WGS84 +units=m +no_defs"
    project = pyproj.Proj(text)
    points = [np.column_stack(project(xy[:, 0], xy[:, 1])) for xy in (places, network.shape_xy)]
    if not all(np.isfinite(xy).all() for xy in points):
        raise NetworkError(f"the roads reach too far from zone {zone} of UTM for one net; take a part of them")
    return text, points[0], points[1]


def _nodes(network: RoadNetwork, ids: list[str], places: Floats) -> Iterator[str]:
    for i, (x, y) in enumerate(places.tolist()):
        kind = ' type="traffic_light"' if network.signals[i] else ""
        kept = f'<param key="{KEPT_LABEL}" value={quoteattr(encode_label(network.labels[i]))}/>'
        kept += f'<param key="{KEPT_CLOSED}" value="true"/>' if network.no_through[i] else ""
        yield f'<node id="{ids[i]}" x="{x:.6f}" y="{y:.6f}"{kind}>{kept}</node>'


def _edges(network: RoadNetwork, ids: list[str], shapes: Floats, others: list[list[int]]) -> Iterator[str]:
    ways: dict[int, list[str]] = {}
    for first, *rest in network.banned_ways:
        ways.setdefault(first, []).append(" ".join(map(str, rest)))
    pairs = set(zip(network.tails.tolist(), network.heads.tolist(), strict=True))
    order = list(ROAD_CLASSES)
    for e, (tail, head) in enumerate(zip(network.tails.tolist(), network.heads.tolist(), strict=True)):
        if tail == head:
            continue
        length = max(_SHORTEST_M, _length(network, e))
        seconds = float(network.free_flow_s[e])
        speed = length / seconds if seconds > 0 else _FASTEST_MPS
        highway, name = network.highways[e], _NOT_XML.sub(" ", network.names[e])
        words = {
            "id": str(e),
            "from": ids[tail],
            "to": ids[head],
            "numLanes": str(max(1, round(float(network.lanes[e])))),
            "speed": f"{min(max(speed, _SLOWEST_MPS), _FASTEST_MPS):.9f}",
            "length": f"{length:.6f}",
            "priority": str(len(order) - order.index(highway) if highway in ROAD_CLASSES else 1),
            "spreadType": "right" if (head, tail) in pairs else "center",
        }
        if highway:
            words["type"] = _type(highway)
        if name:
            words["name"] = name
        line = shapes[network.shape_offsets[e] : network.shape_offsets[e + 1]]
        if len(line):
            words["shape"] = " ".join(f"{x:.6f},{y:.6f}" for x, y in line.tolist())
        bits = int(network.imputed_bits[e])
        flags = " ".join(flag for flag, bit in IMPUTED_BITS.items() if bits & bit)
        kept = [(column, repr(float(getattr(network, column)[e]))) for column in KEPT_NUMBERS] + [(KEPT_FLAGS, flags)]
        if highway and highway_of(_type(highway)) != highway:
            kept.append((KEPT_CLASS, _NOT_XML.sub(" ", highway)))
        kept += [(KEPT_TURNS, " ".join(map(str, others[e])))] if others[e] else []
        kept += [(KEPT_WAYS, ",".join(ways[e]))] if e in ways else []
        kept += [] if network.bans_known else [(KEPT_UNKNOWN, "true")]
        inside = "".join(f'<param key="{key}" value={quoteattr(value)}/>' for key, value in kept)
        yield f"<edge {' '.join(f'{key}={quoteattr(word)}' for key, word in words.items())}>{inside}</edge>"


def _type(highway: str) -> str:
    return "highway." + _NOT_TYPE.sub("_", highway)


def _length(network: RoadNetwork, e: int) -> float:
    """Return the length of an edge, measured along its line where it is not known."""
    stated = float(network.length_m[e])
    if not math.isnan(stated):
        return stated
    x, y = network.shape(e).T
    steps = haversine_m(x[:-1], y[:-1], x[1:], y[1:]) if network.is_geographic else np.hypot(np.diff(x), np.diff(y))
    return float(steps.sum())


def _turns(network: RoadNetwork) -> tuple[list[list[int]], list[list[int]]]:
    """Return for each edge onto which others it is connected, and onto which one may turn besides."""
    timed = set(zip(network.signal_times.edge.tolist(), network.signal_times.to.tolist(), strict=True))
    banned = set(map(tuple, network.banned_turns.tolist()))
    leaving: list[list[int]] = [[] for _ in range(network.n_nodes)]
    for e, tail in enumerate(network.tails.tolist()):
        leaving[tail].append(e)
    connected, others = [], []
    for e, (tail, head) in enumerate(zip(network.tails.tolist(), network.heads.tolist(), strict=True)):
        allowed = [f for f in leaving[head] if (e, f) not in banned and network.heads[f] != head and tail != head]
        onward = [f for f in allowed if network.heads[f] != tail or (e, f) in timed] or allowed
        connected.append([] if network.no_through[head] else onward)
        others.append([f for f in allowed if f not in connected[-1]])
    return connected, others


def _connections(connected: list[list[int]], network: RoadNetwork) -> Iterator[str]:
    for e in np.flatnonzero(network.tails != network.heads).tolist():
        for onward in connected[e]:
            yield f'<connection from="{e}" to="{onward}"/>'
        if not connected[e]:
            yield f'<connection from="{e}"/>'
