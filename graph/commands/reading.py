"""What a command was given, read from text: `NAME=VALUE` options, and plans from files or stdin."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from plans.errors import InvalidInput
from plans.json_text import NotJSON, strict_json
from plans.reader import MAX_TEXT
from plans.values import printable

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


class NoText(ValueError):
    """Bytes that are no text; says what they are, as the end of a sentence that begins with the file."""


def read_text(name: str, what: str) -> str:
    """A file's text, or stdin's for `-`. Raises InvalidInput that says what is wrong with the file."""
    where = "from standard input" if name == "-" else name
    try:
        text = text_in(read_bytes(name, what))
    except NoText as error:
        raise InvalidInput(f"{what} {where} {error}") from None
    if not text.strip():
        raise InvalidInput(f"{what} {where} is empty; expected JSON or YAML")
    return text


def read_bytes(name: str, what: str) -> bytes:
    """A file's bytes, or stdin's for `-`, and hardly more than a plan may have. Raises InvalidInput."""
    where = "from standard input" if name == "-" else name
    try:
        if name == "-":
            return sys.stdin.buffer.read(MOST_BYTES + 1)
        with Path(name).open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except IsADirectoryError:
        raise InvalidInput(f"{what} {where} is a folder; name a file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(f"{what} {printable(where)} cannot be read: {reason}") from None


def text_in(body: bytes) -> str:
    """The text of a file. Raises NoText."""
    if len(body) > MOST_BYTES:
        raise NoText(f"has more than {MOST_BYTES:,} bytes; that is no plan")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        utf_16 = body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0\0" not in body
        hint = " (it looks like UTF-16; save it as UTF-8)" if utf_16 else ""
        raise NoText(f"is not UTF-8 text{hint}; expected JSON or YAML") from None


def answer_in(body: bytes) -> str:
    """The same of a model's raw answer, in which lone surrogates are a fault of their place. Raises NoText."""
    if len(body) <= MOST_BYTES:
        with suppress(UnicodeDecodeError):
            return body.decode("utf-8", "surrogatepass").removeprefix("\ufeff")
    return text_in(body)
