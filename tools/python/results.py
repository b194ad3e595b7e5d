"""What the interpreter gives back, as JSON: times and decimals as text, sets sorted, and nothing that only looks like
a value."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from plans.failure import ToolFailure
from plans.values import JSON, MAX_DEPTH

_INT64 = 2**63
# What has no form outside of the interpreter comes as the text that print would show.
_SHOWN = re.compile(r"(dict_(?:keys|values|items)|range|slice)\(.*\)|<(.+?) .*>", re.DOTALL)


def as_json(value: Any, most: int) -> JSON:
    """The value as JSON of about `most` characters at most. Raises ToolFailure OUTPUT_INVALID, or RESOURCE_LIMIT for
    one that is larger: a few lists that hold each other again and again are a value without end."""
    if isinstance(value, str) and (shown := _SHOWN.fullmatch(value)) and len(value) < 10_000:
        raise _invalid(f"it is a {shown[1] or shown[2]}; give plain values, for example list(...) of it")
    return _Reading(most).made(value, 0)


class _Reading:
    """Reads one value, and counts while it does: what is shared is counted each time that it would be written."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most

    def made(self, value: Any, depth: int) -> JSON:
        """The JSON of a value."""
        if depth > MAX_DEPTH:
            raise _invalid(f"it is nested deeper than {MAX_DEPTH} levels")
        self._count(value)
        match value:
            case None | bool() | str():
                return value
            case int() | float():
                return _number(value)
            case Mapping():
                return {self._key(key): self.made(item, depth + 1) for key, item in value.items()}
            case list() | tuple():
                return [self.made(item, depth + 1) for item in value]
            case set() | frozenset():
                return _in_order([self.made(item, depth + 1) for item in value])
            case _:
                return _text(value)

    def _count(self, value: Any) -> None:
        self._left -= len(value) + 2 if isinstance(value, str) else 2
        if self._left < 0:
            raise ToolFailure("RESOURCE_LIMIT", f"the result is longer than {self._most:,} characters; give less of it")

    def _key(self, key: Any) -> str:
        self._count(key)
        if isinstance(key, str):
            return key
        if isinstance(key, int) and not isinstance(key, bool):
            return str(_number(key))
        raise _invalid(f"a dict in it has a {type(key).__name__} as a key; keys are text")


def _number(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise _invalid(f"it holds {value}, which JSON does not know; give None instead")
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise _invalid("it holds an integer of more than 64 bits; give it as text")
    return value


def _in_order(elements: list[Any]) -> list[Any]:
    """The elements of a set by size where they have one among each other, else by their text."""
    try:
        return sorted(elements)
    except TypeError:
        return sorted(elements, key=lambda element: json.dumps(element, sort_keys=True))


def _text(value: Any) -> str:
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            raise _invalid("it holds a timedelta; give its total_seconds()")
        case Decimal() | PurePath():
            return str(value)
        case bytes():
            raise _invalid("it holds bytes; decode them to text")
        case _:
            raise _invalid(f"it holds a {type(value).__name__}; give plain values")


def _invalid(why: str) -> ToolFailure:
    return ToolFailure("OUTPUT_INVALID", f"the result is no JSON: {why}")
