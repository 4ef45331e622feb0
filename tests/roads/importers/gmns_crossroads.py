"""A crossroads as GMNS tables of two versions: a main street with a protected left turn, and a side street.

The second of the cycle at which green begins, and its length, before the offset of 7 s:

- phase 2, eastbound, straight on and right: 0, 30 s;
- phase 6, westbound, straight on and right, beside it in ring 2: 0, 40 s, and 5 s more until the barrier;
- phase 1, westbound, left, after phase 2: 35, 10 s;
- phase 4, the side street, behind the barrier: 50, 25 s, and 5 s of clearance.

Then 10 s are left of a cycle of 90 s.
"""

from pathlib import Path

CYCLE_S, OFFSET_S = 90.0, 7.0
ARMS = {1: (-1, 0), 2: (1, 0), 3: (0, -1), 4: (0, 1)}  # west, east, south and north of node 5
ARM = 500 / 111_194.93  # the length of an arm in degrees
# The movements from arm to arm, with their phase.
PHASES = {(1, 2): 2, (1, 3): 2, (2, 1): 6, (2, 4): 6, (2, 3): 1, (3, 4): 4, (3, 1): 4, (3, 2): 4, (4, 3): 4, (4, 1): 4}
GREENS = {2: (7.0, 30.0), 6: (7.0, 45.0), 1: (42.0, 10.0), 4: (57.0, 25.0)}

TABLES = {
    "node": "node_id,x_coord,y_coord,ctrl_type\n"
    + "".join(f"{arm},{ARM * x:.7f},{ARM * y:.7f},none\n" for arm, (x, y) in ARMS.items())
    + "5,0,0,signal\n",
    # A link has its two directions in one row but for that of the north, which has two.
    "link": "link_id,from_node_id,to_node_id,directed,length,lanes,free_speed,facility_type,allowed_uses\n"
    "10,1,5,false,500,2,50,primary,auto\n"
    "20,2,5,0,500,2,50,primary,\n"
    "30,5,3,false,500,1,50,secondary,\n"
    "40,4,5,true,500,1,50,secondary,\n"
    "41,5,4,true,500,1,50,secondary,\n"
    "90,1,5,true,500,1,15,cycleway,bike\n",
    "movement": "mvmt_id,node_id,ib_link_id,ob_link_id,type,ctrl_type\n"
    + "".join(
        f"{a}{b},5,{a}0,{41 if b == 4 else 10 * b},thru,{'signal' if (a, b) != (2, 4) else ''}\n" for a, b in PHASES
    )
    + "99,5,90,20,thru,signal\n",  # of cyclists
    "signal_controller": "controller_id\nC\n",
    "signal_timing_plan": "timing_plan_id,controller_id,cycle_length,offset\nactuated,C,,\nP,C,90,7\n",
    "signal_timing_phase": "timing_phase_id,timing_plan_id,signal_phase_num,min_green,max_green,extension,clearance,"
    "ring,barrier,position\n"
    "102,P,2,10,30,3,5,1,1,1\n"
    "101,P,1,5,10,,5,1,1,2\n"
    "106,P,6,40,,,5,2,1,1\n"
    "104,P,4,22,,3,5,1,2,1\n"
    "201,actuated,2,10,30,3,5,1,1,1\n",
    "signal_phase_mvmt": "signal_phase_mvmt_id,controller_id,signal_phase_num,mvmt_id,link_id,protection\n"
    + "".join(f"{i},C,{phase},{a}{b},,protected\n" for i, ((a, b), phase) in enumerate(PHASES.items()))
    + "77,C,2,99,,protected\n78,C,4,,30,protected\n",
}


def newer_tables() -> dict[str, str]:
    """The same in the tables of newer versions: phases by their id, and the offset beside the plan."""
    rows = [f"{i},10{phase},{a}{b},,permitted" for i, ((a, b), phase) in enumerate(PHASES.items())]
    header = "signal_phase_mvmt_id,timing_phase_id,mvmt_id,link_id,protection"
    return TABLES | {
        "signal_timing_plan": "timing_plan_id,controller_id,cycle_length\nactuated,C,\nP,C,90\n",
        "signal_coordination": "coordination_id,timing_plan_id,controller_id,coord_phase,coord_ref_to,offset\n"
        "1,P,C,2,begin_of_yellow,37\n",
        "signal_phase_mvmt": "\n".join([header, *rows, "88,201,12,,protected", "89,104,12,,rtor", ""]),
    }


def write_tables(folder: Path, tables: dict[str, str]) -> Path:
    """Write the tables as files of a folder."""
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    return folder
