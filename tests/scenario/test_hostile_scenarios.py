"""Scenario files that were crafted: small files that would take minutes, and numbers and names of any length."""

from pathlib import Path

import pytest

from routesim.cli import exit_code
from routesim.errors import InputError, ScenarioError
from routesim.runner.units import units
from routesim.scenario.files import load_scenario

ARMS = """
kind = "bandit"
title = "Two arms"
seed = {seed}
rounds = 10
replications = 1
learners = ["UCB1", {{ name = "CARMAB", confidence = {confidence} }}]
[bandit]
arms = {arms}
congestion = "inverse"
noise_variance = 0.1
windows = [1]
"""


def arms(seed: str = "0", number: str = "2", confidence: str = "1.0", more: str = "") -> str:
    return ARMS.format(seed=seed, arms=number, confidence=confidence) + more


DOTS = "a" + ".a" * 50_000
DIGITS = "9" * 10_000
BITS = "0x" + "f" * 10_000
HOSTILE = {
    "a key of 50,000 dots": f"{DOTS} = 1",
    "a quoted key of 50,000 dots": '"a" . ' * 50_000 + "'a' = 1",
    "a table of 50,000 dots": f"[{DOTS}]",
    "a list of tables of 50,000 dots": f"[[{DOTS}]]",
    "an inline table of 50,000 dots": f"x = {{ {DOTS} = 1 }}",
    "a dotted key in a table of a dotted name": f"[{DOTS[:20_001]}]\n{DOTS[:20_001]} = 1",
    "a swept name of 50,000 dots": arms(more=f'[sweep]\n"{DOTS}" = [1]'),
    "a swept name of two lines": arms(more='[sweep]\n"a\\nb" = [1]'),
    "a swept name of control characters": arms(more='[sweep]\n"a\\u001b[2J\\u202e" = [1]'),
    "a swept number of 10,000 digits": arms(more=f'[sweep]\n"bandit.arms" = [2, {BITS}]'),
    "a seed of 10,000 digits": arms(seed=DIGITS),
    "a seed of 40,000 bits": arms(seed=BITS),
    "arms of 10,000 digits": arms(number=DIGITS),
    "arms of 40,000 bits": arms(number=BITS),
    "a confidence of 40,000 bits": arms(confidence=BITS),
    "a confidence of 400 digits": arms(confidence="9" * 400),
    "a float of 10,000 digits": arms(confidence=DIGITS + ".0"),
    "a title of a million characters": arms().replace("Two arms", "x" * 1_000_000),
    "a learner of a million characters": arms().replace("UCB1", "x" * 1_000_000),
    "a key of a million characters": arms() + "x" * 1_000_000 + " = 1",
    "a date of no calendar": "x = 2026-99-99",
    "deep lists": "x = " + "[" * 50_000,
    "deep tables": "x = " + "{ a = " * 50_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_scenario_is_one_short_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hostile.toml"
    path.write_text(HOSTILE[name])
    with pytest.raises(ScenarioError, match=r"hostile\.toml") as refusal:
        load_scenario(path)
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 1000
    assert ("more than 50 dots" in str(refusal.value)) == (("dots" in name and "swept" not in name) or "dotted" in name)
    monkeypatch.setattr("sys.argv", ["routesim", "run", str(path), "--out", str(tmp_path / "run")])
    assert exit_code() == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)


def test_no_vehicles_cannot_be_scaled(tmp_path: Path) -> None:
    path = tmp_path / "nobody.toml"
    text = (Path(__file__).parents[2] / "scenarios" / "coquimbo-morning.toml").read_text()
    assert "end_s = 3600" in text
    path.write_text(text.replace("end_s = 3600", "end_s = 5e-324"))
    with pytest.raises(InputError, match="no vehicle is expected"):
        units(load_scenario(path, rounds=10))


def test_numbers_with_dots_and_long_texts_are_no_keys(tmp_path: Path) -> None:
    path = tmp_path / "fine.toml"
    values = ", ".join("0.1" for _ in range(1000))
    path.write_text(arms().replace("Two arms", "1.2.3.4.5.6.7.8.9.10.11.12" * 5) + f"# {DOTS}\n")
    assert load_scenario(path).title.startswith("1.2.3")
    path.write_text(arms(more=f"pull = [{values}]"))
    with pytest.raises(ScenarioError, match="pull"):
        load_scenario(path)
