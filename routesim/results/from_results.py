"""Results -> Record: what learners did on the same roads, in rounds or in traffic, step by step in time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats
from routesim.errors import InputError, ResultsError
from routesim.results.bands import mean_curve
from routesim.results.depth import depth_notices, physics_of
from routesim.results.record import RECORD, Played, Record
from routesim.results.run import ROUNDS, Run
from routesim.results.standing import JAM_DENSITY_PER_KM, RoadQueues
from routesim.results.thinned_traffic import MOST_STEPS, TrafficRun
from routesim.roads.network import RoadNetwork
from routesim.traffic.result import Traffic

Route: TypeAlias = tuple[int, ...]
Results: TypeAlias = (
    Run | Traffic | Sequence[Run] | Sequence[Traffic] | Mapping[str, Run | Traffic | Sequence[Run] | Sequence[Traffic]]
)
"""A result, replications of it, several learners' in a list, or by the labels they are to have."""

MOST_ROUTES = 40
_WORST = 99.0  # an edge that pays nothing any more is shown as so many times dearer


def record(results: Results, title: str = "") -> Record:
    """Return the record of runs, or of traffic, of one or more learners on the same roads.

    In a list, results of one learner or router are replications, which are averaged; settings to be told apart need
    labels.
    """
    groups = _groups(results)
    names = list(groups)
    title = title or f"What {' and '.join(names) if len(names) < 3 else f'{len(names)} learners'} recommended"
    every = [one for group in groups.values() for one in group]
    network = _common_network([one.network for one in every])
    if all(isinstance(one, Run) for one in every):
        if len({one.window for one in every}) > 1:
            raise InputError("runs on one map need the same window; draw a map for each")
        if any(_has_costs(one) for one in every) and any(one.expected_rewards.max() > 0 for one in every):
            raise InputError("runs that earn rewards and runs that have costs need a map each")
        return record_rounds(groups, title, network)
    if not all(isinstance(one, Traffic) for one in every):
        raise InputError("a map is drawn from runs or from traffic, not from both together")
    if len({(one.window_s, one.bin_s, one.trip_cost is None) for one in every}) > 1:
        raise InputError("traffic on one map needs the same window_s, bin_s and trip_costs; draw a map for each")
    rows = (rows for one in every for rows in (one.loads, one.standing) if rows is not None)
    entered = [some[:, 0] for some in rows if len(some)]
    first, last = (min(map(np.min, entered)), max(map(np.max, entered))) if entered else (0, 0)
    bins = -(-int(last - first + 1) // MOST_STEPS)
    return record_traffic(
        {
            label: [TrafficRun.of(one, 0.0, np.inf, first_bin=int(first), bins=bins) for one in group]
            for label, group in groups.items()
        },
        title,
        network,
        every[0].window_s,
        informed={label: group[0].informed for label, group in groups.items()},
        costs=every[0].trip_cost is not None,
    )


def read_record(folder: str | Path) -> Record:
    """Return the record of a result folder of `routesim run`, or that of a run which `Run.save` wrote."""
    source = Path(folder)
    if not (source / RECORD).exists() and (source / ROUNDS).exists():
        run = Run.load(source)
        try:
            return record(run)
        except InputError as problem:
            raise ResultsError(f"{source}: {problem}") from problem
    return Record.read(source)


def _groups(results: Results) -> dict[str, list[Any]]:
    """Return the results by label; those of a list by the names of their learners."""
    found: dict[str, list[Any]] = {}
    if isinstance(results, Mapping):
        for label, one in results.items():
            if not isinstance(label, str):
                raise InputError(f"labels of results are texts, got {label!r:.80}")
            found[label] = _listed(one)
    else:
        for one in _listed(results):
            found.setdefault(one.learner if isinstance(one, Run) else one.router, []).append(one)
        for name, group in found.items():
            if len({(one.seed, getattr(one, "replication", 0)) for one in group}) < len(group):
                raise InputError(
                    f"several results of {name} have the same seed, so they are no replications; give labels to tell "
                    f'them apart: {{"{name}, first": ..., "{name}, second": ...}}'
                )
    if not found or not all(found.values()):
        raise InputError("a map needs at least one run or traffic of each learner, got none")
    return found


def _listed(results: Any) -> list[Run | Traffic]:
    if isinstance(results, Run | Traffic):
        return [results]
    given = list(results) if isinstance(results, Sequence) and not isinstance(results, str) else [results]
    for one in given:
        if not isinstance(one, Run | Traffic):
            raise InputError(
                f"a map is drawn from a Run or Traffic, a list of them, or a mapping of labels to them; got {one!r:.80}"
                " (a folder is read by routesim.results.from_results.read_record)"
            )
    return given


def _common_network(networks: Sequence[RoadNetwork | None]) -> RoadNetwork | None:
    first = networks[0]
    for other in networks[1:]:
        # Runs that came from other processes have copies of one network.
        if other is not first and (first is None or other is None or not other.equals(first)):
            raise InputError("results on one map need the same roads; draw a map for each network")
    return first


def record_rounds(groups: Mapping[str, Sequence[Run]], title: str, network: RoadNetwork | None) -> Record:
    """Return the record of replications by label, played for the same rounds on this network or on plain arms."""
    every = [run for runs in groups.values() for run in runs]
    ends = every[0].step_ends
    if any(not np.array_equal(run.step_ends, ends) for run in every):
        raise InputError(f"runs on one map need the same rounds, got {sorted({run.rounds for run in every})}")
    if not all(_has_uses(run) for run in every):
        raise InputError("a run that does not know its edges' uses has no map; make it with rs.run")
    if network is None and not all(_on_arms(run) for run in every):
        raise InputError(
            "these paths have no roads to be drawn on; make the action set with ActionSet.between, on_graph or "
            "from_paths(network, ...)"
        )
    costs = any(_has_costs(run) for run in every)
    sign, measure = (-1.0, "mean cost") if costs else (1.0, "mean reward")
    if costs and network is not None:
        measure = "mean trip, s" if all(run.comparator_rewards is None for run in every) else "mean cost, s"
    totals = _totals((run.paths, run.plays) for run in every)
    routes = _most_played(totals)
    if network is None:
        routes = sorted(totals if len(totals) <= MOST_ROUTES else routes)
    edges = np.unique(np.concatenate([run.edge_uses.edges for run in every if run.edge_uses])).astype(np.int32)
    return Record(
        title,
        "rounds",
        float(max(run.window or 0 for run in every)),
        measure,
        ends.astype(np.float64),
        edges,
        tuple(routes),
        tuple(_played_rounds(label, runs, edges, routes, sign) for label, runs in groups.items()),
        network,
        _best(groups, sign),
    )


def can_be_drawn(run: Run) -> bool:
    """Say whether a run knows enough to be drawn: what its edges were used for, and its roads unless it is on arms."""
    return _has_uses(run) and (run.network is not None or _on_arms(run))


def _has_costs(run: Run) -> bool:
    return bool(run.expected_rewards.max() <= 0 > run.expected_rewards.min())


def _has_uses(run: Run) -> bool:
    return run.window is not None and run.edge_uses is not None and len(run.edge_uses.edges) > 0


def _on_arms(run: Run) -> bool:
    return all(len(path) == 1 for path in run.paths)


def _played_rounds(
    label: str, runs: Sequence[Run], edges: NDArray[np.int32], routes: list[Route], sign: float
) -> Played:
    """Return one learner's part, its replications added up."""
    ends = runs[0].step_ends
    spans = np.diff(ends, prepend=0)
    number = {path: place for place, path in enumerate(routes)}
    uses, dear = np.zeros((len(spans), len(edges))), np.zeros((len(spans), len(edges)))
    plays, earned = np.zeros((len(spans), len(routes))), np.zeros(len(routes))
    curves, regret = np.empty((len(runs), len(spans))), np.empty((len(runs), len(spans)))
    for place, run in enumerate(runs):
        if run.edge_uses is not None:
            steps, used, count, ratios = run.edge_uses
            at = steps, np.searchsorted(edges, used)
            uses[at] += count
            dear[at] += count * np.minimum(ratios, _WORST)
        mine = np.array([number.get(path, -1) for path in run.paths], dtype=np.int64)[run.plays[:, 1]]
        shown = mine >= 0
        np.add.at(plays, (run.plays[shown, 0], mine[shown]), run.plays[shown, 2])
        np.add.at(earned, mine[shown], run.play_rewards[shown])
        rewards = np.bincount(run.plays[:, 0], run.play_rewards, len(spans))
        curves[place] = sign * rewards / spans
        regret[place] = _at_steps(run, run.regret) / ends
    length = spans[:, np.newaxis] * len(runs)
    return Played(
        label,
        bool(runs[0].details.get("informed", False)),
        uses / length * max(runs[0].window or 0, 1),
        np.divide(dear, uses, out=np.ones_like(uses), where=uses > 0),
        plays / length,
        _mean_values(sign * earned, plays.sum(axis=0)),
        *mean_curve(curves),
        mean_curve(regret),
        _mean_quantiles([_turned(run.quantiles, sign) for run in runs]),
    )


def _turned(quantiles: Floats, sign: float) -> Floats:
    """Return the percentiles of the negative where the sign is."""
    return quantiles if sign > 0 else -quantiles[::-1]


def _mean_quantiles(sample: Sequence[Floats]) -> Floats | None:
    known = [quantiles for quantiles in sample if np.isfinite(quantiles).all()]
    return np.asarray(np.mean(known, axis=0)) if known else None


def _mean_values(totals: Floats, counts: Floats) -> Floats:
    return np.where(counts > 0, totals / np.maximum(counts, 1.0), np.nan)


def _best(groups: Mapping[str, Sequence[Run]], sign: float) -> dict[str, Floats]:
    """Return what the comparator reached and the bound on it, where these are the same for all learners."""
    curves = [sign * np.mean([_comparator_curve(run) for run in runs], axis=0) for runs in groups.values()]
    bounds = [sign * np.mean([run.comparator_bound for run in runs]) for runs in groups.values()]
    if not (np.allclose(curves, curves[0], rtol=1e-6) and np.allclose(bounds, bounds[0], rtol=1e-6)):
        return {}
    every = [run for runs in groups.values() for run in runs]
    if all(np.isclose(run.comparator_value, run.comparator_bound, rtol=1e-6) for run in every):
        return {"best possible": curves[0]}
    return {"best known": curves[0], "bound in the long run": np.full(len(curves[0]), bounds[0])}


def _comparator_curve(run: Run) -> Floats:
    """Return what the comparator earned a round in each step."""
    if run.comparator_rewards is None:
        return np.full(len(run.step_ends), run.comparator_value)
    totals = _at_steps(run, np.cumsum(run.totals(run.comparator_rewards)))
    return np.asarray(np.diff(totals, prepend=0.0) / np.diff(run.step_ends, prepend=0), dtype=np.float64)


def _at_steps(run: Run, totals: Floats) -> Floats:
    """Return at the ends of steps what has added up at the ends of the rows, and was nothing before the first."""
    return np.interp(run.step_ends, np.concatenate(([0], run.ends)), np.concatenate(([0.0], totals)))


def record_traffic(
    groups: Mapping[str, Sequence[TrafficRun]],
    title: str,
    network: RoadNetwork | None,
    window_s: float,
    *,
    informed: Mapping[str, bool],
    costs: bool,
    references: Mapping[str, float] | None = None,
) -> Record:
    """Return the record of replications by label on this network; `costs` are measured where travellers have them."""
    if network is None:
        raise InputError("traffic needs its road network to be drawn on, got none")
    every = [run for runs in groups.values() for run in runs]
    steps = max(len(run.departures) for run in every)
    edges = np.unique(np.concatenate([rows[:, 1] for run in every for rows in _edge_rows(run)])).astype(np.int32)
    if max(*map(_highest_edge, every), -1) >= network.n_edges:
        raise InputError(f"traffic has edges that are not among the {network.n_edges} of the network")
    if len({(run.start_s, run.bin_s) for run in every}) > 1:
        raise InputError("traffic on one map needs the same start and the same steps of time")
    routes = _most_played(_totals((run.routes, run.plays) for run in every))
    start_s, bin_s = every[0].start_s, every[0].bin_s
    ends = start_s + np.arange(1, steps + 1, dtype=np.float64) * bin_s
    ends[-1] = max(run.end_s for run in every if len(run.departures) == steps)
    windows = window_s / np.diff(ends, prepend=start_s)
    return Record(
        title,
        "seconds",
        window_s,
        "mean cost" if costs else "mean trip, s",
        ends,
        edges,
        tuple(routes),
        tuple(
            replace(
                _played_traffic(label, informed[label], runs, edges, routes, network.free_flow_s[edges], windows),
                standing=_standing(runs, steps, edges),
                physics=physics_of(runs),
                notices=depth_notices(runs, network),
            )
            for label, runs in groups.items()
        ),
        network,
        {name: np.full(len(ends), value) for name, value in (references or {}).items() if np.isfinite(value)},
        start_s,
    )


def _played_traffic(
    label: str,
    informed: bool,
    runs: Sequence[TrafficRun],
    edges: NDArray[np.int32],
    routes: list[Route],
    free_flow_s: Floats,
    windows: Floats,
) -> Played:
    """Return one router's part, its replications added up; `windows` is the window's share of each step."""
    steps, number = len(windows), {route: place for place, route in enumerate(routes)}
    entries, seconds = np.zeros((steps, len(edges))), np.zeros((steps, len(edges)))
    plays, departures = np.zeros((steps, len(routes))), np.zeros(steps)
    trips = np.zeros((len(routes), 2))
    curves = np.full((len(runs), steps), np.nan)
    for place, run in enumerate(runs):
        at = run.loads[:, 0], np.searchsorted(edges, run.loads[:, 1])
        entries[at] += run.loads[:, 2]
        seconds[at] += run.load_seconds
        departures[: len(run.departures)] += run.departures
        there = np.flatnonzero(run.arrived)
        curves[place, there] = run.totals[there] / run.arrived[there]
        mine = np.array([number.get(route, -1) for route in run.routes], dtype=np.int64)
        shown = mine[run.plays[:, 1]] >= 0
        np.add.at(plays, (run.plays[shown, 0], mine[run.plays[shown, 1]]), run.plays[shown, 2])
        np.add.at(trips, mine[mine >= 0], run.route_totals[mine >= 0])
    empty = entries * free_flow_s
    ratios = np.divide(seconds, empty, out=np.ones_like(empty), where=empty > 0)
    # With queues seconds are those within the step, which can be a part of the trips only.
    least = 0.0 if runs[0].standing is None else 1.0
    return Played(
        label,
        informed,
        entries * windows[:, np.newaxis] / len(runs),
        np.clip(ratios, least, _WORST),
        plays / np.maximum(departures, 1)[:, np.newaxis],
        _mean_values(trips[:, 1], trips[:, 0]),
        *mean_curve(curves),
        quantiles=_mean_quantiles([run.quantiles for run in runs]),
        overall=plays.sum(axis=0) / max(departures.sum(), 1),
    )


def _highest_edge(run: TrafficRun) -> int:
    return int(max(run.route_edges.max(initial=-1), *(rows[:, 1].max(initial=-1) for rows in _edge_rows(run))))


def _edge_rows(run: TrafficRun) -> list[NDArray[np.int64]]:
    """Return the rows (step, edge, …) of loads, and of queues where there are any."""
    return [run.loads] if run.standing_at is None else [run.loads, run.standing_at]


def _standing(runs: Sequence[TrafficRun], steps: int, edges: NDArray[np.int32]) -> RoadQueues | None:
    """Return the vehicles on the roads of a router, None where roads do not queue."""
    rows = [(run.standing_at, run.standing) for run in runs]
    known = [(at, vehicles) for at, vehicles in rows if at is not None and vehicles is not None]
    if len(known) < len(runs):
        return None
    return RoadQueues.of_rows(known, steps, edges, float(runs[0].summary.get("jam_density_per_km", JAM_DENSITY_PER_KM)))


def _totals(played: Iterable[tuple[Sequence[Route], NDArray[np.int64]]]) -> dict[Route, float]:
    """Return how often each path was recommended in all, from paths and rows (step, number of the path, uses)."""
    totals: dict[Route, float] = {}
    for paths, plays in played:
        counts = np.bincount(plays[:, 1], plays[:, 2], len(paths))
        for path, count in zip(paths, counts.tolist(), strict=True):
            totals[path] = totals.get(path, 0.0) + count
    return totals


def _most_played(totals: Mapping[Route, float]) -> list[Route]:
    """Return the paths with the largest totals, the largest first; equal ones in the order they came."""
    return sorted((path for path in totals if totals[path] > 0), key=lambda path: -totals[path])[:MOST_ROUTES]
