"""The bundled cities: what they hold, measured independently, and that they come with the package."""

import subprocess
import sys
import time
import zipfile
from pathlib import Path

import networkx as nx
import numpy as np
import pyproj
import pytest

import routesim
from routesim.errors import NetworkError
from routesim.roads.cities import list_cities, load_city, load_zones

# Nodes and edges in the source, then bundled. Cleaning loses what cannot be reached both ways, and in
# Helsinki and Monaco also the points where one way ends and the next begins, which the count of the source
# keeps.
COUNTS = {
    "helsinki": ((202, 370), (134, 281)),
    "monaco": ((434, 742), (345, 620)),
    "cologne": ((78, 149), (69, 139)),
    "ingolstadt": ((381, 853), (377, 847)),
    "gothenburg": ((6362, 13849), (6238, 13721)),
    "coquimbo": ((15591, 34272), (15492, 34145)),
    "nauru": ((1044, 2272), (1042, 2270)),
}
# Somewhere near the middle of each.
PLACES = {
    "helsinki": (24.94, 60.17),
    "monaco": (7.42, 43.74),
    "cologne": (6.956, 50.968),
    "ingolstadt": (11.42, 48.76),
    "gothenburg": (11.97, 57.70),
    "coquimbo": (-71.27, -29.93),
    "nauru": (166.93, -0.53),
}


# Nodes with traffic signals, where the source says.
SIGNALS = {"helsinki": 62, "monaco": 10, "cologne": 8, "ingolstadt": 24}


def test_the_list_names_them() -> None:
    assert list_cities() == sorted(COUNTS)


@pytest.mark.parametrize("city", COUNTS)
def test_counts(city: str) -> None:
    network = load_city(city)
    source, bundled = COUNTS[city]
    assert (network.n_nodes, network.n_edges) == bundled
    least = 0.6 if city in {"helsinki", "monaco"} else 0.88
    assert all(least * there <= here <= there for here, there in zip(bundled, source, strict=True))
    assert network.name == city
    assert network.signals.sum() == SIGNALS.get(city, 0)


@pytest.mark.parametrize("city", COUNTS)
def test_every_node_reaches_every_other(city: str) -> None:
    network = load_city(city)
    graph = nx.DiGraph(zip(network.tails.tolist(), network.heads.tolist(), strict=True))
    assert graph.number_of_nodes() == network.n_nodes
    assert nx.is_strongly_connected(graph)


@pytest.mark.parametrize("city", COUNTS)
def test_lengths_agree_with_a_geodesic_measure_of_the_lines(city: str) -> None:
    network = load_city(city)
    ellipsoid = pyproj.Geod(ellps="WGS84")
    x, y = network.shape_xy[:, 0], network.shape_xy[:, 1]
    _, _, steps = ellipsoid.inv(x[:-1], y[:-1], x[1:], y[1:])
    steps[network.shape_offsets[1:-1] - 1] = 0.0
    assert network.length_m.sum() == pytest.approx(steps.sum(), rel=0.01)
    ends = np.column_stack((network.lon, network.lat))
    assert np.abs(network.shape_xy[network.shape_offsets[:-1]] - ends[network.tails]).max() < 2e-7
    assert np.abs(network.shape_xy[network.shape_offsets[1:] - 1] - ends[network.heads]).max() < 2e-7


@pytest.mark.parametrize("city", COUNTS)
def test_times_speeds_and_places_are_plausible(city: str) -> None:
    network = load_city(city)
    np.testing.assert_allclose(network.free_flow_s, network.length_m / network.speed_kph * 3.6, atol=6e-4)
    assert network.speed_kph.min() >= 5
    assert network.speed_kph.max() <= 130
    assert np.array_equal(network.imputed("capacity"), np.ones(network.n_edges, dtype=np.bool_))
    near = network.node_index(network.nearest_node(*PLACES[city]))
    away = np.hypot(network.lon[near] - PLACES[city][0], network.lat[near] - PLACES[city][1])
    assert away < 0.02
    assert set(network.highways) <= {
        *("motorway", "motorway_link", "trunk", "trunk_link", "primary", "primary_link", "secondary"),
        *("secondary_link", "tertiary", "tertiary_link", "unclassified", "residential", "living_street"),
        *("service", "road"),
        # SUMO's network of Ingolstadt lets cars onto six pieces of a few metres of these.
        *(("footway", "path", "track") if city == "ingolstadt" else ()),
    }


@pytest.mark.parametrize(
    ("city", "named", "tagged_speed"),
    [("helsinki", 0.97, 0.99), ("monaco", 0.8, 0.3), ("gothenburg", 0.9, 0.2), ("coquimbo", 0.9, 0.1)],
)
def test_names_and_speed_limits_survive(city: str, named: float, tagged_speed: float) -> None:
    network = load_city(city)
    assert sum(map(bool, network.names)) / network.n_edges >= named
    assert 1 - network.imputed("speed").mean() >= tagged_speed


def test_street_names_are_readable() -> None:
    assert "Mannerheimintie" in load_city("helsinki").names
    assert any("Ñ" in name or "ñ" in name or "á" in name for name in load_city("coquimbo").names)


@pytest.mark.parametrize("city", COUNTS)
def test_the_attribution_names_openstreetmap_and_its_licence(city: str) -> None:
    attribution = load_city(city).attribution
    assert "OpenStreetMap contributors" in attribution
    assert "ODbL" in attribution


def test_coquimbo_has_133_zones_with_all_its_inhabitants() -> None:
    zones, network = load_zones("coquimbo"), load_city("coquimbo")
    assert len(zones.zone_id) == 133
    assert zones.population.sum() == pytest.approx(451_899, abs=1)
    for node, lon, lat in zip(zones.node, zones.lon, zones.lat, strict=True):
        assert network.nearest_node(lon, lat) == node
    with pytest.raises(NetworkError, match=r"no bundled city with zones 'monaco'.*coquimbo"):
        load_zones("monaco")


def test_an_unknown_city_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(NetworkError, match=r"no bundled city 'Helsnki'; did you mean 'helsinki'\?"):
        load_city("Helsnki")
    for name in ("", "../coquimbo", "coquimbo_zones", "atlantis", None):
        with pytest.raises(NetworkError, match="There are cologne, coquimbo"):
            load_city(name)  # type: ignore[arg-type]


def test_each_loads_in_well_under_a_second_and_all_are_small() -> None:
    for city in COUNTS:
        load_city(city)
        begin = time.perf_counter()
        load_city(city)
        assert time.perf_counter() - begin < 0.7
    folder = Path(routesim.__file__).parent / "roads" / "cities" / "data"
    assert sum(file.stat().st_size for file in folder.iterdir()) < 3_000_000


def test_cities_load_from_a_package_that_is_not_a_folder(tmp_path: Path) -> None:
    """As from a zipped package: nothing but importlib.resources finds the data there."""
    package = Path(routesim.__file__).parent
    with zipfile.ZipFile(tmp_path / "routesim.zip", "w") as archive:
        for file in sorted(package.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, Path("routesim") / file.relative_to(package))
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'routesim.zip')!r})\n"
        "from routesim.roads.cities import load_city, list_cities, load_zones\n"
        "assert '.zip' in sys.modules['routesim.roads.cities'].__file__\n"
        "print(load_city('nauru'), len(list_cities()), len(load_zones('coquimbo').node))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=tmp_path, env={}
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["<RoadNetwork", "nauru:", "1042", "nodes,", "2270", "edges>", "7", "133"]
