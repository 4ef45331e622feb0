"""The registry: the one place where the name of a learner, a router or a congestion function becomes a class.

Learners and routers are the public names whose home is in their room, so a line in `__init__.pyi` registers one.
Congestion functions are the classes of `routesim.congestion`, which scenario files name in lower case. Names from
outside the package are to be resolved here as well, in `find`.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pkgutil import get_data
from types import MappingProxyType
from typing import Any

from routesim.errors import InputError

IN_PYTHON: Mapping[str, bool] = MappingProxyType({"in_python": True})
"""The metadata of a dataclass field whose value a file cannot hold, such as another router or a ready plan."""

# name -> the module it is defined in; a module is a public name of the package itself.
HOMES = {
    alias.name: str(node.module)
    for node in ast.parse(get_data("routesim", "__init__.pyi") or b"").body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}


@cache
def learners() -> Mapping[str, Any]:
    """Return the classes of learners by their names."""
    return _classes("learners")


@cache
def routers() -> Mapping[str, Any]:
    """Return the classes of routers by their names, those that only Python can make among them."""
    return _classes("traffic.routers")


@cache
def congestion_functions() -> Mapping[str, Any]:
    """Return the classes of congestion functions by the names that scenario files call them."""
    module = import_module("routesim.congestion")
    own = [one for one in vars(module).values() if is_dataclass(one) and one.__module__ == module.__name__]
    return MappingProxyType({re.sub(r"(?<=[a-z])(?=[A-Z])", "_", one.__name__).lower(): one for one in own})  # type: ignore[union-attr]  # they are classes


def _classes(room: str) -> Mapping[str, Any]:
    """Return the public classes of a room, its base aside, in the order of the table."""
    inside = {name: home for name, home in HOMES.items() if home.startswith(f"routesim.{room}.")}
    return MappingProxyType(
        {name: getattr(import_module(home), name) for name, home in inside.items() if not home.endswith(".base")}
    )


def find(name: str, known: Mapping[str, Any]) -> Any:
    """Return the class of this name among those known."""
    if name not in known:
        raise InputError(f"there is no {name!r}{nearest(name, known)}; there are {', '.join(known)}")
    return known[name]


def settings(maker: Any) -> dict[str, Field[Any]]:
    """Return the parameters of a class that a file can give, by name."""
    return {one.name: one for one in fields(maker) if one.init and not one.metadata.get("in_python")}


def needed(maker: Any) -> list[str]:
    """Return the parameters that a class cannot be made without."""
    return [one.name for one in fields(maker) if one.init and one.default is one.default_factory is MISSING]


def in_files(maker: Any) -> bool:
    """Say whether a file can give all that a class cannot be made without."""
    return set(needed(maker)) <= set(settings(maker))


def nearest(wrong: str, right: Iterable[str]) -> str:
    """Return a hint at the name that was perhaps meant."""
    close = get_close_matches(wrong, list(right), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
