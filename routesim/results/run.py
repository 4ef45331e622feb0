"""Run: what happened in one run, as flat arrays; regret, summary, save and load.

A `Run` has a row for each round, a `ThinnedRun` a row for each stretch of rounds, and both keep one contract.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints, Ints32
from routesim.checks import whole
from routesim.errors import InputError
from routesim.roads.network import RoadNetwork
from routesim.rounds.trace import PERCENTILES, STEPS, KeptRows, KeptTrace, StepUses, count_plays, equal_ends, row_sums
from routesim.storage import reading
from routesim.storage.folders import NETWORK, SUMMARY, write_folder, write_json

Scalar: TypeAlias = str | int | float | bool

ROUNDS = "rounds.parquet"
_PLAYS = "plays.parquet"
_USES = "uses.parquet"
_COMPRESSION = {ROUNDS: "snappy", _PLAYS: "zstd", _USES: "zstd"}

SAVED_ROWS = 200_000
"""How many rows of a trace are stored, unless asked otherwise."""


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """One learner in one environment with one seed, round by round or, as a `ThinnedRun`, in rows of several rounds.

    Regret is policy regret: the comparator is the best stationary policy under the true rewards, playing on its
    own history, and earns `comparator_value` a round in the long run. Where rounds have contexts it plays the same
    ones, and earns `comparator_rewards`, of which `comparator_value` is the mean over all rounds. Expected regret
    leaves the noise out, realised regret has it in. `actions` are numbers of `paths`, which are tuples of edge indices.

    All properties have one value a row, which is that after the round where the row ends; see `ends`.

    `edge_uses` says how often each edge was used in each step of time, and how dear it was to those who used it;
    `window` and the `network` are those of the environment. A run that knows them shows itself as a map.
    """

    learner: str
    actions: Ints32
    expected_rewards: Floats
    rewards: Floats
    comparator_value: float
    comparator_bound: float
    seed: int
    replication: int = 0
    paths: tuple[tuple[int, ...], ...] = ()
    details: Mapping[str, Scalar] = field(default_factory=dict)
    comparator_rewards: Floats | None = None
    edge_uses: StepUses | None = None
    window: int | None = None
    network: RoadNetwork | None = None

    @property
    def rounds(self) -> int:
        """The number of rounds played."""
        return len(self.actions)

    def __repr__(self) -> str:
        regret = self.comparator_value - self.mean_reward
        earned = f"mean trip {self.mean_trip_s:.6g} s" if self._on_roads else f"mean reward {self.mean_reward:.6g}"
        return f"<{type(self).__name__} {self.learner}: {self.rounds} rounds, {earned}, average regret {regret:.3g}>"

    @property
    def _on_roads(self) -> bool:
        return self.network is not None and self.mean_reward < 0

    @property
    def mean_reward(self) -> float:
        """The mean expected reward of all rounds."""
        return self._mean(self.expected_rewards)

    @property
    def mean_trip_s(self) -> float:
        """The mean travel time of all rounds in seconds, where rewards are negative seconds on roads."""
        if not self._on_roads:
            raise InputError("mean_trip_s needs a run on roads, whose rewards are negative seconds; use mean_reward")
        return -self.mean_reward

    @cached_property
    def ends(self) -> Ints:
        """After how many rounds each row ends."""
        return np.arange(1, len(self.actions) + 1)

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
        return np.cumsum(self.totals(earned - self.expected_rewards))

    @property
    def _comparator_mean(self) -> "Floats | float":
        return self.comparator_value if self.comparator_rewards is None else self._running_mean(self.comparator_rewards)

    def totals(self, means: Floats) -> Floats:
        """Return what the rounds of each row add up to, of which `means` has the mean of each row."""
        return means

    def _running_mean(self, means: Floats) -> Floats:
        return np.cumsum(self.totals(means)) / self.ends

    def _mean(self, means: Floats) -> float:
        return float(self.totals(means).sum() / self.rounds)

    @property
    def step_ends(self) -> Ints:
        """After how many rounds each of at most 48 equal steps ends; the last may be shorter."""
        return equal_ends(self.rounds, STEPS)

    @cached_property
    def plays(self) -> Ints:
        """How often each action was recommended in each step, as rows (step, action, uses); none for no use."""
        return self._counted[0]

    @cached_property
    def play_rewards(self) -> Floats:
        """What the plays of each row of `plays` were expected to earn in all."""
        return self._counted[1]

    @cached_property
    def quantiles(self) -> Floats:
        """The percentiles 0 to 100 of the expected rewards of rounds.

        Those of long runs that were thinned while they were played come from a sample of the rounds, and the least and
        the largest from all.
        """
        return np.asarray(np.percentile(self.expected_rewards, PERCENTILES))

    @cached_property
    def _counted(self) -> tuple[Ints, Floats]:
        return count_plays(self.actions, self.expected_rewards, self.step_ends)

    def thinned(self, keep: int) -> "Run":
        """Return this run with at most `keep` rows of equal numbers of rounds; itself if it has no more already."""
        group = -(-len(self.actions) // whole("keep", keep, least=1))
        if group == 1:
            return self
        last = np.minimum(np.arange(group, len(self.actions) + group, group), len(self.actions)) - 1
        kept = self.ends[last]

        def thin(means: Floats) -> Floats:
            rows: Floats = row_sums(self.totals(means), group) / np.diff(kept, prepend=0)
            return rows

        same = {one.name: getattr(self, one.name) for one in fields(Run)}
        rows = {
            "actions": self.actions[last],
            "expected_rewards": thin(self.expected_rewards),
            "rewards": thin(self.rewards),
            "comparator_rewards": None if self.comparator_rewards is None else thin(self.comparator_rewards),
        }
        beside = {"plays": self.plays, "play_rewards": self.play_rewards, "quantiles": self.quantiles}
        return ThinnedRun(**{**same, **rows, **beside}, ends=kept)

    def summary(self) -> dict[str, Scalar]:
        """Return the run in a few numbers."""
        mean_reward, mean_realised = self.mean_reward, self._mean(self.rewards)
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

            for name, columns in run._tables().items():
                parquet.write_table(pa.table(columns), target / name, compression=_COMPRESSION[name])
            if run.network is not None:
                run.network.save(target / NETWORK)
            about = {"window": run.window, "quantiles": run._stored_quantiles(), "paths": run.paths}
            write_json(target / SUMMARY, {**run.summary(), **about})

        write_folder(folder, write)

    def _tables(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Return the columns of each table that is stored, by its file."""
        rows: dict[str, NDArray[Any]] = {
            "action": self.actions,
            "expected_reward": self.expected_rewards,
            "reward": self.rewards,
        }
        if self.comparator_rewards is not None:
            rows["comparator_reward"] = self.comparator_rewards
        tables = {ROUNDS: rows}
        if self.edge_uses is not None:
            tables[_USES] = dict(zip(_USE_COLUMNS, self.edge_uses, strict=True))
        return tables

    def _stored_quantiles(self) -> list[float] | None:
        """Return the quantiles where the rows do not tell them."""
        return None

    @classmethod
    def load(cls, folder: str | Path) -> "Run":
        """Read what `save` wrote."""
        source = Path(folder)
        with reading.reading(source, "run"):
            summary = reading.read_json(source / SUMMARY)
            table = reading.read_table(source / ROUNDS)
            network = RoadNetwork.from_file(source / NETWORK) if (source / NETWORK).exists() else None
            known = {name: kind(summary.pop(name), name) for name, kind in _FIELDS.items()}
            window, quantiles = summary.pop("window"), summary.pop("quantiles")
            compared = "comparator_reward" in table.column_names
            most = _MOST_NUMBER if network is None else network.n_edges - 1
            known |= {
                "comparator_rewards": reading.float_column(table, "comparator_reward") if compared else None,
                "actions": reading.whole_column(table, "action", _MOST_NUMBER).astype(np.int32),
                "expected_rewards": reading.float_column(table, "expected_reward"),
                "rewards": reading.float_column(table, "reward"),
                "paths": tuple(tuple(reading.wholes(path, "paths", most)) for path in summary.pop("paths")),
                "details": {name: value for name, value in summary.items() if name not in _DERIVED},
                "window": None if window is None else reading.whole(window, "window", most=_MOST_WINDOW),
                "network": network,
            }
            if (source / _USES).exists():
                known["edge_uses"] = StepUses(*_columns(source / _USES, _USE_COLUMNS))
            if "round" in table.column_names:
                *plays, earned = _columns(source / _PLAYS, _PLAY_COLUMNS)
                run: Run = ThinnedRun(
                    ends=reading.whole_column(table, "round"),
                    plays=np.column_stack(plays),
                    play_rewards=reading.finite(earned, "rewards of plays"),
                    quantiles=reading.floats(quantiles, "quantiles"),
                    **known,
                )
            elif quantiles is None:
                run = Run(**known)
            else:
                raise ValueError("quantiles are stored beside rows of several rounds only")
            run._check_rows(reading.whole(summary["rounds"], "rounds"))
        return run

    def _check_rows(self, rounds: int) -> None:
        """Refuse what no run can hold, as a file that was changed may."""
        if not len(self.actions):
            raise ValueError("a run has at least one row")
        if not all(self.paths):
            raise ValueError("a path has at least one edge")
        for name, value in self.details.items():
            if not isinstance(value, str | int | float):
                raise ValueError(f"{name} must be a text, a number or a truth value, got {value!r:.40}")
        if self.rounds != rounds:
            raise ValueError(f"the rows end after {self.rounds:,} rounds, and the summary tells of {rounds:,}")
        self._check_action(int(self.actions.max()))
        if self.edge_uses is not None:
            steps, edges, uses, ratios = self.edge_uses
            most = np.inf if self.network is None else self.network.n_edges
            inside = (steps >= 0) & (steps < len(self.step_ends)) & (edges >= 0) & (edges < most)
            if not (inside & (uses > 0) & (ratios > 0)).all():
                raise ValueError("uses of edges must be of steps and edges that there are, and above 0")

    def _check_action(self, largest: int) -> None:
        if largest >= (len(self.paths) or _MOST_NAMELESS):
            raise ValueError(f"there are {len(self.paths)} paths, and an action has the number {largest}")


@dataclass(frozen=True, eq=False, repr=False)
class ThinnedRun(Run):
    """A run that keeps one row for a stretch of rounds: the mean of its rewards, and the last of its actions.

    `ends` says after how many rounds each row ends. The other fields hold what was counted while every round was there.
    """

    ends: Ints = field(kw_only=True)
    plays: Ints = field(kw_only=True)
    play_rewards: Floats = field(kw_only=True)
    quantiles: Floats = field(kw_only=True)

    @property
    def rounds(self) -> int:
        """The number of rounds played."""
        return int(self.ends[-1])

    def totals(self, means: Floats) -> Floats:
        """Return what the rounds of each row add up to, of which `means` has the mean of each row."""
        return means * np.diff(self.ends, prepend=0)

    def _tables(self) -> dict[str, dict[str, NDArray[Any]]]:
        tables = super()._tables()
        tables[ROUNDS]["round"] = self.ends
        tables[_PLAYS] = dict(zip(_PLAY_COLUMNS, (*self.plays.T, self.play_rewards), strict=True))
        return tables

    def _stored_quantiles(self) -> list[float]:
        quantiles: list[float] = self.quantiles.tolist()
        return quantiles

    def _check_rows(self, rounds: int) -> None:
        if (np.diff(self.ends, prepend=0) < 1).any():
            raise ValueError("rows must end one after the other")
        super()._check_rows(rounds)
        step, action, uses = self.plays.T
        inside = len(step) and step.min() >= 0 and step.max() < len(self.step_ends) and action.min() >= 0
        if not inside or not np.array_equal(
            np.bincount(step, uses, len(self.step_ends)), np.diff(self.step_ends, prepend=0)
        ):
            raise ValueError("the plays of each step must be as many as its rounds")
        self._check_action(int(action.max()))
        if self.quantiles.shape != PERCENTILES.shape:
            raise ValueError(f"quantiles are {len(PERCENTILES)} numbers, got {self.quantiles.shape}")


def run_of(trace: KeptTrace | KeptRows, **about: Any) -> Run:
    """Return the run of which this trace was kept, with all else that is known of it."""
    kind = ThinnedRun if isinstance(trace, KeptRows) else Run
    return kind(**trace._asdict(), **about)


_PLAY_COLUMNS = ("step", "action", "uses", "reward")
_USE_COLUMNS = ("step", "edge", "uses", "ratio")  # of both tables the last holds fractions, the others whole numbers


_MOST_NUMBER = (1 << 31) - 1
_MOST_NAMELESS = 1 << 24  # actions of a run that does not know its paths: they are counted one by one
_MOST_WINDOW = 10**15


def _columns(path: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    table = reading.read_table(path)
    *whole_numbers, fraction = names
    columns: list[NDArray[Any]] = [reading.whole_column(table, name) for name in whole_numbers]
    return [*columns, reading.column(table, fraction).astype(np.float64)]


_FIELDS: dict[str, Callable[[Any, str], Any]] = {
    "learner": reading.text,
    "seed": reading.whole,
    "replication": reading.whole,
    "comparator_value": reading.number,
    "comparator_bound": reading.number,
}
_DERIVED = (
    "rounds",
    "mean_reward",
    "mean_realised_reward",
    "average_regret",
    "average_regret_upper",
    "average_realised_regret",
)
