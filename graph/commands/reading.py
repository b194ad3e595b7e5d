"""What a command was given, read from text: `NAME=VALUE` options, and plans from files or stdin."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plans.errors import InvalidInput
from plans.json_text import NotJSON, strict_json
from plans.reader import MAX_TEXT

MOST_BYTES = 4 * MAX_TEXT + 4
"""As many bytes as the longest plan that is read can have; a longer file is not read to its end."""


def pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """`NAME=VALUE` texts as a mapping. Raises InvalidInput that shows the right form."""
    found: dict[str, str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise InvalidInput(f"{option} takes NAME=VALUE, not {text!r}")
        if name in found:
            raise InvalidInput(f"{option} {name} is given twice ({found[name]!r} and {value!r}); give it once")
        found[name] = value
    return found


def values(given: Sequence[str], option: str) -> dict[str, Any]:
    """`NAME=VALUE` with each value read as JSON where it is JSON, else as text."""
    return {name: _value(text, f"{option} {name}") for name, text in pairs(given, option).items()}


def paths(given: Sequence[str], option: str) -> dict[str, Path]:
    """`NAME=PATH`, with `~` for the home folder, which a shell does not expand after a name."""
    found = pairs(given, option)
    if empty := [name for name, path in found.items() if not path]:
        raise InvalidInput(f"{option} {empty[0]} names no file; write {option} {empty[0]}=PATH")
    return {name: Path(path).expanduser() if path.startswith("~/") else Path(path) for name, path in found.items()}


def _value(text: str, where: str) -> Any:
    try:
        return strict_json(text)
    except NotJSON as error:
        if text.lstrip().startswith(("{", "[", '"')):
            raise InvalidInput(f"{where} begins like JSON and is none: {error}; put text in JSON quotes") from None
        return text


def read_text(name: str, what: str) -> str:
    """A file's text, or stdin's for `-`. Raises InvalidInput that says what is wrong with the file."""
    where = "from standard input" if name == "-" else name
    try:
        if name == "-":
            body = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                body = file.read(MOST_BYTES + 1)
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{what} {where} is not UTF-8 text; expected JSON or YAML") from None
    except IsADirectoryError:
        raise InvalidInput(f"{what} {where} is a folder; name a file") from None
    except OSError as error:
        raise InvalidInput(f"{what} {where} cannot be read: {error.strerror}") from None
    if len(body) > MOST_BYTES:
        raise InvalidInput(f"{what} {where} has more than {MOST_BYTES:,} bytes; that is no plan")
    if not text.strip():
        raise InvalidInput(f"{what} {where} is empty; expected JSON or YAML")
    return text
