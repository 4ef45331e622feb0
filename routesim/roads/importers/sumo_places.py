"""Where the points of a SUMO net lie on Earth, by its <location>."""

import re
from collections.abc import Mapping

import numpy as np

from routesim.arrays import Floats
from routesim.errors import NetworkError
from routesim.roads.importers.safexml import Halt
from routesim.roads.places import GEOGRAPHIC

_NO_PROJECTION = {"", "!", "-"}  # none, and SUMO's simple one, which SUMO itself does not take back
# What a projection may be made of. All else, such as the grids and pipelines of PROJ, can open files and is refused.
_PARTS = frozenset({
    "proj", "zone", "south", "ellps", "datum", "units", "no_defs", "lat_0", "lat_1", "lat_2", "lat_ts", "lon_0",
    "lon_1", "lon_2", "lonc", "alpha", "gamma", "k", "k_0", "x_0", "y_0", "a", "b", "f", "rf", "R", "towgs84", "pm",
    "to_meter", "wktext", "type", "over", "no_uoff", "no_off", "h", "vunits",
})  # fmt: skip
_PART = re.compile(r"\+([A-Za-z_0-9]+)(?:=([A-Za-z_0-9.,+-]+))?")


class Projection:
    """Turns a net's coordinates into longitudes and latitudes; without a projection they stay as they are."""

    def __init__(self) -> None:
        self.text = ""
        self.offset = (0.0, 0.0)

    @property
    def crs(self) -> str:
        """The name of the coordinates that `places` returns."""
        return GEOGRAPHIC if self.text else "planar"

    def read(self, attributes: Mapping[str, str]) -> None:
        """Take what <location> says."""
        text = attributes.get("projParameter", "").strip()
        try:
            x, y = (float(value) for value in attributes.get("netOffset", "0,0").split(","))
        except ValueError:
            x = y = float("nan")
        if not (abs(x) <= 1e12 and abs(y) <= 1e12):
            raise Halt(f"<location> needs two numbers 'x,y' as netOffset, got {attributes['netOffset']!r:.40}")
        self.offset = (x, y)
        if text in _NO_PROJECTION:
            self.text = ""
            return
        for part in text.split():
            found = _PART.fullmatch(part)
            if found is None or not (found[1] in _PARTS or part in {"+nadgrids=@null", "+geoidgrids=@null"}):
                raise Halt(
                    f"projParameter has {part!r:.40}, which is no plain PROJ parameter; write the net with --proj"
                )
        self.text = text

    def places(self, xy: Floats) -> Floats:
        """Return points of the net in degrees, or without the net's offset where there is no projection."""
        plain = xy - self.offset
        if not self.text or len(xy) == 0:
            return plain
        import pyproj  # late: it takes a while, and nets without a projection do without
        from pyproj.exceptions import ProjError

        try:
            lon, lat = pyproj.Proj(self.text)(plain[:, 0], plain[:, 1], inverse=True)
        except (ProjError, ValueError) as error:
            raise NetworkError(f"projParameter {self.text!r:.120} is no projection: {error}") from None
        degrees = np.column_stack((lon, lat)).astype(np.float64)
        good = (np.abs(degrees) <= (180.0, 90.0)).all(axis=1)
        if not good.all():
            bad = xy[int(np.argmin(good))]
            raise NetworkError(
                f"the point {bad[0]:g}, {bad[1]:g} lies nowhere on Earth by netOffset and projParameter "
                f"{self.text!r:.120}; one of them is wrong"
            )
        return degrees
