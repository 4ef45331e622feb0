"""The five classes of load stay apart for every kind of colour vision, on light and on dark ground.

Colour-blindness is simulated with the matrices of Machado, Oliveira and Fernandes (2009) at full severity, on linear
light; differences are CIEDE2000 (Sharma, Wu and Dalal 2005), whose published pairs check the formula here.
"""

from itertools import combinations, pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from routesim.report.palette import (
    CURVE_COLOURS,
    DARK_CURVE_COLOURS,
    DARK_GROUND,
    LIGHT_GROUND,
    LOAD_CLASSES,
    class_ranges,
    load_classes,
)

Vector = NDArray[np.float64]

VISIONS = {
    "full": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def lab(colour: str, vision: Vector) -> Vector:
    shown = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(shown <= 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4)
    ratio = TO_XYZ @ np.clip(vision @ linear, 0, 1) / TO_XYZ.sum(axis=1)
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def ciede2000(one: Vector, other: Vector) -> float:
    lightness, red, yellow = np.array([one, other]).T
    mean_chroma = np.hypot(red, yellow).mean()
    red = red * (1 + 0.5 * (1 - np.sqrt(mean_chroma**7 / (mean_chroma**7 + 25.0**7))))
    chroma = np.hypot(red, yellow)
    hue = np.degrees(np.arctan2(yellow, red)) % 360
    grey = chroma.prod() == 0
    turn = 0.0 if grey else (hue[1] - hue[0] + 180) % 360 - 180
    apart = abs(hue[0] - hue[1])
    mean_hue = hue.sum() if grey else hue.mean() + (0 if apart <= 180 else 180 if hue.sum() < 360 else -180)
    delta = (
        lightness[1] - lightness[0],
        chroma[1] - chroma[0],
        2 * np.sqrt(chroma.prod()) * np.sin(np.radians(turn / 2)),
    )
    middle, strength = lightness.mean(), chroma.mean()
    angles = np.radians([mean_hue - 30, 2 * mean_hue, 3 * mean_hue + 6, 4 * mean_hue - 63])
    t = 1 + np.array([-0.17, 0.24, 0.32, -0.20]) @ np.cos(angles)
    scale = (
        1 + 0.015 * (middle - 50) ** 2 / np.sqrt(20 + (middle - 50) ** 2),
        1 + 0.045 * strength,
        1 + 0.015 * strength * t,
    )
    light, colourful, tint = (part / by for part, by in zip(delta, scale, strict=True))
    rotation = -2 * np.sqrt(strength**7 / (strength**7 + 25.0**7))
    rotation *= np.sin(np.radians(60 * np.exp(-(((mean_hue - 275) / 25) ** 2))))
    return float(np.sqrt(light**2 + colourful**2 + tint**2 + rotation * colourful * tint))


@pytest.mark.parametrize(
    ("one", "other", "published"),
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((50.0, 2.49, -0.001), (50.0, -2.49, 0.0011), 7.2195),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
        ((90.8027, -2.0831, 1.441), (91.1528, -1.6435, 0.0447), 1.4441),
    ],
)
def test_the_difference_is_the_published_one(
    one: tuple[float, float, float], other: tuple[float, float, float], published: float
) -> None:
    assert ciede2000(np.array(one), np.array(other)) == pytest.approx(published, abs=1e-4)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("ground", ["light", "dark"])
def test_classes_of_load_stay_apart(vision: str, ground: str) -> None:
    colours = [getattr(one, ground) for one in LOAD_CLASSES]
    seen = [lab(colour, VISIONS[vision]) for colour in colours]
    closest = min(ciede2000(one, other) for one, other in combinations(seen, 2))
    assert closest >= 10, f"{vision}, {ground}: {closest:.1f}"
    below = lab(LIGHT_GROUND if ground == "light" else DARK_GROUND, VISIONS[vision])
    assert min(ciede2000(one, below) for one in seen) >= 10, "every class stands out from the ground"


@pytest.mark.parametrize(("colours", "ground"), [(CURVE_COLOURS, "#ffffff"), (DARK_CURVE_COLOURS, "#1b2127")])
@pytest.mark.parametrize("vision", VISIONS)
def test_the_first_learners_curves_stay_apart(vision: str, colours: tuple[str, ...], ground: str) -> None:
    seen = [lab(colour, VISIONS[vision]) for colour in (*colours[:3], ground)]
    assert min(ciede2000(one, other) for one, other in combinations(seen, 2)) >= 10


def test_width_tells_the_classes_apart_too() -> None:
    widths = [one.width for one in LOAD_CLASSES]
    assert all(later - earlier >= 0.5 for earlier, later in pairwise(widths))


def test_a_ratio_has_the_class_its_words_say() -> None:
    ratios = np.array([1.0, 1.1, 1.2, 1.4, 1.5, 1.8, 2.0, 2.5, 2.6, np.inf])
    assert load_classes(ratios).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert class_ranges() == [
        "up to 1.1 times",
        "1.1 to 1.4 times",
        "1.4 to 1.8 times",
        "1.8 to 2.5 times",
        "over 2.5 times",
    ]
