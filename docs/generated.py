"""Parts of the documentation that are made from the code while the site is built, so that they cannot go stale.

A page asks for one with a line `<!-- generated: NAME -->`; NAME is a key of `PARTS`.
"""

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo

_ASKED = re.compile(r"^<!-- generated: ([a-z-]+) -->$", flags=re.MULTILINE)
_SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<", "min_length": "length ≥", "max_length": "length ≤"}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill a page's generated parts; MkDocs calls this for each page."""
    return _ASKED.sub(lambda asked: PARTS[asked[1]](), markdown)


def scenario_fields() -> str:
    """Return a table of fields for each model that a scenario file can hold, beginning with the four kinds."""
    from routesim.scenario.kinds import KINDS

    return "\n".join(_model_section(model) for model in _models(list(KINDS)))


def scenario_choices() -> str:
    """Return what can be named as a learner, a router or a congestion function, with the parameters of each."""
    from routesim.scenario.choices import CongestionChoice, LearnerChoice, RouterChoice

    titles: dict[str, Any] = {
        "Learners": LearnerChoice,
        "Routers": RouterChoice,
        "Congestion functions": CongestionChoice,
    }
    lines: list[str] = []
    for title, choice in titles.items():
        lines += [f"### {title}", "", "| name | parameters with their defaults | |", "|---|---|---|"]
        for name, maker in choice.known.items():
            about = (maker.__doc__ or "").strip().splitlines()[0]
            lines.append(f"| `{name}` | {_parameters(maker)} | {_cell(about)} |")
        shared = {one: item for one, item in choice.model_fields.items() if one != "name"}
        lines += [
            "",
            *(f"Beside each: `{one}` ({_default(item)}), {item.description}." for one, item in shared.items()),
            "",
        ]
    return "\n".join(lines)


def learners() -> str:
    """Return the reference of every learner."""
    from routesim import registry

    return _reference(registry.learners())


def routers() -> str:
    """Return the reference of every router."""
    from routesim import registry

    return _reference(registry.routers())


def _reference(classes: Mapping[str, Any]) -> str:
    return "\n".join(f"::: {one.__module__}.{name}" for name, one in classes.items())


def learner_traits() -> str:
    """Return what each learner says of itself, and what stands for it in traffic."""
    from routesim import registry
    from routesim.learners.base import Traits
    from routesim.traffic.routers import as_router, in_traffic

    lines = [
        "| learner | `knows` | needs contexts | plays a whole graph | plays several OD pairs | learns | in traffic |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, kind in registry.learners().items():
        traits = Traits.of(kind)
        says = (traits.needs_contexts, traits.plays_whole_graph, traits.plays_several_pairs, traits.learns)
        router = f"`{type(as_router(kind())).__name__}`" if in_traffic(kind) else ""
        cells = [f"`{name}`", f'`"{traits.knows}"`', *("yes" if one else "" for one in says), router]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def bundled_scenarios() -> str:
    """Return the bundled scenarios with their kind and title."""
    from routesim.scenario.bundled import scenario_names
    from routesim.scenario.files import load_scenario

    rows = [(name, load_scenario(name)) for name in scenario_names()]
    lines = [f"| `{name}` | {one.kind} | {_cell(one.title)} |" for name, one in rows]
    return "\n".join(["| name | kind | |", "|---|---|---|", *lines, ""])


def command_line() -> str:
    """Return every command of `routesim` with its arguments and options, as their functions state them."""
    from routesim.cli import app

    lines: list[str] = []
    for command in app.registered_commands:
        function: Any = command.callback
        hints = get_type_hints(function, include_extras=True)
        stated = inspect.signature(function).parameters.values()
        words = [_Word.of(one.name, hints[one.name], one.default) for one in stated]
        name = command.name or function.__name__
        shape = [word.shown for word in words if not word.is_option] + ["[OPTIONS]"] * any(w.is_option for w in words)
        lines += [f"## routesim {name}", "", _text(function.__doc__), ""]
        lines += ["```text", " ".join(["routesim", name, *shape]), "```", ""]
        if words:
            lines += ["| | type | default | limits | |", "|---|---|---|---|---|", *map(str, words), ""]
    return "\n".join(lines)


@dataclass(frozen=True)
class _Word:
    """An argument or an option of a command."""

    shown: str
    is_option: bool
    kind: str
    default: str
    limits: str
    about: str

    @classmethod
    def of(cls, name: str, hint: Any, default: Any) -> "_Word":
        kind, info = get_args(hint)
        is_option = type(info).__name__ == "OptionInfo"
        # Typer keeps the first declaration where the default is kept otherwise.
        given = [one for one in (info.default, *(info.param_decls or ())) if str(one).startswith("-")]
        shown = (given or [f"--{name.replace('_', '-')}"])[0] if is_option else name.upper()
        words = "flag" if kind is bool else _type(kind)
        if default is inspect.Parameter.empty:
            said = "needed"
        else:
            said = "" if default is None or kind is bool else f"`{default}`"
        return cls(shown, is_option, words, said, _bounds([info], {"min": "≥", "max": "≤"}), info.help or "")

    def __str__(self) -> str:
        return f"| `{self.shown}` | {self.kind} | {self.default} | {self.limits} | {_cell(self.about)} |"


def _models(waiting: list[Any]) -> Iterator[type[BaseModel]]:
    """Yield each model once, those inside it after it; things chosen by name have a chapter of their own."""
    from routesim.scenario.choices import Choice

    seen: set[Any] = set()
    while waiting:
        one = waiting.pop(0)
        if not (isinstance(one, type) and issubclass(one, BaseModel)):
            waiting = [*get_args(one), *waiting]
        elif one not in seen and not issubclass(one, Choice):
            seen.add(one)
            yield one
            waiting = [item.annotation for item in one.model_fields.values()] + waiting


def _model_section(model: type[BaseModel]) -> str:
    lines = [f"### {_title(model)}", "", _text(model.__doc__), ""]
    lines += ["| field | type | default | limits | |", "|---|---|---|---|---|"]
    for name, item in model.model_fields.items():
        default = "needed" if item.is_required() else _default(item)
        cells = [f"`{item.alias or name}`", _cell(_type(item.annotation)), default, _bounds(item.metadata, _SIGNS)]
        lines.append(f"| {' | '.join(cells)} | {_cell(item.description or '')} |")
    return "\n".join([*lines, ""])


def _title(model: type[BaseModel]) -> str:
    kind = model.model_fields.get("kind")
    if kind is not None:
        return f'kind = "{get_args(kind.annotation)[0]}"'
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", model.__name__.removesuffix("Choice"))


def _type(hint: Any) -> str:
    """Return a type in words: `(float, ...)` is a list of numbers."""
    origin, inside = get_origin(hint), get_args(hint)
    words = {int: "whole number", float: "number", str: "text", bool: "true or false", type(None): "", Any: "any value"}
    words |= {Path: "path"}
    if hint in words:
        return words[hint]
    if origin is Annotated:
        return _type(inside[0])
    if origin is Literal:
        return " or ".join(f'"{one}"' for one in inside)
    if origin is list or (origin is tuple and inside[-1] is Ellipsis):
        return f"list of {_type(inside[0])}"
    if origin is tuple:
        return f"[{', '.join(_type(one) for one in inside)}]"
    if origin is dict:
        return f"table: {_type(inside[0])} → {_type(inside[1])}"
    if inside:
        return " or ".join(word for word in map(_type, inside) if word)
    return _link(hint)


def _link(model: type[BaseModel]) -> str:
    chapters = {"LearnerChoice": "learners", "RouterChoice": "routers", "CongestionChoice": "congestion-functions"}
    if model.__name__ in chapters:
        return f"[{chapters[model.__name__].replace('-', ' ').removesuffix('s')}](#{chapters[model.__name__]})"
    return f"[{_title(model)}](#{_title(model).lower().replace(' ', '-')})"


def _default(item: FieldInfo) -> str:
    plain = list(item.default) if isinstance(item.default, tuple) else item.default
    return "" if item.default_factory is not None or plain in (None, {}, "") else f"`{json.dumps(plain)}`"


def _bounds(limits: Iterable[Any], signs: dict[str, str]) -> str:
    found = [(sign, getattr(limit, key, None)) for limit in limits for key, sign in signs.items()]
    return ", ".join(f"{sign} {_number(value)}" for sign, value in found if value is not None)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) and value < 2**53 else f"{value:g}"


def _parameters(maker: Any) -> str:
    from routesim import registry

    needed, shown = registry.needed(maker), registry.settings(maker)
    return ", ".join(
        f"`{name}` (needed)" if name in needed else f"`{name} = {json.dumps(one.default)}`"
        for name, one in shown.items()
    )


def _text(text: str | None) -> str:
    return inspect.cleandoc(text or "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def speed() -> str:
    """Return the table that `python -m benchmarks` wrote last."""
    return (Path(__file__).parents[1] / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")


PARTS = {
    "speed": speed,
    "bundled-scenarios": bundled_scenarios,
    "command-line": command_line,
    "learner-traits": learner_traits,
    "learners": learners,
    "routers": routers,
    "scenario-choices": scenario_choices,
    "scenario-fields": scenario_fields,
}
