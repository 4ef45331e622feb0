"""The kinds of physics that a simulator can have; a new one is a file in `engines` and a line here."""

from routesim.errors import InputError
from routesim.traffic.engines.base import Physics
from routesim.traffic.engines.queue import PlainQueue as PlainQueue
from routesim.traffic.engines.queue import Queue as Queue
from routesim.traffic.engines.sumo import Sumo as Sumo
from routesim.traffic.engines.sumo import SumoMicro as SumoMicro
from routesim.traffic.engines.window import Window as Window

KINDS = {kind.name: kind for kind in (Window, Queue, PlainQueue, Sumo, SumoMicro)}


def as_physics(given: "str | Physics") -> Physics:
    """Return the physics of this name with its default parameters, or the one that is given."""
    if isinstance(given, str) and given in KINDS:
        return KINDS[given]()
    if isinstance(given, str) or not isinstance(given, Physics):
        raise InputError(
            f"physics is one of {', '.join(map(repr, KINDS))} or rs.physics.Window(...) and the like, got {given!r}"
        )
    return given
