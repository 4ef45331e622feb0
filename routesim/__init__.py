"""routesim: traffic routing where a recommendation changes the traffic it was made for.

The public names stand in one table, `__init__.pyi`, which type checkers read as well. Each is loaded on first use, so
that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import Any

from routesim.registry import HOMES as _HOMES

__version__ = "0.1.0"
__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'routesim' has no attribute {name!r}")
    module = import_module(home)
    value = getattr(module, name) if name in vars(module) else import_module(f"{home}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
