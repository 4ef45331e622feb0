"""Numbers in a page: arrays as one deflated text, lines as small differences, and JSON that ends no script."""

import base64
import json
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

PRECISION = 1e5  # parts of a degree that are kept, about a metre


class Bulk:
    """Arrays put one behind the other; `sections` says where each begins, how many bytes it has and of what kind."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.sections: dict[str, tuple[int, int, str]] = {}

    def add(self, name: str, values: NDArray[Any]) -> None:
        """Put an array of bytes, 32-bit integers or 32-bit floats behind the others."""
        kind = {"uint8": "u1", "int32": "i4", "float32": "f4"}[values.dtype.name]
        content = values.astype(values.dtype.newbyteorder("<")).tobytes()
        self.sections[name] = (sum(map(len, self._parts)), len(content), kind)
        self._parts.append(content)

    def text(self) -> str:
        """Return everything deflated, in base 64."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), 9)).decode("ascii")


def pack_lines(lines: Iterable[NDArray[np.float64]]) -> NDArray[np.uint8]:
    """Return lines as numbers of seven bits a byte: points of each, then steps from point to point.

    A line begins where the one before it ended; whole numbers are made positive by turns (0, -1, 1, -2, …), and the
    last byte of each lacks the high bit.
    """
    whole = [np.round(line * PRECISION).astype(np.int64) for line in lines]
    if not whole:
        return np.empty(0, dtype=np.uint8)
    counts = np.array([len(line) for line in whole], dtype=np.int64)
    steps = np.diff(np.concatenate(whole), axis=0, prepend=np.zeros((1, 2), dtype=np.int64))
    turned = np.where(steps < 0, -2 * steps - 1, 2 * steps).ravel()
    # The count of a line's points stands in front of its steps.
    before = np.concatenate(([0], 2 * np.cumsum(counts)[:-1]))
    return _seven_bits(np.insert(turned, before, counts))


def _seven_bits(numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
    width = 5  # 35 bits hold every difference of degrees
    digits = (numbers[:, None] >> (7 * np.arange(width))) & 127
    used = np.maximum(1, width - np.argmax(digits[:, ::-1] > 0, axis=1))
    used[numbers == 0] = 1
    place = np.arange(width)
    digits[place < used[:, None] - 1] |= 128
    return np.asarray(digits[place < used[:, None]], dtype=np.uint8)


def quantise(values: NDArray[np.float64], most: float) -> NDArray[np.uint8]:
    """Return square roots of shares of `most` in 255 steps: small loads keep their digits, no load stays none."""
    share = np.clip(values / most if most > 0 else np.zeros_like(values), 0.0, 1.0)
    return np.where(values > 0, np.maximum(1, np.round(255 * np.sqrt(share))), 0).astype(np.uint8)


def safe_json(content: Any) -> str:
    """Return JSON in ASCII without a `<`, so that nothing in it ends a script, begins a comment or breaks a line."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
