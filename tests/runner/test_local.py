"""Jobs on one or more processes: the same bytes, progress while they run, and one error when something goes wrong."""

import multiprocessing
from pathlib import Path

import pytest
from small_units import SmallUnit

from routesim.errors import InputError, LostWorkerError, ResultsError
from routesim.runner.local import Crew
from routesim.runner.work import Job, UnitJob


def jobs(folder: Path, *units: SmallUnit) -> list[UnitJob]:
    return [UnitJob(unit, folder / "parts" / unit.key, folder / unit.key) for unit in units]


def do(folder: Path, workers: int, *units: SmallUnit) -> list[tuple[str, int, bool]]:
    heard: list[tuple[str, int, bool]] = []

    def listen(job: Job, done: int, finished: bool) -> None:
        heard.append((job.label, done, finished))

    with Crew(workers) as crew:
        crew.do(jobs(folder, *units), listen)
    return heard


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_any_number_of_processes_leaves_the_same_bytes(tmp_path: Path) -> None:
    units = [SmallUnit(seed) for seed in range(5)]
    for workers in (1, 2, 3):
        heard = do(tmp_path / str(workers), workers, *units)
        assert sorted(label for label, _, finished in heard if finished) == sorted(unit.label for unit in units)
        assert all(done <= 100 for _, done, _ in heard)
    assert len(everything(tmp_path / "1")) == 5
    assert everything(tmp_path / "1") == everything(tmp_path / "2") == everything(tmp_path / "3")


def test_a_crew_is_used_again(tmp_path: Path) -> None:
    with Crew(2) as crew:
        for number in range(2):
            crew.do(jobs(tmp_path / str(number), SmallUnit(1), SmallUnit(2)), lambda *_: None)
        assert len(multiprocessing.active_children()) == 2
    assert multiprocessing.active_children() == []
    assert everything(tmp_path / "0") == everything(tmp_path / "1")


def test_progress_comes_while_a_unit_runs(tmp_path: Path) -> None:
    for workers in (1, 2):
        heard = do(tmp_path / str(workers), workers, *(SmallUnit(seed, trouble="slow") for seed in range(2)))
        assert any(0 < done <= 100 and not finished for _, done, finished in heard)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("trouble", "error", "message"),
    [
        ("mistake", InputError, "seeds must be even"),
        ("full", ResultsError, "cannot write results to .*: No space left"),
    ],
)
def test_a_mistake_is_told_as_it_is(
    workers: int, trouble: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        do(tmp_path, workers, SmallUnit(0, total=101), SmallUnit(1, trouble=trouble))
    assert not (tmp_path / "parts" / "unit-1").exists()
    assert not [path for path in (tmp_path / "parts").iterdir() if path.name.startswith(".") and workers == 1]
    assert multiprocessing.active_children() == []


def test_a_fault_in_a_worker_comes_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"small_units\.py(.|\n)*an unexpected thing"):
        do(tmp_path, 2, SmallUnit(0), SmallUnit(1, trouble="bug"))


def test_a_worker_that_dies_is_missed_and_the_rest_is_kept(tmp_path: Path) -> None:
    first = tmp_path / "parts" / "unit-0"
    dies = SmallUnit(1, trouble="dies", total=10, witness=str(first))
    with pytest.raises(LostWorkerError, match=r"by signal 9 while it did numbers 1; .*--resume"):
        do(tmp_path, 2, SmallUnit(0, total=101), dies, SmallUnit(2, total=100))
    assert first.is_dir()


def test_warnings_of_workers_are_heard_here(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="fewer roads"):
        do(tmp_path, 2, SmallUnit(0), SmallUnit(1, trouble="warn"))
