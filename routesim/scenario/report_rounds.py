"""The report of rounds: regret on arms, travel times on roads, and the record of loads and routes."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.environment import RoundEnvironment
from routesim.network import RoadNetwork
from routesim.record import Played, Record
from routesim.results import Band, Run, Scalar, regret_band
from routesim.reward_checks import congestion_table
from routesim.scenario.kinds import AnyScenario, CityScenario
from routesim.scenario.reports import Report, Row, half_band, mean_band, most_played, standard_error
from routesim.scenario.units import Unit, city_environment

Floats: TypeAlias = NDArray[np.float64]
Group: TypeAlias = tuple[dict[str, Scalar], str, list[Run]]

MOST_ROUTES = 40
TRACE_ROWS = 1000
_FIXED = ("ShortestPath", "RandomPath")  # they learn nothing
_WORST = 99.0  # an arm that pays nothing any more is shown as so many times dearer


def report_rounds(scenario: AnyScenario, parts: Mapping[Unit, Run]) -> Report:
    """Return the report of a scenario of arms or of roads in rounds."""
    groups = _groups(parts)
    panels: dict[str, dict[str, Band]] = {}
    for setting, label, runs in groups:
        panels.setdefault(words(setting), {})[label] = regret_band(runs)
    labels = {label for _, label, _ in groups}
    if len(panels) > len(labels):  # one panel for each learner, or for each setting, whichever are fewer
        turned: dict[str, dict[str, Band]] = {}
        for title, bands in panels.items():
            for label, band in bands.items():
                turned.setdefault(label, {})[title] = band
        panels = turned
    record = _record(scenario, groups)
    if isinstance(scenario, CityScenario):
        rows = [_city_row(label, runs) for _, label, runs in groups]
        told = _tell_city(scenario, rows)
    else:
        rows = [_regret_row(setting, label, runs) for setting, label, runs in groups]
        told = _tell_arms(scenario, rows, groups)
    return Report(record, rows, *told, panels, _trace(groups))


def words(setting: Mapping[str, Scalar]) -> str:
    """Return a setting in words."""
    return ", ".join(f"{name} {value}" for name, value in setting.items())


def _groups(parts: Mapping[Unit, Run]) -> list[Group]:
    """Return the replications of each setting and learner, in the order of the scenario."""
    found: dict[tuple[int, int], Group] = {}
    for unit in sorted(parts, key=lambda one: (one.setting_number, one.learner, one.replication)):
        place = unit.setting_number, unit.learner
        found.setdefault(place, (dict(unit.setting), unit.label, []))[2].append(parts[unit])
    return list(found.values())


def milestones(rounds: int) -> list[int]:
    """Return the powers of ten from 1,000 on that fit into `rounds`, and `rounds` itself."""
    return [*(10**power for power in range(3, 19) if 10**power < rounds), rounds]


def _regret_row(setting: dict[str, Scalar], label: str, runs: Sequence[Run]) -> Row:
    """Return the average regret at each milestone with the half width of its band."""
    row: Row = {**setting, "learner": label, "informed": bool(runs[0].details.get("informed", False))}
    row["mean_reward"] = _round(np.mean([_mean(run) for run in runs]))
    row["best_possible"] = _round(np.mean([run.comparator_value for run in runs]))
    for number in milestones(runs[0].rounds):
        values = [float(_at(run, run.average_regret, number)) for run in runs]
        row[f"average_regret_{number}"] = _round(np.mean(values))
        row[f"plus_minus_{number}"] = _round(half_band(values))
    return row


def _tell_arms(scenario: Any, rows: list[Row], groups: list[Group]) -> tuple[str, list[str], list[list[str]], str]:
    marks = milestones(groups[0][2][0].rounds)
    columns = [*groups[0][0], "learner", *(f"{number:,}" for number in marks)]
    cells = [
        [
            *(str(row[name]) for name in columns[: len(groups[0][0]) + 1]),
            *(f"{row[f'average_regret_{number}']:.4f} ± {row[f'plus_minus_{number}']:.4f}" for number in marks),
        ]
        for row in rows
    ]
    heading = f"average regret by rounds, mean ± 95 % band over {scenario.replications} replications"
    last = f"average_regret_{marks[-1]}"
    learning = [row for row in rows if not row["informed"]] or rows
    best = min(learning, key=lambda row: float(row[last]))
    where = words({name: best[name] for name in groups[0][0]})
    share = float(best["mean_reward"]) / float(best["best_possible"]) if float(best["best_possible"]) > 0 else 1.0
    verdict = (
        f"{best['learner']} did best of those that had to learn ({where}): it lost {float(best[last]):.4f} a round "
        f"against the best possible, and earned {share:.1%} of it over all rounds."
    )
    return heading, columns, cells, verdict


def _city_row(label: str, runs: Sequence[Run]) -> Row:
    """Return one learner's trips: over all rounds, and in the end, which is the last tenth of them.

    A trip that bothers its traveller counts for more than its seconds. `plus_minus_s` is the half width of the 95 %
    band of the mean over all rounds; `best_possible_s` and `best_in_the_end_s` are what the comparator reached, and
    `bound_s` is what nobody can go below.
    """
    trips = [-_mean(run) for run in runs]
    late = [-_late(run, run.expected_rewards) for run in runs]
    compared = [run.comparator_rewards for run in runs]
    best_late = [
        -run.comparator_value if rewards is None else -_late(run, rewards)
        for run, rewards in zip(runs, compared, strict=True)
    ]
    end, best_end = float(np.mean(late)), float(np.mean(best_late))
    return {
        "learner": label,
        "informed": bool(runs[0].details.get("informed", False)),
        "mean_trip_s": _round(np.mean(trips)),
        "plus_minus_s": _round(half_band(trips)),
        "mean_trip_in_the_end_s": _round(end),
        "standard_error_s": _round(standard_error(late)),
        "best_possible_s": _round(-np.mean([run.comparator_value for run in runs])),
        "best_in_the_end_s": _round(best_end),
        "bound_s": _round(-np.mean([run.comparator_bound for run in runs])),
        "above_best": _round(end / best_end - 1),
    }


def _tell_city(scenario: CityScenario, rows: list[Row]) -> tuple[str, list[str], list[list[str]], str]:
    measure = "mean trip, s" if scenario.city.travellers is None else "mean cost, s"
    columns = ["learner", measure, "in the end, s", "above the best possible"]
    cells = [
        [
            str(row["learner"]),
            f"{row['mean_trip_s']:.1f} ± {row['plus_minus_s']:.1f}",
            f"{row['mean_trip_in_the_end_s']:.1f} ± {row['standard_error_s']:.1f}",
            f"{round(float(row['above_best']), 3) + 0.0:+.1%}",
        ]
        for row in rows
    ]
    found = city_environment(scenario).actions.n_actions
    routes = "every path of the graph" if found is None else f"{found} routes"
    if found is not None and found < scenario.city.routes and scenario.city.method != "all":
        routes += f" (of {scenario.city.routes} asked for)"
    heading = f"{routes}, {scenario.rounds:,} trips, {scenario.replications} replications"
    if float(rows[0]["bound_s"]) < float(rows[0]["best_possible_s"]) * (1 - 1e-9):
        heading += (
            f"; the best plan known takes {rows[0]['best_possible_s']:.1f} s, nobody can take less than "
            f"{rows[0]['bound_s']:.1f} s"
        )
    return heading, columns, cells, _city_verdict(rows)


def _city_verdict(rows: list[Row]) -> str:
    learning = [row for row in rows if not row["informed"] and not str(row["learner"]).startswith(_FIXED)]
    best = min(learning or rows, key=lambda row: float(row["mean_trip_in_the_end_s"]))
    trip = float(best["mean_trip_in_the_end_s"])
    told = (
        f"{best['learner']} did best{' of those that had to learn' if learning else ''}: {trip:.1f} s a trip in the "
        f"end, {abs(float(best['above_best'])):.1%} from the best possible"
    )
    fixed = next((row for row in rows if str(row["learner"]).startswith("ShortestPath")), best)
    if fixed is best:
        return f"{told}."
    saved = 1 - trip / float(fixed["mean_trip_in_the_end_s"])
    return f"{told}, and {saved:.0%} less than sending everyone down the shortest path."


def _record(scenario: AnyScenario, groups: list[Group]) -> Record:
    environment = city_environment(scenario) if isinstance(scenario, CityScenario) else None
    network = scenario.city.network() if isinstance(scenario, CityScenario) else None
    window = (
        scenario.city.window if isinstance(scenario, CityScenario) else max(int(one[0]["window"]) for one in groups)
    )
    totals: dict[tuple[int, ...], float] = {}
    for _, _, runs in groups:
        for run in runs:
            uses = np.bincount(run.plays[:, 1], run.plays[:, 2], len(run.paths))
            for path, count in zip(run.paths, uses.tolist(), strict=True):
                totals[path] = totals.get(path, 0.0) + count
    routes = most_played({path: count for path, count in totals.items() if count > 0}, MOST_ROUTES)
    if environment is None:
        routes = sorted(totals)[:MOST_ROUTES]
    edges = np.array(sorted({edge for path, count in totals.items() if count > 0 for edge in path}), dtype=np.int32)
    shared = _Shared(scenario, environment, network, edges, routes)
    several = len({words(setting) for setting, _, _ in groups}) > 1
    learners = []
    for setting, label, runs in groups:
        name = f"{words(setting)}: {label}" if several else label
        learners.append(shared.played(name, setting, runs))
    first = groups[0][2]
    best = {"best possible": shared.sign * np.mean([_best_curve(run) for run in first], axis=0)} if not several else {}
    measure = "mean reward" if environment is None else "mean trip, s"
    if isinstance(scenario, CityScenario) and scenario.city.travellers is not None:
        measure = "mean cost, s"
    return Record(
        scenario.title,
        "rounds",
        float(window),
        measure,
        first[0].step_ends.astype(np.float64),
        edges,
        tuple(routes),
        tuple(learners),
        network,
        best,
    )


class _Shared:
    """What the learners of one record share: edges, routes, and how a load makes an edge dearer."""

    def __init__(
        self,
        scenario: Any,
        environment: RoundEnvironment | None,
        network: RoadNetwork | None,
        edges: NDArray[np.int32],
        routes: list[tuple[int, ...]],
    ) -> None:
        self.curve = getattr(scenario, scenario.section).congestion.make()
        self.environment, self.network, self.edges, self.routes = environment, network, edges, routes
        self.sign = -1.0 if environment is not None else 1.0

    def ratios(self, loads: Floats, window: int) -> Floats:
        """Return how many times dearer than empty each edge is at its load, on lines between whole counts."""
        if self.environment is None:
            table = congestion_table(self.curve, len(self.edges), window)
        else:
            places = np.searchsorted(self.environment.actions.edges, self.edges)
            table = congestion_table(self.curve, self.environment.actions.n_edges, window)[places]
        at = [np.interp(loads[:, edge], np.arange(window + 1), table[edge]) for edge in range(len(self.edges))]
        multiplier = np.stack(at, axis=1) if at else np.ones_like(loads)
        ratio = multiplier / table[:, 0] if self.sign < 0 else table[:, 0] / np.maximum(multiplier, 1e-9)
        return np.minimum(ratio, _WORST)

    def played(self, name: str, setting: Mapping[str, Scalar], runs: Sequence[Run]) -> Played:
        """Return one learner's part of the record, its replications added up."""
        window = self.environment.window if self.environment is not None else int(setting["window"])
        ends = runs[0].step_ends
        length = np.diff(ends, prepend=0)[:, np.newaxis] * len(runs)
        place = {path: number for number, path in enumerate(self.routes)}
        uses, plays = np.zeros((len(ends), len(self.edges))), np.zeros((len(ends), len(self.routes)))
        for run in runs:
            for action in np.unique(run.plays[:, 1]).tolist():
                mine = run.plays[run.plays[:, 1] == action]
                path = run.paths[action]
                uses[mine[:, :1], np.searchsorted(self.edges, path)] += mine[:, 2:]
                if path in place:
                    plays[mine[:, 0], place[path]] += mine[:, 2]
        loads, shares = uses / length * max(window, 1), plays / length
        ratios = self.ratios(np.minimum(loads, window), window)
        sample = np.stack([self.sign * _step_means(run, run.expected_rewards) for run in runs])
        informed = bool(runs[0].details.get("informed", False))
        return Played(name, informed, loads, ratios, shares, self._values(ratios, shares), *mean_band(sample))

    def _values(self, ratios: Floats, shares: Floats) -> Floats:
        """Return what each route takes at the loads of the steps in which it was recommended."""
        if self.network is None:
            return np.full(len(self.routes), np.nan)
        seconds = self.network.free_flow_s[self.edges] * ratios
        times = np.stack([seconds[:, np.searchsorted(self.edges, route)].sum(axis=1) for route in self.routes], axis=1)
        total = shares.sum(axis=0)
        return np.where(total > 0, (times * shares).sum(axis=0) / np.where(total > 0, total, 1.0), np.nan)


def _trace(groups: list[Group]) -> Any:
    """Return every run as at most some thousand rows; see the columns in the reference of results."""
    import pyarrow as pa

    tables = []
    for setting, label, runs in groups:
        for run in runs:
            ends = _ends(run)
            kept = np.unique(np.linspace(0, len(ends) - 1, min(len(ends), TRACE_ROWS)).round().astype(np.int64))
            columns: dict[str, Any] = {
                name: [value] * len(kept) for name, value in {**setting, "learner": label}.items()
            }
            columns |= {
                "replication": np.full(len(kept), run.replication, dtype=np.int32),
                "round": ends[kept],
                "action": run.actions[kept],
                "expected_reward": run.expected_rewards[kept],
                "reward": run.rewards[kept],
                "average_regret": run.average_regret[kept],
                "average_regret_upper": run.average_regret_upper[kept],
                "average_realised_regret": run.average_realised_regret[kept],
            }
            tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def _ends(run: Run) -> NDArray[np.int64]:
    """Return the round at the end of each row of a run."""
    return np.arange(1, run.rounds + 1) if run.ends is None else run.ends


def _at(run: Run, values: Floats, number: int) -> float:
    """Return the value at a round, or at the first row that ends after it."""
    return float(values[min(int(np.searchsorted(_ends(run), number)), len(values) - 1)])


def _mean(run: Run) -> float:
    return float(np.average(run.expected_rewards, weights=np.diff(_ends(run), prepend=0)))


def _late(run: Run, values: Floats) -> float:
    """Return the mean over the last tenth of the rounds, as far as rows can tell."""
    ends = _ends(run)
    rows = ends > run.rounds - max(1, run.rounds // 10)
    return float(np.average(values[rows], weights=np.diff(ends, prepend=0)[rows]))


def _step_means(run: Run, values: Floats) -> Floats:
    """Return the mean of each step, from totals at the ends of the rows."""
    ends = _ends(run)
    totals = np.concatenate(([0.0], np.cumsum(values * np.diff(ends, prepend=0))))
    at = np.interp(run.step_ends, np.concatenate(([0], ends)), totals)
    return np.asarray(np.diff(at, prepend=0.0) / np.diff(run.step_ends, prepend=0), dtype=np.float64)


def _best_curve(run: Run) -> Floats:
    if run.comparator_rewards is None:
        return np.full(len(run.step_ends), run.comparator_value)
    return _step_means(run, run.comparator_rewards)


def _round(value: Any) -> float:
    """Return a number without the last digits, which rounding leaves to chance."""
    return float(f"{float(value):.10g}")
