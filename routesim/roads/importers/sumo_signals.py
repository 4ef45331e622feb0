"""The programmes of a SUMO net -> green intervals of the movements that cars have at signals.

Of several programmes of a signal the last counts, as in SUMO. A movement has green in the phases whose state at any of
its links is G or g, or O or o (switched off); yellow, red and a green arrow for right turns (s) are none. Second 0 of a
cycle is second 0 of SUMO's time, after the programme's offset. Programmes that depend on traffic are read as fixed ones
with the durations that their phases state, and counted. A node keeps the default programme, and a warning counts it,
where its programme is missing, has phases that are left for others than the next, has a cycle outside the limits of
`SignalTimes`, or leaves a movement without any green.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from routesim.arrays import Ints
from routesim.errors import IncompleteSignalsWarning
from routesim.roads.importers.safexml import Halt
from routesim.roads.signal_times import CYCLE_LIMITS_S, SignalTimes

MOST_PROGRAMMES = 200_000
MOST_PHASES = 128  # of a programme
MOST_LINKS = 2048  # of a signal
MOST_STATES = 2**25  # of all links in all phases; 13,000 signals of New York's size have a quarter
_GREEN = frozenset("GgOo")
_LETTERS = "GgOoyYrRus"
_FIXED = frozenset({"static", "", "off"})
_RAIL = frozenset({"rail_signal", "rail_crossing"})


# The links of signals, by signal and index, that each movement (edge, next edge) passes; none without signals.
Links = dict[tuple[int, int], set[tuple[str, int]]]


@dataclass(slots=True)
class LightProgramme:
    """One <tlLogic>: `states[p]` has a letter for each link of the signal in phase `p`."""

    key: str
    kind: str
    offset_s: float
    durations: list[float] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    jumps: bool = False

    def fault(self) -> str:
        """Return why this is no fixed programme, or nothing."""
        least, most = CYCLE_LIMITS_S
        cycle = sum(self.durations)
        if not self.states:
            return "its programme has no phase"
        if self.jumps:
            return "its phases do not follow each other in order"
        return "" if least <= cycle <= most else f"its cycle of {cycle:g} s is not between {least:g} and {most:g}"

    def phases(self, links: Sequence[int]) -> int:
        """Return the phases in which one of these links has green, as bits."""
        return sum(
            1 << p
            for p, state in enumerate(self.states)
            if any(link < len(state) and state[link] in _GREEN for link in links)
        )

    def greens(self, phases: int) -> list[tuple[float, float]]:
        """Return start and length of the intervals that these phases make up; neighbours are one."""
        n, cycle = len(self.states), sum(self.durations)
        green = [bool(phases >> p & 1) for p in range(n)]
        if all(green):
            return [(0.0, cycle)]
        starts = np.concatenate(([0.0], np.cumsum(self.durations)))
        found = []
        for p in range(n):
            if green[p] and not green[p - 1]:
                seconds, q = 0.0, p
                while green[q % n]:
                    seconds += self.durations[q % n]
                    q += 1
                start = float(starts[p] + self.offset_s) % cycle
                # Rounded as SUMO counts time, in milliseconds, so that sums of phases come out as they were meant.
                found.append((round(start, 3) % cycle, round(seconds, 3)))
        return [(start, seconds) for start, seconds in found if seconds > 0]


class Programmes:
    """Collects the programmes of a net, and turns them into green intervals."""

    def __init__(self) -> None:
        self.by_light: dict[str, LightProgramme] = {}
        self.actuated = 0
        self.lacking: dict[str, str] = {}  # by junction: why its programme is not known
        self.n_signals = 0
        self._count = self._n_states = 0
        self._current: LightProgramme | None = None

    def start(self, attributes: Mapping[str, str]) -> None:
        """Begin a <tlLogic>."""
        key = attributes.get("id", "")
        if not key:
            raise Halt("tlLogic has no id")
        self._count += 1
        if self._count > MOST_PROGRAMMES:
            raise Halt(f"more than {MOST_PROGRAMMES} programmes of signals")
        offset = attributes.get("offset", "0")
        seconds = 0.0 if offset == "begin" else _seconds(offset, f"the offset of tlLogic {key!r:.60}")
        self._current = LightProgramme(key, attributes.get("type", ""), seconds)

    def add_phase(self, attributes: Mapping[str, str]) -> None:
        """Add a <phase> to the <tlLogic> that is being read."""
        programme = self._current
        if programme is None:
            return
        where = f"a phase of tlLogic {programme.key!r:.60}"
        seconds = _seconds(attributes.get("duration", ""), f"the duration of {where}")
        state = attributes.get("state", "")
        if seconds < 0:
            raise Halt(f"the duration of {where} must be at least 0 seconds, got {seconds:g}")
        if not state or state.strip(_LETTERS):
            raise Halt(f"the state of {where} must be made of letters {_LETTERS}, got {state!r:.40}")
        if programme.states and len(state) != len(programme.states[0]):
            raise Halt(
                f"the state of {where} has {len(state)} letters, that of the first has {len(programme.states[0])}"
            )
        self._n_states += len(state)
        if len(programme.states) >= MOST_PHASES or len(state) > MOST_LINKS or self._n_states > MOST_STATES:
            raise Halt(f"{where} is one too many: at most {MOST_PHASES} phases of {MOST_LINKS} links are read")
        after = (len(programme.states) + 1, 0)
        programme.jumps |= attributes.get("next", "") not in ("", *map(str, after))
        programme.durations.append(seconds)
        programme.states.append(state)

    def end(self) -> None:
        """End a <tlLogic>; it takes the place of one before it with the same id."""
        if self._current is not None:
            self.by_light[self._current.key] = self._current
        self._current = None

    def times(self, lights: Links, heads: Ints, junctions: Sequence[str]) -> SignalTimes:
        """Return the green intervals of movements (edge, next edge) that pass these links of signals.

        `heads` and `junctions` are index and id of the junction where each edge ends.
        """
        used: set[str] = set()
        signals: set[int] = set()
        cycles: dict[int, float] = {}
        rows: list[tuple[int, int, float, float, float]] = []
        masks: dict[tuple[str, int], int] = {}
        greens: dict[tuple[str, int], list[tuple[float, float]]] = {}
        torn: set[int] = set()
        for (edge, to), links in sorted(lights.items()):
            names = {light for light, _ in links}
            if not names or any(light in self.by_light and self.by_light[light].kind in _RAIL for light in names):
                continue
            signals.add(int(heads[edge]))
            light = min(names)
            programme = self.by_light.get(light)
            fault = "the net has no programme for it" if programme is None else programme.fault()
            if programme is not None and not fault:
                if len(names) > 1:
                    fault = f"two programmes rule the way from edge {edge}"
                elif any(link >= len(programme.states[0]) for _, link in links):
                    fault = "a connection has a linkIndex that its programme does not have"
            phases = 0
            if programme is not None and not fault:
                used.add(light)
                for one in links:
                    if one not in masks:
                        masks[one] = programme.phases([one[1]])
                    phases |= masks[one]
                if (light, phases) not in greens:
                    greens[light, phases] = programme.greens(phases)
                cycle = round(sum(programme.durations), 3)
                if not greens[light, phases]:
                    fault = "a movement has no green in any phase"
                elif cycles.setdefault(edge, cycle) != cycle:
                    fault = "an edge that ends there has two cycles"
                rows += [(edge, to, cycle, start, min(green, cycle)) for start, green in greens[light, phases]]
            if fault:
                self.lacking.setdefault(junctions[edge], fault)
                torn.add(int(heads[edge]))
        self.n_signals = len(signals)
        self.actuated = sum(self.by_light[light].kind not in _FIXED for light in used)
        kept = [row for row in rows if int(heads[row[0]]) not in torn]
        table = np.array(kept, dtype=np.float64).reshape(-1, 5)
        return SignalTimes(table[:, 0], table[:, 1], *table[:, 2:].T)  # type: ignore[arg-type]  # whole numbers

    def warn(self, where: str) -> None:
        """Warn of signals whose programme is not known, and of those that depend on traffic."""
        said = []
        if self.lacking:
            junction, why = next(iter(self.lacking.items()))
            said.append(
                f"{len(self.lacking)} of {self.n_signals} junctions with signals have no usable programme and keep the "
                f"default one, the first being {junction!r:.60}: {why}"
            )
        if self.actuated:
            said.append(
                f"{self.actuated} programmes that depend on traffic are read as fixed, with the durations stated"
            )
        if said:
            warnings.warn(f"{where}: {'; '.join(said)}", IncompleteSignalsWarning, stacklevel=5)


def _seconds(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) <= 1e9:
        raise Halt(f"{where} must be a number of seconds, got {text!r:.40}")
    return value
