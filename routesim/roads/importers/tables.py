"""RoadNetwork -> tables of pandas and geopandas, and a GeoPackage of them and back."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from routesim.arrays import Floats
from routesim.errors import NetworkError
from routesim.roads.columns import EDGE_NUMBERS, IMPUTED_BITS
from routesim.roads.importers.files import MAX_BYTES, existing_file
from routesim.roads.importers.labels import decode_label, encode_label
from routesim.roads.network import RoadNetwork
from routesim.storage.files import whole_file

if TYPE_CHECKING:
    import geopandas as gpd
    import pandas as pd

_FORMAT = "routesim-geopackage-1"


def edge_table(network: RoadNetwork) -> pd.DataFrame:
    """Return one row an edge in edge order, with its line where the network has coordinates."""
    if np.isnan(network.x).all() and len(network.shape_xy) == 0:
        return _columns(network)
    table: pd.DataFrame = to_geodataframe(network)
    return table


def to_geodataframe(network: RoadNetwork) -> gpd.GeoDataFrame:
    """Return one row an edge in edge order, with its line, straight between its ends where none is known."""
    import geopandas as gpd

    return gpd.GeoDataFrame(_columns(network), geometry=_lines(network, straight=True), crs=_crs(network))


def to_geopackage(network: RoadNetwork, path: str | Path) -> None:
    """Write layers `edges` and `nodes` and a table `network`; `from_geopackage` reads them back unchanged."""
    import geopandas as gpd
    import pandas as pd
    import shapely

    crs = _crs(network)
    edges = _columns(network).drop(columns=["u", "v"])
    edges.insert(0, "tail", network.tails)
    edges.insert(1, "head", network.heads)
    edges["imputed_bits"] = network.imputed_bits.astype(np.int32)
    for column in ("u", "v"):
        ends = network.tails if column == "u" else network.heads
        edges[column] = [encode_label(network.labels[i]) for i in ends.tolist()]
    known = ~np.isnan(network.x)
    points = np.full(network.n_nodes, None, dtype=object)
    points[known] = shapely.points(network.x[known], network.y[known])
    nodes = pd.DataFrame({"label": [encode_label(label) for label in network.labels], "no_through": network.no_through})
    about = {"name": network.name, "crs": network.crs, "attribution": network.attribution}
    table = pd.DataFrame({"format": [_FORMAT], "about": [json.dumps(about)]})
    with whole_file(path, NetworkError) as temporary:
        temporary.unlink()  # the driver wants to make the file itself
        options: dict[str, Any] = {"driver": "GPKG", "engine": "pyogrio"}
        try:
            gpd.GeoDataFrame(edges, geometry=_lines(network, straight=False), crs=crs).to_file(
                temporary, layer="edges", geometry_type="LineString", **options
            )
            gpd.GeoDataFrame(nodes, geometry=points, crs=crs).to_file(
                temporary, layer="nodes", geometry_type="Point", mode="a", **options
            )
            import pyogrio

            pyogrio.write_dataframe(table, temporary, layer="network", driver="GPKG", append=True)
        except (ValueError, RuntimeError, UnicodeError) as error:
            raise NetworkError(f"cannot write {path} as a GeoPackage: {error}") from None


def from_geopackage(path: str | Path, *, max_bytes: int = MAX_BYTES) -> RoadNetwork:
    """Read what `to_geopackage` wrote."""
    import pyogrio

    file = existing_file(path, "GeoPackage", max_bytes=max_bytes)
    try:
        with file.open("rb") as stream:
            # The reader behind pyogrio opens many formats, some of which name further files.
            if stream.read(16) != b"SQLite format 3\x00":
                raise NetworkError("it does not begin as a GeoPackage does")
        with warnings.catch_warnings():  # what the driver warns of in a damaged file is found out below
            warnings.simplefilter("ignore", RuntimeWarning)
            layers = {str(row[0]) for row in pyogrio.list_layers(file)}
            if not {"edges", "nodes", "network"} <= layers:
                raise NetworkError("it needs layers edges, nodes and network as to_geopackage writes them")
            edges, nodes, about = (pyogrio.read_dataframe(file, layer=layer) for layer in ("edges", "nodes", "network"))
        return _rebuild(edges, nodes, about)
    except NetworkError as error:
        raise NetworkError(f"{file}: {error}") from None
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RuntimeError, OSError) as error:
        raise NetworkError(f"{file} is no GeoPackage of a network, or is damaged: {error}") from None


def _rebuild(edges: Any, nodes: Any, about: Any) -> RoadNetwork:
    import shapely

    if str(about["format"].iloc[0]) != _FORMAT:
        raise NetworkError(f"the format must be {_FORMAT}")
    header = json.loads(about["about"].iloc[0])
    lines = np.asarray(edges.geometry, dtype=object)
    shape_xy, owners = shapely.get_coordinates(lines, return_index=True)
    offsets = np.zeros(len(lines) + 1, dtype=np.int64)
    np.cumsum(np.bincount(owners, minlength=len(lines)), out=offsets[1:])
    points = np.asarray(nodes.geometry, dtype=object)
    return RoadNetwork(
        labels=tuple(decode_label(text) for text in nodes["label"]),
        x=shapely.get_x(points),
        y=shapely.get_y(points),
        no_through=nodes["no_through"].to_numpy(),
        tails=edges["tail"].to_numpy(),
        heads=edges["head"].to_numpy(),
        keys=edges["key"].to_numpy(),
        names=tuple(edges["name"]),
        highways=tuple(edges["highway"]),
        imputed_bits=edges["imputed_bits"].to_numpy(),
        shape_xy=shape_xy,
        shape_offsets=offsets,
        crs=header["crs"],
        name=header["name"],
        attribution=header["attribution"],
        **{column: edges[column].to_numpy(dtype=np.float64) for column in EDGE_NUMBERS},
    )


def _columns(network: RoadNetwork) -> pd.DataFrame:
    import pandas as pd

    def labels(ends: Any) -> Any:
        return pd.Series([network.labels[i] for i in ends.tolist()], dtype=_label_dtype(network))

    columns: dict[str, Any] = {"u": labels(network.tails), "v": labels(network.heads), "key": network.keys}
    columns |= {column: getattr(network, column) for column in EDGE_NUMBERS}
    columns |= {
        "name": pd.Series(network.names, dtype=object),
        "highway": pd.Series(network.highways, dtype=object),
    }
    columns |= {f"{flag}_imputed": network.imputed(flag) for flag in IMPUTED_BITS}
    return pd.DataFrame(columns)


def _label_dtype(network: RoadNetwork) -> Any:
    whole = all(type(label) is int and abs(label) < 2**62 for label in network.labels)
    return np.int64 if whole else object


def _lines(network: RoadNetwork, *, straight: bool) -> Any:
    """Return a shapely line or None for each edge."""
    import shapely

    shape_xy, offsets = network.shape_xy, network.shape_offsets
    drawn = np.diff(offsets) > 0
    lines = np.full(network.n_edges, None, dtype=object)
    if drawn.any():
        owners = np.repeat(np.cumsum(drawn) - 1, np.diff(offsets))
        lines[drawn] = shapely.linestrings(shape_xy, indices=owners)
    if straight:
        ends = _straight_ends(network)
        plain = ~drawn & ~np.isnan(ends).any(axis=(1, 2))
        lines[plain] = shapely.linestrings(ends[plain])
    return lines


def _straight_ends(network: RoadNetwork) -> Floats:
    places = np.column_stack((network.x, network.y))
    return np.stack((places[network.tails], places[network.heads]), axis=1)


def _crs(network: RoadNetwork) -> str | None:
    if network.is_geographic:
        return network.crs
    import pyproj

    try:
        return str(pyproj.CRS.from_user_input(network.crs).to_wkt())
    except pyproj.exceptions.CRSError:
        return None
