"""Scenario files that were damaged: each is refused in one line or stands for something that can be run."""

import contextlib
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routesim.errors import RoutesimError, ScenarioError
from routesim.runner.units import units
from routesim.scenario.bundled import scenario_names
from routesim.scenario.files import load_scenario, parse_scenario, points
from routesim.scenario.kinds import AnyScenario

FOLDER = Path(__file__).parents[2] / "scenarios"
TEXTS = {name: (FOLDER / f"{name}.toml").read_text(encoding="utf-8") for name in scenario_names()}
# Scenarios whose roads load in an instant: what is accepted is also made ready to run.
QUICK = [name for name in TEXTS if not name.startswith(("coquimbo", "gothenburg"))]

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([-1, 0, 1, 2, 3, 10**6, 10**9, 2**63]),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from(["", "x", "CARMAB", "inverse", "helsinki", "0", "\u202e", "../../etc/passwd", "a" * 300]),
    st.lists(st.integers(-3, 3), max_size=3),
    st.dictionaries(st.sampled_from(["name", "x", "window"]), st.integers(-1, 9), max_size=2),
)


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here] if here else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        found += places(one, (*here, key))
    return found


@st.composite
def damaged(draw: st.DrawFn) -> str:
    content = tomllib.loads(TEXTS[draw(st.sampled_from(QUICK))])
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(places(content)))
        table = content
        for key in way:
            table = table[key]
        change = draw(st.sampled_from(["drop", "set", "add", "copy"]))
        if change == "drop":
            del table[last]
        elif change == "copy" and isinstance(table, list):
            table.append(table[last])
        elif change == "add" and isinstance(table, dict):
            table[draw(st.sampled_from(["window", "rounds", "nonsense", "name", "sweep", "noise"]))] = draw(ODD)
        else:
            table[last] = draw(ODD)
        if not places(content):
            break
    return _dumped(content)


def _dumped(content: dict[str, Any]) -> str:
    try:
        return tomli_w.dumps(content)
    except TypeError:  # TOML has no null
        return tomli_w.dumps(_without_nulls(content))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value if one is not None] if isinstance(value, list) else value


def check_refusal(text: str) -> AnyScenario | None:
    try:
        return parse_scenario(text, "fuzz.toml")
    except ScenarioError as mistake:
        said = str(mistake)
    assert said.startswith("fuzz.toml")
    assert "\n" not in said, "a mistake is one line"
    return None


def check(text: str) -> None:
    scenario = check_refusal(text)
    if scenario is None:
        return
    # What is accepted makes sense: nothing negative, nothing endless, and it is ready to run or says why not.
    assert scenario.replications >= 1
    assert scenario.seed >= 0
    assert (scenario.rounds or 1) >= 1
    at = points(scenario)[0][1]
    if at.replications * len(at.learners) > 1000:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(RoutesimError):
            assert units(at)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(damaged())
def test_a_damaged_scenario_is_refused_or_makes_sense(text: str) -> None:
    check(text)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(TEXTS)), st.integers(0, 2000), st.text(max_size=5), st.booleans())
def test_a_file_with_wrong_characters_is_refused_or_makes_sense(name: str, at: int, new: str, drop: bool) -> None:
    text = TEXTS[name]
    changed = text[:at] + new + text[at + (len(new) if drop else 0) :]
    check_refusal(changed)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\x00" * 100, b"", b"[" * 100_000, b"a = " + b"[" * 5000])
def test_a_file_that_is_no_text_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match=r"bad\.toml"):
        load_scenario(path)
