"""Checks of what rounds are made from: the window, rewards by edge and count, their noise and their range."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from routesim.arrays import Floats, Ints
from routesim.checks import numbers, whole
from routesim.errors import InputError


def checked_window(window: int) -> int:
    """Return `window` as a plain integer, or say what is wrong with it."""
    return whole("window", window, least=0)


def congestion_table(congestion: Callable[[Ints], Floats], n_edges: int, window: int) -> Floats:
    """Return the multiplier of each edge at each count, from a function that works element by element."""
    if not callable(congestion) or isinstance(congestion, type):
        raise InputError(f"congestion is a function of counts such as congestion.Inverse(), got {congestion!r}")
    multipliers = numbers("what the congestion function returns", congestion(np.arange(window + 1)[np.newaxis, :]))
    try:
        return np.broadcast_to(multipliers, (n_edges, window + 1))
    except ValueError:
        raise InputError(
            f"the congestion function returned shape {multipliers.shape} for counts 0..{window} on "
            f"{n_edges} edges; it must work element by element"
        ) from None


def checked_rewards(rewards: ArrayLike, n_edges: int, window: int) -> Floats:
    """Return a fresh array of finite rewards by (edge, count), or say what is wrong with `rewards`."""
    try:
        table = np.array(rewards, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise InputError(f"rewards must be numbers, got {rewards!r:.80}") from None
    if table.shape != (n_edges, window + 1):
        raise InputError(
            f"rewards need one row per edge and one column per count 0..{window}, "
            f"shape ({n_edges}, {window + 1}), got shape {table.shape}"
        )
    if not np.isfinite(table).all():
        edge, count = np.argwhere(~np.isfinite(table))[0]
        raise InputError(f"rewards must be finite, got {table[edge, count]} on edge {edge} at count {count}")
    return table


def checked_noise(noise_std: ArrayLike, n_edges: int) -> Floats:
    """Return the noise of each edge, or say what is wrong with `noise_std`."""
    noise = numbers("noise_std", noise_std)
    if noise.shape not in ((), (n_edges,)):
        raise InputError(f"noise_std is one number or one per edge, shape ({n_edges},), got shape {noise.shape}")
    if (noise < 0).any():
        raise InputError(f"noise_std must be at least 0, got {noise_std!r}")
    return np.ascontiguousarray(np.broadcast_to(noise, (n_edges,)))


def checked_range(given: tuple[ArrayLike, ArrayLike], n_edges: int) -> tuple[Floats, Floats]:
    """Return the lowest and highest mean reward of each edge, or say what is wrong with them."""
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (n_edges,)) for end in given)
    except (TypeError, ValueError):
        raise InputError(f"reward_range is (low, high), numbers or one per edge each, got {given!r:.80}") from None
    if np.isnan(low).any() or not np.isfinite(high).all() or (low > high).any():
        raise InputError(f"reward_range is (low, high) with low <= high and a finite high, got {given!r}")
    return np.ascontiguousarray(low), np.ascontiguousarray(high)


def reward_range_of(rewards: Floats, given: tuple[ArrayLike, ArrayLike] | None) -> tuple[Floats, Floats]:
    """Return the lowest and highest mean reward a learner is told of each edge, and check that they hold."""
    edges = len(rewards)
    if given is not None:
        low, high = checked_range(given, edges)
    elif rewards.min() < 0 and rewards.max() <= 0:
        low, high = np.full(edges, -np.inf), np.ascontiguousarray(rewards[:, 0])
    else:
        low, high = np.zeros(edges), np.ones(edges)
    outside = (rewards < low[:, np.newaxis]) | (rewards > high[:, np.newaxis])
    if outside.any():
        edge, count = np.argwhere(outside)[0]
        hint = "" if given is not None else "; scale the rewards or give reward_range=(low, high)"
        raise InputError(
            f"the mean reward of edge {edge} at count {count} is {rewards[edge, count]:g}, outside the range "
            f"{low[edge]:g} to {high[edge]:g}{hint}"
        )
    return low, high


def check_non_increasing(rewards: Floats) -> None:
    """Refuse rewards that rise with the count."""
    rises = np.diff(rewards, axis=1) > 1e-12 * np.abs(rewards).max(initial=0.0)
    if rises.any():
        edge, count = np.argwhere(rises)[0]
        raise InputError(
            f"rewards must not rise with the count, but edge {edge} goes from {rewards[edge, count]:g} at count "
            f"{count} to {rewards[edge, count + 1]:g} at count {count + 1}; congestion cannot make a road better"
        )
