"""A record for QGIS and its like: routes as GeoJSON, roads with their loads as a GeoPackage."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from routesim.report.assets import write_text
from routesim.report.drawing import draw
from routesim.report.routes_table import edge_name, route_rows
from routesim.results.standing import COLUMNS
from routesim.roads.places import GEOGRAPHIC
from routesim.storage.files import whole_file

if TYPE_CHECKING:
    from routesim.results.record import Record

ROUTES, ROADS = "routes.geojson", "roads.gpkg"


def write_gis(folder: str | Path, record: "Record") -> None:
    """Write `routes.geojson` and `roads.gpkg` into a folder.

    A route has properties route (its number), via, length_m, free_flow_s, and share and value for each learner, as in
    `share CARMAB`. The GeoPackage has a layer `roads`, one row for each edge that was used, and a table `learners` that
    says whose columns are whose: `load_mean_1` and `load_peak_1`, `ratio_mean_1` and `ratio_peak_1` are the first's.
    With queues, so are `on_road_peak_1`, `in_queue_peak_1` and `waiting_peak_1`, the most vehicles of any step.
    Where roads have no places, lines lie where a page would draw them, around (0, 0).
    """
    write_text(Path(folder) / ROUTES, json.dumps(routes_geojson(record), allow_nan=False))
    _write_roads(Path(folder) / ROADS, record)


def routes_geojson(record: "Record") -> dict[str, Any]:
    """Return the routes as a GeoJSON collection of lines."""
    drawing = draw(record)
    features = []
    for row in route_rows(record):
        properties: dict[str, Any] = {
            "route": row.route,
            "via": row.via,
            "length_m": row.length_m,
            "free_flow_s": row.free_flow_s,
        }
        for played, share, value in zip(record.learners, row.shares, row.values, strict=True):
            properties[f"share {played.label}"] = round(share, 6)
            properties[f"value {played.label}"] = round(value, 3) if np.isfinite(value) else None
        line = np.round(drawing.route(record.routes[row.route - 1]), 6).tolist()
        geometry = {"type": "LineString", "coordinates": line} if len(line) > 1 else None
        features.append({"type": "Feature", "properties": properties, "geometry": geometry})
    about = {"name": record.title, "schematic": drawing.schematic, "attribution": drawing.credit}
    return {"type": "FeatureCollection", **about, "features": features}


def _write_roads(path: Path, record: "Record") -> None:
    import geopandas as gpd
    import pandas as pd
    import pyogrio
    import shapely

    drawing, network, edges = draw(record), record.network, record.edges.tolist()
    columns: dict[str, Any] = {"edge": record.edges}
    if network is None:
        columns["name"] = [f"arm {edge + 1}" for edge in edges]
    else:
        columns |= {
            "name": [storable(edge_name(network, edge)) for edge in edges],
            "highway": [storable(network.highways[edge]) for edge in edges],
            "length_m": network.length_m[edges],
            "free_flow_s": network.free_flow_s[edges],
        }
    for number, played in enumerate(record.learners, start=1):
        for name, values in (("load", played.loads), ("ratio", played.ratios)):
            columns[f"{name}_mean_{number}"] = values.mean(axis=0)
            columns[f"{name}_peak_{number}"] = values.max(axis=0)
        if played.standing is not None:
            for name in COLUMNS:
                columns[f"{name}_peak_{number}"] = getattr(played.standing, COLUMNS[name]).max(axis=0)
    lines = [shapely.LineString(drawing.lines[edge]) for edge in edges]
    roads = gpd.GeoDataFrame(columns, geometry=lines, crs=GEOGRAPHIC)
    learners = pd.DataFrame(
        {
            "number": range(1, len(record.learners) + 1),
            "learner": [storable(played.label) for played in record.learners],
            "informed": [played.informed for played in record.learners],
        }
    )
    with whole_file(path) as temporary:
        temporary.unlink()  # the driver wants to make the file itself
        options = {"driver": "GPKG", "engine": "pyogrio", "geometry_type": "LineString"}
        try:
            roads.to_file(temporary, layer="roads", **options)
            pyogrio.write_dataframe(learners, temporary, layer="learners", driver="GPKG", append=True)
        except RuntimeError as problem:  # so the driver says that the disk is full
            raise OSError(f"the database says {problem}; is there room on the disk?") from problem


def storable(text: str) -> str:
    """Return text without what a database column cannot hold: the null letter and half characters."""
    return re.sub("[\x00\ud800-\udfff]", "?", text)
