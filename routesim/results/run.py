"""Run: what happened in one run, as flat arrays; regret, summary, save and load."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints
from routesim.checks import whole
from routesim.errors import InputError, ResultsError
from routesim.roads.network import RoadNetwork
from routesim.rounds.trace import PERCENTILES, STEPS, StepUses, count_plays, equal_ends, row_sums
from routesim.storage.folders import NETWORK, SUMMARY, write_folder, write_json

Scalar: TypeAlias = str | int | float | bool

ROUNDS = "rounds.parquet"
_PLAYS = "plays.parquet"
_USES = "uses.parquet"

SAVED_ROWS = 200_000
"""How many rows of a trace are stored, unless asked otherwise."""


@dataclass(frozen=True, eq=False)
class Run:
    """One learner in one environment with one seed, round by round.

    Regret is policy regret: the comparator is the best stationary policy under the true rewards, playing on its
    own history, and earns `comparator_value` a round in the long run. Where rounds have contexts it plays the same
    ones, and earns `comparator_rewards`, of which `comparator_value` is the mean over all rounds. Expected regret
    leaves the noise out, realised regret has it in. `actions` are numbers of `paths`, which are tuples of edge indices.

    A thinned run has one row for a stretch of rounds: `ends` says after how many rounds each row ends (None: a row a
    round), rewards are means over its rounds, and its action is the last. All properties have one value a row, which
    is that after the round where the row ends. The fields called `recorded` then hold what rows do not tell.

    `edge_uses` says how often each edge was used in each step of time, and how dear it was to those who used it;
    `window` and the `network` are those of the environment. A run that knows them shows itself as a map.
    """

    learner: str
    actions: NDArray[np.int32]
    expected_rewards: Floats
    rewards: Floats
    comparator_value: float
    comparator_bound: float
    seed: int
    replication: int = 0
    paths: tuple[tuple[int, ...], ...] = ()
    details: Mapping[str, Scalar] = field(default_factory=dict)
    comparator_rewards: Floats | None = None
    ends: Ints | None = None
    recorded_plays: Ints | None = None
    recorded_play_rewards: Floats | None = None
    recorded_quantiles: Floats | None = None
    edge_uses: StepUses | None = None
    window: int | None = None
    network: RoadNetwork | None = None

    @property
    def rounds(self) -> int:
        """The number of rounds played."""
        return len(self.actions) if self.ends is None else int(self.ends[-1])

    @property
    def average_regret(self) -> Floats:
        """After each round: the comparator's value so far minus the mean expected reward so far."""
        return self._comparator_mean - self._running_mean(self.expected_rewards)

    @property
    def average_regret_upper(self) -> Floats:
        """After each round: the proven bound on any policy minus the mean expected reward so far."""
        return self.comparator_bound - self._running_mean(self.expected_rewards)

    @property
    def average_realised_regret(self) -> Floats:
        """After each round: the comparator's value so far minus the mean of the rewards paid so far, noise included."""
        return self._comparator_mean - self._running_mean(self.rewards)

    @property
    def regret(self) -> Floats:
        """After each round: the expected regret so far in all."""
        earned = self.comparator_value if self.comparator_rewards is None else self.comparator_rewards
        return np.cumsum(self._row_sums(earned - self.expected_rewards))

    @property
    def _comparator_mean(self) -> "Floats | float":
        return self.comparator_value if self.comparator_rewards is None else self._running_mean(self.comparator_rewards)

    def _row_sums(self, means: Floats) -> Floats:
        return means if self.ends is None else means * np.diff(self.ends, prepend=0)

    def _running_mean(self, means: Floats) -> Floats:
        ends = np.arange(1, len(means) + 1) if self.ends is None else self.ends
        return np.cumsum(self._row_sums(means)) / ends

    def _mean(self, means: Floats) -> float:
        return float(means.mean()) if self.ends is None else float(self._row_sums(means).sum() / self.rounds)

    @property
    def step_ends(self) -> Ints:
        """After how many rounds each of at most 48 equal steps ends; the last may be shorter."""
        return equal_ends(self.rounds, STEPS)

    @property
    def plays(self) -> Ints:
        """How often each action was recommended in each step, as rows (step, action, uses); none for no use."""
        return self._counted[0]

    @property
    def play_rewards(self) -> Floats:
        """What the plays of each row of `plays` were expected to earn in all."""
        return self._counted[1]

    @property
    def quantiles(self) -> Floats | None:
        """The percentiles 0 to 100 of the expected rewards of rounds; None if only means are known.

        Those of long runs that were thinned while they were played come from a sample of the rounds, and the least and
        the largest from all.
        """
        if self.recorded_quantiles is not None or self.ends is not None:
            return self.recorded_quantiles
        return np.asarray(np.percentile(self.expected_rewards, PERCENTILES))

    @cached_property
    def _counted(self) -> tuple[Ints, Floats]:
        if self.recorded_plays is not None and self.recorded_play_rewards is not None:
            return self.recorded_plays, self.recorded_play_rewards
        if self.ends is not None:
            raise InputError("this run keeps only some of its rounds, and nobody counted its plays")
        return count_plays(self.actions, self.expected_rewards, self.step_ends)

    def thinned(self, keep: int) -> Self:
        """Return this run with at most `keep` rows of equal numbers of rounds; itself if it has no more already."""
        group = -(-len(self.actions) // whole("keep", keep, least=1))
        if group == 1:
            return self
        ends = np.arange(1, self.rounds + 1) if self.ends is None else self.ends
        last = np.minimum(np.arange(group, len(ends) + group, group), len(ends)) - 1
        kept = ends[last]

        def thin(means: Floats) -> Floats:
            rows: Floats = row_sums(self._row_sums(means), group) / np.diff(kept, prepend=0)
            return rows

        return replace(
            self,
            actions=self.actions[last],
            expected_rewards=thin(self.expected_rewards),
            rewards=thin(self.rewards),
            comparator_rewards=None if self.comparator_rewards is None else thin(self.comparator_rewards),
            ends=kept,
            recorded_plays=self.plays,
            recorded_play_rewards=self.play_rewards,
            recorded_quantiles=self.quantiles,
        )

    def summary(self) -> dict[str, Scalar]:
        """Return the run in a few numbers."""
        mean_reward = self._mean(self.expected_rewards)
        mean_realised = self._mean(self.rewards)
        return {
            "learner": self.learner,
            "rounds": self.rounds,
            "seed": self.seed,
            "replication": self.replication,
            "comparator_value": self.comparator_value,
            "comparator_bound": self.comparator_bound,
            "mean_reward": mean_reward,
            "mean_realised_reward": mean_realised,
            "average_regret": self.comparator_value - mean_reward,
            "average_regret_upper": self.comparator_bound - mean_reward,
            "average_realised_regret": self.comparator_value - mean_realised,
            **self.details,
        }

    def _repr_html_(self) -> str:
        """Show the map of what was recommended, the summary and the curve of the average regret in a notebook."""
        from routesim.report.notebook import run_html  # upward on purpose: nothing else here draws

        return run_html(self)

    def save(self, folder: str | Path, keep: int = SAVED_ROWS) -> None:
        """Write the run into a new folder, or replace an earlier result there; at most `keep` rows of it.

        `summary.json` has the summary, the paths, and of rows the percentiles of what rounds were expected to earn.
        `rounds.parquet` has, for each round or row of rounds, the number of its (last) `action`, the (mean)
        `expected_reward` without noise and `reward` with it, where rounds have contexts the (mean) `comparator_reward`,
        and for rows the `round` after which each ends. `plays.parquet`, beside rows only, has how many `uses` each
        `action` had in each `step`, of those that `step_ends` tells, and the `reward` expected of them in all.
        `uses.parquet` has the `uses` of each `edge` in each `step` and the `ratio`, how many times dearer than empty it
        was then; `network.npz` the roads, where they are known.
        """
        run = self.thinned(keep)

        def write(target: Path) -> None:
            import pyarrow as pa
            from pyarrow import parquet

            columns = {
                "action": run.actions,
                "expected_reward": run.expected_rewards,
                "reward": run.rewards,
            }
            if run.comparator_rewards is not None:
                columns["comparator_reward"] = run.comparator_rewards
            if run.ends is not None:
                columns["round"] = run.ends
                plays = dict(zip(_PLAY_COLUMNS, (*run.plays.T, run.play_rewards), strict=True))
                parquet.write_table(pa.table(plays), target / _PLAYS, compression="zstd")
            parquet.write_table(pa.table(columns), target / ROUNDS)
            if run.edge_uses is not None:
                uses = pa.table(dict(zip(_USE_COLUMNS, run.edge_uses, strict=True)))
                parquet.write_table(uses, target / _USES, compression="zstd")
            if run.network is not None:
                run.network.save(target / NETWORK)
            quantiles = None if run.recorded_quantiles is None else run.recorded_quantiles.tolist()
            about = {"window": run.window, "quantiles": quantiles, "paths": run.paths}
            write_json(target / SUMMARY, {**run.summary(), **about})

        write_folder(folder, write)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what `save` wrote."""
        source = Path(folder)
        try:
            from pyarrow import parquet

            summary = json.loads((source / SUMMARY).read_text(encoding="utf-8"))
            table = parquet.read_table(source / ROUNDS)
            known = {name: kind(summary.pop(name)) for name, kind in _FIELDS.items()}
            paths = tuple(tuple(int(edge) for edge in path) for path in summary.pop("paths"))
            compared = table["comparator_reward"] if "comparator_reward" in table.column_names else None
            window, quantiles = summary.pop("window", None), summary.pop("quantiles", None)
            ends, plays, earned, uses = None, None, None, None
            if "round" in table.column_names:
                ends = table["round"].to_numpy().astype(np.int64)
                *counted, earned = _columns(source / _PLAYS, _PLAY_COLUMNS)
                plays = np.column_stack(counted)
            if (source / _USES).exists():
                uses = StepUses(*_columns(source / _USES, _USE_COLUMNS))
            run = cls(
                comparator_rewards=None if compared is None else compared.to_numpy().astype(np.float64),
                actions=table["action"].to_numpy().astype(np.int32),
                expected_rewards=table["expected_reward"].to_numpy().astype(np.float64),
                rewards=table["reward"].to_numpy().astype(np.float64),
                paths=paths,
                details={name: value for name, value in summary.items() if name not in _DERIVED},
                ends=ends,
                recorded_plays=plays,
                recorded_play_rewards=earned,
                recorded_quantiles=None if quantiles is None else np.array(quantiles, dtype=np.float64),
                edge_uses=uses,
                window=None if window is None else int(window),
                network=RoadNetwork.from_file(source / NETWORK) if (source / NETWORK).exists() else None,
                **known,
            )
            run._check_rows(int(summary["rounds"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
            raise ResultsError(f"{source} holds no run that can be read: {problem}") from problem
        return run

    def _check_rows(self, rounds: int) -> None:
        if not len(self.actions) or self.actions.min() < 0:
            raise ValueError("a run has at least one row, with actions numbered from 0")
        if self.window is not None and self.window < 0:
            raise ValueError(f"the window must be at least 0, got {self.window}")
        if self.ends is not None and np.diff(self.ends, prepend=0).min() < 1:
            raise ValueError("rows must end one after the other")
        if self.rounds != rounds:
            raise ValueError(f"the rows end after {self.rounds:,} rounds, and the summary tells of {rounds:,}")
        if self.recorded_plays is not None:
            step, action, uses = self.recorded_plays.T
            inside = len(step) and step.min() >= 0 and step.max() < len(self.step_ends) and action.min() >= 0
            if not inside or not np.array_equal(
                np.bincount(step, uses, len(self.step_ends)), np.diff(self.step_ends, prepend=0)
            ):
                raise ValueError("the plays of each step must be as many as its rounds")
        most = max(self.actions.max(), self.recorded_plays[:, 1].max() if self.recorded_plays is not None else 0)
        if self.paths and most >= len(self.paths):
            raise ValueError(f"there are {len(self.paths)} paths, and an action has the number {most}")
        if self.recorded_quantiles is not None and self.recorded_quantiles.shape != PERCENTILES.shape:
            raise ValueError(f"quantiles are {len(PERCENTILES)} numbers, got {self.recorded_quantiles.shape}")
        if self.edge_uses is not None:
            steps, edges, uses, ratios = self.edge_uses
            most = np.inf if self.network is None else self.network.n_edges
            inside = (steps >= 0) & (steps < len(self.step_ends)) & (edges >= 0) & (edges < most)
            if not (inside & (uses > 0) & (ratios > 0)).all():
                raise ValueError("uses of edges must be of steps and edges that there are, and above 0")


_PLAY_COLUMNS = ("step", "action", "uses", "reward")
_USE_COLUMNS = ("step", "edge", "uses", "ratio")  # of both tables the last holds fractions, the others whole numbers


def _columns(path: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    from pyarrow import parquet

    table = parquet.read_table(path)
    *whole_numbers, fraction = names
    columns: list[NDArray[Any]] = [table[name].to_numpy().astype(np.int64) for name in whole_numbers]
    known = fraction in table.column_names  # plays of before 0.1.0 have no rewards
    return [*columns, table[fraction].to_numpy().astype(np.float64) if known else np.full(len(table), np.nan)]


_FIELDS: dict[str, Callable[[Any], Any]] = {
    "learner": str,
    "seed": int,
    "replication": int,
    "comparator_value": float,
    "comparator_bound": float,
}
_DERIVED = (
    "rounds",
    "mean_reward",
    "mean_realised_reward",
    "average_regret",
    "average_regret_upper",
    "average_realised_regret",
)
