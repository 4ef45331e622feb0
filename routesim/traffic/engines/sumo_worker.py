"""SUMO in a process of its own: libsumo is there once in a process, and what it crashes is not the run.

The parent starts this file as a program. It reads commands from its standard input and answers on its standard output,
each a line of JSON that says which arrays follow, and their bytes:

    start   the options of SUMO
    go      vehicles with routes, new routes of vehicles on their way, roads that change; then drive until a second

The answer to `go` has what happened since, as rows of (second, vehicle, place on its route); a place of -1 is the
arrival. Rows with vehicle -1 only tell the time, and (second, -2 - n, edge) says that n vehicles halt on an edge.
When its input ends, so does the program, and it removes the folder of its files.
"""

import json
import os
import shutil
import signal
import sys
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

Arrays: TypeAlias = dict[str, NDArray[Any]]
KIND = "car"
_CLOCK, _HALTING = -1, -2


def send(stream: BinaryIO, words: dict[str, Any], arrays: Arrays) -> None:
    """Write words and arrays."""
    parts = [np.ascontiguousarray(array) for array in arrays.values()]
    shapes = [[name, part.dtype.str, *part.shape] for name, part in zip(arrays, parts, strict=True)]
    stream.write(json.dumps([words, shapes]).encode() + b"\n" + b"".join(part.tobytes() for part in parts))
    stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], Arrays]:
    """Read words and arrays; an EOFError where the other side is gone."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    words, shapes = json.loads(line)
    arrays = {}
    for name, kind, *shape in shapes:
        size = int(np.prod(shape)) * np.dtype(kind).itemsize
        data = stream.read(size)
        if len(data) < size:
            raise EOFError
        arrays[name] = np.frombuffer(data, dtype=kind).reshape(shape)
    return words, arrays


class World:
    """SUMO at work, and what is known of its vehicles."""

    def __init__(self, libsumo: Any, options: list[str], bin_s: float) -> None:
        self._sumo, self._bin_s = libsumo, bin_s
        libsumo.start(["sumo", *options])
        libsumo.vehicletype.copy("DEFAULT_VEHTYPE", KIND)
        self.second = 0
        self._routes: dict[str, list[str]] = {}
        self._first: dict[str, int] = {}  # the place on its path where the route that SUMO knows begins
        self._place: dict[str, int] = {}

    def add(self, vehicles: list[int], departs: list[float], starts: list[int], edges: list[int]) -> None:
        """Let vehicles depart from now on."""
        names = list(map(str, edges))
        vehicle, route = self._sumo.vehicle, self._sumo.route
        for i, number in enumerate(vehicles):
            key, mine = str(number), names[starts[i] : starts[i + 1]]
            route.add(key, mine)
            depart = f"{max(departs[i], self.second):.3f}"
            vehicle.add(key, key, typeID=KIND, depart=depart, departLane="best", departSpeed="max")
            self._routes[key], self._first[key] = mine, 0

    def turn(self, vehicles: list[int], starts: list[int], edges: list[int]) -> list[int]:
        """Give vehicles another route from the edge on which they are; return those that cannot take it."""
        names, refused = list(map(str, edges)), []
        for i, number in enumerate(vehicles):
            key, mine = str(number), names[starts[i] : starts[i + 1]]
            place = self._place.get(key, 0)
            try:
                self._sumo.vehicle.setRoute(key, mine)
            except self._sumo.TraCIException:
                refused.append(number)
                continue
            self._routes[key] = [*self._routes[key][:place], *mine]
            self._first[key] = place
        return refused

    def change(self, edges: list[int], speeds: list[float], closed: list[bool]) -> None:
        """Let roads have another speed limit, and close them or open them again."""
        lane = self._sumo.lane
        for edge, speed, shut in zip(edges, speeds, closed, strict=True):
            self._sumo.edge.setMaxSpeed(str(edge), speed)
            for number in range(self._sumo.edge.getLaneNumber(str(edge))):
                lane.setDisallowed(f"{edge}_{number}", ["passenger"] if shut else [])

    def go(self, until: int, pause: int, drain: bool, n_edges: int) -> tuple[dict[str, Any], Arrays]:
        """Drive until a second, or where they `drain` until nobody is left; look at speeds every `pause` seconds, where it is not 0."""
        events: list[tuple[int, int, int]] = []
        samples: list[tuple[int, int, int, float]] = []
        simulation, vehicle, place_of = self._sumo.simulation, self._sumo.vehicle, self._place
        index_of, moved = vehicle.getRouteIndex, 0
        while self.second < until:
            if drain and not simulation.getMinExpectedNumber():
                break
            now = self.second
            if now // self._bin_s > (now - 1) // self._bin_s:
                events += [(now, _HALTING - n, int(edge)) for edge, n in self._halting()]
            simulation.step()
            self.second += 1
            for key in vehicle.getIDList():
                place = index_of(key)
                if place_of.get(key) != place + self._first[key]:
                    place_of[key] = place + self._first[key]
                    events.append((now, int(key), place_of[key]))
            for key in simulation.getArrivedIDList():
                events.append((now, int(key), -1))
                for known in (self._routes, self._first, place_of):
                    known.pop(key, None)
            moved += simulation.getStartingTeleportNumber()
            if pause and self.second % pause == 0:
                samples += self._speeds()
        events.append((self.second, _CLOCK, 0))
        left = simulation.getMinExpectedNumber()
        sums = np.zeros((2, n_edges))  # metres driven and seconds spent, of those on the road when it was looked at
        for edge, n, speed in samples:
            sums[0, edge] += n * speed
            sums[1, edge] += n
        words = {"second": self.second, "moved": moved, "left": left}
        return words, {"events": np.array(events, dtype=np.int64), "sums": sums}

    def _occupied(self) -> set[str]:
        return {self._routes[key][place] for key, place in self._place.items()}

    def _halting(self) -> list[tuple[str, int]]:
        number = self._sumo.edge.getLastStepHaltingNumber
        return [(edge, n) for edge in sorted(self._occupied()) if (n := number(edge))]

    def _speeds(self) -> list[tuple[int, int, float]]:
        edge = self._sumo.edge
        seen = [(key, edge.getLastStepVehicleNumber(key)) for key in sorted(self._occupied())]
        return [(int(key), n, edge.getLastStepMeanSpeed(key)) for key, n in seen if n]


def _answer(world: World | None, words: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    assert world is not None  # noqa: S101 - the parent starts it first
    lists = {name: array.tolist() for name, array in arrays.items()}
    if "changed" in lists:
        world.change(lists["changed"], lists["speeds"], lists["closed"])
    refused = world.turn(lists["turning"], lists["turning_starts"], lists["turning_edges"])
    world.add(lists["departing"], lists["departs"], lists["departing_starts"], lists["departing_edges"])
    said, found = world.go(words["until"], words["pause"], words["drain"], words["n_edges"])
    return said, found | {"refused": np.array(refused, dtype=np.int64)}


def main() -> None:
    """Answer until there are no more commands."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    stdin, stdout = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what SUMO prints is no answer
    world = None
    try:
        while True:
            words, arrays = receive(stdin)
            try:
                if words["command"] == "start":
                    import libsumo

                    world = World(libsumo, words["options"], words["bin_s"])
                    send(stdout, {"version": libsumo.__version__}, {})
                else:
                    send(stdout, *_answer(world, words, arrays))
            except Exception as problem:  # noqa: BLE001 - whatever it is, the parent says it
                send(stdout, {"error": f"{type(problem).__name__}: {problem}"}, {})
    except (EOFError, BrokenPipeError):
        pass
    finally:
        shutil.rmtree(sys.argv[1], ignore_errors=True)
        os._exit(0)  # libsumo's own end may take long, and has nothing to write


if __name__ == "__main__":
    main()
