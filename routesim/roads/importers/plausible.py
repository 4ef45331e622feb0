"""Whether the free-flow speeds of an import can be true; a wrong unit of time or length shows in them first.

Speeds are lengths divided by free-flow times, of the edges whose speed no rule filled in. They are implausible where
their median is outside `PLAUSIBLE_KPH`, or where the median of a class of road with at least `FEWEST` such edges is
more than `FAR_OFF` times as high or as low as the speed assumed of that class.
"""

import warnings
from collections.abc import Mapping

import numpy as np

from routesim.arrays import Floats
from routesim.errors import ImplausibleSpeedsWarning
from routesim.roads.importers.defaults import ROAD_CLASSES
from routesim.roads.network import RoadNetwork

PLAUSIBLE_KPH = (5.0, 140.0)
FAR_OFF = 5.0
FEWEST = 5


def implied_speeds(network: RoadNetwork) -> Floats:
    """Return the speed in km/h that length and free-flow time of each edge imply, NaN where they imply none."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        speeds: Floats = network.length_m / network.free_flow_s * 3.6
    return np.where(np.isfinite(speeds) & (speeds > 0) & ~network.imputed("speed"), speeds, np.nan)


def implausible(network: RoadNetwork) -> str:
    """Say in one sentence what is implausible of the speeds; "" where nothing is."""
    speeds = implied_speeds(network)
    known = ~np.isnan(speeds)
    if not known.any():
        return ""
    median = float(np.median(speeds[known]))
    if not is_plausible(median):
        return f"the median free-flow speed is {median:.3g} km/h"
    highways = np.array(network.highways, dtype=np.object_)
    for highway, assumed in ROAD_CLASSES.items():
        of_class = known & (highways == highway)
        if of_class.sum() >= FEWEST:
            kph = float(np.median(speeds[of_class]))
            if not 1.0 / FAR_OFF <= kph / assumed.speed_kph <= FAR_OFF:
                return f"the median free-flow speed of {highway} roads is {kph:.3g} km/h"
    return ""


def is_plausible(kph: float) -> bool:
    """Tell whether cars drive this fast on the typical road of a network."""
    return PLAUSIBLE_KPH[0] <= kph <= PLAUSIBLE_KPH[1]


def warn_of_speeds(network: RoadNetwork, source: str, options: Mapping[str, Mapping[str, float]], read_as: str) -> None:
    """Warn of implausible speeds.

    `options` holds, for every option that would change them, by which factor each of its values would; `read_as` says
    how the units were read.
    """
    problem = implausible(network)
    if not problem:
        return
    speeds = implied_speeds(network)
    median = float(np.nanmedian(speeds))
    better = [
        f"{option}={value!r} would make the median {median * factor:.3g} km/h"
        for option, factors in options.items()
        for value, factor in factors.items()
        if factor != 1.0 and is_plausible(median * factor)
    ]
    advice = f"; {', '.join(better)}" if better and not is_plausible(median) else ""
    warnings.warn(
        f"{source}: {problem}, with {read_as}; set {' or '.join(f'{option}=' for option in options)} "
        f"if the units are others{advice}",
        ImplausibleSpeedsWarning,
        stacklevel=4,
    )
