"""Contexts: where the features of each round and edge come from, read in blocks and checked as they are read.

Known contexts are an array of rounds x edges x features, or a function that returns the block from one round up to
another. Stochastic ones are drawn from a sampler, whose distribution a learner may sample as well.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats
from routesim.errors import InputError

Block: TypeAlias = Callable[[int, int], ArrayLike]
Sampler: TypeAlias = Callable[[np.random.Generator, int], ArrayLike]
Lengths: TypeAlias = Literal["refuse", "rescale", "keep"]
LENGTHS: tuple[Lengths, ...] = ("refuse", "rescale", "keep")

BLOCK_NUMBERS = 1 << 19
"""How many numbers one block of contexts holds at most, eight bytes each."""

_SLACK = 1 + 1e-9
_DRAWN = 1 << 10


@dataclass
class Contexts:
    """A checked source of features, (rounds, n_edges, dimension) at a time.

    `lengths` says what becomes of a feature vector longer than one, which the paper excludes: "refuse" it, "rescale"
    it to length one, or "keep" it as it is.
    """

    source: Any
    known: bool
    n_edges: int
    dimension: int
    lengths: Lengths = "refuse"
    rounds: int | None = field(init=False, default=None)
    _checked: int = field(init=False, repr=False, default=0)

    def __post_init__(self) -> None:
        if self.lengths not in LENGTHS:
            raise InputError(f"lengths is one of {', '.join(LENGTHS)}; got {self.lengths!r}")
        if callable(self.source):
            return
        if not self.known:
            kind = type(self.source).__name__
            raise InputError(f"stochastic contexts need a sampler contexts(rng, n), got {kind}; or set known=True")
        self.source = np.asanyarray(self.source)
        shape = self.source.shape
        if self.source.dtype.kind not in "fiu":
            raise InputError(f"contexts must be numbers, got an array of {self.source.dtype}")
        if len(shape) != 3 or shape[1:] != (self.n_edges, self.dimension) or shape[0] == 0:
            raise InputError(
                f"contexts need the shape (rounds, {self.n_edges} edges, {self.dimension} features as in theta), "
                f"got {shape}"
            )
        self.rounds = shape[0]
        for first in range(0, self.rounds, self.block):
            self.read(first, min(first + self.block, self.rounds))

    @property
    def block(self) -> int:
        """How many rounds to read at a time."""
        return max(1, BLOCK_NUMBERS // (self.n_edges * self.dimension))

    def check_rounds(self, rounds: int) -> None:
        """Refuse to serve more rounds than there are contexts."""
        if self.rounds is not None and rounds > self.rounds:
            raise InputError(f"there are contexts for {self.rounds:,} rounds only, and {rounds:,} are to be played")

    def read(self, first: int, last: int) -> Floats:
        """Return the known features of rounds `first` up to `last`."""
        given = self.source(first, last) if callable(self.source) else self.source[first:last]
        features = self._shaped(given, last - first, f"contexts({first}, {last})")
        if self.lengths == "rescale" or last > self._checked:
            features = self._proper(features, first)
            self._checked = max(self._checked, last)
        return features

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Return the features of `n` rounds, drawn from the sampler."""
        return self._proper(self._shaped(self.source(rng, n), n, f"the sampler, asked for {n} rounds,"), 0)

    def typical(self, n: int = 256) -> Floats:
        """Return features of some rounds: the first known ones, or a sample that is always the same."""
        if not self.known:
            return self.draw(np.random.default_rng(0), min(n, self.block))
        # A function may not know more than one round.
        return self.read(0, 1 if self.rounds is None else min(n, self.rounds, self.block))

    def _shaped(self, given: ArrayLike, rounds: int, who: str) -> Floats:
        try:
            features = np.ascontiguousarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{who} must return an array of numbers, got {type(given).__name__}") from None
        if features.shape != (rounds, self.n_edges, self.dimension):
            raise InputError(
                f"{who} must return the shape ({rounds} rounds, {self.n_edges} edges, {self.dimension} features as in "
                f"theta), got {features.shape}"
            )
        return features

    def _proper(self, features: Floats, first: int) -> Floats:
        squares = np.einsum("ijk,ijk->ij", features, features)
        if not np.isfinite(squares).all():
            place, edge = np.argwhere(~np.isfinite(squares))[0]
            where = f"round {first + place}, edge {edge}"
            raise InputError(f"contexts must be finite, got {features[place, edge]} at {where}")
        if self.lengths == "keep" or squares.max(initial=0.0) <= _SLACK:
            return features
        if self.lengths == "rescale":
            shortened: Floats = features / np.sqrt(np.maximum(1.0, squares))[:, :, np.newaxis]
            return shortened
        place, edge = np.argwhere(squares > _SLACK)[0]
        raise InputError(
            f"features must not be longer than 1, got length {np.sqrt(squares[place, edge]):.6g} at round "
            f'{first + place}, edge {edge}; scale them, or ask for lengths="rescale"'
        )


@dataclass(frozen=True)
class UniformContexts:
    """The sampler of the paper's experiments: numbers uniform in (0, 1), each vector normalised to length one."""

    n_edges: int
    dimension: int

    def __call__(self, rng: np.random.Generator, n: int) -> Floats:
        """Return the features of `n` rounds."""
        return unit_vectors(rng, (n, self.n_edges, self.dimension))


@dataclass(frozen=True, eq=False)
class DrawnContexts:
    """Known contexts drawn from a sampler beforehand: made block by block from `seed` whenever they are asked for."""

    sampler: Sampler
    seed: int

    def __call__(self, first: int, last: int) -> Floats:
        """Return the features of rounds `first` up to `last`."""
        numbers = range(first // _DRAWN, -(-last // _DRAWN))
        blocks = [np.asarray(self.sampler(np.random.default_rng((self.seed, number)), _DRAWN)) for number in numbers]
        start = first - numbers.start * _DRAWN
        return np.concatenate(blocks)[start : start + last - first]


def unit_vectors(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return vectors uniform in the unit cube, normalised; the last axis runs along a vector."""
    drawn = rng.random(shape)
    drawn /= np.sqrt(np.einsum("...k,...k->...", drawn, drawn))[..., np.newaxis]
    return drawn


@dataclass(frozen=True, eq=False)
class GaussianContexts:
    """The sampler of the paper's assumption: edge e has features N(means[e], covariances[e]), drawn anew each round.

    Gaussian vectors have no longest length: give the environment lengths="keep", or "rescale" to shorten them.
    """

    means: Floats
    covariances: Floats
    _roots: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        means, covariances = (np.asarray(part, dtype=np.float64) for part in (self.means, self.covariances))
        if means.ndim != 2 or not np.isfinite(means).all():
            raise InputError(f"means are finite, one row per edge, shape (edges, features), got shape {means.shape}")
        shape = (*means.shape, means.shape[1])
        try:
            roots = np.linalg.cholesky(np.broadcast_to(covariances, shape))
        except (ValueError, np.linalg.LinAlgError) as problem:
            raise InputError(
                f"covariances need shape {shape}, or {shape[1:]} for all edges, and be positive definite: {problem}"
            ) from None
        object.__setattr__(self, "means", means)
        object.__setattr__(self, "covariances", covariances)
        object.__setattr__(self, "_roots", roots)

    def __call__(self, rng: np.random.Generator, n: int) -> Floats:
        """Return the features of `n` rounds."""
        drawn = rng.standard_normal((n, *self.means.shape))
        features: Floats = self.means + np.einsum("eij,nej->nei", self._roots, drawn)
        return features
