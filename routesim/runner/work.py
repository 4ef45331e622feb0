"""Units of work and the jobs made of them: each is done once, and what it leaves is put in place whole."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from routesim.storage.folders import durable_folder

Progress: TypeAlias = Callable[[int], None]
"""Called with what was done since the last call, in rounds or vehicles."""

Listener: TypeAlias = Callable[["Job", int, bool], None]
"""Called with a job, how much of it is done, and whether it is finished."""


class Savable(Protocol):
    """What a unit leaves: its part of the result."""

    def save(self, folder: Path, /) -> None:
        """Write it into a new folder."""


class Runnable(Protocol):
    """A unit of work, such as one run of a scenario: a learner in a setting, in one replication."""

    @property
    def key(self) -> str:
        """A name for folders, its own in the scenario and the same in every process."""

    @property
    def label(self) -> str:
        """What runs, as people read it."""

    @property
    def total(self) -> int:
        """How much progress it reports in all."""

    def run(self, checkpoint: Path | None = None, progress: Progress | None = None) -> Savable:
        """Do it, from `checkpoint` on if that is there, and the same to the last bit in every process."""


class Job(Protocol):
    """Something to do in any process that sees the folder; it can be pickled."""

    @property
    def label(self) -> str:
        """What is done, as people read it."""

    @property
    def total(self) -> int:
        """How much progress it reports in all."""

    @property
    def target(self) -> Path:
        """The folder that is there once it is done."""

    def fill(self, folder: Path, progress: Progress) -> None:
        """Do it and leave what comes of it in the new `folder`."""


@dataclass(frozen=True)
class UnitJob:
    """A unit, the folder of its part, and where it keeps how far it is."""

    unit: Runnable
    target: Path
    checkpoint: Path

    @property
    def label(self) -> str:
        """What runs."""
        return self.unit.label

    @property
    def total(self) -> int:
        """How much progress it reports in all."""
        return self.unit.total

    def fill(self, folder: Path, progress: Progress) -> None:
        """Run the unit and save its part."""
        self.unit.run(self.checkpoint, progress).save(folder)


def do(job: Job, progress: Progress) -> None:
    """Do a job in this process; its folder appears whole or not at all."""
    with durable_folder(job.target) as fresh, one_thread():
        job.fill(fresh, progress)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra on one thread.

    The processes are the parallel part, and sums that are split by the number of cores differ in their last bits.
    """
    import scipy.linalg  # noqa: F401  (what is not loaded yet cannot be limited)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield
