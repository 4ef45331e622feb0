"""Place, OSM file, GraphML, networkx, TNTP, GMNS, SUMO and routesim's own files -> RoadNetwork."""

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import signature
from pathlib import Path

from routesim.errors import NetworkError
from routesim.roads.network import RoadNetwork

# One line a format: how names of its files end, and who reads and writes it ("" where nobody does).
FORMATS: Mapping[str, tuple[str, str]] = {
    ".npz": ("archive.load", "archive.save"),
    ".graphml": ("graphml.from_graphml", "graphml.to_graphml"),
    ".gpkg": ("geopackage.from_geopackage", "tables.to_geopackage"),
    ".tntp": ("tntp.from_tntp", ""),
    ".osm": ("osm.from_osm", ""),
    ".osm.gz": ("osm.from_osm", ""),
    ".osm.bz2": ("osm.from_osm", ""),
    ".pbf": ("osm.from_osm", ""),
    ".net.xml": ("sumo.from_sumo", ""),
    ".net.xml.gz": ("sumo.from_sumo", ""),
}


def read_network(path: str | Path, **options: object) -> RoadNetwork:
    """Read a file of any known format by its ending; a folder is read as GMNS. The format must know every option."""
    function = "gmns.from_gmns" if Path(path).is_dir() else _format(path)[0]
    for option in options.keys() - signature(_look_up(function)).parameters.keys():
        raise NetworkError(f"{path} is of a format that has no {option}; leave it out")
    return call(function, path, **options)


def write_network(network: RoadNetwork, path: str | Path) -> None:
    """Write a network in the format that the ending of `path` names."""
    writer = _format(path)[1]
    if not writer:
        writable = ", ".join(ending for ending, (_, writes) in FORMATS.items() if writes)
        raise NetworkError(f"networks are written as {writable}, not as {Path(path).name!r}")
    call(writer, network, path)


def _format(path: str | Path) -> tuple[str, str]:
    name = Path(path).name.lower()
    for ending, functions in FORMATS.items():
        if name.endswith(ending):
            return functions
    raise NetworkError(f"no format of roads is known by the ending of {name!r}; known are {', '.join(FORMATS)}")


def call(function: str, *arguments: object, **options: object) -> RoadNetwork:
    """Call a function of this room, such as `"tntp.from_tntp"`, with these arguments."""
    result: RoadNetwork = _look_up(function)(*arguments, **options)
    return result


def _look_up(function: str) -> Callable[..., RoadNetwork]:
    # Looked up when needed: some readers bring heavy packages along.
    module, name = function.split(".")
    found: Callable[..., RoadNetwork] = getattr(import_module(f"{__name__}.{module}"), name)
    return found
