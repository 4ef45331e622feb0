"""Scenario files: bundled ones load, and a mistake is named with its file, its key and what is right."""

from pathlib import Path

import pytest

from routesim.errors import ScenarioError
from routesim.scenario.bundled import scenario_names
from routesim.scenario.files import load_scenario

GOOD = """
kind = "bandit"
title = "a test"
rounds = 10
replications = 2
seed = 0
[bandit]
arms = 2
congestion = "inverse"
noise_variance = 0.1
windows = [1]
[[learners]]
name = "CARMAB"
confidence = 1.0
"""


@pytest.mark.parametrize("name", scenario_names())
def test_bundled_scenarios_load(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.title
    assert all(choice.make() for choice in scenario.learners)


def test_overrides_replace_only_what_is_given() -> None:
    scenario = load_scenario("paper-bandits", rounds=5, seed=None)
    assert (scenario.rounds, scenario.seed, scenario.replications) == (5, 0, 10)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rounds = 10", "rounds = 0", "rounds: Input should be greater than or equal to 1, got 0"),
        ("rounds = 10", "runds = 10", "runds|rounds"),
        ("arms = 2", "armz = 2", "armz|arms"),
        ('"inverse"', '"inversed"', "bandit.congestion"),
        ('"CARMAB"', '"CARMAN"', "there is no 'CARMAN' .did you mean 'CARMAB'"),
        (
            "confidence = 1.0",
            "confidense = 1.0",
            "no parameter 'confidense' .did you mean 'confidence'.*it has .*confidence, delta",
        ),
        ("confidence = 1.0", "confidence = -1.0", r"confidence must be between 1e-09 and 1e\+09, got -1.0$"),
        ("seed = 0", "seed = ", "Invalid value"),
        ("windows = [1]", "windows = []", "bandit.windows"),
        ("windows = [1]", "windows = [-2]", "bandit.windows.0: Input should be greater than or equal to 0, got -2"),
        ('kind = "bandit"', 'kind = "town"', "kind: Input tag 'town' .* expected tags: 'bandit'[^{]*$"),
        ("confidence = 1.0", 'confidence = "a"', "CARMAB's confidence: Input should be a valid number, got 'a'$"),
        ("[[learners]]", '[[learners]]\nname = "CARMAB"\nconfidence = 1.0\n[[learners]]', "is listed twice"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    assert load_scenario(path).rounds == 10
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(ScenarioError, match=message) as error:
        load_scenario(path)
    assert str(path) in str(error.value)


def test_a_missing_scenario_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="did you mean 'paper-bandits'"):
        load_scenario("paper-bandit")
    with pytest.raises(ScenarioError, match="No such file"):
        load_scenario(tmp_path / "none.toml")
