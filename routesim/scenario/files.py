"""Scenario files: TOML in, frozen values out, TOML again; every mistake named with its file, key and fix."""

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from routesim.errors import RoutesimError, ScenarioError
from routesim.registry import nearest
from routesim.results.run import Scalar
from routesim.scenario.base import LONGEST_TITLE
from routesim.scenario.bundled import scenario_folder, scenario_names
from routesim.scenario.kinds import KINDS, AnyScenario
from routesim.storage.reading import one_line

_Tagged: TypeAlias = Annotated[AnyScenario, Field(discriminator="kind")]
_SCENARIO: TypeAdapter[AnyScenario] = TypeAdapter(_Tagged)
_LARGEST = 1 << 24
_MOST_BITS = 256
_MOST_DOTS = 50
# A key, or the name of a table, at the start of a line or inside a table in braces. Nothing is matched in two ways, so
# that a long file takes one pass.
_NAME = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_DOTTED = re.compile(rf"(?:^|[\[{{,])[ \t]*+{_NAME}(?:[ \t]*+\.[ \t]*+{_NAME}){{{_MOST_DOTS}}}", re.MULTILINE)


def load_scenario(name_or_file: str | Path, **overrides: int | None) -> AnyScenario:
    """Return a bundled scenario by name, or one from a TOML file; overrides that are not None replace its fields."""
    path = Path(name_or_file)
    if path.suffix != ".toml":
        if str(name_or_file) not in scenario_names():
            near = nearest(str(name_or_file), scenario_names())
            raise ScenarioError(f"there is no scenario {str(name_or_file)!r}{near}; `routesim scenarios` lists them")
        path = scenario_folder() / f"{name_or_file}.toml"
    try:
        if path.stat().st_size > _LARGEST:
            raise ScenarioError(f"{path} is larger than {_LARGEST >> 20} MiB; that is no scenario")
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise ScenarioError(f"cannot read scenario {path}: {problem.strerror or problem}") from problem
    except UnicodeDecodeError as problem:
        raise ScenarioError(f"{path}: a scenario is text in UTF-8; {problem}") from problem
    return parse_scenario(text, str(path), folder=path.parent, **overrides)


def parse_scenario(
    text: str, source: str = "scenario", *, folder: Path | None = None, **overrides: int | None
) -> AnyScenario:
    """Return the scenario that a text stands for; files it names are relative to `folder`."""
    content = _parsed(text, source)
    content.update({key: value for key, value in overrides.items() if value is not None})
    scenario = _validated(content, source, folder)
    for values in scenario.grid() if scenario.sweep else ():
        at_point(scenario, values, source)
    return scenario


def _parsed(text: str, source: str) -> dict[str, Any]:
    if long := _DOTTED.search(text):  # the time for one grows with the square of its dots
        line = text.count("\n", 0, long.end()) + 1
        raise ScenarioError(
            f"{source}: line {line}: a key has more than {_MOST_DOTS} dots; tables are not nested so deep"
        )
    try:
        content = tomllib.loads(text)
        _check_numbers(content)
    except RecursionError as problem:
        raise ScenarioError(f"{source}: the tables are nested too deeply") from problem
    except ValueError as problem:  # not only what is no TOML, but also numbers of thousands of digits
        raise ScenarioError(f"{source}: {one_line(problem)}") from problem
    return content


def _check_numbers(value: Any, place: str = "") -> None:
    if isinstance(value, dict):
        for key, one in value.items():
            _check_numbers(one, f"{place}{key:.40}: ")
    elif isinstance(value, list):
        for one in value:
            _check_numbers(one, place)
    elif isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ValueError(f"{place}whole numbers have at most {_MOST_BITS} bits, got {value.bit_length()}")


def at_point(scenario: AnyScenario, values: Mapping[str, Any], source: str = "scenario") -> AnyScenario:
    """Return a scenario without its sweep, with these values of the swept fields, which its title tells."""
    content = scenario.model_dump(by_alias=True, exclude_none=True, exclude={"sweep"})
    for name, value in values.items():
        _set(content, name.split("."), value, f"{source}: sweep.{_brief(name)}")
    told = ", ".join(f"{name.rpartition('.')[2]} {_scalar(value)}" for name, value in values.items())
    if told and told.isprintable() and len(titled := f"{scenario.title} ({told})") <= LONGEST_TITLE:
        content["title"] = titled
    words = ", ".join(f"{_brief(name)} = {value!r:.80}" for name, value in values.items())
    return _validated(content, f"{source}: at {words}" if words else source, None)


def points(scenario: AnyScenario) -> list[tuple[dict[str, Scalar], AnyScenario]]:
    """Return the values of the swept fields at each point of the sweep, with the scenario there."""
    if not scenario.sweep:
        return [({}, scenario)]
    return [({name: _scalar(one) for name, one in at.items()}, at_point(scenario, at)) for at in scenario.grid()]


def to_toml(scenario: AnyScenario) -> str:
    """Return the scenario as a file with every field that has a value; paths are absolute."""
    import tomli_w

    content = scenario.model_dump(by_alias=True, exclude_none=True)
    if not content["sweep"]:
        del content["sweep"]
    # Plain values first: in TOML what follows a table belongs to it.
    ordered = dict(sorted(content.items(), key=lambda item: isinstance(item[1], dict | tuple)))
    return tomli_w.dumps(ordered)


def fingerprint(scenario: AnyScenario) -> str:
    """Return a number that two scenarios share only if they are the same."""
    return hashlib.sha256(to_toml(scenario).encode()).hexdigest()


def scenario_schema() -> dict[str, Any]:
    """Return the JSON schema of scenario files, for editors that complete and check TOML."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "routesim scenario",
        **_SCENARIO.json_schema(by_alias=True),
    }


def _validated(content: dict[str, Any], source: str, folder: Path | None) -> AnyScenario:
    try:
        return _SCENARIO.validate_python(_tuples(content), context={"folder": folder})
    except ValidationError as problem:
        raise ScenarioError(f"{source}: {_first_mistake(problem)}") from problem
    except (RoutesimError, RecursionError, OverflowError, MemoryError) as problem:
        raise ScenarioError(f"{source}: {one_line(problem)}") from problem


def _tuples(value: Any) -> Any:
    """Return lists as tuples, so that all of a scenario is frozen."""
    if isinstance(value, dict):
        return {key: _tuples(one) for key, one in value.items()}
    return tuple(_tuples(one) for one in value) if isinstance(value, list | tuple) else value


def _set(content: Any, names: list[str], value: Any, place: str) -> None:
    """Put a value into nested tables; the last name may be new, its table may not."""
    here = content
    for depth, name in enumerate(names):
        last = depth == len(names) - 1
        if isinstance(here, tuple | list):
            if not name.isdecimal() or int(name) >= len(here):
                raise ScenarioError(f"{place}: {_brief(name)!r} is no number from 0 to {len(here) - 1}")
            if last:
                raise ScenarioError(f"{place}: name a field of entry {name}, such as {place}.name")
            here = here[int(name)]
        elif isinstance(here, dict):
            if last:
                here[name] = value
            elif not isinstance(here.get(name), dict | tuple | list):
                there = _brief(".".join(names[: depth + 1]))
                raise ScenarioError(f"{place}: there is no table {there!r}{nearest(name, here)}")
            else:
                here = here[name]
        else:
            raise ScenarioError(f"{place}: {_brief('.'.join(names[:depth]))} has no fields")


def _brief(name: str) -> str:
    return one_line(name, 200)


def _scalar(value: Any) -> Scalar:
    return value if isinstance(value, str | int | float | bool) else str(value)


def _first_mistake(problem: ValidationError) -> str:
    mistake = problem.errors()[0]
    tags = {kind.model_fields["kind"].annotation.__args__[0] for kind in KINDS}  # type: ignore[union-attr]  # a Literal
    parts = [str(part) for part in mistake["loc"]]
    where = parts[1:] if parts and parts[0] in tags else parts
    # Alternatives of a field add their own names to the place; people look for keys.
    place = ".".join(part for part in where if part.replace("_", "").isalnum()) or "kind"
    message = mistake["msg"].removeprefix("Value error, ")
    if mistake["type"] == "missing":
        message = "this key is needed"
    said = mistake["type"] in ("missing", "value_error", "union_tag_invalid", "union_tag_not_found")
    given = "" if said else f", got {mistake['input']!r:.80}"
    hint = nearest(parts[-1], _field_names()) if mistake["type"] == "extra_forbidden" else ""
    return f"{_brief(place)}: {one_line(message)}{given}{hint}"


def _field_names() -> Iterator[str]:
    """Yield the name of every key that a scenario can have somewhere."""
    waiting: list[Any] = list(KINDS)
    seen: set[Any] = set()
    while waiting:
        model = waiting.pop()
        if isinstance(model, type) and issubclass(model, BaseModel):
            if model in seen:
                continue
            seen.add(model)
            for name, item in model.model_fields.items():
                yield item.alias or name
                waiting.append(item.annotation)
        else:
            waiting.extend(getattr(model, "__args__", ()))
