"""Tables that a run of traffic leaves in its result folder: links by the hour, path flows, skims, selected links."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from routesim.results.counts import compare_counts
from routesim.storage import reading
from routesim.traffic.result import Traffic

if TYPE_CHECKING:
    import pandas as pd

# Which columns say what a row of a table is about, and how the others are joined over replications.
KEYS: Mapping[str, Sequence[str]] = {
    "links": (
        "start_s",
        "end_s",
        "edge",
        "u",
        "v",
        "key",
        "name",
        "highway",
        "length_m",
        "capacity_vph",
        "free_flow_s",
    ),
    "path_flows": ("origin", "destination", "path", "length_m", "free_flow_s"),
    "skims": ("origin", "destination"),
    "select_link": ("selected", "edge"),
    "counts": ("row", "edges", "name", "counted_vph"),
}
_LARGEST = ("largest_v_c", "largest_delay_s", "slowest_s")
_WEIGHTED = {"links": "volume", "path_flows": "vehicles", "skims": "arrived"}
_HOUR_S = 3600.0
MOST_SELECTED = 100


def tables_of(
    traffic: Traffic, *, selected: Sequence[int] = (), counts: str | None = None, from_s: float = 0.0
) -> dict[str, "pd.DataFrame"]:
    """Return the tables of a run, ready for files: labels and paths are texts, hours count from `from_s`."""
    import pandas as pd

    hour_s = max(int(_HOUR_S // traffic.bin_s), 1) * traffic.bin_s
    paths = traffic.path_flows()
    paths["path"] = [" ".join(map(str, path)) for path in paths.path]
    tables = {"links": traffic.links(hour_s, first_s=from_s), "path_flows": paths, "skims": traffic.skims()}
    if selected:
        parts = []
        for edge in selected:
            vehicles = traffic.select_link(edge).vehicles
            used = np.flatnonzero(vehicles)
            parts.append(pd.DataFrame({"selected": edge, "edge": used, "vehicles": vehicles[used]}))
        tables["select_link"] = pd.concat(parts, ignore_index=True)
    if counts is not None:
        compared = compare_counts(traffic, counts).table
        compared["edges"] = [" ".join(map(str, place)) for place in compared.edges]
        tables["counts"] = compared[["row", "edges", "name", "counted_vph", "modelled_vph"]]
    for table in tables.values():
        for column in set(table.columns) & {"origin", "destination", "u", "v"}:
            table[column] = [str(label) for label in table[column]]
    return tables


def save_tables(folder: Path, tables: Mapping[str, "pd.DataFrame"]) -> None:
    """Write each table as a Parquet file into a folder."""
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet", index=False)


def load_tables(folder: Path) -> dict[str, "pd.DataFrame"]:
    """Read the tables that are there; one without its columns is refused."""
    tables = {}
    for name, keys in KEYS.items():
        file = folder / f"{name}.parquet"
        if file.exists():
            table: Any = reading.read_table(file).to_pandas()
            missing = [key for key in keys if key not in table.columns]
            if missing:
                raise ValueError(f"{file.name} has no column {missing[0]}")
            tables[name] = table
    return tables


def joined(runs: Sequence[Mapping[str, "pd.DataFrame"]]) -> dict[str, "pd.DataFrame"]:
    """Return the tables of some replications as one: means, delays and times weighted by vehicles, largest of all."""
    import pandas as pd

    tables = {}
    for name in runs[0]:
        keys, weight = list(KEYS[name]), _WEIGHTED.get(name)
        every = pd.concat([run[name] for run in runs], ignore_index=True)
        columns = [column for column in every.columns if column not in keys]
        weighed = [column for column in columns if weight and column.startswith("mean_")]
        for column in weighed:
            every[column] = every[column] * every[weight]
            every[f"known {column}"] = every[weight].where(every[column].notna(), 0)
        groups = every.groupby(keys, sort=False, dropna=False)
        table = groups[[column for column in columns if column not in _LARGEST]].sum() / len(runs)
        for column in set(_LARGEST) & set(columns):
            table[column] = groups[column].max()
        for column in weighed:
            known = groups[f"known {column}"].sum()
            table[column] = table[column] * len(runs) / known.where(known > 0)
        tables[name] = table.reset_index()[[*keys, *columns]]
    return tables
