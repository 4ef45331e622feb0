"""RoadNetwork -> tables of pandas and geopandas, and a GeoPackage of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from routesim.arrays import Floats
from routesim.errors import NetworkError
from routesim.roads.columns import EDGE_NUMBERS, IMPUTED_BITS
from routesim.roads.importers.bans import rows_of
from routesim.roads.importers.labels import encode_label
from routesim.roads.network import RoadNetwork
from routesim.storage.files import whole_file

if TYPE_CHECKING:
    import geopandas as gpd
    import pandas as pd

# What `to_geopackage` writes into the table `network`, and `from_geopackage` looks for.
GEOPACKAGE_FORMAT = "routesim-geopackage-1"


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
    """Write layers `edges` and `nodes` and a table `network`; `from_geopackage` reads them back unchanged.

    Known programmes of signals are in a table `signal_times`, banned turns and ways in a table `banned_turns`: a row
    for each edge of each ban.
    """
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
    nodes = pd.DataFrame({"label": [encode_label(label) for label in network.labels]})
    nodes["no_through"], nodes["signals"] = network.no_through, network.signals
    about: dict[str, Any] = {"name": network.name, "crs": network.crs, "attribution": network.attribution}
    about |= {"bans_known": network.bans_known}
    table = pd.DataFrame({"format": [GEOPACKAGE_FORMAT], "about": [json.dumps(about)]})
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
            if len(network.signal_times):
                times = pd.DataFrame(network.signal_times.columns())
                pyogrio.write_dataframe(times, temporary, layer="signal_times", driver="GPKG", append=True)
            if network.bans:
                sizes, banned = rows_of(network.bans)
                rows = pd.DataFrame({"ban": np.repeat(np.arange(len(sizes)), sizes), "edge": banned})
                pyogrio.write_dataframe(rows, temporary, layer="banned_turns", driver="GPKG", append=True)
        except (ValueError, RuntimeError, UnicodeError) as error:
            raise NetworkError(f"cannot write {path} as a GeoPackage: {error}") from None


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
