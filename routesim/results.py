"""Run: what happened in one run, as flat arrays; regret, summary, bands over replications, save and load."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.errors import InputError, ResultsError

Floats: TypeAlias = NDArray[np.float64]
Scalar: TypeAlias = str | int | float | bool

_SUMMARY = "summary.json"
_ROUNDS = "rounds.parquet"


@dataclass(frozen=True, eq=False)
class Run:
    """One learner in one environment with one seed, round by round.

    Regret is policy regret: the comparator is the best stationary policy under the true rewards, playing on its
    own history, and earns `comparator_value` a round in the long run. Where rounds have contexts it plays the same
    ones, and earns `comparator_rewards`, of which `comparator_value` is the mean over all rounds. Expected regret
    leaves the noise out, realised regret has it in. `actions` are numbers of `paths`, which are tuples of edge indices.
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

    ends: NDArray[np.int64] | None = None

    @property
    def step_ends(self) -> NDArray[np.int64]:
        """The last round of each step."""
        return np.unique(np.linspace(0, self.rounds, min(48, self.rounds) + 1).round().astype(np.int64)[1:])

    @property
    def plays(self) -> NDArray[np.int64]:
        """Rows (step, action, uses)."""
        step = np.searchsorted(self.step_ends, np.arange(1, self.rounds + 1))
        keys, uses = np.unique(np.column_stack((step, self.actions)), axis=0, return_counts=True)
        return np.column_stack((keys, uses)).astype(np.int64)

    @property
    def rounds(self) -> int:
        """The number of rounds played."""
        return len(self.actions)

    @property
    def average_regret(self) -> Floats:
        """After each round: the comparator's value so far minus the mean expected reward so far."""
        return self._comparator_mean - _running_mean(self.expected_rewards)

    @property
    def average_regret_upper(self) -> Floats:
        """After each round: the proven bound on any policy minus the mean expected reward so far."""
        return self.comparator_bound - _running_mean(self.expected_rewards)

    @property
    def average_realised_regret(self) -> Floats:
        """After each round: the comparator's value so far minus the mean of the rewards paid so far, noise included."""
        return self._comparator_mean - _running_mean(self.rewards)

    @property
    def regret(self) -> Floats:
        """After each round: the expected regret so far in all."""
        earned = self.comparator_value if self.comparator_rewards is None else self.comparator_rewards
        return np.cumsum(earned - self.expected_rewards)

    @property
    def _comparator_mean(self) -> "Floats | float":
        return self.comparator_value if self.comparator_rewards is None else _running_mean(self.comparator_rewards)

    def summary(self) -> dict[str, Scalar]:
        """Return the run in a few numbers."""
        mean_reward = float(self.expected_rewards.mean())
        mean_realised = float(self.rewards.mean())
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
        """Show the summary and the curve of the average regret in a notebook."""
        from routesim.report.notebook import run_html  # upward on purpose: nothing else here draws

        return run_html(self)

    def save(self, folder: str | Path) -> None:
        """Write `summary.json` and `rounds.parquet` into a new folder, or replace an earlier result there."""

        def write(target: Path) -> None:
            import pyarrow as pa
            from pyarrow import parquet

            columns = {
                "action": self.actions,
                "expected_reward": self.expected_rewards,
                "reward": self.rewards,
            }
            if self.comparator_rewards is not None:
                columns["comparator_reward"] = self.comparator_rewards
            parquet.write_table(pa.table(columns), target / _ROUNDS)
            write_json(target / _SUMMARY, {**self.summary(), "paths": self.paths})

        write_folder(folder, write)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what `save` wrote."""
        source = Path(folder)
        try:
            from pyarrow import parquet

            summary = json.loads((source / _SUMMARY).read_text(encoding="utf-8"))
            table = parquet.read_table(source / _ROUNDS)
            known = {name: kind(summary.pop(name)) for name, kind in _FIELDS.items()}
            paths = tuple(tuple(int(edge) for edge in path) for path in summary.pop("paths"))
            compared = table["comparator_reward"] if "comparator_reward" in table.column_names else None
            run = cls(
                comparator_rewards=None if compared is None else compared.to_numpy().astype(np.float64),
                actions=table["action"].to_numpy().astype(np.int32),
                expected_rewards=table["expected_reward"].to_numpy().astype(np.float64),
                rewards=table["reward"].to_numpy().astype(np.float64),
                paths=paths,
                details={name: value for name, value in summary.items() if name not in _DERIVED},
                **known,
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
            raise ResultsError(f"{source} holds no run that can be read: {problem}") from problem
        return run


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


class Band(NamedTuple):
    """A mean over replications with its confidence band, at some of the rounds (numbered from 1)."""

    rounds: NDArray[np.int64]
    mean: Floats
    lower: Floats
    upper: Floats


def regret_band(
    runs: Sequence[Run], *, level: float = 0.95, at: Sequence[int] | NDArray[np.int64] | None = None
) -> Band:
    """Return the mean average regret of replications, with the Student-t band of its mean.

    `at` lists rounds, counted from 1; by default about 200 of them, evenly spaced on a logarithmic axis.
    """
    if not runs:
        raise InputError("a band needs at least one run, got none")
    if not 0 < level < 1:
        raise InputError(f"the level of a band lies between 0 and 1, got {level}")
    shortest = min(run.rounds for run in runs)
    if at is None:
        at = np.unique(np.geomspace(1, shortest, 200).round().astype(np.int64))
    chosen = np.asarray(at, dtype=np.int64)
    if chosen.size == 0:
        raise InputError("a band needs at least one round, got none")
    if chosen.min() < 1 or chosen.max() > shortest:
        raise InputError(f"rounds of a band lie between 1 and {shortest}, got {chosen.min()} to {chosen.max()}")
    sample = np.stack([run.average_regret[chosen - 1] for run in runs])
    mean = sample.mean(axis=0)
    if len(runs) == 1:
        return Band(chosen, mean, mean, mean)
    from scipy.special import stdtrit

    quantile = float(stdtrit(len(runs) - 1, 0.5 + level / 2))
    half = quantile * sample.std(axis=0, ddof=1) / np.sqrt(len(runs))
    return Band(chosen, mean, mean - half, mean + half)


def write_json(path: Path, content: Any) -> None:
    """Write `content` as readable JSON; numbers that are not finite are a mistake."""
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def check_folder(folder: str | Path) -> None:
    """Refuse a place for results that holds something else; worth asking before a long run."""
    target = Path(folder)
    try:
        taken = target.exists() and not (target / _SUMMARY).is_file() and (not target.is_dir() or any(target.iterdir()))
    except OSError as problem:
        raise ResultsError(f"cannot write results to {target}: {problem.strerror or problem}") from problem
    if taken:
        raise ResultsError(f"{target} exists and holds no earlier result; name a new folder")


def write_folder(folder: str | Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a new folder and put it in place whole, or leave everything as it was.

    An earlier result in the same place is replaced; a folder with anything else in it is left alone.
    """
    target = Path(folder)
    check_folder(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as problem:
        raise ResultsError(f"cannot write results to {target}: {problem.strerror or problem}") from problem
    try:
        fresh = staging / "new"
        fresh.mkdir()
        write(fresh)
        if target.exists():
            target.rename(staging / "old")
        fresh.rename(target)
    except OSError as problem:
        raise ResultsError(f"cannot write results to {target}: {problem.strerror or problem}") from problem
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _running_mean(values: Floats) -> Floats:
    return np.cumsum(values) / np.arange(1, len(values) + 1)
