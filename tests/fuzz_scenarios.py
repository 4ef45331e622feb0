"""Damaged scenario files for the fuzzer: changed values, and changed text."""

import random
import tomllib
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tomli_w
from fuzz import RefusedError

FOLDER = Path(__file__).parents[1] / "scenarios"
MOST_RUNS = 1000
WORDS = [
    "",
    "x",
    "CARMAB",
    "UCB1",
    "inverse",
    "helsinki",
    "0",
    "\u202e",
    "../../etc/passwd",
    "a" * 300,
    "a\nb",
    "\x1b[",
]
KEYS = ["window", "rounds", "nonsense", "name", "sweep", "noise", "city.window", "a\nb", "learners", "kind", "seed"]
WHOLE = [-1, 0, 1, 2, 3, 10**6, 10**9, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63), 2**70, 10**30]
FRACTIONS = [0.0, -0.0, 0.5, 1e-300, 5e-324, 1e308, -1e308, float("nan"), float("inf"), float("-inf")]
SNIPPETS = [
    *("[", "]", "[[", "]]", "{", "}", "=", ",", ".", '"', "'", '"""', "'''", "#", "\\", "\n", "\r", "\t", "\0"),
    *("a.b.c = 1\n", "[sweep]\n", "[[learners]]\n", "inf", "nan", "1e400", "-0", "0x", "2026-11-18", "25:00:00"),
    *("\ufeff", "é", "\U0001f600", '"\\ud800"', "true", "[learners]\n", "[city]\n", "[bandit]\n", 'kind = "city"\n'),
]
REPEATED = [
    "[",
    "{a=",
    "a.",
    '"a".',
    "9",
    "0.1,",
    "a=1\n",
    "[[a]]\n",
    "[a]\n",
    "(",
    '"',
    "'",
    "\n",
    " ",
    "x = [[]]\n",
    "#",
]


class Scenarios:
    """The scenarios that come with the package; what is accepted is also made ready to run."""

    def prepare(self, folder: Path) -> None:
        """Read the files, and make each ready once."""
        self.texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.toml"))}
        if find_spec("libsumo") is None:
            self.texts = {name: text for name, text in self.texts.items() if "sumo" not in text}
        for text in self.texts.values():
            path = folder / "whole.toml"
            path.write_text(text, encoding="utf-8")
            _ready(path)

    def damage(self, rng: random.Random, folder: Path) -> Callable[[], None]:
        """Write a damaged scenario."""
        text = self.texts[rng.choice(list(self.texts))]
        path = folder / "damaged.toml"
        how = rng.randrange(10)
        if how < 7:
            content = tomllib.loads(text)
            for _ in range(rng.choice([1, 1, 2, 3])):
                _change(rng, content)
            text = tomli_w.dumps(_without_nulls(content))
        if how > 5:
            for _ in range(rng.randint(1, 4)):
                text = _rewritten(rng, text)
        raw = text.encode("utf-8", "surrogatepass")
        if how == 9:
            at = rng.randrange(len(raw) + 1)
            raw = raw[:at] + rng.randbytes(rng.randint(1, 8)) + raw[at + rng.randint(0, 8) :]
        path.write_bytes(raw)
        return lambda: _ready(path)


def _ready(path: Path) -> None:
    from routesim.errors import RoutesimError, ScenarioError
    from routesim.runner.units import units
    from routesim.scenario.files import load_scenario, points, to_toml

    try:
        scenario = load_scenario(path)
    except ScenarioError as mistake:
        raise RefusedError(str(mistake), path.name) from None
    assert scenario.replications >= 1
    assert scenario.seed >= 0
    assert to_toml(scenario)
    at = points(scenario)[0][1]
    if at.replications * len(at.learners) > MOST_RUNS:
        return
    try:
        assert units(at)
    except RoutesimError as mistake:
        raise RefusedError(str(mistake), "") from None


def _places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here] if here else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        found += _places(one, (*here, key))
    return found


def _at(content: Any, way: Sequence[Any]) -> Any:
    for key in way:
        content = content[key]
    return content


def _odd(rng: random.Random) -> Any:
    kind = rng.randrange(8)
    if kind == 0:
        return rng.choice([True, False])
    if kind == 1:
        return [rng.randint(-3, 3) for _ in range(rng.randint(0, 3))]
    if kind == 2:
        return {rng.choice(KEYS): rng.randint(-1, 9) for _ in range(rng.randint(0, 2))}
    if kind == 3:
        return rng.choice(WORDS)
    if kind == 4:
        return [rng.choice(WORDS) for _ in range(rng.randint(0, 3))]
    return rng.choice(WHOLE) if kind == 5 else rng.choice(FRACTIONS) if kind == 6 else rng.uniform(-10, 1000)


def _change(rng: random.Random, content: dict[str, Any]) -> None:
    places = _places(content)
    if not places:
        return
    if rng.randrange(2):  # mostly numbers: what has another kind is refused before it is looked at
        places = [place for place in places if type(_at(content, place)) in (int, float)] or places
    *way, last = rng.choice(places)
    table = _at(content, way)
    change = rng.choice(["drop", "set", "scale", "add", "copy"])
    if change == "drop":
        del table[last]
    elif change == "scale" and type(table[last]) in (int, float):
        table[last] = table[last] * rng.choice([-1, 0, 0.5, 1e-6, 1e-300, 2, 2, 3, 10, 10, 100, 1000, 10**6, 10**12])
        if float(table[last]).is_integer() and rng.randrange(4):
            table[last] = int(table[last])
    elif change == "copy" and isinstance(table, list):
        table.append(table[last])
    elif change == "add" and isinstance(table, dict):
        table[rng.choice(KEYS)] = _odd(rng)
    else:
        table[last] = _odd(rng)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value if one is not None] if isinstance(value, list) else value


def _rewritten(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    how = rng.randrange(6)
    if how == 0:
        return text[:at] + rng.choice(SNIPPETS) + text[at:]
    if how == 1:
        return text[:at] + text[at + rng.randint(1, 40) :]
    if how == 2:
        return text[:at] + rng.choice(REPEATED) * rng.choice([10, 1000, 20_000, 200_000]) + text[at:]
    lines = text.split("\n")
    one = rng.randrange(len(lines))
    if how == 3:
        lines.insert(rng.randrange(len(lines) + 1), lines[one])
    elif how == 4:
        del lines[one]
    else:
        lines[one] = lines[one][: rng.randrange(len(lines[one]) + 1)]
    return "\n".join(lines)
