"""Small units for the tests of the runner, importable by the processes that run them."""

import os
import signal
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from routesim.errors import InputError


@dataclass(frozen=True)
class Numbers:
    """A part: some numbers in a file."""

    values: np.ndarray

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        np.save(folder / "values.npy", self.values)


@dataclass(frozen=True)
class SmallUnit:
    """Draws numbers and multiplies matrices; `trouble` is what happens before it ends."""

    seed: int
    total: int = 100
    trouble: str = ""
    witness: str = ""

    @property
    def key(self) -> str:
        return f"unit-{self.seed}"

    @property
    def label(self) -> str:
        return f"numbers {self.seed}"

    def run(self, checkpoint: Path | None = None, progress: Callable[[int], None] | None = None) -> Numbers:
        assert checkpoint is None or checkpoint.parent.is_dir()
        rng = np.random.default_rng(self.seed)
        matrix = rng.normal(size=(300, 300))
        for _ in range(10):
            matrix = matrix @ rng.normal(size=(300, 300)) / 300
            if progress:
                progress(self.total // 10)
        if self.trouble == "mistake":
            raise InputError("seeds must be even")
        if self.trouble == "bug":
            raise ZeroDivisionError("an unexpected thing")
        if self.trouble == "warn":
            warnings.warn("fewer roads than asked for", UserWarning, stacklevel=1)
        if self.trouble == "full":
            raise OSError(28, os.strerror(28))
        if self.trouble == "dies":
            for _ in range(600):  # not before what it was told to wait for
                if not self.witness or Path(self.witness).exists():
                    break
                time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGKILL)
        if self.trouble == "slow":
            time.sleep(0.5)
        if self.trouble == "dies once" and not Path(self.witness).exists():
            Path(self.witness).write_text("")
            os.kill(os.getpid(), signal.SIGKILL)
        return Numbers(matrix[0])

    def load(self, folder: Path) -> Numbers:
        return Numbers(np.load(folder / "values.npy"))
