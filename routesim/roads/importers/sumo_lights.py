"""Known programmes of a network's signals -> programmes for the links of a net that netconvert made of its roads."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from routesim.roads.importers.safexml import read_xml
from routesim.roads.network import RoadNetwork

YELLOW_S = 3.0


def programmes_of(network: RoadNetwork, net: Path) -> tuple[list[str], int]:
    """Return a <tlLogic> for each node of the net whose programme the network knows, and how many SUMO cannot have.

    Those are the ones in which roads that end at a node have different cycles. A movement of which the programme does
    not speak may always pass, and gives way. Of two movements with green that cross, the one that must give way at the
    junction does.
    """
    times = network.signal_times
    if not len(times):
        return [], 0
    links, gives_way = _links(net)
    rows: dict[int, list[int]] = defaultdict(list)
    for row, edge in enumerate(times.edge.tolist()):
        rows[edge].append(row)
    signals: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
    for light, link, edge, to in links:
        signals[light][link] = (edge, to)
    written, others = [], 0
    for light, movements in signals.items():
        known = [row for edge in {edge for edge, _ in movements.values()} for row in rows.get(edge, ())]
        cycles = {float(times.cycle_s[row]) for row in known}
        others += len(cycles) > 1
        if len(cycles) != 1:
            continue
        cycle = cycles.pop()
        greens: dict[int, list[tuple[float, float]] | None] = {}
        for link, (edge, to) in movements.items():
            own = [row for row in rows.get(edge, ()) if times.to[row] in (-1, to)]
            greens[link] = [(float(times.start_s[row]), float(times.green_s[row])) for row in own] or None
        written.append(_programme(light, cycle, greens, gives_way.get(light, {})))
    return written, others


def _links(net: Path) -> tuple[list[tuple[str, int, int, int]], dict[str, dict[int, str]]]:
    """Return signal, link, edge and next edge of all signalled connections, and to whom links give way by junction."""
    links: list[tuple[str, int, int, int]] = []
    gives_way: dict[str, dict[int, str]] = defaultdict(dict)
    junction = ""

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal junction
        if tag == "connection" and "tl" in attributes and not attributes["from"].startswith(":"):
            link = int(attributes["linkIndex"])
            links.append((attributes["tl"], link, int(attributes["from"]), int(attributes["to"])))
        elif tag == "junction":
            junction = attributes["id"]
        elif tag == "request":
            gives_way[junction][int(attributes["index"])] = attributes["response"][::-1]

    read_xml(net, start, max_bytes=2**40)
    return links, gives_way


def _programme(
    light: str, cycle: float, greens: dict[int, list[tuple[float, float]] | None], gives_way: dict[int, str]
) -> str:
    """Return a programme in which these links have green from `start` on for so many seconds; None is always."""
    edges = {0.0, cycle}
    for intervals in greens.values():
        for start, seconds in intervals or ():
            edges |= {start, _within(start + seconds, cycle), _within(start + seconds + YELLOW_S, cycle)}
    # SUMO counts milliseconds.
    cuts = np.unique(np.round(np.array(sorted(edges)), 3))
    phases = []
    for begin, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        middle = (begin + end) / 2
        lit = {link for link, intervals in greens.items() if intervals is None or _is_in(middle, intervals, cycle)}
        state = ""
        for link in range(max(greens) + 1):
            intervals = greens.get(link, [])
            if link in lit:
                foes = gives_way.get(link, "")
                yields = intervals is None or any(foes[other : other + 1] == "1" for other in lit if other != link)
                state += "g" if yields else "G"
            else:
                after = [(start + seconds, YELLOW_S) for start, seconds in intervals or ()]
                state += "y" if _is_in(middle, after, cycle) else "r"
        phases.append(f'<phase duration="{round(end - begin, 3):g}" state="{state}"/>')
    return f'<tlLogic id="{light}" type="static" programID="0" offset="0">{"".join(phases)}</tlLogic>'


def _within(second: float, cycle: float) -> float:
    return second % cycle


def _is_in(second: float, intervals: list[tuple[float, float]], cycle: float) -> bool:
    return any((second - start) % cycle < seconds for start, seconds in intervals)
