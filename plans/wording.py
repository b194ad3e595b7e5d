"""Words for messages about plans: what was probably meant, and names and values shown short and printable."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from plans.values import JSON

_MANY = 500
"""With more names than this only spelling, not similarity, is looked at: similarity costs a comparison per name."""


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that differs in capitals, dashes or spaces only, else the most similar one; None if none is."""
    spelled = bare(name)
    for candidate in known:
        if bare(candidate) == spelled:
            return candidate
    if len(known) > _MANY:
        return None
    close = difflib.get_close_matches(name[:80], list(known), n=1, cutoff=0.6)
    return close[0] if close else None


def listed(names: Collection[str], most: int = 8) -> str:
    """Names for a sentence: the first few, and how many more there are."""
    shown = list(names)[:most]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "") if shown else "none"


def either(names: Iterable[Any]) -> str:
    """`a`, or `a or b`, or `a, b or c`."""
    *rest, last = map(str, names)
    return f"{', '.join(rest)} or {last}" if rest else last


def counted(number: int, noun: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def kind_of(value: JSON) -> str:
    """What a value is, without showing it."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
    return f"a {type(value).__name__}"


def bare(name: str) -> str:
    """A name without what people spell differently: capitals, dashes, spaces."""
    return name.casefold().replace("-", "_").replace(" ", "_").strip("_")


def in_utc(moment: datetime) -> str:
    """A moment as every line about a question tells it, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
