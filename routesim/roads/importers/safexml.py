"""XML read as a stream, without entities, within limits; every mistake names its file and line."""

from collections.abc import Callable
from pathlib import Path
from xml.parsers import expat

from routesim.errors import NetworkError
from routesim.roads.importers.files import MAX_BYTES, read_chunks

# No element of a road file comes near; an element is held in memory whole before it is seen.
_LONGEST_TAG_BYTES = 8 * 2**20
_DEEPEST = 64


class Halt(Exception):  # noqa: N818 - it says what is wrong with the file, the reader adds the place
    """Raised by a handler to say what is wrong at the present place."""


def read_xml(
    file: Path,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None] | None = None,
    text: Callable[[str], None] | None = None,
    *,
    max_bytes: int | None,
    default: int = MAX_BYTES,
) -> None:
    """Call `start`, `end` and `text` for what a file holds, in its order."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    depth = 0

    def refuse(*_: object) -> None:
        raise Halt("a document type or entity declaration, which road files do not need and may hide a bomb")

    def start_element(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise Halt(f"elements nested more than {_DEEPEST} deep")
        start(tag, attributes)

    def end_element(tag: str) -> None:
        nonlocal depth
        depth -= 1
        if end is not None:
            end(tag)

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = start_element
    parser.EndElementHandler = end_element
    if text is not None:
        parser.CharacterDataHandler = text
    fed = 0
    try:
        for chunk in read_chunks(file, max_bytes=max_bytes, default=default):
            parser.Parse(chunk, False)
            fed += len(chunk)
            if fed - parser.CurrentByteIndex > _LONGEST_TAG_BYTES + len(chunk):
                raise Halt(f"one element longer than {_LONGEST_TAG_BYTES} bytes")
        parser.Parse(b"", True)
    except Halt as halt:
        raise NetworkError(f"{file} line {parser.CurrentLineNumber}: {halt}") from None
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code) if error.code else str(error)
        raise NetworkError(f"{file} line {error.lineno} is not XML: {reason}") from None
    except (LookupError, UnicodeError, ValueError) as error:
        if isinstance(error, NetworkError):
            raise
        raise NetworkError(f"{file} line {parser.CurrentLineNumber} cannot be read: {error}") from None
