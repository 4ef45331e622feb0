"""Files and folders that are written whole or not at all, and are there after a loss of power."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from routesim.errors import ResultsError

SUMMARY = "summary.json"
NETWORK = "network.npz"
UNFINISHED = ".unfinished"
"""The folder inside a result folder that a run works in until it is finished."""

RUN = "run.json"
"""Says inside it whose run it is; without it, what is there is rubbish of a finished run."""


def is_unfinished(folder: Path) -> bool:
    """Is there a run in the folder that could go on?"""
    return (folder / UNFINISHED / RUN).is_file()


def write_json(path: Path, content: Any) -> None:
    """Write `content` as readable JSON; numbers that are not finite are a mistake."""
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn what the system says while results are written to `folder` into one line."""
    try:
        yield
    except OSError as problem:
        raise ResultsError(f"cannot write results to {folder}: {problem.strerror or problem}") from problem


def check_folder(folder: str | Path) -> None:
    """Refuse a place for results that holds something else; worth asking before a long run."""
    target = Path(folder)
    with writing(target):
        known = (target / SUMMARY).is_file() or (target / UNFINISHED).is_dir()
        taken = not known and target.exists() and (not target.is_dir() or any(target.iterdir()))
    if taken:
        raise ResultsError(f"{target} exists and holds no earlier result; name a new folder")


def write_folder(folder: str | Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a new folder and put it in place whole, or leave everything as it was.

    An earlier result in the same place is replaced; a folder with anything else in it is left alone.
    """
    target = Path(folder)
    check_folder(target)
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        with writing(target):
            fresh = staging / "new"
            fresh.mkdir()
            write(fresh)
            if target.exists():
                target.rename(staging / "old")
            fresh.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def write_durably(path: Path, content: str) -> None:
    """Write a text file so that either the old or the new one is there, whatever happens meanwhile."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(content, encoding="utf-8")
    sync(fresh)
    fresh.replace(path)
    sync(path.parent)


def put(fresh: Path, target: Path) -> None:
    """Move a finished folder to its place once the disk holds all of it; an earlier one there stays as it is."""
    sync_tree(fresh)
    try:
        fresh.rename(target)
    except OSError:
        if not target.is_dir():
            raise
        shutil.rmtree(fresh, ignore_errors=True)  # somebody else was first with the same
    sync(target.parent)


def sync_tree(folder: Path) -> None:
    """Return when the disk holds every file of a folder."""
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)


def sync(path: Path) -> None:
    """Return when the disk holds a file, or the names inside a folder."""
    if os.name == "nt" and path.is_dir():
        return  # folders cannot be opened there
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
