"""GMNS folders with zones: centroids and connectors, their demand, and volume-delay functions."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from shared_data import SHARED

import routesim as rs
from routesim.errors import InputError

NODES = """node_id,zone_id,node_type,x_coord,y_coord
1,,,7.000,50
2,,,7.010,50
3,,,7.020,50
11,10,centroid,7.001,50.002
12,20,centroid,7.011,50.002
13,30,centroid,7.021,50.002
14,40,centroid,7.030,50.002
15,40,,7.019,50.001
16,40,,7.019,50.0015
"""
# The way over the centroid of zone 20 would be the quicker one from 1 to 3.
HEAD = "link_id,from_node_id,to_node_id,directed,length,lanes,free_speed,facility_type"
LINKS = f"""{HEAD},vdf_alpha,vdf_beta,VDF_fftt1,VDF_cap1
1,1,2,0,716,1,50,secondary,0.6,2,1.5,900
2,2,3,0,716,1,50,secondary,,,,
3,11,1,0,233,1,90,connector,,,,
4,12,1,0,700,1,300,connector,,,,
5,12,3,0,700,1,300,connector,,,,
6,13,3,0,233,1,90,Connector,,,,
7,15,3,0,130,1,50,connector,,,,
8,16,3,0,180,1,50,connector,,,,
"""
DEMAND = """o_zone_id,d_zone_id,volume
10,30,60
30,10,
10,10,5
20,40,8
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("node", NODES), ("link", LINKS), ("demand", DEMAND)):
        (tmp_path / f"{name}.csv").write_text(text)
    (tmp_path / "config.csv").write_text("long_length,speed\nm,km/h\n")
    return tmp_path


def test_centroids_and_what_only_connectors_touch_carry_no_through_traffic(folder: Path) -> None:
    network = rs.RoadNetwork.from_gmns(folder)
    closed = [label for label, mark in zip(network.labels, network.no_through, strict=True) if mark]
    assert closed == [11, 12, 13, 14, 15, 16]
    path = rs.ActionSet.between(network, 1, 3, 1).paths[0]
    assert network.heads[list(path)].tolist() == [network.node_index(2), network.node_index(3)]


def test_the_zones_trips_go_between_their_centroids(folder: Path) -> None:
    """Zone 40's centroid has no road, so its two places share its trips; trips within zone 10 are counted."""
    network = rs.RoadNetwork.from_gmns(folder)
    demand = rs.Demand.from_gmns(folder, network, end_s=1800)
    table = demand.per_hour()
    found = {
        (start, goal): vehicles / 2
        for start, goal, vehicles in zip(table["origin"], table["destination"], table["vehicles"], strict=True)
    }
    assert found == {(11, 13): 60.0, (12, 15): 4.0, (12, 16): 4.0}
    assert (demand.loading.rows, demand.loading.within_rows, demand.loading.within_vehicles) == (4, 1, 5.0)
    assert rs.Demand.from_gmns(folder).expected_vehicles == 68.0


def test_volume_delay_functions_are_those_of_the_file(folder: Path) -> None:
    network = rs.RoadNetwork.from_gmns(folder)
    assert network.bpr_alpha[:4].tolist() == [0.6, 0.6, 0.15, 0.15]
    assert network.bpr_beta[:4].tolist() == [2.0, 2.0, 4.0, 4.0]
    assert network.capacity_vph[:2].tolist() == [900.0, 900.0]  # of all lanes
    assert network.free_flow_s[0] == 90.0  # minutes in the file
    assert network.free_flow_s[2] == pytest.approx(716 / 50 * 3.6)
    assert network.imputed("bpr")[:4].tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("20,40,8", "20,50,8", "row 5, column d_zone_id: the value is '50', and no node has this zone; give some node"),
        ("20,40,8", "20,40,-8", "row 5, column volume: the value is -8; give a number of at least 0"),
        ("20,40,8", "20,40,lots", "row 5, column volume: the value is 'lots', which is no finite number"),
        ("volume", "trips", "row 1: a column 'volume' is needed .vehicles between two zones."),
        ("10,30,60", "10,30,0", None),
    ],
)
def test_mistakes_in_the_demand_are_named(folder: Path, old: str, new: str, message: str | None) -> None:
    (folder / "demand.csv").write_text(DEMAND.replace(old, new))
    if message is None:
        assert rs.Demand.from_gmns(folder).expected_vehicles == 8.0
        return
    with pytest.raises(InputError, match=f"demand.csv {message}"):
        rs.Demand.from_gmns(folder)


def test_a_zone_that_no_road_joins_is_named(folder: Path) -> None:
    (folder / "node.csv").write_text(NODES.replace("15,40", "15,").replace("16,40", "16,"))
    with pytest.raises(InputError, match="column d_zone_id: the value is '40': no road leads to any of its 1 nodes"):
        rs.Demand.from_gmns(folder)


def tempe(folder: Path) -> Path:
    """A copy of Tempe's folder."""
    source = SHARED / "data" / "gmns" / "tempe_asu"
    if not source.is_dir():
        pytest.skip(f"no {source}; set ROUTESIM_SHARED")
    for name in ("node.csv", "link.csv", "demand.csv"):
        shutil.copy(source / name, folder / name)
    return folder


def test_tempe_sends_its_demand_through_no_zone(tmp_path: Path) -> None:
    import pandas as pd

    folder = tempe(tmp_path)
    network = rs.RoadNetwork.from_gmns(folder)
    assert int(network.no_through.sum()) == 558  # 45 centroids, which have no links, and 513 points of interest
    file = pd.read_csv(folder / "demand.csv")
    demand = rs.Demand.from_gmns(folder, network)
    assert demand.expected_vehicles == file.volume.sum() == 1.0
    # The file asks for one trip. More of them, between some zones, by the accessibility that it states.
    some = [2, 4, 5, 8, 9, 20]
    file["volume"] = (file.accessibility * 40).round(1).where(file.o_zone_id.isin(some) & file.d_zone_id.isin(some))
    file.loc[file.o_zone_id == file.d_zone_id, "volume"] = 3.0
    file.to_csv(folder / "demand.csv", index=False)
    demand = rs.Demand.from_gmns(folder, network)
    stay = float(file.volume[file.o_zone_id == file.d_zone_id].sum())
    assert demand.loading.within_vehicles == pytest.approx(stay)
    assert demand.expected_vehicles == pytest.approx(float(file.volume.sum()) - stay)
    assigned = rs.assign(network, demand, relative_gap=1e-2)
    table = demand.per_hour()
    ends = np.array([network.node_index(label) for label in table["destination"]])
    ending = np.bincount(ends, table["vehicles"], network.n_nodes)
    into = np.bincount(network.heads, assigned.flows, network.n_nodes)
    assert into[network.no_through] == pytest.approx(ending[network.no_through], abs=1e-6)
    traffic = rs.TrafficSimulator(network, demand).run(rs.PlannedRouter(relative_gap=1e-2), seed=1)
    assert traffic.arrived.all()
    arriving = np.bincount(demand.nodes(network)[traffic.destinations], minlength=network.n_nodes)
    entered = np.bincount(network.heads[traffic.loads[:, 1]], traffic.loads[:, 2], network.n_nodes)
    assert entered[network.no_through].tolist() == arriving[network.no_through].tolist()
    # The volumes of the simulation are those that were assigned, but for Poisson departures.
    volumes = traffic.links(math.inf).set_index("edge").volume.reindex(range(network.n_edges), fill_value=0)
    assert np.corrcoef(volumes, assigned.flows)[0, 1] > 0.98
    assert volumes.sum() == traffic.n_events
