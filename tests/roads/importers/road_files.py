"""Small road files for the tests, and the way to the larger ones outside the project."""

import os
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from routesim.roads.network import RoadNetwork

_ROOT = Path(os.environ.get("ROUTESIM_SHARED", Path(__file__).parents[3] / ".." / "shared"))
SHARED = _ROOT / "data" if (_ROOT / "data").is_dir() else _ROOT


def shared(path: str) -> Path:
    """Return a file of the shared data, or skip the test."""
    file = SHARED / path
    if not file.exists():
        pytest.skip(f"needs {file}")
    return file


def tricky_graph() -> nx.MultiDiGraph:
    """A graph with every kind of label, parallel edges, a self-loop, and gaps."""
    from shapely import LineString

    graph = nx.MultiDiGraph(crs="EPSG:4326", name="Überall & <nowhere>", attribution="Täst ©")
    graph.add_node("ä", x=1.0, y=2.0)
    graph.add_node(5, x=1.001, y=2.0)
    graph.add_node("5", x=1.123456789012345, y=-2.0)
    graph.add_node((1, "q", (2.5, None)))
    line = LineString([(1, 2), (1.0005, 2.1), (1.001, 2)])
    graph.add_edge("ä", 5, 3, length=100, speed_kph=36, name="\"Straße\" 'x' & <y>", highway="primary", geometry=line)
    graph.add_edge("ä", 5, 0, length=100.123, maxspeed="30 mph", lanes="3", oneway=False, name="[a, b]")
    graph.add_edge("ä", 5, 7, length=0.1 + 0.2, maxspeed="walk", name="東京\r\n\ttwo lines")
    graph.add_edge(5, 5, 0, free_flow_s=0.1 + 0.2)
    graph.add_edge("5", "ä", 0, free_flow_s=3, capacity=7, alpha=1, beta=2)
    graph.add_edge("5", (1, "q", (2.5, None)), 0, free_flow_s=0)
    graph.nodes["5"]["no_through"] = True
    graph.nodes["ä"]["highway"] = "traffic_signals"
    return graph


def tricky_network() -> RoadNetwork:
    """The graph as a network, in which some turns are banned, and a way onto the self-loop."""
    network = RoadNetwork.from_networkx(tricky_graph())
    return replace(network, banned_turns=np.array([[4, 1], [3, 3]]), banned_ways=((4, 0, 3),))


OSM_GRID_SIDE = 6
OSM_GRID_SIGNALS = 203  # the crossing with signals


# Turn restrictions of the grid: its second two-way column at its second row, its second one-way column up at the same
# row (only straight on), from the first column by the whole last row onto the last column; then two that do not count.
_GRID_RESTRICTIONS = (
    ({"restriction": "no_u_turn"}, (("way", 103, "from"), ("node", 205, "via"), ("way", 103, "to"))),
    ({"restriction": "only_straight_on"}, (("way", 104, "from"), ("node", 207, "via"), ("way", 104, "to"))),
    ({"restriction": "no_right_turn"}, (("way", 101, "from"), ("way", 6, "via"), ("way", 106, "to"))),
    (
        {"restriction:conditional": "no_left_turn @ (07:00-09:00)"},
        (("way", 104, "from"), ("node", 207, "via"), ("way", 2, "to")),
    ),
    (
        {"restriction": "no_left_turn", "except": "motorcar"},
        (("way", 104, "from"), ("node", 407, "via"), ("way", 3, "to")),
    ),
)
OSM_GRID_BANS = {
    (5, 205, 5), (405, 205, 405), (7, 207, 205), (7, 207, 209),
    (801, 1001, 1003, 1005, 1007, 1009, 811),
}  # fmt: skip


def bans_by_label(network: RoadNetwork) -> set[tuple[object, ...]]:
    """Return the banned turns and ways as the labels of the nodes that are passed."""
    label = network.labels
    return {(label[network.tails[ban[0]]], *(label[network.heads[edge]] for edge in ban)) for ban in network.bans}


def osm_grid(*, bans: bool = False) -> str:
    """OSM XML, a grid: rows two-way, columns one-way up, down or two-way; every other point no junction.

    One crossing has signals, and so has a point halfway to the next. With `bans` it has turn restrictions.
    """
    n = OSM_GRID_SIDE * 2 - 1
    lights = {OSM_GRID_SIGNALS, OSM_GRID_SIGNALS + 1}
    rows = ["<?xml version='1.0' encoding='UTF-8'?>", '<osm version="0.6">']
    for r in range(n):
        rows += [
            f'<node id="{r * 100 + c + 1}" lat="{50 + r / 1000:.7f}" lon="{7 + c / 1000:.7f}"'
            + ('><tag k="highway" v="traffic_signals"/></node>' if r * 100 + c + 1 in lights else "/>")
            for c in range(n)
            if r % 2 == 0 or c % 2 == 0
        ]
    for i, k in enumerate(range(0, n, 2)):
        across = "".join(f'<nd ref="{k * 100 + c + 1}"/>' for c in range(n))
        along = "".join(f'<nd ref="{r * 100 + k + 1}"/>' for r in range(n))
        rows.append(
            f'<way id="{i + 1}">{across}<tag k="highway" v="residential"/><tag k="name" v="Straße {i}"/>'
            '<tag k="maxspeed" v="30"/></way>'
        )
        oneway = ("yes", "-1", "no")[i % 3]
        rows.append(
            f'<way id="{i + 101}">{along}<tag k="highway" v="primary"/><tag k="oneway" v="{oneway}"/>'
            '<tag k="lanes" v="3"/></way>'
        )
    for number, (tags, members) in enumerate(_GRID_RESTRICTIONS if bans else (), start=1):
        inside = "".join(f'<member type="{kind}" ref="{ref}" role="{role}"/>' for kind, ref, role in members)
        said = "".join(f'<tag k="{key}" v="{value}"/>' for key, value in {"type": "restriction", **tags}.items())
        rows.append(f'<relation id="{number}">{inside}{said}</relation>')
    rows.append("</osm>")
    return "\n".join(rows)


TNTP_NET = """<NUMBER OF ZONES> 1
<NUMBER OF NODES> 3
<FIRST THRU NODE> 2
<NUMBER OF LINKS> 4
<END OF METADATA>
~ init_node term_node capacity length free_flow_time b power speed toll link_type ;
1 2 1000 1 2 0.15 4 0 0 1 ;
2 3 1500 2.5 1.5 0.2 5 0 0 1 ;
3 2 1500 2.5 1.5 0.2 5 0 0 1 ;
2 1 1000 1 2 0.15 4 0 0 1 ;
"""

GMNS_NODES = "node_id,x_coord,y_coord\n1,7.000,50.0\n2,7.001,50.0\n3,7.002,50.0\n"
GMNS_LINKS = (
    "link_id,from_node_id,to_node_id,directed,length,lanes,free_speed,capacity,facility_type,name,allowed_uses\n"
    '1,1,2,false,71.5,1,50,1800,primary,Main Street,"auto,bike"\n'
    "2,2,3,true,71.5,2,,,residential,,auto\n"
    "3,3,2,true,71.5,,30,900,residential,,\n"
    "4,1,3,true,143,1,5,,footway,,walk\n"
)
