"""Where road data that is not part of the project lies; tests that need it skip when it is absent."""

import os
from pathlib import Path

import pytest

import routesim as rs

SHARED = Path(os.environ.get("ROUTESIM_SHARED", Path(__file__).parents[2] / "shared"))


def tntp(name: str) -> tuple[rs.RoadNetwork, Path]:
    """The TNTP network of this name and the folder it lies in."""
    folder = SHARED / "data" / "tntp" / name
    if not folder.is_dir():
        pytest.skip(f"no {folder}; set ROUTESIM_SHARED")
    stem = name.removesuffix("-Example")
    return rs.RoadNetwork.from_tntp(folder / f"{stem}_net.tntp"), folder / f"{stem}_trips.tntp"
