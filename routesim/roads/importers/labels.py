"""Node labels as text and back, so that files keep 5, "5" and (5, "a") apart."""

import json
import math
from collections.abc import Hashable
from typing import Any

from routesim.errors import NetworkError


def encode_label(label: Hashable) -> str:
    """Return a label as one line of JSON."""
    return json.dumps(_plain(label), ensure_ascii=False, separators=(",", ":"))


def decode_label(text: str) -> Hashable:
    """Return the label that `encode_label` wrote."""
    try:
        return _label(json.loads(text))
    except (ValueError, RecursionError):
        raise NetworkError(f"a node label must be JSON of a number, text or tuple, got {text!r:.80}") from None


def _plain(label: Hashable) -> Any:
    if label is None or isinstance(label, bool) or type(label) in (int, str):
        return label
    if type(label) is float and math.isfinite(label):
        return label
    if type(label) is tuple:
        return {"tuple": [_plain(part) for part in label]}
    raise NetworkError(
        f"a file holds node labels that are numbers, texts or tuples of these, got {label!r} "
        f"({type(label).__name__}); rename the nodes first"
    )


def _label(value: Any) -> Hashable:
    if isinstance(value, dict):
        if set(value) != {"tuple"} or not isinstance(value["tuple"], list):
            raise ValueError
        return tuple(_label(part) for part in value["tuple"])
    if isinstance(value, list):
        raise ValueError
    return value  # type: ignore[no-any-return]  # whatever JSON holds is hashable by now
