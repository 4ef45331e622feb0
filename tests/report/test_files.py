"""Files for other programs and other eyes: GIS, plots, notebooks, the index of maps, and the script that makes them."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import geopandas as gpd
import numpy as np
import pytest
import records
from test_hostile_texts import hostile_record

from routesim.errors import InputError, ResultsError
from routesim.report.gis import write_gis
from routesim.report.index import Card, thumbnail, write_index
from routesim.report.page import write_page
from routesim.report.plots import plot_measure, plot_travel_times, write_plots

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))
import draw_maps


def test_routes_and_roads_open_in_a_gis(tmp_path: Path) -> None:
    record = records.small_city()
    assert record.network is not None
    write_gis(tmp_path, record)
    routes = gpd.read_file(tmp_path / "routes.geojson")
    assert routes.crs.to_epsg() == 4326
    assert list(routes["route"]) == [1, 2, 3, 4, 5]
    assert set(routes["via"]) <= set(record.network.names)
    np.testing.assert_allclose(routes["share CARMAB-st"], record.learners[0].shares.mean(axis=0), atol=1e-6)
    for line, path in zip(routes.geometry, record.routes, strict=True):
        np.testing.assert_allclose(line.coords[0], record.network.shape(path[0])[0], atol=1e-6)
        np.testing.assert_allclose(line.coords[-1], record.network.shape(path[-1])[-1], atol=1e-6)
    metres = routes.to_crs(routes.estimate_utm_crs()).length
    np.testing.assert_allclose(metres, routes["length_m"], rtol=0.02)
    roads = gpd.read_file(tmp_path / "roads.gpkg", layer="roads")
    assert list(roads["edge"]) == record.edges.tolist()
    assert roads.crs.to_epsg() == 4326
    for number, played in enumerate(record.learners, start=1):
        np.testing.assert_allclose(roads[f"load_mean_{number}"], played.loads.mean(axis=0))
        np.testing.assert_allclose(roads[f"ratio_peak_{number}"], played.ratios.max(axis=0))
    learners = gpd.read_file(tmp_path / "roads.gpkg", layer="learners")
    assert list(learners["learner"]) == records.labels(record)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["roads.gpkg", "routes.geojson"]


EVERY = {**records.MAKERS, "hostile": hostile_record}


@pytest.mark.parametrize("name", EVERY)
def test_every_record_can_be_taken_to_a_gis(tmp_path: Path, name: str) -> None:
    record = EVERY[name]()
    write_gis(tmp_path, record)
    assert len(gpd.read_file(tmp_path / "routes.geojson")) == len(record.routes)
    assert len(gpd.read_file(tmp_path / "roads.gpkg", layer="roads")) == len(record.edges)
    content = json.loads((tmp_path / "routes.geojson").read_text(encoding="utf-8"))
    assert content["schematic"] == (record.network is None or np.isnan(record.network.x).all())


def test_gis_files_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="cannot write"):
        write_gis(tmp_path / "nowhere", records.arms())


@pytest.mark.parametrize("name", ["arms", "traffic", "hostile"])
def test_plots_are_written_for_every_record(tmp_path: Path, name: str) -> None:
    record = EVERY[name]()
    names = [path.name for path in write_plots(tmp_path, record)]
    assert names == ["measure.svg", "travel_times.svg", "load.svg"]
    first = [(tmp_path / name).read_bytes() for name in names]
    write_plots(tmp_path, record)
    assert [(tmp_path / name).read_bytes() for name in names] == first, "the same record gives the same files"
    assert all(b"<script" not in content for content in first)


def test_a_plot_has_every_learner_with_its_band_and_the_references() -> None:
    record = records.small_city()
    (axes,) = plot_measure(record).axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == [*records.labels(record)[:3], "GreedyCongestion (informed)", "best possible"]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), record.learners[0].curve)
    assert len(axes.collections) == len(record.learners)
    assert axes.get_ylabel() == "mean trip, s"


def test_trips_are_spread_by_their_percentiles() -> None:
    record = records.small_city()
    (axes,) = plot_travel_times(record).axes
    for line, played in zip(axes.lines, record.learners, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), played.quantiles)
        np.testing.assert_allclose(line.get_ydata(), np.arange(101) / 100)
    assert axes.get_xlabel() == "trip, s"
    assert plot_travel_times(records.arms()).axes[0].get_xlabel() == "reward"


def test_a_record_without_single_trips_has_no_plot_of_them(tmp_path: Path) -> None:
    record = records.arms()
    learners = tuple(replace(p, quantiles=None) for p in record.learners)
    assert len(write_plots(tmp_path, replace(record, learners=learners))) == 2
    assert not (tmp_path / "travel_times.svg").exists()


def test_an_index_leads_to_its_pages(tmp_path: Path) -> None:
    picture = thumbnail(records.small_city())
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 40_000
    write_index(tmp_path, [Card("a map.html", "A map", "Helsinki", "It went well.", picture), Card("b.html", "B")])
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'href="a%20map.html"' in text
    assert "It went well." in text
    assert text.count("<img") == 1
    with pytest.raises(InputError, match="beside it"):
        write_index(tmp_path, [Card("../elsewhere.html", "A map")])


def test_one_command_draws_the_maps_of_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, record in (("one", records.small_city()), ("two", records.own_graph())):
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        record.write(folder)
    (tmp_path / "runs" / "one" / "summary.json").write_text('{"verdict": "CARMAB did best."}')
    draw_maps.main(["one", "two", "--runs", str(tmp_path / "runs"), "--maps", str(tmp_path / "maps")])
    assert sorted(file.name for file in (tmp_path / "maps").iterdir()) == ["index.html", "one.html", "two.html"]
    assert "CARMAB did best." in (tmp_path / "maps" / "index.html").read_text(encoding="utf-8")
    write_page(tmp_path / "again.html", records.small_city())
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "maps" / "one.html").read_bytes()
    assert "one.html" in capsys.readouterr().out


def test_every_point_of_a_sweep_has_a_map(tmp_path: Path) -> None:
    for point in ("window-2", "window-4"):
        folder = tmp_path / "runs" / "sweep" / "points" / point
        folder.mkdir(parents=True)
        records.own_graph().write(folder)
    draw_maps.main(["sweep", "--runs", str(tmp_path / "runs"), "--maps", str(tmp_path / "maps")])
    made = sorted(file.name for file in (tmp_path / "maps").iterdir())
    assert made == ["index.html", "sweep-window-2.html", "sweep-window-4.html"]


def test_scenarios_without_roads_have_no_map() -> None:
    names = draw_maps.city_scenarios()
    assert "helsinki" in names
    assert not {"paper-bandits", "paper-contextual"} & set(names)
