"""SUMO in a process of its own: libsumo is there once in a process, and what it crashes is not the run.

The parent starts this file as a program. It reads commands from its standard input and answers on its standard output,
each a line of JSON that says which rows of numbers follow, and their bytes:

    start   the options of SUMO, and the times that edges take when they are empty
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
from array import array
from collections import defaultdict
from collections.abc import Mapping
from typing import IO, Any, TypeAlias

# numpy is left out: it takes as long to load as SUMO takes for a thousand vehicles.
Numbers: TypeAlias = dict[str, memoryview]
KIND = "car"
_CLOCK, _HALTING = -1, -2
_SOONEST = 0.6  # of its time on the empty edge nobody leaves it


def send(stream: IO[bytes], words: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write words and rows of numbers: what has a buffer of one dimension."""
    parts = {name: memoryview(numbers) for name, numbers in arrays.items()}
    stream.write(json.dumps([words, [[name, part.format, part.nbytes] for name, part in parts.items()]]).encode())
    stream.write(b"\n" + b"".join(parts.values()))
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], Numbers]:
    """Read words and rows of numbers; an EOFError where the other side is gone."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    words, shapes = json.loads(line)
    found = {}
    for name, kind, size in shapes:
        data = stream.read(size)
        if len(data) < size:
            raise EOFError
        found[name] = memoryview(data).cast(kind)
    return words, found


class SumoDriver:
    """SUMO at work, and what is known of its vehicles."""

    def __init__(
        self, libsumo: Any, options: list[str], bin_s: float, patience_s: int, free_flow_s: list[float]
    ) -> None:
        """Start SUMO; who is later than on an empty edge is looked at every `patience_s` seconds."""
        self._sumo, self._bin_s, self._patience_s = libsumo, bin_s, patience_s
        self._soonest = [max(1, int(_SOONEST * seconds)) for seconds in free_flow_s]
        libsumo.start(["sumo", *options])
        libsumo.vehicletype.copy("DEFAULT_VEHTYPE", KIND)
        self.second = 0
        self._keys: dict[int, str] = {}  # SUMO's names of the vehicles that it knows
        self._numbers: dict[str, int] = {}
        self._routes: dict[str, list[str]] = {}
        self._first: dict[str, int] = {}  # the place on its path where SUMO's count of its edges begins
        self._place: dict[str, int] = {}
        self._due: defaultdict[int, list[str]] = defaultdict(list)  # who is to be looked at in a second
        self._closed: set[str] = set()
        self._held: dict[int, tuple[float, list[str]]] = {}  # departures and routes over a closed road
        self._names = 0

    def add(self, vehicles: list[int], departs: list[float], starts: list[int], edges: list[int]) -> None:
        """Let vehicles depart from now on; SUMO refuses routes over a closed road: they wait here."""
        names = list(map(str, edges))
        for i, number in enumerate(vehicles):
            self._add(number, departs[i], names[starts[i] : starts[i + 1]])

    def _add(self, number: int, depart: float, edges: list[str]) -> None:
        if not self._closed.isdisjoint(edges):
            self._held[number] = depart, edges
            return
        self._names += 1
        key = f"{number}.{self._names}"
        self._sumo.route.add(key, edges)
        self._sumo.vehicle.add(
            key, key, typeID=KIND, depart=f"{max(depart, self.second):.3f}", departLane="best", departSpeed="max"
        )
        self._keys[number], self._numbers[key] = key, number
        self._routes[key], self._first[key] = edges, 0

    def _forget(self, key: str) -> None:
        del self._keys[self._numbers.pop(key)]
        for known in (self._routes, self._first, self._place):
            known.pop(key, None)

    def turn(self, vehicles: list[int], starts: list[int], edges: list[int]) -> list[int]:
        """Give vehicles another route from the edge on which they are; return those that cannot take it."""
        names, refused, vehicle = list(map(str, edges)), [], self._sumo.vehicle
        for i, number in enumerate(vehicles):
            mine = names[starts[i] : starts[i + 1]]
            if number in self._held:
                self._add(number, self._held.pop(number)[0], mine)
                continue
            key = self._keys[number]
            place = self._place.get(key, 0)
            if vehicle.getRoadID(key).startswith(":"):  # it has begun to turn
                refused.append(number)
                continue
            try:
                vehicle.setRoute(key, mine)
            except self._sumo.TraCIException:
                refused.append(number)
                continue
            self._routes[key] = [*self._routes[key][:place], *mine]
            if key in self._place:
                self._first[key] = place - vehicle.getRouteIndex(key)
        return refused

    def change(self, edges: list[int], speeds: list[float], closed: list[bool]) -> None:
        """Let roads have another speed limit, and close them or open them again."""
        for edge, speed, shut in zip(map(str, edges), speeds, closed, strict=True):
            self._sumo.edge.setMaxSpeed(edge, speed)
            for number in range(self._sumo.edge.getLaneNumber(edge)):
                self._sumo.lane.setDisallowed(f"{edge}_{number}", ["passenger"] if shut else [])
            (self._closed.add if shut else self._closed.discard)(edge)
        waiting = [(key, route) for key, route in self._routes.items() if key not in self._place]
        for key, route in waiting:
            if self._closed.isdisjoint(route):
                continue
            number = self._numbers[key]
            self._sumo.vehicle.remove(key)
            self._forget(key)
            self._held[number] = 0.0, route
        for number, (depart, route) in list(self._held.items()):
            if self._closed.isdisjoint(route):
                del self._held[number]
                self._add(number, depart, route)

    def go(self, until: int, pause: int, *, drain: bool) -> tuple[dict[str, int], dict[str, Any]]:
        """Drive until a second, or where they `drain` until nobody is left; look at speeds every `pause` seconds."""
        events: list[int] = []
        samples: list[tuple[int, int, float]] = []
        simulation = self._sumo.simulation
        while self.second < until:
            if drain and not simulation.getMinExpectedNumber():
                break
            now = self.second
            if now // self._bin_s > (now - 1) // self._bin_s:
                for edge, n in self._halting():
                    events += (now, _HALTING - n, int(edge))
            simulation.step()
            self.second += 1
            self._follow(now, events)
            if pause and self.second % pause == 0:
                samples += self._speeds()
        if pause:  # whoever is to be turned now must be known where he is
            for key in self._place:
                self._see(key, self.second - 1, events)
        events += (self.second, _CLOCK, 0)
        columns = list(zip(*samples, strict=True)) or [(), (), ()]
        seen = {"seen": array("q", columns[0]), "numbers": array("q", columns[1]), "speeds": array("d", columns[2])}
        # The lists of vehicles that begin to teleport are empty in the meso mode; the statistics are not.
        moved = int(simulation.getParameter("", "stats.teleports.total"))
        words = {"second": self.second, "moved": moved, "left": simulation.getMinExpectedNumber()}
        words["held"] = len(self._held)
        return words, {"events": array("q", events), **seen}

    def _follow(self, now: int, events: list[int]) -> None:
        """Write down who has arrived, and who has come to another edge."""
        due, places, routes, soonest = self._due, self._place, self._routes, self._soonest
        for key in self._sumo.simulation.getDepartedIDList():
            places[key] = -1
            due[now].append(key)
        for key in self._sumo.simulation.getArrivedIDList():
            if key in self._numbers:  # not one that was taken back
                events += (now, self._numbers[key], -1)
                self._forget(key)
        later = due[now + self._patience_s]
        for key in due.pop(now, ()):
            if key not in places:  # arrived
                continue
            if self._see(key, now, events):
                due[now + soonest[int(routes[key][places[key]])]].append(key)
            else:
                later.append(key)

    def _see(self, key: str, now: int, events: list[int]) -> bool:
        """Look where a vehicle is; say whether it has come to another edge since."""
        place = self._sumo.vehicle.getRouteIndex(key) + self._first[key]
        if place == self._place[key]:
            return False
        self._place[key] = place
        events += (now, self._numbers[key], place)
        return True

    def _occupied(self) -> list[str]:
        return sorted({self._routes[key][place] for key, place in self._place.items() if place >= 0})

    def _halting(self) -> list[tuple[str, int]]:
        number = self._sumo.edge.getLastStepHaltingNumber
        return [(edge, n) for edge in self._occupied() if (n := number(edge))]

    def _speeds(self) -> list[tuple[int, int, float]]:
        edge = self._sumo.edge
        seen = [(key, edge.getLastStepVehicleNumber(key)) for key in self._occupied()]
        return [(int(key), n, edge.getLastStepMeanSpeed(key)) for key, n in seen if n]


def _answer(world: SumoDriver | None, words: dict[str, Any], found: Numbers) -> tuple[dict[str, int], dict[str, Any]]:
    assert world is not None  # noqa: S101 - the parent starts it first
    lists: dict[str, list[Any]] = {name: numbers.tolist() for name, numbers in found.items()}
    if "changed" in lists:
        world.change(lists["changed"], lists["limits"], lists["closed"])
    refused = world.turn(lists["turning"], lists["turning_starts"], lists["turning_edges"])
    world.add(lists["departing"], lists["departs"], lists["departing_starts"], lists["departing_edges"])
    said, seen = world.go(words["until"], words["pause"], drain=words["drain"])
    return said, {**seen, "refused": array("q", refused)}


def main() -> None:
    """Answer until there are no more commands."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    stdin, stdout = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what SUMO prints is no answer
    world = None
    try:
        while True:
            words, found = receive(stdin)
            try:
                if words["command"] == "start":
                    import libsumo

                    times: list[Any] = found["free_flow_s"].tolist()
                    world = SumoDriver(libsumo, words["options"], words["bin_s"], words["patience_s"], times)
                    send(stdout, {"version": libsumo.__version__}, {})
                else:
                    send(stdout, *_answer(world, words, found))
            except Exception as problem:
                send(stdout, {"error": f"{type(problem).__name__}: {problem}"}, {})
    except (EOFError, BrokenPipeError):
        pass
    finally:
        shutil.rmtree(sys.argv[1], ignore_errors=True)
        os._exit(0)  # libsumo's own end may take long, and has nothing to write


if __name__ == "__main__":
    main()
