"""Tables of traffic in a result folder, by learner: CSV and Parquet, and the links with their lines as a GeoPackage."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from routesim.report.gis import storable
from routesim.report.plots import plot_counts
from routesim.results.counts import CountComparison, geh
from routesim.results.link_tables import joined
from routesim.roads.network import RoadNetwork

if TYPE_CHECKING:
    import pandas as pd

LINKS = "links.gpkg"


def tables_by_learner(runs: Mapping[str, Sequence[Mapping[str, "pd.DataFrame"]]]) -> dict[str, "pd.DataFrame"]:
    """Return the tables of all learners, of each the mean of its replications, with a column learner in front."""
    import pandas as pd

    parts: dict[str, list[pd.DataFrame]] = {}
    for label, replications in runs.items():
        for name, table in joined(replications).items() if replications[0] else ():
            table.insert(0, "learner", label)
            parts.setdefault(name, []).append(table)
    tables = {name: pd.concat(some, ignore_index=True) for name, some in parts.items()}
    if "counts" in tables:
        counts = tables["counts"]
        counts["difference_vph"] = counts.modelled_vph - counts.counted_vph
        counts["geh"] = geh(counts.modelled_vph, counts.counted_vph)
    return tables


def write_tables(folder: Path, tables: Mapping[str, "pd.DataFrame"], network: RoadNetwork) -> None:
    """Write each table as `NAME.csv` and `NAME.parquet`, and beside links and counts what shows them."""
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet", index=False, compression="zstd")
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.10g")
    if "links" in tables and not np.isnan(network.x).all():
        _write_links(folder / LINKS, tables["links"], network)
    if "counts" in tables:
        counts = tables["counts"]
        for number, (label, one) in enumerate(counts.groupby("learner", sort=False)):
            file = folder / ("counts.png" if not number else f"counts-{number + 1}.png")
            plot_counts(CountComparison(one), file, title=str(label))


def _write_links(path: Path, links: "pd.DataFrame", network: RoadNetwork) -> None:
    """Write one row for each learner and edge over the whole time, with its line."""
    import geopandas as gpd
    import shapely

    keys = ["learner", "edge", "u", "v", "key", "name", "highway", "length_m", "capacity_vph", "free_flow_s"]
    lost = links.mean_delay_s.fillna(0.0) * links.volume
    groups = links.assign(lost_s=lost).groupby(keys, sort=False, dropna=False)
    table = groups[["volume", "lost_s"]].sum()
    table["mean_delay_s"] = table.lost_s / table.volume.where(table.volume > 0)
    for column in ("flow_vph", "v_c", "largest_v_c", "largest_delay_s"):
        table[column if column.startswith("largest") else f"largest_hour_{column}"] = groups[column].max()
    table = table.drop(columns="lost_s").reset_index()
    for column in ("learner", "u", "v", "name", "highway"):
        table[column] = [storable(str(text)) for text in table[column]]
    lines: list[Any] = []
    for edge in table.edge:
        shape = network.shape(int(edge))
        lines.append(shapely.LineString(shape) if len(shape) > 1 else None)
    frame = gpd.GeoDataFrame(table, geometry=lines, crs=network.crs if network.is_geographic else None)
    try:
        frame.to_file(path, layer="links", driver="GPKG", engine="pyogrio", geometry_type="LineString")
    except RuntimeError as problem:  # so the driver says that the disk is full
        raise OSError(f"the database says {problem}; is there room on the disk?") from problem
