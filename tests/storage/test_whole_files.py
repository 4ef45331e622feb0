"""Files and folders are written whole or not at all, and get the permissions of every new file."""

import multiprocessing
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from routesim.errors import NetworkError, ResultsError
from routesim.roads.cities import load_city
from routesim.storage.files import beside, durable_file, whole_file
from routesim.storage.folders import durable_folder, write_folder


def whole(path: Path) -> None:
    with whole_file(path) as fresh:
        fresh.write_text("new")


def durable(path: Path) -> None:
    with durable_file(path) as fresh:
        fresh.write_text("new")


def fails(path: Path, manager: Callable[[Path], object]) -> None:
    with manager(path) as fresh:  # type: ignore[attr-defined]  # both are context managers
        fresh.write_text("half")
        raise KeyboardInterrupt


@pytest.mark.parametrize("manager", [whole_file, durable_file])
def test_what_fails_half_way_leaves_the_earlier_file_and_nothing_else(
    tmp_path: Path, manager: Callable[[Path], object]
) -> None:
    path = tmp_path / "file.txt"
    path.write_text("earlier")
    with pytest.raises(KeyboardInterrupt):
        fails(path, manager)
    assert path.read_text() == "earlier"
    assert [file.name for file in tmp_path.iterdir()] == ["file.txt"]


@pytest.mark.parametrize("write", [whole, durable])
def test_a_file_is_replaced(tmp_path: Path, write: Callable[[Path], None]) -> None:
    path = tmp_path / "file.txt"
    path.write_text("earlier")
    write(path)
    assert path.read_text() == "new"
    assert [file.name for file in tmp_path.iterdir()] == ["file.txt"]


def test_what_a_killed_process_left_beside_a_durable_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    beside(path).write_text("half of a longer text")
    durable(path)
    assert path.read_text() == "new"
    assert [file.name for file in tmp_path.iterdir()] == ["file.txt"]


def test_what_the_system_refuses_is_the_error_asked_for(tmp_path: Path) -> None:
    for path, message in ((tmp_path, "is a folder"), (tmp_path / "no" / "file", "No such file"), ("a\0b", "null")):
        with pytest.raises(NetworkError, match=message), whole_file(path, NetworkError):
            pass
    with pytest.raises(ResultsError, match="got 3"), whole_file(3):  # type: ignore[arg-type]  # on purpose
        pass
    with pytest.raises(ZeroDivisionError), whole_file(tmp_path / "file"):
        _ = 1 / 0
    assert list(tmp_path.iterdir()) == []


def _write_everything(folder: str, mask: int) -> None:
    os.umask(mask)  # of this process alone
    place = Path(folder)
    whole(place / "whole")
    durable(place / "durable")
    load_city("helsinki").save(place / "network.npz")
    load_city("helsinki").to_geopackage(place / "network.gpkg")
    write_folder(place / "folder", lambda fresh: (fresh / "file").write_text("new") and None)
    with durable_folder(place / "parts" / "one") as fresh:
        fresh.mkdir()
        (fresh / "file").write_text("new")


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_new_files_and_folders_get_the_permissions_that_the_umask_leaves(tmp_path: Path, mask: int) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_write_everything, args=(str(tmp_path), mask))
    process.start()
    process.join()
    assert process.exitcode == 0
    found = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*")}
    assert {path for path in found if "/" not in path} == {
        "whole", "durable", "network.npz", "network.gpkg", "folder", "parts",
    }  # fmt: skip
    for name, path in found.items():
        every = 0o777 if path.is_dir() else 0o666
        assert stat.S_IMODE(path.stat().st_mode) == every & ~mask, name


def test_writing_never_touches_the_umask_which_all_threads_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the umask was changed"))
    whole(tmp_path / "whole")
    durable(tmp_path / "durable")
    load_city("helsinki").save(tmp_path / "network.npz")


def test_several_may_write_the_same_file_at_the_same_time(tmp_path: Path) -> None:
    path, ready = tmp_path / "file.txt", threading.Barrier(8)

    def write(number: int) -> None:
        with whole_file(path) as fresh:
            ready.wait()
            fresh.write_text(str(number) * 1000)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = path.read_text()
    assert len(text) == 1000
    assert set(text) <= set("01234567")
    assert len(set(text)) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["file.txt"]


def test_a_durable_folder_appears_whole_and_the_first_one_stays(tmp_path: Path) -> None:
    target = tmp_path / "parts" / "one"
    with pytest.raises(ResultsError, match="No such file"), durable_folder(target) as fresh:
        (fresh / "file").write_text("in a folder that nobody made")
    assert list(target.parent.iterdir()) == []
    for text in ("first", "second"):
        with durable_folder(target) as fresh:
            fresh.mkdir()
            (fresh / "file").write_text(text)
    assert (target / "file").read_text() == "first"
    assert list(target.parent.iterdir()) == [target]
