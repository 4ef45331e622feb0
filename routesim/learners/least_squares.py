"""Least squares from sums of products, by eigenvalues, so that features which do not determine theta do no harm."""

import numpy as np

from routesim.arrays import Floats

# Sums of products square the condition of the features, so this is where their inverse has lost all its digits.
_SINGULAR = 1e-12


def least_squares(gram: Floats, moment: Floats) -> tuple[Floats, int]:
    """Return the shortest of the thetas that fit best, and the number of dimensions in which the sums determine it."""
    sizes, directions = np.linalg.eigh(gram)
    determined = sizes > _SINGULAR * max(float(sizes[-1]), np.finfo(float).tiny)
    theta: Floats = directions @ ((directions.T @ moment) / np.where(determined, sizes, np.inf))
    return theta, int(determined.sum())
