"""Units: imports whose speeds cannot be true say so, and TNTP's tolls and weights are read."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from road_files import shared

from routesim.errors import ImplausibleSpeedsWarning, NetworkError
from routesim.roads.importers.plausible import implausible, implied_speeds
from routesim.roads.importers.tntp import read_tntp_costs
from routesim.roads.network import RoadNetwork

NET = """<NUMBER OF ZONES> 2
<NUMBER OF NODES> 3
<FIRST THRU NODE> 1
<NUMBER OF LINKS> 3
{meta}<END OF METADATA>
~ init term capacity length free_flow_time b power speed toll type ;
1 2 1000 1 {time} 0.15 4 0 50 1 ;
2 3 1000 2 {time} 0.15 4 0 0 1 ;
3 1 1000 1.5 {time} 0.15 4 ;
"""


def write(folder: Path, time: float, meta: str = "") -> Path:
    file = folder / "small_net.tntp"
    file.write_text(NET.format(time=time, meta=meta))
    return file


def test_hours_read_as_minutes_are_noticed_and_the_unit_that_fits_is_named(tmp_path: Path) -> None:
    # 1.5 miles in 0.03 hours are 50 mph; read as minutes, they are 3000 mph.
    file = write(tmp_path, 0.03)
    with pytest.warns(ImplausibleSpeedsWarning) as said:
        RoadNetwork.from_tntp(file)
    text = str(said[0].message)
    assert "small_net.tntp: the median free-flow speed is 4.83e+03 km/h" in text
    assert "times in min (which is assumed, as the file states none)" in text
    assert "set time_unit= or length_unit=" in text
    assert "time_unit='h' would make the median 80.5 km/h" in text
    network = RoadNetwork.from_tntp(file, time_unit="h")  # without a warning
    assert np.median(implied_speeds(network)) == pytest.approx(1.5 * 1.609344 / 0.03)


def test_feet_read_as_miles_are_noticed(tmp_path: Path) -> None:
    file = write(tmp_path, 0.0005)  # 1.5 feet in 0.0005 minutes are 55 km/h
    with pytest.warns(ImplausibleSpeedsWarning, match="length_unit='ft' would make the median 54.9 km/h"):
        RoadNetwork.from_tntp(file)
    RoadNetwork.from_tntp(file, length_unit="ft")
    stated = write(tmp_path, 0.0005, "<ORIGINAL HEADER>~ Tail Head Length (ft) Free Flow Time (min) ;\n")
    RoadNetwork.from_tntp(stated)


def test_times_of_zero_say_nothing_of_speeds(tmp_path: Path) -> None:
    network = RoadNetwork.from_tntp(write(tmp_path, 0.0))
    assert np.isnan(implied_speeds(network)).all()


def test_real_networks_are_plausible_and_in_another_unit_they_are_not() -> None:
    sioux = shared("tntp/SiouxFalls/SiouxFalls_net.tntp")
    anaheim = shared("tntp/Anaheim/Anaheim_net.tntp")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.median(implied_speeds(RoadNetwork.from_tntp(sioux))) == pytest.approx(96.6, abs=0.1)  # 60 mph
        RoadNetwork.from_tntp(anaheim)
    for file in (sioux, anaheim):
        for unit in ("s", "h"):
            with pytest.warns(ImplausibleSpeedsWarning, match="time_unit='min' would make the median"):
                RoadNetwork.from_tntp(file, time_unit=unit)


def test_one_class_of_roads_may_be_far_off(tmp_path: Path) -> None:
    (tmp_path / "node.csv").write_text("node_id,x_coord,y_coord\n1,7.0,50.0\n2,7.01,50.0\n")
    rows = ["1,2,0.7158,50,residential"] * 9 + ["1,2,0.7158,5,motorway"] * 5
    header = "from_node_id,to_node_id,length,free_speed,facility_type\n"
    (tmp_path / "link.csv").write_text(header + "\n".join(rows))
    with pytest.warns(ImplausibleSpeedsWarning, match="speed of motorway roads is 5 km/h, with speeds in km/h"):
        network = RoadNetwork.from_gmns(tmp_path)
    assert implausible(network)
    (tmp_path / "link.csv").write_text(header + "\n".join(rows).replace(",5,", ",100,"))
    assert not implausible(RoadNetwork.from_gmns(tmp_path))


def test_speeds_of_gmns_in_metres_a_second(tmp_path: Path) -> None:
    (tmp_path / "node.csv").write_text("node_id,x_coord,y_coord\n1,7.0,50.0\n2,7.01,50.0\n")
    (tmp_path / "link.csv").write_text("from_node_id,to_node_id,length,free_speed\n1,2,0.7158,4\n")
    with pytest.warns(ImplausibleSpeedsWarning, match="speed_unit='m/s' would make the median 14.4 km/h"):
        RoadNetwork.from_gmns(tmp_path)
    RoadNetwork.from_gmns(tmp_path, speed_unit="m/s")


def test_tolls_and_weights_become_seconds(tmp_path: Path) -> None:
    # Two hundredths of a minute a cent, and four hundredths a mile.
    file = write(tmp_path, 2.0, "<TOLL FACTOR> 0.02\n<DISTANCE FACTOR> 0.04\n")
    costs = read_tntp_costs(file)
    assert costs.toll.tolist() == [50.0, 0.0, 0.0]
    assert costs.length.tolist() == [1.0, 2.0, 1.5]
    assert (costs.toll_weight_s, costs.length_weight_s) == pytest.approx((1.2, 2.4))
    assert costs.edge_cost_s.tolist() == pytest.approx([60 + 2.4, 4.8, 3.6])
    network = RoadNetwork.from_tntp(file)
    assert len(costs.edge_cost_s) == network.n_edges
    assert network.left_out == {"costs beside time of links": 3}
    given = read_tntp_costs(file, toll_weight=0.1, length_weight=0.0, time_unit="s")
    assert given.edge_cost_s.tolist() == pytest.approx([5.0, 0.0, 0.0])


def test_without_weights_tolls_cost_nothing_and_are_not_looked_at(tmp_path: Path) -> None:
    file = write(tmp_path, 2.0)
    costs = read_tntp_costs(file)
    assert costs.toll[0] == 50
    assert not costs.edge_cost_s.any()
    assert RoadNetwork.from_tntp(file).left_out == {}
    file.write_text(file.read_text().replace("0 50 1 ;", "0 free 1 ;"))
    RoadNetwork.from_tntp(file)
    with pytest.raises(NetworkError, match="line 7: toll must be a number, at least 0, got 'free'"):
        read_tntp_costs(file)


@pytest.mark.parametrize("meta", ["<TOLL FACTOR> dear\n", "<DISTANCE FACTOR> -1\n", "<TOLL FACTOR> nan\n"])
def test_weights_are_numbers(meta: str, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="FACTOR> must be a number, at least 0, got"):
        RoadNetwork.from_tntp(write(tmp_path, 2.0, meta))
    with pytest.raises(NetworkError, match="toll_weight must be a number, at least 0, got -1"):
        read_tntp_costs(write(tmp_path, 2.0), toll_weight=-1)


def test_real_files_have_the_columns_of_tolls() -> None:
    costs = read_tntp_costs(shared("tntp/Anaheim/Anaheim_net.tntp"), length_weight=1.0)
    assert len(costs.toll) == 914
    assert not costs.toll.any()
    assert costs.edge_cost_s[0] == 5280 * 60
