"""A traffic scenario with demand and counts from files leaves the tables that practitioners work with."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shared_data import SHARED

import routesim as rs
from routesim.errors import InputError, ScenarioError
from routesim.runner.execution import run_scenario
from routesim.runner.units import simulator
from routesim.scenario.files import load_scenario, to_toml

STREET = """
kind = "traffic"
title = "a street and a detour"
replications = 2
seed = 1
learners = ["FreeFlowRouter", "GreedyRouter"]

[traffic]
edges = [
  { from = "a", to = "b", free_flow_s = 10.0, capacity_vph = 600.0, name = "street" },
  { from = "b", to = "c", free_flow_s = 10.0, capacity_vph = 600.0, name = "street" },
  { from = "a", to = "c", free_flow_s = 25.0, capacity_vph = 600.0, name = "detour" },
]
nodes = { a = [4.0, 52.0], b = [4.01, 52.0], c = [4.02, 52.0] }
counts = "counts.csv"
select_links = [["a", "b"], 2]

[traffic.demand]
file = "od.csv"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "street.toml").write_text(STREET)
    (tmp_path / "od.csv").write_text("origin,destination,departure_s\n" + "a,c,0\na,b,5\na,c,900\na,c,4000\nb,b,7\n")
    (tmp_path / "counts.csv").write_text("u,v,count,start_s,end_s\na,b,3,0,3600\n")
    return tmp_path


def test_the_result_folder_has_the_tables(folder: Path) -> None:
    run_scenario(load_scenario(folder / "street.toml"), folder / "out", name="x", workers=1)
    out = folder / "out"
    links = pd.read_csv(out / "links.csv")
    mine = links[links.learner == "FreeFlowRouter"].set_index(["start_s", "u", "v"]).volume
    # Nobody takes the detour, and the trips are the same in both replications.
    assert mine.to_dict() == {(0, "a", "b"): 3.0, (0, "b", "c"): 2.0, (3600, "a", "b"): 1.0, (3600, "b", "c"): 1.0}
    for name in ("links", "path_flows", "skims", "select_link", "counts"):
        table = pd.read_parquet(out / f"{name}.parquet")
        as_text = table.to_csv(index=False, float_format="%.10g")
        assert (out / f"{name}.csv").read_text() == as_text
        assert len(table) >= 2, name  # one row for each learner at least
    paths = pd.read_csv(out / "path_flows.csv", dtype={"path": str})
    flows = paths[paths.learner == "FreeFlowRouter"].set_index(["origin", "destination"])
    assert flows.path.to_dict() == {("a", "b"): "0", ("a", "c"): "0 2"}
    assert flows.vehicles.to_dict() == {("a", "b"): 1.0, ("a", "c"): 3.0}
    skims = pd.read_csv(out / "skims.csv").set_index(["learner", "origin", "destination"])
    assert skims.loc[("FreeFlowRouter", "a", "c"), "mean_travel_time_s"] == pytest.approx(20.0, rel=1e-3)
    selected = pd.read_csv(out / "select_link.csv")
    chosen = selected[selected.learner == "FreeFlowRouter"].set_index(["selected", "edge"]).vehicles
    assert chosen.to_dict() == {(0, 0): 4.0, (0, 2): 3.0, (2, 0): 3.0, (2, 2): 3.0}
    counts = pd.read_csv(out / "counts.csv")
    assert (counts.counted_vph[0], counts.modelled_vph[0], counts.geh[0]) == (3.0, 3.0, 0.0)
    import geopandas as gpd

    lines = gpd.read_file(out / "links.gpkg", layer="links")
    street = lines[(lines.learner == "FreeFlowRouter") & (lines.edge == 0)].iloc[0]
    assert (street.volume, street.largest_hour_flow_vph, street.u, street.v) == (4.0, 3.0, "a", "b")
    assert list(street.geometry.coords) == [(4.0, 52.0), (4.01, 52.0)]
    summary = json.loads((out / "summary.json").read_text())
    assert summary["demand"]["within_one_zone_rows"] == 1
    assert {"counts.png", "links.csv", "links.gpkg", "skims.parquet", "path_flows.csv"} <= set(summary["files"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["a", "b"], 2', '["a", "x"]', "no node 'x'"),
        ('["a", "b"], 2', "3", "select_links must be at most 2, got 3"),
        ('counts = "counts.csv"', 'counts = "nothing.csv"', "there is no file"),
        ('file = "od.csv"', 'file = "nothing.csv"', "there is no file"),
        ('file = "od.csv"', 'od = "od.csv"', "od is a table with vehicles alone"),
        ('file = "od.csv"', 'file = "street.toml"', "a table is a file that ends in"),
        ('file = "od.csv"', 'file = "od.csv"\ntrips = "od.csv"', "demand comes from one of pairs, file, od, trips"),
    ],
)
def test_mistakes_show_before_anything_runs(folder: Path, old: str, new: str, message: str) -> None:
    (folder / "street.toml").write_text(STREET.replace(old, new))
    with pytest.raises((ScenarioError, InputError, rs.RoutesimError), match=message):
        simulator(load_scenario(folder / "street.toml"))  # type: ignore[arg-type]  # it is of traffic


def test_a_count_on_no_road_shows_before_anything_runs(folder: Path) -> None:
    (folder / "counts.csv").write_text("u,v,count\na,b,3\nb,a,3\n")
    with pytest.raises(InputError, match=r"counts.csv row 3, column u, v"):
        simulator(load_scenario(folder / "street.toml"))  # type: ignore[arg-type]


def test_pairs_are_spelled_origin_and_destination_and_may_be_places(folder: Path) -> None:
    pairs = (
        'pairs = [{ origin = [4.0, 52.0001], destination = "c", vehicles = 7 }, { from = "b", to = "c", vehicles = 2 }]'
    )
    roads = STREET.replace('file = "od.csv"', pairs).replace(
        "]\nnodes", '  { from = "c", to = "a", free_flow_s = 20.0, capacity_vph = 600.0 },\n]\nnodes'
    )
    (folder / "street.toml").write_text(roads)
    scenario = load_scenario(folder / "street.toml")
    table = simulator(scenario).demand.per_hour()  # type: ignore[arg-type]
    assert (table["origin"], table["destination"], table["vehicles"].tolist()) == (["a", "b"], ["c", "c"], [7.0, 2.0])
    resolved = to_toml(scenario)
    assert 'destination = "c"' in resolved
    (folder / "again.toml").write_text(resolved)
    assert to_toml(load_scenario(folder / "again.toml")) == resolved


def test_delft_from_a_table_in_degrees_to_its_map(tmp_path: Path) -> None:
    file = SHARED / "data" / "osm" / "delft.graphml"
    if not file.exists():
        pytest.skip(f"no {file}; set ROUTESIM_SHARED")
    head = "origin_lon,origin_lat,destination_lon,destination_lat,vehicles,start_s,end_s\n"
    (tmp_path / "od.csv").write_text(f"{head}4.34,52.0,4.38,52.02,30,0,600\n4.36,52.01,4.345,51.995,20,600,1200\n")
    (tmp_path / "delft.toml").write_text(
        'kind = "traffic"\ntitle = "Delft"\nreplications = 1\nseed = 0\nlearners = ["FreeFlowRouter"]\n'
        f'[traffic]\nfile = "{file}"\n[traffic.demand]\nfile = "od.csv"\n'
    )
    run_scenario(load_scenario(tmp_path / "delft.toml"), tmp_path / "out", name="x", workers=1)
    assert (tmp_path / "out" / "map.html").stat().st_size > 50_000
    links = pd.read_parquet(tmp_path / "out" / "links.parquet")
    assert (links.name != "").mean() > 0.8
    # In Python: three lines from the file to the map.
    delft = rs.RoadNetwork.from_graphml(file)
    traffic = rs.TrafficSimulator(delft, rs.Demand.from_csv(tmp_path / "od.csv", delft)).run(rs.FreeFlowRouter())
    rs.draw_map(traffic, tmp_path / "map.html")
    assert (tmp_path / "map.html").stat().st_size > 50_000
    assert np.isin(links.u.astype(np.int64), np.array(delft.labels)).all()
