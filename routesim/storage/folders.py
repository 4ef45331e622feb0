"""Folders that are written whole or not at all, and what a result folder holds."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from routesim.errors import ResultsError
from routesim.storage.files import sync

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
    with writing(target), _staged(target) as fresh:
        fresh.mkdir()
        write(fresh)
        if target.exists():
            target.rename(fresh.with_name("old"))
        fresh.rename(target)


@contextmanager
def durable_folder(target: Path) -> Iterator[Path]:
    """Give the path of a folder to make and fill, and move it to `target` once the disk holds all of it.

    A folder that is there already stays as it is: somebody else was first with the same.
    """
    with writing(target.parent), _staged(target) as fresh:
        yield fresh
        sync_tree(fresh)
        try:
            fresh.rename(target)
        except OSError:
            if not target.is_dir():
                raise
        sync(target.parent)


def sync_tree(folder: Path) -> None:
    """Return when the disk holds every file of a folder."""
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)


@contextmanager
def _staged(target: Path) -> Iterator[Path]:
    """Give a path on the same disk as `target`; whatever is left there in the end is removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(mkdtemp(prefix=".", dir=target.parent))  # nobody else looks into it
    try:
        yield staging / "new"
    finally:
        shutil.rmtree(staging, ignore_errors=True)
