"""The unfinished run inside a folder: whose it is, when it may go on, and how the result takes its place."""

import json
from pathlib import Path

import pytest

from routesim.errors import ResultsError
from routesim.runner.workspace import Identity, RunFolder, open_workspace

MINE = Identity("rounds = 10\nseed = 0\n", "a" * 64, "1.0")
OTHER = Identity("rounds = 20\nseed = 0\n", "b" * 64, "1.0")


def begin(folder: Path, identity: Identity = MINE, *, resume: bool = False, overwrite: bool = False) -> RunFolder:
    workspace = open_workspace(folder, identity, resume=resume, overwrite=overwrite)
    assert workspace is not None
    return workspace


def leave_part(workspace: RunFolder) -> None:
    workspace.part("one").mkdir(parents=True)
    (workspace.part("one") / "values").write_text("1")


def write(text: str, identity: Identity = MINE, *more: str):
    def fill(folder: Path) -> None:
        (folder / "values").write_text(text)
        for name in more:
            (folder / name).mkdir()
            (folder / name / "values").write_text(text)
        files = ["summary.json", "values", *more]
        (folder / "summary.json").write_text(
            json.dumps(
                {
                    "scenario_sha256": identity.scenario_sha256,
                    "versions": {"routesim": identity.version},
                    "files": files,
                    "verdict": text,
                }
            )
        )

    return fill


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_finished_run_leaves_its_result_and_nothing_else(tmp_path: Path) -> None:
    workspace = begin(tmp_path / "run")
    leave_part(workspace)
    workspace.finish(write("first"))
    workspace.close(forget_if_empty=False)
    assert names(tmp_path / "run") == ["summary.json", "values"]
    assert open_workspace(tmp_path / "run", MINE, resume=True) is None


def test_a_new_result_takes_the_place_of_the_earlier_one_and_leaves_what_is_not_its_own(tmp_path: Path) -> None:
    workspace = begin(tmp_path / "run")
    workspace.finish(write("first", MINE, "points", "gone"))
    workspace.close(forget_if_empty=False)
    (tmp_path / "run" / "notes").write_text("mine")
    with pytest.raises(
        ResultsError, match="holds the result of another scenario, seed or size; replace it with --over"
    ):
        begin(tmp_path / "run", OTHER)
    workspace = begin(tmp_path / "run", OTHER, overwrite=True)
    assert names(tmp_path / "run") == [".unfinished", "gone", "notes", "points", "summary.json", "values"]
    workspace.finish(write("second", OTHER, "points"))
    workspace.close(forget_if_empty=False)
    assert names(tmp_path / "run") == ["notes", "points", "summary.json", "values"]
    assert (tmp_path / "run" / "points" / "values").read_text() == "second"


def test_what_is_done_is_kept_and_only_the_same_run_goes_on(tmp_path: Path) -> None:
    workspace = begin(tmp_path / "run")
    leave_part(workspace)
    (workspace.part("one").parent / ".half").mkdir()
    workspace.close(forget_if_empty=True)
    with pytest.raises(ResultsError, match="unfinished run; go on with it with --resume"):
        begin(tmp_path / "run")
    with pytest.raises(ResultsError, match="rounds = 10 there, rounds = 20 here"):
        begin(tmp_path / "run", OTHER, resume=True)
    with pytest.raises(ResultsError, match=r"begun by routesim 1\.0, and this is 2\.0"):
        begin(tmp_path / "run", MINE._replace(version="2.0"), resume=True)
    again = begin(tmp_path / "run", resume=True)
    assert (again.part("one") / "values").read_text() == "1"
    assert not (again.part("one").parent / ".half").exists()
    again.close(forget_if_empty=True)


def test_a_result_of_something_else_is_not_gone_on_with(tmp_path: Path) -> None:
    workspace = begin(tmp_path / "run")
    workspace.finish(write("first"))
    workspace.close(forget_if_empty=False)
    with pytest.raises(ResultsError, match="result of another scenario"):
        begin(tmp_path / "run", OTHER, resume=True)


def test_a_run_that_got_nowhere_leaves_nothing(tmp_path: Path) -> None:
    begin(tmp_path / "runs" / "run").close(forget_if_empty=True)
    assert names(tmp_path) == []
    begin(tmp_path / "run").close(forget_if_empty=False)  # killed before anything was done
    begin(tmp_path / "run", OTHER, overwrite=True).close(forget_if_empty=True)


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    first = begin(tmp_path / "run")
    with pytest.raises(ResultsError, match="another run is at work"):
        begin(tmp_path / "run", resume=True)
    first.close(forget_if_empty=False)
    begin(tmp_path / "run", resume=True).close(forget_if_empty=True)


@pytest.mark.parametrize("ends_at", ["write", "old away", "new there", "marker gone"])
def test_an_end_while_the_result_is_put_in_place_loses_nothing(
    ends_at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = begin(tmp_path / "run")
    workspace.finish(write("first"))
    workspace.close(forget_if_empty=False)
    workspace = begin(tmp_path / "run", OTHER, overwrite=True)
    leave_part(workspace)

    class Killed(BaseException):
        pass

    with monkeypatch.context() as patch:
        if ends_at in ("old away", "new there"):
            calls = {"old away": 3, "new there": 4}[ends_at]
            rename, seen = Path.rename, []

            def counted(self: Path, target: Path) -> Path:
                seen.append(self)
                if len(seen) == calls:
                    raise Killed
                return rename(self, target)

            patch.setattr(Path, "rename", counted)
        if ends_at == "marker gone":
            patch.setattr("shutil.rmtree", lambda *_, **__: (_ for _ in ()).throw(Killed()))

        def fill(folder: Path) -> None:
            if ends_at == "write":
                raise Killed
            write("second", OTHER)(folder)

        with pytest.raises(Killed):
            workspace.finish(fill)
    workspace.close(forget_if_empty=False)
    if ends_at == "write":
        assert json.loads((tmp_path / "run" / "summary.json").read_text())["verdict"] == "first"
    again = open_workspace(tmp_path / "run", OTHER, resume=True)
    assert (again is None) == (ends_at == "marker gone")
    if again is not None:
        assert (again.part("one") / "values").read_text() == "1"
        again.finish(write("second", OTHER))
        again.close(forget_if_empty=False)
    assert names(tmp_path / "run") == ["summary.json", "values"]
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["verdict"] == "second"
    assert (tmp_path / "run" / "values").read_text() == "second"


@pytest.mark.parametrize(
    "listed",
    [[".."], ["."], ["/"], [""], ["../beside"], [".unfinished"], [".unfinished/parts"], [None, 3, {}], "..", {"a": 1}],
)
def test_no_name_in_a_summary_leads_out_of_the_folder(listed: object, tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "kept").write_text("old")
    workspace = begin(tmp_path / "run")
    workspace.finish(write("first"))
    workspace.close(forget_if_empty=False)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    (tmp_path / "run" / "summary.json").write_text(json.dumps({**summary, "files": listed}))
    workspace = begin(tmp_path / "run")
    leave_part(workspace)
    workspace.finish(write("second"))
    workspace.close(forget_if_empty=False)
    assert names(tmp_path) == ["beside", "run"]
    assert names(tmp_path / "run") == ["summary.json", "values"]
    assert (tmp_path / "run" / "values").read_text() == "second"
    assert (beside / "kept").read_text() == "old"


def test_a_finished_result_of_another_version_is_named(tmp_path: Path) -> None:
    workspace = begin(tmp_path / "run")
    workspace.finish(write("first"))
    workspace.close(forget_if_empty=False)
    with pytest.raises(ResultsError, match=r"made by routesim 1\.0, and this is 2\.0; leave --resume out"):
        begin(tmp_path / "run", MINE._replace(version="2.0"), resume=True)
    begin(tmp_path / "run", MINE._replace(version="2.0")).close(forget_if_empty=True)


@pytest.mark.parametrize("name", ["summary.json", ".unfinished/run.json"])
def test_json_too_deep_to_read_is_like_any_other_damage(name: str, tmp_path: Path) -> None:
    workspace = begin(tmp_path / "run")
    if name == "summary.json":
        workspace.finish(write("first"))
    else:
        leave_part(workspace)
    workspace.close(forget_if_empty=False)
    (tmp_path / "run" / name).write_text("[" * 100_000 + "]" * 100_000)
    for resume in (False, True):
        with pytest.raises(ResultsError, match=r"holds the result of another|cannot be read"):
            begin(tmp_path / "run", resume=resume)
