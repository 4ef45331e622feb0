"""The report of a city scenario: travel times by learner, the routes with their shares, regret and the map."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from routesim.folders import write_json
from routesim.network import RoadNetwork
from routesim.report.plots import plot_regret
from routesim.report.routes_map import recommended_routes, route_shares, write_map
from routesim.results import Run


def write_report(
    folder: Path,
    network: RoadNetwork,
    runs: Mapping[str, Sequence[Run]],
    about: Mapping[str, object],
    title: str,
) -> None:
    """Write `summary.json`, `regret.png` and `map.html`."""
    plot_regret(runs, folder / "regret.png", title=title)
    write_map(folder / "map.html", network, runs, title)
    write_json(
        folder / "summary.json",
        {**about, "table": [row._asdict() for row in table(runs)], "routes": _routes(network, runs)},
    )


class Row(NamedTuple):
    """One learner: its mean trip in seconds, over all rounds and over the last tenth of them.

    A trip that bothers its traveller counts for more than its seconds. `plus_minus_s` is the half width of the 95 %
    band of the mean over all rounds; `best_possible_s` and `best_in_the_end_s` are what the comparator reached.
    """

    learner: str
    informed: bool
    mean_trip_s: float
    plus_minus_s: float
    mean_trip_in_the_end_s: float
    standard_error_s: float
    best_possible_s: float
    best_in_the_end_s: float

    @property
    def above_best(self) -> float:
        """How far the end lies above the best possible, as a fraction."""
        return self.mean_trip_in_the_end_s / self.best_in_the_end_s - 1


def table(runs: Mapping[str, Sequence[Run]]) -> list[Row]:
    """Return one row per learner, over its replications."""
    rows = []
    for label, replications in runs.items():
        best = -float(np.mean([run.comparator_value for run in replications]))
        best_late = -float(np.mean([_late_comparator(run) for run in replications]))
        trips = [-float(run.expected_rewards.mean()) for run in replications]
        late = [-float(run.expected_rewards[-max(1, run.rounds // 10) :].mean()) for run in replications]
        spread = _standard_error(late)
        half = _half_band(trips)
        informed = bool(replications[0].details.get("informed", False))
        ends = float(np.mean(late)), spread
        rows.append(Row(label, informed, float(np.mean(trips)), half, *ends, best, best_late))
    return rows


def _half_band(values: Sequence[float], level: float = 0.95) -> float:
    """Return the half width of the Student-t band of a mean, 0 for a single value."""
    if len(values) < 2:
        return 0.0
    from scipy.special import stdtrit

    return float(stdtrit(len(values) - 1, 0.5 + level / 2)) * _standard_error(values)


def _standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _late_comparator(run: Run) -> float:
    if run.comparator_rewards is None:
        return run.comparator_value
    return float(run.comparator_rewards[-max(1, run.rounds // 10) :].mean())


def verdict(runs: Mapping[str, Sequence[Run]]) -> str:
    """Return in plain words which learner that knows nothing did best in the end, and what it saved."""
    rows = [row for row in table(runs) if not row.informed]
    if not rows:
        return "Every learner here was told the congestion; add one that has to learn it."
    best = min(rows, key=lambda row: row.mean_trip_in_the_end_s)
    trip = best.mean_trip_in_the_end_s
    words = (
        f"{best.learner} did best: {trip:.1f} s a trip in the end, {abs(best.above_best):.1%} from the best possible"
    )
    fixed = next((row for row in rows if row.learner.startswith("ShortestPath")), best)
    if fixed is best:
        return f"{words}."
    saved = 1 - trip / fixed.mean_trip_in_the_end_s
    return f"{words}, and {saved:.0%} less than sending everyone down the shortest path."


def _routes(network: RoadNetwork, runs: Mapping[str, Sequence[Run]]) -> list[dict[str, object]]:
    routes = recommended_routes(runs)
    shares = {label: route_shares(routes, replications).tolist() for label, replications in runs.items()}
    return [
        {
            "route": number + 1,
            "free_flow_s": float(network.free_flow_s[list(path)].sum()),
            "length_m": float(network.length_m[list(path)].sum()),
            "shares": {label: share[number] for label, share in shares.items()},
        }
        for number, path in enumerate(routes)
    ]
