"""The unfinished run inside a result folder: whose it is, what of it is done, and how it becomes the result.

    FOLDER/.unfinished/run.json        whose run this is; without it the folder is rubbish of a finished run
    FOLDER/.unfinished/scenario.toml   the scenario as resolved
    FOLDER/.unfinished/parts/          what is finished, each folder whole
    FOLDER/.unfinished/checkpoints/    how far the others are
    FOLDER/.unfinished/result/         the result while it is written

An earlier result in FOLDER stays until the new one is on disk. Then its summary.json goes first and the new one comes
last, so that a summary never stands beside files of another run.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from routesim.errors import ResultsError
from routesim.storage.files import durable_file, sync
from routesim.storage.folders import RUN, SUMMARY, UNFINISHED, check_folder, is_unfinished, sync_tree, writing
from routesim.storage.reading import one_line, read_json, text

FORMAT = 1
_SCENARIO = "scenario.toml"
_MOST_SCENARIO = 1 << 26


class Identity(NamedTuple):
    """What two runs must have in common to be one."""

    scenario: str
    scenario_sha256: str
    version: str


class RunFolder:
    """An unfinished run that only this process works on."""

    def __init__(self, folder: Path, lock: int | None, made: list[Path]) -> None:
        self.folder = folder
        self.home = folder / UNFINISHED
        self._lock, self._made = lock, made

    @property
    def done(self) -> bool:
        """Is there anything that would be lost?"""
        kept = (path for name in ("parts", "checkpoints") for path in (self.home / name).rglob("*"))
        return any(path.is_file() for path in kept)

    def part(self, *names: str) -> Path:
        """Return the folder of a part."""
        return self.home.joinpath("parts", *names)

    def checkpoint(self, *names: str) -> Path:
        """Return the place where a part keeps how far it is."""
        path = self.home.joinpath("checkpoints", *names)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def report(self, *names: str) -> Path:
        """Return the folder of a report that waits for the end of all."""
        return self.home.joinpath("reports", *names, "report")

    def begin(self, identity: Identity) -> None:
        """Say whose run this is."""
        with writing(self.folder):
            for path in sorted(self.home.iterdir()):
                if path.name != "lock":
                    _remove(path)
            with durable_file(self.home / _SCENARIO) as fresh:
                fresh.write_text(identity.scenario, encoding="utf-8")
            content = {"format": FORMAT, "scenario_sha256": identity.scenario_sha256, "version": identity.version}
            with durable_file(self.home / RUN) as fresh:
                fresh.write_text(json.dumps(content) + "\n", encoding="utf-8")

    def clear_up(self) -> None:
        """Remove what was being written when an earlier process ended."""
        with writing(self.folder):
            _remove(self.home / "result")
            _remove(self.home / "reports")
            for path in sorted((self.home / "parts").rglob(".*")):
                _remove(path)

    def finish(self, write: Callable[[Path], None]) -> None:
        """Let `write` fill the result, move it out and clear up; it must leave a summary with its `files`."""
        fresh = self.home / "result"
        with writing(self.folder):
            _remove(fresh)
            fresh.mkdir()
            write(fresh)
            sync_tree(fresh)
            self._replace(fresh)
            (self.home / RUN).unlink()
            sync(self.home)
        shutil.rmtree(self.home, ignore_errors=True)

    def _replace(self, fresh: Path) -> None:
        names = sorted(path.name for path in fresh.iterdir())
        old = self.home / "old"
        old.mkdir(exist_ok=True)
        # What the earlier summary lists comes from outside: it is compared with what is there, and never a path.
        earlier = read_summary(self.folder).get("files")
        replaced = {*names, *(name for name in (earlier if isinstance(earlier, list) else []) if isinstance(name, str))}
        there = [path.name for path in self.folder.iterdir() if path.name in replaced and path.name != UNFINISHED]
        for name in sorted(there, key=lambda name: name != SUMMARY):
            _remove(old / name)
            (self.folder / name).rename(old / name)
        sync(self.folder)
        for name in sorted(names, key=lambda name: name == SUMMARY):
            (fresh / name).rename(self.folder / name)
        sync(self.folder)

    def close(self, *, forget_if_empty: bool) -> None:
        """Let others in; a run that got nowhere leaves nothing behind."""
        if forget_if_empty and not self.done:
            shutil.rmtree(self.home, ignore_errors=True)
            for folder in self._made:
                try:
                    folder.rmdir()
                except OSError:
                    break
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def open_workspace(folder: Path, identity: Identity, *, resume: bool, overwrite: bool = False) -> RunFolder | None:
    """Return the place to work in, begun or to go on with; None if `folder` holds the finished result already.

    Without `resume` a new run begins, unless that would throw away what an unfinished one has done, or the result of
    another scenario, which takes `overwrite`. With `resume` the unfinished run goes on if it is the same one, and a new
    one begins where there is none.
    """
    check_folder(folder)
    home = folder / UNFINISHED
    if not is_unfinished(folder) and (folder / SUMMARY).exists():
        _check_finished(folder, identity, resume=resume, overwrite=overwrite)
        if resume:
            shutil.rmtree(home, ignore_errors=True)
            return None
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    with writing(folder):
        home.mkdir(parents=True, exist_ok=True)
    workspace, begun = RunFolder(folder, _lock(folder), made), None
    try:
        begun = _begun(home)
        if begun is None or not (resume or workspace.done):
            workspace.begin(identity)
        elif not resume:
            raise ResultsError(
                f"{folder} holds an unfinished run; go on with it with --resume, remove the folder to start over, "
                "or name another with --out"
            )
        else:
            _check_same(folder, begun, identity)
            workspace.clear_up()
    except BaseException:
        workspace.close(forget_if_empty=begun is None)
        raise
    return workspace


def _begun(home: Path) -> Identity | None:
    if not ((home / RUN).exists() and (home / _SCENARIO).exists()):
        return None
    try:
        content = read_json(home / RUN)
        with (home / _SCENARIO).open("rb") as stream:
            scenario = stream.read(_MOST_SCENARIO).decode("utf-8")
        return Identity(scenario, *(text(content[name], name) for name in ("scenario_sha256", "version")))
    except Exception as problem:  # whatever nonsense the files hold
        raise ResultsError(
            f"the unfinished run in {home.parent} cannot be read: {one_line(problem)}; remove {home} to start over, or "
            "name another folder with --out"
        ) from problem


def _check_finished(folder: Path, wanted: Identity, *, resume: bool, overwrite: bool) -> None:
    """Refuse to take the result of another scenario for this one, or to replace it unasked."""
    summary = read_summary(folder)
    if summary.get("scenario_sha256") != wanted.scenario_sha256:
        if resume or not overwrite:
            raise ResultsError(
                f"{folder} holds the result of another scenario, seed or size; replace it with --overwrite"
                f"{' instead of --resume' if resume else ''}, or name another folder with --out"
            )
        return
    verdict = summary.get("verdict")
    if resume and not (isinstance(verdict, str) and verdict.isprintable()):
        raise ResultsError(f"the summary in {folder} is damaged; leave --resume out to run it again")
    versions = summary.get("versions")
    made_by = versions.get("routesim") if isinstance(versions, dict) else None
    if resume and made_by != wanted.version:
        raise ResultsError(
            f"the result in {folder} was made by routesim {made_by!s:.40}, and this is {wanted.version}; leave "
            "--resume out to run it again with this version"
        )


def _check_same(folder: Path, begun: Identity, wanted: Identity) -> None:
    if begun.scenario_sha256 != wanted.scenario_sha256:
        there, here = begun.scenario.splitlines(), wanted.scenario.splitlines()
        apart = next(((a, b) for a, b in zip(there, here, strict=False) if a != b), ("its scenario", "this one"))
        raise ResultsError(
            f"{folder} holds an unfinished run of another kind ({apart[0].strip()} there, {apart[1].strip()} here); "
            "give the same scenario, rounds, seed and replications, or name another folder with --out"
        )
    if begun.version != wanted.version:
        raise ResultsError(
            f"the unfinished run in {folder} was begun by routesim {begun.version}, and this is {wanted.version}; "
            "remove the folder to start over, or go on with the version that began it"
        )


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the summary in a folder, empty if there is none that can be read."""
    try:
        content = read_json(folder / SUMMARY)
    except Exception:  # whatever nonsense the file holds
        return {}
    return content if isinstance(content, dict) else {}


def _lock(folder: Path) -> int | None:
    """Return an open file that no other process has, which the system lets go of however this one ends."""
    try:
        import fcntl
    except ImportError:
        return None  # not there on every system
    with writing(folder):
        number = os.open(folder / UNFINISHED / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        raise ResultsError(f"another run is at work in {folder}; wait for it, or name another folder") from None
    except OSError:
        pass  # a file system without locks
    return number


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
