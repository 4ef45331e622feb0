"""Files of demand as people have them: labels or degrees, rates or trips, times by row; and twelve mistakes in them."""

import gzip
import tempfile
import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_data import SHARED

import routesim as rs
from routesim.errors import FarFromRoadsWarning, ImplausibleDemandWarning, InputError, NetworkError
from routesim.roads.places import haversine_m


def square() -> rs.RoadNetwork:
    """Four corners some 700 m apart in a two-way ring, and a dead end that nobody can leave."""
    graph = nx.MultiDiGraph(crs="EPSG:4326")
    places = {1: (4.00, 52.000), 2: (4.01, 52.000), 3: (4.01, 52.006), 4: (4.00, 52.006), 5: (4.0002, 52.0001)}
    for label, (x, y) in places.items():
        graph.add_node(label, x=x, y=y)
    for one, other in ((1, 2), (2, 3), (3, 4), (4, 1)):
        for ends in ((one, other), (other, one)):
            graph.add_edge(*ends, length=700.0, free_flow_s=50.0, capacity_vph=1000.0)
    graph.add_edge(1, 5, length=20.0, free_flow_s=2.0, capacity_vph=1000.0)
    return rs.RoadNetwork.from_networkx(graph)


@pytest.fixture
def roads() -> rs.RoadNetwork:
    return square()


def read(folder: Path, text: str, roads: rs.RoadNetwork, **options: object) -> rs.Demand:
    file = folder / "od.csv"
    file.write_text(text, encoding="utf-8")
    return rs.Demand.from_csv(file, roads, **options)  # type: ignore[arg-type]


def rates(demand: rs.Demand) -> list[tuple[object, object, float]]:
    places = demand.places
    columns = zip(demand.origins.tolist(), demand.destinations.tolist(), demand.vehicles.tolist(), strict=True)
    return [(places[origin], places[destination], vehicles) for origin, destination, vehicles in columns]


def test_rates_between_labels(tmp_path: Path, roads: rs.RoadNetwork) -> None:
    """Labels keep their type; other columns, blank rows, rows of 0 vehicles and trips within a place do no harm."""
    text = "purpose,Origin,Destination,Vehicles\nwork,1,3,30\n\nshop,2.0,4,5.5\nhome,3,3,7\nhome,4,1,0\n"
    demand = read(tmp_path, text, roads, start_s=600, end_s=1200)
    assert rates(demand) == [(1, 3, 30.0), (2, 4, 5.5)]
    assert (demand.start_s, demand.end_s) == (600.0, 1200.0)
    assert (demand.loading.rows, demand.loading.within_rows, demand.loading.within_vehicles) == (4, 1, 7.0)
    same = read(tmp_path, text.replace(",", ";"), roads)
    assert rates(same) == rates(demand)
    (tmp_path / "od.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert rates(rs.Demand.from_csv(tmp_path / "od.csv.gz", roads)) == rates(demand)
    pd.DataFrame({"origin": [1, 2], "destination": [3, 4], "vehicles": [30, 5.5]}).to_parquet(tmp_path / "od.parquet")
    assert rates(rs.Demand.from_csv(tmp_path / "od.parquet", roads)) == rates(demand)


def test_trips_are_sorted_and_may_count_for_several(tmp_path: Path, roads: rs.RoadNetwork) -> None:
    demand = read(tmp_path, "origin,destination,departure_s,vehicles\n1,3,50,1\n2,4,10,3\n", roads)
    assert rates(demand) == [(2, 4, 3.0), (1, 3, 1.0)]
    assert demand.draw(np.random.default_rng(0)).departure_s.tolist() == [10.0, 10.0, 10.0, 50.0]
    assert demand.first(1).draw(np.random.default_rng(0)).departure_s.tolist() == [10.0] * 3


def test_rows_have_times_and_profiles_of_their_own(tmp_path: Path, roads: rs.RoadNetwork) -> None:
    text = (
        "origin,destination,vehicles,start_s,end_s,profile\n1,3,400,0,400,\n1,3,300,400,1000,1;0;2\n2,4,300,0,1000,\n"
    )
    with pytest.warns(ImplausibleDemandWarning):
        demand = read(tmp_path, text, roads, profile=(1, 0))
    # The first and the third row take the profile of the argument, of which the second half is nothing.
    assert rates(demand) == [(1, 3, 400.0), (1, 3, 100.0), (1, 3, 200.0), (2, 4, 300.0)]
    assert demand.starts_s.tolist() == [0.0, 400.0, 800.0, 0.0]
    assert demand.ends_s.tolist() == [200.0, 600.0, 1000.0, 500.0]
    assert (demand.start_s, demand.end_s, demand.expected_vehicles) == (0.0, 1000.0, 1000.0)
    trips = demand.draw(np.random.default_rng(1))
    from_1 = trips.departure_s[trips.origins == demand.places.index(1)]
    counts = np.histogram(from_1, [0, 200, 400, 600, 800, 1000])[0]
    assert counts[[1, 3]].tolist() == [0, 0]
    assert counts[[0, 2, 4]] == pytest.approx([400, 100, 200], abs=4 * 20)
    assert (np.diff(trips.departure_s) >= 0).all()
    assert demand.scaled(2.0).expected_vehicles == 2000.0


def test_places_in_degrees_take_the_nearest_node_that_can_be_left(tmp_path: Path, roads: rs.RoadNetwork) -> None:
    """Node 5 is nearest to the first place, and nobody gets away from there; so node 1 stands for it."""
    head = "origin_lon,origin_lat,destination_lon,destination_lat,vehicles\n"
    demand = read(tmp_path, f"{head}4.0002,52.0001,4.0101,52.0059,10\n4.0099,52.0,4.01,52.0,3\n", roads)
    assert rates(demand) == [(1, 3, 10.0)]
    moved = [
        haversine_m(*(np.array([value]) for value in ends))[0]
        for ends in ((4.0002, 52.0001, 4, 52), (4.0101, 52.0059, 4.01, 52.006), (4.0099, 52, 4.01, 52), (0, 0, 0, 0))
    ]
    assert demand.loading.snapped == 4
    assert demand.loading.largest_snap_m == pytest.approx(max(moved))
    assert demand.loading.mean_snap_m == pytest.approx(sum(moved) / 4)
    assert demand.loading.within_vehicles == 3.0  # both of its ends are node 2


def test_one_end_may_be_a_label_and_the_other_a_place(tmp_path: Path, roads: rs.RoadNetwork) -> None:
    demand = read(tmp_path, "origin,destination_lon,destination_lat,vehicles\n4,4.01,52.0,9\n", roads)
    assert rates(demand) == [(4, 2, 9.0)]


def test_places_far_from_roads_are_warned_of(tmp_path: Path, roads: rs.RoadNetwork) -> None:
    head = "origin_lon,origin_lat,destination,vehicles\n"
    with pytest.warns(FarFromRoadsWarning, match=r"1 of 2 origins lie more than 200 m .* row 3 at \(4.005, 52.003\)"):
        read(tmp_path, f"{head}4,52,3,10\n4.005,52.003,3,10\n", roads)


def test_demand_far_above_real_places_is_warned_of(tmp_path: Path, roads: rs.RoadNetwork) -> None:
    """By hand: 5.62 lane-km (eight edges of 700 m, one of 20 m), trips of 0.7 km; 84 a lane-km are 674 an hour."""
    text = "origin,destination,vehicles\n1,2,{}\n"
    quiet = read(tmp_path, text.format(674), roads)
    density = quiet.density(roads)
    assert (density.vehicles_per_hour, density.mean_trip_km) == (674.0, 0.7)
    assert density.trips_per_road_km == pytest.approx(674 / 5.62)
    assert density.vehicle_km_per_lane_km == pytest.approx(674 * 0.7 / 5.62)
    assert density.times_ordinary == pytest.approx(1.0, abs=1e-3)
    with pytest.warns(ImplausibleDemandWarning, match=r"3\.0\d* times what two real cities have .*scaled\(0\.3"):
        read(tmp_path, text.format(3 * 674 + 10), roads)
    with pytest.warns(ImplausibleDemandWarning):
        read(tmp_path, text.format(674), roads, end_s=1000)  # in fewer seconds


ROADS = square()
HEAD = "origin,destination,vehicles\n"
DEGREES = "origin_lon,origin_lat,destination_lon,destination_lat,vehicles\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEAD}1,3,30\n7,3,30\n", "od.csv row 3, column origin: the value is '7': no node '7' in .*use a label"),
        (f"{HEAD}1,3,30\n\n,3,30\n", "od.csv row 4, column origin: the value is empty; give a node label, or remove"),
        (
            f"{HEAD}4.15E+09,3,30\n",
            "row 2, column origin: .* which a spreadsheet has rounded; store the column as text",
        ),
        (f"{HEAD}1,3,30\n1,3,-2\n", "row 3, column vehicles: the value is -2; give a number of at least 0"),
        (f"{HEAD}1,3,many\n", "row 2, column vehicles: the value is 'many', which is no finite number; give a number"),
        (f'{HEAD}1,3,"1,5"\n', "row 2, column vehicles: the value is '1,5'.*; write it with a point, 1.5"),
        (f'{HEAD}1,3,"1,500"\n', "row 2, column vehicles: .* write 1500, or 1.500 if the comma is the decimal point"),
        ("origin,dest,vehicles\n1,3,30\n", r"row 1: a column 'destination' is needed .*; there are origin, dest, veh"),
        ("origin,destination\n1,3\n", "row 1: a column 'vehicles' is needed .or departure_s, the seconds"),
        (
            "origin,destination,departure_s\n1,3,07:30\n",
            "row 2, column departure_s: the value is '07:30', a time of day; write seconds from midnight, 27000",
        ),
        (
            "origin,destination,departure_s\n1,3,-5\n",
            "row 2, column departure_s: the value is -5, outside 0 to 1e.09 s",
        ),
        (
            f"{DEGREES}52.0,4.0,4.01,52.0,1\n",
            "row 2, column origin_lon, origin_lat: .*seem to be swapped: exchange orig",
        ),
        (
            f"{DEGREES}4.0,52.0,4.01,52.1,1\n",
            "row 2, column destination_lon, destination_lat: .*1000 m outside the roads",
        ),
        (f"{DEGREES}85000,447000,4.01,52.0,1\n", "row 2, column origin_lon: the value is 85000, outside ±180 degrees"),
        (f"{HEAD}1,3,30\n1,3\n", "od.csv row 3 has 2 values, and row 1 has 3 columns; put a value that contains"),
        (f"{HEAD}5,1,30\n", "row 2, column origin, destination: .* from 5 to 1, where no path leads; remove the row"),
        (f"{HEAD}1,1,30\n", "no row asks for a trip between two different places"),
        (HEAD, "no rows below its header"),
        (f"{HEAD}1,3,30".replace("origin", "vehicles"), "row 1 names the column 'vehicles' twice"),
        ("origin,destination,vehicles,start_s\n1,3,5,0\n", "row 1 has start_s alone; give both start_s and end_s"),
        (
            "origin,destination,vehicles,start_s,end_s\n1,3,5,60,60\n",
            "row 2, column end_s: the value is 60, and start_s is 60; the end must be later",
        ),
        (
            "origin,destination,vehicles,profile\n1,3,5,1;-1\n",
            "row 2, column profile: the value is '1;-1'; list weights",
        ),
        ("origin,destination,departure_s,start_s\n1,3,5,0\n", "row 1 has both departure_s and start_s"),
        ("", "is empty"),
    ],
)
def test_mistakes_name_the_row_the_column_and_the_fix(
    text: str, message: str, tmp_path: Path, roads: rs.RoadNetwork
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, text, roads)
    assert "od.csv" in str(caught.value)
    assert str(caught.value).isprintable()


def test_files_that_are_no_text_are_refused_in_one_line(tmp_path: Path, roads: rs.RoadNetwork) -> None:
    file = tmp_path / "od.csv"
    file.write_bytes(b"origin,destination,vehicles\nK\xf6ln,3,1\n")
    with pytest.raises(InputError, match=r'line 2 is not UTF-8 text.*; save it as "CSV UTF-8"'):
        rs.Demand.from_csv(file, roads)
    with pytest.raises(InputError, match="no file"):
        rs.Demand.from_csv(tmp_path / "nothing.csv", roads)
    (tmp_path / "od.parquet").write_bytes(b"PAR1" + bytes(40))
    with pytest.raises(InputError, match="cannot read the table") as caught:
        rs.Demand.from_csv(tmp_path / "od.parquet", roads)
    assert str(caught.value).isprintable()


WHOLE = f"{HEAD}1,3,30\n2,4,5.5\n"
TIMED = "origin,destination_lon,destination_lat,departure_s\n1,4.01,52.0,5\n4,4.0,52.006,6\n"


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.sampled_from([WHOLE, TIMED]), st.data())
def test_any_change_of_a_table_is_read_or_refused_in_one_line(text: str, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(text)))
    last = data.draw(st.integers(first, min(first + 12, len(text))))
    put = data.draw(st.text("0123456789.,;-+eE:\n\r\t\"' aonif\x00é", max_size=8))
    demand: rs.Demand | None
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            demand = read(Path(folder), text[:first] + put + text[last:], ROADS)
        except (InputError, NetworkError) as problem:
            demand, said = None, str(problem)
    if demand is None:
        assert said.isprintable()
        assert len(said) < 1000
    else:
        assert demand.expected_vehicles > 0
        assert (demand.origins != demand.destinations).all()


def test_roads_without_places_take_labels_only(tmp_path: Path) -> None:
    graph = nx.DiGraph([("a", "b", {"free_flow_s": 5.0}), ("b", "a", {"free_flow_s": 5.0})])
    roads = rs.RoadNetwork.from_networkx(graph)
    assert rates(read(tmp_path, "origin,destination,vehicles\na,b,2\n", roads)) == [("a", "b", 2.0)]
    with pytest.raises(NetworkError, match="has no coordinates"):
        read(tmp_path, f"{DEGREES}4.0,52.0,4.01,52.0,1\n", roads)


def test_delft_from_a_table_in_degrees(tmp_path: Path) -> None:
    file = SHARED / "data" / "osm" / "delft.graphml"
    if not file.exists():
        pytest.skip(f"no {file}; set ROUTESIM_SHARED")
    table = f"{DEGREES}4.34,52.0,4.38,52.02,300\n4.36,52.01,4.345,51.995,200\n"
    (tmp_path / "od.csv").write_text(table)
    delft = rs.RoadNetwork.from_graphml(file)
    demand = rs.Demand.from_csv(tmp_path / "od.csv", delft)
    assert demand.expected_vehicles == 500.0
    for number, label in enumerate(demand.places):
        node = delft.node_index(label)
        assert delft.graph.indptr[node + 1] > delft.graph.indptr[node], number  # a road leaves it
    assert demand.loading.largest_snap_m < 200
