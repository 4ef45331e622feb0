"""Noise that depends on nothing but a seed, a vehicle and a place on its path, whatever the order of events."""

import numpy as np

from routesim.kernels import lean_kernel


@lean_kernel
def _uniform(x: np.uint64) -> float:
    """Return a number between 0 and 1 that depends on `x` alone (splitmix64)."""
    z = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (float(z >> np.uint64(11)) + 0.5) / 9007199254740992.0


@lean_kernel
def _normal(seed: np.uint64, vehicle: int, place: int) -> float:
    """Return a standard normal number that depends on nothing but these three (Box-Muller)."""
    step = np.uint64(0x9E3779B97F4A7C15)
    x = seed + np.uint64(vehicle) * step * np.uint64(3) + np.uint64(place) * np.uint64(0xD1B54A32D192ED03)
    one, two = _uniform(x + step), _uniform(x + step + step)
    return float(np.sqrt(-2.0 * np.log(one)) * np.cos(2.0 * np.pi * two))


@lean_kernel
def lognormal_factor(noise: float, seed: np.uint64, vehicle: int, place: int) -> float:
    """Return the noise of a vehicle at a place of its path: lognormal, of mean 1."""
    return float(np.exp(noise * _normal(seed, vehicle, place) - noise * noise / 2.0))
