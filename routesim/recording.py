"""Results -> Record: what learners did on the same roads, in rounds or in traffic, step by step in time."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.errors import InputError
from routesim.network import RoadNetwork
from routesim.record import RECORD, Curve, Played, Record
from routesim.results import ROUNDS, Run
from routesim.traffic import Traffic
from routesim.traffic_run import TrafficRun

Floats: TypeAlias = NDArray[np.float64]
Route: TypeAlias = tuple[int, ...]
Results: TypeAlias = (
    Run | Traffic | Sequence[Run] | Sequence[Traffic] | Mapping[str, Run | Traffic | Sequence[Run] | Sequence[Traffic]]
)
"""A result, replications of it, several learners' in a list, or by the labels they are to have."""

MOST_ROUTES = 40
_WORST = 99.0  # an edge that pays nothing any more is shown as so many times dearer


def record(results: Results, title: str = "") -> Record:
    """Return the record of runs, or of traffic, of one or more learners on the same roads.

    In a list those of one learner or router are replications, which are averaged.
    """
    groups = _groups(results)
    names = list(groups)
    title = title or f"What {' and '.join(names) if len(names) < 3 else f'{len(names)} learners'} recommended"
    every = [one for group in groups.values() for one in group]
    if all(isinstance(one, Run) for one in every):
        return record_rounds(groups, title, _common_network([one.network for one in every]))
    if not all(isinstance(one, Traffic) for one in every):
        kinds = ", ".join(sorted({type(one).__name__ for one in every}))
        raise InputError(f"a map is drawn from runs or from traffic, not from {kinds} together")
    if len({(one.window_s, one.bin_s) for one in every}) > 1:
        raise InputError("traffic on one map needs the same window_s and bin_s; run the same simulator for all")
    return record_traffic(
        {label: [TrafficRun.of(one, 0.0, np.inf) for one in group] for label, group in groups.items()},
        title,
        _common_network([one.network for one in every]),
        every[0].window_s,
        informed={label: group[0].informed for label, group in groups.items()},
        costs=every[0].trip_cost is not None,
    )


def read_record(folder: str | Path) -> Record:
    """Return the record of a result folder of `routesim run`, or that of a run which `Run.save` wrote."""
    source = Path(folder)
    if not (source / RECORD).exists() and (source / ROUNDS).exists():
        return record(Run.load(source))
    return Record.read(source)


def _groups(results: Results) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    if isinstance(results, Mapping):
        found = {str(label): [one] if isinstance(one, Run | Traffic) else list(one) for label, one in results.items()}
    else:
        for one in [results] if isinstance(results, Run | Traffic) else results:
            name = one.learner if isinstance(one, Run) else getattr(one, "router", type(one).__name__)
            found.setdefault(name, []).append(one)
    if not found or not all(found.values()):
        raise InputError("a map needs at least one run or traffic of each learner, got none")
    return found


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
    if any(run.edge_uses is None or run.window is None for run in every):
        raise InputError("a run that does not know its edges' uses has no map; make it with rs.run")
    if network is None and not all(_on_arms(run) for run in every):
        raise InputError(
            "these paths have no roads to be drawn on; make the action set with ActionSet.between, on_graph or "
            "from_paths(network, ...)"
        )
    costs = all(run.expected_rewards.max() <= 0 for run in every) and any(
        run.expected_rewards.min() < 0 for run in every
    )
    sign, measure = (-1.0, "mean cost") if costs else (1.0, "mean reward")
    if costs and network is not None:
        measure = "mean trip, s" if every[0].comparator_rewards is None else "mean cost, s"
    totals = _totals((run.paths, run.plays) for run in every)
    routes = sorted(totals)[:MOST_ROUTES] if network is None else _most_played(totals)
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
    return run.edge_uses is not None and run.window is not None and (run.network is not None or _on_arms(run))


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
        regret[place] = np.cumsum(_comparator_curve(run) * spans - rewards) / ends
    length = spans[:, np.newaxis] * len(runs)
    return Played(
        label,
        bool(runs[0].details.get("informed", False)),
        uses / length * max(runs[0].window or 0, 1),
        np.divide(dear, uses, out=np.ones_like(uses), where=uses > 0),
        plays / length,
        _mean_values(sign * earned, plays.sum(axis=0)),
        *mean_band(curves),
        mean_band(regret),
        _mean_quantiles([_turned(run.quantiles, sign) for run in runs]),
    )


def _turned(quantiles: Floats | None, sign: float) -> Floats | None:
    """Return the percentiles of the negative where the sign is."""
    return quantiles if quantiles is None or sign > 0 else -quantiles[::-1]


def _mean_quantiles(sample: Sequence[Floats | None]) -> Floats | None:
    known = [quantiles for quantiles in sample if quantiles is not None and np.isfinite(quantiles).all()]
    return np.asarray(np.mean(known, axis=0)) if known else None


def _mean_values(totals: Floats, counts: Floats) -> Floats:
    return np.where(counts > 0, totals / np.maximum(counts, 1.0), np.nan)


def _best(groups: Mapping[str, Sequence[Run]], sign: float) -> dict[str, Floats]:
    """Return what the comparator reached and what nobody can beat, where these are the same for all learners."""
    curves, bounds = (
        [sign * np.mean([one(run) for run in runs], axis=0) for runs in groups.values()]
        for one in (_comparator_curve, _bound_curve)
    )
    best, bound = curves[0], bounds[0]
    if not (np.allclose(curves, best, rtol=1e-6) and np.allclose(bounds, bound, rtol=1e-6)):
        return {}
    if np.allclose(best.mean(), bound.mean(), rtol=1e-6):
        return {"best possible": best}
    return {"best known": best, "nobody can beat": bound}


def _bound_curve(run: Run) -> Floats:
    return np.full(len(run.step_ends), run.comparator_bound)


def _comparator_curve(run: Run) -> Floats:
    """Return the mean of each step, from totals at the ends of the rows."""
    if run.comparator_rewards is None:
        return np.full(len(run.step_ends), run.comparator_value)
    ends = np.arange(1, run.rounds + 1) if run.ends is None else run.ends
    totals = np.concatenate(([0.0], np.cumsum(run.comparator_rewards * np.diff(ends, prepend=0))))
    at = np.interp(run.step_ends, np.concatenate(([0], ends)), totals)
    return np.asarray(np.diff(at, prepend=0.0) / np.diff(run.step_ends, prepend=0), dtype=np.float64)


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
    # Before the first departure there is nothing to see.
    first = min(int(np.argmax(run.departures > 0)) for run in every)
    edges = np.unique(np.concatenate([run.loads[:, 1] for run in every])).astype(np.int32)
    routes = _most_played(_totals((run.routes, run.plays) for run in every))
    ends = (np.arange(first, steps, dtype=np.float64) + 1.0) * every[0].bin_s
    return Record(
        title,
        "seconds",
        window_s,
        "mean cost" if costs else "mean trip, s",
        ends,
        edges,
        tuple(routes),
        tuple(
            _played_traffic(label, informed[label], runs, edges, routes, steps, network, window_s).since(first)
            for label, runs in groups.items()
        ),
        network,
        {name: np.full(len(ends), value) for name, value in (references or {}).items() if np.isfinite(value)},
    )


def _played_traffic(
    label: str,
    informed: bool,
    runs: Sequence[TrafficRun],
    edges: NDArray[np.int32],
    routes: list[Route],
    steps: int,
    network: RoadNetwork,
    window_s: float,
) -> Played:
    """Return one router's part, its replications added up."""
    number = {route: place for place, route in enumerate(routes)}
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
    empty = entries * network.free_flow_s[edges]
    ratios = np.divide(seconds, empty, out=np.ones_like(empty), where=empty > 0)
    return Played(
        label,
        informed,
        entries * window_s / runs[0].bin_s / len(runs),
        np.minimum(ratios, _WORST),
        plays / np.maximum(departures, 1)[:, np.newaxis],
        _mean_values(trips[:, 1], trips[:, 0]),
        *mean_band(curves),
        quantiles=_mean_quantiles([run.quantiles for run in runs]),
    )


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


def mean_band(sample: Floats) -> Curve:
    """Return the mean over the rows and its 95 % band, leaving out what is not a number."""
    from scipy.special import stdtrit

    known = np.isfinite(sample)
    n = known.sum(axis=0)
    mean = np.where(n > 0, np.where(known, sample, 0.0).sum(axis=0) / np.maximum(n, 1), np.nan)
    squares = np.where(known, (sample - mean) ** 2, 0.0).sum(axis=0)
    half = stdtrit(np.maximum(n - 1, 1), 0.975) * np.sqrt(squares / np.maximum(n - 1, 1) / np.maximum(n, 1))
    return Curve(mean, mean - half, mean + half)
