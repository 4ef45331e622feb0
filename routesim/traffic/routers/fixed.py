"""FixedRouter: the paths it is given."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from routesim.errors import RouteError
from routesim.registry import IN_PYTHON
from routesim.traffic.protocol import Departures, Routes
from routesim.traffic.routers.base import Unteachable


@dataclass
class FixedRouter(Unteachable):
    """The paths it is given, one for each vehicle in order of departure; each is a sequence of edge indices."""

    paths: Sequence[Sequence[int]] = field(metadata=IN_PYTHON)

    def route(self, departures: Departures) -> Routes:
        """Return the paths of these vehicles."""
        if len(departures.vehicles) and len(self.paths) <= departures.vehicles[-1]:
            raise RouteError(
                f"{len(self.paths)} paths were given, but there is a vehicle {departures.vehicles[-1]}; "
                "give one path for each vehicle in order of departure"
            )
        number: dict[tuple[int, ...], int] = {}
        which = [number.setdefault(tuple(self.paths[v]), len(number)) for v in departures.vehicles.tolist()]
        return Routes.of(list(number), which)
