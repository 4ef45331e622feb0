"""Every Python example of the README runs, in order, in one process; its two first commands are the promised ones."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    examples = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(examples) >= 3
    for example in examples:
        exec(compile(example, "README.md", "exec"), names)  # noqa: S102 - our own text


def test_the_first_commands_set_up_run_and_test() -> None:
    run, test = re.findall(r"```sh\n(.*?)\n```", README, flags=re.DOTALL)[:2]
    assert run.startswith("python3 -m venv .venv && ")
    assert "routesim run" in run
    assert test.startswith("python3 -m venv .venv && ")
    assert test.endswith("-m pytest")
    assert "\n" not in run + test
