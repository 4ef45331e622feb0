"""Colours, widths and words: five classes of load and of full roads, and curves, on light and on dark ground."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class LoadClass(NamedTuple):
    """Roads that take up to `up_to` times as long (or cost up to so many times as much) as empty ones."""

    word: str
    up_to: float
    light: str
    dark: str
    width: float


LOAD_CLASSES = (
    LoadClass("free", 1.1, "#9aa5b1", "#7f8590", 2.6),
    LoadClass("light", 1.4, "#f0c000", "#fff07a", 3.2),
    LoadClass("slow", 1.8, "#f07800", "#e88c12", 4.0),
    LoadClass("heavy", 2.5, "#d0104c", "#d0303f", 5.0),
    LoadClass("jammed", np.inf, "#6a0060", "#a838f6", 6.5),
)
# How full a road is, in the same colours: the share of the vehicles that stand on it bumper to bumper.
FULL_CLASSES = tuple(
    one._replace(word=word, up_to=up_to)
    for one, word, up_to in zip(
        LOAD_CLASSES, ("sparse", "flowing", "dense", "crowded", "full"), (0.1, 0.25, 0.5, 0.8, np.inf), strict=True
    )
)
LIGHT_GROUND, DARK_GROUND = "#f4f4f1", "#12161b"

# Apart under every kind of colour vision (Okabe and Ito), and told apart by dashes as well.
CURVE_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DARK_CURVE_COLOURS = ("#7aa8ff", "#f07a2b", "#009e73", "#dd94bb", "#e9b233", "#8fd0f5", "#e8e8e8")
DASHES = ("-", "--", "-.", ":")


def load_classes(ratios: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return the class number of each ratio to the empty road, 0 for free up to 4 for jammed."""
    limits = [one.up_to for one in LOAD_CLASSES[:-1]]
    return np.searchsorted(limits, ratios, side="left").astype(np.uint8)


def class_ranges() -> list[str]:
    """Return the classes in numbers, such as "1.1 to 1.4 times"."""
    limits = [one.up_to for one in LOAD_CLASSES[:-1]]
    between = [f"{low:g} to {high:g} times" for low, high in pairwise(limits)]
    return [f"up to {limits[0]:g} times", *between, f"over {limits[-1]:g} times"]


def full_ranges() -> list[str]:
    """Return the classes of full roads in numbers, such as "10 to 25 %"."""
    limits = [100 * one.up_to for one in FULL_CLASSES[:-1]]
    between = [f"{low:g} to {high:g} %" for low, high in pairwise(limits)]
    return [f"up to {limits[0]:g} %", *between, f"over {limits[-1]:g} %"]
