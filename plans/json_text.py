"""JSON as it stands: strictly, in linear time, and with every key that stands twice named by its path."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NoReturn

from plans.faults import FaultCode
from plans.values import JSON, Path, too_deep

BEYOND = 2**64
"""Stands for every integer too long to be worth reading; `unclean` refuses it like them."""

_MAX_DIGITS = 20


@dataclass(frozen=True, slots=True)
class Note:
    """Something wrong at one place of a text that could be read all the same."""

    code: FaultCode
    path: Path
    message: str


class NotJSON(ValueError):
    """The text is not strictly JSON, or holds what strict readers disagree about."""


def strict_json(text: str) -> JSON:
    """The value of a text that is JSON and nothing else. Raises NotJSON: also for a key that stands twice, NaN, and
    nesting deeper than MAX_DEPTH."""
    try:
        value: JSON = json.loads(text, object_pairs_hook=_object, parse_int=whole_number, parse_constant=_refused)
    except RecursionError:
        raise NotJSON("nested too deeply") from None
    except ValueError as error:
        raise NotJSON(str(error)) from None
    if too_deep(value):
        raise NotJSON("nested too deeply")
    return value


def whole_number(digits: str) -> int:
    """An integer of JSON; one that is longer than any that can be stored is not worked out."""
    if len(digits) <= _MAX_DIGITS:
        return int(digits)
    return -BEYOND if digits.startswith("-") else BEYOND


def _object(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotJSON("a key stands twice")
    return found


def _refused(name: str) -> NoReturn:
    raise NotJSON(f"{name} is not JSON")
