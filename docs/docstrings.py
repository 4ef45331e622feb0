"""Examples in docstrings, which are doctests, shown as code: Markdown would take their `>>>` for quotations."""

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*$", flags=re.MULTILINE)


class CodeExamples(Extension):
    """Puts a fence around each run of lines that begins with `>>>`."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of an object once it is read."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)
