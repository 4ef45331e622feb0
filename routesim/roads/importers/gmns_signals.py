"""Movements and signals of GMNS -> banned turns, which nodes have signals, and the fixed-time programmes of the tables.

A table of movements says which turns there are: from a link of which it speaks, cars may go on only as a movement for
them does. From other links they may go on anywhere.

The tables are those of versions 0.90 to 0.96 of the format: movement, signal_controller, signal_timing_plan,
signal_timing_phase and signal_phase_mvmt, and signal_coordination, where newer versions have the offset of a plan. They
are read as those of a fixed-time signal, by the rules of `routesim.roads.importers.gmns_plans`. A node whose tables do
not give each of its signalled movements a green keeps the default programme.
"""

import math
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from routesim.arrays import Bools
from routesim.errors import IncompleteSignalsWarning, NetworkError
from routesim.roads.importers.bans import UNKNOWN, Bans, missing_connections
from routesim.roads.importers.gmns_plans import REFERENCES, Phase, TimingPlan, fixed_time
from routesim.roads.importers.gmns_tables import Row, is_for_cars, number, plain_id, read_table, whole_number
from routesim.roads.signal_times import CYCLE_LIMITS_S, SignalTimes

MOST_ROWS = 1_000_000  # of a table of signals; those of New York's 13,000 have fewer
MOST_PHASES = 64  # of a plan
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "movement": ("mvmt_id", "node_id", "ib_link_id", "ob_link_id"),
    "signal_controller": ("controller_id",),
    "signal_timing_plan": ("timing_plan_id", "controller_id"),
    "signal_timing_phase": ("timing_plan_id", "signal_phase_num", "ring", "barrier", "position"),
    "signal_phase_mvmt": ("mvmt_id",),
    "signal_coordination": ("timing_plan_id", "controller_id"),
}


class Movement(NamedTuple):
    """One movement of cars at a node, with the edges it leads from and to."""

    key: str
    node: str
    edge: int
    to: int
    signalled: bool


class Signals(NamedTuple):
    """Which nodes have signals, and the programmes that are known."""

    nodes: Bools
    times: SignalTimes
    bans: Bans = UNKNOWN


def _bans(joined: Mapping[int, set[int]], ends: Sequence[tuple[int, int]]) -> Bans:
    """Ban the turns that no movement is for, from those edges that any movement comes from."""
    tails, heads = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    pairs = np.array([(edge, to) for edge, onward in joined.items() for to in onward], dtype=np.int64)
    missing = missing_connections(tails, heads, pairs)
    return Bans(missing[np.isin(missing[:, 0], np.array(list(joined), dtype=np.int64))])


def signal_nodes(rows: Sequence[Row]) -> Bools:
    """Tell which rows of node.csv are nodes with signals: "signal" in the format, 1 in the tables of osm2gmns."""
    marks = [row.get("ctrl_type", "").strip().lower() in {"signal", "1", "1.0"} for _, row in rows]
    return np.array(marks, dtype=np.bool_)


class SignalTables:
    """The signal tables of a folder, checked row by row; empty where there are none."""

    def __init__(self, folder: Path, max_bytes: int | None) -> None:
        self.folder = folder
        self.tables: dict[str, list[Row]] = {}
        self.joined: dict[int, set[int]] = {}  # where cars may go on from the edges of which movement.csv speaks
        for table, needed in _NEEDED.items():
            file = folder / f"{table}.csv"
            self.tables[table] = read_table(file, needed, max_bytes, MOST_ROWS) if file.is_file() else []

    def where(self, table: str, line: int) -> str:
        """Return how errors call a row."""
        return f"{self.folder / table}.csv line {line}"

    def read(
        self,
        marked: Bools,
        nodes: Mapping[str, int],
        links: Mapping[str, Sequence[int]],
        ends: Sequence[tuple[int, int]],
    ) -> Signals:
        """Return the signals of the nodes `marked` and of those of which the tables speak.

        `links` are the edges of each link, none of one that is not for cars, and `ends` the nodes of each edge.
        """
        movements = self._movements(nodes, links, ends)
        greens, reasons = self._greens(movements)
        lacking: dict[str, str] = {}
        cycles: dict[int, float] = {}
        for movement in movements.values():
            if movement is None:
                continue
            found = greens.get(movement.key, set())
            if movement.signalled or movement.key in reasons:
                marked[nodes[movement.node]] = True
                if not found:
                    why = reasons.get(movement.key) or "has no phase in signal_phase_mvmt.csv"
                    lacking.setdefault(movement.node, f"movement {movement.key!r:.40} {why}")
            for cycle_s, _, _ in found:
                if cycles.setdefault(movement.edge, cycle_s) != cycle_s:
                    lacking.setdefault(movement.node, f"movement {movement.key!r:.40} has two cycles")
        rows = {
            (movement.edge, movement.to, *green)
            for movement in movements.values()
            if movement is not None and movement.node not in lacking
            for green in greens.get(movement.key, ())
        }
        table = np.array(sorted(rows), dtype=np.float64).reshape(-1, 5)
        times = SignalTimes(table[:, 0], table[:, 1], *table[:, 2:].T)  # type: ignore[arg-type]  # whole numbers
        bans = _bans(self.joined, ends) if self.tables["movement"] else UNKNOWN
        if self.tables["signal_phase_mvmt"]:
            self._say(marked, nodes, {ends[edge][1] for edge in table[:, 0].astype(np.int64).tolist()}, ends, lacking)
        return Signals(marked, times, bans)

    def _say(
        self,
        marked: Bools,
        nodes: Mapping[str, int],
        known: set[int],
        ends: Sequence[tuple[int, int]],
        lacking: Mapping[str, str],
    ) -> None:
        """Warn of nodes with signals at the end of roads that have no programme in the tables."""
        reached = {head for _, head in ends}
        signals = {node for node in np.flatnonzero(marked).tolist() if node in reached}
        without = [label for label, node in nodes.items() if node in signals and node not in known]
        if without:
            label = next((label for label in without if label in lacking), without[0])
            warnings.warn(
                f"{self.folder}: {len(without)} of {len(signals)} nodes with signals have no complete programme in the "
                f"tables and keep the default one, the first being node {label!r:.40}: "
                f"{lacking.get(label, 'the tables name none of its movements')}",
                IncompleteSignalsWarning,
                stacklevel=6,
            )

    def _movements(
        self, nodes: Mapping[str, int], links: Mapping[str, Sequence[int]], ends: Sequence[tuple[int, int]]
    ) -> dict[str, Movement | None]:
        """Return the movements by id, None for those that are not for cars."""
        found: dict[str, Movement | None] = {}
        for line, row in self.tables["movement"]:
            where = self.where("movement", line)
            key, node = plain_id(row["mvmt_id"]), plain_id(row["node_id"])
            if not key or key in found:
                raise NetworkError(f"{where}: mvmt_id {key!r:.40} must be there, and once only")
            if node not in nodes:
                raise NetworkError(f"{where}: node_id {node!r:.40} is no node of node.csv")
            pair: list[list[int]] = []
            for column, end in (("ib_link_id", 1), ("ob_link_id", 0)):
                link = plain_id(row[column])
                if link not in links:
                    raise NetworkError(f"{where}: {column} {link!r:.40} is no link_id of link.csv")
                if len(links[link]) > 2:
                    raise NetworkError(f"{where}: {column} {link!r:.40} is the link_id of several links of link.csv")
                here = [edge for edge in links[link] if ends[edge][end] == nodes[node]]
                if links[link] and not here:
                    leads = "lead to" if end else "start at"
                    raise NetworkError(f"{where}: {column} {link!r:.40} must {leads} node {node!r:.40}")
                pair.append(here[:1])
            found[key] = None
            for edge in pair[0]:
                onward = pair[1] if is_for_cars(row) else []
                self.joined.setdefault(edge, set()).update(onward)
                for to in onward:
                    control = row.get("ctrl_type", "").strip().lower()
                    found[key] = Movement(key, node, edge, to, control.startswith("signal"))
        return found

    def _greens(
        self, movements: Mapping[str, Movement | None]
    ) -> tuple[dict[str, set[tuple[float, float, float]]], dict[str, str]]:
        """Return cycle, start and length of the greens of movements, and why others that have a phase have none."""
        plans = self._plans()
        phases, by_id = self._phases(plans)
        programmes, unusable = fixed_time(plans, phases)
        owner = {plan.key: plan.controller for plan in plans}
        controllers = {plain_id(row["controller_id"]) for _, row in self.tables["signal_controller"]}
        controllers = controllers or set(owner.values())
        greens: dict[str, set[tuple[float, float, float]]] = defaultdict(set)
        reasons: dict[str, str] = {}
        for line, row in self.tables["signal_phase_mvmt"]:
            where, key = self.where("signal_phase_mvmt", line), plain_id(row["mvmt_id"])
            if not key:  # a crosswalk
                continue
            if key not in movements:
                raise NetworkError(f"{where}: mvmt_id {key!r:.40} is not in movement.csv")
            if plain_id(row.get("timing_phase_id", "")):
                phase = plain_id(row["timing_phase_id"])
                stated = by_id.get(phase)
                if stated is None:
                    fault = "is there more than once" if phase in by_id else "is not"
                    raise NetworkError(f"{where}: timing_phase_id {phase!r:.40} {fault} in signal_timing_phase.csv")
                (plan, num), controller = stated, owner[stated[0]]
            else:
                controller, plan = plain_id(row.get("controller_id", "")), ""
                if controller not in controllers:
                    raise NetworkError(
                        f"{where}: controller_id {controller!r:.40} is not in signal_controller.csv; give it, or a "
                        "timing_phase_id"
                    )
                num = whole_number(row, "signal_phase_num", where)
            reasons.setdefault(key, f"has no green in a plan of controller {controller!r:.40}")
            programme = programmes.get(controller)
            if programme is None:
                reasons[key] = f"has no usable plan: {unusable.get(controller, 'its controller has none')}"
            elif row.get("protection", "").strip().lower() != "rtor" and plan in {"", programme.plan}:
                start_s, green_s = programme.greens.get(num, (0.0, 0.0))
                if green_s > 0:
                    greens[key].add((programme.cycle_s, start_s, green_s))
        return greens, reasons

    def _plans(self) -> list[TimingPlan]:
        """Return the plans in the order of the table."""
        controllers = {plain_id(row["controller_id"]) for _, row in self.tables["signal_controller"]}
        coordinated = {}
        for line, row in self.tables["signal_coordination"]:
            both = plain_id(row["timing_plan_id"]), plain_id(row["controller_id"])
            coordinated[both] = self._coordination(row, self.where("signal_coordination", line))
        plans = []
        for line, row in self.tables["signal_timing_plan"]:
            where = self.where("signal_timing_plan", line)
            key, controller = plain_id(row["timing_plan_id"]), plain_id(row["controller_id"])
            if not key or not controller:
                raise NetworkError(f"{where}: {'controller_id' if key else 'timing_plan_id'} is missing")
            if controllers and controller not in controllers:
                raise NetworkError(f"{where}: controller_id {controller!r:.40} is not in signal_controller.csv")
            cycle = number(row, "cycle_length", where) or math.nan
            least, most = CYCLE_LIMITS_S
            if cycle < least or cycle > most:
                raise NetworkError(f"{where}: cycle_length must lie between {least:g} and {most:g} s, got {cycle:g}")
            own = self._coordination(row, where)
            plans.append(TimingPlan(key, controller, cycle, *coordinated.get((key, controller), own)))
        return plans

    def _coordination(self, row: Mapping[str, str], where: str) -> tuple[float, float, str]:
        reference = row.get("coord_ref_to", "").strip().lower() or REFERENCES[0]
        if reference not in REFERENCES:
            raise NetworkError(f"{where}: coord_ref_to must be one of {', '.join(REFERENCES)}, got {reference!r:.40}")
        return number(row, "offset", where, signed=True), number(row, "coord_phase", where), reference

    def _phases(self, plans: Iterable[TimingPlan]) -> tuple[dict[str, list[Phase]], dict[str, tuple[str, int] | None]]:
        """Return the phases of each plan, and the plan and number of each timing phase by its id.

        An id that is there more than once has None.
        """
        known = {plan.key for plan in plans}
        by_plan: dict[str, list[Phase]] = defaultdict(list)
        by_id: dict[str, tuple[str, int] | None] = {}
        for line, row in self.tables["signal_timing_phase"]:
            where = self.where("signal_timing_phase", line)
            plan = plain_id(row["timing_plan_id"])
            if plan not in known:
                raise NetworkError(f"{where}: timing_plan_id {plan!r:.40} is not in signal_timing_plan.csv")
            ring, barrier, position, num = (
                whole_number(row, column, where) for column in ("ring", "barrier", "position", "signal_phase_num")
            )
            least, most, more = (number(row, column, where) for column in ("min_green", "max_green", "extension"))
            most = least + (0.0 if math.isnan(more) else more) if math.isnan(most) else most
            least = most if math.isnan(least) else least
            after = [number(row, "clearance", where)]
            if math.isnan(most):  # only people on foot walk in it
                after += [number(row, "walk_time", where), number(row, "ped_clearance", where)]
            elif most < least:
                raise NetworkError(f"{where}: max_green must be at least min_green, {least:g} s, got {most:g}")
            longest = CYCLE_LIMITS_S[1]
            seconds = sum(part for part in after if not math.isnan(part))
            if seconds > longest or most > longest:
                raise NetworkError(f"{where}: a phase must last at most {longest:g} s")
            by_plan[plan].append(Phase(num, ring, barrier, position, least, most, seconds))
            if len(by_plan[plan]) > MOST_PHASES:
                raise NetworkError(f"{where}: timing_plan_id {plan!r:.40} has more than {MOST_PHASES} phases")
            if key := plain_id(row.get("timing_phase_id", "")):
                by_id[key] = (plan, num) if key not in by_id else None
        return by_plan, by_id
