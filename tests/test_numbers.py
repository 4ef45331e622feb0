"""Numbers that would make results without meaning are refused, with the limit named, wherever they come from."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import routesim as rs
from routesim.errors import InputError, NetworkError, RoutesimError
from routesim.roads.network import RoadNetwork
from routesim.scenario.files import read_scenario

ROAD = "~\tinit_node\tterm_node\tcapacity\tlength\tfree_flow_time\tb\tpower\tspeed\ttoll\tlink_type\t;\n"
TNTP = (
    "<NUMBER OF ZONES> 2\n<NUMBER OF NODES> 2\n<FIRST THRU NODE> 1\n<NUMBER OF LINKS> 1\n<END OF METADATA>\n"
    + ROAD
    + "\t1\t2\t{capacity}\t1\t1\t{alpha}\t{beta}\t50\t0\t1\t;\n"
)
BAD = [("capacity", "1e-300", "0.001"), ("beta", "300", "20"), ("alpha", "1e300", r"1e\+12")]


def road(**columns: float) -> RoadNetwork:
    """One road of 10 s."""
    given: dict[str, Any] = {name: [value] for name, value in columns.items()}
    return RoadNetwork.from_edges(["s"], ["t"], **{"free_flow_s": [10.0], **given})
