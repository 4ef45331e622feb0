"""Bundled road extracts of real cities, their attributions, `load_city(name)`."""

import difflib
import io
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

import numpy as np

from routesim.arrays import Floats, Ints
from routesim.errors import NetworkError
from routesim.roads.importers.archive import read, read_arrays
from routesim.roads.network import RoadNetwork

_ZONES = "_zones.npz"


@dataclass(frozen=True, eq=False)
class Zones:
    """The populated zones of a city: where each lies, how many live there, the road node nearest to it."""

    zone_id: Ints
    population: Floats
    lon: Floats
    lat: Floats
    node: tuple[int, ...]


def list_cities() -> list[str]:
    """Name the bundled cities, for `load_city`."""
    names = (file.name for file in _data().iterdir())
    return sorted(name[:-4] for name in names if name.endswith(".npz") and not name.endswith(_ZONES))


def load_city(name: str) -> RoadNetwork:
    """Return the roads of a bundled city; no network connection is needed.

    >>> load_city("helsinki")
    <RoadNetwork helsinki: 134 nodes, 281 edges>
    """
    return read(io.BytesIO(_content(name, list_cities(), ".npz", "city")), f"the bundled city {name!r}")


def load_zones(name: str) -> Zones:
    """Return the populated zones of a bundled city that has them (so far "coquimbo")."""
    known = [file.name.removesuffix(_ZONES) for file in _data().iterdir() if file.name.endswith(_ZONES)]
    arrays = read_arrays(io.BytesIO(_content(name, sorted(known), _ZONES, "city with zones")))
    columns = {column: arrays[column] for column in ("zone_id", "population", "lon", "lat")}
    for values in columns.values():
        values.flags.writeable = False
    zone_id = columns.pop("zone_id").astype(np.int64)
    return Zones(zone_id=zone_id, node=tuple(arrays["node"].tolist()), **columns)


def _data() -> Traversable:
    return resources.files(__name__) / "data"


def _content(name: str, known: list[str], ending: str, what: str) -> bytes:
    if name not in known:
        near = difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise NetworkError(f"no bundled {what} {name!r}; {hint}There are {', '.join(known)}")
    return (_data() / f"{name}{ending}").read_bytes()
