"""A SUMO net by hand, whose numbers the tests compute, and what they need to know of an installed SUMO."""

from importlib.util import find_spec

import pytest

from routesim.errors import InputError
from routesim.roads.importers.sumo_export import find_netconvert

# Second 0 of the cycle of 90 s is second 10: F and A make the ways straight on green from 80 to 30, so from 0 to 40.
CROSSROADS = """<?xml version="1.0" encoding="UTF-8"?>
<!-- made by hand -->
<net version="1.20" junctionCornerDetail="5">
    <location netOffset="100.00,-200.00" convBoundary="0,0,200,100" origBoundary="0,0,1,1" projParameter="!"/>
    <type id="highway.primary" priority="9"/>
    <edge id=":C_0" function="internal">
        <lane id=":C_0_0" index="0" speed="9.00" length="5.00" shape="95,0 105,0"/>
    </edge>
    <edge id=":C_w0" function="walkingarea">
        <lane id=":C_w0_0" index="0" allow="pedestrian" speed="1.00" length="5.00" shape="95,0 105,0"/>
    </edge>
    <edge id="in" from="W" to="C" priority="1" name="High Street" type="highway.primary|railway.tram"
          shape="0.00,0.00 50.00,10.00 95.00,0.00">
        <lane id="in_0" index="0" allow="pedestrian bicycle" speed="2.00" length="99.00" shape="0,0 95,0"/>
        <lane id="in_1" index="1" speed="12.50" length="95.50" shape="0,0 95,0"/>
        <lane id="in_2" index="2" disallow="pedestrian tram" speed="15.00" length="95.50" shape="0,0 95,0">
            <param key="capacity_vph" value="not of the edge"/>
        </lane>
        <param key="origin" value="hand"/>
    </edge>
    <edge id="out" from="C" to="E" priority="1" type="a street">
        <lane id="out_0" index="0" allow="all" speed="10.00" length="100.00" shape="100,0 200,0"/>
        <lane id="out_1" index="1" speed="10.00" length="100.00" shape="100,0 200,0"/>
    </edge>
    <edge id="left" from="C" to="N" priority="1">
        <lane id="left_0" index="0" speed="10.00" length="100.00" shape="100,0 100,100"/>
    </edge>
    <edge id="side" from="N" to="C" priority="1">
        <lane id="side_0" index="0" speed="10.00" length="100.00" shape="100,100 100,0"/>
    </edge>
    <edge id="tram" from="W" to="E" priority="1" type="railway.tram">
        <lane id="tram_0" index="0" allow="tram" speed="10.00" length="200.00" shape="0,0 200,0"/>
    </edge>
    <tlLogic id="T" type="static" programID="old" offset="0">
        <phase duration="40" state="GGGG"/>
    </tlLogic>
    <tlLogic id="T" type="static" programID="0" offset="10">
        <phase duration="30" state="GGrr"/>
        <phase duration="5" state="yyrr"/>
        <phase duration="10" state="rrGr"/>
        <phase duration="5" state="rryr"/>
        <phase duration="30" state="srgG"/>
        <phase duration="10" state="Grrr"/>
    </tlLogic>
    <junction id="W" type="dead_end" x="0.00" y="0.00" incLanes="" intLanes="" shape="0,0 0,1"/>
    <junction id="C" type="traffic_light" x="100.00" y="0.00" incLanes="in_1 in_2" intLanes="" shape="95,0 105,0">
        <request index="0" response="0000" foes="0000" cont="0"/>
    </junction>
    <junction id="E" type="priority" x="200.00" y="0.00" incLanes="" intLanes="" shape="0,0 0,1"/>
    <junction id="N" type="priority" x="100.00" y="100.00" incLanes="" intLanes="" shape="0,0 0,1"/>
    <junction id="unused" type="priority" x="9.00" y="9.00" incLanes="" intLanes="" shape="0,0 0,1"/>
    <junction id=":C_1_0" type="internal" x="9.00" y="9.00" incLanes="" intLanes=""/>
    <connection from="in" to="out" fromLane="1" toLane="0" via=":C_0_0" tl="T" linkIndex="0" dir="s" state="o"/>
    <connection from="in" to="out" fromLane="2" toLane="1" via=":C_0_0" tl="T" linkIndex="1" dir="s" state="o"/>
    <connection from="in" to="left" fromLane="2" toLane="0" via=":C_0_0" tl="T" linkIndex="2" dir="l" state="o"/>
    <connection from="side" to="out" fromLane="0" toLane="0" via=":C_0_0" tl="T" linkIndex="3" dir="l" state="o"/>
    <connection from="side" to="left" fromLane="0" toLane="0" dir="t" state="o" allow="bus"/>
    <connection from=":C_0" to="out" fromLane="0" toLane="0" dir="s" state="M"/>
</net>
"""
UTM = "+proj=utm +zone=32 +ellps=WGS84 +datum=WGS84 +units=m +no_defs"


def has_netconvert() -> bool:
    """Tell whether a SUMO is installed."""
    try:
        find_netconvert()
    except InputError:
        return False
    return True


needs_sumo = pytest.mark.skipif(not has_netconvert(), reason="needs SUMO: pip install 'routesim[sumo]'")
needs_libsumo = pytest.mark.skipif(
    not has_netconvert() or find_spec("libsumo") is None, reason="needs SUMO: pip install 'routesim[sumo]'"
)
