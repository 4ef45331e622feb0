"""Checkpoints: whatever moment a run was stopped at, and however, it ends with the numbers of an undisturbed one."""

import copy
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from runs import same
from worlds import CASES, ROUNDS, WORLDS, arms, contexts, graph

import routesim as rs
from routesim.errors import InputError, ResultsError
from routesim.results.run import SAVED_ROWS
from routesim.rounds import trace as traces
from routesim.storage.checkpoint import fingerprint, postponed_interrupts


def stopping(learner: rs.Learner, moments: list[int]) -> rs.Learner:
    """The same learner, during which Ctrl-C is pressed at the first round that is played from each moment on."""
    kind = type(learner)

    def press(now: int) -> None:
        if moments and now >= moments[0]:
            moments.pop(0)
            signal.raise_signal(signal.SIGINT)

    def choose(self: rs.Learner, observation: rs.Observation) -> object:
        press(observation.round)
        return kind.choose(self, observation)

    def epoch(self: rs.Learner, now: int) -> object:
        press(now)
        return kind.epoch(self, now)

    changed = {"choose": choose, "state": kind.state, "restore": kind.restore}
    other = copy.deepcopy(learner)
    other.__class__ = type(kind.__name__, (kind,), changed | ({"epoch": epoch} if hasattr(kind, "epoch") else {}))
    return other


def in_pieces(play: Callable[[], rs.Run], moments: list[int]) -> rs.Run:
    """Go on after every Ctrl-C."""
    while True:
        left = len(moments)
        try:
            return play()
        except KeyboardInterrupt:
            assert len(moments) < left


@pytest.mark.parametrize("keep", [None, 13])
@pytest.mark.parametrize(("name", "learner"), CASES, ids=lambda part: part if isinstance(part, str) else repr(part))
def test_a_run_stopped_now_and_then_ends_with_the_same_numbers(
    name: str, learner: rs.Learner, keep: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("routesim.travellers.contexts.BLOCK_NUMBERS", 600)  # contexts come in some dozens of blocks
    slow = isinstance(learner, rs.CARMAB) and (learner.planner == "edgewise" or "long" in name or name == "paths")
    if slow and keep is None:
        pytest.skip("planning is slow here, and rows are the harder case")
    world, rounds, file = WORLDS[name](), 100 if slow else ROUNDS, tmp_path / "checkpoint"
    comparator = None if "contexts" in name else rs.Comparator(0.0, 0.0)
    undisturbed = rs.run(world, learner, rounds, seed=5, keep=keep, comparator=comparator)
    monkeypatch.setattr(traces, "_STRETCH", 7)
    monkeypatch.setattr(traces, "_SCRATCH", 11)
    moments = sorted(np.random.default_rng(8).integers(0, rounds - 12, size=4).tolist())
    changed = stopping(learner, moments)
    seen: list[int] = []

    def play() -> rs.Run:
        seen.clear()
        options = {"keep": keep, "comparator": comparator, "checkpoint": file, "progress": seen.append}
        return rs.run(world, changed, rounds, seed=5, **options)

    same(in_pieces(play, moments), undisturbed)
    assert not moments
    assert sum(seen) == rounds, "rounds gone on from are shown too"
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize("moment", range(12))
def test_every_early_moment(moment: int, tmp_path: Path) -> None:
    learner = rs.CARMAB(confidence=1)
    undisturbed = rs.run(arms(), learner, 40, seed=1)
    moments = [moment, moment + 1]
    stopped = stopping(learner, moments)
    run = in_pieces(lambda: rs.run(arms(), stopped, 40, seed=1, compiled=False, checkpoint=tmp_path / "c"), moments)
    same(run, undisturbed)


SCRIPT = """
import sys
from pathlib import Path
import routesim as rs
from worlds import WORLDS

name, kind, rounds, keep, folder = sys.argv[1:]
learner = getattr(rs, kind)()
folder = Path(folder)
print("ready", flush=True)
options = {"keep": int(keep) or None, "checkpoint": folder / "checkpoint", "checkpoint_s": 0.0}
run = rs.run(WORLDS[name](), learner, int(rounds), seed=2, **options)
run.save(folder / "run")
"""


def start(*arguments: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", SCRIPT, *map(str, arguments)]
    return subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def written_at(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize(
    ("name", "learner", "rounds", "keep"),
    [("arms", "CARMAB", 10_000_000, 1_000), ("arms", "UCB1", 30_000, 0), ("stochastic contexts", "CARCB", 500_000, 0)],
)
def test_a_killed_process_goes_on_to_the_same_numbers(
    name: str, learner: str, rounds: int, keep: int, tmp_path: Path
) -> None:
    file, rng, kills = tmp_path / "checkpoint", np.random.default_rng(0), 0
    while not (tmp_path / "run").exists():
        before = written_at(file)
        process = start(name, learner, rounds, keep, tmp_path)
        if kills < 5:
            while written_at(file) == before and process.poll() is None:
                time.sleep(0.001)
            time.sleep(float(rng.uniform(0, 0.1)))
            process.kill()
            kills += 1
        _, problems = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), problems.decode()
    assert kills > 1, "it had to go on at least once"
    undisturbed = rs.run(WORLDS[name](), getattr(rs, learner)(), rounds, seed=2, keep=keep or None)
    same(rs.Run.load(tmp_path / "run"), undisturbed.thinned(SAVED_ROWS))
    assert list(tmp_path.glob("checkpoint*")) == []


def test_ctrl_c_in_a_process_leaves_a_checkpoint(tmp_path: Path) -> None:
    process = start("arms", "UCB1", 10**9, 1000, tmp_path)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, problems = process.communicate(timeout=60)
    assert problems.decode().strip().endswith("KeyboardInterrupt")
    assert (tmp_path / "checkpoint").exists()


def stopped_file(tmp_path: Path, **options: object) -> Path:
    """A checkpoint after some rounds with `rs.run(arms(), rs.UCB1(), 10_000, **options)`."""
    file = tmp_path / "checkpoint"

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rs.run(arms(), rs.UCB1(), 10_000, **{"checkpoint": file, "progress": stop, **options})
    assert file.exists()
    return file


def test_an_interrupt_from_the_progress_display_leaves_a_checkpoint(tmp_path: Path) -> None:
    file = stopped_file(tmp_path)
    shown: list[int] = []
    run = rs.run(arms(), rs.UCB1(), 10_000, checkpoint=file, progress=shown.append)
    assert sum(shown) == 10_000
    assert len(shown) > 1, "the first were played before"
    same(run, rs.run(arms(), rs.UCB1(), 10_000))


@pytest.mark.parametrize(
    "other",
    [
        lambda file: rs.run(arms(), rs.UCB1(), 10_001, checkpoint=file),
        lambda file: rs.run(arms(), rs.UCB1(), 10_000, seed=1, checkpoint=file),
        lambda file: rs.run(arms(), rs.UCB1(), 10_000, replication=1, checkpoint=file),
        lambda file: rs.run(arms(), rs.UCB1(), 10_000, keep=100, checkpoint=file),
        lambda file: rs.run(arms(), rs.ThompsonSampling(), 10_000, checkpoint=file),
        lambda file: rs.run(arms(4), rs.UCB1(), 10_000, checkpoint=file),
        lambda file: rs.run(graph(), rs.CARMAB(), 10_000, checkpoint=file),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path, other: Callable[[Path], rs.Run]) -> None:
    file = stopped_file(tmp_path)
    before = file.read_bytes()
    with pytest.raises(ResultsError, match=r"it belongs to another run.*delete it to start over"):
        other(file)
    assert file.read_bytes() == before
    same(rs.run(arms(), rs.UCB1(), 10_000, checkpoint=file), rs.run(arms(), rs.UCB1(), 10_000))


def rewritten(file: Path, change: Callable[[dict[str, np.ndarray]], None]) -> None:
    with np.load(file, allow_pickle=False) as stored:
        arrays = dict(stored)
    change(arrays)
    with file.open("wb") as stream:
        np.savez(stream, **arrays)


@pytest.mark.parametrize("keep", [None, 100])
def test_damaged_files_are_refused(tmp_path: Path, keep: int | None) -> None:
    file = stopped_file(tmp_path, keep=keep)
    beside = tmp_path / "checkpoint.rows"
    good, rows = file.read_bytes(), beside.read_bytes()
    with np.load(file) as stored:
        names = list(stored)

    def refused(why: str = "cannot go on from the checkpoint") -> None:
        with pytest.raises(ResultsError, match=why):
            rs.run(arms(), rs.UCB1(), 10_000, keep=keep, checkpoint=file)
        file.write_bytes(good)
        beside.write_bytes(rows)

    for size in range(0, len(good), max(1, len(good) // 50)):
        file.write_bytes(good[:size])
        refused()
    for place in np.random.default_rng(1).integers(len(rows), size=20):
        beside.write_bytes(rows[:place] + bytes([rows[place] ^ 1]) + rows[place + 1 :])
        refused("rows does not hold its|no part of a checkpoint")
    beside.write_bytes(rows[:-1])
    refused("does not hold its")
    beside.unlink()
    refused("is missing")
    for name in names:
        rewritten(file, lambda arrays, name=name: arrays.pop(name))
        refused()
        rewritten(file, lambda arrays, name=name: arrays.update({name: arrays[name][np.newaxis]}))
        refused()
        rewritten(file, lambda arrays, name=name: arrays.update({name: np.array([{"a": "pickle"}], dtype=object)}))
        refused()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("format.npy", b"0" * 1000)
    refused("compressed")
    file.unlink()
    file.mkdir()
    with pytest.raises(ResultsError, match="cannot go on"):
        rs.run(arms(), rs.UCB1(), 10_000, keep=keep, checkpoint=file)


def test_flipped_bits_are_refused_or_of_no_consequence(tmp_path: Path) -> None:
    file = stopped_file(tmp_path)
    good, rows = file.read_bytes(), (tmp_path / "checkpoint.rows").read_bytes()
    undisturbed = rs.run(arms(), rs.UCB1(), 10_000)
    refused = 0
    for place in np.random.default_rng(3).integers(len(good), size=40):
        file.write_bytes(good[:place] + bytes([good[place] ^ 4]) + good[place + 1 :])
        (tmp_path / "checkpoint.rows").write_bytes(rows)
        try:
            same(rs.run(arms(), rs.UCB1(), 10_000, checkpoint=file), undisturbed)
        except ResultsError:
            refused += 1
    assert refused > 20


def test_rows_that_were_not_finished_are_forgotten(tmp_path: Path) -> None:
    file = stopped_file(tmp_path)
    with (tmp_path / "checkpoint.rows").open("ab") as stream:
        stream.write(b"half a row and some mo")
    same(rs.run(arms(), rs.UCB1(), 10_000, checkpoint=file), rs.run(arms(), rs.UCB1(), 10_000))


FULL_DISK = """
import resource
from pathlib import Path
import routesim as rs
from routesim.storage import checkpoint
from worlds import arms

checkpoint._SHARE = 0  # it is written between all stretches of rounds, however slow the disk is
limit = 600_000
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    rs.run(arms(), rs.UCB1(), 40_000, seed=2, checkpoint=Path("{file}"), checkpoint_s=0.0)
except rs.RoutesimError as problem:
    print(problem)
"""


def test_a_full_disk_is_one_error_and_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    command = [sys.executable, "-c", FULL_DISK.format(file=file)]
    out = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True)
    assert out.stdout == f"cannot write the checkpoint {file}: File too large; the last one is left, to go on from\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "checkpoint.rows"]
    shown: list[int] = []
    run = rs.run(arms(), rs.UCB1(), 40_000, seed=2, checkpoint=file, progress=shown.append)
    assert shown[0] > 4096, "most were played before"
    same(run, rs.run(arms(), rs.UCB1(), 40_000, seed=2))


def test_a_place_that_cannot_be_written_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    played: list[int] = []
    with pytest.raises(ResultsError, match="cannot write a checkpoint to"):
        rs.run(arms(), rs.UCB1(), 10_000, checkpoint=tmp_path / "file" / "checkpoint", progress=played.append)
    assert played == []
    (tmp_path / "c.rows").write_text("years of work")
    with pytest.raises(ResultsError, match="is no part of a checkpoint"):
        rs.run(arms(), rs.UCB1(), 10_000, checkpoint=tmp_path / "c")
    assert (tmp_path / "c.rows").read_text() == "years of work"
    with pytest.raises(InputError, match="checkpoint_s must be at least 0"):
        rs.run(arms(), rs.UCB1(), 10_000, checkpoint=tmp_path / "d", checkpoint_s=-1.0)


def test_folders_are_made_and_failures_leave_nothing_behind(tmp_path: Path) -> None:
    class Failing(rs.UCB1):
        def update(self, feedback: rs.Feedback) -> None:  # noqa: ARG002 - fails whatever happened
            raise RuntimeError("a mistake of the learner's")

    with pytest.raises(RuntimeError):
        rs.run(arms(), Failing(), 10, checkpoint=tmp_path / "deep" / "c")
    assert list((tmp_path / "deep").iterdir()) == []


class Own:
    """A learner of a user's own, without a state to tell."""

    knows = "nothing"

    def start(self, task: rs.Task, rng: np.random.Generator) -> None:
        self.n_actions, self.rng = task.actions.n_listed, rng

    def choose(self, observation: rs.Observation) -> int:
        if observation.round == self.stop_at and not self.stopped:
            self.stopped.append(True)
            signal.raise_signal(signal.SIGINT)
        return int(self.rng.integers(self.n_actions))

    def update(self, feedback: rs.Feedback) -> None:
        pass

    stopped: list[bool] = []  # noqa: RUF012 - shared by copies on purpose
    stop_at = 50


@pytest.mark.parametrize("known", [None, True])
def test_a_learner_without_a_state_starts_over(tmp_path: Path, known: bool | None) -> None:
    Own.stopped.clear()
    world = arms() if known is None else contexts(known=known)
    with pytest.raises(KeyboardInterrupt):
        rs.run(world, Own(), 100, checkpoint=tmp_path / "c")
    assert list(tmp_path.iterdir()) == []
    same(rs.run(world, Own(), 100, checkpoint=tmp_path / "c"), rs.run(world, Own(), 100))


def test_objects_in_a_state_are_refused(tmp_path: Path) -> None:
    class Boxed(rs.UCB1):
        def state(self) -> dict[str, np.ndarray]:
            return super().state() | {"box": np.array([object()])}

    with pytest.raises(ResultsError, match="never pickled"):
        rs.run(arms(), Boxed(), 100, checkpoint=tmp_path / "c", checkpoint_s=0.0)
    assert list(tmp_path.iterdir()) == []


def test_interrupts_wait_once() -> None:
    before = signal.getsignal(signal.SIGINT)
    with postponed_interrupts() as pressed:
        assert not pressed()
        signal.raise_signal(signal.SIGINT)
        assert pressed()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_fingerprint_tells_what_matters() -> None:
    worlds = {name: fingerprint(make()) for name, make in WORLDS.items()}
    assert len(set(worlds.values())) == len(worlds)
    assert worlds == {name: fingerprint(make()) for name, make in WORLDS.items()}
    learners = [
        rs.CARMAB(),
        rs.CARMAB(confidence=1),
        rs.CARMAB(planner="karp"),
        rs.UCB1(),
        rs.CARCB(),
        rs.CARCB(ridge=1),
    ]
    assert len({fingerprint(learner) for learner in learners}) == len(learners)
    used = rs.CARMAB()
    used.start(arms().task(), np.random.default_rng(0))
    assert fingerprint(used) == fingerprint(rs.CARMAB()), "work under way does not count"
    shaped = [
        np.arange(6),
        np.arange(6).reshape(2, 3),
        np.arange(6.0),
        [0, 1, 2, 3, 4, 5],
        np.array(6),
        np.empty((0, 2)),
    ]
    assert len({fingerprint(array) for array in shaped}) == len(shaped)

    def made(shift: float) -> Callable[[float], float]:
        return lambda value: value + shift

    assert fingerprint(made(1.0)) == fingerprint(made(1.0)) != fingerprint(made(2.0))
    loop: list[object] = [1]
    loop.append(loop)
    assert fingerprint(loop)
