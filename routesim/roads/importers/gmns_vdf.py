"""The volume-delay function of a GMNS link: its BPR parameters, capacity and free-flow time, as tools write them."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from routesim.roads.importers.gmns_tables import number


class VolumeDelay(NamedTuple):
    """What the columns `vdf_…` of a link say, NaN where they say nothing."""

    free_flow_s: float
    capacity_vph: float
    alpha: float
    beta: float


def volume_delay(row: Mapping[str, str], where: str) -> VolumeDelay:
    """Read `vdf_alpha`, `vdf_beta`, `vdf_fftt` (minutes) and `vdf_cap` (all lanes), or those of the first period.

    DTALite and Path4GMNS number them by period, `VDF_alpha1` and so on; the first one's are taken. A capacity is
    that of an hour.
    """

    def first(name: str) -> float:
        value = number(row, name, where)
        return number(row, f"{name}1", where) if math.isnan(value) else value

    minutes, capacity = first("vdf_fftt"), first("vdf_cap")
    return VolumeDelay(60.0 * minutes or math.nan, capacity or math.nan, first("vdf_alpha"), first("vdf_beta"))
